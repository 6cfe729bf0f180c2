package cache

import (
	"cmp"
	"slices"
)

// union is every sample of a and b. What a says about a plan (its prediction,
// features, failure) stands over what b says.
//
// Block numbers mean nothing across sessions, so blocks are matched by what is
// in them: a block of b is one of a's when they share a sample of a plan and no
// plan has different ones. A block that matches joins it, so a union of a thing
// with itself, or with an earlier state of itself, adds nothing; another gets a
// fresh number, so samples of different sessions are never taken for paired.
func union(a, b []Trial) []Trial {
	u := newUnion(a)
	for _, block := range blocksOf(b) {
		u.join(block)
	}
	for _, t := range b {
		if _, there := u.index[t.Plan]; !there {
			u.index[t.Plan] = len(u.trials)
			t.Samples = nil
			t.Blocks = nil
			t.Clocks = nil
			u.trials = append(u.trials, t)
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

// maxBlockNumber is where block numbers are given out anew from 0; they are in
// order, so that changes none of their meaning.
const maxBlockNumber = 1 << 30

// A trialUnion collects trials by block.
type trialUnion struct {
	trials  []Trial
	index   map[string]int // index in out, by plan
	blocks  []*block       // in the order they got their numbers
	next    int            // number of the next fresh block
	blockOf map[reading]*block
}

// A block is one lap of a race.
type block struct {
	number   int
	readings []reading
	clocks   []float64 // of each; they do not tell readings apart
}

// A reading is one sample; nth counts samples of one plan within a block.
type reading struct {
	plan    string
	nth     int
	seconds float64
}

func newUnion(a []Trial) *trialUnion {
	u := &trialUnion{
		index:   map[string]int{},
		blockOf: map[reading]*block{},
	}
	for _, t := range a {
		if _, there := u.index[t.Plan]; !there {
			u.index[t.Plan] = len(u.trials)
			t.Samples = nil
			t.Blocks = nil
			t.Clocks = nil
			u.trials = append(u.trials, t)
		}
	}
	for _, x := range blocksOf(a) {
		u.addBlock(x)
	}
	return u
}

func (u *trialUnion) addBlock(x *block) {
	u.blocks = append(u.blocks, x)
	u.next = max(u.next, x.number+1)
	for _, r := range x.readings {
		if u.blockOf[r] == nil {
			u.blockOf[r] = x
		}
	}
}

// join adds a block to the one it is, or as a new one.
func (u *trialUnion) join(x *block) {
	if same := u.matching(x); same != nil {
		for k, r := range x.readings {
			switch at := slices.Index(same.readings, r); {
			case at < 0:
				same.readings = append(same.readings, r)
				same.clocks = append(same.clocks, x.clocks[k])
				u.blockOf[r] = same
			case same.clocks[at] == 0:
				same.clocks[at] = x.clocks[k]
			}
		}
		return
	}
	x.number = max(x.number, u.next)
	u.addBlock(x)
}

// matching finds the block that x is.
func (u *trialUnion) matching(x *block) *block {
	for _, r := range x.readings {
		y := u.blockOf[r]
		if y != nil && !y.contradicts(x) {
			return y
		}
	}
	return nil
}

// contradicts says whether some plan has different samples in the two.
func (x *block) contradicts(y *block) bool {
	for _, r := range x.readings {
		for _, s := range y.readings {
			if r.plan == s.plan &&
				r.nth == s.nth && r.seconds != s.seconds {
				return true
			}
		}
	}
	return false
}

// appendTo appends the block's samples to their trials.
func (x *block) appendTo(u *trialUnion) {
	for k, r := range x.readings {
		u.trials[u.index[r.plan]].Add(
			r.seconds, x.clocks[k], x.number,
		)
	}
}

// blocksOf groups the samples of trials by block, in the order of the numbers.
// A sample without a block gets one of its own, after all others.
func blocksOf(ts []Trial) []*block {
	by := map[int]*block{}
	fresh := 0
	for _, t := range ts {
		for _, b := range t.Blocks {
			fresh = max(fresh, b+1)
		}
	}
	add := func(number int, plan string, seconds, hertz float64) {
		x := by[number]
		if x == nil {
			x = &block{number: number}
			by[number] = x
		}
		nth := 0
		for _, r := range x.readings {
			if r.plan == plan {
				nth++
			}
		}
		x.readings = append(
			x.readings, reading{plan, nth, seconds},
		)
		x.clocks = append(x.clocks, hertz)
	}
	for _, t := range ts {
		for k, s := range t.Samples {
			if len(t.Blocks) == 0 {
				add(fresh, t.Plan, s, t.clock(k))
				fresh++
				continue
			}
			add(t.Blocks[k], t.Plan, s, t.clock(k))
		}
	}
	blocks := make([]*block, 0, len(by))
	for _, x := range by {
		blocks = append(blocks, x)
	}
	slices.SortFunc(blocks, func(x, y *block) int {
		return cmp.Compare(x.number, y.number)
	})
	return blocks
}
