package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile/index"
)

// StepKind is the operation of a Step.
type StepKind uint8

// The kinds of steps.
const (
	// Pad adds padding after each dimension.
	Pad StepKind = iota
	// Reshape keeps the elements in their row-major order.
	Reshape
	// Transpose makes operand dimension Perm[i] result dimension i.
	Transpose
	// Slice keeps the first indices of each dimension.
	Slice
)

// String is "pad", "reshape", "transpose" or "slice".
func (k StepKind) String() string {
	return [...]string{"pad", "reshape", "transpose", "slice"}[k]
}

// A Step takes an array of extents From to one of extents To.
type Step struct {
	Kind     StepKind
	From, To []int64
	// Perm is the permutation of a transpose; nil for others.
	Perm []int
}

// String prints "pad to 4x6", "transpose [0, 2, 1, 3] to 2x3x2x2".
func (s Step) String() string {
	if s.Kind == Transpose {
		return fmt.Sprintf(
			"transpose %s to %s", ListText(s.Perm), ExtentsText(s.To),
		)
	}
	return fmt.Sprintf("%s to %s", s.Kind, ExtentsText(s.To))
}

// Steps is a sequence of steps, the first one first.
type Steps []Step

// String prints the steps with semicolons between them.
func (ss Steps) String() string {
	parts := make([]string, len(ss))
	for i, s := range ss {
		parts[i] = s.String()
	}
	return strings.Join(parts, "; ")
}

// Map is the indexing map from indices of the result to indices of the operand.
// Its constraints leave out padding.
func (s Step) Map(r *index.Ring) index.Map {
	m := box(r, "d", s.To)
	m.Results = slices.Clone(m.Dims)
	switch s.Kind {
	case Pad:
		for i, d := range s.From {
			m.Where = append(
				m.Where,
				index.Below(m.Dims[i], d)...,
			)
		}
	case Transpose:
		for i, d := range s.Perm {
			m.Results[d] = m.Dims[i]
		}
	case Reshape:
		m.Results = reindex(r, m, s.From, s.To)
	}
	return m
}

// reindex is the index in from that has the row-major position of m's point in
// to.
func reindex(
	r *index.Ring, m index.Map, from, to []int64,
) []index.Expr {
	position := r.Const(0)
	if len(to) > 0 && m.State == index.StateKnown {
		position = index.Linearize(m.Dims, to)
	}
	if len(from) == 0 {
		return nil
	}
	if m.State == index.StateEmpty {
		return slices.Repeat(
			[]index.Expr{position}, len(from),
		)
	}
	return index.Delinearize(position, from)
}

// Inverse is the steps that undo ss, the last one first: a pad is undone by a slice
// and a slice by a pad.
func (ss Steps) Inverse() Steps {
	var out Steps
	undoes := map[StepKind]StepKind{Pad: Slice, Slice: Pad}
	for _, s := range slices.Backward(ss) {
		if kind, ok := undoes[s.Kind]; ok {
			s.Kind = kind
		}
		s.From, s.To = s.To, s.From
		perm := s.Perm
		s.Perm = slices.Clone(perm)
		for i, d := range perm {
			s.Perm[d] = i
		}
		out = append(out, s)
	}
	return out
}

// Map is the indexing map from indices of the last result to indices of the
// first operand, simplified. dims are the extents from which the steps start.
func (ss Steps) Map(r *index.Ring, dims []int64) index.Map {
	for _, s := range ss {
		dims = s.To
	}
	m := box(r, "d", dims)
	m.Results = slices.Clone(m.Dims)
	for i := range ss {
		m = index.Compose(m, ss[len(ss)-1-i].Map(r))
	}
	return m.Simplify()
}

// dims are the extents after the steps so far.
func (ss Steps) dims(start []int64) []int64 {
	if len(ss) == 0 {
		return start
	}
	return ss[len(ss)-1].To
}

// to appends a step unless it does nothing. A reshape of a reshape is one
// reshape.
func (ss Steps) to(kind StepKind, from, to []int64) Steps {
	if slices.Equal(from, to) {
		return ss
	}
	n := len(ss)
	if kind == Reshape && n > 0 &&
		ss[n-1].Kind == Reshape {
		return ss[:n-1].to(Reshape, ss[n-1].From, to)
	}
	return append(ss, Step{
		Kind: kind,
		From: from,
		To:   to,
	})
}

// transpose appends a transpose. One that keeps the order of the dimensions
// with more than one index moves nothing: it is a reshape.
func (ss Steps) transpose(from []int64, perm []int) Steps {
	to := make([]int64, len(perm))
	last, keepsOrder := -1, true
	for i, d := range perm {
		to[i] = from[d]
		if from[d] != 1 {
			keepsOrder = keepsOrder && d > last
			last = d
		}
	}
	switch {
	case slices.IsSorted(perm):
		return ss
	case keepsOrder:
		return ss.to(Reshape, from, to)
	}
	return append(ss, Step{
		Transpose, from, to, slices.Clone(perm),
	})
}

// Steps is the sequence that makes the physical array from the logical one: a
// transpose into physical order, then for each tile: combine dimensions, pad to
// whole tiles, divide each dimension into tiles and sizes, move the sizes to
// the end. Steps that do nothing are left out.
func (l *Layout) Steps() Steps {
	var ss Steps
	ss = ss.transpose(l.Shape.Dims, l.order)
	for i := range l.tilings {
		t := &l.tilings[i]
		ss = ss.to(
			Reshape, ss.dims(l.Shape.Dims), t.merged,
		)
		ss = ss.to(Pad, t.merged, t.padded())
		split, perm := t.split()
		ss = ss.to(Reshape, t.padded(), split)
		ss = ss.transpose(split, perm)
	}
	return ss
}

// split is each divided dimension as tiles and size, and the permutation that
// moves the sizes to the end.
func (t *tiling) split() (dims []int64, perm []int) {
	dims = slices.Clone(t.merged[:t.untiledDims])
	var inner []int
	for i := range t.untiledDims {
		perm = append(perm, i)
	}
	for i, size := range t.sizes {
		perm = append(perm, len(dims))
		inner = append(inner, len(dims)+1)
		dims = append(
			dims,
			index.CeilDiv(t.merged[t.untiledDims+i], size),
			size,
		)
	}
	return dims, append(perm, inner...)
}
