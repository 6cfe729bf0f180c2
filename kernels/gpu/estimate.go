package gpu

import (
	"fmt"
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// An estimate says, for a tiling and launch choices, what a block needs and
// about how long the kernel takes, without generating it. The sizes of tiles are
// compiled once.
type estimate struct {
	p     *symtile.Program
	sheet Sheet
	code  *symtile.Code
	first []int // of each op's sizes among the results
	loops [][]int
	vals  []int64
	out   []int64
	spare []int64
	trips []float64
}

func newEstimate(p *symtile.Program, s Sheet) (*estimate, error) {
	m := &estimate{p: p, sheet: s, loops: make([][]int, len(p.Ops)), trips: make([]float64, len(p.Space.Dims))}
	var vars, results []symtile.Expr
	for _, d := range p.Space.Dims {
		vars = append(vars, d.Size)
	}
	for _, op := range p.Ops {
		m.first = append(m.first, len(results))
		for _, d := range op.Tile {
			results = append(results, d.Size)
		}
	}
	var err error
	if m.code, err = symtile.Compile(vars, results); err != nil {
		return nil, fmt.Errorf("the tiles of %s: %w", p.Fusion.Name, err)
	}
	m.vals, m.out, m.spare = make([]int64, len(vars)), make([]int64, len(results)), make([]int64, m.code.ScratchLen())
	m.nest(p.Body, nil)
	return m, nil
}

// nest notes the dimensions of the loops around every op.
func (m *estimate) nest(body []symtile.Step, around []int) {
	for _, s := range body {
		if s.Loop == nil {
			m.loops[s.Op] = around
			continue
		}
		inside := append(around[:len(around):len(around)], s.Loop.Dims...)
		m.nest(s.Loop.Body, inside)
		for _, c := range s.Loop.Closers {
			m.loops[c] = inside
		}
	}
}

// A candidate is a tiling and launch choices with what they cost.
type candidate struct {
	tiling   symtile.Tiling
	knobs    knobs
	shared   float64 // bytes of a block
	partials float64 // results that a thread keeps
	seconds  float64
}

// set evaluates the sizes of a tiling.
func (m *estimate) set(t symtile.Tiling) (programs float64) {
	programs = 1
	for k, d := range m.p.Space.Dims {
		m.trips[k] = math.Ceil(float64(max(1, d.Extent)) / float64(t[k]))
		if d.Kind == symtile.Parallel {
			programs *= m.trips[k]
		}
	}
	copy(m.vals, t)
	m.code.Eval(m.vals, m.out, m.spare)
	return programs
}

func (m *estimate) sizes(n int) []int64 { return m.out[m.first[n] : m.first[n]+len(m.p.Ops[n].Tile)] }

func (m *estimate) elements(n int) float64 {
	product := 1.0
	for _, s := range m.sizes(n) {
		product *= float64(s)
	}
	return product
}

func (m *estimate) runs(n int) float64 {
	product := 1.0
	for _, d := range m.loops[n] {
		product *= m.trips[d]
	}
	return product
}

// candidate costs a tiling, which has been set.
func (m *estimate) candidate(t symtile.Tiling, programs float64, k knobs) candidate {
	c := candidate{tiling: t, knobs: k}
	threads := float64(k.warps * WarpThreads)
	var bytes, flops, steps float64
	seen := map[string]bool{}
	for n, op := range m.p.Ops {
		runs := m.runs(n)
		switch op.Code {
		case "parameter":
			key := fmt.Sprint(op.Instr.Attrs.Param, m.sizes(n), runs == 1)
			if !seen[key] || runs > 1 {
				bytes += m.sectors(n) * runs
			}
			seen[key] = true
		case "dot":
			work, shared, partials := m.dot(n, k)
			flops += work * runs
			c.shared += shared
			c.partials += partials
			steps += runs
		case "reduce":
			flops += m.elements(op.Args[0]) * runs
			c.partials += m.partials(n, threads)
			steps += runs
		default:
			flops += m.elements(n) * runs
		}
	}
	for _, r := range m.p.Roots {
		bytes += m.elements(r.Op) * float64(m.p.Ops[r.Op].Instr.Shape.DType.Size())
	}
	c.seconds = m.seconds(c, programs, bytes, flops, steps)
	return c
}

// sectors is the bytes memory moves to load a parameter's tile: rows of the
// dimension fastest in memory, rounded up to sectors.
func (m *estimate) sectors(n int) float64 {
	shape := m.p.Ops[n].Instr.Shape
	total := m.elements(n) * float64(shape.DType.Size())
	order := majorToMinor(shape)
	if len(order) == 0 {
		return sector
	}
	row := float64(m.sizes(n)[order[len(order)-1]] * shape.DType.Size())
	return total / row * math.Ceil(row/sector) * sector
}

// dot is the multiplications of a product, the bytes its operands take in
// shared memory, and the sums a thread keeps. Tensor cores do sixteen times as
// much in a clock as the others do.
func (m *estimate) dot(n int, k knobs) (work, shared, partials float64) {
	op := m.p.Ops[n]
	contracted := 1.0
	for _, d := range op.Instr.Attrs.LHSContract {
		contracted *= float64(m.sizes(op.Args[0])[d])
	}
	from := m.p.Ops[op.Args[0]].Instr.Shape.DType
	_, tensor := tensorTypes[from]
	size := float64(max(4, wideSum(op.Instr.Shape.DType).Size()))
	work = 2 * m.elements(n) * contracted
	copies := 1.0
	if tensor {
		size, work, copies = float64(from.Size()), work/16, float64(k.stages)
	}
	shared = 1.25 * size * copies * (m.elements(op.Args[0]) + m.elements(op.Args[1]))
	return work, shared, math.Ceil(m.elements(n) / float64(k.warps*WarpThreads))
}

// partials is at most how many results of a reduction a thread keeps.
func (m *estimate) partials(n int, threads float64) float64 {
	op := m.p.Ops[n]
	rows, all := m.elements(n), m.elements(op.Args[0])
	sharers := min(threads, max(1, all/rows))
	if len(op.Instr.Attrs.Dimensions) > 0 {
		last := op.Instr.Attrs.Dimensions[len(op.Instr.Attrs.Dimensions)-1]
		if int(last) == len(m.p.Ops[op.Args[0]].Tile)-1 {
			sharers = min(sharers, max(WarpThreads, threads/rows))
		}
	}
	return math.Ceil(rows*sharers/threads) * float64(len(op.Args)/2)
}

// seconds is the time of all blocks: each takes its start, its steps, and its
// share of what the device moves and computes, as many at once as fit.
func (m *estimate) seconds(c candidate, programs, bytes, flops, steps float64) float64 {
	s := m.sheet
	registers := int(min(float64(s.ThreadRegisters), 40+c.partials))
	at := s.Occupancy(registers, int(c.shared), c.knobs.warps*WarpThreads)
	if at.Blocks == 0 {
		return math.Inf(1)
	}
	sms, clock, bandwidth := float64(max(1, s.SMs)), s.Clock, s.Bandwidth
	if clock == 0 {
		clock = 1e9
	}
	if bandwidth == 0 {
		bandwidth = 16 * sms * clock // 16 bytes a clock
	}
	slots := sms * float64(at.Blocks)
	busy := min(programs, slots)
	waves := math.Ceil(programs / slots)
	// A thousand warps that each have a few sectors under way use the memory.
	use := min(1, busy*float64(c.knobs.warps)/(8*sms))
	// An SM does 128 operations a clock when each quarter has a warp or two.
	rate := 128 * clock * sms * min(1, busy/sms) * min(1, busy*float64(c.knobs.warps)/(8*sms))
	start := (2000 + 600*steps) / clock
	return waves*start + max(programs*bytes/(bandwidth*use), programs*flops/rate)
}

// mostShared and the like are bounds on what is sensible, from the sheet.
func (m *estimate) fits(c candidate) bool {
	return c.shared <= float64(m.sheet.BlockShared) && c.partials <= mostPartials && !math.IsInf(c.seconds, 1)
}

// plan is the candidate as a plan, knobs at their defaults left out.
func (c candidate) plan() kernels.Plan {
	p := kernels.Plan{Tiles: c.tiling}
	for _, row := range knobTable {
		if v := int64(*row.of(&c.knobs)); v != row.def {
			p = p.With(row.name, v)
		}
	}
	return p
}
