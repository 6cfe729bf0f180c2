package cpu

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/gemm"
	"github.com/tilewright/tilewright/symtile"
)

// A split divides the contraction of the dot of a program among parts, each a
// tile program of its own (Osama et al., Stream-K, PPoPP 2023, §2, "fixed
// split"). The partial sums are added in the order of the parts by the tile
// program that comes last, which alone goes on to what follows the dot, so that
// the bits of a result depend on the plan only.
type split struct {
	parts int64
	trips bool           // they share the iterations of the loop, not the terms of each
	bytes int64          // of a partial sum
	sums  []byte         // tiles × parts of them
	met   []atomic.Int32 // parts of a tile that are done
}

// planSplit reads the knob. Programs of several dots, or of several results,
// and dots in loops of loops are not divided.
func (l *lowering) planSplit() {
	parts := l.knob("splitk", 1)
	n := slices.IndexFunc(l.p.Ops, isDot)
	if parts <= 1 || n < 0 || slices.ContainsFunc(l.p.Ops[n+1:], isDot) || len(l.p.Roots) > 1 {
		return
	}
	for _, s := range l.p.Body {
		switch {
		case s.Loop == nil && s.Op == n:
			l.split = &split{parts: parts}
		case s.Loop != nil && len(s.Loop.Closers) == 1 && s.Loop.Closers[0] == n:
			trips := int64(1)
			for _, d := range s.Loop.Dims {
				count, _ := l.p.Space.Dims[d].Tiles.Value()
				trips *= count
			}
			l.split = &split{parts: parts, trips: trips >= parts}
		}
	}
}

func isDot(op symtile.Op) bool { return op.Code == "dot" }

// of returns how many tile programs there are for a tile.
func (s *split) of() int64 {
	if s == nil {
		return 1
	}
	return s.parts
}

// allocate makes room for the partial sums of so many tiles.
func (s *split) allocate(tiles int64) {
	if s != nil {
		s.sums, s.met = aligned(tiles*s.parts*s.bytes), make([]atomic.Int32, tiles)
	}
}

// reset forgets the run before.
func (s *split) reset() {
	if s == nil {
		return
	}
	for k := range s.met {
		s.met[k].Store(0)
	}
}

// share is the part of n a tile program does, in units of so many.
func (s *split) share(w *worker, n, unit int64) (begin, end int64) {
	units := (n + unit - 1) / unit
	return min(n, units*w.part/s.parts*unit), min(n, units*(w.part+1)/s.parts*unit)
}

// partial is partial sum k of the tile, of n elements.
func partial[T number](w *worker, s *split, k int64, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&s.sums[(w.tile*s.parts+k)*s.bytes])), n)
}

// splits has a dot that ends leave its partial sum in v to the split, and go on
// with the sum of all where it is the last: a row of ones times the partial sums
// as rows, which adds them one after the other, each exactly.
func splits[T number](c *closer, s *split, v *value, fresh int) {
	s.bytes = (v.n*classBytes[v.class] + cacheLine - 1) &^ (cacheLine - 1)
	ones, row := slices.Repeat([]T{1}, int(s.parts)), s.bytes/classBytes[v.class]
	c.end = append(c.end, func(w *worker) {
		sum := whole[T](w, v)
		if w.places[fresh] == 1 { // it had no iteration
			clear(sum)
		}
		copy(partial[T](w, s, w.part, len(sum)), sum)
		if int64(s.met[w.tile].Add(1)) < s.parts {
			w.ended = true
			return
		}
		n, others := int64(len(sum)), s.parts-1
		copy(sum, partial[T](w, s, 0, len(sum)))
		gemm.Multiply(gemm.Dense(sum, int(n)), gemm.Dense(ones, len(ones)), gemm.Dense(partial[T](w, s, 1, int((others-1)*row+n)), int(row)), 1, int(n), int(others), arrangedAs[T](w))
	})
}
