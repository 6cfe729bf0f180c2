package hlo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Text may leave extents open: tensor<?x128xf32>, f32[?,128]. Given those of the
// parameters of the entry, the others follow: the shape rules of the operations say
// them, and operations such as dynamic_broadcast_in_dim take them as numbers, which
// are computed here. Refinement makes every computation anew, for the shapes and the
// numbers that it is called with. What still depends on an open extent becomes a
// custom-call without a meaning, so that the rest of the module can be used.
//
// Numbers are known of constants, of get-dimension-size and of what whole-number
// operations make of them, through calls, tuples and what a loop carries unchanged:
// that is how JAX passes the symbols of an export on.
//
// Of this module, with arg0=8x4,
//
//	%n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
//	%r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
//	%s = stablehlo.concatenate %r, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
//	%b = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
//	%y = stablehlo.add %arg0, %b : tensor<?x4xf32>
//
// there remain
//
//	%b = f32[8,4] broadcast(%x), dimensions={1}
//	%y = f32[8,4] add(%arg0, %b)
//
// A broadcast of a scalar that says no extents (a splat of an open type) has those of
// the first operand that an elementwise operation combines it with.

// Parse reads a module from text: HLO (what XLA dumps, a bare computation, or
// a bare list of instructions) or StableHLO (MLIR, as JAX and PyTorch/XLA print
// it); the first token tells which. file is used in errors, which are *Error.
func Parse(file string, src []byte) (*Module, error) {
	return ParseFor(file, src, nil)
}

// ParseFor is Parse with the extents of parameters that the text leaves open. What
// depends on one that is not given becomes a custom-call; see Instr.Unknown.
func ParseFor(file string, src []byte, given Extents) (*Module, error) {
	read := parseHLO
	if isStableHLO(src) {
		read = parseStableHLO
	}
	p, err := read(file, src)
	if err != nil {
		return nil, err
	}
	if p.isOpen() {
		if err := p.refine(given); err != nil {
			return nil, err
		}
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p.module, nil
}

// Extents are the extents of parameters that a text leaves open: under the name of a
// parameter of the entry all of its extents, and under "?" one number, which every
// other open extent of a parameter is.
type Extents map[string][]int64

// openTarget is the custom_call_target of what depends on an open extent.
const openTarget = `"tilewright.open_extents"`

// maxRefined bounds the instructions that a refinement makes.
const maxRefined = 1 << 20

// isOpen reports whether the module that was read needs a refinement.
func (p *parser) isOpen() bool {
	if len(p.numbers) > 0 {
		return true
	}
	for _, c := range p.module.Computations {
		for _, i := range c.Instrs {
			if i.Shape.open() {
				return true
			}
		}
	}
	return false
}

// refine replaces the computations of the module by those for the given extents.
func (p *parser) refine(given Extents) error {
	r := &refiner{
		parser: p,
		done:   map[string]*refinement{},
		names:  map[string]int{},
		kept:   map[*Computation]bool{},
	}
	params := p.module.Entry.Params
	args := make([]argument, len(params))
	for k, i := range params {
		if i.Shape.open() {
			p.module.Open = append(p.module.Open, i.Name)
		}
		var err error
		if args[k].shape, err = given.of(i); err != nil {
			return p.failAt(i, "%v", err)
		}
		if args[k].shape.DType == Token && i.Shape.DType != Token {
			args[k].why = fmt.Sprintf("an extent of %s is not known: give it with -shape %s", i.Name, i.howGiven())
		}
	}
	entry, err := r.computation(p.module.Entry, args)
	if err != nil {
		return err
	}
	p.module.Entry = entry.comp
	p.module.Computations = r.made
	return nil
}

// howGiven is how the extents of a parameter are given; those of a tuple all at once.
func (i *Instr) howGiven() string {
	if i.Shape.DType == Tuple {
		return "?=8"
	}
	return i.Name + "=" + example(i.Shape)
}

// example is how the extents of a shape are given: 8x128, where 8 stands for any.
func example(s Shape) string {
	words := make([]string, len(s.Dims))
	for k, d := range s.Dims {
		words[k] = strconv.FormatInt(max(d, 0), 10)
		if d == openExtent {
			words[k] = "8"
		}
	}
	return strings.Join(words, "x")
}

// of is the shape of a parameter with the extents that are given, or a token where
// they are not.
func (e Extents) of(i *Instr) (Shape, error) {
	if !i.Shape.open() {
		return i.Shape, nil
	}
	s := i.Shape
	dims, named := e[i.Name]
	if every := e["?"]; !named && len(every) == 1 {
		s = s.filled(every[0])
		dims = s.Dims
		if s.DType == Tuple {
			return s, s.checkSizes()
		}
	}
	if dims == nil || s.DType == Tuple {
		return Shape{DType: Token}, nil
	}
	s.Dims = dims
	if err := merged(&s, i.Shape); err != nil {
		return s, fmt.Errorf("-shape %s=%s: %v", i.Name, example(Shape{Dims: dims}), err)
	}
	return s, s.checkSize()
}

// merged gives s what else is declared of it and reports where the two differ.
func merged(s *Shape, declared Shape) error {
	if len(s.Tuple) != len(declared.Tuple) {
		return fmt.Errorf("%s is declared, not %s", declared, s)
	}
	for k := range s.Tuple {
		if err := merged(&s.Tuple[k], declared.Tuple[k]); err != nil {
			return err
		}
	}
	if len(s.Dims) != len(declared.Dims) {
		return fmt.Errorf("%s has %d dimensions, not %d", declared, len(declared.Dims), len(s.Dims))
	}
	for k, d := range declared.Dims {
		if d != openExtent && d != s.Dims[k] {
			return fmt.Errorf("%s has the extent %d where %d is declared", declared, s.Dims[k], d)
		}
	}
	s.DType = declared.DType
	s.Layout = declared.Layout
	s.Bounded = declared.Bounded
	return nil
}

// A refiner makes the computations of a module for known extents.
type refiner struct {
	*parser
	done  map[string]*refinement
	names map[string]int
	kept  map[*Computation]bool
	made  []*Computation
	// instrs counts what was made.
	instrs int
}

// An argument is what a computation is called with: its shape, its elements where they
// are few whole numbers that are known, those of the elements of a tuple, and why it is
// not known.
type argument struct {
	shape Shape
	ints  []int64
	parts [][]int64
	why   string
}

// A refinement is a computation for given arguments while it is made.
type refinement struct {
	*refiner
	comp *Computation
	args []argument
	// of has the new instruction of each old one, nil where none is needed.
	of map[*Instr]*Instr
	// ints are the elements of new instructions that are known, parts those of tuples,
	// and why says which are not known and why.
	ints  map[*Instr][]int64
	parts map[*Instr][][]int64
	why   map[*Instr]string
	// inherited is why the first operand of the present instruction that is not known
	// is not.
	inherited string
	// free are broadcasts of scalars whose extents are those of what they meet.
	free map[*Instr]bool
}

// keep adds a computation as it is, that of a reduction for instance: its values are
// scalars, which have no extents. Those that it calls are added before it, so that
// callees stay in front of callers, as in any module.
func (r *refiner) keep(c *Computation) {
	if r.kept[c] {
		return
	}
	r.kept[c] = true
	for _, i := range c.Instrs {
		for _, callee := range i.Callees() {
			r.keep(callee)
		}
	}
	r.names[c.Name] = 0
	r.made = append(r.made, c)
}

// computation is c for arguments. Equal arguments give the same computation, so that a
// function that is called often is made once; the total is bounded, since calls with
// numbers that differ could double at every level.
func (r *refiner) computation(c *Computation, args []argument) (*refinement, error) {
	key := fmt.Sprintf("%p %v", c, args)
	if done := r.done[key]; done != nil {
		return done, nil
	}
	s := &refinement{
		refiner: r,
		comp:    &Computation{},
		args:    args,
		of:      map[*Instr]*Instr{},
		ints:    map[*Instr][]int64{},
		parts:   map[*Instr][][]int64{},
		why:     map[*Instr]string{},
		free:    map[*Instr]bool{},
	}
	if len(args) != len(c.Params) {
		return nil, r.failAt(c.Root, "%s takes %d arguments, %d given", c.Name, len(c.Params), len(args))
	}
	for _, i := range c.Instrs {
		if r.instrs++; r.instrs > maxRefined {
			return nil, r.failAt(i, "calls with different extents make more than %d instructions", maxRefined)
		}
		n, err := s.instr(i)
		if e := (*Error)(nil); errors.As(err, &e) {
			return nil, err
		}
		if err != nil {
			return nil, r.failAt(i, "%v", err)
		}
		s.of[i] = n
		if n != nil {
			s.comp.Instrs = append(s.comp.Instrs, n)
			s.evaluate(n)
		}
	}
	s.close(c)
	r.done[key] = s
	s.comp.Name = UniqueName(r.names, c.Name)
	r.made = append(r.made, s.comp)
	return s, nil
}

// close finds the parameters and the root, gives up broadcasts that have met nothing,
// and drops numbers that are not used any more: the arithmetic of extents is no work of
// the program. A number that something else uses, a count to divide by, stays.
func (s *refinement) close(c *Computation) {
	for _, p := range c.Params {
		s.comp.Params = append(s.comp.Params, s.of[p])
	}
	s.comp.Root = s.of[c.Root]
	for n := range s.free {
		s.giveUp(n, noExtents)
	}
	uses := map[*Instr]int{s.comp.Root: 1}
	var all []*Instr
	for _, n := range slices.Backward(s.comp.Instrs) {
		if uses[n] == 0 && s.ints[n] != nil && n.Op != OpParameter {
			continue
		}
		for _, o := range n.Operands {
			uses[o]++
		}
		all = append(all, n)
	}
	slices.Reverse(all)
	s.comp.Instrs = all
}

// instr is i for the arguments; nil where nothing is left of it. An assertion of JAX's
// about extents is checked here, where its condition is known, and left out.
func (s *refinement) instr(i *Instr) (*Instr, error) {
	if i.Text("custom_call_target") == `"shape_assertion"` && len(i.Operands) > 0 {
		if known := s.ints[s.of[i.Operands[0]]]; len(known) == 1 && known[0] == 0 {
			return nil, fmt.Errorf("the program does not take these extents")
		}
		return nil, nil
	}
	n := &Instr{}
	*n = *i
	n.Operands = make([]*Instr, len(i.Operands))
	for k, o := range i.Operands {
		if n.Operands[k] = s.of[o]; s.of[o] == nil {
			return nil, fmt.Errorf("%s has no value", o.Name)
		}
	}
	if i.Op == OpParameter {
		return n, s.parameter(n)
	}
	s.meet(n)
	why := ""
	for _, o := range n.Operands {
		why = cmp.Or(why, s.why[o])
	}
	if refine := structural[i.Op]; refine != nil {
		s.inherited = why
		return n, refine(s, n)
	}
	for _, c := range n.Callees() {
		s.keep(c)
	}
	if why != "" {
		s.giveUp(n, why)
		return n, nil
	}
	return n, s.shape(n, i)
}

// parameter gives a parameter the shape of the argument.
func (s *refinement) parameter(n *Instr) error {
	a := s.args[n.Attrs.Param]
	if a.why != "" {
		s.why[n] = a.why
		n.Shape = a.shape
		n.Attrs.Other = append(
			slices.Clone(n.Attrs.Other),
			Attr{openReason, strconv.Quote(a.why)},
		)
		return nil
	}
	s.ints[n] = a.ints
	s.parts[n] = a.parts
	if n.Shape.DType == Tuple {
		n.Shape = a.shape
		return nil
	}
	declared := n.Shape
	n.Shape = a.shape
	return merged(&n.Shape, declared)
}

// structural are the operations that pass values on, known or not.
var structural map[Opcode]func(s *refinement, n *Instr) error

func init() {
	structural = map[Opcode]func(*refinement, *Instr) error{
		OpTuple:               (*refinement).tuple,
		OpGetTupleElement:     (*refinement).element,
		OpOptimizationBarrier: (*refinement).pass,
		OpCall:                (*refinement).call,
		OpFusion:              (*refinement).call,
		OpWhile:               (*refinement).loop,
		OpConditional:         (*refinement).branch,
	}
}

// tuple is a tuple of what its elements became.
func (s *refinement) tuple(n *Instr) error {
	s.setWhy(n, s.inherited)
	n.Shape.Tuple = operandShapes(n)
	s.parts[n] = make([][]int64, len(n.Operands))
	for k, o := range n.Operands {
		s.parts[n][k] = s.ints[o]
	}
	return nil
}

// element is an element of a tuple, with its declared layout.
func (s *refinement) element(n *Instr) error {
	of := n.Operands[0].Shape.Tuple
	if s.inherited != "" && n.Operands[0].Shape.DType == Token {
		s.giveUp(n, s.inherited)
		return nil
	}
	if n.Attrs.Index >= len(of) {
		return fmt.Errorf("there is no element %d of %s", n.Attrs.Index, n.Operands[0].Shape)
	}
	if parts := s.parts[n.Operands[0]]; parts != nil {
		s.ints[n] = parts[n.Attrs.Index]
	}
	n.Shape = of[n.Attrs.Index]
	if d := n.Shape.DType; d == Token || d == Tuple {
		s.setWhy(n, s.inherited)
	}
	return nil
}

// pass has the shape of its operand: an optimization-barrier, or what a loop ends with.
func (s *refinement) pass(n *Instr) error {
	if len(n.Operands) != 1 {
		return fmt.Errorf("%s has %d operands", n.Op, len(n.Operands))
	}
	s.setWhy(n, s.inherited)
	n.Shape = n.Operands[0].Shape
	return nil
}

// setWhy notes why n is not known.
func (s *refinement) setWhy(n *Instr, why string) {
	if why != "" {
		s.why[n] = why
	}
}

// arguments are what the operands of n pass to a computation.
func (s *refinement) arguments(operands []*Instr) []argument {
	args := make([]argument, len(operands))
	for k, o := range operands {
		args[k] = argument{
			o.Shape,
			s.ints[o],
			s.parts[o],
			s.why[o],
		}
	}
	return args
}

// call calls the refinement of a computation.
func (s *refinement) call(n *Instr) error {
	if n.Attrs.Calls == nil {
		return fmt.Errorf("%s names no computation", n.Op)
	}
	args := s.arguments(n.Operands)
	called, err := s.computation(n.Attrs.Calls, args)
	if err != nil {
		return err
	}
	n.Attrs.Calls = called.comp
	root := called.comp.Root
	n.Shape = root.Shape
	s.ints[n] = called.ints[root]
	s.parts[n] = called.parts[root]
	s.setWhy(n, called.why[root])
	return nil
}

// loop refines the condition and the body of a while for what it begins with. A number
// that the body passes on as it is, is known in it and after it.
func (s *refinement) loop(n *Instr) error {
	args := s.arguments(n.Operands)
	if len(args) != 1 || len(n.Attrs.Branches) != 2 ||
		len(n.Attrs.Branches[1].Params) != 1 {
		return fmt.Errorf("a while has one operand, a condition and a body of it")
	}
	body := n.Attrs.Branches[1]
	s.parts[n] = invariant(body, args[0].parts)
	args[0].ints = nil
	args[0].parts = s.parts[n]
	n.Attrs.Branches = slices.Clone(n.Attrs.Branches)
	why := s.inherited
	for k, c := range n.Attrs.Branches {
		branch, err := s.computation(c, args)
		if err != nil {
			return err
		}
		n.Attrs.Branches[k] = branch.comp
	}
	s.inherited = why
	return s.pass(n)
}

// invariant are the numbers of a tuple that the body of a loop passes on as they are.
func invariant(body *Computation, parts [][]int64) [][]int64 {
	kept := make([][]int64, len(parts))
	for k, o := range body.Root.Operands {
		if body.Root.Op != OpTuple || k >= len(parts) ||
			o.Op != OpGetTupleElement {
			continue
		}
		if o.Operands[0] == body.Params[0] && o.Attrs.Index == k {
			kept[k] = parts[k]
		}
	}
	return kept
}

// giveUp makes n a custom-call without a meaning. What has a shape keeps it, the sum of
// an array of open extent for instance; an array of open extent becomes a token, also
// where it is one of several results.
func (s *refinement) giveUp(n *Instr, why string) {
	delete(s.free, n)
	s.why[n] = why
	n.Shape = n.Shape.closed()
	if n.Unknown() != "" {
		return
	}
	n.Op, n.Literal = OpCustomCall, nil
	n.Attrs = Attrs{Other: append(
		slices.DeleteFunc(slices.Clone(n.Attrs.Other), func(a Attr) bool {
			return a.Name == "custom_call_target"
		}),
		Attr{"custom_call_target", openTarget},
		Attr{openReason, strconv.Quote(why)},
	)}
}

// branch refines the branches of a conditional, each for its operand.
func (s *refinement) branch(n *Instr) error {
	n.Attrs.Branches = slices.Clone(n.Attrs.Branches)
	args, why := s.arguments(n.Operands), s.inherited
	if n := len(n.Attrs.Branches); len(args) != n+1 {
		return fmt.Errorf("%d branches have %d operands", n, len(args)-1)
	}
	for k, c := range n.Attrs.Branches {
		branch, err := s.computation(c, args[k+1:k+2])
		if err != nil {
			return err
		}
		n.Attrs.Branches[k] = branch.comp
		n.Shape = branch.comp.Root.Shape
		root := branch.comp.Root
		why = cmp.Or(why, branch.why[root])
	}
	s.setWhy(n, why)
	return nil
}

// noExtents is the reason where nothing says an extent, fromData where a computation of
// data does.
const (
	noExtents = "its extents do not follow from those of the parameters"
	fromData  = "its extents are computed from data"
)

// meet gives the broadcasts among the operands of an elementwise operation the extents
// of the other operands. What they meet otherwise does not say them.
func (s *refinement) meet(n *Instr) {
	var dims []int64
	for _, o := range n.Operands {
		if !s.free[o] && o.Shape.Rank() > 0 && n.Op.Elementwise() {
			dims = o.Shape.Dims
		}
	}
	for _, o := range n.Operands {
		switch {
		case !s.free[o]:
		case len(dims) == o.Shape.Rank():
			delete(s.free, o)
			o.Shape.Dims = dims
		default:
			s.giveUp(o, noExtents)
		}
	}
}

// shape finds the extents of n, which i declares.
func (s *refinement) shape(n, i *Instr) error {
	if operands := s.numbers[i]; operands != nil {
		known := make([][]int64, len(operands))
		for k, o := range operands {
			o = s.of[o]
			if known[k] = s.ints[o]; known[k] == nil {
				s.giveUp(n, cmp.Or(s.why[o], fromData))
				return nil
			}
		}
		if err := s.takeNumbers(n, known); err != nil {
			return err
		}
	}
	if n.Op == OpConvolution && i.Operands[1].Shape.open() {
		n.sizeWindow()
	}
	switch {
	case n.Op == OpGetDimensionSize:
		return s.dimensionSize(n)
	case !n.Shape.open():
		s.squeeze(n)
		return nil
	}
	declared := n.Shape
	shape, err := n.refinedShape()
	switch {
	case errors.Is(err, errFree) && n.splats():
		s.free[n] = true
		return nil
	case errors.Is(err, errFree), errors.Is(err, errDeclared):
		s.giveUp(n, cmp.Or(i.Unknown(), noExtents))
		return nil
	case err != nil:
		return err
	}
	n.Shape = shape
	return merged(&n.Shape, declared)
}

// sizeWindow gives the window of a convolution the extents of its kernel.
func (i *Instr) sizeWindow() {
	conv, kernel := i.Attrs.Conv, i.Operands[1].Shape
	i.Attrs.Window = slices.Clone(i.Attrs.Window)
	for d := range i.Attrs.Window {
		i.Attrs.Window[d].Size = kernel.Dims[conv.KernelSpatial[d]]
	}
}

// splats reports whether i is a broadcast of a scalar.
func (i *Instr) splats() bool {
	return i.Op == OpBroadcast && len(i.Attrs.Dimensions) == 0
}

// dimensionSize makes a get-dimension-size a constant, which a program may use for more
// than extents: to divide by, in a mean.
func (s *refinement) dimensionSize(n *Instr) error {
	of := n.Operands[0].Shape
	d := append(n.Attrs.Dimensions, -1)[0]
	if d < 0 || d >= int64(of.Rank()) {
		return fmt.Errorf("%s has no dimension %d", of, d)
	}
	n.Op = OpConstant
	n.Operands = nil
	n.Attrs = Attrs{Other: n.Attrs.Other}
	n.Literal = &Literal{
		Shape: n.Shape,
		Ints:  []int64{of.Dims[d]},
	}
	return nil
}

// takeNumbers gives an operation what its operands of numbers say.
func (s *refinement) takeNumbers(n *Instr, numbers [][]int64) error {
	rank := n.Shape.Rank()
	if n.Op == OpGather {
		rank = n.Operands[0].Shape.Rank()
	}
	want := rank
	if n.Op == OpConvolution {
		want = 2 * len(n.Attrs.Window)
	}
	for _, list := range numbers {
		if len(list) != want {
			return fmt.Errorf("%d numbers for the %d dimensions of %s", len(list), rank, n.Shape)
		}
	}
	switch n.Op {
	case OpConvolution:
		n.Attrs.Window = slices.Clone(n.Attrs.Window)
		for k := range n.Attrs.Window {
			w := &n.Attrs.Window[k]
			w.PadLow = numbers[0][2*k]
			w.PadHigh = numbers[0][2*k+1]
		}
		return nil
	case OpGather:
		dims := *n.Attrs.Gather
		dims.SliceSizes = numbers[0]
		n.Attrs.Gather = &dims
		return nil
	case OpPad:
		n.Attrs.Padding = make([]PadDim, rank)
		for k := range rank {
			n.Attrs.Padding[k] = PadDim{
				numbers[0][k],
				numbers[1][k],
				numbers[2][k],
			}
		}
		return nil
	case OpSlice:
		n.Attrs.Slice = make([]SliceDim, rank)
		for k := range rank {
			n.Attrs.Slice[k] = SliceDim{
				numbers[0][k],
				numbers[1][k],
				numbers[2][k],
			}
		}
		return nil
	}
	declared := n.Shape
	n.Shape.Dims = slices.Clone(numbers[0])
	if rank > 0 && slices.Min(n.Shape.Dims) < 0 {
		return fmt.Errorf("the extents %v are negative", n.Shape.Dims)
	}
	return cmp.Or(merged(&n.Shape, declared), n.Shape.checkSize())
}

// squeeze drops the dimensions of extent 1 of a broadcast's operand that grow, which
// HLO's broadcast cannot do.
func (s *refinement) squeeze(n *Instr) {
	if n.Op != OpBroadcast {
		return
	}
	x := n.Operands[0]
	if len(n.Attrs.Dimensions) != x.Shape.Rank() {
		return
	}
	small := &Instr{
		Name:     n.Name + ".squeezed",
		Op:       OpReshape,
		Operands: n.Operands,
		Shape:    Shape{DType: x.Shape.DType},
		Pos:      n.Pos,
	}
	kept := []int64{}
	for k, d := range n.Attrs.Dimensions {
		inside := d >= 0 && d < int64(n.Shape.Rank())
		if inside && x.Shape.Dims[k] == 1 &&
			n.Shape.Dims[d] != 1 {
			continue
		}
		small.Shape.Dims = append(small.Shape.Dims, x.Shape.Dims[k])
		kept = append(kept, d)
	}
	if len(kept) < x.Shape.Rank() {
		n.Attrs.Dimensions = kept
		n.Operands = []*Instr{small}
		s.comp.Instrs = append(s.comp.Instrs, small)
	}
}

// refinedShape is the shape of i with the extents that follow from its operands, by the
// rule that infers a shape that HLO text leaves out; of broadcasts and reshapes, which
// have none, the extents that can be told.
func (i *Instr) refinedShape() (Shape, error) {
	of := Shape{}
	if len(i.Operands) > 0 {
		of = i.Operands[0].Shape
	}
	s := i.Shape
	s.Dims = slices.Clone(s.Dims)
	switch i.Op {
	case OpBroadcast:
		for k, d := range i.Attrs.Dimensions {
			if d >= 0 && d < int64(s.Rank()) && k < of.Rank() {
				s.Dims[d] = of.Dims[k]
			}
		}
	case OpReshape, OpBitcast:
		s.fill(of.Elements())
	default:
		trial := *i
		return trial.inferredShape()
	}
	if s.open() {
		return s, errFree
	}
	return s, nil
}

// fill sets the only open extent so that there are n elements. Where there are several,
// or none fits, the shape stays open.
func (s *Shape) fill(n int64) {
	rest, at := int64(1), -1
	for k, d := range s.Dims {
		switch {
		case d != openExtent:
			rest *= d
		case at >= 0:
			return
		default:
			at = k
		}
	}
	if at >= 0 && rest > 0 && n%rest == 0 {
		s.Dims[at] = n / rest
	}
}

// maxNumbers bounds the numbers that are computed of an instruction.
const maxNumbers = 256

// evaluate computes the elements of n where it has few, all whole numbers of known
// operands. What is not evaluated is not known, and an extent that depends on it is
// open: there is no wrong answer for an operation that is missing here.
func (s *refinement) evaluate(n *Instr) {
	if n.Shape.open() {
		return
	}
	d := n.Shape.DType
	whole := d.IsSigned() || d.IsUnsigned() || d == Pred
	if !whole || n.Shape.Rank() > 2 || n.Shape.Elements() > maxNumbers {
		return
	}
	if s.why[n] != "" || s.ints[n] != nil {
		return
	}
	count := int(n.Shape.Elements())
	lists := make([][]int64, len(n.Operands))
	for k, o := range n.Operands {
		if lists[k] = s.ints[o]; lists[k] == nil {
			return
		}
	}
	switch n.Op {
	case OpConstant:
		if l := n.Literal; l != nil && len(l.Ints) == count {
			s.ints[n] = l.Ints
		}
	case OpReshape, OpConvert, OpCopy:
		s.ints[n] = lists[0]
	case OpConcatenate:
		if n.Attrs.Dimensions[0] == 0 { // else rows are joined
			s.ints[n] = slices.Concat(lists...)
		}
	case OpBroadcast:
		if len(lists[0]) == 1 {
			s.ints[n] = slices.Repeat(lists[0], count)
		}
	case OpSlice:
		if n.Shape.Rank() == 1 {
			s.ints[n] = sliced(lists[0], n.Attrs.Slice)
		}
	default:
		s.ints[n] = n.elementwise(lists)
	}
}

// sliced is a slice of a list.
func sliced(list []int64, ranges []SliceDim) []int64 {
	part := []int64{}
	for _, r := range ranges {
		limit := min(r.Limit, int64(len(list)))
		if r.Start < 0 || r.Stride < 1 {
			continue
		}
		for k := r.Start; k < limit; k += r.Stride {
			part = append(part, list[k])
		}
	}
	return part
}

// whole computes a binary operation, as JAX and PyTorch print the arithmetic of extents:
// sums, products, quotients that are corrected where they are not rounded down, clamps
// by maxima and minima.
func (op Opcode) whole(x, y int64) (v int64, ok bool) {
	switch op {
	case OpAdd:
		return x + y, true
	case OpSubtract:
		return x - y, true
	case OpMultiply:
		return x * y, true
	case OpMaximum:
		return max(x, y), true
	case OpMinimum:
		return min(x, y), true
	case OpAnd:
		return x & y, true
	case OpOr:
		return x | y, true
	case OpXor:
		return x ^ y, true
	}
	if y == 0 {
		return 0, false
	}
	switch op {
	case OpDivide: // rounded to zero, as HLO's
		return x / y, true
	case OpRemainder:
		return x % y, true
	}
	return 0, false
}

// elementwise computes an elementwise operation of lists, where a list of one number
// stands for a scalar; nil where it is no operation
// of extents or leaves the numbers that are exact in any type of 32 bits.
func (i *Instr) elementwise(lists [][]int64) []int64 {
	out := make([]int64, i.Shape.Elements())
	for k := range out {
		at := func(n int) int64 {
			list := lists[n]
			return list[min(k, len(list)-1)]
		}
		switch {
		case i.Op == OpNegate:
			out[k] = -at(0)
		case i.Op == OpSign:
			out[k] = int64(cmp.Compare(at(0), 0))
		case i.Op == OpSelect && at(0) != 0:
			out[k] = at(1)
		case i.Op == OpSelect:
			out[k] = at(2)
		case i.Op == OpNot && i.Shape.DType == Pred:
			out[k] = 1 - at(0)
		case i.Op == OpCompare:
			out[k] = compared(at(0), at(1), i.Attrs.Direction)
		case len(lists) != 2:
			return nil
		default:
			var ok bool
			out[k], ok = i.Op.whole(at(0), at(1))
			if !ok {
				return nil
			}
		}
		if v := out[k]; v != int64(int32(v)) {
			return nil
		}
	}
	return out
}

// compared is 1 where the relation holds.
func compared(x, y int64, direction string) int64 {
	holds := map[string]bool{
		"EQ": x == y, "NE": x != y,
		"LT": x < y, "LE": x <= y,
		"GT": x > y, "GE": x >= y,
	}
	if holds[direction] {
		return 1
	}
	return 0
}
