package sim

import (
	"fmt"
	"maps"
	"slices"
)

// Addresses of shared memory. A CTA's own starts at sharedBase: as on sm_90,
// the first KiB is the system's, and a null pointer is found out. In the
// window of the cluster, bits 24… are the rank of the CTA + 1. Generic
// addresses of shared and local memory add a window.
const (
	sharedBase   = 1024
	rankShift    = 24
	sharedWindow = 0x6000_0000_0000
	localWindow  = 0x5000_0000_0000
	paramWindow  = 0x4000_0000_0000
	windowMask   = 0xffff_0000_0000
)

// sharedAt resolves an address of shared memory to a CTA of the cluster and an
// offset; nil if the n bytes are not all in it.
func (t *cta) sharedAt(addr uint64, n int64) (*cta, int64) {
	owner := t
	if rank := addr >> rankShift; rank != 0 {
		if rank > uint64(len(t.cluster.ctas)) {
			return nil, 0
		}
		owner = t.cluster.ctas[rank-1]
	}
	off := int64(addr&(1<<rankShift-1)) - sharedBase
	if off < 0 || off+n > int64(len(owner.shared)) {
		return nil, 0
	}
	return owner, off
}

// sharedName says for a person which variable lies at an offset.
func (t *cta) sharedName(off int64) string {
	best, at := "", int64(-1)
	for _, name := range slices.Sorted(maps.Keys(t.entry.variables)) {
		v := t.entry.variables[name]
		if v.space == shared &&
			v.offset <= off && v.offset > at {
			best, at = name, v.offset
		}
	}
	if at < 0 {
		return fmt.Sprintf("offset %d", off)
	}
	return fmt.Sprintf("%s+%d", best, off-at)
}

// sharedBytes resolves an access of lane l, or reports it and returns nil.
func (w *warp) sharedBytes(
	addr uint64, n, align int64, lane int, how access, ownOnly bool,
) []byte {
	if !w.aligned(addr, align, "shared", lane) {
		return nil
	}
	t, off := w.cta.sharedAt(addr, n)
	if t == nil || ownOnly && t != w.cta {
		w.sharedOutside(addr, n, lane)
		return nil
	}
	if !w.visit(t, addr, lane) {
		return nil
	}
	if t.shadow != nil {
		w.recordShared(t, off, n, lane, how)
	}
	return t.shared[off : off+n]
}

// visit is the latest access of a warp to another CTA's shared memory.
type visit struct {
	by   *warp
	pc   int32
	lane int
	s    stamp
	addr uint64
}

// visit notes an access to the shared memory of t; false if t has exited.
func (w *warp) visit(t *cta, addr uint64, lane int) bool {
	switch {
	case t == w.cta:
	case t.live == 0:
		w.report(
			Finding{
				Kind:   MissingWait,
				Space:  "shared",
				Addr:   addr,
				Detail: fmt.Sprintf("CTA rank %d of the cluster has exited, and its shared memory with it", t.rank),
				Count:  1,
			},
			lane,
		)
		return false
	case w.clock.on:
		if t.visits == nil {
			t.visits = make([]visit, t.grid.parties())
		}
		t.visits[w.party] = visit{
			w, w.pc, lane,
			w.stamp(15, atomically, lane), addr,
		}
	}
	return true
}

// checkVisits reports, when the CTA has exited, accesses of others that no warp
// of it knew of: they might have come after.
func (t *cta) checkVisits() {
	for _, v := range t.visits {
		known := v.by == nil ||
			slices.ContainsFunc(t.warps, func(w *warp) bool {
				return w.clock.seen.near[v.by.party].knows(
					v.s.clock(), v.lane,
				)
			})
		if known {
			continue
		}
		at := v.by.pc
		v.by.pc = v.pc
		v.by.report(
			Finding{
				Kind:   MissingWait,
				Space:  "shared",
				Addr:   v.addr,
				Detail: fmt.Sprintf("CTA rank %d of the cluster does not wait for this before it exits", t.rank),
				Count:  1,
			},
			v.lane,
		)
		v.by.pc = at
	}
}

func (w *warp) aligned(addr uint64, align int64, where string, lane int) bool {
	if addr&uint64(align-1) == 0 {
		return true
	}
	w.report(
		Finding{
			Kind:   Misaligned,
			Space:  where,
			Addr:   addr,
			Detail: fmt.Sprintf("an access that must be aligned to %d bytes", align),
		},
		lane,
	)
	return false
}

func (w *warp) sharedOutside(addr uint64, n int64, lane int) {
	size := int64(len(w.cta.shared))
	detail := fmt.Sprintf(
		"%d bytes at offset %d of the CTA's %d bytes of shared memory",
		n,
		int64(addr&(1<<rankShift-1))-sharedBase,
		size,
	)
	if rank := addr >> rankShift; rank != 0 {
		detail = fmt.Sprintf(
			"%d bytes at offset %d in the shared memory of CTA rank %d of the cluster's %d, of %d bytes each",
			n,
			int64(addr&(1<<rankShift-1))-sharedBase,
			rank-1,
			len(w.cta.cluster.ctas), size,
		)
	}
	w.report(
		Finding{Kind: OutOfBounds, Space: "shared", Addr: addr, Detail: detail},
		lane,
	)
}
