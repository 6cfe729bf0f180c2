package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// lockTimeout is how long to wait for another process's transaction. They take
// milliseconds.
const lockTimeout = 5 * time.Second

// view runs f in a read transaction. A missing file is an empty one.
func (db *DB) view(f func(*bbolt.Tx) error) error {
	if _, err := os.Stat(db.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return db.with(&bbolt.Options{ReadOnly: true, Timeout: lockTimeout}, func(b *bbolt.DB) error {
		return b.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucketMeta) == nil {
				return nil // created, never written
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
	return db.with(&bbolt.Options{Timeout: lockTimeout}, func(b *bbolt.DB) error {
		return b.Update(func(tx *bbolt.Tx) error {
			if err := prepare(tx); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

// with opens the file for an instant. Whatever bbolt does on a damaged file,
// panics and faults of its mapping included, comes out as an error.
func (db *DB) with(o *bbolt.Options, f func(*bbolt.DB) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v", db.path, p)
		}
	}()
	if err := inspect(db.path); err != nil {
		return err
	}
	b, err := bbolt.Open(db.path, 0o644, o)
	if errors.Is(err, bbolt.ErrTimeout) {
		return fmt.Errorf("%s: another process has held it for %v", db.path, lockTimeout)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", db.path, err)
	}
	if err := errors.Join(f(b), b.Close()); err != nil {
		return fmt.Errorf("%s: %w", db.path, err)
	}
	return nil
}

// bbolt's file: pages of pageSize; pages 0 and 1 are meta pages, each a
// 16-byte header and the fields below (go.etcd.io/bbolt, internal/common/meta.go).
const (
	metaMagic    = 0xED0CDAED
	metaOffset   = 16
	metaPageSize = metaOffset + 8
	metaHighest  = metaOffset + 40 // number of the first page never used
	metaLength   = metaOffset + 64
)

// inspect refuses what bbolt would crash or hang on: directories, other files,
// and files shorter than they say.
func inspect(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return folderExists(path)
	}
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory, not a tilewright database", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var meta [metaLength]byte
	if _, err := f.ReadAt(meta[:], 0); err != nil || binary.LittleEndian.Uint32(meta[metaOffset:]) != metaMagic {
		return fmt.Errorf("%s is not a tilewright database (no bbolt file starts like this)", path)
	}
	size := int64(binary.LittleEndian.Uint32(meta[metaPageSize:]))
	highest := int64(binary.LittleEndian.Uint64(meta[metaHighest:]))
	if _, err := f.ReadAt(meta[:], size); err == nil && binary.LittleEndian.Uint32(meta[metaOffset:]) == metaMagic {
		highest = max(highest, int64(binary.LittleEndian.Uint64(meta[metaHighest:])))
	}
	if size < 512 || highest < 0 || highest > 1<<40 || info.Size() < highest*size {
		return fmt.Errorf("%s is cut short: it has %d bytes of %d; restore a copy, or `cache import` an export", path, info.Size(), highest*size)
	}
	return nil
}

func folderExists(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: there is no folder %s", path, dir)
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %s is not a folder", path, dir)
	}
	return nil
}

func prepare(tx *bbolt.Tx) error {
	if tx.Bucket(bucketMeta) != nil {
		return checkSchema(tx)
	}
	for _, name := range [][]byte{bucketMeta, bucketWinners, bucketTrials} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keySchema, []byte(strconv.Itoa(Schema)))
}

func checkSchema(tx *bbolt.Tx) error {
	text := string(tx.Bucket(bucketMeta).Get(keySchema))
	version, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return fmt.Errorf("its schema version is %q, not a number", text)
	case version > Schema:
		return fmt.Errorf("it has schema version %d; this tilewright reads up to %d: use a newer one", version, Schema)
	case tx.Bucket(bucketWinners) == nil || tx.Bucket(bucketTrials) == nil:
		return errors.New("a bucket is missing")
	}
	return nil
}

func get(tx *bbolt.Tx, bucket, key []byte) []byte { return tx.Bucket(bucket).Get(key) }

func each(tx *bbolt.Tx, bucket []byte, f func(k, v []byte) error) error {
	return tx.Bucket(bucket).ForEach(f)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// set stores v as JSON, which people can read with any bbolt tool, after its
// CRC-32C, which finds flipped bits that JSON would not.
func set(tx *bbolt.Tx, bucket, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	value := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(text, castagnoli))
	return tx.Bucket(bucket).Put(key, append(value, text...))
}

func decode(value []byte, v any) error {
	if len(value) < 4 {
		return errors.New("the record is cut short")
	}
	sum, text := binary.LittleEndian.Uint32(value), value[4:]
	if crc32.Checksum(text, castagnoli) != sum {
		return errors.New("the record is damaged: its checksum is wrong")
	}
	return json.Unmarshal(text, v)
}
