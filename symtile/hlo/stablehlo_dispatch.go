package hlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The lowering of an operation is found by dialect and name. Operations that HLO
// has under another spelling are rows of opTable with the trait plain; the others
// have a function each. An operation with neither is an error that says why where
// a reason is known, and suggests the nearest name otherwise.

// A lowering says what an operation of StableHLO is in HLO.
type lowering struct {
	// operands and regions are the numbers that the operation takes; −1 is any.
	operands int
	regions  int
	// lower appends the instructions that stand for o to b and returns the one
	// whose value is o's: a tuple where o has several results. Nil lowers to the
	// first operand itself.
	lower func(m *mlir, b *block, o *mlirOp) (*Instr, error)
}

// lowerings are the operations of the stablehlo and mhlo dialects. Where the
// two languages agree, the name with its underscores replaced is enough.
var lowerings = merge(plainLowerings("stablehlo", "mhlo"), map[string]lowering{
	"constant":           {0, 0, lowerConstant},
	"iota":               {0, 0, lowerIota},
	"broadcast_in_dim":   {1, 0, lowerBroadcastInDim},
	"broadcast":          {1, 0, lowerBroadcast},
	"transpose":          {1, 0, lowerWithDimensions("dims", "permutation")},
	"reverse":            {1, 0, lowerWithDimensions("dims", "dimensions")},
	"concatenate":        {-1, 0, lowerWithDimensions("dim", "dimension")},
	"slice":              {1, 0, lowerSlice},
	"pad":                {2, 0, lowerPad},
	"compare":            {2, 0, lowerCompare},
	"select":             {3, 0, lowerSelect},
	"clamp":              {3, 0, lowerClamp},
	"dot":                {2, 0, lowerDot},
	"dot_general":        {2, 0, lowerDotGeneral},
	"convolution":        {2, 0, lowerConvolution},
	"reduce":             {-1, 1, lowerReduce},
	"reduce_window":      {-1, 1, lowerReduceWindow},
	"select_and_scatter": {3, 2, lowerSelectAndScatter},
	"sort":               {-1, 1, lowerSort},
	"map":                {-1, 1, lowerMap},
	"gather":             {2, 0, lowerGather},
	"scatter":            {-1, 1, lowerScatter},
	"dynamic_slice":      {-1, 0, lowerDynamicSlice},
	"get_tuple_element":  {1, 0, lowerGetTupleElement},

	"dynamic_broadcast_in_dim": {2, 0, lowerBroadcastInDim},
	"dynamic_gather":           {3, 0, lowerGather},
	"dynamic_reshape":          {2, 0, lowerNumbered(OpReshape, 1)},
	"dynamic_iota":             {1, 0, lowerNumbered(OpIota, 0)},
	"dynamic_pad":              {5, 0, lowerNumbered(OpPad, 2)},
	"dynamic_conv":             {3, 0, lowerDynamicConvolution},
	"real_dynamic_slice":       {4, 0, lowerNumbered(OpSlice, 1)},

	"optimization_barrier": {-1, 0, lowerBarrier},
	"while":                {-1, 2, lowerWhile},
	"if":                   {1, 2, lowerConditional},
	"case":                 {1, -1, lowerConditional},
	"call":                 {-1, 0, lowerCall},
	"composite":            {-1, 0, lowerComposite},
	"custom_call":          {-1, 0, lowerCustomCall},
	"rng":                  {3, 0, lowerRng},
	"rng_bit_generator":    {1, 0, lowerRngBitGenerator},
	"fft":                  {1, 0, lowerFft},
	"cholesky":             {1, 0, lowerCholesky},
	"triangular_solve":     {2, 0, lowerTriangularSolve},
	"reduce_precision":     {1, 0, lowerReducePrecision},
	"get_dimension_size":   {1, 0, lowerWithDimensions("dim", "dimension")},
	"set_dimension_size":   {2, 0, lowerSetDimensionSize},
	"batch_norm_inference": {5, 0, lowerBatchNorm},
	"batch_norm_training":  {3, 0, lowerBatchNorm},
	"batch_norm_grad":      {5, 0, lowerBatchNorm},
	"all_gather":           {-1, 0, lowerCollective},
	"all_to_all":           {-1, 0, lowerCollective},
	"collective_permute":   {1, 0, lowerCollective},
	"collective_broadcast": {-1, 0, lowerCollective},
	"all_reduce":           {-1, 1, lowerCollective},
	"reduce_scatter":       {1, 1, lowerCollective},
	"create_token":         {0, 0, lowerAs(OpAfterAll)},
	"after_all":            {-1, 0, lowerAs(OpAfterAll)},
	"replica_id":           {0, 0, lowerAs(OpReplicaId)},
	"partition_id":         {0, 0, lowerAs(OpPartitionId)},
})

// plainLowerings are the operations of some dialects that HLO has under another
// spelling and that have no attributes: rows of opTable with the trait plain.
func plainLowerings(dialects ...string) map[string]lowering {
	all := map[string]lowering{}
	for _, op := range Opcodes() {
		if !op.Has(plain) {
			continue
		}
		_, operands := op.Arity()
		for _, full := range op.MLIR() {
			dialect, name, _ := strings.Cut(full, ".")
			if slices.Contains(dialects, dialect) {
				all[name] = lowering{operands, 0, lowerAs(op)}
			}
		}
	}
	return all
}

// merge adds the entries of b to a and returns a.
func merge(a, b map[string]lowering) map[string]lowering {
	for name, l := range b {
		a[name] = l
	}
	return a
}

// mlirSpelling is the name of op with underscores, as MLIR spells it.
func mlirSpelling(op Opcode) string {
	return strings.ReplaceAll(string(op), "-", "_")
}

// lowerAs gives an operation another name and nothing else.
func lowerAs(op Opcode) func(*mlir, *block, *mlirOp) (*Instr, error) {
	return func(
		m *mlir, b *block, o *mlirOp,
	) (*Instr, error) {
		return m.accuracy(
			o, m.result(b, o, op, o.operands...),
		)
	}
}

// lowerWithDimensions is for operations with a list of dimensions under one of the names.
func lowerWithDimensions(names ...string) func(*mlir, *block, *mlirOp) (*Instr, error) {
	return func(
		m *mlir, b *block, o *mlirOp,
	) (*Instr, error) {
		dims, err := m.needInts(o, names...)
		if err != nil {
			return nil, err
		}
		i := m.result(
			b, o,
			Opcode(strings.ReplaceAll(o.name, "_", "-")),
			o.operands...,
		)
		i.Attrs.Dimensions = dims
		return i, nil
	}
}

// dialects are the dialects read, each with its operations.
var dialects = map[string]map[string]lowering{
	"stablehlo": lowerings, "mhlo": lowerings, "chlo": chloLowerings,
	"func": {"call": lowerings["call"]}, "arith": {"constant": lowerings["constant"]},
	"linalg": packLowerings,
	"tensor": merge(map[string]lowering{"empty": {-1, 0, lowerEmpty}}, packLowerings),
	// nil: the operand itself
	"sdy": {
		"constant":            lowerings["constant"],
		"manual_computation":  {-1, 1, lowerManualComputation},
		"named_computation":   {-1, 1, lowerManualComputation},
		"propagation_barrier": {1, 0, nil},
		"sharding_constraint": {1, 0, nil},
		"sharding_group":      {1, 0, nil},
		"reshard":             {1, 0, nil},
	},
}

// lowering finds what an operation is in HLO. Of an operation that is not read for a
// reason nothing but its shape is known.
func (m *mlir) lowering(o *mlirOp) (l lowering, known bool) {
	if m.unread(o) != "" {
		return lowering{-1, -1, lowerUnread}, true
	}
	l, known = dialects[o.dialect][o.name]
	if o.name == "custom_call" && o.symbol != "" {
		if c, is := calledOperation(o.symbol); is {
			return c, true
		}
	}
	return l, known
}

// calledOperation finds what a custom_call stands for: a sharding computes nothing, and
// JAX writes functions that HLO has as calls of mhlo.erf and the like.
func calledOperation(target string) (l lowering, known bool) {
	if target == "Sharding" {
		return lowering{1, 0, nil}, true
	}
	name, is := strings.CutPrefix(target, "mhlo.")
	l, known = chloLowerings[name]
	return l, is && known && l.operands == 1 && l.regions == 0
}

// lowerUnread makes a custom-call of an operation that is not read.
func lowerUnread(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	return m.opaque(b, o, m.unread(o)), nil
}

// opaque is a custom-call in the place of an operation, so that the rest of the module
// can be used. Its results have the shapes that the text declares, its operands are the
// values that the operation and its regions use, and the reason is what Instr.Unknown
// says of it.
func (m *mlir) opaque(b *block, o *mlirOp, why string) *Instr {
	full := o.dialect + "." + o.name
	used := append(o.operands, o.captured...)
	i := m.result(b, o, OpCustomCall, used...)
	i.Attrs.Other = []Attr{
		{"custom_call_target", strconv.Quote(full)},
		{unreadReason, strconv.Quote(full + " is not read: " + why)},
	}
	i.Attrs.Other = append(i.Attrs.Other, effectOf(i.Shape, why == hostMoves)...)
	return i
}

// checkName refuses operations that are not read, before their form is.
func (m *mlir) checkName(o *mlirOp) error {
	full := o.dialect + "." + o.name
	_, known := m.lowering(o)
	if known ||
		o.name == "return" && o.dialect != "chlo" && dialects[o.dialect] != nil {
		return nil
	}
	if dialects[o.dialect] == nil {
		return m.Fail(
			o.at, "%s: operations of the stablehlo, mhlo and chlo dialects are read%s",
			full,
			suggest(o.dialect, commonDialects),
		)
	}
	return m.Fail(
		o.at, "%s is not an operation that is read%s",
		full,
		suggest(full, operationNames(o.dialect)),
	)
}

// commonDialects are what a misspelt dialect may have been meant as.
var commonDialects = []string{"stablehlo", "mhlo", "chlo", "func"}

// operationNames are the operations of a dialect that are read, for errors.
func operationNames(dialect string) []string {
	var names []string
	for name := range dialects[dialect] {
		names = append(names, dialect+"."+name)
	}
	slices.Sort(names)
	return names
}

// suggest is " (did you mean …?)", or "" when no name is near.
func suggest(misspelt string, names []string) string {
	if near := Nearest(misspelt, names); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}

// refusals are operations of the stablehlo and mhlo dialects that have no counterpart
// here, and why.
var refusals = map[string]string{
	"uniform_quantize":   quantized,
	"uniform_dequantize": quantized,
	"infeed":             hostMoves,
	"outfeed":            hostMoves,
	"send":               hostMoves,
	"recv":               hostMoves,
	"async_start":        hostMoves,
	"async_done":         hostMoves,
	"einsum":             deprecated,
	"unary_einsum":       deprecated,
	"torch_index_select": deprecated,
	"cross-replica-sum":  deprecated,
}

const (
	quantized  = "quantized types are not supported; lower the module first (stablehlo-opt --stablehlo-legalize-quant-to-math)"
	hostMoves  = "transfers to and from the host are not supported"
	lowerChlo  = "lower the module first (stablehlo-opt --chlo-legalize-to-stablehlo)"
	deprecated = "it is deprecated; lower it first (stablehlo-opt --stablehlo-legalize-deprecated-ops)"
)

// unread reports why an operation has no counterpart here; "" where it is read, or its
// name is near to that of one that is, and an error.
func (m *mlir) unread(o *mlirOp) string {
	_, known := dialects[o.dialect][o.name]
	switch {
	case o.name == "return" && dialects[o.dialect] != nil,
		dialects[o.dialect] == nil && suggest(o.dialect, commonDialects) != "":
		return ""
	case dialects[o.dialect] == nil:
		return "operations of the stablehlo, mhlo and chlo dialects are read"
	case o.isQuantized() && m.quantized:
		return quantized
	case o.isQuantized():
		return "elements of the types of other dialects are not supported"
	case known:
		return ""
	case o.dialect == "chlo" && chloDecomposed[o.name]:
		return "HLO has no such operation; " + lowerChlo
	case refusals[o.name] != "" && (o.dialect == "stablehlo" || o.dialect == "mhlo"):
		return refusals[o.name]
	case suggest(o.dialect+"."+o.name, operationNames(o.dialect)) != "":
		return ""
	}
	return "it is not an operation that is known here"
}

// passesOn are the operations that compute nothing of the elements that they are given.
var passesOn = map[string]bool{
	"tuple": true, "get_tuple_element": true, "optimization_barrier": true,
	"custom_call": true, "while": true, "if": true, "case": true, "composite": true,
}

// isQuantized reports whether o computes on arrays of a quantized type, or makes one.
func (o *mlirOp) isQuantized() bool {
	quantized := func(s Shape) bool { return s.DType == Opaque }
	return !passesOn[o.name] && (slices.ContainsFunc(o.types, quantized) ||
		slices.ContainsFunc(o.operands, func(i *Instr) bool { return quantized(i.Shape) }))
}

// emit appends what o means to b's computation and binds its results.
func (m *mlir) emit(b *block, o *mlirOp) error {
	if o.name == "return" {
		m.setRoot(b, o)
		return nil
	}
	l, _ := m.lowering(o)
	if l.operands >= 0 && len(o.operands) != l.operands {
		return m.Fail(
			o.at, "%s takes %d operands, %d given",
			o.name, l.operands, len(o.operands),
		)
	}
	if l.regions >= 0 && len(o.regions) != l.regions {
		return m.Fail(
			o.at, "%s has %d regions, %d given",
			o.name, l.regions, len(o.regions),
		)
	}
	if len(o.types) == 0 && l.operands >= 0 {
		return m.Fail(o.at, "%s has a result, and needs its type", o.name)
	}
	if l.lower == nil {
		return m.bindResults(b, o, o.operands[0])
	}
	i, err := l.lower(m, b, o)
	if err != nil {
		return err
	}
	if want := i.wrongArity(); want != "" {
		return m.Fail(
			o.at, "%s takes %s, %d given",
			o.name, want, len(i.Operands),
		)
	}
	return m.bindResults(b, o, i)
}

// bindResults gives names to i, or to its elements when there are several.
func (m *mlir) bindResults(b *block, o *mlirOp, i *Instr) error {
	declared := 0
	for _, r := range o.results {
		declared += r.count
	}
	if declared != 0 && declared != len(o.types) {
		return m.Fail(
			o.at, "%s has %d results, %d named",
			o.name, len(o.types), declared,
		)
	}
	if declared == 1 {
		// a while that carries more
		if i.Shape.DType == Tuple &&
			o.types[0].DType != Tuple {
			i = m.element(b, o.at, i, 0)
		}
		return m.bind(b, o.at, o.results[0].name, i)
	}
	k := 0
	for _, r := range o.results {
		for n := range r.count {
			e := m.element(b, o.at, i, k)
			k++
			if n == 0 {
				if err := m.bind(b, o.at, r.name, e); err != nil {
					return err
				}
			}
			err := m.bind(
				b, o.at,
				fmt.Sprintf("%s#%d", r.name, n),
				e,
			)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// result appends the instruction that is o's result.
func (m *mlir) result(b *block, o *mlirOp, op Opcode, operands ...*Instr) *Instr {
	if len(o.types) != 1 {
		return m.add(
			b, o.at, o.instrName(op),
			op,
			Shape{DType: Tuple, Tuple: slices.Clone(o.types)},
			operands...,
		)
	}
	shape := o.types[0]
	return m.add(
		b, o.at, o.instrName(op), op, shape, operands...,
	)
}

// instrName is add.0 for %0 and the name itself for %name.
func (o *mlirOp) instrName(op Opcode) string {
	if len(o.results) == 0 {
		return string(op)
	}
	name := o.results[0].name
	if c := name[0]; c >= '0' && c <= '9' {
		return string(op) + "." + hloName(name)
	}
	return hloName(name)
}

// lowerNumbered is for operations whose operands from number on are the extents of the
// result, or the padding or ranges of each dimension: refinement makes attributes of
// them.
func lowerNumbered(op Opcode, number int) func(*mlir, *block, *mlirOp) (*Instr, error) {
	return func(
		m *mlir, b *block, o *mlirOp,
	) (*Instr, error) {
		i := m.result(b, o, op, o.operands[:number]...)
		m.numbers[i] = slices.Clone(o.operands[number:])
		if op != OpIota {
			return i, nil
		}
		var err error
		i.Attrs.IotaDim, err = m.needInt(o, 0, "dim", "iota_dimension")
		return i, err
	}
}

// needInts reads an attribute that must be there.
func (m *mlir) needInts(o *mlirOp, names ...string) ([]int64, error) {
	s, ok := o.attrs.find(names...)
	if !ok {
		return nil, m.Fail(
			o.at, "%s needs %s =", o.name, names[0],
		)
	}
	return m.ints(s)
}

// someInts reads an attribute, nil when it is absent.
func (m *mlir) someInts(attrs mlirAttrs, names ...string) ([]int64, error) {
	s, ok := attrs.find(names...)
	if !ok {
		return nil, nil
	}
	return m.ints(s)
}

// needInt reads an attribute of one number; absent when the operation may
// leave it out.
func (m *mlir) needInt(o *mlirOp, absent int64, names ...string) (int64, error) {
	v, err := m.someInts(o.attrs, names...)
	if err != nil || v == nil {
		return absent, err
	}
	if len(v) != 1 {
		return 0, m.Fail(
			o.at, "%s of %s is one number", names[0], o.name,
		)
	}
	return v[0], nil
}

// flag reports whether an attribute is there and not false.
func (m *mlir) flag(attrs mlirAttrs, name string) bool {
	s, ok := attrs.find(name)
	return ok && m.text(s) != "false"
}

// set gives i an attribute as HLO text writes it; nothing for "".
func (m *mlir) set(i *Instr, o *mlirOp, name, text string) error {
	if text == "" {
		return nil
	}
	if err := m.setAttr(i, name, text, o.at); err != nil {
		return m.Fail(
			o.at, "%s of %s: %v", name, o.name, err,
		)
	}
	return nil
}

// setAll is set for pairs of name and text.
func (m *mlir) setAll(
	i *Instr, o *mlirOp, pairs ...string,
) (*Instr, error) {
	for k := 0; k < len(pairs); k += 2 {
		err := m.set(i, o, pairs[k], pairs[k+1])
		if err != nil {
			return nil, err
		}
	}
	return i, nil
}

// accuracy keeps result_accuracy where it is not the default.
func (m *mlir) accuracy(o *mlirOp, i *Instr) (*Instr, error) {
	s, ok := o.attrs.find("result_accuracy")
	if ok && strings.Contains(m.text(s), "HIGHEST") {
		return i, m.set(i, o, "result_accuracy", "{mode=highest}")
	}
	return i, nil
}

// trueText prints a flag as an attribute: "" when it is not set, which leaves
// it out.
func trueText(v bool) string {
	if v {
		return "true"
	}
	return ""
}
