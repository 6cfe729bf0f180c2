package hlo

import "slices"

// Opcode is the HLO name of an operation, e.g. "add" or "get-tuple-element".
type Opcode string

// An opRow is what the front end knows of an operation.
type opRow struct {
	atLeast, atMost int // operands; atMost −1 means any number
	elementwise     bool
	check           func(*Instr) error // the declared shape follows from the operands; nil: not checked
}

var (
	unary  = opRow{1, 1, true, checkSameAsOperand}
	binary = opRow{2, 2, true, checkSameAsOperand}
	other  = opRow{0, -1, false, nil} // known by name only
)

// opTable is every operation by name. Operations that can be tiled have a
// shape rule; the others are parsed with their attributes kept as text.
var opTable = map[Opcode]opRow{
	"abs": {1, 1, true, checkAbs}, "cbrt": unary, "ceil": unary, "cosine": unary, "count-leading-zeros": unary,
	"erf": unary, "exponential": unary, "exponential-minus-one": unary, "floor": unary, "log": unary, "log-plus-one": unary,
	"logistic": unary, "negate": unary, "not": unary, "popcnt": unary, "round-nearest-afz": unary, "round-nearest-even": unary,
	"rsqrt": unary, "sign": unary, "sine": unary, "sqrt": unary, "tan": unary, "tanh": unary, "copy": unary,
	"reduce-precision": unary, "optimization-barrier": {1, 1, false, checkSameAsOperand},
	"acos": unary, "acosh": unary, "asin": unary, "asinh": unary, "atanh": unary, "cosh": unary, "sinh": unary,

	"add": binary, "and": binary, "atan2": binary, "divide": binary, "maximum": binary, "minimum": binary, "multiply": binary,
	"or": binary, "power": binary, "remainder": binary, "shift-left": binary, "shift-right-arithmetic": binary,
	"shift-right-logical": binary, "subtract": binary, "xor": binary,

	"is-finite":          {1, 1, true, checkPredicate},
	"compare":            {2, 2, true, checkCompare},
	"select":             {3, 3, true, checkSelect},
	"clamp":              {3, 3, true, checkClamp},
	"convert":            {1, 1, true, checkConvert},
	"bitcast-convert":    {1, 1, true, checkBitcastConvert},
	"stochastic-convert": {2, 2, true, checkConvert},
	"real":               {1, 1, true, checkConvert},
	"imag":               {1, 1, true, checkConvert},
	"complex":            {2, 2, true, checkConvert},
	"map":                {1, -1, false, checkMap},

	"parameter":            {0, 0, false, nil},
	"constant":             {0, 0, false, nil},
	"iota":                 {0, 0, false, checkIota},
	"broadcast":            {1, 1, false, checkBroadcast},
	"reshape":              {1, 1, false, checkReshape},
	"bitcast":              {1, 1, false, checkBitcast},
	"transpose":            {1, 1, false, checkTranspose},
	"concatenate":          {1, -1, false, checkConcatenate},
	"slice":                {1, 1, false, checkSlice},
	"pad":                  {2, 2, false, checkPad},
	"reverse":              {1, 1, false, checkReverse},
	"reduce":               {2, -1, false, checkReduce},
	"dot":                  {2, 2, false, checkDot},
	"reduce-window":        {2, -1, false, checkReduceWindow},
	"select-and-scatter":   {3, 3, false, checkSelectAndScatter},
	"convolution":          {2, 2, false, checkConvolution},
	"scaled-dot":           {4, 4, false, checkScaledDot},
	"dynamic-slice":        {2, -1, false, checkDynamicSlice},
	"dynamic-update-slice": {3, -1, false, checkDynamicUpdateSlice},
	"gather":               {2, 2, false, checkGather},
	"scatter":              {3, -1, false, checkScatter},
	"tuple":                {0, -1, false, checkTuple},
	"get-tuple-element":    {1, 1, false, checkGetTupleElement},
	"fusion":               {0, -1, false, checkFusion},
	"call":                 {0, -1, false, checkFusion},

	"add-dependency": other, "after-all": other, "all-gather": other, "all-gather-done": other, "all-gather-start": other,
	"all-reduce": other, "all-reduce-done": other, "all-reduce-start": other, "all-to-all": other, "async-done": other,
	"async-start": other, "async-update": other, "batch-norm-grad": other, "batch-norm-inference": other,
	"batch-norm-training": other, "cholesky": other, "collective-broadcast": other, "collective-permute": other,
	"collective-permute-done": other, "collective-permute-start": other, "conditional": other,
	"copy-done": other, "copy-start": other, "custom-call": other, "domain": other, "dynamic-reshape": other,
	"fft": other, "get-dimension-size": other,
	"infeed": other, "outfeed": other, "partition-id": other, "ragged-all-to-all": other, "ragged-dot": other, "recv": other,
	"recv-done": other, "reduce-scatter": other, "replica-id": other, "rng": other,
	"rng-bit-generator": other, "rng-get-and-update-state": other, "scan": other,
	"send": other, "send-done": other, "set-dimension-size": other, "sort": other, "topk": other,
	"triangular-solve": other, "while": other,
}

// opcodes are the names of operations as they are written.
var opcodes = func() map[string]Opcode {
	all := map[string]Opcode{"opt-barrier": "optimization-barrier"} // XLA prints the long name short
	for op := range opTable {
		all[string(op)] = op
	}
	return all
}()

// Known says whether o is an HLO operation.
func (o Opcode) Known() bool { _, ok := opTable[o]; return ok }

// Elementwise says whether each element of the result is made from the
// elements at the same place of the operands (scalars of clamp and select
// apply everywhere): arithmetic, compare, select, clamp, convert, copy.
func (o Opcode) Elementwise() bool { return opTable[o].elementwise }

// nearest is the known name closest to o, for "did you mean".
func (o Opcode) nearest() string {
	names := make([]string, 0, len(opTable))
	for name := range opTable {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return Nearest(string(o), names)
}

// Nearest is the name at most two edits away from a misspelt one that takes
// the fewest, the first of several; "" when there is none.
func Nearest(misspelt string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if d := distance(misspelt, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
