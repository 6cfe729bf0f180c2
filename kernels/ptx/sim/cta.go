package sim

import "github.com/tilewright/tilewright/kernels/ptx"

// cta is a thread block in execution. The object is reused for one thread block
// after the other.
type cta struct {
	cluster *cluster
	work    *worker
	grid    *grid
	entry   *entry
	// rank is the number of the CTA in its cluster.
	rank int
	// id is the value of %ctaid.
	id [3]int
	// shared is the shared memory.
	shared []byte
	// shadow records the accesses to shared memory; it is nil unless something is
	// checked.
	shadow *sharedShadow
	// kept is the shadow for reuse while a CTA is not checked.
	kept *sharedShadow
	// watch is set if the registers that instructions read and write are checked.
	watch bool
	warps []*warp
	// live is the number of warps that have not exited.
	live int
	// barriers are the named barriers of bar.sync.
	barriers [16]barrier
	// mbarriers maps offsets in shared memory to the mbarrier objects that were
	// initialised there.
	mbarriers map[int64]*mbarrier
	// visits holds the latest access of each warp of other CTAs to this CTA's
	// shared memory, by party.
	visits []visit
	// local is the local memory of all threads, one part for each.
	local []byte
}

// newCTA allocates a CTA of a cluster with its warps.
func newCTA(c *cluster, rank int) *cta {
	g := c.work.grid
	t := &cta{
		cluster:   c,
		work:      c.work,
		grid:      g,
		entry:     g.entry,
		rank:      rank,
		shared:    alignedBytes(g.shared),
		mbarriers: map[int64]*mbarrier{},
	}
	if g.entry.locals > 0 {
		t.local = alignedBytes(g.entry.locals * int64(g.threads))
	}
	// The last warp may have fewer than 32 threads.
	per := (g.threads + warpSize - 1) / warpSize
	for i := range per {
		t.warps = append(
			t.warps, newWarp(t, i, rank*per+i),
		)
	}
	return t
}

// newWarp allocates a warp and preloads the registers whose values never change:
// constants, addresses of module variables, and special registers.
func newWarp(t *cta, id, party int) *warp {
	e := t.entry
	w := &warp{cta: t, id: id, party: party}
	w.r32 = make([]word, e.count[bank32])
	w.r64 = make([]long, e.count[bank64])
	w.pred = make([]uint32, e.count[bankPred])
	// Predicate 0 is constantly true: it guards instructions without a guard.
	w.pred[0] = allLanes
	for v, r := range e.const32 {
		fill(w.r32[r][:], v)
	}
	for v, r := range e.const64 {
		fill(w.r64[r][:], v)
	}
	for name, r := range e.globals {
		fill(w.r64[r][:], t.grid.globals[name])
	}
	for s, r := range e.special {
		t.special(w, s, r, [3]int{})
	}
	if t.grid.watch {
		for b := range w.inited {
			w.inited[b] = make([]uint32, e.count[b])
		}
	}
	if t.grid.opt.Races {
		w.clock = newPartyClock(t.grid.parties())
	}
	w.wg.init(e)
	return w
}

// begin resets the CTA to the start of the thread block with the given id.
func (t *cta) begin(id, inCluster [3]int) {
	t.id = id
	t.live = len(t.warps)
	t.barriers = [16]barrier{}
	clear(t.mbarriers)
	t.visits = nil
	// One CTA is checked for all if the accesses of all CTAs are the same.
	t.check(t.cluster.unit == 0 || !t.entry.blockInvariant)
	for i, w := range t.warps {
		w.begin(min(t.grid.threads-i*warpSize, warpSize))
		// Registers such as %tid.x keep their values from the last thread
		// block; only those that depend on the CTA are set again.
		for s, r := range t.entry.special {
			if moves(s) {
				t.special(w, s, r, inCluster)
			}
		}
	}
}

// check turns the requested checks of shared memory and registers on or off.
// Where all CTAs make the same accesses, one of them is checked for all.
func (t *cta) check(on bool) {
	g := t.grid
	t.watch = on && g.watch
	t.shadow = nil
	if !on || !g.opt.Races && !g.opt.Uninitialised {
		return
	}
	if t.kept == nil {
		t.kept = newSharedShadow(
			g.shared, g.parties(), g.opt,
		)
	} else {
		t.kept.reset()
	}
	t.shadow = t.kept
}

// onlyChecked are the kinds of findings in shared memory and registers that a CTA
// which is not checked does not report.
var onlyChecked = map[Kind]bool{
	Race:          true,
	MissingWait:   true,
	MissingFence:  true,
	Uninitialised: true,
}

// standsFor is the number of CTAs whose accesses to shared memory the checked one
// stands for.
func (t *cta) standsFor() int {
	if t.entry.blockInvariant {
		return product3(t.grid.units)
	}
	return 1
}

// begin resets the warp to the start of the entry with the given number of lanes.
func (w *warp) begin(lanes int) {
	w.mask = uint32(1<<lanes - 1)
	w.live = w.mask
	w.whole = w.mask
	w.pc = 0
	w.status = ready
	w.on = ""
	w.onBar = nil
	w.refused = refusal{}
	w.polls = false
	w.giveUp = false
	w.onCluster = false
	w.atCluster = 0
	w.waited = false
	w.ticks = 0
	w.steps = 0
	w.lanes = 0
	w.carry = 0
	w.forks = w.forks[:0]
	w.copies.reset()
	w.bulk.reset()
	w.wg.reset()
	for b := range w.inited {
		clear(w.inited[b])
	}
	w.clock.reset(w.party)
}

// moves reports whether a special register differs from CTA to CTA.
func moves(s ptx.Special) bool {
	return s >= ptx.CTAidX && s <= ptx.CTAidZ ||
		s >= ptx.ClusterIDX && s <= ptx.ClusterIDZ ||
		s >= ptx.ClusterCTAidX && s <= ptx.ClusterCTAidZ ||
		s == ptx.SMID
}

// special sets the preloaded register of a special register in every lane of a
// warp.
func (t *cta) special(
	w *warp, s ptx.Special, r register, inCluster [3]int,
) {
	// Special registers of a warp as a whole have the same value in all lanes.
	for l := range warpSize {
		v := t.uniform(w, s, inCluster)
		if s <= ptx.TidZ || s >= ptx.LaneID {
			if x, own := t.laneSpecial(s, l, w.id*warpSize+l); own {
				v = x
			}
		}
		w.put(r, l, uint64(v))
	}
}

// laneSpecial is the value of a special register that differs from lane to lane,
// and false for the others.
func (t *cta) laneSpecial(s ptx.Special, l, thread int) (int, bool) {
	block := t.grid.block
	switch s {
	case ptx.TidX:
		return thread % block[0], true
	case ptx.TidY:
		return thread / block[0] % block[1], true
	case ptx.TidZ:
		return thread / block[0] / block[1], true
	case ptx.LaneID:
		return l, true
	case ptx.LanemaskEq:
		return 1 << l, true
	case ptx.LanemaskLt:
		return 1<<l - 1, true
	case ptx.LanemaskLe:
		return 2<<l - 1, true
	case ptx.LanemaskGt:
		return allLanes &^ (2<<l - 1), true
	case ptx.LanemaskGe:
		return allLanes &^ (1<<l - 1), true
	}
	return 0, false
}

// uniform is the value of a special register that is the same in all lanes of a
// warp.
func (t *cta) uniform(w *warp, s ptx.Special, inCluster [3]int) int {
	g := t.grid
	axis := func(first ptx.Special, v [3]int) int {
		return v[s-first]
	}
	// Special registers with three dimensions come in consecutive constants.
	switch {
	case s >= ptx.NTidX && s <= ptx.NTidZ:
		return axis(ptx.NTidX, g.block)
	case s >= ptx.CTAidX && s <= ptx.CTAidZ:
		return axis(ptx.CTAidX, t.id)
	case s >= ptx.NCTAidX && s <= ptx.NCTAidZ:
		return axis(ptx.NCTAidX, g.size)
	case s >= ptx.ClusterIDX && s <= ptx.ClusterIDZ:
		return t.id[s-ptx.ClusterIDX] /
			g.cluster[s-ptx.ClusterIDX]
	case s >= ptx.NClusterIDX && s <= ptx.NClusterIDZ:
		return axis(ptx.NClusterIDX, g.units)
	case s >= ptx.ClusterCTAidX && s <= ptx.ClusterCTAidZ:
		return axis(ptx.ClusterCTAidX, inCluster)
	case s >= ptx.ClusterNCTAidX && s <= ptx.ClusterNCTAidZ:
		return axis(ptx.ClusterNCTAidX, g.cluster)
	}
	switch s {
	case ptx.ClusterCTARank:
		return t.rank
	case ptx.ClusterNCTARank:
		return product3(g.cluster)
	case ptx.WarpID:
		return w.id
	case ptx.NWarpID:
		return len(t.warps)
	case ptx.NSMID:
		return g.sheet.SMs
	case ptx.SMID:
		return t.cluster.unit % g.sheet.SMs
	case ptx.DynamicSmemSize:
		return int(g.dynamic)
	case ptx.TotalSmemSize:
		return int(g.shared)
	case ptx.AggrSmemSize:
		return int(g.shared) + sharedBase
	case ptx.IsExplicitCluster:
		return int(boolBit(product3(g.cluster) > 1))
	}
	return 0
}

// site is an instruction executed by a lane of a warp of the CTA.
func (t *cta) site(pc int32, warp, lane int) Site {
	s := t.entry.sites[pc]
	s.CTA = t.id
	s.Warp = warp
	s.Lane = lane
	return s
}

// warpExited releases the barriers that waited for the exited warp only.
func (t *cta) warpExited(w *warp) {
	if t.live--; t.live == 0 {
		t.checkVisits()
		if t.grid.dependent {
			t.checkWaited(w)
		}
	}
	for i := range t.barriers {
		if b := &t.barriers[i]; b.whole {
			t.tryBarrier(b)
		}
	}
	t.cluster.tryBarrier()
}
