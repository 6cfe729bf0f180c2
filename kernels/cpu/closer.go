package cpu

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A closer is a reduce or dot in three parts: begin before its loop, accumulate
// at the end of every iteration, end after it. Without a loop the three follow
// each other.
type closer struct {
	name       string
	outs       []*value // what it accumulates into
	temps      []*value // its own while it accumulates
	full       []*value // what it accumulates
	starts     []*value // what it begins from
	begin, end []step
	accumulate step
	fold       *reduction           // set: machine code can accumulate
	fresh      func(w *worker) bool // nothing was accumulated yet, and outs hold anything; nil: they hold where they begin
}

// closer lowers op n; what it accumulates is described where b begins.
func (b *block) closer(n int) *closer { return b.closerAs(n, b.l.p.Ops[n]) }

// closerAs is closer for op n with other arguments.
func (b *block) closerAs(n int, op symtile.Op) *closer {
	c := &closer{name: string(op.Code)}
	shapes := []hlo.Shape{op.Instr.Shape}
	if op.Instr.Shape.DType == hlo.Tuple {
		shapes = op.Instr.Shape.Tuple
	}
	for k, s := range shapes {
		name := fmt.Sprintf("%%%d", n)
		if len(shapes) > 1 {
			name = fmt.Sprintf("%%%d.%d", n, k)
		}
		c.outs = append(c.outs, b.l.value(name, classOf(s.DType), n, op.Tile.Elements()))
	}
	b.l.of[n] = c.outs
	if op.Code == hlo.OpDot {
		b.dot(op, c)
	} else {
		b.reduce(op, c)
	}
	for k, s := range shapes {
		c.bound(op, k, s.DType)
	}
	if s := b.l.split; s != nil && s.op == n && c.fold != nil {
		c.splitsFold(s, c.outs[0], c.fold.monoid)
	}
	return c
}

// bound adds what begins and ends the accumulation of result k.
func (c *closer) bound(op symtile.Op, k int, d hlo.DType) {
	var start *value
	if op.Code == hlo.OpReduce {
		start = c.starts[k]
	}
	switch c.outs[k].class {
	case classF32:
		boundAs[float32](c, c.outs[k], start, d)
	case classF64:
		boundAs[float64](c, c.outs[k], start, d)
	case classI32:
		boundAs[int32](c, c.outs[k], start, d)
	case classI64:
		boundAs[int64](c, c.outs[k], start, d)
	}
}

func boundAs[T number](c *closer, v, start *value, d hlo.DType) {
	if start != nil {
		c.begin = append(c.begin, func(w *worker) { spread(whole[T](w, v), first[T](w, start)) })
	}
	if fit := fitting[T](d); fit != nil {
		c.end = append(c.end, func(w *worker) { x := whole[T](w, v); fit(x, x) })
	}
}

// close lowers a closer without a loop.
func (b *block) close(n int) *closer {
	c := b.closer(n)
	all := append(append(c.begin, c.accumulate), c.end...)
	if c.fold != nil {
		c.fold.start, c.fold.begin = c.starts[0], c.begin
	}
	b.add(&instr{
		name: c.name, fold: c.fold, outs: append(c.temps, c.outs...), full: append(c.full, c.starts...),
		run: func(w *worker) {
			for _, f := range all {
				f(w)
			}
		},
	})
	return c
}

// accumulateIn lowers the closer of a loop, whose body b is.
func (b *block) accumulateIn(n int, in *instr) *closer { return b.accumulateAs(n, b.l.p.Ops[n], in) }

func (b *block) accumulateAs(n int, op symtile.Op, in *instr) *closer {
	c := b.closerAs(n, op)
	if b.l.err != nil {
		return c
	}
	in.outs = append(in.outs, c.outs...)
	in.full = append(in.full, c.starts...)
	in.loop.before = append(in.loop.before, c.begin...)
	in.loop.after = append(in.loop.after, c.end...)
	b.add(&instr{name: "accumulate " + c.name, outs: c.temps, full: append(c.full, c.outs...), fold: c.fold, run: c.accumulate})
	return c
}
