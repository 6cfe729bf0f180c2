//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner"
)

// killedFiles are tuned by the command that is killed.
var killedFiles = []string{smallFusion, otherFusion, "testdata/hlo/transpose_bitcast.hlo"}

// killsOfOne is the number of kills that one database survives at most.
const killsOfOne = 10

// killCounts add up over databases.
type killCounts struct {
	mu sync.Mutex
	r  result
	// Kills to go.
	left int
	// Lines of traces that were compared with the database.
	reports int
	// Kills after the first such line: in the middle of a race.
	inRace int
	// Databases whose last run was not killed.
	finished int
}

// take takes one kill from what is left.
func (c *killCounts) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	return c.left >= 0
}

// kill kills tuners of several databases at the same time.
func kill(s *session) (result, error) {
	keys, err := killedKeys()
	if err != nil {
		return result{}, err
	}
	c := &killCounts{left: s.kills}
	var all sync.WaitGroup
	for w := range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(s.seed, uint64(100+w)))
			for n := 0; c.more(); n++ {
				name := fmt.Sprintf("kill%d.%d", w, n)
				v := &victim{
					session: s,
					keys:    keys,
					rng:     rng,
					dir:     filepath.Join(s.dir, name),
				}
				v.suffer(c)
			}
		})
	}
	all.Wait()
	c.r.note = fmt.Sprintf("%d in a race; %d reports checked, none lost; %d databases finished after them with nothing left over",
		c.inRace, c.reports, c.finished)
	return c.r, nil
}

// more reports whether there are kills to go.
func (c *killCounts) more() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left > 0
}

// killedKeys are the keys of the fusions of the files, by the name of the fusion.
func killedKeys() (map[string]cache.Key, error) {
	keys := map[string]cache.Key{}
	id := kernels.IdentityOf(cpu.New())
	for _, file := range killedFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := hlo.Parse(file, text)
		if err != nil {
			return nil, err
		}
		split, err := partition.Module(
			context.Background(),
			m, partition.Options{},
		)
		if err != nil {
			return nil, err
		}
		for _, f := range split.Module.Fusions() {
			keys[f.Name] = tuner.Key(f, id)
		}
	}
	return keys, nil
}

// A victim is a database whose tuners are killed.
type victim struct {
	*session
	// Keys of the fusions by name, as package tuner makes them.
	keys map[string]cache.Key
	// Draws the moments of the kills.
	rng *rand.Rand
	// Holds the database and the trace, and nothing else.
	dir string
}

// db is the database, and trace the file that says what has been stored.
func (v *victim) db() string    { return filepath.Join(v.dir, "t.db") }
func (v *victim) trace() string { return filepath.Join(v.dir, "trace.jsonl") }

// arguments are those of tune.
func (v *victim) arguments() []string {
	args := []string{
		"tune",
		"-db", v.db(),
		"-budget", "600ms",
		"-try", "6",
		"-trace", v.trace(),
	}
	return append(args, killedFiles...)
}

// The longest time that a tuner is given from its start and, for three in four, from
// the first line of its trace: on a loaded machine it takes seconds to get there.
// The latter is about what the races take.
const (
	maxLife     = 2 * time.Second
	maxRaceLife = 3 * time.Second
	tracePoll   = 2 * time.Millisecond
)

// suffer kills tuners of one database and then lets one finish.
func (v *victim) suffer(c *killCounts) {
	if err := os.Mkdir(v.dir, 0o755); err != nil {
		c.harm(err.Error())
		return
	}
	defer os.RemoveAll(v.dir)
	for n := 0; n < killsOfOne; n++ {
		before := v.samples()
		killed, err := v.start(v.rng.IntN(4) > 0, v.rng.Float64())
		if err != nil {
			c.harm(err.Error())
		}
		if !killed {
			break
		}
		if !c.take() {
			break
		}
		reports, harm := v.check(before)
		c.note(reports, harm)
	}
	c.finish(v.finish())
}

// note counts a kill.
func (c *killCounts) note(reports int, harm string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.tried++
	c.reports += reports
	if reports > 0 {
		c.inRace++
	}
	if harm != "" {
		c.r.harm("kill %d: %s", c.r.tried, harm)
	}
}

// finish counts a database that was finished.
func (c *killCounts) finish(harm string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished++
	if harm != "" {
		c.r.harm("the run after the kills: %s", harm)
	}
}

// harm counts what went wrong beside the kills.
func (c *killCounts) harm(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.harm("%s", text)
}

// start runs a tuner and kills it after a share of the longest time, if it is still
// there: from its start or, in a race, from the first line of the trace.
func (v *victim) start(inRace bool, share float64) (killed bool, err error) {
	if err := os.RemoveAll(v.trace()); err != nil {
		return false, err
	}
	cmd := exec.Command(v.program, v.arguments()...)
	var complaint strings.Builder
	cmd.Stderr = &limitedWriter{&complaint, maxMessage}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	over := make(chan struct{})
	go func() {
		life := maxLife
		if inRace && v.traced(over) {
			life = maxRaceLife
		}
		select {
		case <-over:
		case <-time.After(time.Duration(share * float64(life))):
			cmd.Process.Kill()
		}
	}()
	err = cmd.Wait()
	close(over)
	switch {
	case err == nil:
		return false, nil
	case cmd.ProcessState.ExitCode() >= 0:
		return false, fmt.Errorf("tune: %w: %s", err, complaint.String())
	}
	return true, nil
}

// traced waits for the first line of the trace; it is false if the tuner is over
// before that.
func (v *victim) traced(over chan struct{}) bool {
	for {
		if info, err := os.Stat(v.trace()); err == nil && info.Size() > 0 {
			return true
		}
		select {
		case <-over:
			return false
		case <-time.After(tracePoll):
		}
	}
}

// A report is a line of the trace; tuner.Trace describes the fields.
type report struct {
	// Kind is what happened: tried, failed, dropped, left out, block or winner count here.
	Kind string
	// Fusion is its name, and Plan the plan that the event is about.
	Fusion, Plan string
	// Live is the number of candidates that a block has timed, but for those that
	// it dropped.
	Live int
	// Block is the number of a block that was left out, and one more for one that counts.
	Block int
}

// reports are the complete lines of the trace.
func (v *victim) reports() (all []report, err error) {
	text, err := os.ReadFile(v.trace())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	complete := text[:bytes.LastIndexByte(text, '\n')+1]
	for in := bufio.NewScanner(bytes.NewReader(complete)); in.Scan(); {
		var r report
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, err
}

// stored are the numbers of samples of the trials of a fusion, of its record and of its
// race, and the plan of the record. A race that goes on from a provisional winner has
// samples that the record has, too: they count once.
func (v *victim) stored(fusion string) (trials map[string]int, winner string, err error) {
	db := cache.Open(v.db())
	r, _, err := db.Get(v.keys[fusion])
	race, raceErr := db.Trials(v.keys[fusion])
	trials = map[string]int{}
	type sample struct {
		plan    string
		block   int
		seconds float64
	}
	met := map[sample]bool{}
	for _, t := range slices.Concat(r.Trials, race) {
		trials[t.Plan] += 0 // also of a trial without samples
		for k, seconds := range t.Samples {
			if s := (sample{t.Plan, t.Blocks[k], seconds}); !met[s] {
				met[s] = true
				trials[t.Plan]++
			}
		}
	}
	return trials, r.Plan, errors.Join(err, raceErr)
}

// samples counts the stored samples of each fusion, those of its record and those of
// a race that is not over together: a winner takes them from one to the other.
func (v *victim) samples() map[string]int {
	n := map[string]int{}
	for fusion := range v.keys {
		trials, _, err := v.stored(fusion)
		for _, samples := range trials {
			n[fusion] += samples
		}
		if err != nil {
			n[fusion] = 0 // check finds that out
		}
	}
	return n
}

// check compares what the trace reports with what is stored: every candidate that
// was tried or failed, every winner, and at least as many samples as the candidates
// and blocks took beside those that were stored before.
func (v *victim) check(before map[string]int) (reports int, harm string) {
	all, err := v.reports()
	if err != nil {
		return 0, fmt.Sprintf("the trace: %v", err)
	}
	if _, err := cache.Open(v.db()).Verify(); err != nil {
		return 0, fmt.Sprintf("verify: %v", err)
	}
	after := v.samples()
	want := map[string]int{}
	for fusion, n := range before {
		want[fusion] = n
	}
	type block struct {
		fusion string
		number int
	}
	leftOut := map[block]bool{}
	for _, r := range all {
		trials, winner, err := v.stored(r.Fusion)
		if err != nil {
			return reports, err.Error()
		}
		_, known := trials[r.Plan]
		switch r.Kind {
		case "tried", "failed", "dropped":
			reports++
			if !known {
				return reports, fmt.Sprintf("%s of %s is reported (%s) and not stored", r.Plan, r.Fusion, r.Kind)
			}
		case "left out":
			leftOut[block{r.Fusion, r.Block + 1}] = true
		case "block":
			reports++
			if !leftOut[block{r.Fusion, r.Block}] {
				want[r.Fusion] += r.Live
			}
		case "winner":
			reports++
			if winner != r.Plan {
				return reports, fmt.Sprintf("the winner %s of %s is reported, %q is stored", r.Plan, r.Fusion, winner)
			}
		}
		if r.Kind == "tried" {
			want[r.Fusion]++
		}
	}
	for fusion, n := range want {
		if after[fusion] < n {
			return reports, fmt.Sprintf("%s has %d samples, at least %d were reported", fusion, after[fusion], n)
		}
	}
	return reports, ""
}

// finish runs a tuner of the same command line to its end, as a person would who
// finds that the machine has been switched off: every fusion then has a winner and at least the
// samples that it had, and nothing is left over. Files that are younger than a
// minute could have a writer, so those that are left over are made older first.
func (v *victim) finish() (harm string) {
	before := v.samples()
	hidden := filepath.Join(v.dir, ".*")
	old := time.Now().Add(-time.Hour)
	leftOver, _ := filepath.Glob(hidden) // the pattern is right
	for _, path := range leftOver {
		if err := os.Chtimes(path, old, old); err != nil {
			return err.Error()
		}
	}
	if harm := failureOf(exec.Command(v.program, v.arguments()...)); harm != "" {
		return harm
	}
	after := v.samples()
	for fusion := range v.keys {
		_, winner, err := v.stored(fusion)
		if winner == "" || err != nil || after[fusion] < before[fusion] {
			return fmt.Sprintf("%s has the winner %q and %d samples, %d before: %v", fusion, winner, after[fusion], before[fusion], err)
		}
	}
	if leftOver, _ = filepath.Glob(hidden); len(leftOver) > 0 {
		return "left over: " + strings.Join(leftOver, " ")
	}
	return ""
}

// failureOf is what a command that should succeed says if it does not.
func failureOf(cmd *exec.Cmd) string {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}
