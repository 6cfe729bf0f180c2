package reference

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// eachLine calls do with the positions of the elements along a dimension, for
// each index of the other dimensions.
func (e *evaluation) eachLine(dims []int64, along int, do func(at []int64) error) error {
	strides := hlo.RowMajor(dims)
	others := slices.Clone(dims)
	others[along] = 1
	w := NewWalk(others, strides)
	at := make([]int64, dims[along])
	for range hlo.Elements(others) {
		e.tick()
		start := w.Next()
		for k := range at {
			at[k] = start + int64(k)*strides[along]
		}
		if err := do(at); err != nil {
			return err
		}
	}
	return nil
}

// sortValues sorts the lines of the operands along a dimension by a comparison
// of scalars. Elements that the comparison does not tell apart keep their order.
func (e *evaluation) sortValues(i *hlo.Instr, a []value) (value, error) {
	out := make([]value, len(a))
	for k, v := range a {
		out[k] = v.clone()
	}
	args := make([]value, 2*len(a))
	var failed error
	err := e.eachLine(a[0].shape.Dims, int(i.Attrs.Dimensions[0]), func(at []int64) error {
		order := slices.Clone(at)
		slices.SortStableFunc(order, func(x, y int64) int {
			for _, way := range [][3]int64{{x, y, -1}, {y, x, 1}} {
				less, err := e.lessByComputation(i.Attrs.ToApply, a, args, way[0], way[1])
				failed = errors.Join(failed, err)
				if less {
					return int(way[2])
				}
			}
			return 0
		})
		for n, from := range order {
			for k := range out {
				move(out[k], at[n], a[k], from)
			}
		}
		return failed
	})
	if err != nil || len(out) == 1 {
		return out[0], err
	}
	return value{shape: i.Shape, tuple: out}, nil
}

// lessByComputation asks the comparison of a sort whether element x of the
// operands comes before element y.
func (e *evaluation) lessByComputation(c *hlo.Computation, a, args []value, x, y int64) (bool, error) {
	e.tick()
	for k, v := range a {
		args[2*k], args[2*k+1] = v.scalar(x), v.scalar(y)
	}
	less, err := e.evaluate(c, args)
	return err == nil && less.ints[0] != 0, err
}

// topK is the k largest elements of each line along the last dimension, the
// largest first, and their indices. Floating-point numbers are in IEEE's total
// order; of equal elements the first comes first.
func (e *evaluation) topK(i *hlo.Instr, a []value) (value, error) {
	k, err := strconv.Atoi(textOf(i, "k"))
	if err != nil {
		return value{}, fmt.Errorf("k=%s is not a number", textOf(i, "k"))
	}
	return e.firstOfLines(i, a[0], k)
}

// isLibraryTopK reports whether i is the call in which XLA:CPU's compiled modules have a
// topk of the largest; k is the last extent of its results.
func isLibraryTopK(i *hlo.Instr) bool {
	if i.Op != hlo.OpCustomCall ||
		textOf(i, "custom_call_target") != `"TopK"` {
		return false
	}
	parts := i.Shape.Tuple
	if len(i.Operands) != 1 || len(parts) != 2 {
		return false
	}
	from := slices.Clone(i.Operands[0].Shape.Dims)
	if len(from) == 0 || parts[0].Rank() != len(from) {
		return false
	}
	last := len(from) - 1
	if parts[0].Dims[last] > from[last] {
		return false
	}
	from[last] = parts[0].Dims[last]
	return slices.Equal(parts[0].Dims, from) &&
		slices.Equal(parts[1].Dims, from)
}

// firstOfLines is topK of an array for this k.
func (e *evaluation) firstOfLines(i *hlo.Instr, in value, k int) (value, error) {
	var err error
	sign := 1
	if textOf(i, "largest") == "false" {
		sign = -1
	}
	out := make([]value, 2)
	for n, s := range i.Shape.Tuple {
		if out[n], err = newValue(s); err != nil {
			return value{}, err
		}
	}
	if in.complexes != nil || len(out) < 2 || out[1].ints == nil && !out[1].empty() {
		return value{}, fmt.Errorf("topk gives elements that have an order, and whole numbers, not %s of %s", i.Shape, in.shape)
	}
	next := int64(0)
	err = e.eachLine(in.shape.Dims, in.shape.Rank()-1, func(at []int64) error {
		order := slices.Clone(at)
		slices.SortStableFunc(order, func(x, y int64) int {
			e.tick()
			return sign * in.compare(y, x)
		})
		for _, from := range order[:min(k, len(order))] {
			move(out[0], next, in, from)
			out[1].ints[next] = from - at[0] // the last dimension is contiguous
			next++
		}
		return nil
	})
	return value{shape: i.Shape, tuple: out}, err
}

// textOf is an attribute that is kept as text; "" where it is not there.
func textOf(i *hlo.Instr, name string) string {
	for _, a := range i.Attrs.Other {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// compare orders two elements: −1 if the first is less.
func (v value) compare(x, y int64) int {
	switch {
	case v.floats != nil:
		return cmp.Compare(totalOrder(v.floats[x]), totalOrder(v.floats[y]))
	case v.shape.DType.IsUnsigned():
		return cmp.Compare(uint64(v.ints[x]), uint64(v.ints[y]))
	}
	return cmp.Compare(v.ints[x], v.ints[y])
}
