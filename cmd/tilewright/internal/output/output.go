// Package output writes the files of commands: each replaces a file of its own kind as
// a whole, and never one that the same command reads.
package output

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

// A Kind is a kind of file that commands write.
type Kind struct {
	// Name for people, with an article.
	name string
	// Beginnings of its files, in lower case; a file of zero bytes is of every
	// kind.
	begins []string
}

// The kinds of files that commands write, and the texts by which a file that is there
// already is recognised as one of them.
var (
	Page    = Kind{"an HTML page", []string{"<!doctype html"}}
	Export  = Kind{"an export of records", []string{"{\"fusion\":\""}}
	Trace   = Kind{"a trace", []string{"{\"time\":\""}}
	Queue   = Kind{"a queue of misses", []string{"{\"fusion\":\""}}
	NumPy   = Kind{"a NumPy file", []string{"\x93numpy"}}
	HLO     = Kind{"HLO text of `tilewright partition`", []string{"// tilewright"}}
	Picture = Kind{"an SVG picture", []string{"<svg", "<?xml"}}
)

// Standard is the name of the standard output where a file could stand.
const Standard = "-"

// A File is a file that a command writes as a whole. It replaces a file of
// its own kind only, and never one that the same command reads.
type File struct {
	// Name of the file; an empty one is no file.
	Name string
	// What the file is where its name is Standard.
	Stdout io.Writer
	// Why the standard output is not free for it; "" where it is.
	Taken string
	// Kind of what is written.
	Kind Kind
	// Names of files that the command reads or writes besides: its database, its inputs,
	// other outputs. A name may be a folder, of whose files none is this one, or have a
	// suffix, as FILE#2, or a prefix, as replay:FILE. What names no file is ignored.
	Others []string
	// Replace a file of another kind (-f), but none that is read.
	Replace bool
}

// Check explains why the output must not or cannot be written, before the work
// that would be lost is begun. An empty name is no file.
func (o File) Check() error {
	if o.Name == "" || o.Stdout != nil {
		return o.checkStandard()
	}
	if err := o.CheckOthers(); err != nil {
		return err
	}
	if err := o.checkKind(); err != nil {
		return err
	}
	return Writable(o.Name)
}

// checkStandard explains why the standard output is not the file.
func (o File) checkStandard() error {
	if o.Taken == "" {
		return nil
	}
	return fmt.Errorf("cannot write to the standard output: %s", o.Taken)
}

// CheckOthers compares the output with the other files of the command: by inode, or by
// name where neither is there yet. Devices and pipes may be named twice.
func (o File) CheckOthers() error {
	to, err := os.Stat(o.Name)
	if err == nil && !to.Mode().IsRegular() {
		return nil
	}
	for _, named := range o.Others {
		for _, name := range filesOf(named) {
			from, missing := os.Stat(name)
			same := missing == nil && err == nil && os.SameFile(from, to)
			if same || missing != nil && err != nil && sameName(name, o.Name) {
				return fmt.Errorf("cannot write %s: this command reads it, or writes it as something else", o.Name)
			}
		}
	}
	return nil
}

// sameName reports whether two names are the same place.
func sameName(a, b string) bool {
	x, err := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err == nil && err2 == nil && x == y
}

// maxListed bounds the files of a folder that are compared with an output.
const maxListed = 1 << 12

// filesOf are the files that a name of the command line may stand for.
func filesOf(name string) []string {
	all := []string{name}
	if at := strings.LastIndexAny(name, "#@"); at > 0 {
		all = append(all, name[:at])
	}
	if _, file, found := strings.Cut(name, ":"); found {
		all = append(all, file)
	}
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return all
	}
	entries, _ := os.ReadDir(name)
	for _, e := range entries[:min(len(entries), maxListed)] {
		all = append(all, filepath.Join(name, e.Name()))
	}
	return all
}

// checkKind looks at the first bytes of a file that would be replaced.
func (o File) checkKind() error {
	info, err := os.Stat(o.Name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || o.Replace {
		return nil
	}
	f, err := os.Open(o.Name)
	if err != nil {
		return unwritable(o.Name, err)
	}
	defer f.Close()
	head := make([]byte, 16)
	n, _ := io.ReadFull(f, head)
	for _, begins := range o.Kind.begins {
		// Folding, not ToLower, which replaces the first byte of a NumPy file.
		if k := len(begins); k <= n && strings.EqualFold(string(head[:k]), begins) {
			return nil
		}
	}
	advice := "-f replaces it"
	if o.Kind.name == Queue.name { // which is never replaced
		advice = "name another file"
	}
	return fmt.Errorf("cannot write %s: it is there and is not %s; %s", o.Name, o.Kind.name, advice)
}

// Write checks the output and replaces the file as a whole: a complete temporary
// file is renamed to it.
func (o File) Write(write func(*bufio.Writer) error) error {
	if o.Stdout != nil {
		return o.writeStandard(write)
	}
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
		return unwritable(o.Name, err)
	}
	return f.keep()
}

// writeStandard writes to the standard output.
func (o File) writeStandard(write func(*bufio.Writer) error) error {
	if err := o.Check(); err != nil {
		return err
	}
	w := bufio.NewWriter(o.Stdout)
	return errors.Join(write(w), w.Flush())
}

// Replace replaces a file of any kind as a whole.
func Replace(name string, write func(*bufio.Writer) error) error {
	return File{Name: name, Replace: true}.Write(write)
}

// Append writes a line at the end of a file, which may be missing. One write is one
// line, also where several processes append.
func (o File) Append(line []byte) error {
	if o.Stdout != nil {
		_, err := o.Stdout.Write(append(line, '\n'))
		return errors.Join(o.Check(), err)
	}
	if err := o.CheckOthers(); err != nil {
		return err
	}
	if err := o.checkKind(); err != nil {
		return err
	}
	f, err := os.OpenFile(o.Name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return unwritable(o.Name, err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// A pendingFile is an output that is being written: a temporary file beside
// it, or the output itself where that is a device or a pipe.
type pendingFile struct {
	*os.File
	output string
}

// A writer that need not be closed.
type openWriter struct{ io.Writer }

func (openWriter) Close() error { return nil }

// create checks the output and opens its temporary file.
func (o File) create() (*pendingFile, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(o.Name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(o.Name, os.O_WRONLY, 0)
		if err != nil {
			return nil, unwritable(o.Name, err)
		}
		return &pendingFile{f, o.Name}, nil
	}
	f, err := tempBeside(o.Name)
	if err != nil {
		return nil, unwritable(o.Name, err)
	}
	return &pendingFile{f, o.Name}, nil
}

// Stream checks the output and opens it under its own name, so that it can be
// read while it is written. A command that goes on after another process appends.
func (o File) Stream(goesOn bool) (io.WriteCloser, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Stdout != nil {
		return openWriter{o.Stdout}, nil
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if goesOn {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(o.Name, mode, 0o666)
	if err != nil {
		return nil, unwritable(o.Name, err)
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

// tempBeside creates a hidden file in the folder of a name, with the permissions of the
// file of that name or, without one, those that umask leaves.
func tempBeside(name string) (*os.File, error) {
	for {
		f, err := os.OpenFile(
			filepath.Join(filepath.Dir(name), fmt.Sprintf(
				".%s.%08x.new", filepath.Base(name), rand.Uint32(),
			)),
			os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666,
		)
		if err == nil {
			takeMode(f, name)
		}
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// takeMode gives a file the permissions of another, where that is there and the file
// system has permissions.
func takeMode(f *os.File, other string) {
	if info, err := os.Stat(other); err == nil {
		_ = f.Chmod(info.Mode().Perm())
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

// Writable explains why a file could not be written, before the work that would
// be lost is begun; an empty name is no file. A file that exists is opened and
// not changed, another one is tried under a temporary name in its folder.
func Writable(name string) error {
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
