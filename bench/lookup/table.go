package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// A row is one line of the table. Median is empty for what is measured once.
type row struct{ what, goal, least, median string }

// print prints the row.
// records is their number, or what else was asked for.
func (r row) print(records any) {
	fmt.Printf("| %s | %v | %s | %s | %s |\n", r.what, records, r.least, r.median, r.goal)
}

// printTable measures everything for each number of records.
func printTable(sizes []int, library string) error {
	fmt.Printf("%s, %s\n\n", processor(), runtime.Version())
	fmt.Println("| what | records | least | median | goal |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	err := ofCorpus()
	if err != nil {
		return err
	}
	for _, n := range sizes {
		err := measure(n, library)
		if err != nil {
			return err
		}
	}
	return nil
}

// processor is the name that the system gives, with the cores that this program has.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // where there is none, the architecture
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, "model name")
		if ok {
			name = strings.Trim(name, "\t :\n")
			return fmt.Sprintf("%s, %d cores", name, runtime.NumCPU())
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
	imported := row{what: "import, random keys", goal: "2 s at 10⁵", least: inSeconds(took[0])}
	imported.print(min(n, importedAtOnce))
	if n <= importedAtOnce {
		err = merged(db, n)
		if err != nil {
			return err
		}
	}
	err = published(db, n)
	if err != nil {
		return err
	}
	path := db.Path() + ".snap"
	keys := keysOf(n)
	err = inGo(path, keys, n)
	if err != nil {
		return err
	}
	prints := filepath.Join(folder, "prints")
	err = writePrints(prints, keys)
	if err != nil {
		return err
	}
	inOthers(path, prints, folder, library, n)
	err = served(path, "a snapshot", keys, n)
	if err != nil {
		return err
	}
	return served(db.Path(), "a database", keys, n)
}

// merged merges a database into an empty one, beside it, and prints the time: that of
// reading all of its records, comparing their checksums and storing them in one
// transaction. The goal is that of an import, of which it does all but the reading of text.
func merged(db *cache.DB, n int) error {
	into := cache.Open(db.Path() + ".merged")
	defer os.Remove(into.Path())
	begin := time.Now()
	_, _, err := into.Merge(db)
	took := time.Since(begin).Seconds()
	row{what: "merge into an empty database", goal: "2 s at 10⁵", least: inSeconds(took)}.print(n)
	return err
}

// inSeconds is a time.
func inSeconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

// published publishes in a process of its own, and prints its time, its memory and the
// sizes of the files.
func published(db *cache.DB, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "-publish", db.Path())
	begin := time.Now()
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("publish: %w: %s", err, out)
	}
	took := time.Since(begin).Seconds()
	row{what: "publish", goal: "5 s at 10⁶", least: inSeconds(took)}.print(n)
	most := strings.TrimSpace(string(out)) + " MB"
	row{what: "memory of publish", goal: "500 MB at 10⁶", least: most}.print(n)
	for _, path := range []string{db.Path(), db.Path() + ".snap"} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		each := fmt.Sprint(info.Size() / int64(n))
		row{what: "bytes a record of " + filepath.Base(path), least: each}.print(n)
	}
	return nil
}

// A time is the least and the median of so many batches.
const (
	batches = 300
	ofBatch = 1000
)

// timed calls a function in batches and prints the least and the median time of a call.
func timed(r row, records int, calls int, f func(k int)) {
	var all []float64
	for b := range batches {
		begin := time.Now()
		for k := range calls {
			f(b*calls + k)
		}
		took := time.Since(begin)
		all = append(all, float64(took.Nanoseconds())/float64(calls))
	}
	slices.Sort(all)
	r.least = inNanoseconds(all[0])
	r.median = inNanoseconds(all[batches/2])
	r.print(records)
}

// inNanoseconds is a time.
func inNanoseconds(ns float64) string {
	if ns >= 10_000 {
		return fmt.Sprintf("%.1f µs", ns/1000)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

// errMissed ends a measurement of something else than meant.
var errMissed = errors.New("a record is missed")

// inGo measures package cache.
func inGo(path string, keys []cache.Key, n int) error {
	s, err := cache.OpenSnapshot(path)
	if err != nil {
		return err
	}
	defer s.Close()
	g := &gets{path: path, keys: keys, snapshot: s, questions: questions(n)}
	timed(row{what: "Go: one key again and again", goal: "100 ns"}, n, ofBatch, g.hot)
	timed(row{what: "Go: keys in random order", goal: "300 ns at 10⁶"}, n, ofBatch, g.random)
	timed(row{what: "Go: nearest", goal: "2 µs"}, n, ofBatch/10, g.nearest)
	timed(row{what: "Go: open, first lookup, close", goal: "not in proportion"}, n, 3, g.open)
	return g.err
}

// gets are the lookups that are timed; err is that of one that found nothing.
type gets struct {
	path      string
	keys      []cache.Key
	snapshot  *cache.Snapshot
	questions []cache.Question
	hit       cache.Hit
	err       error
}

// check keeps the error of a lookup.
func (g *gets) check(found bool, err error) {
	if !found || err != nil {
		g.err = errors.Join(err, errMissed)
	}
}

// hot asks for one key.
func (g *gets) hot(int) {
	g.check(g.snapshot.Get(&g.keys[0], &g.hit))
}

// random asks for one key after the other; they have been shuffled.
func (g *gets) random(k int) {
	g.check(g.snapshot.Get(&g.keys[k%len(g.keys)], &g.hit))
}

// nearest asks for a fusion that is not there.
func (g *gets) nearest(k int) {
	q := &g.questions[k%len(g.questions)]
	found, _, err := g.snapshot.Nearest(q, &g.hit)
	g.check(found, err)
}

// open is what a process does that asks once.
func (g *gets) open(k int) {
	s, err := cache.OpenSnapshot(g.path)
	if err != nil {
		g.err = err
		return
	}
	g.check(s.Get(&g.keys[k%len(g.keys)], &g.hit))
	g.check(true, s.Close())
}

// questions are fusions of the stored structures with other extents.
func questions(n int) (all []cache.Question) {
	for k := range 64 {
		r := recordOf(n + k)
		r.Device = device
		q := cache.Question{Key: r.Key}
		q.Structure = cache.StructureOf(r.Canonical)
		all = append(all, q)
	}
	return all
}
