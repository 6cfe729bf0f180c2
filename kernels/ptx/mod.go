package ptx

import "strconv"

// A Mod is one modifier of an opcode: what stands between two dots. The first
// ones are the types, so that a [Type] is a Mod.
type Mod uint16

// A Type is the type of a register, a variable or an operation. 8-bit floats
// come in pairs where they are converted; tf32 lies in 32 bits.
type Type = Mod

const (
	NoMod Mod = iota // no modifier, no type

	// Pred is a predicate.
	Pred
	// B1 is one bit; the types of bits have no interpretation.
	B1
	// B4 is 4 bits.
	B4
	// B8 is 8 bits.
	B8
	// B16 is 16 bits.
	B16
	// B32 is 32 bits.
	B32
	// B64 is 64 bits.
	B64
	// B128 is 128 bits.
	B128
	// U4 is an unsigned integer of 4 bits.
	U4
	// U8 is an unsigned integer of 8 bits.
	U8
	// U16 is an unsigned integer of 16 bits.
	U16
	// U32 is an unsigned integer of 32 bits.
	U32
	// U64 is an unsigned integer of 64 bits.
	U64
	// S4 is a signed integer of 4 bits.
	S4
	// S8 is a signed integer of 8 bits.
	S8
	// S16 is a signed integer of 16 bits.
	S16
	// S32 is a signed integer of 32 bits.
	S32
	// S64 is a signed integer of 64 bits.
	S64
	// F16 is an IEEE half.
	F16
	// F16x2 is a pair of halves.
	F16x2
	// BF16 is a bfloat16.
	BF16
	// BF16x2 is a pair of bfloat16.
	BF16x2
	// TF32 is a float of 8 bits of exponent and 10 of mantissa, in 32 bits.
	TF32
	// F32 is an IEEE single.
	F32
	// F64 is an IEEE double.
	F64
	// E4M3 is an 8-bit float of 4 bits of exponent and 3 of mantissa.
	E4M3
	// E5M2 is an 8-bit float of 5 bits of exponent and 2 of mantissa.
	E5M2
	// E4M3x2 is a pair of e4m3.
	E4M3x2
	// E5M2x2 is a pair of e5m2.
	E5M2x2
	// U16x2 is a pair of u16.
	U16x2
	// S16x2 is a pair of s16.
	S16x2
	// F32x2 is a pair of f32.
	F32x2

	// ModRN is .rn: to nearest, ties to even.
	ModRN
	// ModRZ is .rz: towards zero.
	ModRZ
	// ModRM is .rm: towards negative infinity.
	ModRM
	// ModRP is .rp: towards positive infinity.
	ModRP
	// ModRNA is .rna: to nearest, ties away from zero.
	ModRNA
	// ModRS is .rs: stochastic.
	ModRS
	// ModRNI is .rni: to the nearest integer, ties to even.
	ModRNI
	// ModRZI is .rzi: to an integer towards zero.
	ModRZI
	// ModRMI is .rmi: to an integer towards negative infinity.
	ModRMI
	// ModRPI is .rpi: to an integer towards positive infinity.
	ModRPI

	// ModFTZ is .ftz: subnormal operands and results become zero.
	ModFTZ
	// ModSat is .sat: the result is clamped.
	ModSat
	// ModSatfinite is .satfinite: overflow gives the largest number.
	ModSatfinite
	// ModRelu is .relu: negative results become zero.
	ModRelu
	// ModApprox is .approx: a fast approximation.
	ModApprox
	// ModFull is .full: an approximation over the full range.
	ModFull
	// ModCC is .cc: the carry flag is written.
	ModCC
	// ModLo is .lo: the low half of a product, or less in comparisons of unsigned
	// numbers.
	ModLo
	// ModHi is .hi: the high half of a product.
	ModHi
	// ModWide is .wide: the whole product.
	ModWide
	// ModNaN is .NaN: a NaN operand gives NaN.
	ModNaN
	// ModXorSign is .xorsign: the sign of the result is the xor of the signs.
	ModXorSign
	// ModAbs is .abs: magnitudes are compared.
	ModAbs

	// ModEQ is .eq: equal.
	ModEQ
	// ModNE is .ne: not equal.
	ModNE
	// ModLT is .lt: less.
	ModLT
	// ModLE is .le: less or equal.
	ModLE
	// ModGT is .gt: greater.
	ModGT
	// ModGE is .ge: greater or equal.
	ModGE
	// ModLS is .ls: less or equal, unsigned.
	ModLS
	// ModHS is .hs: greater or equal, unsigned.
	ModHS
	// ModEQU is .equ: equal or unordered.
	ModEQU
	// ModNEU is .neu: not equal or unordered.
	ModNEU
	// ModLTU is .ltu: less or unordered.
	ModLTU
	// ModLEU is .leu: less or equal, or unordered.
	ModLEU
	// ModGTU is .gtu: greater or unordered.
	ModGTU
	// ModGEU is .geu: greater or equal, or unordered.
	ModGEU
	// ModIsNum is .num: both operands are numbers.
	ModIsNum
	// ModIsNaN is .nan: an operand is a NaN.
	ModIsNaN

	// ModFinite is .finite: neither infinite nor a NaN.
	ModFinite
	// ModInfinite is .infinite: an infinity.
	ModInfinite
	// ModNumber is .number: not a NaN.
	ModNumber
	// ModNotANumber is .notanumber: a NaN.
	ModNotANumber
	// ModNormal is .normal: a normal number.
	ModNormal
	// ModSubnormal is .subnormal: a subnormal number.
	ModSubnormal

	// Operations of atom, red, setp and redux.
	ModAnd
	// ModOr is .or: bitwise or.
	ModOr
	// ModXor is .xor: bitwise exclusive or.
	ModXor
	// ModPopc is .popc: the number of true predicates.
	ModPopc
	// ModInc is .inc: increment with wrap-around.
	ModInc
	// ModDec is .dec: decrement with wrap-around.
	ModDec
	// ModExch is .exch: exchange.
	ModExch
	// ModCas is .cas: compare and swap.
	ModCas
	// ModMin is .min: minimum.
	ModMin
	// ModMax is .max: maximum.
	ModMax
	// ModAdd is .add: sum.
	ModAdd

	// State spaces.
	ModParam
	// ModParamEntry is .param::entry: parameters of the kernel.
	ModParamEntry
	// ModParamFunc is .param::func: parameters of a function.
	ModParamFunc
	// ModGlobal is .global: global memory.
	ModGlobal
	// ModShared is .shared: shared memory of the block.
	ModShared
	// ModSharedCTA is .shared::cta: shared memory of the block.
	ModSharedCTA
	// ModSharedCluster is .shared::cluster: shared memory of the cluster.
	ModSharedCluster
	// ModLocal is .local: memory of the thread.
	ModLocal
	// ModConst is .const: constant memory.
	ModConst
	// ModTo is .to: from generic addresses to those of a space.
	ModTo

	// Cache operators, eviction priorities and prefetch sizes.
	ModCA
	// ModCG is .cg: cached in L2 only.
	ModCG
	// ModCS is .cs: evicted first.
	ModCS
	// ModLU is .lu: not used again.
	ModLU
	// ModCV is .cv: not cached.
	ModCV
	// ModWB is .wb: written back.
	ModWB
	// ModWT is .wt: written through.
	ModWT
	// ModNC is .nc: the read-only cache.
	ModNC
	// ModL1NoAllocate is .L1::no_allocate: not kept in L1.
	ModL1NoAllocate
	// ModL1EvictNormal is .L1::evict_normal: the normal eviction priority in L1.
	ModL1EvictNormal
	// ModL1EvictUnchanged is .L1::evict_unchanged: an unchanged eviction priority
	// in L1.
	ModL1EvictUnchanged
	// ModL1EvictFirst is .L1::evict_first: evicted from L1 first.
	ModL1EvictFirst
	// ModL1EvictLast is .L1::evict_last: evicted from L1 last.
	ModL1EvictLast
	// ModL2EvictLast is .L2::evict_last: evicted from L2 last.
	ModL2EvictLast
	// ModL2EvictNormal is .L2::evict_normal: the normal eviction priority in L2.
	ModL2EvictNormal
	// ModL2EvictFirst is .L2::evict_first: evicted from L2 first.
	ModL2EvictFirst
	// ModL2EvictUnchanged is .L2::evict_unchanged: an unchanged eviction priority
	// in L2.
	ModL2EvictUnchanged
	// ModL2CacheHint is .L2::cache_hint: a cache policy is the last operand.
	ModL2CacheHint
	// ModL2Prefetch64B is .L2::64B: 64 bytes are prefetched into L2.
	ModL2Prefetch64B
	// ModL2Prefetch128B is .L2::128B: 128 bytes are prefetched into L2.
	ModL2Prefetch128B
	// ModL2Prefetch256B is .L2::256B: 256 bytes are prefetched into L2.
	ModL2Prefetch256B
	// ModL1 is .L1: the level of a prefetch.
	ModL1
	// ModL2 is .L2: the level of a prefetch.
	ModL2
	// ModFractional is .fractional: a policy for a fraction of the lines.
	ModFractional
	// ModRange is .range: a policy for a range of addresses.
	ModRange

	// Memory order and scope.
	ModWeak
	// ModRelaxed is .relaxed: ordered by coherence only.
	ModRelaxed
	// ModAcquire is .acquire: later accesses stay behind it.
	ModAcquire
	// ModRelease is .release: earlier accesses stay before it.
	ModRelease
	// ModAcqRel is .acq_rel: both acquire and release.
	ModAcqRel
	// ModSc is .sc: sequentially consistent.
	ModSc
	// ModVolatile is .volatile: a relaxed access of the system.
	ModVolatile
	// ModMmio is .mmio: an access to a device's registers.
	ModMmio
	// ModCTA is .cta: the scope of the block.
	ModCTA
	// ModCluster is .cluster: the scope of the cluster.
	ModCluster
	// ModGPU is .gpu: the scope of the device.
	ModGPU
	// ModSYS is .sys: the scope of the system.
	ModSYS
	// ModGL is .gl: membar of the device.
	ModGL

	// Vectors and counts.
	ModV2
	// ModV4 is .v4: vectors of 4.
	ModV4
	// ModV8 is .v8: vectors of 8.
	ModV8
	// ModX1 is .x1: one matrix.
	ModX1
	// ModX2 is .x2: two matrices.
	ModX2
	// ModX4 is .x4: four matrices.
	ModX4

	// Synchronisation.
	ModSync
	// ModArrive is .arrive: no wait.
	ModArrive
	// ModAligned is .aligned: executed by all lanes of the warp.
	ModAligned
	// ModAll is .all: the predicate holds everywhere.
	ModAll
	// ModAny is .any: the predicate holds somewhere.
	ModAny
	// ModUni is .uni: uniform over the warp.
	ModUni
	// ModBallot is .ballot: the mask of the predicate.
	ModBallot
	// ModUp is .up: the source is a lower lane.
	ModUp
	// ModDown is .down: the source is a higher lane.
	ModDown
	// ModBfly is .bfly: the source differs in bits of the lane.
	ModBfly
	// ModIdx is .idx: the source is a given lane.
	ModIdx
	// ModNoComplete is .noComplete: the arrival must not complete a phase.
	ModNoComplete
	// ModExpectTx is .expect_tx: the arrival adds expected bytes.
	ModExpectTx
	// ModNoinc is .noinc: the pending count is not raised.
	ModNoinc
	// ModParity is .parity: the phase is given by its parity.
	ModParity
	// ModWait is .wait: the wait of a pair of instructions.
	ModWait
	// ModRead is .read: waits until the sources have been read.
	ModRead
	// ModWarp is .warp: of the warp.
	ModWarp
	// ModRed is .red: a reduction.
	ModRed
	// ModInval is .inval: invalidates.
	ModInval

	// Proxies.
	ModAlias
	// ModAsync is .async: between the async proxy and others.
	ModAsync
	// ModAsyncGeneric is .async::generic: between the generic and the async
	// proxy.
	ModAsyncGeneric
	// ModProxyAsync is .proxy::async: of the async proxy.
	ModProxyAsync
	// ModTensormap is .tensormap: of tensor maps.
	ModTensormap
	// ModTensormapGeneric is .tensormap::generic: between tensor maps and the
	// generic proxy.
	ModTensormapGeneric
	// ModOpRestrictMbarrierInit is .op_restrict::mbarrier_init: of
	// initialisations of mbarriers only.
	ModOpRestrictMbarrierInit
	// ModSyncRestrictSharedCTA is .sync_restrict::shared::cta: of objects in the
	// block's shared memory only.
	ModSyncRestrictSharedCTA
	// ModSyncRestrictSharedCluster is .sync_restrict::shared::cluster: of objects
	// in the cluster's shared memory only.
	ModSyncRestrictSharedCluster
	// ModNoftz is .noftz: subnormal numbers are kept.
	ModNoftz

	// Bulk copies.
	ModDim1
	// ModDim2 is .2d: tensors of 2 dimensions.
	ModDim2
	// ModDim3 is .3d: tensors of 3 dimensions.
	ModDim3
	// ModDim4 is .4d: tensors of 4 dimensions.
	ModDim4
	// ModDim5 is .5d: tensors of 5 dimensions.
	ModDim5
	// ModTile is .tile: boxes of a tensor.
	ModTile
	// ModIm2col is .im2col: windows of a convolution.
	ModIm2col
	// ModIm2colNoOffs is .im2col_no_offs: im2col without offsets.
	ModIm2colNoOffs
	// ModMbarrierCompleteTxBytes is .mbarrier::complete_tx::bytes: completes on
	// an mbarrier.
	ModMbarrierCompleteTxBytes
	// ModMulticastCluster is .multicast::cluster: to several blocks of the
	// cluster.
	ModMulticastCluster
	// ModBulkGroup is .bulk_group: completes in a bulk group.
	ModBulkGroup

	// Matrices.
	ModM8n8
	// ModTrans is .trans: transposed.
	ModTrans
	// ModRow is .row: major by rows.
	ModRow
	// ModCol is .col: major by columns.
	ModCol
	// ModM8n8k4 is .m8n8k4: the shape of an mma.
	ModM8n8k4
	// ModM8n8k16 is .m8n8k16: the shape of an mma.
	ModM8n8k16
	// ModM16n8k4 is .m16n8k4: the shape of an mma.
	ModM16n8k4
	// ModM16n8k8 is .m16n8k8: the shape of an mma.
	ModM16n8k8
	// ModM16n8k16 is .m16n8k16: the shape of an mma.
	ModM16n8k16
	// ModM16n8k32 is .m16n8k32: the shape of an mma.
	ModM16n8k32
	// ModM16n16k16 is .m16n16k16: the shape of a wmma.
	ModM16n16k16
	// ModA is .a: the first operand of a wmma.
	ModA
	// ModB is .b: the second operand of a wmma.
	ModB
	// ModC is .c: the sums that a wmma adds to.
	ModC
	// ModD is .d: the sums of a wmma.
	ModD
	// ModB1024 is .b1024: a tensor map.
	ModB1024
	// ModGlobalAddress is .global_address: the address of a tensor.
	ModGlobalAddress
	// ModRank is .rank: the dimensions of a tensor, less 1.
	ModRank
	// ModBoxDim is .box_dim: a size of a box.
	ModBoxDim
	// ModGlobalDim is .global_dim: a size of a tensor.
	ModGlobalDim
	// ModGlobalStride is .global_stride: a stride of a tensor.
	ModGlobalStride
	// ModElementStride is .element_stride: a stride of a box.
	ModElementStride
	// ModElemtype is .elemtype: the type of a tensor.
	ModElemtype
	// ModInterleaveLayout is .interleave_layout: the interleaving of a tensor.
	ModInterleaveLayout
	// ModSwizzleMode is .swizzle_mode: the swizzle of a box.
	ModSwizzleMode
	// ModFillMode is .fill_mode: what is outside of a tensor.
	ModFillMode

	// Byte permutation, shifts and the rest.
	ModF4E
	// ModB4E is .b4e: bytes backwards from a position.
	ModB4E
	// ModRC8 is .rc8: one byte replicated.
	ModRC8
	// ModECL is .ecl: bytes clamped to the left of a position.
	ModECL
	// ModECR is .ecr: bytes clamped to the right of a position.
	ModECR
	// ModRC16 is .rc16: one half replicated.
	ModRC16
	// ModL is .l: a shift to the left.
	ModL
	// ModR is .r: a shift to the right.
	ModR
	// ModWrap is .wrap: amounts modulo the width.
	ModWrap
	// ModClamp is .clamp: amounts clamped to the width.
	ModClamp
	// ModShiftamt is .shiftamt: the distance from the top instead of the
	// position.
	ModShiftamt
	// ModLaunchDependents is .launch_dependents: dependent grids may start.
	ModLaunchDependents

	// The shapes m64nNkK of wgmma follow; see WGMMA.
	firstWGMMA
	// numMods is the number of modifiers.
	numMods = firstWGMMA + 3*32
)

// modNames are the names of the modifiers, without their dots.
var modNames = [...]string{
	Pred: "pred", B1: "b1", B4: "b4", B8: "b8", B16: "b16",
	B32: "b32", B64: "b64", B128: "b128", U4: "u4",
	U8: "u8", U16: "u16", U32: "u32", U64: "u64", S4: "s4",
	S8: "s8", S16: "s16", S32: "s32", S64: "s64",
	F16: "f16", F16x2: "f16x2", BF16: "bf16", BF16x2: "bf16x2", TF32: "tf32",
	F32: "f32", F64: "f64",
	E4M3: "e4m3", E5M2: "e5m2", E4M3x2: "e4m3x2", E5M2x2: "e5m2x2", U16x2: "u16x2",
	S16x2: "s16x2",
	F32x2: "f32x2",

	ModRN: "rn", ModRZ: "rz", ModRM: "rm", ModRP: "rp", ModRNA: "rna",
	ModRS: "rs", ModRNI: "rni",
	ModRZI: "rzi", ModRMI: "rmi", ModRPI: "rpi",

	ModFTZ: "ftz", ModSat: "sat", ModSatfinite: "satfinite", ModRelu: "relu", ModApprox: "approx",
	ModFull: "full", ModCC: "cc", ModLo: "lo", ModHi: "hi", ModWide: "wide",
	ModNaN:     "NaN",
	ModXorSign: "xorsign", ModAbs: "abs",

	ModEQ: "eq", ModNE: "ne", ModLT: "lt", ModLE: "le", ModGT: "gt",
	ModGE: "ge", ModLS: "ls", ModHS: "hs",
	ModEQU: "equ", ModNEU: "neu", ModLTU: "ltu", ModLEU: "leu", ModGTU: "gtu",
	ModGEU: "geu", ModIsNum: "num",
	ModIsNaN: "nan",

	ModFinite: "finite", ModInfinite: "infinite", ModNumber: "number", ModNotANumber: "notanumber",
	ModNormal: "normal", ModSubnormal: "subnormal",

	ModAnd: "and", ModOr: "or", ModXor: "xor", ModPopc: "popc", ModInc: "inc",
	ModDec: "dec", ModExch: "exch",
	ModCas: "cas", ModMin: "min", ModMax: "max", ModAdd: "add",

	ModParam: "param", ModParamEntry: "param::entry", ModParamFunc: "param::func", ModGlobal: "global",
	ModShared: "shared", ModSharedCTA: "shared::cta", ModSharedCluster: "shared::cluster", ModLocal: "local",
	ModConst: "const", ModTo: "to",

	ModCA: "ca", ModCG: "cg", ModCS: "cs", ModLU: "lu", ModCV: "cv",
	ModWB: "wb", ModWT: "wt", ModNC: "nc",
	ModL1NoAllocate: "L1::no_allocate", ModL1EvictNormal: "L1::evict_normal",
	ModL1EvictUnchanged: "L1::evict_unchanged", ModL1EvictFirst: "L1::evict_first",
	ModL1EvictLast: "L1::evict_last", ModL2EvictLast: "L2::evict_last", ModL2EvictNormal: "L2::evict_normal",
	ModL2EvictFirst: "L2::evict_first", ModL2EvictUnchanged: "L2::evict_unchanged", ModL2CacheHint: "L2::cache_hint", ModL2Prefetch64B: "L2::64B",
	ModL2Prefetch128B: "L2::128B", ModL2Prefetch256B: "L2::256B", ModL1: "L1", ModL2: "L2", ModFractional: "fractional",
	ModRange: "range",

	ModWeak: "weak", ModRelaxed: "relaxed", ModAcquire: "acquire", ModRelease: "release", ModAcqRel: "acq_rel",
	ModSc: "sc", ModVolatile: "volatile", ModMmio: "mmio", ModCTA: "cta", ModCluster: "cluster",
	ModGPU: "gpu",
	ModSYS: "sys", ModGL: "gl",

	ModV2: "v2", ModV4: "v4", ModV8: "v8", ModX1: "x1", ModX2: "x2",
	ModX4: "x4",

	ModSync: "sync", ModArrive: "arrive", ModAligned: "aligned", ModAll: "all", ModAny: "any",
	ModUni:    "uni",
	ModBallot: "ballot", ModUp: "up", ModDown: "down", ModBfly: "bfly", ModIdx: "idx",
	ModNoComplete: "noComplete", ModExpectTx: "expect_tx", ModNoinc: "noinc", ModParity: "parity",
	ModWait: "wait", ModRead: "read", ModWarp: "warp", ModRed: "red", ModInval: "inval",

	ModAlias: "alias", ModAsync: "async",
	ModAsyncGeneric: "async::generic", ModProxyAsync: "proxy::async", ModTensormap: "tensormap",
	ModTensormapGeneric: "tensormap::generic", ModOpRestrictMbarrierInit: "op_restrict::mbarrier_init",
	ModSyncRestrictSharedCTA:     "sync_restrict::shared::cta",
	ModSyncRestrictSharedCluster: "sync_restrict::shared::cluster", ModNoftz: "noftz",

	ModDim1: "1d", ModDim2: "2d", ModDim3: "3d", ModDim4: "4d", ModDim5: "5d",
	ModTile:   "tile",
	ModIm2col: "im2col", ModIm2colNoOffs: "im2col_no_offs",
	ModMbarrierCompleteTxBytes: "mbarrier::complete_tx::bytes", ModMulticastCluster: "multicast::cluster",
	ModBulkGroup: "bulk_group",

	ModM8n8: "m8n8", ModTrans: "trans", ModRow: "row", ModCol: "col", ModM8n8k4: "m8n8k4",
	ModM8n8k16: "m8n8k16", ModM16n8k4: "m16n8k4", ModM16n8k8: "m16n8k8", ModM16n8k16: "m16n8k16",
	ModM16n8k32:         "m16n8k32",
	ModM16n16k16:        "m16n16k16",
	ModA:                "a",
	ModB:                "b",
	ModC:                "c",
	ModD:                "d",
	ModB1024:            "b1024",
	ModGlobalAddress:    "global_address",
	ModRank:             "rank",
	ModBoxDim:           "box_dim",
	ModGlobalDim:        "global_dim",
	ModGlobalStride:     "global_stride",
	ModElementStride:    "element_stride",
	ModElemtype:         "elemtype",
	ModInterleaveLayout: "interleave_layout",
	ModSwizzleMode:      "swizzle_mode",
	ModFillMode:         "fill_mode",

	ModF4E: "f4e", ModB4E: "b4e", ModRC8: "rc8", ModECL: "ecl", ModECR: "ecr",
	ModRC16: "rc16", ModL: "l",
	ModR: "r", ModWrap: "wrap", ModClamp: "clamp", ModShiftamt: "shiftamt",
	ModLaunchDependents: "launch_dependents",
}

// WGMMA is the modifier of the shape 64×n×k: n = 8, 16, … 256, k = 8, 16 or 32;
// NoMod where there is no such shape.
func WGMMA(n, k int) Mod {
	if n < 8 || n > 256 || n%8 != 0 ||
		k != 8 && k != 16 && k != 32 {
		return NoMod
	}
	return firstWGMMA + Mod(k/16*32+n/8-1)
}

// String is the modifier as written, without its dot.
func (m Mod) String() string {
	switch {
	case m == NoMod:
		return "none"
	case m < firstWGMMA:
		return modNames[m]
	case m < numMods:
		s := m.Shape()
		return "m64n" + strconv.Itoa(s.N) + "k" + strconv.Itoa(s.K)
	}
	return "mod" + strconv.Itoa(int(m))
}

// IsType reports whether m is a type.
func (m Mod) IsType() bool { return m > NoMod && m <= lastType }

// A Shape is the size of a matrix product: the result has M rows and N columns,
// each a sum of K products.
type Shape struct{ M, N, K int }

// Shape is the shape that m names, the zero Shape if it names none.
func (m Mod) Shape() Shape {
	if m >= firstWGMMA && m < numMods {
		i := int(m - firstWGMMA)
		return Shape{64, (i%32 + 1) * 8, 8 << (i / 32)}
	}
	switch m {
	case ModM8n8k4:
		return Shape{8, 8, 4}
	case ModM8n8k16:
		return Shape{8, 8, 16}
	case ModM16n8k4:
		return Shape{16, 8, 4}
	case ModM16n8k8:
		return Shape{16, 8, 8}
	case ModM16n8k16:
		return Shape{16, 8, 16}
	case ModM16n8k32:
		return Shape{16, 8, 32}
	}
	return Shape{}
}

// Bits is the width of a type in bits, 0 if m is no type; a predicate has 1 bit.
func (m Mod) Bits() int {
	switch m {
	case Pred, B1:
		return 1
	case B4, U4, S4:
		return 4
	case B8, U8, S8, E4M3, E5M2:
		return 8
	case B16, U16, S16, F16, BF16, E4M3x2, E5M2x2:
		return 16
	case B32, U32, S32, F32, TF32,
		F16x2, BF16x2, U16x2, S16x2:
		return 32
	case B64, U64, S64, F64, F32x2:
		return 64
	case B128:
		return 128
	}
	return 0
}

// Bytes is the size of a type in memory, 0 if it has none.
func (m Mod) Bytes() int { return m.Bits() / 8 }

// Untyped reports whether m is a type of bits, without an interpretation.
func (m Mod) Untyped() bool { return m >= B1 && m <= B128 }

// Signed reports whether a type is one of signed integers.
func (m Mod) Signed() bool { return m >= S4 && m <= S64 || m == S16x2 }

// Unsigned reports whether a type is one of unsigned integers.
func (m Mod) Unsigned() bool { return m >= U4 && m <= U64 || m == U16x2 }

// Float reports whether a type is one of floats.
func (m Mod) Float() bool { return m >= F16 && m <= E5M2x2 || m == F32x2 }

// lastType is the last modifier that is a type.
const lastType = F32x2
