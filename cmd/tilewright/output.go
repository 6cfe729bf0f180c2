package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeFile replaces a file as a whole: a complete temporary file is renamed to
// it.
func writeFile(name string, write func(*bufio.Writer) error) error {
	tmp, err := os.CreateTemp(
		filepath.Dir(name), "."+filepath.Base(name)+".*",
	)
	if err != nil {
		return unwritable(name, err)
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	w := bufio.NewWriter(tmp)
	if err := write(w); err != nil {
		tmp.Close()
		return err
	}
	for _, step := range []func() error{
		w.Flush,
		func() error { return tmp.Chmod(0o644) },
		tmp.Close,
		func() error { return os.Rename(tmp.Name(), name) },
	} {
		if err := step(); err != nil {
			return unwritable(name, err)
		}
	}
	return nil
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
	} else if err == nil {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return unwritable(name, err)
		}
		return f.Close()
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".tilewright.*")
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
