package cache

import (
	"cmp"
	"maps"
	"slices"
)

// union holds every sample of a and of the others. Where several have a plan, its
// prediction, features and failure are those of the first.
//
// Block numbers have no meaning across sessions, so blocks are matched by their
// samples: a block of another is the same as one of a when they share a sample of a plan
// and no plan has different samples in the two. Matching blocks are merged; a
// block without a match gets a fresh number. Hence the union of trials with
// themselves, or with an earlier state of themselves, adds nothing, and samples of
// different sessions are never taken for paired ones.
func union(a []Trial, others ...[]Trial) []Trial {
	u := newUnion(a)
	for _, b := range others {
		for _, block := range blocksOf(b) {
			u.join(block)
		}
		for _, t := range b {
			u.addTrial(t)
		}
	}
	for k, x := range u.blocks {
		if u.next > maxBlockNumber {
			x.number = k
		}
		x.appendTo(u)
	}
	return u.trials
}

// maxBlockNumber is the largest block number. Beyond it the blocks are numbered
// again from 0; they are in order, so that their meaning does not change.
const maxBlockNumber = 1 << 30

// A trialUnion collects plans and blocks and then gives each plan its samples.
type trialUnion struct {
	trials  []Trial
	index   map[string]int     // of a plan in trials
	blocks  []*block           // in ascending order of their numbers
	next    int                // the next fresh block number
	blockOf map[reading]*block // the first block with a reading
}

// A block holds the samples that were taken of all candidates in one round of a
// race.
type block struct {
	number   int
	readings []reading
	clocks   []float64    // of each reading, in Hz; not part of its identity
	index    map[slot]int // of a slot in readings
}

// A reading is one sample of a plan.
type reading struct {
	slot
	seconds float64
}

// A slot is the place of a sample in a block. nth counts the samples of the plan.
type slot struct {
	plan string
	nth  int
}

func newUnion(a []Trial) *trialUnion {
	u := &trialUnion{
		index:   map[string]int{},
		blockOf: map[reading]*block{},
	}
	for _, t := range a {
		u.addTrial(t)
	}
	for _, x := range blocksOf(a) {
		u.addBlock(x)
	}
	return u
}

// addTrial adds a plan, without its samples, unless there is one.
func (u *trialUnion) addTrial(t Trial) {
	if _, known := u.index[t.Plan]; known {
		return
	}
	u.index[t.Plan] = len(u.trials)
	t.Samples = nil
	t.Blocks = nil
	t.Clocks = nil
	u.trials = append(u.trials, t)
}

// addBlock adds a block under its number.
func (u *trialUnion) addBlock(x *block) {
	u.blocks = append(u.blocks, x)
	u.next = max(u.next, x.number+1)
	for _, r := range x.readings {
		if u.blockOf[r] == nil {
			u.blockOf[r] = x
		}
	}
}

// join merges a block with the one that it matches, or adds it as a new one.
func (u *trialUnion) join(x *block) {
	same := u.matching(x)
	if same == nil {
		x.number = max(x.number, u.next)
		u.addBlock(x)
		return
	}
	for k, r := range x.readings {
		at, known := same.index[r.slot]
		if !known {
			same.add(r, x.clocks[k])
			u.blockOf[r] = same
		} else if same.clocks[at] == 0 {
			same.clocks[at] = x.clocks[k]
		}
	}
}

func (x *block) add(r reading, hertz float64) {
	x.index[r.slot] = len(x.readings)
	x.readings = append(x.readings, r)
	x.clocks = append(x.clocks, hertz)
}

// matching finds a block that shares a reading with x and contradicts none.
func (u *trialUnion) matching(x *block) *block {
	seen := map[*block]bool{}
	for _, r := range x.readings {
		y := u.blockOf[r]
		if y == nil || seen[y] {
			continue
		}
		if !y.contradicts(x) {
			return y
		}
		seen[y] = true
	}
	return nil
}

// contradicts reports whether a plan has different samples in the two blocks.
func (x *block) contradicts(y *block) bool {
	if len(x.readings) < len(y.readings) {
		x, y = y, x
	}
	for _, r := range y.readings {
		at, known := x.index[r.slot]
		if known && x.readings[at].seconds != r.seconds {
			return true
		}
	}
	return false
}

// appendTo gives the samples of the block to their plans.
func (x *block) appendTo(u *trialUnion) {
	for k, r := range x.readings {
		t := &u.trials[u.index[r.plan]]
		t.Add(r.seconds, x.clocks[k], x.number)
	}
}

// blocksOf groups the samples of trials by block, in ascending order of the block
// numbers. A sample without a block gets a block of its own, after all others.
func blocksOf(ts []Trial) []*block {
	byNumber := map[int]*block{}
	count := map[int]int{} // samples of the plan by block
	fresh := 0
	for _, t := range ts {
		for _, b := range t.Blocks {
			fresh = max(fresh, b+1)
		}
	}
	add := func(number int, plan string, seconds, hertz float64) {
		x := byNumber[number]
		if x == nil {
			x = &block{number: number, index: map[slot]int{}}
			byNumber[number] = x
		}
		nth := count[number]
		count[number]++
		x.add(reading{slot{plan, nth}, seconds}, hertz)
	}
	for _, t := range ts {
		clear(count)
		for k, s := range t.Samples {
			if len(t.Blocks) == 0 {
				add(fresh, t.Plan, s, t.clock(k))
				fresh++
				continue
			}
			add(t.Blocks[k], t.Plan, s, t.clock(k))
		}
	}
	return slices.SortedFunc(maps.Values(byNumber), func(x, y *block) int {
		return cmp.Compare(x.number, y.number)
	})
}
