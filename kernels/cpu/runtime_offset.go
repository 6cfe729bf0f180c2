package cpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A runtimeOffset step reads the run-time variables of some tiles and computes the
// places that depend on them and on parallel tile ids only. What reads such a
// place comes after it, because it reads the late step's value.
type runtimeOffset struct {
	vars    []int // indices into Program.Runtime
	ready   *value
	exprs   []index.Expr
	targets []int
	run     step
}

// runtimeVars lists the run-time variables of an expression.
func (l *lowering) runtimeVars(e index.Expr) []int {
	var vars []int
	for k, r := range l.p.Runtime {
		if slices.Contains(e.Vars(), r.Var) {
			vars = append(vars, k)
		}
	}
	return vars
}

// awaitRuntime makes the next instruction of b wait for the run-time variables; the
// step that reads them is in the outermost block.
func (b *block) awaitRuntime(vars []int) *runtimeOffset {
	top := b
	for top.outer != nil {
		top = top.outer
	}
	k := slices.IndexFunc(top.runtimeOffsets, func(x *runtimeOffset) bool {
		return slices.Equal(x.vars, vars)
	})
	if k < 0 {
		k = len(top.runtimeOffsets)
		top.runtimeOffsets = append(top.runtimeOffsets, top.newRuntimeOffset(vars))
	}
	if !slices.Contains(b.waitFor, top.runtimeOffsets[k].ready) {
		b.waitFor = append(
			b.waitFor, top.runtimeOffsets[k].ready,
		)
	}
	return top.runtimeOffsets[k]
}

func (b *block) newRuntimeOffset(vars []int) *runtimeOffset {
	x := &runtimeOffset{
		vars:  vars,
		ready: b.l.value("starts", portable.Int64, -1, 1),
	}
	in := &instr{
		name: "starts",
		outs: []*value{x.ready},
	}
	var reads []step
	for _, k := range vars {
		r := b.l.p.Runtime[k]
		v := b.l.results[r.Op][0]
		in.tileArgs = append(in.tileArgs, v)
		reads = append(
			reads,
			clampedStartStep(
				v,
				b.l.p.Ops[r.Op].Instr.Shape.DType,
				len(b.l.p.Space.Dims)+k,
				r.Var.Range().Hi,
			),
		)
	}
	in.run = func(w *worker) {
		for _, f := range reads {
			f(w)
		}
		if x.run != nil {
			x.run(w)
		}
	}
	b.list = append(b.list, in)
	return x
}

// clampedStartStep reads a scalar, clamped to [0, most], into a slot of the tile ids.
func clampedStartStep(v *value, d hlo.DType, slot int, most int64) step {
	switch v.class {
	case portable.Int32:
		return func(w *worker) {
			w.tids[slot] = max(
				0,
				min(int64(first[int32](w, v)), most),
			)
		}
	case portable.Int64:
		unsigned := d == hlo.U64
		return func(w *worker) {
			x := first[int64](w, v)
			if unsigned && x < 0 {
				x = most
			}
			w.tids[slot] = max(0, min(x, most))
		}
	}
	panic(fmt.Sprintf("cpu: a start index of class %s", v.class.String()))
}

// settle compiles the places of late steps.
func (b *block) compileRuntimeOffsets() {
	for _, x := range b.runtimeOffsets {
		x.run = b.l.slotStep(x.exprs, x.targets)
	}
}

// slotVariables lists the variables that expressions of places can have, and where
// their values are in a worker's tile ids.
func (l *lowering) slotVariables() (vars []index.Expr, at []int) {
	for k, d := range l.p.Space.Dims {
		if !constant(d.Tid) {
			vars = append(vars, d.Tid)
			at = append(at, k)
		}
	}
	for k, r := range l.p.Runtime {
		vars = append(vars, r.Var)
		at = append(at, len(l.p.Space.Dims)+k)
	}
	return vars, at
}
