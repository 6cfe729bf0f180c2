package cpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A late step reads the run-time variables of some tiles and computes the
// places that depend on them and on parallel tile ids only. What reads such a
// place comes after it, because it reads the late step's value.
type late struct {
	vars    []int // indices into Program.Runtime
	ready   *value
	exprs   []symtile.Expr
	targets []int
	run     step
}

// runtimeIn lists the run-time variables of an expression.
func (l *lowering) runtimeIn(e symtile.Expr) []int {
	var vars []int
	for k, r := range l.p.Runtime {
		if slices.Contains(e.Vars(), r.Var) {
			vars = append(vars, k)
		}
	}
	return vars
}

// after makes the next instruction of b wait for the run-time variables; the
// step that reads them is in the outermost block.
func (b *block) after(vars []int) *late {
	top := b
	for top.outer != nil {
		top = top.outer
	}
	k := slices.IndexFunc(top.lates, func(x *late) bool { return slices.Equal(x.vars, vars) })
	if k < 0 {
		k = len(top.lates)
		top.lates = append(top.lates, top.late(vars))
	}
	if !slices.Contains(b.pending, top.lates[k].ready) {
		b.pending = append(b.pending, top.lates[k].ready)
	}
	return top.lates[k]
}

func (b *block) late(vars []int) *late {
	x := &late{vars: vars, ready: b.l.value("starts", classI64, -1, 1)}
	in := &instr{name: "starts", outs: []*value{x.ready}}
	var reads []step
	for _, k := range vars {
		r := b.l.p.Runtime[k]
		v := b.l.of[r.Op][0]
		in.full = append(in.full, v)
		reads = append(reads, startStep(v, b.l.p.Ops[r.Op].Instr.Shape.DType, len(b.l.p.Space.Dims)+k, r.Var.Range().Hi))
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

// startStep reads a scalar, clamped to [0, most], into a slot of the tile ids.
func startStep(v *value, d hlo.DType, slot int, most int64) step {
	switch v.class {
	case classI32:
		return func(w *worker) { w.tids[slot] = max(0, min(int64(first[int32](w, v)), most)) }
	case classI64:
		unsigned := d == hlo.U64
		return func(w *worker) {
			x := first[int64](w, v)
			if unsigned && x < 0 {
				x = most
			}
			w.tids[slot] = max(0, min(x, most))
		}
	}
	panic(fmt.Sprintf("cpu: a start index of class %s", classNames[v.class]))
}

// settle compiles the places of late steps.
func (b *block) settleLate() {
	for _, x := range b.lates {
		x.run = b.l.locate(x.exprs, x.targets)
	}
}

// slots lists the variables that expressions of places can have, and where
// their values are in a worker's tile ids.
func (l *lowering) slots() (vars []symtile.Expr, at []int) {
	for k, d := range l.p.Space.Dims {
		if !constant(d.Tid) {
			vars, at = append(vars, d.Tid), append(at, k)
		}
	}
	for k, r := range l.p.Runtime {
		vars, at = append(vars, r.Var), append(at, len(l.p.Space.Dims)+k)
	}
	return vars, at
}
