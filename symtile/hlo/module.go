package hlo

import (
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/source"
)

// A Module is one HLO file: computations, one of which is the entry.
type Module struct {
	// Name follows HloModule; it is empty for text without a module around it.
	Name string
	// Attrs are the attributes of the module, verbatim, in file order.
	Attrs []Attr
	// Open are the parameters of the entry with extents that the text leaves open, by
	// name; see Extents.
	Open []string
	// Computations are in file order: those that are called come before their
	// callers.
	Computations []*Computation
	// Entry is the computation marked ENTRY, or the last one.
	Entry *Computation
}

// A Computation is a list of instructions in an order in which operands come
// before their users. Instructions belong to one computation; a computation may
// be called by several instructions and is not changed once it is parsed.
type Computation struct {
	Name string
	// Instrs are all instructions in file order, parameters and unused ones
	// included.
	Instrs []*Instr
	// Params are the parameters by number, without gaps.
	Params []*Instr
	// Root is the instruction whose value is the result.
	Root *Instr
}

// An Instr is one instruction: an operation, its operands and its attributes.
type Instr struct {
	// Name is the name in the text without the leading %, unique in its
	// computation.
	Name string
	Op   Opcode
	// Shape is the shape of the result, which Parse has checked against the rule
	// of the operation.
	Shape    Shape
	Operands []*Instr
	Attrs    Attrs
	// Literal is the value of a constant, nil for other operations.
	Literal *Literal
	// Pos is where the instruction begins in the source.
	Pos Pos
	// place is the number among the instructions of its computation, where the parser has
	// made it; a copy that is in another computation has a wrong one.
	place int
}

// Attrs are the attributes the project reasons about, typed. Everything else
// is in Other, verbatim. A nil slice means the attribute is absent or empty. The
// comments give the names in HLO text where these differ.
type Attrs struct {
	// Param is the number of a parameter.
	Param int
	// Index is the element of a get-tuple-element.
	Index int
	// Dimensions is dimensions= of broadcast, transpose, reduce, concatenate,
	// reverse, map and others; the shape rules say what each means by it.
	Dimensions []int64
	// IotaDim is iota_dimension=, along which an iota counts.
	IotaDim int64
	// Slice is slice={[start:limit:stride], …}, one range for each dimension.
	Slice []SliceDim
	// Padding is padding=low_high[_interior]x… of a pad.
	Padding []PadDim
	// LHSBatch and the next three are lhs_batch_dims=, rhs_batch_dims=,
	// lhs_contracting_dims= and rhs_contracting_dims= of dot and scaled-dot. The
	// lists of a pair have one length: entry k of one side meets entry k of the
	// other.
	LHSBatch    []int64
	RHSBatch    []int64
	LHSContract []int64
	RHSContract []int64
	// Window is window= of reduce-window, select-and-scatter and convolution;
	// convolutions have an entry for each spatial dimension only.
	Window []WindowDim
	// Conv is dim_labels= of a convolution.
	Conv *ConvDims
	// FeatureGroups and BatchGroups are feature_group_count= and
	// batch_group_count= of a convolution, where 0 means 1; see Groups.
	FeatureGroups, BatchGroups int64
	// Gather and Scatter are the dimension numbers of these operations.
	Gather  *GatherDims
	Scatter *ScatterDims
	// SliceSizes is dynamic_slice_sizes=.
	SliceSizes []int64
	// ReplicaGroups is replica_groups= of collectives: the replicas that
	// exchange data with each other. Nil or empty is one group of all.
	ReplicaGroups [][]int64
	// SourceTargets is source_target_pairs= of a collective-permute.
	SourceTargets [][]int64
	// Direction is the relation of a compare: EQ, NE, LT, LE, GT or GE.
	Direction string
	// CompareType is type= of a compare: TOTALORDER, or "" for the order of the
	// element type, in which NaN is unordered and −0 equals +0.
	CompareType string
	// Kind is kind= of a fusion: kLoop, kInput, kOutput or kCustom. It is not
	// part of what is computed.
	Kind string
	// Calls is calls= of a fusion and to_apply= of a call.
	Calls *Computation
	// ToApply is to_apply= of reduce, map, sort and the like, and scatter= of
	// select-and-scatter: the computation of scalars.
	ToApply *Computation
	// Select is select= of select-and-scatter.
	Select *Computation
	// Branches are the computations of control flow: condition and body of a
	// while, the branches of a conditional in order of their index.
	Branches []*Computation
	// Other holds the attributes that are kept as text, in file order.
	Other []Attr
}

// SliceDim is the range of a slice along one dimension: the indices start,
// start+stride, … < limit.
type SliceDim struct{ Start, Limit, Stride int64 }

// PadDim is the padding of one dimension: Low elements before and High after,
// which crop when negative, and Interior between each two neighbours.
type PadDim struct{ Low, High, Interior int64 }

// Attr is an attribute kept as text.
type Attr struct{ Name, Value string }

// Pos is a place in the source text; Line and Col count from 1, Col in bytes.
type Pos = source.Position

// Source is where the instruction comes from, by its attribute metadata.
func (i *Instr) Source() origin.Source {
	return origin.Of(i.Text("metadata"))
}

// Source is where the computation comes from by its own instructions: the root, or the
// nearest operand of it that says so. Sources also asks its callers.
func (c *Computation) Source() origin.Source {
	queue := []*Instr{c.Root}
	seen := map[*Instr]bool{c.Root: true}
	for n := 0; n < len(queue); n++ {
		if s := queue[n].Source(); s != (origin.Source{}) {
			return s
		}
		for _, o := range queue[n].Operands {
			if !seen[o] {
				seen[o] = true
				queue = append(queue, o)
			}
		}
	}
	return origin.Source{}
}

// Callers are the fusion instructions that execute each computation, in their order.
func (m *Module) Callers() map[*Computation][]*Instr {
	callers := map[*Computation][]*Instr{}
	for _, c := range m.Computations {
		for _, i := range c.Instrs {
			if i.Op == OpFusion && i.Attrs.Calls != nil {
				callers[i.Attrs.Calls] = append(callers[i.Attrs.Calls], i)
			}
		}
	}
	return callers
}

// Sources are where a fusion comes from, each once: what the instructions that execute it
// say (Module.Callers), in their order, or else its own Source. All outputs name a fusion
// by the first of them; there is none where nothing is known.
func (c *Computation) Sources(callers []*Instr) (all []origin.Source) {
	for _, i := range callers {
		all = origin.Append(all, i.Source())
	}
	if len(all) == 0 {
		all = origin.Append(all, c.Source())
	}
	return all
}

// SourceOf is the first of the Sources of a fusion of the module, as text. Who asks for
// many of them takes Callers once.
func (m *Module) SourceOf(c *Computation) string {
	source, _ := origin.First(c.Sources(m.Callers()[c]))
	return source
}

// Text is the value of an attribute that is kept as text, such as backend_config;
// "" when there is none.
func (i *Instr) Text(attr string) string {
	for _, a := range i.Attrs.Other {
		if a.Name == attr {
			return a.Value
		}
	}
	return ""
}

// ParamShapes is the shapes of the parameters, by parameter number.
func (c *Computation) ParamShapes() []Shape {
	shapes := make([]Shape, len(c.Params))
	for k, p := range c.Params {
		shapes[k] = p.Shape
	}
	return shapes
}

// Reads reports whether output, an element of the root tuple or 0 for the root
// itself, is made from parameter param.
func (c *Computation) Reads(output, param int) bool {
	root := c.Root
	if root.Op == OpTuple && output < len(root.Operands) {
		root = root.Operands[output]
	}
	seen := map[*Instr]bool{}
	var reads func(i *Instr) bool
	reads = func(i *Instr) bool {
		if seen[i] {
			return false
		}
		seen[i] = true
		for _, o := range i.Operands {
			if reads(o) {
				return true
			}
		}
		return i.Op == OpParameter && i.Attrs.Param == param
	}
	return reads(root)
}

// Monoid recognises a scalar computation that is one associative and
// commutative operation of its two parameters.
func (c *Computation) Monoid() (Opcode, bool) {
	root := c.Root
	if len(c.Params) != 2 || len(root.Operands) != 2 {
		return "", false
	}
	x := root.Operands[0]
	y := root.Operands[1]
	if !(x == c.Params[0] && y == c.Params[1] ||
		x == c.Params[1] && y == c.Params[0]) {
		return "", false
	}
	if !root.Op.Has(Monoid) {
		return "", false
	}
	return root.Op, true
}

// effectful operations do something besides computing a result: they move data to or from
// the host or another device, or change the state of a generator, as in XLA's
// HloInstruction::HasSideEffect.
var effectful = map[Opcode]bool{
	OpInfeed: true, OpOutfeed: true,
	OpSend: true, OpSendDone: true, OpRecv: true, OpRecvDone: true,
	OpRng: true, OpRngGetAndUpdateState: true,
}

// sideEffect is the attribute by which a custom-call says that it has one.
const sideEffect = "custom_call_has_side_effect"

// Effects finds the instructions that have to be executed although nothing needs their
// results. It remembers the computations that it has seen, which must not change. The
// zero value is ready to use.
type Effects struct {
	seen map[*Computation]*Instr
}

// Of is the instruction by which i has a side effect: i itself, or one of a computation
// that i calls; nil where it has none. The first call takes time in proportion to the
// computations that i reaches.
func (e *Effects) Of(i *Instr) *Instr {
	if effectful[i.Op] || i.Op == OpCustomCall && i.Text(sideEffect) == "true" {
		return i
	}
	for _, c := range i.Callees() {
		if by := e.In(c); by != nil {
			return by
		}
	}
	return nil
}

// In is the first instruction by which c has a side effect; nil where it has none.
func (e *Effects) In(c *Computation) *Instr {
	by, known := e.seen[c]
	if known {
		return by
	}
	for _, i := range c.Instrs {
		if by = e.Of(i); by != nil {
			break
		}
	}
	if e.seen == nil {
		e.seen = map[*Computation]*Instr{}
	}
	e.seen[c] = by
	return by
}
