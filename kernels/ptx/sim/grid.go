package sim

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// grid is one launch in execution. All workers read it; they share the counters,
// the locks and the synchronisation variables.
type grid struct {
	entry *entry
	mem   *memory
	sheet Sheet
	opt   Options
	// clock is the reading of the clocks when the launch began.
	clock clock
	// size is the number of CTAs in each dimension; block, cluster and units
	// likewise are those of threads of a CTA, of CTAs of a cluster, and of
	// clusters.
	size    [3]int
	block   [3]int
	cluster [3]int
	// units is the number of clusters in each dimension.
	units [3]int
	// threads is the number of threads of a CTA.
	threads int
	// shared is the number of bytes of shared memory of a CTA, and dynamic those
	// of them that the launch asked for.
	shared  int64
	dynamic int64
	// param is the parameter block.
	param []byte
	// globals holds the addresses of the module's variables.
	globals map[string]uint64
	// watch is set if the registers that instructions read and write are checked.
	watch bool
	// launch is the number of the launch, and dependent is set where what it accesses
	// before griddepcontrol.wait is checked.
	launch    int64
	dependent bool
	// next is the number of the next cluster to start.
	next atomic.Int64
	// stopped is set by a finding that ends the launch.
	stopped atomic.Bool
	// done is closed when the caller cancels the launch.
	done <-chan struct{}
	// locks serialise strong accesses and atomic operations, by address.
	locks [64]sync.Mutex
	// sync holds what atomics have released.
	sync syncVariables
}

// product3 is the number of points of a three-dimensional grid.
func product3(v [3]int) int {
	return v[0] * v[1] * v[2]
}

// atLeastOne replaces zero dimensions by 1.
func atLeastOne(v [3]int) [3]int {
	for i := range v {
		if v[i] == 0 {
			v[i] = 1
		}
	}
	return v
}

// check compares the launch with the limits of the device and the entry.
func (g *grid) check() error {
	e := g.entry.source
	s := g.sheet
	for i, axis := range []string{"x", "y", "z"} {
		switch {
		case g.size[i] < 1 ||
			g.block[i] < 1 ||
			g.cluster[i] < 1:
			return fmt.Errorf(
				"grid %v, block %v, cluster %v: a dimension is negative",
				g.size, g.block, g.cluster,
			)
		case g.size[i]%g.cluster[i] != 0:
			return fmt.Errorf("grid %v is no multiple of the cluster %v in %s", g.size, g.cluster, axis)
		case i > 0 && g.size[i] > 65535:
			return fmt.Errorf("grid %v: at most 65535 CTAs in %s", g.size, axis)
		case e.ReqNTid[i] > 0 &&
			e.ReqNTid[i] != g.block[i]:
			return fmt.Errorf("block %v, but the entry is .reqntid %v", g.block, e.ReqNTid)
		case e.ReqNCTAPerCluster[i] > 0 &&
			e.ReqNCTAPerCluster[i] != g.cluster[i]:
			return fmt.Errorf("cluster %v, but the entry is .reqnctapercluster %v", g.cluster, e.ReqNCTAPerCluster)
		}
		g.units[i] = g.size[i] / g.cluster[i]
	}
	// The entry's own limits are checked with those of the device.
	limit := s.ThreadsPerBlock
	if e.MaxNTid[0] > 0 {
		limit = min(limit, product3(atLeastOne(e.MaxNTid)))
	}
	switch {
	case g.threads > limit:
		return fmt.Errorf("block %v has %d threads, at most %d", g.block, g.threads, limit)
	case g.shared > int64(s.SharedPerBlock):
		return fmt.Errorf("%d bytes of shared memory a CTA, at most %d", g.shared, s.SharedPerBlock)
	case product3(g.cluster) > s.BlocksPerCluster:
		return fmt.Errorf(
			"cluster %v has %d CTAs, at most %d",
			g.cluster, product3(g.cluster), s.BlocksPerCluster,
		)
	case g.entry.statics > 48<<10:
		return fmt.Errorf("%d bytes of static shared memory, at most %d", g.entry.statics, 48<<10)
	}
	return nil
}

// parties is the number of warps of a cluster. The party with that number stands
// for asynchronous writes.
func (g *grid) parties() int {
	return product3(g.cluster) *
		((g.threads + warpSize - 1) / warpSize)
}

// ctaOf is the id of a CTA by the number of its cluster and its rank.
func (g *grid) ctaOf(unit, rank int) [3]int {
	at := [3]int{
		unit % g.units[0],
		unit / g.units[0] % g.units[1],
		unit / g.units[0] / g.units[1],
	}
	in := [3]int{
		rank % g.cluster[0],
		rank / g.cluster[0] % g.cluster[1],
		rank / g.cluster[0] / g.cluster[1],
	}
	for i := range at {
		at[i] = at[i]*g.cluster[i] + in[i]
	}
	return at
}

// lock keeps the other workers from strong accesses to the 16 bytes at addr until
// the returned mutex is unlocked.
func (g *grid) lock(addr uint64) *sync.Mutex {
	m := &g.locks[addr>>4%uint64(len(g.locks))]
	m.Lock()
	return m
}

// syncVariables are the words by which atomics synchronise, with what was
// released to each.
type syncVariables struct {
	sync.Mutex
	at map[uint64]*vectorClock
}

// order numbers a launch. Where it is dependent, allocations that launches beside it have
// stored to are unsettled until it waits.
func (m *Machine) order(g *grid, dependent bool) {
	m.launches++
	g.launch = m.launches
	if !dependent {
		m.chain = g.launch
	}
	g.dependent = dependent && g.opt.Races
	if g.dependent {
		for _, a := range m.mem.allocs {
			a.unsettled = a.storedBy.Load() >= m.chain
		}
	}
}

// gridWait is griddepcontrol.wait: what the launches before have stored is there.
func gridWait(w *warp, _ *instr) { w.waited = true }

// premature reports an access of a dependent launch to global memory that the launches
// before it may still store to or, where it stores, read. Which arrays these only read is
// not known, so that no store is right before the wait.
func (w *warp) premature(a *allocation, lane int, how access) {
	if w.waited || how == reading && !a.unsettled {
		return
	}
	detail := "it is read before griddepcontrol.wait, and a launch before this one stores to it"
	if how != reading {
		detail = "it is stored to before griddepcontrol.wait, and a launch before this one may not have ended"
	}
	w.report(
		Finding{Kind: MissingWait, Space: "global", Addr: a.start, Detail: detail},
		lane,
	)
}

// checkWaited reports a CTA of a dependent launch that ends and has not waited: its end
// says nothing of the launches before, which those after it take to have ended.
func (t *cta) checkWaited(last *warp) {
	for _, w := range t.warps {
		if w.waited {
			return
		}
	}
	last.report(
		Finding{Kind: MissingWait, Detail: "the CTA of a dependent launch ends without griddepcontrol.wait"},
		-1,
	)
}

// arguments packs the arguments into the parameter block.
func (e *entry) arguments(args [][]byte) ([]byte, error) {
	if len(args) != len(e.params) {
		return nil, fmt.Errorf(
			"%d arguments, the entry has %d parameters", len(args), len(e.params),
		)
	}
	block := alignedBytes(int64(e.block))
	for i, a := range args {
		p := &e.source.Params[i]
		if len(a) != p.Bytes() {
			return nil, fmt.Errorf(
				"argument %d is %d bytes, parameter %s is %d",
				i, len(a), p.Name, p.Bytes(),
			)
		}
		copy(block[e.params[i]:], a)
	}
	return block, nil
}
