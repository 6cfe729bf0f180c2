package gpu

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A wave is the blocks that run at the same time. What several of them read
// comes from memory once, if they are at it together.

// operands notes which parallel dimensions the tile of every parameter depends
// on, and which parameters products by warpgroups read.
func (m *estimate) operands() {
	m.over = make([]symtile.DimSet, len(m.p.Ops))
	m.feeds = make([]int, len(m.p.Ops))
	m.brought = make([]float64, len(m.p.Ops))
	m.covered = make([]float64, len(m.p.Space.Dims))
	for n, op := range m.p.Ops {
		m.feeds[n] = -1
		if op.Code != hlo.OpParameter {
			continue
		}
		for k, d := range m.p.Space.Dims {
			if d.Kind == symtile.Parallel && m.extents.Over(n).Has(k) {
				m.over[n] |= 1 << k
			}
		}
	}
	for n, op := range m.p.Ops {
		if m.groups[0][n] || m.groups[1][n] {
			m.feeds[op.Args[0]], m.feeds[op.Args[1]] = n,
				n
		}
	}
}

// bring adds what a block reads of a parameter. Tensor copies bring operands of
// warpgroups, a part of those a cluster shares from each of its blocks.
func (m *estimate) bring(n int, k knobs, runs float64, l *load) {
	bytes := m.moved(n, sectorBytes) * runs
	m.brought[n] = m.moved(n, burst) * runs
	l.bytes += m.brought[n]
	l.sectors += bytes
	dot := m.feeds[n]
	if dot < 0 || !m.byGroups(dot, k) {
		m.ask(n, runs, k, l)
		return
	}
	l.copied += bytes
	along, _ := m.neighbours(k.group)
	if k.cluster > 1 &&
		(along < 0 || !m.over[n].Has(along)) {
		l.given += bytes * (1 - 1/float64(k.cluster))
	}
}

// neighbours is the estimate's form of emitter.neighbours.
func (m *estimate) neighbours(group int) (dim int, run float64) {
	rows, cols := -1, -1
	for k, d := range m.p.Space.Dims {
		if d.Kind == symtile.Parallel && m.extents.Trips(k) > 1 {
			rows, cols = cols, k
		}
	}
	switch {
	case cols < 0:
		return -1, 1
	case group > 1 && rows >= 0:
		return rows, float64(group)
	}
	return cols, m.extents.Trips(cols)
}

// cover counts the different tiles that a number of consecutive blocks have
// along every parallel dimension; see raster.
func (m *estimate) cover(blocks float64, group int) {
	along, run := m.neighbours(group)
	left := blocks
	for k := len(m.covered) - 1; k >= 0; k-- {
		trips := m.extents.Trips(k)
		m.covered[k] = 1
		if m.p.Space.Dims[k].Kind != symtile.Parallel {
			continue
		}
		each := 1.0
		if k != along && run == float64(group) && left == blocks {
			each = run // blocks go through run rows before the next column
		}
		if k == along && run == float64(group) && run > 1 {
			m.covered[k] = min(trips, run*math.Ceil(left))
			left *= run / trips
			continue
		}
		m.covered[k] = min(trips, math.Ceil(left/each))
		left /= each * trips
	}
}

// waveBytes is what memory moves for a wave of blocks, each of which moves bytes.
func (m *estimate) waveBytes(blocks, bytes float64, group int) float64 {
	m.cover(blocks, group)
	total := bytes * blocks
	for n, b := range m.brought {
		different := 1.0
		for k := range m.covered {
			if m.over[n].Has(k) {
				different *= m.covered[k]
			}
		}
		total -= b * max(0, blocks-different)
	}
	return total
}

// scheduled adds to candidates, the cheapest of all, those with deeper rings, with
// clusters, with blocks that go from tile to tile and with producers that give
// registers away, where the device and the tiling allow them.
func (m *estimate) scheduled(all []candidate) []candidate {
	for _, c := range all[:min(len(all), rescheduled)] {
		if !slices.Contains(m.tensor[c.knobs.tf32], true) {
			continue
		}
		programs := m.set(c.tiling)
		for _, k := range m.deeper(c.knobs) {
			base := m.candidate(c.tiling, programs, k)
			if k != c.knobs {
				all = m.fitting(all, base)
			}
			all = m.grouped(all, base, programs)
		}
	}
	return all
}

// deeper are launch choices as they are and with more slots than are offered of all
// tilings, as many as there are iterations at most.
func (m *estimate) deeper(k knobs) []knobs {
	all, iterations := []knobs{k}, 0.0
	for n, op := range m.p.Ops {
		if op.Code == hlo.OpDot {
			iterations = max(
				iterations, m.runs(n)/float64(k.splitk),
			)
		}
	}
	if k.stages < maxOfferedStages {
		return all
	}
	for k.stages++; k.stages <= maxStages && float64(k.stages) <= iterations; k.stages++ {
		all = append(all, k)
	}
	return all
}

// grouped adds what a product by warpgroups can do beside: the first is base.
func (m *estimate) grouped(all []candidate, base candidate, programs float64) []candidate {
	if m.sheet.Cluster < 2 ||
		!m.alone(base.knobs) ||
		len(m.p.Runtime) > 0 {
		return all
	}
	for _, cluster := range []int{1, 2, 4} {
		k := base.knobs
		k.cluster = cluster
		if cluster > 1 &&
			(k.splitk > 1 || !m.clusters(k)) {
			continue
		}
		one := m.candidate(base.tiling, programs, k)
		if cluster > 1 {
			all = m.fitting(all, one)
		}
		all = m.giving(all, one, programs)
		for k.persistent = 1; k.persistent <= pingpong && k.splitk == 1; k.persistent++ {
			if x := m.candidate(base.tiling, programs, k); x.seconds < one.seconds {
				all = m.giving(m.fitting(all, x), x, programs)
			}
		}
	}
	return all
}

// giving adds a candidate whose producer is a warpgroup, where that has registers
// to give away.
func (m *estimate) giving(all []candidate, c candidate, programs float64) []candidate {
	k := c.knobs
	k.producer = device.WarpgroupThreads / device.WarpThreads
	if _, given := m.threads(k); given == 0 {
		return all
	}
	return m.fitting(
		all, m.candidate(c.tiling, programs, k),
	)
}

func (m *estimate) fitting(all []candidate, c candidate) []candidate {
	if m.fits(c) {
		return append(all, c)
	}
	return all
}

// rescheduled is how many candidates are looked at with other schedules.
const rescheduled = 512

// alone says whether a product by warpgroups is the only one of the program.
func (m *estimate) alone(k knobs) bool {
	only := 0
	for n, op := range m.p.Ops {
		switch {
		case op.Code == hlo.OpDot && m.byGroups(n, k):
			only++
		case op.Code == hlo.OpDot || op.Code == hlo.OpReduce:
			return false
		}
	}
	return only == 1
}

// clusters says whether blocks with consecutive numbers make whole clusters
// that have an operand in common.
func (m *estimate) clusters(k knobs) bool {
	along, run := m.neighbours(k.group)
	if along < 0 ||
		math.Mod(run, float64(k.cluster)) != 0 ||
		k.cluster > m.sheet.Cluster {
		return false
	}
	some := false
	for n, dot := range m.feeds {
		if dot >= 0 && !m.over[n].Has(along) {
			if some = true; m.rows(n)%int64(k.cluster*swizzleRows) != 0 {
				return false
			}
		}
	}
	return some
}

// rows is the rows of an operand of warpgroups, which lie in memory along the
// dimension that is the fastest there; padded to what wgmma reads at least.
func (m *estimate) rows(n int) int64 {
	order := majorToMinor(m.p.Ops[n].Instr.Shape)
	return (int64(m.elements(n))/
		m.sizes(n)[order[len(order)-1]] + 15) /
		16 * 16
}
