package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// A journal holds the trials of an unfinished race beside the database, while
// another process holds that or it cannot be written:
//
//	.NAME.HASH.SESSION.journal   CRC-32C of the rest u32, JSON of a journal
//
// It is synchronised, then renamed, so that it is always whole. The next write
// transaction of any process takes it over: under the lock of the database it is
// given a name that its writer does not know, read and, after the commit, removed.
// What its writer adds meanwhile is in a new file.
type journal struct {
	Key    Key     `json:"key"`
	Trials []Trial `json:"trials"`
	path   string
}

// KeepTrials is PutTrials in the middle of a race. It hardly waits for another
// process: where the database cannot be written at once, the trials go to a journal
// beside it, which Trials reads and the next write takes over. When it returns nil,
// the trials have been synchronised (fsync), in one or the other.
func (db *DB) KeepTrials(k Key, ts []Trial) error {
	err := errors.Join(k.plausible(), plausible(ts))
	if err != nil {
		return err
	}
	err = db.updateWith(bbolt.Options{Timeout: trialsTimeout}, func(tx *bbolt.Tx) error {
		return putTrials(tx, k.bytes(), ts)
	})
	if err == nil {
		return nil
	}
	if failed := db.writeJournal(journal{Key: k, Trials: ts}); failed != nil {
		return errors.Join(err, fmt.Errorf("nor in a journal: %w", failed))
	}
	return nil
}

// journalName is the path of a journal.
func (db *DB) journalName(hash, session string) string {
	name := fmt.Sprintf(".%s.%s.%s.journal", filepath.Base(db.path), hash, session)
	return filepath.Join(filepath.Dir(db.path), name)
}

// writeJournal replaces this DB's journal of a key.
func (db *DB) writeJournal(j journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	path := db.journalName(
		fmt.Sprintf("%016x", j.Key.hash(0)), fmt.Sprintf("%08x", db.session),
	)
	tmp, err := tempBeside(path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	sum := crc32.Checksum(text, castagnoli())
	_, err = tmp.Write(append(
		binary.LittleEndian.AppendUint32(nil, sum), text...,
	))
	if err := finish(tmp, err); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	syncFolder(path)
	return nil
}

// journals reads the journals beside the file. One that is damaged, or being taken
// over, is left out.
func (db *DB) journals() (all []journal) {
	for _, path := range db.journalFiles() {
		if j, err := readJournal(path); err == nil {
			all = append(all, j)
		}
	}
	return all
}

// damagedJournals are errors of journals that are not as they were written.
func (db *DB) damagedJournals() (errs []error) {
	for _, path := range db.journalFiles() {
		_, err := readJournal(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, kindf(ErrDamaged, "the journal %s is damaged: %w; remove it", path, err))
		}
	}
	return errs
}

// journalFiles are the files of the journals.
func (db *DB) journalFiles() (all []string) {
	length := len(db.journalName(fmt.Sprintf("%016x", 0), fmt.Sprintf("%08x", 0)))
	for _, path := range beside(db.path, ".", ".journal") {
		if len(path) != length {
			continue // of a database whose name begins like this one's
		}
		all = append(all, path)
	}
	return all
}

// beside lists the hidden files in the folder of path that are named after it:
// begin, the name, a dot, anything, end.
func beside(path, begin, end string) (paths []string) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	begin += filepath.Base(path) + "."
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, begin) && strings.HasSuffix(name, end) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// leftOverAge is the age from which a temporary file has no writer: they live for
// milliseconds.
const leftOverAge = time.Minute

// Sweep removes the temporary files beside the database that killed processes have
// left; a write does so, too. Those that a writer may still have stay.
func (db *DB) Sweep() { sweep(db.path) }

// sweep removes the temporary files of path and of its journals that killed
// processes have left.
func sweep(path string) {
	for _, tmp := range append(beside(path, ".", ".new"), beside(path, "..", ".new")...) {
		info, err := os.Stat(tmp)
		if err == nil && time.Since(info.ModTime()) > leftOverAge {
			os.Remove(tmp)
		}
	}
}

// readJournal reads and checks one journal.
func readJournal(path string) (j journal, err error) {
	value, err := os.ReadFile(path)
	if err == nil {
		err = readJSON(value, &j)
	}
	if err == nil {
		err = errors.Join(j.Key.plausible(), plausible(j.Trials))
	}
	j.path = path
	return j, err
}

// takeJournals unites the journals with the trials of the database and returns
// their files, to be removed after the commit.
func (db *DB) takeJournals(tx *bbolt.Tx) (taken []string, err error) {
	for _, j := range db.journals() {
		path := db.journalName(
			fmt.Sprintf("%016x", j.Key.hash(0)), fmt.Sprintf("%08x", rand.Uint32()),
		)
		if os.Rename(j.path, path) != nil {
			continue
		}
		if j, err = readJournal(path); err != nil {
			continue // its writer has replaced it by a damaged one
		}
		if err := putTrials(tx, j.Key.bytes(), j.Trials); err != nil {
			return nil, err
		}
		taken = append(taken, path)
	}
	return taken, nil
}

// removeAll removes files; one that stays is taken over once more.
func removeAll(paths []string) {
	for _, path := range paths {
		os.Remove(path)
	}
}
