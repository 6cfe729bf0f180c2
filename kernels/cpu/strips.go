package cpu

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Elementwise instructions compute strips, pieces of a tile of some hundred elements.
// Between the instructions of a group, the strips of intermediate values are in the
// first-level cache, or, where machine code does a run of instructions as one
// function, in registers. A strip function is a loop over vectors of the chain of
// all operations of its run.

// lowerElementwise lowers an elementwise op to an instruction that computes
// strips.
func lowerElementwise[T portable.Number](b *block, n int, op symtile.Op) {
	op = b.l.squared(op)
	e := b.l.elements(n)
	i := &instr{name: string(op.Code), n: e}
	for k := range op.Args {
		i.stripArgs = append(
			i.stripArgs, elementwiseOperand(b, op, k, e),
		)
	}
	v := b.l.result(n)
	i.outs = []*value{v}
	i.pointwise = &pointwiseOp{
		instr: op.Instr,
		out:   v,
		args:  i.stripArgs,
		below: b.l.below[n],
	}
	v.narrow = b.l.multipliedAsShort(n)
	i.strip = elementwiseStrip[T](op.Instr, v, i.stripArgs)
	if i.strip == nil {
		b.l.refuse(
			op, "the CPU backend does not compute this operation on %s",
			op.Instr.Operands[0].Shape.DType,
		)
		return
	}
	if g := vector.GuardedOf(op.Instr); g != nil && b.l.jit {
		i.strip = guardedStrip(g, v, i.stripArgs, i.strip)
	}
	b.add(i)
}

// squared is multiply(x, x) in place of power(x, 2) of floating-point numbers, as XLA's
// algebraic simplifier has it: the product is rounded once, and needs no function. Other
// operations are returned as they are.
func (l *lowering) squared(op symtile.Op) symtile.Op {
	if op.Code != hlo.OpPower || !op.Instr.Shape.DType.IsFloat() {
		return op
	}
	exponent := l.p.Ops[op.Args[1]]
	for exponent.Code == hlo.OpBroadcast ||
		exponent.Code == hlo.OpReshape {
		exponent = l.p.Ops[exponent.Args[0]]
	}
	lit := exponent.Instr.Literal
	if exponent.Code != hlo.OpConstant || lit == nil ||
		!uniform(lit) || len(lit.Floats) == 0 || lit.Floats[0] != 2 {
		return op
	}
	x := op.Instr.Operands[0]
	square := *op.Instr
	square.Op = hlo.OpMultiply
	square.Operands = []*hlo.Instr{x, x}
	op.Code, op.Instr = hlo.OpMultiply, &square
	op.Args = []int{op.Args[0], op.Args[0]}
	return op
}

// elementwiseOperand is operand for an argument of any class.
func elementwiseOperand(b *block, op symtile.Op, k int, n int64) *value {
	switch b.l.arg(op, k).class {
	case portable.Float32:
		return operand[float32](b, op, k, n)
	case portable.Float64:
		return operand[float64](b, op, k, n)
	case portable.Int32:
		return operand[int32](b, op, k, n)
	}
	return operand[int64](b, op, k, n)
}

// elementwiseStrip makes what computes strips of an operation from its
// arguments by loops in Go, nil where the operation is not supported. Select,
// clamp and the operations between classes have forms of their own; all others
// are unary or binary loops.
func elementwiseStrip[T portable.Number](
	i *hlo.Instr, v *value, args []*value,
) strip {
	d := i.Shape.DType
	from := i.Operands[0].Shape.DType
	switch i.Op {
	case hlo.OpSelect:
		return func(w *worker, lo, hi int64) {
			portable.Select(
				part[T](w, v, lo, hi),
				part[int32](w, args[0], lo, hi),
				part[T](w, args[1], lo, hi),
				part[T](w, args[2], lo, hi),
			)
		}
	case hlo.OpClamp:
		return func(w *worker, lo, hi int64) {
			portable.Clamp(
				d, part[T](w, v, lo, hi),
				part[T](w, args[0], lo, hi),
				part[T](w, args[1], lo, hi),
				part[T](w, args[2], lo, hi),
			)
		}
	case hlo.OpConvert,
		hlo.OpBitcastConvert,
		hlo.OpCompare,
		hlo.OpIsFinite:
		switch args[0].class {
		case portable.Float32:
			return mixedStrip[float32, T](i, v, args)
		case portable.Float64:
			return mixedStrip[float64, T](i, v, args)
		case portable.Int32:
			return mixedStrip[int32, T](i, v, args)
		}
		return mixedStrip[int64, T](i, v, args)
	}
	if portable.ClassOf(from) != v.class || from.IsComplex() {
		return nil
	}
	if i.Op == hlo.OpReducePrecision {
		return unaryStrip(v, args[0], portable.ReducePrecision[T](i))
	}
	return uniformStrip[T](i.Op, d, v, args)
}

// mixedStrip makes the strips of operations whose result may have another class
// than their operands.
func mixedStrip[S, T portable.Number](
	i *hlo.Instr, v *value, args []*value,
) strip {
	d := i.Shape.DType
	from := i.Operands[0].Shape.DType
	switch i.Op {
	case hlo.OpConvert:
		return unaryStrip(
			v, args[0], portable.Conversion[S, T](d, from),
		)
	case hlo.OpBitcastConvert:
		if d.Bits() != from.Bits() {
			return nil
		}
		return unaryStrip(
			v, args[0], portable.Bitcast[S, T](d, from),
		)
	case hlo.OpIsFinite:
		return unaryStrip(v, args[0], portable.IsFinite[S])
	}
	return binaryStrip(
		v, args[0], args[1],
		portable.Comparison[S](i),
	)
}

// uniformStrip makes the strips of operations on one class.
func uniformStrip[T portable.Number](
	code hlo.Opcode, d hlo.DType,
	v *value, args []*value,
) strip {
	fit := portable.Narrowing[T](d)
	if f := portable.UnaryOf[T](code, d); f != nil &&
		len(args) == 1 {
		return unaryStrip(v, args[0], f.Then(fit))
	}
	f := portable.BinaryOf[T](code, d)
	if f != nil && len(args) == 2 {
		if code.Has(hlo.Exact) {
			fit = nil
		}
		return binaryStrip(
			v, args[0], args[1],
			f.Then(fit),
		)
	}
	return nil
}

// unaryStrip makes the strips of a unary loop.
func unaryStrip[S, T portable.Number](
	v, x *value, f portable.Unary[S, T],
) strip {
	return func(w *worker, lo, hi int64) {
		f(
			part[T](w, v, lo, hi),
			part[S](w, x, lo, hi),
		)
	}
}

// binaryStrip makes the strips of a binary loop.
func binaryStrip[S, T portable.Number](
	v, x, y *value, f portable.Binary[S, T],
) strip {
	return func(w *worker, lo, hi int64) {
		f(
			part[T](w, v, lo, hi),
			part[S](w, x, lo, hi),
			part[S](w, y, lo, hi),
		)
	}
}

// isLoop reports whether an elementwise operation is a loop in Go where there is machine code.
// One whose routine leaves some strips to the loop is not.
func isLoop(i *hlo.Instr) bool {
	return !vector.Has(i) && !vector.HasGuarded(i)
}

// guardedStrip makes the strips of an operation by its routines, and by the loop in Go where
// these do not have all operands. What is longer than a call is no strip but a tile.
func guardedStrip(g *vector.Guarded, v *value, args []*value, loop strip) strip {
	return func(w *worker, lo, hi int64) {
		for ; lo < hi; lo += vector.MaxCallLength {
			end := min(hi, lo+vector.MaxCallLength)
			var x [2]unsafe.Pointer
			for k, a := range args {
				x[k] = address(w, a, lo)
			}
			if !g.Run(end-lo, x, address(w, v, lo)) {
				loop(w, lo, end)
			}
		}
	}
}

// A pointwiseOp is an elementwise operation on values of the lowering. Such
// operations that follow each other in a strip become one
// machine function, in which intermediate values stay in registers. Elsewhere
// than on amd64 with AVX2 and FMA, and for operations without vector code,
// loops in Go run.
//
// The lanes of a function are as wide as the widest element of its values, four bytes
// or eight. Operations on floats of four bytes alone are not put in lanes of eight,
// where they would take twice as long; those on integers and truth values are.
type pointwiseOp struct {
	instr *hlo.Instr // The instruction whose operation it is.
	out   *value     // The result.
	// The operands, all at the elements of the result.
	args []*value
	// The operation is an exponential of what is at most a little more than 0, or NaN.
	below bool
}

// addressRegs hold the addresses of values in a strip function. Two more
// registers count and make masks.
var addressRegs = []amd64.Reg{
	amd64.RSI, amd64.RDX, amd64.RBX, amd64.R8,
	amd64.R9, amd64.R10, amd64.R11, amd64.R12,
	amd64.R13, amd64.R14, amd64.R15,
}

// stripCallArgs is the argument block of a strip function.
type stripCallArgs struct {
	n     int64                 // The number of elements of a row.
	at    [16]unsafe.Pointer    // The address of each value.
	rows  int64                 // The number of rows, of functions that have rows.
	spill [stripSpills][4]int64 // What registers do not hold.
}

// stripSpills is the number of vectors that a strip function may keep in memory.
const stripSpills = 16

// A stripFunction is a run of elementwise operations as one function.
type stripFunction struct {
	list []*pointwiseOp // The operations, in order.
	// The values read that are not constants, in the order of their addresses.
	reads  []*value
	writes []*value // The values written, after those read.
	row    int64    // The elements of a row, 0 for a function of one row of any length.
}

// assignRoutines moves the instructions of a group that only bring values in to
// its front, which their phase allows, and numbers the runs of instructions
// that become one function each. Without loads between them, runs are longer.
func (l *lowering) assignRoutines(g *instr) {
	g.group = sourcesFirst(g.group)
	if !l.jit {
		return
	}
	// A run ends where an instruction has no vector code, where its lanes have
	// another width, or where the values have more addresses than registers.
	number := 0
	var run []*pointwiseOp
	for _, i := range g.group {
		if i.pointwise == nil || !vector.Has(i.pointwise.instr) {
			run = nil
			continue
		}
		next := append(
			run[:len(run):len(run)], i.pointwise,
		)
		m := newStripFunction(next, g.group)
		if len(run) == 0 ||
			!lanesFit(next) ||
			len(m.reads)+len(m.writes) > len(addressRegs) {
			number++
			next = []*pointwiseOp{i.pointwise}
		}
		i.routine, run = number, next
	}
}

// lanes is the bytes of the lanes that an operation needs, 0 where both widths serve.
func (p *pointwiseOp) lanes() int64 {
	width := int64(0)
	for _, v := range append(p.args[:len(p.args):len(p.args)], p.out) {
		switch v.class {
		case portable.Float64, portable.Int64:
			return 8
		case portable.Float32:
			width = 4
		}
	}
	return width
}

// lanesFit reports whether the operations of a run agree in the width of lanes: floats of four
// bytes are in none with elements of eight, but for conversions.
func lanesFit(run []*pointwiseOp) bool {
	var seen [9]bool
	for _, p := range run {
		seen[p.lanes()] = true
	}
	return !seen[4] || !seen[8]
}

// lanes is the bytes of the lanes of a function, those of the operation that needs the widest.
// Integers and truth values alone have lanes of four.
func (m *stripFunction) lanes() int64 {
	width := int64(4)
	for _, p := range m.list {
		width = max(width, p.lanes())
	}
	return width
}

// sourcesFirst orders instructions without strip operands first.
func sourcesFirst(group []*instr) []*instr {
	var first, rest []*instr
	for _, i := range group {
		if len(i.stripArgs) == 0 {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(first, rest...)
}

// A stripNode is a run of instructions of a group: a loop in Go, or a machine function.
type stripNode struct {
	strip    strip
	function *stripFunction // The function, nil of a loop in Go.
	code     *amd64.Func    // Its code.
}

// stripsOf makes the strips of a group, with runs compiled. The row is what strips must be
// parts of for the views that machine code reads, else 0.
func (l *lowering) stripsOf(
	group []*instr,
) (nodes []stripNode, row int64) {
	routines := len(l.routines)
	text := len(l.text)
	// Rows that are too short for strips are long enough where one function does many.
	for _, shortest := range []int64{shortestRow, shortestStrip} {
		if l.jit {
			row = bindViews(group, l.strip, shortest)
		}
		nodes, ok := l.nodesOf(group, row)
		long := row == 0 ||
			evenStrip(row, l.strip, shortestStrip) > 0
		if ok && (long || isFunction(nodes)) {
			return nodes, row
		}
		unbindViews(group)
		l.routines = l.routines[:routines]
		l.text = l.text[:text]
	}
	return goStrips(group), 0
}

// isFunction reports whether the strips of a group are one function.
func isFunction(nodes []stripNode) bool {
	return len(nodes) == 1 && nodes[0].function != nil
}

// nodesOf makes the strips of a group whose views are bound. It reports false where a run
// cannot be compiled: its loops in Go, which read no views, need every value in scratch.
func (l *lowering) nodesOf(
	group []*instr, row int64,
) (nodes []stripNode, ok bool) {
	for k := 0; k < len(group); {
		end := k + 1
		for group[k].routine > 0 &&
			end < len(group) &&
			group[end].routine == group[k].routine {
			end++
		}
		n, ok := l.compileRun(group[k:end], group, row)
		switch {
		case ok:
			nodes = append(nodes, n)
		case group[k].routine > 0 && row > 0:
			return nil, false
		default:
			nodes = append(nodes, goStrips(group[k:end])...)
		}
		k = end
	}
	return nodes, true
}

// goStrips are the strips of instructions without machine code, but for those that it makes
// superfluous.
func goStrips(list []*instr) (nodes []stripNode) {
	for _, i := range list {
		if !i.isElided() {
			nodes = append(nodes, stripNode{strip: i.strip})
		}
	}
	return nodes
}

// compileRun makes one function of a run. Where that is not possible, because
// the values do not fit in the registers, it reports false and the loops in Go
// stay.
func (l *lowering) compileRun(
	run, group []*instr, row int64,
) (stripNode, bool) {
	if run[0].routine == 0 || !l.jit {
		return stripNode{}, false
	}
	var list []*pointwiseOp
	for _, i := range run {
		list = append(list, i.pointwise)
	}
	m := newStripFunction(list, group)
	m.row = evenStrip(row, vector.MaxCallLength, shortestRow)
	if !m.stepsFit() {
		m.row = 0
	}
	f, ok := m.compile(l)
	places := placesOf(m.all())
	return stripNode{callStrips(f, places), m, f}, ok
}

// newStripFunction finds what a run reads, and which of its results are needed
// after it.
func newStripFunction(run []*pointwiseOp, group []*instr) *stripFunction {
	m := &stripFunction{list: run}
	made := map[*value]bool{}
	inside := map[*pointwiseOp]bool{}
	for _, p := range run {
		inside[p] = true
		for _, v := range p.args {
			known := made[v] || v.number != nil
			if !known && !slices.Contains(m.reads, v) {
				m.reads = append(m.reads, v)
			}
		}
		made[p.out] = true
	}
	// A result stays in registers if it exists a strip at a time and nothing outside
	// of the run reads it.
	for _, p := range run {
		if p.out.where != inStrip ||
			slices.ContainsFunc(group, func(i *instr) bool {
				return !inside[i.pointwise] &&
					slices.Contains(i.stripArgs, p.out)
			}) {
			m.writes = append(m.writes, p.out)
		}
	}
	return m
}

// compile emits the function: a loop over vectors, two at a time where
// registers allow it, with its remainder under a mask; and around it one over rows, if it
// has rows.
func (m *stripFunction) compile(l *lowering) (*amd64.Func, bool) {
	if len(m.reads)+len(m.writes) > len(addressRegs) {
		return nil, false
	}
	a := l.assembler()
	// RDI is the argument block: the number of elements, then the address of each
	// value. Addresses of splats and of views that repeat an element do not move.
	regs := map[*value]amd64.Reg{}
	var pointers []amd64.Pointer
	for k, v := range m.all() {
		reg := addressRegs[k]
		regs[v] = reg
		a.Emit(amd64.MOV, reg, amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(8 + 8*k),
		})
		if v.moves() {
			pointers = append(pointers, amd64.Pointer{
				Reg:   reg,
				Bytes: int(v.stepBytes()),
			})
		}
	}
	loop := &amd64.Loop{
		Chain:    m.chain(l.chain(), regs),
		Counter:  amd64.RAX,
		Pointers: pointers,
		Width:    int(m.lanes()),
		Copies:   stripCopies,
		Scratch:  amd64.RCX,
		Mask:     amd64.Y15,
		Spill: amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(unsafe.Offsetof(stripCallArgs{}.spill)),
		},
		SpillSlots: stripSpills,
	}
	longer := m.longerLoops(loop, regs, l.wideStrips())
	if len(longer) == 0 {
		pinConstants(a, loop)
	}
	row := a.NewLabel()
	a.Bind(row)
	a.Emit(
		amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI},
	)
	emitLonger(a, longer, loop)
	if loop.Emit(a) != nil {
		return nil, false
	}
	if m.row > 0 {
		m.emitNextRow(a, loop, regs, row)
	}
	a.Emit(amd64.RET)
	return l.addRoutine(a)
}

// emitNextRow goes on with the next row, if there is one: it moves addresses there, from
// behind the whole vectors of a row.
func (m *stripFunction) emitNextRow(
	a *amd64.Assembler, loop *amd64.Loop,
	regs map[*value]amd64.Reg, row amd64.Label,
) {
	rows := amd64.Mem{
		Base: amd64.RDI,
		Disp: int32(unsafe.Offsetof(stripCallArgs{}.rows)),
	}
	end := a.NewLabel()
	a.Emit(amd64.MOV, loop.Scratch, rows)
	a.Emit(amd64.SUB, loop.Scratch, amd64.Imm(1))
	a.Emit(amd64.JLE, end)
	a.Emit(amd64.MOV, rows, loop.Scratch)
	lanes := int64(32 / loop.Width)
	for _, v := range m.all() {
		step, _ := v.rowStep(m.row)
		if v.moves() {
			step -= m.row / lanes * lanes * v.stepBytes()
		}
		if step != 0 {
			a.Emit(amd64.ADD, regs[v], amd64.Imm(step))
		}
	}
	a.Emit(amd64.JMP, row)
	a.Bind(end)
}

// stripCopies is the number of vectors that a strip function does at once where registers
// allow it.
const stripCopies = 2

// wideStrips reports whether strip functions have vectors of 64 bytes.
func (l *lowering) wideStrips() bool {
	return l.spec.wide && l.knob("width", 512) == 512
}

// longerLoops are the loops over more elements at once than one of a function has, which
// leaves the rest of a row to it: over elements of one byte in lanes of one, over vectors of
// 64 bytes, or both.
func (m *stripFunction) longerLoops(
	loop *amd64.Loop, regs map[*value]amd64.Reg, wide bool,
) (list []amd64.Loop) {
	add := func(c *amd64.Chain, width int, wide bool) {
		longer := *loop
		longer.Chain, longer.Width, longer.Wide = c, width, wide
		bytes := int64(32)
		if wide {
			bytes *= 2
		}
		// A loop that no row is long enough for is left out.
		if m.row > 0 {
			longer.Copies = int(min(int64(loop.Copies), m.row*int64(width)/bytes))
		}
		if longer.Copies > 0 {
			list = append(list, longer)
		}
	}
	bytes := m.inBytes()
	switch {
	case bytes && wide:
		add(m.byteChain(amd64.NewWideChain(), regs), 1, true)
		fallthrough
	case bytes:
		add(m.byteChain(&amd64.Chain{}, regs), 1, false)
	case wide:
		add(m.chain(amd64.NewWideChain(), regs), loop.Width, true)
	}
	return list
}

// emitLonger emits the loops over more elements at once that have code, after which the loop of
// one function has one vector at a time. Where there is none of them it has its constants in
// registers.
func emitLonger(a *amd64.Assembler, longer []amd64.Loop, loop *amd64.Loop) {
	for k := range longer {
		before := a.Mark()
		pinConstants(a, &longer[k])
		if _, err := longer[k].EmitRounds(a); err != nil {
			a.Undo(before)
			continue
		}
		loop.Copies = 1
	}
	if len(longer) > 0 && loop.Copies > 1 {
		pinConstants(a, loop)
	}
}

// inBytes reports whether all elements that a function reads and writes are bytes in arrays,
// and all of its operations have code for lanes of one byte.
func (m *stripFunction) inBytes() bool {
	for _, v := range m.all() {
		if !v.moves() || !vector.IsByte(v.stored()) {
			return false
		}
	}
	return !slices.ContainsFunc(m.list, func(p *pointwiseOp) bool {
		return !vector.HasBytes(p.instr)
	})
}

// byteChain is the run on one vector of each value, in lanes of one byte.
func (m *stripFunction) byteChain(
	c *amd64.Chain, regs map[*value]amd64.Reg,
) *amd64.Chain {
	at := map[*value]amd64.Value{}
	for _, v := range m.reads {
		from := amd64.Mem{Base: regs[v]}
		at[v] = c.Load(amd64.VMOVUPS, from, 32)
	}
	for _, p := range m.list {
		x := make([]amd64.Value, len(p.args))
		for k, v := range p.args {
			if v.number != nil && at[v] == 0 {
				at[v] = vector.ConstByte(c, uint8(*v.number))
			}
			x[k] = at[v]
		}
		at[p.out] = vector.EmitBytes(c, p.instr, x)
		if slices.Contains(m.writes, p.out) {
			to := amd64.Mem{Base: regs[p.out]}
			c.Store(amd64.VMOVUPS, to, 32, at[p.out])
		}
	}
	return c
}

// pinConstants gives constants of the chain of a loop, those with most uses first, the
// registers that it does not need: one is for the mask of its last round, two for that of
// elements of four bytes.
func pinConstants(a *amd64.Assembler, loop *amd64.Loop) {
	const others = 5
	c := loop.Chain
	free := 16 - others - loop.Copies*c.Pressure()
	for n, k := range c.Constants() {
		if n >= free {
			break
		}
		r := amd64.Y(14 - n)
		if loop.Wide {
			a.LoadWideConstant(k, r)
		} else {
			a.LoadConstant(k, r)
		}
		c.PinConstant(k, r)
	}
}

// chain is the run on one vector of each value.
func (m *stripFunction) chain(
	c *amd64.Chain, regs map[*value]amd64.Reg,
) *amd64.Chain {
	at := map[*value]amd64.Value{}
	for _, v := range m.reads {
		from := amd64.Mem{Base: regs[v]}
		if d := v.stored(); d != 0 {
			at[v] = vector.LoadStored(c, from, d)
			continue
		}
		at[v] = vector.LoadElements(
			c, from, v.class.Bytes(), m.lanes(), !v.moves(),
		)
	}
	m.operations(c, at, regs)
	return c
}

// operations adds the operations of the run to a chain that has what they read, and the
// stores of what is written.
func (m *stripFunction) operations(
	c *amd64.Chain, at map[*value]amd64.Value, regs map[*value]amd64.Reg,
) {
	// Operations follow in order, so that operands are in the chain before them. Constants
	// come in when they are first used.
	made := map[*value]*pointwiseOp{}
	for _, p := range m.list {
		made[p.out] = p
		if v := p.tanhPlusOne(made); v != nil {
			at[p.out] = c.Tanh1p32(at[v])
		} else {
			x := make([]amd64.Value, len(p.args))
			for k, v := range p.args {
				if v.number != nil && at[v] == 0 {
					at[v] = v.inCode(c)
				}
				x[k] = at[v]
			}
			// What is stored and not read again is converted as it is stored.
			to := amd64.Mem{Base: regs[p.out]}
			if slices.Contains(m.writes, p.out) && !m.readsOwn(p.out) &&
				vector.StoreConverted(c, to, p.out.stored(), p.instr, x[0]) {
				continue
			}
			at[p.out] = vector.Emit(c, p.instr, x)
		}
		if slices.Contains(m.writes, p.out) {
			to := amd64.Mem{Base: regs[p.out]}
			if d := p.out.stored(); d != 0 {
				vector.StoreStored(c, to, d, at[p.out])
				continue
			}
			bytes := p.out.class.Bytes()
			vector.StoreElements(
				c, to, bytes, m.lanes(), at[p.out],
			)
		}
	}
}

// readsOwn reports whether an operation of the run reads what another one makes.
func (m *stripFunction) readsOwn(v *value) bool {
	return slices.ContainsFunc(m.list, func(p *pointwiseOp) bool {
		return slices.Contains(p.args, v)
	})
}

// inCode is a constant as one of a chain, of as many bytes as its class has: of four, it is in
// both halves of lanes of eight.
func (v *value) inCode(c *amd64.Chain) amd64.Value {
	if v.class.Bytes() == 8 {
		return c.Const64(*v.number)
	}
	return c.Const32(uint32(*v.number))
}

// all lists the values whose addresses a call passes, in order.
func (m *stripFunction) all() []*value {
	return slices.Concat(m.reads, m.writes)
}

// strip makes the strip that calls the function on values whose residence is not decided yet.
func (m *stripFunction) strip(f *amd64.Func) strip {
	all := m.all()
	return func(w *worker, lo, hi int64) {
		args := &w.stripArgs
		args.n = hi - lo
		for k, v := range all {
			args.at[k] = address(w, v, lo)
		}
		args.rows = 1
		f.Call(unsafe.Pointer(args))
	}
}

// callStrips makes the strip that calls a function on values at places.
func callStrips(f *amd64.Func, places []place) strip {
	return func(w *worker, lo, hi int64) {
		args := &w.stripArgs
		args.n, args.rows = hi-lo, 1
		for k := range places {
			args.at[k] = places[k].address(w, lo)
		}
		f.Call(unsafe.Pointer(args))
	}
}

// stepsFit reports whether the code can hold the steps from row to row, which have 31 bits there.
func (m *stripFunction) stepsFit() bool {
	for _, v := range m.all() {
		step, _ := v.rowStep(max(1, m.row))
		if max(step, -step) >= 1<<30 {
			return false
		}
	}
	return true
}

// overRows makes the step that calls the function for n elements, as many rows at a time as
// the addresses of all values go on with equal steps. A call and its addresses take 10 to 30 ns
// (BenchmarkOverhead), as long as a row of some hundred elements; a row more in a call takes an
// addition for each address.
func (m *stripFunction) overRows(f *amd64.Func, n int64) step {
	places := placesOf(m.all())
	most := max(1, vector.MaxCallLength/m.row)
	var counts []int64 // The rows after which the address of some value takes another step.
	for _, v := range m.all() {
		_, count := v.rowStep(m.row)
		if count > 0 && !slices.Contains(counts, count) {
			counts = append(counts, count)
		}
	}
	rows := n / m.row
	return func(w *worker) {
		args := &w.stripArgs
		args.n = m.row
		for r := int64(0); r < rows; {
			args.rows = min(rows-r, most)
			for _, c := range counts {
				args.rows = min(args.rows, c-r%c)
			}
			next := r + args.rows
			first := r * m.row
			for k := range places {
				args.at[k] = places[k].address(w, first)
			}
			f.Call(unsafe.Pointer(args))
			r = next
		}
	}
}

// A routine is a function of a plan, which is loaded with the rest of its code.
type routine struct {
	f  *amd64.Func // The function, which is set by loadCode.
	at int         // Where it begins in the code of the plan.
}

// addRoutine assembles code and adds it to that of the plan. It is position
// independent.
func (l *lowering) addRoutine(a *amd64.Assembler) (*amd64.Func, bool) {
	text, err := a.Assemble()
	if err != nil {
		return nil, false
	}
	return l.addText(text), true
}

// assembler is the assembler of the lowering, empty: one function is assembled at a time.
func (l *lowering) assembler() *amd64.Assembler {
	a := &l.spec.memory.Assembler
	a.Reset()
	return a
}

// chain is the chain of the lowering, empty.
func (l *lowering) chain() *amd64.Chain {
	c := &l.spec.memory.Chain
	c.Reset()
	return c
}

// addText adds machine code to that of the plan, aligned.
func (l *lowering) addText(text []byte) *amd64.Func {
	for len(l.text)%codeAlignment != 0 {
		l.text = append(l.text, 0xcc) // int3
	}
	r := routine{&amd64.Func{}, len(l.text)}
	l.text = append(l.text, text...)
	l.routines = append(l.routines, r)
	return r.f
}

// codeAlignment is the alignment of functions, for their constants and loops.
const codeAlignment = 64

// loadCode makes the code of the plan executable for as long as the kernel is
// open, and sets its functions. All code of a plan is loaded at once, since
// mapping pages is what loading costs.
func (l *lowering) loadCode(pages *amd64.Pages) (*amd64.Code, error) {
	if len(l.text) == 0 {
		return nil, nil
	}
	code, err := pages.Load(l.text)
	if err != nil {
		return nil, err
	}
	for _, r := range l.routines {
		if *r.f, err = code.Func(r.at); err != nil {
			return nil, errors.Join(err, code.Close())
		}
	}
	return code, nil
}

// tanhPlusOne is x where an operation is tanh x + 1, else nil. The operations
// before it are given by what they make.
func (p *pointwiseOp) tanhPlusOne(made map[*value]*pointwiseOp) *value {
	if p.instr.Op != hlo.OpAdd {
		return nil
	}
	t := made[p.args[0]]
	if t == nil ||
		!vector.IsTanhPlusOne(p.instr, t.instr, p.args[1].constant) {
		return nil
	}
	return t.args[0]
}
