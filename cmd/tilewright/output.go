package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A fileKind is a kind of file that commands write.
type fileKind struct {
	// Name for people, with an article.
	name string
	// Beginnings of its files, in lower case; a file of zero bytes is of every
	// kind.
	begins []string
}

var (
	pageFile    = fileKind{"an HTML page", []string{"<!doctype html"}}
	linesFile   = fileKind{"a file of JSON lines", []string{"{"}}
	npyFile     = fileKind{"a NumPy file", []string{"\x93numpy"}}
	hloFile     = fileKind{"HLO text", []string{"hlomodule"}}
	pictureFile = fileKind{"an SVG picture", []string{"<svg", "<?xml"}}
)

// An output is a file that a command writes as a whole. It replaces a file of
// its own kind only, and never one that the same command reads.
type output struct {
	name string
	kind fileKind
	// Files that the command reads: its database and its inputs.
	reads []string
	// Replace a file of another kind (-f), but none that is read.
	replace bool
}

// check explains why the output must not or cannot be written, before the work
// that would be lost is begun. An empty name is no file.
func (o output) check() error {
	if o.name == "" {
		return nil
	}
	if err := o.checkReads(); err != nil {
		return err
	}
	if err := o.checkKind(); err != nil {
		return err
	}
	return writable(o.name)
}

// checkReads compares the output with the files that are read, by inode.
func (o output) checkReads() error {
	to, err := os.Stat(o.name)
	if err != nil {
		return nil
	}
	for _, name := range o.reads {
		from, err := os.Stat(name)
		if err == nil && os.SameFile(from, to) {
			return fmt.Errorf("cannot write %s: this command reads it", o.name)
		}
	}
	return nil
}

// checkKind looks at the first bytes of a file that would be replaced.
func (o output) checkKind() error {
	info, err := os.Stat(o.name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || o.replace {
		return nil
	}
	f, err := os.Open(o.name)
	if err != nil {
		return unwritable(o.name, err)
	}
	defer f.Close()
	head := make([]byte, 16)
	n, _ := io.ReadFull(f, head)
	for _, begins := range o.kind.begins {
		if strings.HasPrefix(strings.ToLower(string(head[:n])), begins) {
			return nil
		}
	}
	return fmt.Errorf(
		"cannot write %s: it is there and is not %s; -f replaces it", o.name, o.kind.name,
	)
}

// write checks the output and replaces the file as a whole: a complete temporary
// file is renamed to it.
func (o output) write(write func(*bufio.Writer) error) error {
	f, err := o.create()
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		f.drop()
		return err
	}
	if err := w.Flush(); err != nil {
		f.drop()
		return unwritable(o.name, err)
	}
	return f.keep()
}

// writeFile replaces a file of any kind as a whole.
func writeFile(name string, write func(*bufio.Writer) error) error {
	return output{name: name, replace: true}.write(write)
}

// A pendingFile is an output that is being written: a temporary file beside
// it, or the output itself where that is a device or a pipe.
type pendingFile struct {
	*os.File
	output string
}

// create checks the output and opens its temporary file.
func (o output) create() (*pendingFile, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(o.name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(o.name, os.O_WRONLY, 0)
		if err != nil {
			return nil, unwritable(o.name, err)
		}
		return &pendingFile{f, o.name}, nil
	}
	f, err := tempBeside(o.name)
	if err != nil {
		return nil, unwritable(o.name, err)
	}
	return &pendingFile{f, o.name}, nil
}

// stream checks the output and opens it under its own name, so that it can be
// read while it is written. A command that goes on after another process appends.
func (o output) stream(goesOn bool) (*os.File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if goesOn {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(o.name, mode, 0o666)
	if err != nil {
		return nil, unwritable(o.name, err)
	}
	return f, nil
}

// keep closes the file and gives it its name.
func (f *pendingFile) keep() error {
	if err := f.Close(); err != nil {
		f.drop()
		return unwritable(f.output, err)
	}
	if f.Name() == f.output {
		return nil
	}
	if err := os.Rename(f.Name(), f.output); err != nil {
		f.drop()
		return unwritable(f.output, err)
	}
	return nil
}

// drop removes the file; what was there before stays.
func (f *pendingFile) drop() {
	f.Close()
	if f.Name() != f.output {
		os.Remove(f.Name())
	}
}

// tempBeside creates a hidden file in the folder of a name, with the permissions
// that umask leaves.
func tempBeside(name string) (*os.File, error) {
	for {
		f, err := os.OpenFile(
			filepath.Join(filepath.Dir(name), fmt.Sprintf(
				".%s.%08x.new", filepath.Base(name), rand.Uint32(),
			)),
			os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666,
		)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// unwritable explains why a file could not be written, naming the file that was
// meant.
func unwritable(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("cannot write %s: %w", name, err)
}

// writable explains why a file could not be written, before the work that would
// be lost is begun; an empty name is no file. A file that exists is opened and
// not changed, another one is tried under a temporary name in its folder.
func writable(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("cannot write %s: it is a directory", name)
	} else if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil // to open it would wait for a reader
	} else if err == nil {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return unwritable(name, err)
		}
		return f.Close()
	}
	tmp, err := tempBeside(name)
	if err != nil {
		return unwritable(name, err)
	}
	tmp.Close()
	return os.Remove(tmp.Name())
}

// firstLine is a text up to its first line break.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
