package reference

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Deviations estimates how far each element of each output, in logical order,
// moves when every rounding goes another way. It is the root mean square
// difference from the reference over so many evaluations in which each result of
// arithmetic is off by half a unit to a unit in its last place, and each term of a sum
// of k terms by up to √k units of the type that sums are kept in (Monte Carlo
// arithmetic: Parker, Pierce, Eggert, IEEE CiSE 2(4), 2000). Where terms
// cancel, or a divisor is next to zero, that is more than a bound by the
// largest result allows. Decisions by comparison and by rounding to whole
// numbers are those of the reference.
func Deviations(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer, seed int64, evaluations int,
) (sums [][]float64, err error) {
	e := newEvaluation(ctx)
	defer e.ended(&err)
	args := make([]value, len(in))
	for k, b := range in {
		v, err := e.load(b)
		if err != nil {
			return nil, err
		}
		args[k] = v
	}
	for n := 0; n < evaluations; {
		k := min(together(c), evaluations-n)
		p := newPerturbed(e, seed, n, k)
		plain, moved, err := p.evaluate(
			c, args,
			slices.Repeat([][]value{args}, k),
		)
		if err != nil {
			return nil, err
		}
		for _, m := range moved {
			sums = addSquares(
				sums, plain.leaves(),
				m.leaves(),
			)
		}
		n += k
	}
	for _, s := range sums {
		for k := range s {
			s[k] = math.Sqrt(
				s[k] / float64(evaluations),
			)
		}
	}
	return sums, nil
}

// togetherElements bounds the values, of 8 bytes each, that evaluations at the same time
// keep.
const togetherElements = 32 << 20

// together is the number of evaluations beside one plain one: several, if their values
// take little memory, so that the plain one is not repeated for each of them.
func together(c *hlo.Computation) int {
	n := int64(1)
	for _, i := range c.Instrs {
		for _, s := range i.Shape.Arrays() {
			n += s.Elements()
		}
	}
	return int(max(1, togetherElements/n))
}

// addSquares adds the squares of finite differences to sums, of which there is
// one a result. Differences of infinities and NaN are left out: such elements
// have to agree as they are.
func addSquares(sums [][]float64, plain, moved []value) [][]float64 {
	if sums == nil {
		sums = make([][]float64, len(plain))
	}
	for n, v := range plain {
		if sums[n] == nil {
			sums[n] = make(
				[]float64,
				v.shape.Elements(),
			)
		}
		for k, x := range v.floats {
			if d := moved[n].floats[k] - x; d-d == 0 {
				sums[n][k] += d * d
			}
		}
	}
	return sums
}

// Perturbed evaluations round at random, beside a plain one.
type perturbed struct {
	run *evaluation
	// A source of seeds for each evaluation.
	seeds []*rand.Rand
}

// newPerturbed are k evaluations, the first of which is number n of those with a seed.
func newPerturbed(e *evaluation, seed int64, n, k int) perturbed {
	p := perturbed{run: e}
	for i := range k {
		p.seeds = append(
			p.seeds,
			rand.New(
				rand.NewPCG(uint64(seed), uint64(n+i)),
			),
		)
	}
	return p
}

// evaluate evaluates a computation on plain arguments, and on those of each perturbed
// evaluation.
func (p perturbed) evaluate(
	c *hlo.Computation, plain []value, moved [][]value,
) (value, []value, error) {
	type values struct {
		plain value
		moved []value
	}
	all := make(
		map[*hlo.Instr]values,
		len(c.Instrs),
	)
	for _, i := range c.Instrs {
		a := make([]value, len(i.Operands))
		b := make([][]value, len(p.seeds))
		for n := range b {
			b[n] = make([]value, len(i.Operands))
		}
		for k, o := range i.Operands {
			a[k] = all[o].plain
			for n := range b {
				b[n][k] = all[o].moved[n]
			}
		}
		if i.Op == hlo.OpParameter {
			a = plain[i.Attrs.Param:][:1]
			for n := range b {
				b[n] = moved[n][i.Attrs.Param:][:1]
			}
		}
		v, w, err := p.instruction(i, a, b)
		if err != nil {
			return value{}, nil, err
		}
		all[i] = values{v, w}
	}
	root := all[c.Root]
	return root.plain, root.moved, nil
}

// instruction evaluates one instruction on the operands of each evaluation.
// Discontinuous operations, such as comparisons, give the plain result: their decisions
// are not to be perturbed.
func (p perturbed) instruction(
	i *hlo.Instr, a []value, b [][]value,
) (v value, w []value, err error) {
	if i.Op == hlo.OpFusion || i.Op == hlo.OpCall {
		return p.evaluate(i.Attrs.Calls, a, b)
	}
	w = make([]value, len(b))
	if v, err = p.run.instruction(i, a); err != nil {
		return v, nil, err
	}
	for n := range b {
		switch {
		case i.Op.Has(hlo.Discontinuous):
			w[n] = v
		default:
			w[n], err = p.moved(n, i, v, b[n])
		}
		if err != nil {
			return v, nil, err
		}
	}
	return v, w, nil
}

// moved is the result of an instruction in perturbed evaluation n, where v is the plain
// one. The terms of sums are perturbed before, because the order of a sum is not known.
func (p perturbed) moved(n int, i *hlo.Instr, v value, b []value) (value, error) {
	if k := termsSummed(i); k > 1 {
		b = append(
			[]value{p.perturb(
				n, b[0],
				math.Sqrt(k)*Epsilon(
					AccumulatorOf(b[0].shape.DType),
				),
			)},
			b[1:]...,
		)
	}
	w, err := p.run.instruction(i, b)
	if err != nil {
		return w, err
	}
	return p.propagate(n, i, v, w), nil
}

// termsSummed is the number of terms that an element of i is the sum of.
func termsSummed(i *hlo.Instr) float64 {
	switch i.Op {
	case hlo.OpDot, hlo.OpScaledDot, hlo.OpConvolution:
		return Terms(i)
	case hlo.OpReduce, hlo.OpReduceWindow:
		op := i.Attrs.ToApply.Root.Op
		if op != hlo.OpMaximum && op != hlo.OpMinimum {
			return Terms(i)
		}
	}
	return 1
}

// propagate takes whole numbers from the plain result v, and perturbs what was
// computed in w.
func (p perturbed) propagate(n int, i *hlo.Instr, v, w value) value {
	if v.tuple != nil {
		t := value{
			shape: v.shape,
			tuple: make([]value, len(v.tuple)),
		}
		for k := range v.tuple {
			t.tuple[k] = p.propagate(
				n, i, v.tuple[k], w.tuple[k],
			)
		}
		return t
	}
	computed := !i.Op.Has(hlo.KeepsMagnitude) &&
		i.Op != hlo.OpParameter && i.Op != hlo.OpConstant &&
		i.Op != hlo.OpTuple && i.Op != hlo.OpGetTupleElement
	switch {
	case v.floats == nil:
		return v
	case !computed:
		return w
	}
	return p.perturb(
		n, w,
		Epsilon(v.shape.DType),
	)
}

// perturbedBlock is the number of elements that one sequence of random numbers is for, so
// that they do not depend on the cores among which an array is divided.
const perturbedBlock = 1 << 13

// perturb is v with each number off by half of eps to eps times itself, up or down. What
// is off by less may be rounded back by an exact operation that follows, and if that
// happens in every evaluation, the element looks as if no rounding moved it. Infinities
// stay, so that the mask of a softmax does not make its row NaN.
func (p perturbed) perturb(n int, v value, eps float64) value {
	if v.floats == nil {
		return v
	}
	w := value{
		shape:  v.shape,
		floats: make([]float64, len(v.floats)),
	}
	seed := p.seeds[n].Uint64()
	blocks := (int64(len(v.floats)) + perturbedBlock - 1) / perturbedBlock
	p.run.parallel(blocks, perturbedBlock, func(lo, hi int64) {
		for ; lo < hi; lo++ {
			from := lo * perturbedBlock
			to := min(
				from+perturbedBlock,
				int64(len(v.floats)),
			)
			perturbBlock(
				w.floats[from:to],
				v.floats[from:to], eps,
				seed, uint64(lo),
			)
		}
	})
	return w
}

// perturbBlock perturbs one block of elements.
func perturbBlock(to, from []float64, eps float64, seed, block uint64) {
	rng := rand.New(rand.NewPCG(seed, block))
	for k, x := range from {
		u := rng.Float64() - 0.5
		to[k] = x
		if !math.IsInf(x, 0) {
			to[k] += x * eps * (u + math.Copysign(0.5, u))
		}
	}
}
