package sim

import "fmt"

const (
	// sliceSteps is the number of instructions of a warp before another warp
	// runs.
	sliceSteps = 1 << 14
	// residentMax is the number of clusters that a worker runs in turn while they
	// spin.
	residentMax = 64
	// residentStep is the number of instructions of a cluster after which another
	// cluster may start.
	residentStep = 1 << 20
)

// worker runs clusters of a grid one after the other on a goroutine. A cluster
// that has run for long may be waiting for a later one, which is then started
// too, as on a device with several resident clusters.
type worker struct {
	grid     *grid
	found    findings
	counters Counters
	// executed counts the executions of each instruction; nil without
	// Options.Counters.
	executed []int64
	// resident are the clusters that have started and not ended.
	resident []*cluster
	// idle are ended clusters for reuse.
	idle []*cluster
}

// newWorker makes a worker of a launch.
func newWorker(g *grid) *worker {
	w := &worker{grid: g, found: findings{}}
	if g.opt.Counters {
		w.executed = make([]int64, len(g.entry.code))
	}
	return w
}

// run executes clusters until none is left or the launch ends early.
func (w *worker) run() {
	for w.start() {
		// Resident clusters run in turn. A new one starts only when a cluster
		// has run for long, so that most launches keep one cluster in the
		// caches.
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

// stop reports whether the launch was cancelled or a finding has ended it.
func (w *worker) stop() bool {
	select {
	case <-w.grid.done:
		return true
	default:
		return w.grid.stopped.Load()
	}
}

// start begins the next cluster of the grid; it returns false if there is none.
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

// finish adds the counts of an ended cluster and keeps it for reuse.
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

// report collects a finding; a fatal one ends the launch.
func (w *worker) report(f Finding) {
	w.found.add(f)
	// Other workers stop at their next slice.
	if fatal[f.Kind] {
		w.grid.stopped.Store(true)
	}
}

// cluster is a group of CTAs that run together; it is a single CTA in a launch
// without clusters.
type cluster struct {
	work *worker
	// unit is the number of the cluster in the grid.
	unit int
	ctas []*cta
	// steps is the number of warp instructions executed so far.
	steps int64
	// pending are the asynchronous bulk copies under way, in the order of issue.
	pending []*transfer
	// barrier is the state of barrier.cluster.
	barrier clusterBarrier
	// asyncs is the clock of the party to which asynchronous writes belong.
	asyncs uint32
}

// newCluster allocates a cluster with its CTAs.
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
	// The CTAs of a cluster are neighbours in the grid.
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

// advance runs every ready warp for a slice and returns true when all have
// exited. Where no warp is ready, it completes an asynchronous copy that some
// warp waits for, and reports a deadlock if there is none.
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
	// Copies that nobody waits for stay under way until the cluster ends, as
	// late as possible.
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

// deadlock reports which warp waits where, at the first warp that waits; up to
// four more are named.
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
	// The finding belongs to the instruction that waits.
	first.pc = first.onPC
	first.reportf(Deadlock, -1, "%s", detail)
}

// overBudget reports that the cluster has executed more instructions than the
// launch allows.
func (c *cluster) overBudget() {
	for _, t := range c.ctas {
		for _, w := range t.warps {
			if w.status != exited {
				w.reportf(
					BudgetExceeded, -1,
					"%d warp instructions in one CTA; it probably hangs",
					c.work.grid.opt.Budget,
				)
				return
			}
		}
	}
}
