package hlo

import "fmt"

// A block is a scope of values. Regions see the values of what encloses them,
// which computations of HLO do not: a value that is used inside is captured.
// Constants, and broadcasts of them, are copied into the region, as XLA sinks them.
// Any other value becomes a parameter that the operation with the region has to
// pass, which while, if and case can.

// A block is a function or region while it is read: its computation and the
// values that have names in it.
type block struct {
	comp *Computation
	// outer is the block around a region; nil for a function.
	outer *block
	// values are the instructions by the names of their values in the text, with
	// captured ones once they are used.
	values map[string]*Instr
	// names are the names of instructions, for UniqueName.
	names map[string]int
	// args are the parameters of the block, in order.
	args []*Instr
	// captures are the values of outer that are used here and are not constants.
	captures []capture
	// returned are the operands of return; nil until it is read.
	returned []*Instr
	// at is where the block begins.
	at position
}

// A capture is a value of the outer block that a region uses: there it is inner.
type capture struct{ outer, inner *Instr }

// An mlirArg is an argument of a function or region.
type mlirArg struct {
	name  string
	shape Shape
	at    position
}

// newBlock starts a computation of this name, made unique in the module; outer
// is nil for functions. The number of lines up to the end of a function sizes
// its tables.
func (m *mlir) newBlock(name string, outer *block) *block {
	name = UniqueName(m.usedNames, hloName(name))
	n := 0
	if outer == nil {
		n = m.instrsUntil("\n  }")
	}
	return &block{
		comp:   &Computation{Name: name},
		outer:  outer,
		values: make(map[string]*Instr, n),
		names:  make(map[string]int, n),
		at:     m.nextPosition(),
	}
}

// UniqueName returns name, followed by a period and a number where it is taken,
// and takes it. taken holds for each name the last number that was given to it.
func UniqueName(taken map[string]int, name string) string {
	n, used := taken[name]
	for used {
		n++
		numbered := fmt.Sprintf("%s.%d", name, n)
		if _, used = taken[numbered]; !used {
			taken[name] = n
			name = numbered
		}
	}
	taken[name] = 0
	return name
}

// add appends an instruction.
func (m *mlir) add(
	b *block, at position, name string, op Opcode,
	shape Shape, operands ...*Instr,
) *Instr {
	i := m.newInstr(at.In(m.File))
	i.Name, i.Op, i.Shape, i.Operands = UniqueName(b.names, name),
		op, shape, m.operandList(operands)
	i.place = len(b.comp.Instrs)
	b.comp.Instrs = append(b.comp.Instrs, i)
	return i
}

// arguments reads (%a: type {…} loc(…), …).
func (m *mlir) arguments() ([]mlirArg, error) {
	if err := m.expect("("); err != nil {
		return nil, err
	}
	var args []mlirArg
	for !m.accept(")") {
		if len(args) > 0 {
			if err := m.expect(","); err != nil {
				return nil, err
			}
		}
		if m.peek() != '%' { // a declaration has types only
			s, err := m.typ(0)
			if err != nil {
				return nil, err
			}
			args = append(args, mlirArg{shape: s})
		} else {
			a, err := m.argument()
			if err != nil {
				return nil, err
			}
			args = append(args, a)
		}
		if err := m.afterType(); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// argument reads %name: type.
func (m *mlir) argument() (a mlirArg, err error) {
	a.at = m.nextPosition()
	if a.name, err = m.ssa(); err != nil {
		return a, err
	}
	if err = m.expect(":"); err != nil {
		return a, err
	}
	a.shape, err = m.typ(0)
	return a, err
}

// region reads { ^bb0(arguments): operations } inside outer.
func (m *mlir) region(
	outer *block, name string, args []mlirArg,
) (*block, error) {
	b := m.newBlock(
		fmt.Sprintf("%s.%s", outer.comp.Name, name), outer,
	)
	return b, m.regionWith(b, args)
}

// regionWith reads { operations } into b, with args bound before those of its
// first block.
func (m *mlir) regionWith(b *block, args []mlirArg) error {
	if err := m.expect("{"); err != nil {
		return err
	}
	return m.blockBody(b, args)
}

// blockBody reads [^bb0(arguments):] operations }.
func (m *mlir) blockBody(b *block, args []mlirArg) error {
	if m.depth++; m.depth > maxDepth {
		return m.failNext("regions nested more than %d deep", maxDepth)
	}
	defer func() { m.depth-- }()
	if m.peek() == '^' {
		more, err := m.blockHead()
		if err != nil {
			return err
		}
		args = append(args, more...)
	}
	for k, a := range args {
		if err := m.bindArg(b, a, k); err != nil {
			return err
		}
	}
	for !m.accept("}") {
		if m.peek() == '^' {
			return m.failNext("a second block: control flow between blocks is not supported")
		}
		if err := m.op(b); err != nil {
			return err
		}
	}
	if b.returned == nil {
		return m.Fail(b.at, "%s does not return", b.comp.Name)
	}
	m.module.Computations = append(m.module.Computations, b.comp)
	return nil
}

// blockHead reads ^bb0(arguments):.
func (m *mlir) blockHead() (args []mlirArg, err error) {
	m.At++
	if _, err = m.bareWord("a block"); err != nil {
		return nil, err
	}
	if m.peek() == '(' {
		if args, err = m.arguments(); err != nil {
			return nil, err
		}
	}
	return args, m.expect(":")
}

// bindArg makes argument number a parameter of b's computation.
func (m *mlir) bindArg(b *block, a mlirArg, number int) error {
	name := a.name
	if name == "" {
		return m.Fail(b.at, "argument %d has no name", number)
	}
	i := m.add(
		b, a.at, hloName(name), OpParameter, a.shape,
	)
	i.Attrs.Param = number
	b.args = append(b.args, i)
	b.comp.Params = append(b.comp.Params, i)
	return m.bind(b, a.at, name, i)
}

// bind gives value i a name in b.
func (m *mlir) bind(b *block, at position, name string, i *Instr) error {
	if b.values[name] != nil {
		return m.Fail(at, "%%%s is defined twice", name)
	}
	b.values[name] = i
	return nil
}

// use reads %name and finds its value.
func (m *mlir) use(b *block) (*Instr, error) {
	at := m.nextPosition()
	name, err := m.ssa()
	if err != nil {
		return nil, err
	}
	i := b.value(name)
	if i == nil {
		return nil, m.Fail(at, "%%%s is not defined here; operands come first", name)
	}
	return i, nil
}

// value finds a name in b or in what encloses it.
func (b *block) value(name string) *Instr {
	if i := b.values[name]; i != nil || b.outer == nil {
		return i
	}
	i := b.outer.value(name)
	if i != nil {
		i = b.capture(i)
		b.values[name] = i
	}
	return i
}

// capture makes a value of the outer block known in b. Constants are copied,
// as XLA sinks them; anything else becomes an argument, which only control
// flow can pass.
func (b *block) capture(outer *Instr) *Instr {
	for _, c := range b.captures {
		if c.outer == outer {
			return c.inner
		}
	}
	inner := &Instr{
		Name:  UniqueName(b.names, outer.Name),
		Op:    OpParameter,
		Shape: outer.Shape,
		Pos:   outer.Pos,
	}
	switch {
	case outer.Op == OpConstant:
		inner.Op = outer.Op
		inner.Literal = outer.Literal
	case outer.Op == OpBroadcast &&
		outer.Operands[0].Op == OpConstant:
		inner.Op, inner.Attrs, inner.Operands = outer.Op, outer.Attrs, []*Instr{
			b.capture(outer.Operands[0]),
		}
	default:
		b.captures = append(b.captures, capture{outer, inner})
	}
	b.comp.Instrs = append(b.comp.Instrs, inner)
	return inner
}

// checkCaptures refuses captures where HLO has no way to pass them.
func (m *mlir) checkCaptures(o *mlirOp, r *block) error {
	if len(r.captures) > 0 {
		return m.Fail(
			r.at, "the region of %s uses %%%s from outside; only its arguments and constants can be used there",
			o.name, r.captures[0].outer.Name,
		)
	}
	return nil
}

// setRoot makes the operands of return the result: one, or a tuple.
func (m *mlir) setRoot(b *block, o *mlirOp) {
	b.returned = append([]*Instr{}, o.operands...)
	if len(o.operands) == 1 {
		b.comp.Root = o.operands[0]
		return
	}
	b.comp.Root = m.tuple(b, o.at, o.operands)
}

// tuple appends a tuple of elements to b.
func (m *mlir) tuple(b *block, at position, elements []*Instr) *Instr {
	t := m.add(
		b, at, "tuple", OpTuple, Shape{DType: Tuple}, elements...,
	)
	t.Shape.Tuple = operandShapes(t)
	return t
}

// element appends the get-tuple-element of element k of tuple to b.
func (m *mlir) element(b *block, at position, tuple *Instr, k int) *Instr {
	i := m.add(
		b, at,
		fmt.Sprintf("%s_%d", tuple.Name, k), OpGetTupleElement,
		tuple.Shape.Tuple[k], tuple,
	)
	i.Attrs.Index = k
	return i
}
