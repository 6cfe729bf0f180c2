package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"
)

// The time to wait for transactions of other processes, which take milliseconds.
// A writer waits longer, because the samples that it stores cost seconds to
// measure.
const (
	readTimeout   = 5 * time.Second
	writeTimeout  = 20 * time.Second
	trialsTimeout = 50 * time.Millisecond // of KeepTrials, which has its journal
)

// view runs f in a read transaction. A missing file is an empty one.
func (db *DB) view(f func(*bbolt.Tx) error) error {
	_, err := os.Stat(db.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := db.checkNotEmpty(); err != nil {
		return err
	}
	return db.with(bbolt.Options{ReadOnly: true, Timeout: readTimeout}, func(b *bbolt.DB) error {
		return b.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucketMeta) == nil {
				return checkEmpty(tx)
			}
			if err := checkSchema(tx); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

// update runs f in a write transaction, creating the file if need be.
func (db *DB) update(f func(*bbolt.Tx) error) error {
	return db.updateWith(bbolt.Options{Timeout: writeTimeout}, f)
}

// updateWith is update with the time to wait for the lock and the size of the
// mapping. The transaction takes over the journals that lie beside the file.
func (db *DB) updateWith(
	o bbolt.Options, f func(*bbolt.Tx) error,
) error {
	if err := db.checkNotEmpty(); err != nil {
		return err
	}
	if err := db.create(); err != nil {
		return err
	}
	if err := db.verifyBeforeWrite(o.Timeout); err != nil {
		return err
	}
	return db.with(o, func(b *bbolt.DB) error {
		var taken []string
		err := b.Update(func(tx *bbolt.Tx) (err error) {
			if err = prepare(tx); err == nil {
				taken, err = db.takeJournals(tx)
			}
			if err != nil {
				return err
			}
			return f(tx)
		})
		if err == nil {
			removeAll(taken)
			sweep(db.path)
		}
		return err
	})
}

// checkNotEmpty refuses a file without a byte, which a database never is: a crash
// has cut it, and to go on would hide that.
func (db *DB) checkNotEmpty() error {
	info, err := os.Stat(db.path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
		return nil
	}
	return kindf(ErrDamaged, "%s is empty, which no database is: restore a copy, or remove it to begin anew", db.path)
}

// verifyBeforeWrite looks for damage before bbolt opens the file for writing:
// bbolt trusts its list of free pages and would overwrite a page that is on it
// wrongly.
func (db *DB) verifyBeforeWrite(wait time.Duration) error {
	info, err := os.Stat(db.path)
	if err != nil || info.Size() == 0 {
		return nil // bbolt makes it
	}
	err = db.with(
		bbolt.Options{ReadOnly: true, Timeout: wait},
		func(*bbolt.DB) error { return nil },
	)
	if err != nil {
		return err
	}
	if misfit := db.verified.Load().misfitError(); misfit != nil {
		return fmt.Errorf("%s: %w", db.path, misfit)
	}
	return nil
}

// create makes the file under a temporary name and links it into its place, so
// that no other process ever finds half a file; when another process was first,
// its file stays.
func (db *DB) create() error {
	if _, err := os.Stat(db.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := checkFolder(db.path); err != nil {
		return err
	}
	tmp, err := tempBeside(db.path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // the link stays
	fresh := Open(tmp.Name())
	err = fresh.with(
		bbolt.Options{Timeout: writeTimeout},
		func(b *bbolt.DB) error { return b.Update(prepare) },
	)
	if err := finish(tmp, err); err != nil {
		return err
	}
	if os.Link(tmp.Name(), db.path) == nil {
		syncFolder(db.path)
	}
	return nil // where there are no links, bbolt makes the file in its place
}

// tempBeside creates a hidden file in the folder of path, to be renamed or linked
// to path once it is complete. Its permissions are those of the file at path or, without
// one, those that umask leaves.
func tempBeside(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(
			filepath.Join(filepath.Dir(path), fmt.Sprintf(
				".%s.%08x.new", filepath.Base(path), rand.Uint32(),
			)),
			os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666,
		)
		if info, missing := os.Stat(path); err == nil && missing == nil {
			_ = f.Chmod(info.Mode().Perm()) // a file system may have none
		}
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// finish closes a temporary file after its content has reached the disk, unless
// writing it has failed.
func finish(tmp *os.File, err error) error {
	return errors.Join(err, tmp.Sync(), tmp.Close())
}

// syncFolder makes a new name in a folder durable. Some systems cannot do it, and
// lose the name if the power fails in the next seconds.
func syncFolder(path string) {
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		dir.Sync()
		dir.Close()
	}
}

// with opens the file, runs f and closes the file. Panics of bbolt and faults of
// its mapping, which a damaged file causes, become errors.
//
// The order of locks is: the folder's (see acquire), then bbolt's own. leave
// releases the former as soon as bbolt has the latter.
func (db *DB) with(
	o bbolt.Options, f func(*bbolt.DB) error,
) (err error) {
	if err := checkRegularFile(db.path); err != nil {
		return err
	}
	var file *os.File
	leave := func() {}
	wait := o.Timeout
	o.Timeout = bboltTimeout(wait)
	o.OpenFile = func(
		path string, flag int, mode os.FileMode,
	) (*os.File, error) {
		file, err = os.OpenFile(path, flag, mode)
		if err == nil {
			leave = acquire(file, !o.ReadOnly, wait)
		}
		return file, err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			leave()
			unlock(file)
			file.Close() // bbolt's own Close could wait for itself
			err = kindf(ErrDamaged, "%s is damaged: %v", db.path, p)
		}
	}()
	b, err := bbolt.Open(db.path, 0o666, &o)
	leave()
	switch {
	case errors.Is(err, bberrors.ErrTimeout):
		return kindf(ErrBusy, "%s: another process has held it for %v", db.path, wait)
	case errors.Is(err, bberrors.ErrInvalid) ||
		errors.Is(err, bberrors.ErrChecksum) ||
		errors.Is(err, bberrors.ErrVersionMismatch) ||
		err != nil && strings.Contains(err.Error(), "file size too small"): // which has no value
		return notADatabase(db.path)
	case err != nil:
		return fmt.Errorf("%s: %w", db.path, err)
	}
	if o.ReadOnly {
		err = db.verifyFile(file)
	}
	if err == nil {
		err = f(b)
	}
	if err == nil && !o.ReadOnly {
		db.markVerified(file)
	}
	if err := errors.Join(err, b.Close()); err != nil {
		return fmt.Errorf("%s: %w", db.path, err)
	}
	return nil
}

// checkRegularFile refuses a path that exists and is no regular file.
func checkRegularFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return kindf(ErrForeign, "%s is a directory, not a tilewright database", path)
	case !info.Mode().IsRegular():
		return kindf(ErrForeign, "%s is not a regular file", path)
	}
	return nil
}

// notADatabase is the error of a file whose first pages bbolt does not accept.
func notADatabase(path string) error {
	const published = "TWSNAP" // the first bytes of snapshots of all versions
	head := make([]byte, len(published))
	if f, err := os.Open(path); err == nil {
		_, _ = io.ReadFull(f, head)
		f.Close()
	}
	if string(head) == published {
		return kindf(ErrForeign, "%s is a published snapshot, not a database: give it with -snapshot, to commands that take one", path)
	}
	return kindf(ErrForeign, "%s is not a tilewright database, or its first pages are damaged; restore a copy, or move it away and `cache import` an export", path)
}

// checkFolder refuses a path whose folder does not exist.
func checkFolder(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: there is no folder %s", path, dir)
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %s is not a folder", path, dir)
	}
	return nil
}

// prepare makes the buckets of an empty file and checks the schema of another.
func prepare(tx *bbolt.Tx) error {
	if tx.Bucket(bucketMeta) != nil {
		return checkSchema(tx)
	}
	if err := checkEmpty(tx); err != nil {
		return err
	}
	for _, name := range [][]byte{bucketMeta, bucketWinners, bucketTrials} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(
		keySchema, []byte(strconv.Itoa(schemaVersion)),
	)
}

// checkEmpty distinguishes a file that was created and never written from a
// bbolt file of another program.
func checkEmpty(tx *bbolt.Tx) error {
	if name, _ := tx.Cursor().First(); name != nil {
		return kindf(ErrForeign, "it is a bbolt file, but not a tilewright database")
	}
	return nil
}

// checkSchema refuses a file of another program or of a later version.
func checkSchema(tx *bbolt.Tx) error {
	text := string(tx.Bucket(bucketMeta).Get(keySchema))
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || version < 1:
		return kindf(ErrForeign, "its schema version is %.20q, not a number; is it a tilewright database?", text)
	case version > schemaVersion:
		return kindf(ErrNewer, "it has schema version %d; this tilewright reads up to %d: use a newer one", version, schemaVersion)
	case tx.Bucket(bucketWinners) == nil ||
		tx.Bucket(bucketTrials) == nil:
		return kindf(ErrDamaged, "it is damaged: a bucket is missing")
	}
	return nil
}

// castagnoli is the polynomial of all checksums of this package: processors have
// an instruction for it.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// putJSON stores the encoding of v.
func putJSON(tx *bbolt.Tx, bucket, key []byte, v any) error {
	value, err := encodeJSON(v)
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put(key, value)
}

// encodeJSON is v as JSON, which people can read with any bbolt tool, behind the
// CRC-32C of the text, which finds flipped bits that would still be JSON.
func encodeJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return withChecksum(text), nil
}

// withChecksum is a text behind its CRC-32C.
func withChecksum(text []byte) []byte {
	value := binary.LittleEndian.AppendUint32(
		make([]byte, 0, 4+len(text)),
		crc32.Checksum(text, castagnoli()),
	)
	return append(value, text...)
}

// readJSON reads what putJSON stored.
func readJSON(value []byte, v any) error {
	text, err := checkedText(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// checkedText is the text of a value, whose checksum is right.
func checkedText(value []byte) ([]byte, error) {
	if len(value) < 4 {
		return nil, errors.New("it is cut short")
	}
	sum := binary.LittleEndian.Uint32(value)
	text := value[4:]
	if crc32.Checksum(text, castagnoli()) != sum {
		return nil, errors.New("its checksum is wrong")
	}
	return text, nil
}
