package ptx

// An Op is an operation: an opcode without its modifiers.
type Op uint8

const (
	// NoOp is the zero Op: no operation.
	NoOp Op = iota

	// OpMov moves a register, a constant, a special register or the address of a
	// variable, or packs and unpacks vectors.
	OpMov
	// OpLd loads from memory.
	OpLd
	// OpSt stores to memory.
	OpSt
	// OpCvta converts an address of a state space to a generic one, or back.
	OpCvta
	// OpCvt converts between types.
	OpCvt
	// OpIsspacep tests whether a generic address lies in a state space.
	OpIsspacep
	// OpPrefetch brings a cache line into a cache.
	OpPrefetch
	// OpPrefetchu brings a cache line into the uniform cache.
	OpPrefetchu

	// OpAdd adds.
	OpAdd
	// OpSub subtracts.
	OpSub
	// OpMul multiplies: the low half, the high half or the whole product.
	OpMul
	// OpMad multiplies and adds.
	OpMad
	// OpFma multiplies and adds with one rounding.
	OpFma
	// OpDiv divides.
	OpDiv
	// OpRem is the remainder of an integer division.
	OpRem
	// OpMin is the minimum.
	OpMin
	// OpMax is the maximum.
	OpMax
	// OpAbs is the absolute value.
	OpAbs
	// OpNeg negates.
	OpNeg
	// OpAddc adds with carry-in.
	OpAddc
	// OpSubc subtracts with borrow-in.
	OpSubc
	// OpMadc multiplies and adds with carry-in.
	OpMadc
	// OpMul24 multiplies integers of 24 bits.
	OpMul24
	// OpMad24 multiplies integers of 24 bits and adds.
	OpMad24
	// OpSad adds the absolute difference of two operands to a third.
	OpSad

	// OpSqrt is the square root.
	OpSqrt
	// OpRsqrt is the reciprocal of the square root.
	OpRsqrt
	// OpRcp is the reciprocal.
	OpRcp
	// OpEx2 is 2 to the power of the operand.
	OpEx2
	// OpLg2 is the logarithm to base 2.
	OpLg2
	// OpTanh is the hyperbolic tangent.
	OpTanh
	// OpSin is the sine.
	OpSin
	// OpCos is the cosine.
	OpCos
	// OpTestp tests the class of a float, such as infinite.
	OpTestp
	// OpCopysign copies the sign of one float to another.
	OpCopysign

	// OpAnd is the bitwise and.
	OpAnd
	// OpOr is the bitwise or.
	OpOr
	// OpXor is the bitwise exclusive or.
	OpXor
	// OpNot is the bitwise complement.
	OpNot
	// OpCnot is 1 for zero and 0 for everything else.
	OpCnot
	// OpShl shifts to the left.
	OpShl
	// OpShr shifts to the right.
	OpShr
	// OpShf shifts a pair of registers (a funnel shift).
	OpShf
	// OpBfe extracts a bit field.
	OpBfe
	// OpBfi inserts a bit field.
	OpBfi
	// OpBfind finds the most significant bit.
	OpBfind
	// OpBrev reverses the bits.
	OpBrev
	// OpPopc counts the bits that are set.
	OpPopc
	// OpClz counts leading zeros.
	OpClz
	// OpLop3 is any bitwise operation on three operands, by its truth table.
	OpLop3
	// OpPrmt selects four bytes of two registers.
	OpPrmt
	// OpDp4a adds the dot product of four bytes.
	OpDp4a
	// OpDp2a adds the dot product of two halves with two bytes.
	OpDp2a
	// OpFns finds the n-th bit that is set.
	OpFns
	// OpBmsk makes a mask of a bit field.
	OpBmsk
	// OpSzext extends the low bits with the sign or zeros.
	OpSzext

	// OpSetp compares into a predicate.
	OpSetp
	// OpSet compares into a register.
	OpSet
	// OpSelp selects one of two operands by a predicate.
	OpSelp
	// OpSlct selects one of two operands by the sign of a third.
	OpSlct

	// OpBra branches.
	OpBra
	// OpRet returns.
	OpRet
	// OpExit ends the thread.
	OpExit
	// OpTrap ends the grid with an error.
	OpTrap
	// OpBrkpt is a breakpoint.
	OpBrkpt
	// OpNanosleep suspends the thread for a time.
	OpNanosleep

	// OpBarSync waits at a named barrier of the block.
	OpBarSync
	// OpBarArrive arrives at a named barrier without waiting.
	OpBarArrive
	// OpBarRed waits at a named barrier and reduces a predicate.
	OpBarRed
	// OpBarWarpSync waits for lanes of the warp.
	OpBarWarpSync
	// OpBarrierSync is bar.sync under its newer name.
	OpBarrierSync
	// OpBarrierArrive is bar.arrive under its newer name.
	OpBarrierArrive
	// OpBarrierRed is bar.red under its newer name.
	OpBarrierRed
	// OpBarrierClusterArrive arrives at the barrier of the cluster.
	OpBarrierClusterArrive
	// OpBarrierClusterWait waits at the barrier of the cluster.
	OpBarrierClusterWait

	// OpMembar is a memory fence under its older name.
	OpMembar
	// OpFence is a fence of the memory model.
	OpFence
	// OpFenceProxy orders accesses through different proxies.
	OpFenceProxy
	// OpFenceMbarrierInit makes the initialisation of mbarriers visible.
	OpFenceMbarrierInit

	// OpShflSync reads a register of another lane.
	OpShflSync
	// OpVoteSync reduces a predicate over lanes.
	OpVoteSync
	// OpMatchAnySync finds the lanes with an equal value.
	OpMatchAnySync
	// OpMatchAllSync tests whether all lanes have an equal value.
	OpMatchAllSync
	// OpReduxSync reduces a register over lanes.
	OpReduxSync
	// OpActivemask is the mask of active lanes.
	OpActivemask
	// OpElectSync elects one lane.
	OpElectSync

	// OpAtom is an atomic operation that returns the old value.
	OpAtom
	// OpRed is an atomic operation without a result.
	OpRed

	// OpCpAsync copies up to 16 bytes to shared memory asynchronously.
	OpCpAsync
	// OpCpAsyncCommitGroup commits asynchronous copies as a group.
	OpCpAsyncCommitGroup
	// OpCpAsyncWaitGroup waits for all but the latest groups.
	OpCpAsyncWaitGroup
	// OpCpAsyncWaitAll waits for all asynchronous copies.
	OpCpAsyncWaitAll
	// OpCpAsyncMbarrierArrive arrives at an mbarrier when earlier copies
	// complete.
	OpCpAsyncMbarrierArrive

	// OpCpAsyncBulk copies a block of bytes asynchronously.
	OpCpAsyncBulk
	// OpCpAsyncBulkTensor copies a box of a tensor asynchronously.
	OpCpAsyncBulkTensor
	// OpCpAsyncBulkCommitGroup commits bulk copies as a group.
	OpCpAsyncBulkCommitGroup
	// OpCpAsyncBulkWaitGroup waits for all but the latest bulk groups.
	OpCpAsyncBulkWaitGroup
	// OpCpAsyncBulkPrefetch brings a block of bytes into L2.
	OpCpAsyncBulkPrefetch
	// OpCpAsyncBulkPrefetchTensor brings a box of a tensor into L2.
	OpCpAsyncBulkPrefetchTensor
	// OpCpReduceAsyncBulk reduces a block of bytes into memory.
	OpCpReduceAsyncBulk
	// OpCpReduceAsyncBulkTensor reduces a box into a tensor.
	OpCpReduceAsyncBulkTensor

	// OpCall calls a function: results, function, arguments, and a prototype where the
	// function is in a register.
	OpCall
	// OpBrx branches to the label with a number of a list.
	OpBrx

	// OpTensormapReplace changes a field of a tensor map in memory.
	OpTensormapReplace
	// OpTensormapCpFenceproxy copies a tensor map that was changed, and orders it before
	// its use.
	OpTensormapCpFenceproxy

	// OpWmmaLoad loads a fragment of a matrix.
	OpWmmaLoad
	// OpWmmaStore stores a fragment of a matrix.
	OpWmmaStore
	// OpWmmaMMA is the product of fragments by a warp.
	OpWmmaMMA

	// OpLdmatrix loads 8×8 matrices into fragments.
	OpLdmatrix
	// OpStmatrix stores 8×8 matrices from fragments.
	OpStmatrix
	// OpMovmatrix transposes an 8×8 matrix in registers.
	OpMovmatrix
	// OpMMA is the product of matrices by a warp.
	OpMMA

	// OpMbarrierInit initialises an mbarrier.
	OpMbarrierInit
	// OpMbarrierInval ends the use of an mbarrier.
	OpMbarrierInval
	// OpMbarrierArrive arrives at an mbarrier.
	OpMbarrierArrive
	// OpMbarrierArriveDrop arrives and leaves later phases.
	OpMbarrierArriveDrop
	// OpMbarrierExpectTx adds bytes that an mbarrier waits for.
	OpMbarrierExpectTx
	// OpMbarrierCompleteTx subtracts bytes that have arrived.
	OpMbarrierCompleteTx
	// OpMbarrierTestWait tests whether a phase is complete.
	OpMbarrierTestWait
	// OpMbarrierTryWait waits for a phase, up to a time limit.
	OpMbarrierTryWait
	// OpMbarrierPendingCount reads the pending arrivals of a state.
	OpMbarrierPendingCount

	// OpWgmmaFence orders writes of registers before wgmmas.
	OpWgmmaFence
	// OpWgmmaMMAAsync is the asynchronous product of matrices by a warpgroup.
	OpWgmmaMMAAsync
	// OpWgmmaCommitGroup commits wgmmas as a group.
	OpWgmmaCommitGroup
	// OpWgmmaWaitGroup waits for all but the latest groups of wgmmas.
	OpWgmmaWaitGroup
	// OpSetmaxnreg changes the number of registers of the warps.
	OpSetmaxnreg

	// OpMapa maps an address to the shared memory of another block of the
	// cluster.
	OpMapa
	// OpGetctarank is the rank of the block that an address belongs to.
	OpGetctarank
	// OpGriddepcontrol orders dependent grids.
	OpGriddepcontrol
	// OpStAsync stores to another block and completes on an mbarrier.
	OpStAsync
	// OpRedAsync reduces into another block and completes on an mbarrier.
	OpRedAsync
	// OpCreatepolicy makes a cache policy.
	OpCreatepolicy
	// OpApplypriority changes the eviction priority of a cache line.
	OpApplypriority
	// OpDiscard drops a cache line without writing it back.
	OpDiscard

	// numOps is the number of operations.
	numOps
)

// opNames are the names of the operations.
var opNames = [...]string{
	OpMov: "mov", OpLd: "ld", OpSt: "st", OpCvta: "cvta", OpCvt: "cvt", OpIsspacep: "isspacep",
	OpPrefetch: "prefetch", OpPrefetchu: "prefetchu",
	OpAdd: "add", OpSub: "sub", OpMul: "mul", OpMad: "mad", OpFma: "fma", OpDiv: "div", OpRem: "rem",
	OpMin: "min", OpMax: "max", OpAbs: "abs", OpNeg: "neg", OpAddc: "addc", OpSubc: "subc", OpMadc: "madc",
	OpMul24: "mul24", OpMad24: "mad24", OpSad: "sad",
	OpSqrt: "sqrt", OpRsqrt: "rsqrt", OpRcp: "rcp", OpEx2: "ex2", OpLg2: "lg2", OpTanh: "tanh", OpSin: "sin",
	OpCos: "cos", OpTestp: "testp", OpCopysign: "copysign",
	OpAnd: "and", OpOr: "or", OpXor: "xor", OpNot: "not", OpCnot: "cnot", OpShl: "shl", OpShr: "shr",
	OpShf: "shf", OpBfe: "bfe", OpBfi: "bfi", OpBfind: "bfind", OpBrev: "brev", OpPopc: "popc", OpClz: "clz",
	OpLop3: "lop3", OpPrmt: "prmt", OpDp4a: "dp4a", OpDp2a: "dp2a", OpFns: "fns", OpBmsk: "bmsk",
	OpSzext: "szext",
	OpSetp:  "setp", OpSet: "set", OpSelp: "selp", OpSlct: "slct",
	OpBra: "bra", OpRet: "ret", OpExit: "exit", OpTrap: "trap", OpBrkpt: "brkpt", OpNanosleep: "nanosleep",
	OpBarSync: "bar.sync", OpBarArrive: "bar.arrive", OpBarRed: "bar.red", OpBarWarpSync: "bar.warp.sync",
	OpBarrierSync: "barrier.sync", OpBarrierArrive: "barrier.arrive", OpBarrierRed: "barrier.red",
	OpBarrierClusterArrive: "barrier.cluster.arrive", OpBarrierClusterWait: "barrier.cluster.wait",
	OpMembar: "membar", OpFence: "fence", OpFenceProxy: "fence.proxy",
	OpFenceMbarrierInit: "fence.mbarrier_init",
	OpShflSync:          "shfl.sync", OpVoteSync: "vote.sync", OpMatchAnySync: "match.any.sync",
	OpMatchAllSync: "match.all.sync", OpReduxSync: "redux.sync", OpActivemask: "activemask",
	OpElectSync: "elect.sync",
	OpAtom:      "atom", OpRed: "red",
	OpCpAsync: "cp.async", OpCpAsyncCommitGroup: "cp.async.commit_group",
	OpCpAsyncWaitGroup: "cp.async.wait_group", OpCpAsyncWaitAll: "cp.async.wait_all",
	OpCpAsyncMbarrierArrive: "cp.async.mbarrier.arrive",
	OpCpAsyncBulk:           "cp.async.bulk", OpCpAsyncBulkTensor: "cp.async.bulk.tensor",
	OpCpAsyncBulkCommitGroup: "cp.async.bulk.commit_group", OpCpAsyncBulkWaitGroup: "cp.async.bulk.wait_group",
	OpCpAsyncBulkPrefetch:       "cp.async.bulk.prefetch",
	OpCpAsyncBulkPrefetchTensor: "cp.async.bulk.prefetch.tensor", OpCpReduceAsyncBulk: "cp.reduce.async.bulk",
	OpCpReduceAsyncBulkTensor: "cp.reduce.async.bulk.tensor",
	OpLdmatrix:                "ldmatrix", OpStmatrix: "stmatrix", OpMovmatrix: "movmatrix", OpMMA: "mma",
	OpMbarrierInit: "mbarrier.init", OpMbarrierInval: "mbarrier.inval", OpMbarrierArrive: "mbarrier.arrive",
	OpMbarrierArriveDrop: "mbarrier.arrive_drop", OpMbarrierExpectTx: "mbarrier.expect_tx",
	OpMbarrierCompleteTx: "mbarrier.complete_tx", OpMbarrierTestWait: "mbarrier.test_wait",
	OpMbarrierTryWait: "mbarrier.try_wait", OpMbarrierPendingCount: "mbarrier.pending_count",
	OpWgmmaFence: "wgmma.fence", OpWgmmaMMAAsync: "wgmma.mma_async", OpWgmmaCommitGroup: "wgmma.commit_group",
	OpWgmmaWaitGroup: "wgmma.wait_group", OpSetmaxnreg: "setmaxnreg",
	OpMapa: "mapa", OpGetctarank: "getctarank", OpGriddepcontrol: "griddepcontrol", OpStAsync: "st.async",
	OpRedAsync: "red.async", OpCreatepolicy: "createpolicy", OpApplypriority: "applypriority",
	OpDiscard: "discard",
	OpCall:    "call", OpBrx: "brx.idx",
	OpTensormapReplace: "tensormap.replace", OpTensormapCpFenceproxy: "tensormap.cp_fenceproxy",
	OpWmmaLoad: "wmma.load", OpWmmaStore: "wmma.store", OpWmmaMMA: "wmma.mma",
}

// String is the operation as written.
func (o Op) String() string {
	if o > NoOp && o < numOps {
		return opNames[o]
	}
	return "none"
}
