//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// consumers are the commands that read a file: FILE is it.
var consumers = []string{
	"show FILE",
	"rank FILE",
	"tune -db NEW -budget 200ms -try 2 FILE",
	"lookup -db DB FILE",
	"run FILE",
	"lookup -db FILE FUSION",
	"rank -db FILE FUSION",
	"tune -db FILE -budget 200ms -try 2 FUSION",
	"report -db FILE -o TMP/garbage.html",
	"cache ls -db FILE",
	"cache verify -db FILE",
	"cache import -db DB FILE",
	"cache merge -db DB FILE",
	"cache publish -db FILE TMP/garbage.snapshot",
	"cache publish -db DB FILE",
	"cache rm -db FILE fusion.1",
}

// garbage makes files of every kind and returns their names: none of them is a
// module or a database, but that of another kind of ours is among them, and a
// program, devices that never end, a pipe that nobody writes to, a folder, a file
// that is not there, and one of 2 GB that takes no space on the disk.
func (s *session) garbage() (files []string, err error) {
	dir := filepath.Join(s.dir, "garbage")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	random := make([]byte, 1<<16)
	rng := rand.New(
		rand.NewPCG(s.seed, 3),
	)
	for k := range random {
		random[k] = byte(rng.Uint32())
	}
	for name, data := range map[string][]byte{
		"empty":    nil,
		"zeros":    make([]byte, 1<<20),
		"random":   random,
		"brackets": bytes.Repeat([]byte("("), 1<<20),
		"braces":   bytes.Repeat([]byte("{\"a\":["), 1<<18),
		"line":     bytes.Repeat([]byte("x"), 32<<20),
		"text":     []byte(strings.Repeat("nothing of interest\n", 100)),
		"escapes":  []byte("HloModule \x1b]0;x\x07 \xff\xfe\n"),
		"short":    []byte("TWSNAP02"),
		"module":   []byte("HloModule m\n\nENTRY e {\n"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	sparse := filepath.Join(dir, "sparse")
	if err := os.WriteFile(sparse, []byte("HloModule m\n"), 0o644); err != nil {
		return nil, err
	}
	if err := os.Truncate(sparse, 2<<30); err != nil {
		return nil, err
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		return nil, err
	}
	d, err := s.newStore("garbage/other.db")
	files = append(
		files,
		sparse,
		fifo,
		dir,
		d.path+".snapshot",
		"/dev/zero",
		"/dev/null",
		filepath.Join(dir, "none"),
		s.program, // a program is no text either
	)
	return files, err
}

// feedGarbage gives every file to every command, in the place of the module and in
// that of the database. A command that can do nothing with it says so; some are
// content, since an empty import has no record, for example.
func feedGarbage(s *session) (r result, err error) {
	files, err := s.garbage()
	if err != nil {
		return r, err
	}
	d, err := s.newStore("fed.db")
	if err != nil {
		return r, err
	}
	refused := 0
	for k, file := range files {
		for n, c := range consumers {
			if s.quick && (k+n)%3 > 0 {
				continue
			}
			if keep := "publish -db DB"; strings.Contains(c, keep) && file == s.program {
				continue // it is refused, and if it were not there would be nothing left to attack
			}
			if strings.HasSuffix(file, "fifo") && !strings.Contains(c, "-db FILE") {
				continue // what reads a pipe waits for its writer, as in show <(program)
			}
			r.tried++
			args := strings.NewReplacer(
				"DB", d.path,
				"NEW", filepath.Join(s.dir, "fednew.db"),
				"FILE", file,
				"FUSION", smallFusion,
				"TMP", s.dir,
			).Replace(c)
			o := s.tilewright(strings.Fields(args)...)
			if o.code != 0 {
				refused++
			}
			if harm := o.harm(); harm != "" {
				r.harm("%s of %s: %s", c, filepath.Base(file), harm)
			}
		}
		if harm := d.harm(); harm != "" {
			return r, fmt.Errorf("after %s: %s", file, harm)
		}
	}
	r.note = fmt.Sprintf("%d refused, none crashed; no record was lost", refused)
	return r, nil
}
