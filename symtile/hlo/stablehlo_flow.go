package hlo

import (
	"slices"
	"strings"
)

// Operations whose pretty form or whose regions need more than the pieces of
// prettyForm: reduce, with its pairs of operand and initial value; while, with
// arguments that are bound to operands; if, case and calls.
//
// In HLO a while carries one value and a branch takes one. Several are a tuple:
// the parameter of each region becomes the tuple, and its arguments and captures
// become elements of it.

// reduceForm reads (%x init: %c), … [applies op] across dimensions = [1]
// {attributes} : types [reducer(%a: t, %b: t) … { … }].
func (m *mlir) reduceForm(b *block, o *mlirOp) error {
	var inits []*Instr
	for len(inits) == 0 || m.accept(",") {
		if err := m.expect("("); err != nil {
			return err
		}
		if err := m.operandOf(b, o); err != nil {
			return err
		}
		if !m.word("init") {
			return m.failNext("expected init:, found %s", m.found())
		}
		if err := m.expect(":"); err != nil {
			return err
		}
		init, err := m.use(b)
		if err != nil {
			return err
		}
		inits = append(inits, init)
		if err := m.expect(")"); err != nil {
			return err
		}
	}
	o.operands = append(o.operands, inits...)
	applied, err := m.applies(o)
	if err != nil {
		return err
	}
	for !isEnd(m.peek()) {
		if err := m.piece(b, o, m.peek()); err != nil {
			return err
		}
	}
	if err := m.opTypes(o); err != nil {
		return err
	}
	if applied != nil {
		return m.scalarRegion(b, o, applied)
	}
	return m.reducer(b, o)
}

// isEnd reports whether c ends the pieces of a reduce: the types follow, or
// the file ends.
func isEnd(c byte) bool { return c == ':' || c == 0 }

// applies reads applies stablehlo.add.
func (m *mlir) applies(o *mlirOp) (*mlirOp, error) {
	if !m.word("applies") {
		return nil, nil
	}
	inner := &mlirOp{at: m.nextPosition()}
	_, err := m.opName(inner)
	return inner, err
}

// scalarRegion makes the region that "applies op" stands for.
func (m *mlir) scalarRegion(b *block, o *mlirOp, inner *mlirOp) error {
	r := m.newBlock(b.comp.Name+"."+inner.name, b)
	scalar := Shape{DType: o.operands[0].Shape.DType}
	for k, name := range []string{"a", "b"} {
		err := m.bindArg(
			r, mlirArg{name, scalar, inner.at}, k,
		)
		if err != nil {
			return err
		}
	}
	inner.operands = r.args
	inner.types = []Shape{scalar}
	if err := m.emit(r, inner); err != nil {
		return err
	}
	m.setRoot(r, &mlirOp{
		at:       inner.at,
		operands: r.comp.Instrs[len(r.comp.Instrs)-1:],
	})
	m.module.Computations = append(m.module.Computations, r.comp)
	o.regions = append(o.regions, r)
	return nil
}

// reducer reads reducer(%a: t, %b: t) (%c: u, %d: u) { … }; the arguments of
// the region are the first of each pair, then the second ones.
func (m *mlir) reducer(b *block, o *mlirOp) error {
	if !m.word("reducer") {
		return m.failNext("expected reducer(…), found %s", m.found())
	}
	var left, right []mlirArg
	for m.peek() == '(' {
		at := m.Here()
		pair, err := m.arguments()
		if err != nil {
			return err
		}
		if len(pair) != 2 {
			return m.Fail(at, "the reducer takes pairs of arguments, %d given", len(pair))
		}
		left = append(left, pair[0])
		right = append(right, pair[1])
	}
	r, err := m.region(
		b, o.name, append(left, right...),
	)
	o.regions = append(o.regions, r)
	return err
}

// whileForm reads (%arg = %init, …) : types [attributes {…}] cond { … } do { … }.
func (m *mlir) whileForm(b *block, o *mlirOp) error {
	if err := m.expect("("); err != nil {
		return err
	}
	var args []mlirArg
	for !m.accept(")") {
		if len(args) > 0 {
			if err := m.expect(","); err != nil {
				return err
			}
		}
		a := mlirArg{at: m.nextPosition()}
		var err error
		if a.name, err = m.ssa(); err != nil {
			return err
		}
		if err := m.expect("="); err != nil {
			return err
		}
		if err := m.operandOf(b, o); err != nil {
			return err
		}
		a.shape = o.operands[len(o.operands)-1].Shape
		args = append(args, a)
	}
	if err := m.whileTypes(o); err != nil {
		return err
	}
	if m.word("attributes") {
		if err := m.attributes(o); err != nil {
			return err
		}
	}
	for _, word := range []string{"cond", "do"} {
		if !m.word(word) {
			return m.failNext("expected %s { … }, found %s", word, m.found())
		}
		r, err := m.region(b, word, args)
		if err != nil {
			return err
		}
		o.regions = append(o.regions, r)
	}
	return nil
}

// whileTypes reads : types, one for each value that is carried.
func (m *mlir) whileTypes(o *mlirOp) error {
	if len(o.operands) == 0 {
		return nil
	}
	if err := m.expect(":"); err != nil {
		return err
	}
	at := m.nextPosition()
	for len(o.types) == 0 || m.accept(",") {
		s, err := m.typ(0)
		if err != nil {
			return err
		}
		o.types = append(o.types, s)
	}
	return m.checkOperands(o, o.types, at)
}

// lowerWhile carries the arguments, and what the regions use from outside, as
// one tuple; a single array goes bare.
func lowerWhile(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	if err := m.checkWhile(o); err != nil {
		return nil, err
	}
	outer := slices.Clone(o.operands)
	for _, r := range o.regions {
		for _, c := range r.captures {
			if !slices.Contains(outer[len(o.operands):], c.outer) {
				outer = append(outer, c.outer)
			}
		}
	}
	carried := outer
	if len(outer) != 1 {
		for _, r := range o.regions {
			m.tupled(r, o, outer)
		}
		do := o.regions[1]
		do.comp.Root = m.tuple(
			do,
			do.at,
			slices.Concat(do.returned, do.args[len(o.operands):]),
		)
		carried = []*Instr{m.tuple(b, o.at, outer)}
	}
	i := m.result(b, o, OpWhile, carried...)
	i.Shape = carried[0].Shape
	i.Attrs.Branches = []*Computation{
		o.regions[0].comp, o.regions[1].comp,
	}
	return i, nil
}

// checkWhile reports regions that do not fit the values carried: both take all
// of them, the condition returns one pred, and the body returns values of the
// same shapes.
func (m *mlir) checkWhile(o *mlirOp) error {
	cond := o.regions[0]
	do := o.regions[1]
	if len(cond.args) != len(o.operands) ||
		len(do.args) != len(o.operands) {
		return m.Fail(
			o.at, "while carries %d values; its regions take %d and %d",
			len(o.operands),
			len(cond.args), len(do.args),
		)
	}
	if len(cond.returned) != 1 ||
		!cond.returned[0].Shape.Compatible(Shape{DType: Pred}) {
		return m.Fail(cond.at, "the condition of while returns one pred[]")
	}
	if len(do.returned) != len(o.operands) {
		return m.Fail(
			do.at, "the body of while returns %d values of %d",
			len(do.returned), len(o.operands),
		)
	}
	for k, i := range o.operands {
		for _, inner := range []*Instr{
			cond.args[k],
			do.args[k],
			do.returned[k],
		} {
			if !inner.Shape.Compatible(i.Shape) {
				return m.Fail(
					o.at, "value %d of while is %s outside and %s inside", k, i.Shape, inner.Shape,
				)
			}
		}
	}
	return nil
}

// tupled gives r one tuple parameter with an element for each of outer: first
// r's arguments, then what r captures. r.args are all elements after it.
func (m *mlir) tupled(r *block, o *mlirOp, outer []*Instr) {
	p := &Instr{
		Name:  UniqueName(r.names, "carried"),
		Op:    OpParameter,
		Shape: Shape{DType: Tuple},
		Pos:   r.posOf(m),
	}
	for _, i := range outer {
		p.Shape.Tuple = append(p.Shape.Tuple, i.Shape)
	}
	inner := make(map[*Instr]*Instr, len(r.captures))
	for _, c := range r.captures {
		inner[c.outer] = c.inner
	}
	own := len(r.args)
	for k, i := range outer {
		e := inner[i]
		if k < own {
			e = r.args[k]
		}
		if e == nil {
			e = m.element(r, r.at, p, k)
		}
		e.Op = OpGetTupleElement
		e.Operands = []*Instr{p}
		e.Attrs = Attrs{Index: k}
		if k >= own {
			r.args = append(r.args, e)
		}
	}
	r.comp.Instrs = append(
		[]*Instr{p}, r.comp.Instrs...,
	)
	r.comp.Params = []*Instr{p}
}

// posOf is where b begins in the source.
func (b *block) posOf(m *mlir) Pos {
	return b.at.In(m.File)
}

// lowerConditional passes each branch what it uses from outside: one value
// bare, otherwise a tuple.
func lowerConditional(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	passed := slices.Clone(o.operands)
	var branches []*Computation
	for k, r := range o.regions {
		if len(r.args) > 0 {
			return nil, m.Fail(
				r.at, "branch %d of %s takes arguments", k, o.name,
			)
		}
		if err := m.checkReturn(r, o.types, r.at); err != nil {
			return nil, err
		}
		outer := make([]*Instr, len(r.captures))
		for k, c := range r.captures {
			outer[k] = c.outer
		}
		if len(outer) == 1 {
			r.comp.Params = []*Instr{r.captures[0].inner}
			passed = append(passed, outer[0])
		} else {
			m.tupled(r, o, outer)
			passed = append(passed, m.tuple(b, o.at, outer))
		}
		branches = append(branches, r.comp)
	}
	i := m.result(b, o, OpConditional, passed...)
	i.Attrs.Branches = branches
	return i, nil
}

// manualForm reads (%x, …) in_shardings=[…] … (%a: t, …) { … } {attributes} : types.
func (m *mlir) manualForm(b *block, o *mlirOp) error {
	for m.peek() != '(' {
		if err := m.piece(b, o, m.peek()); err != nil {
			return err
		}
	}
	m.At++
	for !m.accept(")") {
		if len(o.operands) > 0 {
			if err := m.expect(","); err != nil {
				return err
			}
		}
		if err := m.operandOf(b, o); err != nil {
			return err
		}
	}
	for m.peek() != '(' {
		if err := m.piece(b, o, m.peek()); err != nil {
			return err
		}
	}
	args, err := m.arguments()
	if err != nil {
		return err
	}
	r, err := m.region(b, o.name, args)
	if err != nil {
		return err
	}
	o.regions = append(o.regions, r)
	if m.peek() == '{' {
		if err := m.attributes(o); err != nil {
			return err
		}
	}
	return m.opTypes(o)
}

// What XLA calls the step from an array to a device's part of it, and back.
const (
	toShard   = `"SPMDFullToShardShape"`
	fromShard = `"SPMDShardToFullShape"`
)

// lowerManualComputation calls the program of one device with its parts of the operands:
// as in XLA, custom-calls lie between whole arrays and parts that differ in shape. Of
//
//	%0 = sdy.manual_computation(%x) … (%a: tensor<4xf32>) {
//	  %1 = stablehlo.negate %a : tensor<4xf32>
//	  sdy.return %1 : tensor<4xf32>
//	} : (tensor<8xf32>) -> tensor<8xf32>
//
// there remain
//
//	%part = f32[4] custom-call(%x), custom_call_target="SPMDFullToShardShape"
//	%call = f32[4] call(%part), to_apply=%body
//	%0 = f32[8] custom-call(%call), custom_call_target="SPMDShardToFullShape"
//
// where the body negates. A named_computation has whole arrays inside, and is a call.
func lowerManualComputation(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	r := o.regions[0]
	if err := m.checkCaptures(o, r); err != nil {
		return nil, err
	}
	if len(r.args) != len(o.operands) || len(r.returned) != len(o.types) {
		return nil, m.Fail(
			o.at, "%s takes %d operands and has %d results; its region takes %d and returns %d",
			o.name, len(o.operands), len(o.types), len(r.args), len(r.returned),
		)
	}
	args := make([]*Instr, len(o.operands))
	for k, x := range o.operands {
		args[k] = m.reshard(b, o, x, r.args[k].Shape, toShard)
	}
	call := m.add(
		b, o.at, o.instrName(OpCall), OpCall, r.comp.Root.Shape, args...,
	)
	call.Attrs.Calls = r.comp
	if len(o.types) == 1 {
		return m.reshard(b, o, call, o.types[0], fromShard), nil
	}
	results := make([]*Instr, len(o.types))
	for k, whole := range o.types {
		results[k] = m.reshard(b, o, m.element(b, o.at, call, k), whole, fromShard)
	}
	return m.tuple(b, o.at, results), nil
}

// reshard is x as an array of another shape, by a custom-call of this target.
func (m *mlir) reshard(b *block, o *mlirOp, x *Instr, to Shape, target string) *Instr {
	if x.Shape.SameDims(to) {
		return x
	}
	i := m.add(b, o.at, "reshard", OpCustomCall, to, x)
	i.Attrs.Other = []Attr{
		{"custom_call_target", target},
		{unreadReason, `"it is the step between an array and one device's part of it"`},
	}
	return i
}

// lowerComposite is a call of the decomposition, but for products of groups of rows, which HLO
// has: JAX's decomposition has a product for each group.
func lowerComposite(
	m *mlir, b *block, o *mlirOp,
) (*Instr, error) {
	s, ok := o.attrs.find("composite_attributes")
	if ok && len(o.operands) == 3 &&
		o.operands[2].Shape.Rank() == 1 {
		attrs, err := m.sub(s)
		if err != nil {
			return nil, err
		}
		if n, ok := attrs.find("ragged_dot_dimension_numbers"); ok {
			return m.raggedDot(b, o, m.text(n))
		}
	}
	return lowerCall(m, b, o)
}

// raggedDot reads the six lists of dimensions of chlo.ragged_dot: of the left and the right
// side those of batches, then those that are contracted, then that of groups. Other texts are
// calls.
func (m *mlir) raggedDot(
	b *block, o *mlirOp, numbers string,
) (*Instr, error) {
	lists := strings.Split(numbers, "dense<")[1:]
	if len(lists) != 6 {
		return lowerCall(m, b, o)
	}
	var dims [6][]int64
	for k, text := range lists {
		text, _, _ = strings.Cut(text, ">")
		text = strings.Trim(text, "[]")
		dims[k] = bracedInts(text)
	}
	i := m.result(
		b, o, OpRaggedDot, o.operands...,
	)
	i.Attrs.LHSBatch = dims[0]
	i.Attrs.RHSBatch = dims[1]
	i.Attrs.LHSContract = dims[2]
	i.Attrs.RHSContract = dims[3]
	pairs := []string{
		"lhs_ragged_dims", braces(dims[4]),
		"rhs_group_dims", braces(dims[5]),
	}
	if len(dims[5]) == 0 {
		pairs = pairs[:2]
	}
	return m.setAll(i, o, pairs...)
}

// lowerCall is for call @f.
func lowerCall(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	at, symbol := o.at, o.symbol
	if s, ok := o.attrs.find("callee", "decomposition"); ok {
		at = s.position
		err := m.within(s, func() (err error) {
			symbol, err = m.symbol()
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if symbol == "" {
		return nil, m.Fail(o.at, "%s needs the function it calls", o.name)
	}
	i := m.result(b, o, OpCall, o.operands...)
	m.calls = append(
		m.calls, mlirCall{i, "to_apply", symbol, at},
	)
	return i, nil
}
