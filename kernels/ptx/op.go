package ptx

// An Op is an operation: an opcode without its modifiers.
type Op uint8

const (
	NoOp Op = iota

	OpMov
	OpLd
	OpSt
	OpCvta
	OpCvt
	OpIsspacep
	OpPrefetch
	OpPrefetchu

	OpAdd
	OpSub
	OpMul
	OpMad
	OpFma
	OpDiv
	OpRem
	OpMin
	OpMax
	OpAbs
	OpNeg
	OpAddc
	OpSubc
	OpMadc
	OpMul24
	OpMad24
	OpSad

	OpSqrt
	OpRsqrt
	OpRcp
	OpEx2
	OpLg2
	OpTanh
	OpSin
	OpCos
	OpTestp
	OpCopysign

	OpAnd
	OpOr
	OpXor
	OpNot
	OpCnot
	OpShl
	OpShr
	OpShf
	OpBfe
	OpBfi
	OpBfind
	OpBrev
	OpPopc
	OpClz
	OpLop3
	OpPrmt
	OpDp4a
	OpDp2a
	OpFns
	OpBmsk
	OpSzext

	OpSetp
	OpSet
	OpSelp
	OpSlct

	OpBra
	OpRet
	OpExit
	OpTrap
	OpBrkpt
	OpNanosleep

	OpBarSync
	OpBarArrive
	OpBarRed
	OpBarWarpSync
	OpBarrierSync
	OpBarrierArrive
	OpBarrierRed
	OpBarrierClusterArrive
	OpBarrierClusterWait

	OpMembar
	OpFence
	OpFenceProxy
	OpFenceMbarrierInit

	OpShflSync
	OpVoteSync
	OpMatchAnySync
	OpMatchAllSync
	OpReduxSync
	OpActivemask
	OpElectSync

	OpAtom
	OpRed

	OpCpAsync
	OpCpAsyncCommitGroup
	OpCpAsyncWaitGroup
	OpCpAsyncWaitAll
	OpCpAsyncMbarrierArrive

	OpCpAsyncBulk
	OpCpAsyncBulkTensor
	OpCpAsyncBulkCommitGroup
	OpCpAsyncBulkWaitGroup
	OpCpAsyncBulkPrefetch
	OpCpAsyncBulkPrefetchTensor
	OpCpReduceAsyncBulk
	OpCpReduceAsyncBulkTensor

	OpLdmatrix
	OpStmatrix
	OpMovmatrix
	OpMMA

	OpMbarrierInit
	OpMbarrierInval
	OpMbarrierArrive
	OpMbarrierArriveDrop
	OpMbarrierExpectTx
	OpMbarrierCompleteTx
	OpMbarrierTestWait
	OpMbarrierTryWait
	OpMbarrierPendingCount

	OpWgmmaFence
	OpWgmmaMMAAsync
	OpWgmmaCommitGroup
	OpWgmmaWaitGroup
	OpSetmaxnreg

	OpMapa
	OpGetctarank
	OpGriddepcontrol
	OpStAsync
	OpRedAsync
	OpCreatepolicy
	OpApplypriority
	OpDiscard

	numOps
)

// opNames is how each operation is written.
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
}

// String is the operation as written.
func (o Op) String() string {
	if o > NoOp && o < numOps {
		return opNames[o]
	}
	return "none"
}
