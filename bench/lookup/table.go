package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// A row is one line of the table.
type row struct{ what, goal, least, median string }

// print prints the row.
func (r row) print(records int) {
	fmt.Printf("| %s | %d | %s | %s | %s |\n", r.what, records, r.least, r.median, r.goal)
}

// printTable measures everything for each number of records.
func printTable(sizes []int, library string) error {
	fmt.Printf("%s, %s\n\n", processor(), runtime.Version())
	fmt.Println("| what | records | least | median | goal |\n| --- | --- | --- | --- | --- |")
	for _, n := range sizes {
		if err := measure(n, library); err != nil {
			return err
		}
	}
	return nil
}

// processor is the name that the system gives.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			cores := fmt.Sprintf(", %d cores", runtime.NumCPU())
			return strings.TrimSpace(strings.TrimLeft(name, "\t :")) + cores
		}
	}
	return runtime.GOARCH
}

// measure prints the rows of one number of records.
func measure(n int, library string) error {
	folder, err := os.MkdirTemp("", "lookup")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	db := cache.Open(filepath.Join(folder, "records.db"))
	took, err := fill(db, n)
	if err != nil {
		return err
	}
	first := row{"import of the first records, at most 10⁵, random keys", "2 s", inSeconds(took[0]), ""}
	first.print(min(n, importedAtOnce))
	if err := published(db, n); err != nil {
		return err
	}
	path := db.Path() + ".snap"
	keys := keysOf(n)
	if err := inGo(path, keys, n); err != nil {
		return err
	}
	prints := filepath.Join(folder, "prints")
	if err := writePrints(prints, keys); err != nil {
		return err
	}
	return inOthers(path, prints, folder, library, n)
}

// inSeconds is a time.
func inSeconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

// published publishes in a process of its own, and prints its time and memory.
func published(db *cache.DB, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "-publish", db.Path())
	begin := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("publish: %w: %s", err, out)
	}
	row{"publish", "5 s", inSeconds(time.Since(begin).Seconds()), ""}.print(n)
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		row{"its memory", "500 MB", fmt.Sprintf("%d MB", usage.Maxrss>>10), ""}.print(n)
	}
	for what, path := range map[string]string{"database": db.Path(), "snapshot": db.Path() + ".snap"} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		row{"bytes of the " + what + " a record", "", fmt.Sprint(info.Size() / int64(n)), ""}.print(n)
	}
	return nil
}

const (
	batches = 300
	ofBatch = 1000
)

// timed calls a function in batches and prints the least and the median time of a call.
func timed(what, goal string, records int, calls int, f func(k int)) {
	var all []float64
	for b := range batches {
		begin := time.Now()
		for k := range calls {
			f(b*calls + k)
		}
		all = append(all, float64(time.Since(begin).Nanoseconds())/float64(calls))
	}
	slices.Sort(all)
	r := row{what, goal, inNanoseconds(all[0]), inNanoseconds(all[batches/2])}
	r.print(records)
}

// inNanoseconds is a time.
func inNanoseconds(ns float64) string {
	if ns >= 10_000 {
		return fmt.Sprintf("%.1f µs", ns/1000)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

// inGo measures package cache.
func inGo(path string, keys []cache.Key, n int) error {
	s, err := cache.OpenSnapshot(path)
	if err != nil {
		return err
	}
	defer s.Close()
	var hit cache.Hit
	var failed error
	get := func(k *cache.Key) {
		if found, err := s.Get(k, &hit); !found || err != nil {
			failed = errors.Join(err, errors.New("a record is missed"))
		}
	}
	timed("Go: one key again and again", "100 ns", n, ofBatch, func(int) { get(&keys[0]) })
	timed("Go: keys in random order", "300 ns at 10⁶", n, ofBatch, func(k int) { get(&keys[k%len(keys)]) })
	q := question(n)
	timed("Go: nearest", "2 µs", n, ofBatch/10, func(k int) {
		if found, _, err := s.Nearest(&q[k%len(q)], &hit); !found || err != nil {
			failed = errors.Join(err, errors.New("nothing is near"))
		}
	})
	timed("Go: open, first lookup, close", "not in proportion", n, 3, func(k int) {
		other, err := cache.OpenSnapshot(path)
		if err == nil {
			_, err = other.Get(&keys[k%len(keys)], &hit)
			err = errors.Join(err, other.Close())
		}
		failed = errors.Join(failed, err)
	})
	return failed
}

// question are fusions of the stored structures with other extents.
func question(n int) (all []cache.Question) {
	for k := range 64 {
		r := recordOf(n + k)
		r.Device = device
		all = append(all, cache.Question{Key: r.Key, Structure: cache.StructureOf(r.Canonical)})
	}
	return all
}

// A reader is another program that prints "hot LEAST MEDIAN" and "random LEAST MEDIAN".
type reader struct {
	name  string
	build []string // nil: nothing is built
	run   []string
}

// readers are those of the C header, the library and Python.
func readers(path, folder, library string) []reader {
	const sources = "cmd/libtilewright/"
	identity, _ := json.Marshal(map[string]string{"device": device, "backend": backend, "revision": codegen})
	header := filepath.Join(folder, "reader")
	all := []reader{{
		"C, tilewright_snapshot.h",
		[]string{"cc", "-O2", "-std=c99", "-I" + sources, "-o", header, sources + "testdata/reader.c"},
		[]string{header, path, "speed"},
	}}
	if library == "" {
		return all
	}
	host := filepath.Join(folder, "speed")
	return append(all, reader{
		"C, libtilewright",
		[]string{"cc", "-O2", "-I" + sources, "-o", host, sources + "testdata/speed.c", "-L" + library, "-Wl,-rpath," + library, "-ltilewright"},
		[]string{host, path, string(identity)},
	}, reader{
		"Python", nil, []string{"python3", sources + "testdata/speed.py", path, string(identity)},
	})
}

// inOthers measures the other readers.
func inOthers(path, prints, folder, library string, n int) error {
	if library != "" {
		absolute, err := filepath.Abs(library)
		if err != nil {
			return err
		}
		library = absolute
		os.Setenv("TILEWRIGHT_LIBRARY", filepath.Join(library, "libtilewright.so"))
		os.Setenv("PYTHONPATH", "cmd/libtilewright/python")
	}
	for _, r := range readers(path, folder, library) {
		if err := r.measure(prints, n); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", r.name, err)
		}
	}
	return nil
}

// measure builds and runs a reader and prints its rows.
func (r reader) measure(prints string, n int) error {
	if len(r.build) > 0 {
		if out, err := exec.Command(r.build[0], r.build[1:]...).CombinedOutput(); err != nil {
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
	out, err := c.Output()
	if err != nil {
		return err
	}
	what := map[string][2]string{
		"hot":    {"one key again and again", "100 ns"},
		"random": {"keys in random order", "300 ns at 10⁶"},
	}
	for line := range strings.Lines(string(out)) {
		var name string
		var least, median float64
		if _, err := fmt.Sscan(line, &name, &least, &median); err != nil {
			return err
		}
		row{r.name + ": " + what[name][0], what[name][1], inNanoseconds(least), inNanoseconds(median)}.print(n)
	}
	return nil
}
