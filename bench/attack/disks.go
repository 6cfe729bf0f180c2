//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tilewright/tilewright/cache"
)

// A write is a command that cannot write all that it has to: it must say so and
// leave the database as it is. DB stands for a database with records, NEW for one
// that is not there, FUSION and OTHER for files, TMP for a folder.
type write struct {
	// The shell's part: a limit, or a full output.
	script string
	// The arguments of the program, by blanks.
	args string
}

// The scripts of the cases. "$@" is the program with its arguments.
const (
	// Writing to the standard output fails as on a full disk.
	toFull = `exec "$@" >/dev/full`
	// Files cannot become larger than eight blocks of 512 or 1,024 bytes, so that
	// writes fail in the middle.
	limited = `ulimit -f 8; exec "$@"`
	// The arguments themselves name what cannot be written.
	plainly = `exec "$@"`
)

// writes are the cases of a disk that is full, a limit of the size of files, and
// places where there are no files.
var writes = []write{
	{toFull, "show FUSION"},
	{toFull, "rank FUSION"},
	{toFull, "rank -json FUSION"},
	{toFull, "cache ls -db DB"},
	{toFull, "cache show -db DB fusion.1"},
	{toFull, "cache verify -db DB"},
	{toFull, "cache export -db DB"},
	{toFull, "report -db DB -o /dev/stdout -f"},
	{toFull, "tune -db NEW -budget 200ms -try 2 FUSION"},
	{toFull, "tune -db NEW -budget 200ms -try 2 -json FUSION"},
	{plainly, "cache export -db DB /dev/full"},
	{plainly, "cache publish -db DB /dev/full"},
	{plainly, "tune -db NEW -budget 200ms -try 2 -trace /dev/full FUSION"},
	{plainly, "tune -db /dev/full -budget 200ms FUSION"},
	{plainly, "tune -db /proc/t.db -budget 200ms FUSION"},
	{plainly, "tune -db /no/such/folder/t.db -budget 200ms FUSION"},
	{plainly, "cache publish -db DB /proc/s"},
	{plainly, "cache export -db DB /proc/e"},
	{plainly, "report -db DB -o /proc/r.html"},
	{plainly, "cache import -db /proc/t.db TMP/export"},
	{limited, "cache import -db DB TMP/export"},
	{limited, "cache import -db NEW TMP/export"},
	{limited, "cache merge -db DB TMP/large.db"},
	{limited, "cache publish -db TMP/large.db TMP/limited.snapshot"},
	{limited, "cache export -db TMP/large.db TMP/limited.jsonl"},
	{limited, "report -db TMP/large.db -o TMP/limited.html"},
	{limited, "tune -db DB -budget 500ms -try 8 FUSION"},
	{limited, "tune -db NEW -budget 500ms -try 8 FUSION"},
}

// largeRecords is the number of records of a database that is over the limit, and
// whose export, snapshot and report are, too.
const largeRecords = 200

// fillDisks runs the cases, each with a database of its own, which must have all its
// records afterwards. The limit of the size of files ends a write in the middle, as a
// disk that becomes full does; the devices and folders of the system cannot be
// written to by anybody.
func fillDisks(s *session) (r result, err error) {
	large := filepath.Join(s.dir, "large.db")
	db := cache.Open(large)
	for n := range largeRecords {
		if _, err := db.Put(record(storedRecords+n, 1)); err != nil {
			return r, err
		}
	}
	if o := s.tilewright("cache", "export", "-db", large, filepath.Join(s.dir, "export")); o.code != 0 {
		return r, fmt.Errorf("export: %s", o.err)
	}
	for n, w := range writes {
		d, err := s.newStore(fmt.Sprintf("disk%d.db", n))
		if err != nil {
			return r, err
		}
		args := strings.NewReplacer(
			"DB", d.path, "NEW", filepath.Join(s.dir, fmt.Sprintf("new%d.db", n)),
			"FUSION", smallFusion, "TMP", s.dir,
		).Replace(w.args)
		o := s.shell(w.script, strings.Fields(args)...)
		r.tried++
		harm := o.harm()
		if harm == "" && o.code != 1 {
			harm = fmt.Sprintf("status %d: %s", o.code, o.err)
		}
		if harm == "" {
			harm = d.harm()
		}
		if harm != "" {
			r.harm("%s, %s: %s", w.args, w.script, harm)
		}
	}
	r.note = "each said so with status 1; no record was lost"
	return r, nil
}
