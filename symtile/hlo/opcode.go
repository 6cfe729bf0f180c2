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
	OpAbs: {1, 1, true, checkAbs}, OpCbrt: unary, OpCeil: unary, OpCosine: unary, OpCountLeadingZeros: unary,
	OpErf: unary, OpExponential: unary, OpExponentialMinusOne: unary, OpFloor: unary, OpLog: unary, OpLogPlusOne: unary,
	OpLogistic: unary, OpNegate: unary, OpNot: unary, OpPopcnt: unary, OpRoundNearestAfz: unary, OpRoundNearestEven: unary,
	OpRsqrt: unary, OpSign: unary, OpSine: unary, OpSqrt: unary, OpTan: unary, OpTanh: unary, OpCopy: unary,
	OpReducePrecision: unary, OpOptimizationBarrier: {1, 1, false, checkSameAsOperand},
	OpAcos: unary, OpAcosh: unary, OpAsin: unary, OpAsinh: unary, OpAtanh: unary, OpCosh: unary, OpSinh: unary,

	OpAdd: binary, OpAnd: binary, OpAtan2: binary, OpDivide: binary, OpMaximum: binary, OpMinimum: binary, OpMultiply: binary,
	OpOr: binary, OpPower: binary, OpRemainder: binary, OpShiftLeft: binary, OpShiftRightArithmetic: binary,
	OpShiftRightLogical: binary, OpSubtract: binary, OpXor: binary,

	OpIsFinite:          {1, 1, true, checkPredicate},
	OpCompare:           {2, 2, true, checkCompare},
	OpSelect:            {3, 3, true, checkSelect},
	OpClamp:             {3, 3, true, checkClamp},
	OpConvert:           {1, 1, true, checkConvert},
	OpBitcastConvert:    {1, 1, true, checkBitcastConvert},
	OpStochasticConvert: {2, 2, true, checkConvert},
	OpReal:              {1, 1, true, checkConvert},
	OpImag:              {1, 1, true, checkConvert},
	OpComplex:           {2, 2, true, checkConvert},
	OpMap:               {1, -1, false, checkMap},

	OpParameter:          {0, 0, false, nil},
	OpConstant:           {0, 0, false, nil},
	OpIota:               {0, 0, false, checkIota},
	OpBroadcast:          {1, 1, false, checkBroadcast},
	OpReshape:            {1, 1, false, checkReshape},
	OpBitcast:            {1, 1, false, checkBitcast},
	OpTranspose:          {1, 1, false, checkTranspose},
	OpConcatenate:        {1, -1, false, checkConcatenate},
	OpSlice:              {1, 1, false, checkSlice},
	OpPad:                {2, 2, false, checkPad},
	OpReverse:            {1, 1, false, checkReverse},
	OpReduce:             {2, -1, false, checkReduce},
	OpDot:                {2, 2, false, checkDot},
	OpReduceWindow:       {2, -1, false, checkReduceWindow},
	OpSelectAndScatter:   {3, 3, false, checkSelectAndScatter},
	OpConvolution:        {2, 2, false, checkConvolution},
	OpScaledDot:          {4, 4, false, checkScaledDot},
	OpDynamicSlice:       {2, -1, false, checkDynamicSlice},
	OpDynamicUpdateSlice: {3, -1, false, checkDynamicUpdateSlice},
	OpGather:             {2, 2, false, checkGather},
	OpScatter:            {3, -1, false, checkScatter},
	OpTuple:              {0, -1, false, checkTuple},
	OpGetTupleElement:    {1, 1, false, checkGetTupleElement},
	OpFusion:             {0, -1, false, checkFusion},
	OpCall:               {0, -1, false, checkFusion},

	OpAddDependency: other, OpAfterAll: other, OpAllGather: other, OpAllGatherDone: other, OpAllGatherStart: other,
	OpAllReduce: other, OpAllReduceDone: other, OpAllReduceStart: other, OpAllToAll: other, OpAsyncDone: other,
	OpAsyncStart: other, OpAsyncUpdate: other, OpBatchNormGrad: other, OpBatchNormInference: other,
	OpBatchNormTraining: other, OpCholesky: other, OpCollectiveBroadcast: other, OpCollectivePermute: other,
	OpCollectivePermuteDone: other, OpCollectivePermuteStart: other, OpConditional: other,
	OpCopyDone: other, OpCopyStart: other, OpCustomCall: other, OpDomain: other, OpDynamicReshape: other,
	OpFft: other, OpGetDimensionSize: other,
	OpInfeed: other, OpOutfeed: other, OpPartitionId: other, OpRaggedAllToAll: other, OpRaggedDot: other, OpRecv: other,
	OpRecvDone: other, OpReduceScatter: other, OpReplicaId: other, OpRng: other,
	OpRngBitGenerator: other, OpRngGetAndUpdateState: other, OpScan: other,
	OpSend: other, OpSendDone: other, OpSetDimensionSize: other, OpSort: other, OpTopK: other,
	OpTriangularSolve: other, OpWhile: other,
}

// opcodes are the names of operations as they are written.
var opcodes = func() map[string]Opcode {
	all := map[string]Opcode{"opt-barrier": OpOptimizationBarrier} // XLA prints the long name short
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
