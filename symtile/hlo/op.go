package hlo

import "slices"

// Opcode is the HLO name of an operation, e.g. "add" or "get-tuple-element".
type Opcode string

// An opRow is what the front end knows of an operation.
type opRow struct {
	minOperands, maxOperands int // operands; maxOperands −1 means any number
	elementwise              bool
	check                    func(*Instr) error // the declared shape follows from the operands; nil: not checked
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
		if d := editDistance(misspelt, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
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
			row[j+1] = min(
				replace, row[j]+1, row[j+1]+1,
			)
		}
	}
	return row[len(b)]
}

// The operations of HLO by their names in HLO text.
const (
	OpAbs                    Opcode = "abs"
	OpAcos                   Opcode = "acos"
	OpAcosh                  Opcode = "acosh"
	OpAdd                    Opcode = "add"
	OpAddDependency          Opcode = "add-dependency"
	OpAfterAll               Opcode = "after-all"
	OpAllGather              Opcode = "all-gather"
	OpAllGatherDone          Opcode = "all-gather-done"
	OpAllGatherStart         Opcode = "all-gather-start"
	OpAllReduce              Opcode = "all-reduce"
	OpAllReduceDone          Opcode = "all-reduce-done"
	OpAllReduceStart         Opcode = "all-reduce-start"
	OpAllToAll               Opcode = "all-to-all"
	OpAnd                    Opcode = "and"
	OpAsin                   Opcode = "asin"
	OpAsinh                  Opcode = "asinh"
	OpAsyncDone              Opcode = "async-done"
	OpAsyncStart             Opcode = "async-start"
	OpAsyncUpdate            Opcode = "async-update"
	OpAtan2                  Opcode = "atan2"
	OpAtanh                  Opcode = "atanh"
	OpBatchNormGrad          Opcode = "batch-norm-grad"
	OpBatchNormInference     Opcode = "batch-norm-inference"
	OpBatchNormTraining      Opcode = "batch-norm-training"
	OpBitcast                Opcode = "bitcast"
	OpBitcastConvert         Opcode = "bitcast-convert"
	OpBroadcast              Opcode = "broadcast"
	OpCall                   Opcode = "call"
	OpCbrt                   Opcode = "cbrt"
	OpCeil                   Opcode = "ceil"
	OpCholesky               Opcode = "cholesky"
	OpClamp                  Opcode = "clamp"
	OpCollectiveBroadcast    Opcode = "collective-broadcast"
	OpCollectivePermute      Opcode = "collective-permute"
	OpCollectivePermuteDone  Opcode = "collective-permute-done"
	OpCollectivePermuteStart Opcode = "collective-permute-start"
	OpCompare                Opcode = "compare"
	OpComplex                Opcode = "complex"
	OpConcatenate            Opcode = "concatenate"
	OpConditional            Opcode = "conditional"
	OpConstant               Opcode = "constant"
	OpConvert                Opcode = "convert"
	OpConvolution            Opcode = "convolution"
	OpCopy                   Opcode = "copy"
	OpCopyDone               Opcode = "copy-done"
	OpCopyStart              Opcode = "copy-start"
	OpCosh                   Opcode = "cosh"
	OpCosine                 Opcode = "cosine"
	OpCountLeadingZeros      Opcode = "count-leading-zeros"
	OpCustomCall             Opcode = "custom-call"
	OpDivide                 Opcode = "divide"
	OpDomain                 Opcode = "domain"
	OpDot                    Opcode = "dot"
	OpDynamicReshape         Opcode = "dynamic-reshape"
	OpDynamicSlice           Opcode = "dynamic-slice"
	OpDynamicUpdateSlice     Opcode = "dynamic-update-slice"
	OpErf                    Opcode = "erf"
	OpExponential            Opcode = "exponential"
	OpExponentialMinusOne    Opcode = "exponential-minus-one"
	OpFft                    Opcode = "fft"
	OpFloor                  Opcode = "floor"
	OpFusion                 Opcode = "fusion"
	OpGather                 Opcode = "gather"
	OpGetDimensionSize       Opcode = "get-dimension-size"
	OpGetTupleElement        Opcode = "get-tuple-element"
	OpImag                   Opcode = "imag"
	OpInfeed                 Opcode = "infeed"
	OpIota                   Opcode = "iota"
	OpIsFinite               Opcode = "is-finite"
	OpLog                    Opcode = "log"
	OpLogPlusOne             Opcode = "log-plus-one"
	OpLogistic               Opcode = "logistic"
	OpMap                    Opcode = "map"
	OpMaximum                Opcode = "maximum"
	OpMinimum                Opcode = "minimum"
	OpMultiply               Opcode = "multiply"
	OpNegate                 Opcode = "negate"
	OpNot                    Opcode = "not"
	OpOptimizationBarrier    Opcode = "optimization-barrier"
	OpOr                     Opcode = "or"
	OpOutfeed                Opcode = "outfeed"
	OpPad                    Opcode = "pad"
	OpParameter              Opcode = "parameter"
	OpPartitionId            Opcode = "partition-id"
	OpPopcnt                 Opcode = "popcnt"
	OpPower                  Opcode = "power"
	OpRaggedAllToAll         Opcode = "ragged-all-to-all"
	OpRaggedDot              Opcode = "ragged-dot"
	OpReal                   Opcode = "real"
	OpRecv                   Opcode = "recv"
	OpRecvDone               Opcode = "recv-done"
	OpReduce                 Opcode = "reduce"
	OpReducePrecision        Opcode = "reduce-precision"
	OpReduceScatter          Opcode = "reduce-scatter"
	OpReduceWindow           Opcode = "reduce-window"
	OpRemainder              Opcode = "remainder"
	OpReplicaId              Opcode = "replica-id"
	OpReshape                Opcode = "reshape"
	OpReverse                Opcode = "reverse"
	OpRng                    Opcode = "rng"
	OpRngBitGenerator        Opcode = "rng-bit-generator"
	OpRngGetAndUpdateState   Opcode = "rng-get-and-update-state"
	OpRoundNearestAfz        Opcode = "round-nearest-afz"
	OpRoundNearestEven       Opcode = "round-nearest-even"
	OpRsqrt                  Opcode = "rsqrt"
	OpScaledDot              Opcode = "scaled-dot"
	OpScan                   Opcode = "scan"
	OpScatter                Opcode = "scatter"
	OpSelect                 Opcode = "select"
	OpSelectAndScatter       Opcode = "select-and-scatter"
	OpSend                   Opcode = "send"
	OpSendDone               Opcode = "send-done"
	OpSetDimensionSize       Opcode = "set-dimension-size"
	OpShiftLeft              Opcode = "shift-left"
	OpShiftRightArithmetic   Opcode = "shift-right-arithmetic"
	OpShiftRightLogical      Opcode = "shift-right-logical"
	OpSign                   Opcode = "sign"
	OpSine                   Opcode = "sine"
	OpSinh                   Opcode = "sinh"
	OpSlice                  Opcode = "slice"
	OpSort                   Opcode = "sort"
	OpSqrt                   Opcode = "sqrt"
	OpStochasticConvert      Opcode = "stochastic-convert"
	OpSubtract               Opcode = "subtract"
	OpTan                    Opcode = "tan"
	OpTanh                   Opcode = "tanh"
	OpTopK                   Opcode = "topk"
	OpTranspose              Opcode = "transpose"
	OpTriangularSolve        Opcode = "triangular-solve"
	OpTuple                  Opcode = "tuple"
	OpWhile                  Opcode = "while"
	OpXor                    Opcode = "xor"
)
