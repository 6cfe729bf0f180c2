package reference

import (
	"context"
	"math"
	"math/rand/v2"

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
	for n := range evaluations {
		p := perturbed{
			e, rand.New(rand.NewPCG(uint64(seed), uint64(n))),
		}
		plain, moved, err := p.evaluate(c, args, args)
		if err != nil {
			return nil, err
		}
		sums = addSquares(sums, plain.leaves(), moved.leaves())
	}
	for _, s := range sums {
		for k := range s {
			s[k] = math.Sqrt(s[k] / float64(evaluations))
		}
	}
	return sums, nil
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
			sums[n] = make([]float64, v.shape.Elements())
		}
		for k, x := range v.floats {
			if d := moved[n].floats[k] - x; d-d == 0 {
				sums[n][k] += d * d
			}
		}
	}
	return sums
}

// A perturbed evaluation rounds at random, beside a plain evaluation.
type perturbed struct {
	run *evaluation
	rng *rand.Rand
}

// evaluate evaluates a computation on plain and on perturbed arguments.
func (p perturbed) evaluate(
	c *hlo.Computation, plain, moved []value,
) (value, value, error) {
	type pair struct{ plain, moved value }
	values := make(map[*hlo.Instr]pair, len(c.Instrs))
	for _, i := range c.Instrs {
		a := make([]value, len(i.Operands))
		b := make([]value, len(i.Operands))
		for k, o := range i.Operands {
			a[k], b[k] = values[o].plain, values[o].moved
		}
		if i.Op == hlo.OpParameter {
			a = plain[i.Attrs.Param:][:1]
			b = moved[i.Attrs.Param:][:1]
		}
		v, w, err := p.instruction(i, a, b)
		if err != nil {
			return value{}, value{}, err
		}
		values[i] = pair{v, w}
	}
	root := values[c.Root]
	return root.plain, root.moved, nil
}

// instruction evaluates one instruction on both. The terms of sums are
// perturbed before, because the order of a sum is not known. Discontinuous
// operations, such as comparisons, give the plain result: their decisions are
// not to be perturbed.
func (p perturbed) instruction(
	i *hlo.Instr, a, b []value,
) (v, w value, err error) {
	if i.Op == hlo.OpFusion || i.Op == hlo.OpCall {
		return p.evaluate(i.Attrs.Calls, a, b)
	}
	v, err = p.run.instruction(i, a)
	if err != nil || i.Op.Has(hlo.Discontinuous) {
		return v, v, err
	}
	if k := termsSummed(i); k > 1 {
		b = append(
			[]value{p.perturb(
				b[0],
				math.Sqrt(k)*Epsilon(AccumulatorOf(b[0].shape.DType)),
			)},
			b[1:]...,
		)
	}
	if w, err = p.run.instruction(i, b); err != nil {
		return v, w, err
	}
	return v, p.propagate(i, v, w), nil
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
func (p perturbed) propagate(i *hlo.Instr, v, w value) value {
	if v.tuple != nil {
		t := value{
			shape: v.shape,
			tuple: make([]value, len(v.tuple)),
		}
		for k := range v.tuple {
			t.tuple[k] = p.propagate(
				i, v.tuple[k], w.tuple[k],
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
	return p.perturb(w, Epsilon(v.shape.DType))
}

// perturb is v with each number off by half of eps to eps times itself, up or down. What
// is off by less may be rounded back by an exact operation that follows, and if that
// happens in every evaluation, the element looks as if no rounding moved it.
func (p perturbed) perturb(v value, eps float64) value {
	if v.floats == nil {
		return v
	}
	w := value{
		shape:  v.shape,
		floats: make([]float64, len(v.floats)),
	}
	for k, x := range v.floats {
		p.run.tick()
		u := p.rng.Float64() - 0.5
		w.floats[k] = x + x*eps*(u+math.Copysign(0.5, u))
	}
	return w
}
