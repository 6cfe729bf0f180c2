package hlo

import (
	"maps"
	"slices"
	"strings"
)

// An Opcode is the HLO name of an operation, e.g. "add" or "get-tuple-element".
// What is known of an operation in general is its row of opTable; what it
// computes is in kernels/reference, and the code for it in the backends.
type Opcode string

// The operations of HLO by their names in HLO text, as XLA's hlo_opcode.h lists
// them. OpErfInv is not among XLA's: it is chlo.erf_inv, which XLA expands.
const (
	// OpAbs is |x|; of a complex number its magnitude.
	OpAbs Opcode = "abs"
	// OpAcos is the angle in [0, π] whose cosine is x.
	OpAcos Opcode = "acos"
	// OpAcosh is the inverse of cosh, ≥ 0.
	OpAcosh Opcode = "acosh"
	// OpAdd is x + y; of pred x or y.
	OpAdd Opcode = "add"
	// OpAddDependency is its first operand, after the second.
	OpAddDependency Opcode = "add-dependency"
	// OpAfterAll is a token that orders what follows after its operands.
	OpAfterAll Opcode = "after-all"
	// OpAllGather is the operands of a group of replicas, concatenated.
	OpAllGather Opcode = "all-gather"
	// OpAllGatherDone is the result of an all-gather-start.
	OpAllGatherDone Opcode = "all-gather-done"
	// OpAllGatherStart is an all-gather that runs in the background.
	OpAllGatherStart Opcode = "all-gather-start"
	// OpAllReduce is the operands of a group of replicas, combined by a
	// computation.
	OpAllReduce Opcode = "all-reduce"
	// OpAllReduceDone is the result of an all-reduce-start.
	OpAllReduceDone Opcode = "all-reduce-done"
	// OpAllReduceStart is an all-reduce that runs in the background.
	OpAllReduceStart Opcode = "all-reduce-start"
	// OpAllToAll is pieces of the operands, exchanged within a group of replicas.
	OpAllToAll Opcode = "all-to-all"
	// OpAnd is the bits x and y have in common; of pred x and y.
	OpAnd Opcode = "and"
	// OpAsin is the angle in [−π/2, π/2] whose sine is x.
	OpAsin Opcode = "asin"
	// OpAsinh is the inverse of sinh.
	OpAsinh Opcode = "asinh"
	// OpAsyncDone is the result of an async-start.
	OpAsyncDone Opcode = "async-done"
	// OpAsyncStart is a computation that runs in the background.
	OpAsyncStart Opcode = "async-start"
	// OpAsyncUpdate is a step between async-start and async-done.
	OpAsyncUpdate Opcode = "async-update"
	// OpAtan2 is the angle of the point (y, x) from the first axis.
	OpAtan2 Opcode = "atan2"
	// OpAtanh is the inverse of tanh.
	OpAtanh Opcode = "atanh"
	// OpBatchNormGrad is the gradients of batch-norm-training.
	OpBatchNormGrad Opcode = "batch-norm-grad"
	// OpBatchNormInference is normalisation by a given mean and variance.
	OpBatchNormInference Opcode = "batch-norm-inference"
	// OpBatchNormTraining is normalisation by the mean and variance of the batch.
	OpBatchNormTraining Opcode = "batch-norm-training"
	// OpBitcast is the bytes of the operand in memory order as another type,
	// shape or layout.
	OpBitcast Opcode = "bitcast"
	// OpBitcastConvert is the bits of each element as another type.
	OpBitcastConvert Opcode = "bitcast-convert"
	// OpBroadcast is the operand repeated along new dimensions.
	OpBroadcast Opcode = "broadcast"
	// OpCall is the result of a computation.
	OpCall Opcode = "call"
	// OpCbrt is the real cube root.
	OpCbrt Opcode = "cbrt"
	// OpCeil is the least whole number ≥ x.
	OpCeil Opcode = "ceil"
	// OpCholesky is the Cholesky factor of each matrix.
	OpCholesky Opcode = "cholesky"
	// OpClamp is min(max(x, lo), hi), of operands lo, x, hi.
	OpClamp Opcode = "clamp"
	// OpCollectiveBroadcast is the operand of the first replica of each group.
	OpCollectiveBroadcast Opcode = "collective-broadcast"
	// OpCollectivePermute is the operand of the replica that is paired with this
	// one.
	OpCollectivePermute Opcode = "collective-permute"
	// OpCollectivePermuteDone is the result of a collective-permute-start.
	OpCollectivePermuteDone Opcode = "collective-permute-done"
	// OpCollectivePermuteStart is a collective-permute that runs in the
	// background.
	OpCollectivePermuteStart Opcode = "collective-permute-start"
	// OpCompare is whether x and y are in a given relation, as pred.
	OpCompare Opcode = "compare"
	// OpComplex is x + iy.
	OpComplex Opcode = "complex"
	// OpConcatenate is the operands one after the other along a dimension.
	OpConcatenate Opcode = "concatenate"
	// OpConditional is the result of one of several computations.
	OpConditional Opcode = "conditional"
	// OpConstant is a literal.
	OpConstant Opcode = "constant"
	// OpConvert is x as another type: floats to integers truncate and saturate.
	OpConvert Opcode = "convert"
	// OpConvolution is the sums of products of a kernel with the windows of an
	// input.
	OpConvolution Opcode = "convolution"
	// OpCopy is its operand, perhaps in another layout.
	OpCopy Opcode = "copy"
	// OpCopyDone is the result of a copy-start.
	OpCopyDone Opcode = "copy-done"
	// OpCopyStart is a copy that runs in the background.
	OpCopyStart Opcode = "copy-start"
	// OpCosh is (eˣ + e⁻ˣ)/2.
	OpCosh Opcode = "cosh"
	// OpCosine is cos x.
	OpCosine Opcode = "cosine"
	// OpCountLeadingZeros is the zero bits above the highest one.
	OpCountLeadingZeros Opcode = "count-leading-zeros"
	// OpCustomCall is what a named library routine computes.
	OpCustomCall Opcode = "custom-call"
	// OpDivide is x/y; of integers truncated, −1 for division by 0.
	OpDivide Opcode = "divide"
	// OpDomain is its operand, across a boundary of placement.
	OpDomain Opcode = "domain"
	// OpDot is the sums of products over contracting dimensions.
	OpDot Opcode = "dot"
	// OpDynamicReshape is a reshape to extents known at run time.
	OpDynamicReshape Opcode = "dynamic-reshape"
	// OpDynamicSlice is a slice whose start is an operand, clamped to lie inside.
	OpDynamicSlice Opcode = "dynamic-slice"
	// OpDynamicUpdateSlice is operand 0 with a slice replaced by operand 1.
	OpDynamicUpdateSlice Opcode = "dynamic-update-slice"
	// OpErf is the error function 2/√π·∫₀ˣ e^(−t²) dt.
	OpErf Opcode = "erf"
	// OpErfInv is the number whose erf is x, ±∞ at ±1, NaN beyond.
	OpErfInv Opcode = "erf-inv"
	// OpExponential is eˣ.
	OpExponential Opcode = "exponential"
	// OpExponentialMinusOne is eˣ − 1, accurate near 0.
	OpExponentialMinusOne Opcode = "exponential-minus-one"
	// OpFft is the discrete Fourier transform.
	OpFft Opcode = "fft"
	// OpFloor is the greatest whole number ≤ x.
	OpFloor Opcode = "floor"
	// OpFusion is the result of a computation that a compiler runs as one kernel.
	OpFusion Opcode = "fusion"
	// OpGather is slices of an operand at start indices that another holds.
	OpGather Opcode = "gather"
	// OpGetDimensionSize is the extent of a dimension at run time.
	OpGetDimensionSize Opcode = "get-dimension-size"
	// OpGetTupleElement is one element of a tuple.
	OpGetTupleElement Opcode = "get-tuple-element"
	// OpImag is the imaginary part.
	OpImag Opcode = "imag"
	// OpInfeed is data from the host.
	OpInfeed Opcode = "infeed"
	// OpIota is the index along one dimension.
	OpIota Opcode = "iota"
	// OpIsFinite is whether x is neither infinite nor NaN.
	OpIsFinite Opcode = "is-finite"
	// OpLog is the natural logarithm.
	OpLog Opcode = "log"
	// OpLogPlusOne is log(1 + x), accurate near 0.
	OpLogPlusOne Opcode = "log-plus-one"
	// OpLogistic is 1/(1 + e⁻ˣ).
	OpLogistic Opcode = "logistic"
	// OpMap is a computation of scalars, for each element.
	OpMap Opcode = "map"
	// OpMaximum is the larger of x and y, NaN when either is.
	OpMaximum Opcode = "maximum"
	// OpMinimum is the smaller of x and y, NaN when either is.
	OpMinimum Opcode = "minimum"
	// OpMulhi is the high half of the product of two integers.
	OpMulhi Opcode = "mulhi"
	// OpMultiply is x·y.
	OpMultiply Opcode = "multiply"
	// OpNegate is −x.
	OpNegate Opcode = "negate"
	// OpNot is the complement of each bit.
	OpNot Opcode = "not"
	// OpOptimizationBarrier is its operand; no optimization moves across it.
	OpOptimizationBarrier Opcode = "optimization-barrier"
	// OpOr is the bits of x or y.
	OpOr Opcode = "or"
	// OpOutfeed is sends data to the host.
	OpOutfeed Opcode = "outfeed"
	// OpPad is the operand with a scalar around and between its elements.
	OpPad Opcode = "pad"
	// OpParameter is an argument of the computation.
	OpParameter Opcode = "parameter"
	// OpPartitionId is the number of this partition.
	OpPartitionId Opcode = "partition-id"
	// OpPopcnt is the number of one bits.
	OpPopcnt Opcode = "popcnt"
	// OpPower is x to the power y.
	OpPower Opcode = "power"
	// OpRaggedAllToAll is an all-to-all of pieces of different sizes.
	OpRaggedAllToAll Opcode = "ragged-all-to-all"
	// OpRaggedDot is a dot of groups of rows of different sizes.
	OpRaggedDot Opcode = "ragged-dot"
	// OpReal is the real part; of a real number itself.
	OpReal Opcode = "real"
	// OpRecv is data from another device.
	OpRecv Opcode = "recv"
	// OpRecvDone is the result of a recv.
	OpRecvDone Opcode = "recv-done"
	// OpReduce is the elements along dimensions combined with an initial value.
	OpReduce Opcode = "reduce"
	// OpReducePrecision is x rounded to a format of given widths.
	OpReducePrecision Opcode = "reduce-precision"
	// OpReduceScatter is an all-reduce of which each replica keeps its part.
	OpReduceScatter Opcode = "reduce-scatter"
	// OpReduceWindow is the elements of each window combined with an initial
	// value.
	OpReduceWindow Opcode = "reduce-window"
	// OpRemainder is x − y·trunc(x/y); of integers x when y is 0.
	OpRemainder Opcode = "remainder"
	// OpReplicaId is the number of this replica.
	OpReplicaId Opcode = "replica-id"
	// OpReshape is the elements in row-major order in another shape.
	OpReshape Opcode = "reshape"
	// OpReverse is the operand mirrored along dimensions.
	OpReverse Opcode = "reverse"
	// OpRng is random numbers of a distribution.
	OpRng Opcode = "rng"
	// OpRngBitGenerator is random bits and the next state.
	OpRngBitGenerator Opcode = "rng-bit-generator"
	// OpRngGetAndUpdateState is the state of the random number generator.
	OpRngGetAndUpdateState Opcode = "rng-get-and-update-state"
	// OpRoundNearestAfz is the nearest whole number, halves away from 0.
	OpRoundNearestAfz Opcode = "round-nearest-afz"
	// OpRoundNearestEven is the nearest whole number, halves to even.
	OpRoundNearestEven Opcode = "round-nearest-even"
	// OpRsqrt is 1/√x.
	OpRsqrt Opcode = "rsqrt"
	// OpScaledDot is a dot of operands that are multiplied by a scale for each
	// block.
	OpScaledDot Opcode = "scaled-dot"
	// OpScan is a computation that carries values along a dimension.
	OpScan Opcode = "scan"
	// OpScatter is operand 0 with updates combined into it at indices.
	OpScatter Opcode = "scatter"
	// OpSelect is x where p holds, else y, of operands p, x, y.
	OpSelect Opcode = "select"
	// OpSelectAndScatter is sources combined into the selected element of each
	// window.
	OpSelectAndScatter Opcode = "select-and-scatter"
	// OpSend is sends data to another device.
	OpSend Opcode = "send"
	// OpSendDone is completes a send.
	OpSendDone Opcode = "send-done"
	// OpSetDimensionSize is its operand with a run-time extent.
	OpSetDimensionSize Opcode = "set-dimension-size"
	// OpShiftLeft is x·2ʸ; 0 for shifts by the width or more.
	OpShiftLeft Opcode = "shift-left"
	// OpShiftRightArithmetic is x shifted right, the sign repeated.
	OpShiftRightArithmetic Opcode = "shift-right-arithmetic"
	// OpShiftRightLogical is x shifted right, zeros from the left.
	OpShiftRightLogical Opcode = "shift-right-logical"
	// OpSign is −1, 0 or 1 by the sign of x; ±0 and NaN themselves.
	OpSign Opcode = "sign"
	// OpSine is sin x.
	OpSine Opcode = "sine"
	// OpSinh is (eˣ − e⁻ˣ)/2.
	OpSinh Opcode = "sinh"
	// OpSlice is every stride-th element of a range of each dimension.
	OpSlice Opcode = "slice"
	// OpSort is the operands in the order of a comparison.
	OpSort Opcode = "sort"
	// OpSqrt is √x.
	OpSqrt Opcode = "sqrt"
	// OpStochasticConvert is x rounded at random to a narrower type.
	OpStochasticConvert Opcode = "stochastic-convert"
	// OpSubtract is x − y.
	OpSubtract Opcode = "subtract"
	// OpTan is tan x.
	OpTan Opcode = "tan"
	// OpTanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
	OpTanh Opcode = "tanh"
	// OpTopK is the k largest elements and their indices.
	OpTopK Opcode = "topk"
	// OpTranspose is the operand with its dimensions permuted.
	OpTranspose Opcode = "transpose"
	// OpTriangularSolve is the solution of triangular systems.
	OpTriangularSolve Opcode = "triangular-solve"
	// OpTuple is its operands as one value.
	OpTuple Opcode = "tuple"
	// OpWhile is a computation repeated while a condition holds.
	OpWhile Opcode = "while"
	// OpXor is the bits in which x and y differ; of pred whether they do.
	OpXor Opcode = "xor"
)

// A Class says how the elements of a result depend on the operands.
type Class uint8

const (
	// ClassOpaque operations are parsed and printed and have no meaning here.
	ClassOpaque Class = iota
	// ClassElementwise results depend on the elements at the same position of
	// the operands; scalar operands of select and clamp apply everywhere.
	ClassElementwise
	// ClassSource operations have no array operands.
	ClassSource
	// ClassMove operations rearrange elements by their positions alone.
	ClassMove
	// ClassDynamic operations read at positions known at run time.
	ClassDynamic
	// ClassUpdate operations write at positions known at run time.
	ClassUpdate
	// ClassReduction operations combine elements by a computation.
	ClassReduction
	// ClassContraction operations sum products of two operands.
	ClassContraction
	// ClassStructure operations make, open or fence tuples.
	ClassStructure
	// ClassCall operations call a computation once, or once an element.
	ClassCall
	// ClassControl operations choose or repeat computations.
	ClassControl
	// ClassCollective operations exchange data between replicas.
	ClassCollective
)

// A Trait is one more fact about an operation; traits are bits of a set.
type Trait uint8

const (
	// View operations present the elements of their operand in another shape;
	// duplicating one costs nothing.
	View Trait = 1 << iota
	// Exact operations return one of the values of the operands' type whatever the
	// width they are computed in: no rounding or wrapping follows.
	Exact
	// KeepsMagnitude operations return no number larger in magnitude than the
	// largest of their operands; whole numbers stay whole.
	KeepsMagnitude
	// Discontinuous operations jump: a small change of an operand may change the
	// result by much.
	Discontinuous
	// Monoid operations are associative and commutative binary operations, by
	// which a reduction may combine elements in any order.
	Monoid

	// plain operations have the operands and results of their MLIR operation and
	// no attributes that change what is computed.
	plain
)

// An opRow is one operation. Rows are written without field names, or by functions
// of all facts, so that a row without one of them does not compile.
type opRow struct {
	minOperands int
	maxOperands int // many: any number
	class       Class
	// mlir lists the operations of the MLIR dialects stablehlo, mhlo, chlo and
	// func that are read as this one, separated by blanks; noMLIR: none is.
	mlir string
	// flops is the cost of one element of the result in flop: 0 for what moves
	// data or is opaque, 1 for arithmetic, for functions the length of their usual
	// polynomials (Cephes: exp 15, log 20, tanh and erf 25, sin 20, pow 40; Giles'
	// erf-inv: a logarithm, a root and two polynomials, 50; inverse trigonometric and
	// hyperbolic functions: of what they are made of), for divisions and
	// roots their throughput on current cores, about 8. Reductions and
	// contractions pay it for each element they combine.
	flops  float64
	traits Trait
	// check reports how the declared shape does not follow from the operands; nil
	// for operations whose shape is taken as it is written.
	check func(*Instr) error
	// not has the reasons why an operation is not computed.
	not not
}

// A Target computes operations: the interpreter or a backend.
type Target uint8

const (
	// Reference is kernels/reference.
	Reference Target = iota
	// CPU is kernels/cpu.
	CPU
	// GPU is kernels/gpu.
	GPU
	targets
)

// String is the name of a target.
func (t Target) String() string {
	return [targets]string{"reference", "CPU", "GPU"}[t]
}

// A not is the reason of each Target why it does not compute an operation, whatever
// its types: a clause that continues "because …"; "" where it does.
type not [targets]string

// everywhere is the column of operations that all targets compute.
var everywhere = not{}

// untiled is the column of operations that only the reference computes.
func untiled(reason string) not { return not{CPU: reason, GPU: reason} }

// nowhere is the column of operations that no target computes.
func nowhere(reason string) not { return not{reason, reason, reason} }

// Reasons of several operations.
const (
	libraryRoutine = "it is a library routine, not a tile program"
	ordersOnly     = "it orders operations, and computes nothing"
	inBackground   = "it runs in the background, between operations that are computed"
	betweenDevices = "it exchanges data between devices; what stands before and behind it is tiled for one device"
	ofDevice       = "it is another number on each device"
	withHost       = "it exchanges data with the host"
	takenApart     = "it is several operations, which a partition takes apart"
	statefulRandom = "its values depend on the order of evaluation"
	controlFlow    = "control flow is not part of a tile program"
	everyElement   = "every result depends on every element"
	atRunTime      = "extents at run time are not known to a tile program"
	newInXLA       = "it is new in XLA, and no program that was seen has it"
)

// many is the number of operands of variadic operations, noMLIR the list of MLIR
// operations of those that only HLO has.
const (
	many   = -1
	noMLIR = ""
)

// unary is a row of an elementwise operation of one operand.
func unary(mlir string, flops float64, traits Trait, check func(*Instr) error) opRow {
	return opRow{1, 1, ClassElementwise, mlir, flops, traits, check, everywhere}
}

// binary is a row of an elementwise operation of two operands.
func binary(mlir string, flops float64, traits Trait, check func(*Instr) error) opRow {
	return opRow{2, 2, ClassElementwise, mlir, flops, traits, check, everywhere}
}

// ternary is a row of an elementwise operation of three operands, of which one
// may be of another type.
func ternary(mlir string, flops float64, traits Trait, check func(*Instr) error) opRow {
	return opRow{3, 3, ClassElementwise, mlir, flops, traits, check, everywhere}
}

// unchecked is the row of an operation of any number of operands that has neither
// a shape rule nor work to count.
func unchecked(class Class, mlir string, not not) opRow {
	return opRow{0, many, class, mlir, 0, 0, nil, not}
}

// opTable is every operation. A new elementwise operation is a constant and a row
// here, its semantics in kernels/reference, and its code in each backend, which
// the test of the table asks for.
var opTable = map[Opcode]opRow{
	// Elementwise operations of one operand.
	OpAbs:                 unary("stablehlo.abs", 1, plain|KeepsMagnitude, checkPart),
	OpCbrt:                unary("stablehlo.cbrt", 25, plain, checkSameAsOperand),
	OpCeil:                unary("stablehlo.ceil", 1, plain|KeepsMagnitude|Discontinuous, checkSameAsOperand),
	OpCopy:                unary("mhlo.copy", 0, plain|KeepsMagnitude, checkSameAsOperand),
	OpCosine:              unary("stablehlo.cosine", 20, plain, checkSameAsOperand),
	OpCountLeadingZeros:   unary("stablehlo.count_leading_zeros", 1, plain, checkSameAsOperand),
	OpErf:                 unary("mhlo.erf chlo.erf", 25, plain, checkSameAsOperand),
	OpErfInv:              unary("chlo.erf_inv", 50, plain, checkSameAsOperand),
	OpExponential:         unary("stablehlo.exponential", 15, plain, checkSameAsOperand),
	OpExponentialMinusOne: unary("stablehlo.exponential_minus_one", 20, plain, checkSameAsOperand),
	OpFloor:               unary("stablehlo.floor", 1, plain|KeepsMagnitude|Discontinuous, checkSameAsOperand),
	OpLog:                 unary("stablehlo.log", 20, plain, checkSameAsOperand),
	OpLogPlusOne:          unary("stablehlo.log_plus_one", 22, plain, checkSameAsOperand),
	OpLogistic:            unary("stablehlo.logistic", 24, plain, checkSameAsOperand),
	OpNegate:              unary("stablehlo.negate", 1, plain|KeepsMagnitude, checkSameAsOperand),
	OpNot:                 unary("stablehlo.not", 1, plain, checkSameAsOperand),
	OpPopcnt:              unary("stablehlo.popcnt", 1, plain, checkSameAsOperand),
	OpRoundNearestAfz:     unary("stablehlo.round_nearest_afz", 1, plain|Discontinuous, checkSameAsOperand),
	OpRoundNearestEven:    unary("stablehlo.round_nearest_even", 1, plain|Discontinuous, checkSameAsOperand),
	OpRsqrt:               unary("stablehlo.rsqrt", 8, plain, checkSameAsOperand),
	OpSign:                unary("stablehlo.sign", 1, plain|Discontinuous, checkSameAsOperand),
	OpSine:                unary("stablehlo.sine", 20, plain, checkSameAsOperand),
	OpSqrt:                unary("stablehlo.sqrt", 8, plain, checkSameAsOperand),
	OpTan:                 unary("stablehlo.tan chlo.tan", 25, plain, checkSameAsOperand),
	OpTanh:                unary("stablehlo.tanh", 25, plain, checkSameAsOperand),
	OpAcos:                unary("mhlo.acos chlo.acos", 40, plain, checkSameAsOperand),
	OpAcosh:               unary("mhlo.acosh chlo.acosh", 30, plain, checkSameAsOperand),
	OpAsin:                unary("mhlo.asin chlo.asin", 40, plain, checkSameAsOperand),
	OpAsinh:               unary("mhlo.asinh chlo.asinh", 30, plain, checkSameAsOperand),
	OpAtanh:               unary("mhlo.atanh chlo.atanh", 45, plain, checkSameAsOperand),
	OpCosh:                unary("mhlo.cosh chlo.cosh", 25, plain, checkSameAsOperand),
	OpSinh:                unary("mhlo.sinh chlo.sinh", 25, plain, checkSameAsOperand),
	OpReal:                unary("stablehlo.real", 1, plain, checkPart),
	OpImag:                unary("stablehlo.imag", 1, plain, checkPart),
	OpIsFinite:            unary("stablehlo.is_finite", 1, plain|Discontinuous, checkIsFinite),
	OpConvert:             unary("stablehlo.convert", 1, plain|KeepsMagnitude, checkConvert),
	OpBitcastConvert:      unary("stablehlo.bitcast_convert", 1, plain|Discontinuous, checkBitcastConvert),
	OpReducePrecision:     unary("stablehlo.reduce_precision", 1, 0, checkReducePrecision),

	// Elementwise operations of two operands.
	OpAdd:                  binary("stablehlo.add", 1, plain|Monoid, checkSameAsOperand),
	OpAnd:                  binary("stablehlo.and", 1, plain|Exact|Monoid, checkSameAsOperand),
	OpAtan2:                binary("stablehlo.atan2", 30, plain, checkSameAsOperand),
	OpDivide:               binary("stablehlo.divide", 8, plain, checkSameAsOperand),
	OpMaximum:              binary("stablehlo.maximum", 1, plain|Exact|KeepsMagnitude|Monoid, checkSameAsOperand),
	OpMinimum:              binary("stablehlo.minimum", 1, plain|Exact|KeepsMagnitude|Monoid, checkSameAsOperand),
	OpMultiply:             binary("stablehlo.multiply", 1, plain|Monoid, checkSameAsOperand),
	OpOr:                   binary("stablehlo.or", 1, plain|Exact|Monoid, checkSameAsOperand),
	OpPower:                binary("stablehlo.power", 40, plain, checkSameAsOperand),
	OpRemainder:            binary("stablehlo.remainder", 20, plain|Discontinuous, checkSameAsOperand),
	OpShiftLeft:            binary("stablehlo.shift_left", 1, plain, checkSameAsOperand),
	OpShiftRightArithmetic: binary("stablehlo.shift_right_arithmetic", 1, plain, checkSameAsOperand),
	OpShiftRightLogical:    binary("stablehlo.shift_right_logical", 1, plain, checkSameAsOperand),
	OpSubtract:             binary("stablehlo.subtract", 1, plain, checkSameAsOperand),
	OpXor:                  binary("stablehlo.xor", 1, plain|Exact|Monoid, checkSameAsOperand),
	OpComplex:              binary("stablehlo.complex", 1, plain, checkComplex),
	OpCompare:              binary("stablehlo.compare", 1, Discontinuous, checkCompare),
	OpStochasticConvert:    binary(noMLIR, 1, Discontinuous, checkStochasticConvert),

	// Elementwise operations of three operands, of which scalars apply everywhere.
	OpSelect: ternary("stablehlo.select", 1, KeepsMagnitude, checkSelect),
	OpClamp:  ternary("stablehlo.clamp", 1, KeepsMagnitude, checkClamp),

	// Arrays that are made from nothing in the computation.
	OpParameter: {0, 0, ClassSource, noMLIR, 0, 0, nil, everywhere},
	OpConstant:  {0, 0, ClassSource, "stablehlo.constant chlo.constant", 0, 0, nil, everywhere},
	OpIota:      {0, 0, ClassSource, "stablehlo.iota stablehlo.dynamic_iota", 1, 0, checkIota, everywhere},

	// Rearrangements known at compile time.
	OpBroadcast:   {1, 1, ClassMove, "stablehlo.broadcast_in_dim stablehlo.broadcast stablehlo.dynamic_broadcast_in_dim", 0, View | KeepsMagnitude, checkBroadcast, everywhere},
	OpReshape:     {1, 1, ClassMove, "stablehlo.reshape stablehlo.dynamic_reshape", 0, plain | View | KeepsMagnitude, checkReshape, everywhere},
	OpBitcast:     {1, 1, ClassMove, noMLIR, 0, View | KeepsMagnitude, checkBitcast, everywhere},
	OpTranspose:   {1, 1, ClassMove, "stablehlo.transpose", 0, KeepsMagnitude, checkTranspose, everywhere},
	OpConcatenate: {1, many, ClassMove, "stablehlo.concatenate", 0, KeepsMagnitude, checkConcatenate, everywhere},
	OpSlice:       {1, 1, ClassMove, "stablehlo.slice stablehlo.real_dynamic_slice", 0, KeepsMagnitude, checkSlice, everywhere},
	OpPad:         {2, 2, ClassMove, "stablehlo.pad stablehlo.dynamic_pad", 0, KeepsMagnitude, checkPad, everywhere},
	OpReverse:     {1, 1, ClassMove, "stablehlo.reverse", 0, KeepsMagnitude, checkReverse, everywhere},

	// Reads and writes at places known at run time.
	OpDynamicSlice:       {2, many, ClassDynamic, "stablehlo.dynamic_slice", 1, KeepsMagnitude, checkDynamicSlice, everywhere},
	OpDynamicUpdateSlice: {3, many, ClassUpdate, "stablehlo.dynamic_update_slice", 1, plain | KeepsMagnitude, checkDynamicUpdateSlice, everywhere},
	OpGather:             {2, 2, ClassDynamic, "stablehlo.gather stablehlo.dynamic_gather", 1, KeepsMagnitude, checkGather, everywhere},
	OpScatter:            {3, many, ClassUpdate, "stablehlo.scatter", 1, 0, checkScatter, not{GPU: "which elements of a tile it writes is known at run time only"}},
	OpSelectAndScatter:   {3, 3, ClassUpdate, "stablehlo.select_and_scatter", 1, 0, checkSelectAndScatter, untiled("which element of a window it writes to is known at run time only")},

	// Reductions.
	OpReduce:       {2, many, ClassReduction, "stablehlo.reduce", 1, 0, checkReduce, everywhere},
	OpReduceWindow: {2, many, ClassReduction, "stablehlo.reduce_window", 1, 0, checkReduceWindow, everywhere},

	// Sums of products.
	OpDot:         {2, 2, ClassContraction, "stablehlo.dot_general stablehlo.dot", 1, 0, checkDot, everywhere},
	OpScaledDot:   {4, 4, ClassContraction, noMLIR, 1, 0, checkScaledDot, everywhere},
	OpConvolution: {2, 2, ClassContraction, "stablehlo.convolution stablehlo.dynamic_conv", 1, 0, checkConvolution, everywhere},

	// Tuples and barriers.
	OpTuple:               {0, many, ClassStructure, "stablehlo.tuple", 0, plain | KeepsMagnitude, checkTuple, everywhere},
	OpGetTupleElement:     {1, 1, ClassStructure, "stablehlo.get_tuple_element", 0, KeepsMagnitude, checkGetTupleElement, everywhere},
	OpOptimizationBarrier: {1, 1, ClassStructure, "stablehlo.optimization_barrier", 0, 0, checkSameAsOperand, everywhere},

	// Calls of computations.
	OpFusion: {0, many, ClassCall, noMLIR, 0, 0, checkFusion, everywhere},
	OpCall:   {0, many, ClassCall, "func.call stablehlo.call stablehlo.composite", 0, 0, checkFusion, everywhere},
	OpMap:    {1, many, ClassCall, "stablehlo.map", 1, 0, checkMap, everywhere},

	// Control flow.
	OpWhile:       unchecked(ClassControl, "stablehlo.while", nowhere(controlFlow)),
	OpConditional: unchecked(ClassControl, "stablehlo.if stablehlo.case", nowhere(controlFlow)),

	// Collectives.
	OpAllGather:              unchecked(ClassCollective, "stablehlo.all_gather", nowhere(betweenDevices)),
	OpAllGatherStart:         unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpAllGatherDone:          unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpAllReduce:              unchecked(ClassCollective, "stablehlo.all_reduce", nowhere(betweenDevices)),
	OpAllReduceStart:         unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpAllReduceDone:          unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpAllToAll:               unchecked(ClassCollective, "stablehlo.all_to_all", nowhere(betweenDevices)),
	OpRaggedAllToAll:         unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpReduceScatter:          unchecked(ClassCollective, "stablehlo.reduce_scatter", nowhere(betweenDevices)),
	OpCollectiveBroadcast:    unchecked(ClassCollective, "stablehlo.collective_broadcast", nowhere(betweenDevices)),
	OpCollectivePermute:      unchecked(ClassCollective, "stablehlo.collective_permute", nowhere(betweenDevices)),
	OpCollectivePermuteStart: unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpCollectivePermuteDone:  unchecked(ClassCollective, noMLIR, nowhere(betweenDevices)),
	OpPartitionId:            unchecked(ClassCollective, "stablehlo.partition_id", nowhere(ofDevice)),
	OpReplicaId:              unchecked(ClassCollective, "stablehlo.replica_id", nowhere(ofDevice)),

	// Operations that are parsed and printed, but have neither a shape rule nor a meaning here.
	OpScan:                 unchecked(ClassOpaque, noMLIR, nowhere(newInXLA)),
	OpMulhi:                unchecked(ClassOpaque, noMLIR, nowhere(newInXLA)),
	OpSort:                 unchecked(ClassOpaque, "stablehlo.sort", untiled(everyElement)),
	OpTopK:                 unchecked(ClassOpaque, "chlo.top_k", untiled(everyElement)),
	OpRaggedDot:            {3, 3, ClassOpaque, noMLIR, 0, 0, checkRaggedDot, nowhere(takenApart)},
	OpBatchNormGrad:        {5, 5, ClassOpaque, "stablehlo.batch_norm_grad", 0, 0, checkBatchNorm, nowhere(takenApart)},
	OpBatchNormInference:   {5, 5, ClassOpaque, "stablehlo.batch_norm_inference", 0, 0, checkBatchNorm, nowhere(takenApart)},
	OpBatchNormTraining:    {3, 3, ClassOpaque, "stablehlo.batch_norm_training", 0, 0, checkBatchNorm, nowhere(takenApart)},
	OpCholesky:             unchecked(ClassOpaque, "stablehlo.cholesky", nowhere(libraryRoutine)),
	OpTriangularSolve:      unchecked(ClassOpaque, "stablehlo.triangular_solve", nowhere(libraryRoutine)),
	OpFft:                  unchecked(ClassOpaque, "stablehlo.fft", nowhere(everyElement)),
	OpRng:                  unchecked(ClassOpaque, "stablehlo.rng", nowhere(statefulRandom)),
	OpRngBitGenerator:      unchecked(ClassOpaque, "stablehlo.rng_bit_generator", nowhere(statefulRandom)),
	OpRngGetAndUpdateState: unchecked(ClassOpaque, noMLIR, nowhere(statefulRandom)),
	OpCustomCall:           unchecked(ClassOpaque, "stablehlo.custom_call", nowhere("what it computes is not known here")),
	OpGetDimensionSize:     unchecked(ClassOpaque, "stablehlo.get_dimension_size", nowhere(atRunTime)),
	OpSetDimensionSize:     unchecked(ClassOpaque, "stablehlo.set_dimension_size", nowhere("it sets an extent at run time; tiles are of extents that are known, or of their bounds")),
	OpDynamicReshape:       unchecked(ClassOpaque, noMLIR, nowhere("its extents are known at run time only")),
	OpAddDependency:        unchecked(ClassOpaque, noMLIR, nowhere(ordersOnly)),
	OpAfterAll:             unchecked(ClassOpaque, "stablehlo.after_all stablehlo.create_token", nowhere(ordersOnly)),
	OpAsyncDone:            unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
	OpAsyncStart:           unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
	OpAsyncUpdate:          unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
	OpCopyDone:             unchecked(ClassOpaque, noMLIR, nowhere(inBackground)),
	OpCopyStart:            unchecked(ClassOpaque, noMLIR, nowhere(inBackground)),
	OpDomain:               unchecked(ClassOpaque, noMLIR, nowhere(ordersOnly)),
	OpInfeed:               unchecked(ClassOpaque, noMLIR, nowhere(withHost)),
	OpOutfeed:              unchecked(ClassOpaque, noMLIR, nowhere(withHost)),
	OpRecv:                 unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
	OpRecvDone:             unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
	OpSend:                 unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
	OpSendDone:             unchecked(ClassOpaque, noMLIR, nowhere(betweenDevices)),
}

// shortBarrier is how XLA spells OpOptimizationBarrier.
const shortBarrier = "opt-barrier"

// opcodes are the names of operations as they are written.
var opcodes = func() map[string]Opcode {
	all := map[string]Opcode{shortBarrier: OpOptimizationBarrier}
	for op := range opTable {
		all[string(op)] = op
	}
	return all
}()

// Opcodes lists every operation in alphabetical order.
func Opcodes() []Opcode { return slices.Sorted(maps.Keys(opTable)) }

// Known reports whether o is an HLO operation.
func (o Opcode) Known() bool {
	_, ok := opTable[o]
	return ok
}

// Class is how the results of o depend on its operands.
func (o Opcode) Class() Class { return opTable[o].class }

// Not is the reason why t does not compute o, whatever its types: a clause that
// continues "because …"; "" where t computes it.
func (o Opcode) Not(t Target) string {
	return opTable[o].not[t]
}

// except are the element types of which a target does not compute an operation, though
// the reference does.
var except = map[Target]map[Opcode][]DType{
	CPU: {OpScatter: {C64, C128}},
	GPU: {
		OpReduce:          {F8E8M0FNU},
		OpReduceWindow:    {F8E8M0FNU},
		OpPower:           {S1, S2, S4, S8, S16, S32, S64, U1, U2, U4, U8, U16, U32, U64},
		OpReducePrecision: {F4E2M1FN, F8E3M4, F8E4M3, F8E4M3FN, F8E4M3B11FNUZ, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, F16, F64},
	},
}

// NotOf reports whether t does not compute o of operands of type d, though the
// reference does.
func (o Opcode) NotOf(t Target, d DType) bool {
	return slices.Contains(except[t][o], d)
}

// Elementwise reports whether each element of the result is computed from the
// elements at the same position of the operands: arithmetic, compare, select,
// clamp, convert, copy.
func (o Opcode) Elementwise() bool { return opTable[o].class == ClassElementwise }

// Has reports whether o has all of the traits.
func (o Opcode) Has(traits Trait) bool {
	return opTable[o].traits&traits == traits
}

// Arity is the least and the greatest number of operands; −1: any number.
func (o Opcode) Arity() (minimum, maximum int) {
	row := opTable[o]
	return row.minOperands, row.maxOperands
}

// FLOPs is the cost of one element of the result in flop, of a reduction or
// contraction that of one combined element.
func (o Opcode) FLOPs() float64 { return opTable[o].flops }

// MLIR lists the operations of MLIR dialects that are read as o, such as
// "stablehlo.add"; empty when there is none.
func (o Opcode) MLIR() []string { return strings.Fields(opTable[o].mlir) }

// nearest is the known name closest to o, for "did you mean".
func (o Opcode) nearest() string {
	names := make([]string, 0, len(opTable))
	for _, name := range Opcodes() {
		names = append(names, string(name))
	}
	return Nearest(string(o), names)
}

// Nearest is the name at most two edits away from a misspelt one that takes
// the fewest, the first of several; "" when there is none.
func Nearest(misspelt string, names []string) string {
	nearest, distance := "", 3
	for _, name := range names {
		if d := editDistance(misspelt, name); d < distance {
			nearest, distance = name, d
		}
	}
	return nearest
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
