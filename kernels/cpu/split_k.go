package cpu

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Splitting serves programs with fewer tiles than cores and a long contraction. The
// parts of a tile are independent tile programs until each has left its partial
// result in memory. An atomic counter for each tile tells the last part that all
// others are done; it combines their results in the order of the parts and continues
// with whatever follows the contraction.

// A splitK divides the contraction of the dot of a program, or the iterations
// of the loop of its reductions, among parts, each a tile program of its own (Osama et al.,
// Stream-K, PPoPP 2023, §2, "fixed split"). The partial results are combined in
// the order of the parts by the tile program that arrives last, which alone
// continues with what follows, so that the bits of a result depend on the plan
// only.
type splitK struct {
	parts int64 // The number of parts.
	ops   []int // The ops that are divided: a dot, or reductions.
	// Parts share the iterations of the loop, not the terms of each.
	trips    bool
	sums     []partialSum   // The reductions that were lowered.
	bytes    int64          // The size of the partial results of a part.
	partials []byte         // The partial results, tiles × parts.
	arrived  []atomic.Int32 // The number of parts of a tile that are done.
}

// A partialSum is a reduction that parts share: the value that holds its result, how
// elements are combined, and where a partial result lies in those of a part.
type partialSum struct {
	v    *value
	each amd64.Func
	at   int64
}

// planSplit reads the knob. Programs of several dots, and dots and reductions in
// nested loops, are not divided, nor are reductions without machine code or with
// fewer iterations than parts.
func (l *lowering) planSplit() {
	// A dot divides its terms where it has no loop, or a loop of fewer iterations than
	// parts, and else the iterations. Reductions divide their iterations only.
	parts := l.knob("splitk", 1)
	ops := dividedOps(l.p)
	if parts <= 1 || ops == nil {
		return
	}
	dot := isDot(l.p.Ops[ops[0]])
	for _, s := range l.p.Body {
		switch {
		case s.Loop == nil && s.Op == ops[0] && dot:
			l.split = &splitK{parts: parts, ops: ops}
		case s.Loop != nil && slices.Equal(s.Loop.Accumulators, ops):
			trips := int64(1)
			for _, d := range s.Loop.Dims {
				count, _ := l.p.Space.Dims[d].Tiles.Value()
				trips *= count
			}
			if dot || trips >= parts {
				l.split = &splitK{
					parts: parts,
					ops:   ops,
					trips: trips >= parts,
				}
			}
		}
	}
}

// isDot reports whether an op is a dot.
func isDot(op symtile.Op) bool { return op.Code == hlo.OpDot }

// dividedOps are the ops of a program that parts can share: its only dot, or else its
// reductions, of f32 by one operation each; nil for none. Several reductions share one
// loop, and every output depends on one of them, so that the part that arrives last
// has little left to do.
func dividedOps(p *symtile.Program) []int {
	n := slices.IndexFunc(p.Ops, isDot)
	if n >= 0 {
		if len(p.Roots) > 1 || slices.ContainsFunc(p.Ops[n+1:], isDot) {
			return nil
		}
		return []int{n}
	}
	var ops []int
	for n, op := range p.Ops {
		if op.Code != hlo.OpReduce {
			continue
		}
		if !jitReducible(op) {
			return nil
		}
		ops = append(ops, n)
	}
	if (len(ops) > 1 || len(p.Roots) > 1) && !ownLoop(p, ops) {
		return nil
	}
	return ops
}

// ownLoop reports whether reductions are all that one loop accumulates, and every output
// depends on one of them.
func ownLoop(p *symtile.Program, ops []int) bool {
	follows := make([]bool, len(p.Ops))
	for n, op := range p.Ops {
		follows[n] = slices.Contains(ops, n) ||
			slices.ContainsFunc(op.Args, func(k int) bool { return k >= 0 && follows[k] })
	}
	for _, r := range p.Roots {
		if !follows[r.Op] {
			return false
		}
	}
	return slices.ContainsFunc(p.Body, func(s symtile.Step) bool {
		return s.Loop != nil && s.Loop.Online == nil &&
			slices.Equal(s.Loop.Accumulators, ops)
	})
}

// jitReducible reports whether machine code does a reduction.
func jitReducible(op symtile.Op) bool {
	monoid, ok := op.Instr.Attrs.ToApply.Monoid()
	return ok && len(op.Args) == 2 &&
		vector.Supported() &&
		op.Instr.Shape.DType == hlo.F32 &&
		vector.Reductions[monoid].Exists()
}

// count is the number of tile programs of a tile.
func (s *splitK) count() int64 {
	if s == nil {
		return 1
	}
	return s.parts
}

// allocate makes room for the partial results of a number of tiles.
func (s *splitK) allocate(tiles int64) {
	if s != nil {
		s.partials = alignedBytes(tiles * s.parts * s.bytes)
		s.arrived = make([]atomic.Int32, tiles)
	}
}

// reset forgets the previous run.
func (s *splitK) reset() {
	if s == nil {
		return
	}
	for k := range s.arrived {
		s.arrived[k].Store(0)
	}
}

// rangeOf is the part of n that a tile program does, in multiples of a unit.
// Parts differ by at most one unit.
func (s *splitK) rangeOf(w *worker, n, unit int64) (begin, end int64) {
	return s.partOf(n, unit, w.part)
}

// partOf is part number k of n.
func (s *splitK) partOf(n, unit, k int64) (begin, end int64) {
	units := (n + unit - 1) / unit
	return min(n, units*k/s.parts*unit), min(
		n, units*(k+1)/s.parts*unit,
	)
}

// lengths are those of the parts of n.
func (s *splitK) lengths(n, unit int64) map[int64]bool {
	all := map[int64]bool{}
	for k := range s.parts {
		begin, end := s.partOf(n, unit, k)
		all[end-begin] = true
	}
	return all
}

// partial is part k's partial result of the tile, of n elements, which begins at a byte
// of those of the part.
func partial[T portable.Number](
	w *worker, s *splitK, k, at int64, n int,
) []T {
	return unsafe.Slice(
		(*T)(unsafe.Pointer(
			&s.partials[(w.tile*s.parts+k)*s.bytes+at],
		)),
		n,
	)
}

// arrive counts a part as done and reports whether it is the last of its tile.
func (s *splitK) arrive(w *worker) bool {
	w.skipRest = int64(s.arrived[w.tile].Add(1)) < s.parts
	return !w.skipRest
}

// splitReduction makes a reduction begin from its identity in all parts but the
// first, leave its partial result in v, and continue with the combination of
// all in the part that arrives last. The parts are combined in their order,
// whichever arrives last. Of several reductions the last one that is lowered does
// so for all, when the loop is over.
func (c *accumulator) splitReduction(s *splitK, v *value, monoid hlo.Opcode) {
	routines, _ := vector.ReduceRoutines(monoid)
	s.sums = append(s.sums, partialSum{v: v, each: routines[1], at: s.bytes})
	s.bytes += (v.n*v.class.Bytes() + cacheLine - 1) &^ (cacheLine - 1)
	c.prologue = append(c.prologue, func(w *worker) {
		if w.part > 0 {
			portable.Fill(
				whole[float32](w, v), vector.Reductions[monoid].Identity,
			)
		}
	})
	if len(s.sums) < len(s.ops) {
		return
	}
	c.epilogue = append(c.epilogue, func(w *worker) {
		for _, x := range s.sums {
			sum := whole[float32](w, x.v)
			copy(partial[float32](w, s, w.part, x.at, len(sum)), sum)
		}
		if !s.arrive(w) {
			return
		}
		for _, x := range s.sums {
			s.combine(w, x)
		}
	})
}

// combine combines the partial results of a reduction in the order of the parts.
func (s *splitK) combine(w *worker, c partialSum) {
	sum := whole[float32](w, c.v)
	copy(sum, partial[float32](w, s, 0, c.at, len(sum)))
	for k := int64(1); k < s.parts; k++ {
		x := partial[float32](w, s, k, c.at, len(sum))
		for at := 0; at < len(sum); at += vector.MaxCallLength {
			w.reduceArgs = vector.ReduceArgs{
				N: int64(min(vector.MaxCallLength, len(sum)-at)),
				X: &x[at],
				Y: &sum[at],
			}
			c.each.Call(unsafe.Pointer(&w.reduceArgs))
		}
	}
}

// addTo adds elements to others of as many. Of integers a product with a row of ones takes
// longer, since it packs them: a convolution of bytes with 50,176 results in two parts takes
// 1.11 to 1.19 times as long with it (Emerald Rapids, two threads).
func addTo[T portable.Number](sum, more []T) {
	more = more[:len(sum)]
	for k := range sum {
		sum[k] += more[k]
	}
}

// splitDot makes a dot leave its partial sum in v, and continue with the sum of
// all in the part that arrives last. It multiplies a row of ones by the partial
// sums as rows, which adds them one after the other, each product being exact.
func splitDot[T portable.Number](c *accumulator, s *splitK, v *value, fresh int) {
	s.bytes = (v.n*v.class.Bytes() + cacheLine - 1) &^ (cacheLine - 1)
	ones := slices.Repeat([]T{1}, int(s.parts))
	row := s.bytes / v.class.Bytes()
	c.epilogue = append(c.epilogue, func(w *worker) {
		sum := whole[T](w, v)
		if w.slots[fresh] == 1 { // The part had no iteration.
			clear(sum)
		}
		copy(partial[T](w, s, w.part, 0, len(sum)), sum)
		if !s.arrive(w) {
			return
		}
		n := int64(len(sum))
		others := s.parts - 1
		copy(sum, partial[T](w, s, 0, 0, len(sum)))
		if _, integers := any(sum).([]int32); integers {
			for k := range others {
				addTo(sum, partial[T](w, s, k+1, 0, len(sum)))
			}
			return
		}
		gemm.Multiply(
			gemm.Dense(sum, int(n)),
			gemm.Dense(ones, len(ones)),
			gemm.Dense(partial[T](
				w, s, 1, 0,
				int((others-1)*row+n),
			), int(row)),
			1, int(n), int(others),
			packingScratch[T](w),
		)
	})
}
