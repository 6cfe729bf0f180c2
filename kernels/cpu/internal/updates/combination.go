package updates

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Combination combines elements of a result with those of updates.
type Combination[T portable.Number] func(p Pair[T])

// A Pair is elements that are combined.
type Pair[T portable.Number] struct {
	Dst, Src []T                // From the first elements on.
	N        int64              // How many there are.
	To, From int64              // The steps to the next ones.
	Args     *vector.ReduceArgs // For machine code.
}

// dense reports whether the elements are neighbours in both.
func (p Pair[T]) dense() bool {
	return p.To == 1 && p.From == 1
}

// CombinationOf is how a scatter combines elements of the class of T; nil where there is no
// code. Only with jit is machine code called.
func CombinationOf[T portable.Number](i *hlo.Instr, jit bool) Combination[T] {
	monoid, ok := i.Attrs.ToApply.Monoid()
	adds := monoid == hlo.OpAdd && i.Shape.DType != hlo.Pred
	switch {
	case !ok:
		return overwrite[T]
	case adds && jit && portable.ClassFor[T]() == portable.Float32:
		return any(Combination[float32](addVectors)).(Combination[T])
	case adds:
		return add[T]
	}
	// The others are those of elementwise operations.
	into := portable.BinaryOf[T](monoid, i.Shape.DType)
	if into == nil {
		return nil
	}
	return func(p Pair[T]) {
		if p.dense() {
			dst := p.Dst[:p.N]
			into(dst, dst, p.Src[:p.N])
			return
		}
		for k := range p.N {
			// One element at a time.
			dst := p.Dst[k*p.To:][:1]
			into(dst, dst, p.Src[k*p.From:][:1])
		}
	}
}

// overwrite keeps the updates.
func overwrite[T portable.Number](p Pair[T]) {
	if p.dense() {
		copy(p.Dst[:p.N], p.Src)
		return
	}
	for k := range p.N {
		p.Dst[k*p.To] = p.Src[k*p.From]
	}
}

// add adds the updates.
func add[T portable.Number](p Pair[T]) {
	if p.dense() {
		sums := p.Dst[:p.N]
		for k, x := range p.Src[:p.N] {
			sums[k] += x
		}
		return
	}
	for k := range p.N {
		p.Dst[k*p.To] += p.Src[k*p.From]
	}
}

// vectorSum is the elements of a run from which machine code adds them.
const vectorSum = 16

// addVectors adds the updates, by machine code where they are many neighbours. The bits are
// those of add.
func addVectors(p Pair[float32]) {
	if p.N < vectorSum ||
		p.N > vector.MaxCallLength || !p.dense() {
		add(p)
		return
	}
	*p.Args = vector.ReduceArgs{
		N: p.N,
		X: &p.Src[:p.N][0],
		Y: &p.Dst[:p.N][0],
	}
	code, _ := vector.ReduceRoutines(hlo.OpAdd)
	code[1].Call(unsafe.Pointer(p.Args)) // element by element
}
