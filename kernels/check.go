package kernels

import (
	"context"
	"fmt"
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Tolerance bounds |got − want| by Relative·max|want| over the output, and
// whole-number outputs by Units.
type Tolerance struct {
	Relative float64
	Units    int64
}

// epsilon is the distance from 1 to the next number of a floating type.
func epsilon(d hlo.DType) float64 {
	return math.Ldexp(1, -d.FractionBits())
}

// ToleranceOf is what a correct kernel may differ from Reference: a rounding
// error of a few units of the coarsest type a result is rounded to for each of
// the operations on the longest path, and √k units of the type sums are kept
// in (f32, or f64 for f64) for sums of k terms: the standard deviation of k
// independent roundings, times 4 (Higham, Accuracy and Stability of Numerical
// Algorithms, §2.8). What is only moved must be the same in every bit.
func ToleranceOf(c *hlo.Computation) Tolerance {
	var coarsest, accumulator, terms float64
	depth := make(map[*hlo.Instr]float64, len(c.Instrs))
	var t Tolerance
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			depth[i] = max(depth[i], depth[o])
		}
		if i.Op == "convert" && !i.Shape.DType.IsFloat() && i.Operands[0].Shape.DType.IsFloat() {
			t.Units = 1 // a value next to a whole number may fall on its other side
		}
		computed := !moves[i.Op] && i.Op != "parameter" && i.Op != "constant"
		if computed {
			depth[i]++
		}
		for _, s := range arraysOf(i.Shape) {
			if d := s.DType; d.IsFloat() && (computed || i.Op == "convert") {
				coarsest = max(coarsest, epsilon(d))
				accumulator = max(accumulator, epsilon(accumulatorOf(d)))
			}
		}
		switch i.Op {
		case "dot", "scaled-dot", "convolution", "reduce", "reduce-window", "select-and-scatter", "scatter":
			terms = max(terms, summed(i))
		}
	}
	t.Relative = coarsest*(2+depth[c.Root]) + 4*accumulator*math.Sqrt(terms)
	return t
}

func accumulatorOf(d hlo.DType) hlo.DType {
	if d == hlo.F64 {
		return hlo.F64
	}
	return hlo.F32
}

// A Mismatch says how an output differs from what it should be.
type Mismatch struct {
	Output    int
	Shape     hlo.Shape
	Index     []int64 // of the worst element
	Got, Want float64
	Wrong     int64   // elements out of tolerance
	Allowed   float64 // difference
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("output %d (%s) is wrong in %d of %d elements; at %v it is %v, the reference says %v (allowed difference %.3g)",
		m.Output, m.Shape, m.Wrong, m.Shape.Elements(), m.Index, m.Got, m.Want, m.Allowed)
}

// Compare returns nil when got is want within t. NaN and infinities must stand
// in the same places.
func Compare(output int, got, want Buffer, t Tolerance) *Mismatch {
	allowed := float64(t.Units)
	if want.Shape.DType.IsFloat() {
		allowed = t.Relative * largest(want)
	}
	m := &Mismatch{Output: output, Shape: want.Shape, Allowed: allowed}
	worst := -1.0
	dims := want.Shape.Dims
	g, w := newWalk(dims, got.Shape.Strides()), newWalk(dims, want.Shape.Strides())
	for n := range want.Shape.Elements() {
		x, y := got.Float(g.next()), want.Float(w.next())
		if x == y || x != x && y != y || math.Abs(x-y) <= allowed {
			continue
		}
		m.Wrong++
		if d := difference(x, y); d > worst {
			worst, m.Got, m.Want, m.Index = d, x, y, unravel(n, dims)
		}
	}
	if m.Wrong == 0 {
		return nil
	}
	return m
}

// difference is |x−y|, infinite when one of them is NaN.
func difference(x, y float64) float64 {
	if d := math.Abs(x - y); d == d {
		return d
	}
	return math.Inf(1)
}

func largest(b Buffer) float64 {
	m := 0.0
	for at := range b.Shape.Elements() {
		if v := math.Abs(b.Float(at)); v > m && !math.IsInf(v, 0) {
			m = v
		}
	}
	return m
}

func unravel(n int64, dims []int64) []int64 {
	index := make([]int64, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		index[d], n = n%dims[d], n/dims[d]
	}
	return index
}

// A Verifier checks kernels of one fusion against Reference, whose results it
// keeps. It is made once and used for every plan.
type Verifier struct {
	cases []verifyCase
}

type verifyCase struct {
	name    string
	in      []Buffer
	want    []Buffer
	allowed Tolerance
}

// Wrong is the failure of a kernel that computes something else.
type Wrong struct {
	Case string // which inputs
	Err  error
}

func (e *Wrong) Error() string { return "wrong result on " + e.Case + ": " + e.Err.Error() }
func (e *Wrong) Unwrap() error { return e.Err }

// NewVerifier runs Reference on random inputs and, where the arithmetic is
// exact, on integers, whose results must agree in every bit.
func NewVerifier(c *hlo.Computation, seed int64) (*Verifier, error) {
	v := &Verifier{}
	contents := []verifyCase{{name: "random inputs", allowed: ToleranceOf(c)}}
	if Exact(c) {
		contents = append([]verifyCase{{name: "integer inputs"}}, contents...)
	}
	for _, vc := range contents {
		content := Normals
		if vc.name == "integer inputs" {
			content = Integers
		}
		var err error
		if vc.in, err = Inputs(c, content, seed); err != nil {
			return nil, err
		}
		if vc.want, err = Reference(c, vc.in); err != nil {
			return nil, err
		}
		v.cases = append(v.cases, vc)
	}
	return v, nil
}

// Verify is the gate before timing: it runs k into poisoned outputs between
// red zones and compares. A *Wrong says how the kernel is wrong; other errors
// are the kernel's own.
func (v *Verifier) Verify(ctx context.Context, k Kernel) error {
	for _, c := range v.cases {
		guard, err := newGuard(c.in, c.want)
		if err != nil {
			return err
		}
		if _, err := k.Run(ctx, guard.in, guard.out); err != nil {
			return err
		}
		if err := guard.intact(c.in); err != nil {
			return &Wrong{c.name, err}
		}
		for n, want := range c.want {
			if m := Compare(n, guard.out[n], want, c.allowed); m != nil {
				return &Wrong{c.name, m}
			}
		}
	}
	return nil
}
