package cpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A class is a type of scratch.
type class uint8

const (
	classF32 class = iota
	classF64
	classInt
)

func classOf(d hlo.DType) class {
	switch {
	case d == hlo.F64:
		return classF64
	case d.IsFloat():
		return classF32
	}
	return classInt
}

// A slot is where the value of an op lies in scratch.
type slot struct {
	class class
	at, n int64
}

func view[T number](w *worker, s slot) []T { return of[T](w)[s.at : s.at+s.n] }

// A lowering turns a concrete program into steps.
type lowering struct {
	p       *symtile.Program
	slots   [][]slot // of each op; a variadic reduce has several
	used    [3]int64 // scratch elements by class
	places  int
	scratch int // of compiled expressions
	scalars int // registers of scalar programs
	err     error
}

// rejected ends the lowering with a reason.
func (l *lowering) reject(op symtile.Op, format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%s (%s): %s", op.Instr.Name, op.Code, fmt.Sprintf(format, args...))
	}
}

func (l *lowering) alloc(c class, n int64) slot {
	s := slot{c, l.used[c], n}
	l.used[c] += (n + 15) &^ 15 // 64-byte lines for float32
	return s
}

// slotsFor lays out the results of every op. Reshapes, slices and copies are
// their argument.
func (l *lowering) slotsFor() {
	l.slots = make([][]slot, len(l.p.Ops))
	for n, op := range l.p.Ops {
		if len(op.Tile) > maxRank {
			l.reject(op, "its rank is %d; at most %d is supported", len(op.Tile), maxRank)
			return
		}
		switch op.Code {
		case "reshape", "slice", "copy":
			l.slots[n] = l.slots[op.Args[0]]
			continue
		case "get-tuple-element":
			all := l.slots[op.Args[0]]
			l.slots[n] = all[op.Instr.Attrs.Index : op.Instr.Attrs.Index+1]
			continue
		}
		for _, s := range kernels.OutputShapes(&hlo.Computation{Root: op.Instr}) {
			if s.DType.IsComplex() || !s.DType.IsArray() {
				l.reject(op, "%s is not computed on the CPU", s)
				return
			}
			l.slots[n] = append(l.slots[n], l.alloc(classOf(s.DType), op.Tile.Elements()))
		}
	}
}

// A level collects the steps, and the places that change, of the body of the
// program or of a loop.
type level struct {
	l       *lowering
	exprs   []symtile.Expr
	targets []int // the place of each expression
	steps   []step
}

// box gives a tile its places at this level.
func (v *level) box(t symtile.Tile) box {
	b := box{sizes: t.Sizes(), strides: make([]int64, len(t)), at: v.l.places}
	for k, d := range t {
		b.strides[k], _ = d.Stride.Value()
		v.exprs = append(v.exprs, d.Offset, d.Lower, d.Bound)
		v.targets = append(v.targets, b.at+3*k, b.at+3*k+1, b.at+3*k+2)
	}
	v.l.places += 3 * len(t)
	return b
}

func (v *level) add(s step) { v.steps = append(v.steps, s) }

// lower makes the steps of a level; closers are accumulated at its end.
func (l *lowering) lower(body []symtile.Step, closers []int, roots []symtile.Root) []step {
	v := &level{l: l}
	for _, s := range body {
		if s.Loop == nil {
			v.op(s.Op)
		} else {
			v.loop(s.Loop)
		}
	}
	for _, c := range closers {
		v.accumulate(c)
	}
	for _, r := range roots {
		v.store(r)
	}
	if len(v.exprs) == 0 {
		return v.steps
	}
	return append([]step{v.locate()}, v.steps...)
}

// locate makes the step that computes the level's places from the tile ids.
func (v *level) locate() step {
	vars, dims := v.l.tids()
	code, err := symtile.Compile(vars, v.exprs)
	if err != nil {
		v.l.err = err
		return func(*worker) {}
	}
	n, m := len(dims), len(v.exprs)
	v.l.scratch = max(v.l.scratch, n+m+code.ScratchLen())
	targets := v.targets
	return func(w *worker) {
		vals, out := w.eval[:n], w.eval[n:n+m]
		for k, d := range dims {
			vals[k] = w.tids[d]
		}
		code.Eval(vals, out, w.eval[n+m:])
		for k, t := range targets {
			w.places[t] = out[k]
		}
	}
}

// tids lists the tile ids that vary, and their dimensions.
func (l *lowering) tids() (vars []symtile.Expr, dims []int) {
	for k, d := range l.p.Space.Dims {
		if _, fixed := d.Tid.Value(); !fixed {
			vars, dims = append(vars, d.Tid), append(dims, k)
		}
	}
	return vars, dims
}

// loop runs its body for every combination of its tile ids, the last fastest.
func (v *level) loop(loop *symtile.Loop) {
	for _, c := range loop.Closers {
		v.initialise(c)
	}
	body := v.l.lower(loop.Body, loop.Closers, nil)
	dims := loop.Dims
	trips := make([]int64, len(dims))
	for k, d := range dims {
		trips[k], _ = v.l.p.Space.Dims[d].Tiles.Value()
	}
	v.add(func(w *worker) {
		for _, d := range dims {
			w.tids[d] = 0
		}
		for {
			for _, s := range body {
				s(w)
			}
			k := len(dims) - 1
			for ; k >= 0; k-- {
				if w.tids[dims[k]]++; w.tids[dims[k]] < trips[k] {
					break
				}
				w.tids[dims[k]] = 0
			}
			if k < 0 {
				return
			}
		}
	})
	for _, c := range loop.Closers {
		v.finish(c)
	}
}

// op lowers one op at this level.
func (v *level) op(n int) {
	op := v.l.p.Ops[n]
	if v.l.err != nil {
		return
	}
	switch op.Code {
	case "reshape", "slice", "copy", "get-tuple-element":
	case "reduce", "dot":
		v.initialise(n)
		v.accumulate(n)
		v.finish(n)
	default:
		v.value(n, op)
	}
}

// value lowers an op that is not an alias or a closer, by its scratch type.
func (v *level) value(n int, op symtile.Op) {
	switch v.l.slots[n][0].class {
	case classF32:
		lowerValue[float32](v, n, op)
	case classF64:
		lowerValue[float64](v, n, op)
	case classInt:
		lowerValue[int64](v, n, op)
	}
}

// rounding appends the step that brings f32 scratch to the element type.
func (v *level) rounding(s slot, d hlo.DType) {
	if s.class != classF32 {
		return
	}
	if loop := round(d); loop != nil {
		v.add(func(w *worker) { x := view[float32](w, s); loop(x, x) })
	}
}

func lowerValue[T number](v *level, n int, op symtile.Op) {
	s := v.l.slots[n][0]
	d := op.Instr.Shape.DType
	switch op.Code {
	case "parameter":
		load[T](v, op, s)
	case "constant":
		constant[T](v, op, s)
	case "iota":
		counting[T](v, op, s)
	case "broadcast", "transpose", "reverse":
		g := v.l.gatherFor(op)
		from := v.l.slots[op.Args[0]][0]
		v.add(func(w *worker) { run(g, view[T](w, s), view[T](w, from)) })
	case "concatenate":
		concatenate[T](v, op, s)
	case "pad":
		pad[T](v, op, s)
	case "compare", "select", "clamp", "convert", "is-finite":
		special[T](v, op, s)
		v.rounding(s, d)
	default:
		pointwise[T](v, op, s)
		v.rounding(s, d)
	}
}

func load[T number](v *level, op symtile.Op, s slot) {
	shape := op.Instr.Shape
	a := newAccess(v.box(op.Tile), s, shape, reader[T](shape.DType))
	param := op.Instr.Attrs.Param
	v.add(func(w *worker) { a.each(w, w.in[param].Data, true) })
}

// store writes a root's tile to its output, in the programs that own it.
func (v *level) store(r symtile.Root) {
	op := v.l.p.Ops[r.Op]
	if s := v.l.slots[r.Op][0]; v.l.err == nil {
		switch s.class {
		case classF32:
			storeAs[float32](v, r, op, s)
		case classF64:
			storeAs[float64](v, r, op, s)
		case classInt:
			storeAs[int64](v, r, op, s)
		}
	}
}

func storeAs[T number](v *level, r symtile.Root, op symtile.Op, s slot) {
	shape := op.Instr.Shape
	a := newAccess(v.box(op.Tile), s, shape, writer[T](shape.DType))
	once, output := r.Once, r.Output
	v.add(func(w *worker) {
		for _, d := range once {
			if w.tids[d] != 0 {
				return
			}
		}
		a.each(w, w.out[output].Data, false)
	})
}

func reader[T number](d hlo.DType) transfer[T] {
	switch classOf(d) {
	case classF32:
		return any(floatReader(d)).(transfer[T])
	case classF64:
		return copyIn[T]
	}
	return any(intReaders[d]).(transfer[T])
}

func writer[T number](d hlo.DType) transfer[T] {
	switch classOf(d) {
	case classF32:
		return any(floatWriter(d)).(transfer[T])
	case classF64:
		return copyOut[T]
	}
	return any(intWriters[d]).(transfer[T])
}

// constant copies the part of the literal that the tile holds.
func constant[T number](v *level, op symtile.Op, s slot) {
	lit := op.Instr.Literal
	if lit == nil || lit.Elided {
		v.l.reject(op, "its value was left out of the text ({...})")
		return
	}
	values := literal[T](lit)
	b := v.box(op.Tile)
	memory := rowMajor(lit.Shape.Dims)
	a := &access[T]{box: b, slot: s, memory: memory, transfer: func(scratch []T, _ []byte, at, stride int64) {
		for k := range scratch {
			scratch[k] = values[at]
			at += stride
		}
	}}
	v.add(func(w *worker) { a.each(w, nil, true) })
}

func literal[T number](l *hlo.Literal) []T {
	out := make([]T, 0, len(l.Ints)+len(l.Floats))
	for _, x := range l.Ints {
		out = append(out, T(x))
	}
	for _, x := range l.Floats {
		out = append(out, T(kernels.RoundFloat(l.Shape.DType, x)))
	}
	return out
}

func counting[T number](v *level, op symtile.Op, s slot) {
	b := v.box(op.Tile)
	d := int(op.Instr.Attrs.IotaDim)
	size, stride := b.sizes[d], b.strides[d]
	inner := product(b.sizes[d+1:])
	dtype := op.Instr.Shape.DType
	v.add(func(w *worker) {
		out, offset := view[T](w, s), b.offset(w, d)
		for k := range out {
			x := offset + int64(k)/inner%size*stride
			if !dtype.IsFloat() {
				x = kernels.WrapInt(dtype, x)
			}
			out[k] = T(x)
		}
	})
	v.rounding(s, dtype)
}

// gatherFor describes a broadcast, transpose or reverse of scratch.
func (l *lowering) gatherFor(op symtile.Op) *gather {
	from := rowMajor(l.p.Ops[op.Args[0]].Tile.Sizes())
	g := &gather{sizes: op.Tile.Sizes(), strides: make([]int64, len(op.Tile))}
	switch op.Code {
	case "broadcast":
		for k, d := range op.Instr.Attrs.Dimensions {
			g.strides[d] = from[k]
		}
	case "transpose":
		for k, d := range op.Perm {
			g.strides[k] = from[d]
		}
	case "reverse":
		copy(g.strides, from)
		for _, d := range op.Instr.Attrs.Dimensions {
			g.start += (g.sizes[d] - 1) * from[d]
			g.strides[d] = -from[d]
		}
	}
	return g
}

func concatenate[T number](v *level, op symtile.Op, s slot) {
	for _, a := range op.Args {
		p := &placement{source: v.box(v.l.p.Ops[a].Tile), sizes: op.Tile.Sizes(), every: ones(len(op.Tile)), first: func(*worker, int) int64 { return 0 }}
		from := v.l.slots[a][0]
		v.add(func(w *worker) { place(w, p, view[T](w, s), view[T](w, from)) })
	}
}

func ones(n int) []int64 {
	v := make([]int64, n)
	for k := range v {
		v[k] = 1
	}
	return v
}

// pad fills with the value and places the operand. Element i of dimension d of
// the operand's tile is index low + (interior+1)·(offset + i·stride) of the result.
func pad[T number](v *level, op symtile.Op, s slot) {
	source, out := v.box(v.l.p.Ops[op.Args[0]].Tile), v.box(op.Tile)
	padding := op.Instr.Attrs.Padding
	p := &placement{source: source, sizes: out.sizes, every: make([]int64, len(padding))}
	for d, x := range padding {
		p.every[d] = 1
		if x.Interior > 0 {
			p.every[d] = x.Interior + 1
		}
	}
	p.first = func(w *worker, d int) int64 {
		x := padding[d]
		if x.Interior == 0 {
			return 0
		}
		return x.Low + (x.Interior+1)*source.offset(w, d) - out.offset(w, d)
	}
	from, value := v.l.slots[op.Args[0]][0], v.l.slots[op.Args[1]][0]
	v.add(func(w *worker) {
		dst, fill := view[T](w, s), view[T](w, value)[0]
		for k := range dst {
			dst[k] = fill
		}
		place(w, p, dst, view[T](w, from))
	})
}

func pointwise[T number](v *level, op symtile.Op, s slot) {
	d := op.Instr.Shape.DType
	args := make([]slot, len(op.Args))
	for k, a := range op.Args {
		args[k] = v.l.slots[a][0]
	}
	if f := unary[T](op.Code, d); f != nil && len(args) == 1 && args[0].class == s.class {
		v.add(func(w *worker) { f(view[T](w, s), view[T](w, args[0])) })
		return
	}
	if f := binary[T](op.Code, d); f != nil && len(args) == 2 && args[0].class == s.class {
		v.add(func(w *worker) { f(view[T](w, s), view[T](w, args[0]), view[T](w, args[1])) })
		return
	}
	v.l.reject(op, "the CPU backend does not compute this operation on %s", d)
}

// special lowers operations whose operands differ in type.
func special[T number](v *level, op symtile.Op, s slot) {
	args := make([]slot, len(op.Args))
	for k, a := range op.Args {
		args[k] = v.l.slots[a][0]
	}
	from := op.Instr.Operands[0].Shape.DType
	switch op.Code {
	case "select":
		v.add(func(w *worker) {
			selectTile(view[int64](w, args[0]), view[T](w, s), view[T](w, args[1]), view[T](w, args[2]))
		})
	case "clamp":
		v.add(func(w *worker) {
			clampTile(view[T](w, s), view[T](w, args[0]), view[T](w, args[1]), view[T](w, args[2]))
		})
		if from == hlo.U64 {
			v.l.reject(op, "clamp of u64 is not computed on the CPU")
		}
	case "convert":
		switch args[0].class {
		case classF32:
			converting[float32, T](v, s, args[0], op.Instr.Shape.DType, from)
		case classF64:
			converting[float64, T](v, s, args[0], op.Instr.Shape.DType, from)
		case classInt:
			converting[int64, T](v, s, args[0], op.Instr.Shape.DType, from)
		}
	case "compare":
		v.compare(op, s, args)
	default:
		v.l.reject(op, "the CPU backend does not compute this operation")
	}
}

func converting[S, T number](v *level, to, from slot, d, src hlo.DType) {
	f := convert[S, T](d, src)
	v.add(func(w *worker) { f(view[T](w, to), view[S](w, from)) })
}

func selectTile[T number](p []int64, dst, x, y []T) {
	if len(p) == 1 && len(dst) != 1 {
		if p[0] == 0 {
			x = y
		}
		copy(dst, x)
		return
	}
	for k, c := range p {
		if dst[k] = y[k]; c != 0 {
			dst[k] = x[k]
		}
	}
}

func clampTile[T number](dst, lo, x, hi []T) {
	for k, v := range x {
		dst[k] = min(max(v, lo[min(k, len(lo)-1)]), hi[min(k, len(hi)-1)])
	}
}

func (v *level) compare(op symtile.Op, s slot, args []slot) {
	d := op.Instr.Operands[0].Shape.DType
	if !d.IsFloat() {
		f := kernels.CompareInts(op.Instr, d)
		v.add(func(w *worker) { compareTile(view[int64](w, s), view[int64](w, args[0]), view[int64](w, args[1]), f) })
		return
	}
	f := kernels.CompareFloats(op.Instr)
	if args[0].class == classF64 {
		v.add(func(w *worker) {
			compareTile(view[int64](w, s), view[float64](w, args[0]), view[float64](w, args[1]), f)
		})
		return
	}
	g := func(x, y float32) bool { return f(float64(x), float64(y)) }
	v.add(func(w *worker) {
		compareTile(view[int64](w, s), view[float32](w, args[0]), view[float32](w, args[1]), g)
	})
}

func compareTile[T number](dst []int64, x, y []T, f func(x, y T) bool) {
	for k, v := range x {
		if dst[k] = 0; f(v, y[k]) {
			dst[k] = 1
		}
	}
}

// indexOf is the place of n in dims, −1 when absent.
func indexOf(dims []int64, n int) int { return slices.Index(dims, int64(n)) }
