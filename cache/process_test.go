package cache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// The test binary is also the processes that share a file: CACHE_TEST_ROLE
// says what one does and CACHE_TEST_PATH to which file.
func TestMain(m *testing.M) {
	switch db := Open(os.Getenv("CACHE_TEST_PATH")); os.Getenv("CACHE_TEST_ROLE") {
	case "write":
		os.Exit(writeForEver(db))
	case "read":
		os.Exit(readForEver(db))
	}
	os.Exit(m.Run())
}

// writeForEver stores records of its own and trials in a race of everybody's,
// and says each time what it has stored.
func writeForEver(db *DB) int {
	first, _ := strconv.Atoi(os.Getenv("CACHE_TEST_FIRST"))
	shared := record(0).Key
	var race Trial
	for n := first; ; n++ {
		race = Trial{
			Plan:    fmt.Sprint(first),
			Samples: append(race.Samples, float64(n)),
			Blocks:  append(race.Blocks, n-first),
		}
		if err := db.PutTrials(shared, []Trial{race}); err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("trial", n)
		if _, err := db.Put(record(n)); err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("stored", n)
	}
}

// readForEver reads everything there is; no reader ever sees half of anything.
func readForEver(db *DB) int {
	for n := 0; ; n++ {
		all, err := db.contents()
		for _, r := range all.records {
			if err == nil {
				_, _, err = db.Get(r.Key)
			}
		}
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("read", n)
	}
}

// A child is one of the processes.
type child struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	said []string
	done chan struct{}
}

func start(t *testing.T, role, path string, first int) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	c.cmd.Env = append(
		os.Environ(), "CACHE_TEST_ROLE="+role, "CACHE_TEST_PATH="+path, "CACHE_TEST_FIRST="+strconv.Itoa(first),
	)
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		for in := bufio.NewScanner(out); in.Scan(); {
			c.mu.Lock()
			c.said = append(c.said, in.Text())
			c.mu.Unlock()
		}
	}()
	return c
}

// lines of what it said so far that begin with word.
func (c *child) count(word string) (n int, last string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.said {
		if strings.HasPrefix(s, word) {
			n, last = n+1, s
		}
	}
	return n, last
}

// kill ends it as a power cut would, and reads what it had said.
func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.done
	c.cmd.Wait() // it was killed
}

// TestProcesses: two tuners that are killed again and again, and three readers,
// share a file. Nothing is lost that a Put or PutTrials had reported as stored,
// and no reader ever sees an error.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	readers := []*child{
		start(t, "read", path, 0),
		start(t, "read", path, 0),
		start(t, "read", path, 0),
	}
	rng := rand.New(rand.NewPCG(5, 6))
	const span = 10_000 // record numbers of one writer
	stored, trials := map[int]bool{}, map[int]bool{}
	first := 1
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		pair := []*child{
			start(t, "write", path, first*span),
			start(t, "write", path, (first+1)*span),
		}
		first += 2
		for k := range pair {
			time.Sleep(time.Duration(100+rng.IntN(300)) * time.Millisecond)
			pair[k].kill()
		}
		for _, w := range pair {
			collect(t, w, "stored", stored)
			collect(t, w, "trial", trials)
		}
	}
	for _, r := range readers {
		r.kill()
		if n, last := r.count("error"); n > 0 {
			t.Errorf("a reader: %s", last)
		}
		if n, _ := r.count("read"); n == 0 {
			t.Error("a reader never got to read")
		}
	}
	t.Logf("%d writers were killed after storing %d records and %d trials", first-1, len(stored), len(trials))
	check(t, Open(path), stored, trials)
}

func collect(t *testing.T, c *child, word string, into map[int]bool) {
	t.Helper()
	for _, line := range c.said {
		if after, ok := strings.CutPrefix(line, "error "); ok {
			t.Errorf("a writer: %s", after)
		}
		if after, ok := strings.CutPrefix(line, word+" "); ok {
			n, _ := strconv.Atoi(after)
			into[n] = true
		}
	}
}

func check(t *testing.T, db *DB, stored, trials map[int]bool) {
	t.Helper()
	if len(stored) == 0 {
		t.Error("no writer stored anything")
	}
	if n, err := db.Verify(); err != nil || n < len(stored) {
		t.Errorf("Verify: %d records, %v", n, err)
	}
	for n := range stored {
		r, found, err := db.Get(record(n).Key)
		if !found || err != nil || r.Plan != record(n).Plan {
			t.Errorf("record %d is lost: %t, %v", n, found, err)
		}
	}
	ts, err := db.Trials(record(0).Key)
	if err != nil {
		t.Error(err)
	}
	for _, x := range ts {
		for _, s := range x.Samples {
			delete(trials, int(s))
		}
	}
	if len(trials) > 0 {
		t.Errorf("%d trials are lost", len(trials))
	}
}

// TestHeldFile: a file another process holds is an error, not a hang.
func TestHeldFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the time limit")
	}
	db := filled(t, 1)
	release := hold(t, db.path)
	defer release()
	begin := time.Now()
	_, _, err := db.Get(record(0).Key)
	if err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("Get: %v", err)
	}
	if d := time.Since(begin); d > readTimeout+time.Second {
		t.Errorf("it took %v", d)
	}
}

// hold keeps a file as bbolt does while it is open.
func hold(t *testing.T, path string) (release func()) {
	b, err := bbolt.Open(path, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestJournal: while the file is held trials are kept beside it; they are read, and
// the next write of anybody takes them over.
func TestJournal(t *testing.T) {
	db := Open(filepath.Join(t.TempDir(), "[a]*?", "t.db"))
	if err := os.Mkdir(filepath.Dir(db.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(record(1)); err != nil {
		t.Fatal(err)
	}
	k := record(7).Key
	release := hold(t, db.path)
	begin := time.Now()
	for n := range 3 {
		if err := db.KeepTrials(k, record(7).Trials[:n+1]); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	if all := Open(db.path).journals(); len(all) != 1 || len(all[0].Trials) != 3 {
		t.Errorf("%d journals", len(all))
	}
	if len(Open(db.path[:len(db.path)-3]).journals()) != 0 {
		t.Error("t takes the journal of t.db for its own")
	}
	release()
	damagedJournal := db.journalName("0123456789abcdef", "01234567")
	if err := os.WriteFile(damagedJournal, []byte("0000{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Verify(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), damagedJournal) {
		t.Errorf("Verify: %v", err)
	}
	if ts, err := Open(db.path).Trials(k); len(ts) != 3 || err != nil {
		t.Errorf("%d trials are read, %v", len(ts), err)
	}
	if _, err := Open(db.path).Put(record(1)); err != nil {
		t.Fatal(err)
	}
	if left := db.journals(); len(left) != 0 {
		t.Errorf("%d journals are left", len(left))
	}
	if ts, err := db.Trials(k); len(ts) != 3 || err != nil {
		t.Errorf("%d trials are stored, %v", len(ts), err)
	}
}

// TestSweep: what killed processes have left is removed by the next write, or by one
// who only reads and asks for it, and what a process may be writing is not.
func TestSweep(t *testing.T) {
	write := func(db *DB) error {
		_, err := db.Put(record(2))
		return err
	}
	ask := func(db *DB) error {
		db.Sweep()
		return nil
	}
	for _, sweep := range []func(*DB) error{write, ask} {
		leaveOver(t, sweep)
	}
}

// leaveOver puts temporary files beside a database and looks for them after a sweep.
func leaveOver(t *testing.T, sweep func(*DB) error) {
	db := filled(t, 1)
	dir := filepath.Dir(db.path)
	for name, age := range map[string]time.Duration{
		".t.db.01234567.new":              2 * leftOverAge,
		"..t.db.0.1.journal.01234567.new": 2 * leftOverAge,
		".t.db.89abcdef.new":              0,
	} {
		path := filepath.Join(dir, name)
		when := time.Now().Add(-age)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweep(db); err != nil {
		t.Fatal(err)
	}
	if left := beside(db.path, ".", ".new"); len(left) != 1 || len(beside(db.path, "..", ".new")) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestReadersLetWritersIn: 64 readers that never pause do not keep a writer out. A
// writer that starves runs into its own time limit.
func TestReadersLetWritersIn(t *testing.T) {
	db := filled(t, 10)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var reads atomic.Int64
	for range 64 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, found, err := db.Get(record(1).Key); !found || err != nil {
					t.Errorf("a reader: %t, %v", found, err)
				}
				reads.Add(1)
			}
		})
	}
	const puts = 10
	begin := time.Now()
	for n := range puts {
		if err := db.PutTrials(record(7).Key, record(n).Trials); err != nil {
			t.Errorf("the writer: %v", err)
		}
	}
	took := time.Since(begin).Seconds()
	t.Logf("beside %.0f reads a second, %.1f puts", float64(reads.Load())/took, puts/took)
	stop()
	all.Wait()
}
