package sim

import "fmt"

const (
	sliceSteps   = 1 << 14 // warp instructions before another warp runs
	residentMax  = 64      // clusters that a worker runs in turn while they spin
	residentStep = 1 << 20 // warp instructions after which another cluster may start
)

// worker runs clusters of a grid one after the other; where one has run for
// long, it may be waiting for a later one, which is then started too.
type worker struct {
	grid     *grid
	found    findings
	counters Counters
	executed []int64 // by instruction; nil without Options.Counters
	resident []*cluster
	idle     []*cluster // finished, for reuse
}

func newWorker(g *grid) *worker {
	w := &worker{grid: g, found: findings{}}
	if g.opt.Counters {
		w.executed = make([]int64, len(g.entry.code))
	}
	return w
}

func (w *worker) run() {
	for w.start() {
		for i := 0; len(w.resident) > 0 && !w.stop(); {
			c := w.resident[i%len(w.resident)]
			switch done := c.advance(); {
			case done:
				w.finish(c)
			case c.steps > residentStep && len(w.resident) < residentMax:
				w.start()
				i++
			default:
				i++
			}
		}
		if w.stop() {
			return
		}
	}
}

func (w *worker) stop() bool {
	select {
	case <-w.grid.done:
		return true
	default:
		return w.grid.stopped.Load()
	}
}

// start begins the next cluster; false if there is none.
func (w *worker) start() bool {
	g := w.grid
	unit := int(g.next.Add(1) - 1)
	if unit >= product3(g.units) {
		return false
	}
	var c *cluster
	if n := len(w.idle); n > 0 {
		c = w.idle[n-1]
		w.idle = w.idle[:n-1]
	} else {
		c = newCluster(w)
	}
	c.begin(unit)
	w.resident = append(w.resident, c)
	return true
}

func (w *worker) finish(c *cluster) {
	for i, r := range w.resident {
		if r == c {
			w.resident = append(
				w.resident[:i],
				w.resident[i+1:]...,
			)
			break
		}
	}
	for _, t := range c.ctas {
		for _, x := range t.warps {
			w.counters.WarpInstructions += x.steps
			w.counters.LaneInstructions += x.lanes
		}
	}
	w.idle = append(w.idle, c)
}

func (w *worker) report(f Finding) {
	w.found.add(f)
	if fatal[f.Kind] {
		w.grid.stopped.Store(true)
	}
}

// cluster is a group of CTAs that run together; without clusters, one CTA.
type cluster struct {
	work    *worker
	unit    int
	ctas    []*cta
	steps   int64
	pending []*transfer // asynchronous bulk copies under way, in issue order
	barrier clusterBarrier
	asyncs  uint32 // clock of the party that asynchronous writes belong to
}

func newCluster(w *worker) *cluster {
	c := &cluster{work: w}
	n := product3(w.grid.cluster)
	for rank := range n {
		c.ctas = append(c.ctas, newCTA(c, rank))
	}
	return c
}

// begin resets the cluster to the start of a unit of the grid.
func (c *cluster) begin(unit int) {
	g := c.work.grid
	c.unit = unit
	c.steps = 0
	c.asyncs = 0
	c.pending = c.pending[:0]
	c.barrier = clusterBarrier{}
	at := [3]int{
		unit % g.units[0],
		unit / g.units[0] % g.units[1],
		unit / g.units[0] / g.units[1],
	}
	for rank, t := range c.ctas {
		in := [3]int{
			rank % g.cluster[0],
			rank / g.cluster[0] % g.cluster[1],
			rank / g.cluster[0] / g.cluster[1],
		}
		var id [3]int
		for i := range id {
			id[i] = at[i]*g.cluster[i] + in[i]
		}
		t.begin(id, in)
	}
}

// advance runs every warp that can for a slice; true when all have exited.
func (c *cluster) advance() bool {
	ran, live := false, false
	var steps int64
	for _, t := range c.ctas {
		for _, w := range t.warps {
			if w.status == ready {
				ran = true
				w.run(sliceSteps)
			}
			live = live || w.status != exited
			steps += w.steps
		}
	}
	c.steps = steps
	switch {
	case !live:
		c.ended()
		return true
	case !ran && !c.completeTransfers():
		c.deadlock()
		return true
	case steps > c.work.grid.opt.Budget*int64(len(c.ctas)):
		c.overBudget()
		return true
	}
	return false
}

// deadlock reports who waits where, at the first warp that does.
func (c *cluster) deadlock() {
	var first *warp
	detail := ""
	others := 0
	for _, t := range c.ctas {
		for _, w := range t.warps {
			switch {
			case w.status == exited:
			case first == nil:
				first, detail = w, "waits for "+w.on
			case others < 4:
				detail += fmt.Sprintf(
					"; warp %d waits for %s at %q",
					w.id, w.on,
					t.entry.sites[w.onPC].Text,
				)
				fallthrough
			default:
				others++
			}
		}
	}
	if others > 4 {
		detail += fmt.Sprintf("; and %d more warps", others-4)
	}
	first.pc = first.onPC
	first.report(Finding{Kind: Deadlock, Detail: detail}, -1)
}

func (c *cluster) overBudget() {
	for _, t := range c.ctas {
		for _, w := range t.warps {
			if w.status != exited {
				w.report(
					Finding{Kind: BudgetExceeded, Detail: fmt.Sprintf(
						"%d warp instructions in one CTA; it probably hangs",
						c.work.grid.opt.Budget,
					)},
					-1,
				)
				return
			}
		}
	}
}
