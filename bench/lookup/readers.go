package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A reader is another program that looks the fingerprints on its standard input up and
// prints "hot LEAST MEDIAN" and "random LEAST MEDIAN", in nanoseconds a lookup.
type reader struct {
	name  string
	build []string // nil: nothing is built
	run   []string
}

// sources are those of the readers, from the root of the repository.
const sources = "cmd/libtilewright/"

// headerReader uses tilewright_snapshot.h.
func headerReader(path, folder string) reader {
	program := filepath.Join(folder, "reader")
	return reader{
		name: "C, tilewright_snapshot.h",
		build: []string{
			"cc", "-O2", "-std=gnu99", "-I" + sources,
			"-o", program, sources + "testdata/reader.c",
		},
		run: []string{program, path, "speed"},
	}
}

// libraryReaders use the library in a folder, from C and Python.
func libraryReaders(path, folder, library string) []reader {
	program := filepath.Join(folder, "speed")
	identity, _ := json.Marshal(map[string]string{ // texts always marshal
		"device": device, "backend": backend, "revision": codegen,
	})
	host := reader{
		name: "C, libtilewright",
		build: []string{
			"cc", "-O2", "-I" + sources, "-o", program, sources + "testdata/speed.c",
			"-L" + library, "-Wl,-rpath," + library, "-ltilewright",
		},
		run: []string{program, path, string(identity)},
	}
	python := reader{
		name: "Python",
		run:  []string{"python3", sources + "testdata/speed.py", path, string(identity)},
	}
	return []reader{host, python}
}

// inOthers measures the other readers. One that cannot be built or run is left out,
// which is said on the standard error.
func inOthers(path, prints, folder, library string, n int) {
	all := []reader{headerReader(path, folder)}
	if library != "" {
		library, _ = filepath.Abs(library) // fails without a working folder only
		os.Setenv("TILEWRIGHT_LIBRARY", filepath.Join(library, "libtilewright.so"))
		os.Setenv("PYTHONPATH", sources+"python")
		all = append(all, libraryReaders(path, folder, library)...)
	}
	for _, r := range all {
		err := r.measure(prints, n)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", r.name, err)
		}
	}
}

// measure builds and runs a reader and prints its rows.
func (r reader) measure(prints string, n int) error {
	if len(r.build) > 0 {
		out, err := exec.Command(r.build[0], r.build[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	in, err := os.Open(prints)
	if err != nil {
		return err
	}
	defer in.Close()
	c := exec.Command(r.run[0], r.run[1:]...)
	c.Stdin = in
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		err := r.printRow(line, n)
		if err != nil {
			return err
		}
	}
	return nil
}

// printRow prints what one line of a reader says.
func (r reader) printRow(line string, n int) error {
	var order string
	var least, median float64
	_, err := fmt.Sscan(line, &order, &least, &median)
	if err != nil {
		return err
	}
	what := row{what: r.name + ": one key again and again", goal: "100 ns"}
	if order == "random" {
		what = row{what: r.name + ": keys in random order", goal: "300 ns at 10⁶"}
	}
	what.least = inNanoseconds(least)
	what.median = inNanoseconds(median)
	what.print(n)
	return nil
}
