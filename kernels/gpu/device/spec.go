package device

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Spec has the properties of a device that generated code and plans depend on, from
// its data sheet and the driver's attributes.
type Spec struct {
	// Name is the product: "H200".
	Name string
	// Target is the architecture that PTX is generated for: "sm_80", "sm_90a".
	Target string
	// Driver is the version of the driver; "" where there is none.
	Driver string
	// Simulated is set where kernels run but have no meaningful time.
	Simulated bool

	SMs int
	// Registers of 32 bits: of an SM, the most of a block and the most of a thread.
	// Warps get them in multiples of RegisterUnit.
	Registers       int
	BlockRegisters  int
	ThreadRegisters int
	RegisterUnit    int

	// Bytes of shared memory: the most of a block, the total of an SM, and what the
	// system reserves of each block.
	BlockShared    int
	SMShared       int
	ReservedShared int
	// BlockThreads is the most threads of a block; Warps and Blocks are the most that
	// are resident on an SM.
	BlockThreads int
	Warps        int
	Blocks       int
	// Cluster is the most blocks of a cluster that every device of the architecture
	// supports; 0 where there are no clusters.
	Cluster int

	Rates Rates
	// L2 and Memory are in bytes.
	L2     int64
	Memory int64
	// Clock is the highest clock of the SMs, in Hz.
	Clock float64
	// Bandwidth of the memory in bytes/s; 0 where it is not known.
	Bandwidth float64
	// Watts of the board, or of the cap that is set; 0 where they are not known.
	Watts float64
	// Slice is the profile of the MIG slice that the device is: "1g.10gb"; "" of a whole
	// device.
	Slice string
	// Unread says which facts could not be read, and why; "" where there are none.
	Unread string
}

// SliceMark stands in the name of a device before the profile of its MIG slice.
const SliceMark = " MIG "

const (
	// WarpThreads is the number of threads of a warp.
	WarpThreads = 32
	// WarpgroupThreads is the number of threads of a warpgroup.
	WarpgroupThreads = 128
	// StaticShared is what a block may have without asking for more, and all
	// that may be declared with a size (CUDA C++ Programming Guide, Shared
	// Memory in the compute capability sections).
	StaticShared = 48 << 10
	// sharedUnit is the grain shared memory is given to blocks in (CUDA
	// occupancy calculator, compute capability 7.0 and up: 128 bytes from 8.0).
	sharedUnit = 128
	// SubPartitions of an SM have their own registers and warp scheduler.
	SubPartitions = 4
)

// Rates are multiply-adds of an SM a clock: on the arithmetic units, and dense ones on
// the tensor cores by the type of the operands, where floats are accumulated in f32. 0
// means that the tensor cores lack the type.
type Rates struct {
	// F32 is the rate of the arithmetic units.
	F32             float64
	TF32, F16, BF16 float64
	F8, S8          float64
}

// halfRates are the rates of a GeForce, whose tensor cores accumulate in f32 at half
// the rate of other products with the same architecture (NVIDIA Ampere GA102 GPU
// Architecture whitepaper, table 2: FP16 with FP32 accumulate beside FP16 accumulate;
// Ada GPU Architecture whitepaper, appendix A).
func (r Rates) halfRates() Rates {
	r.TF32 = r.TF32 / 2
	r.F16 = r.F16 / 2
	r.BF16 = r.BF16 / 2
	r.F8 = r.F8 / 2
	return r
}

// Tensor is the rate of tensor cores on operands of a type.
func (r Rates) Tensor(d hlo.DType) float64 {
	switch d {
	case hlo.F32:
		return r.TF32
	case hlo.F16:
		return r.F16
	case hlo.BF16:
		return r.BF16
	case hlo.S8, hlo.U8:
		return r.S8
	}
	return r.F8
}

// ProductRates are the rates of a product, by the name that the driver gives it:
// products of the GeForce line have "GeForce" in it, and the tensor cores of an H20 have a
// quarter of an H100's rates (148 Tflop/s of bf16 on 78 SMs at 1830 MHz).
func ProductRates(target, name string) Rates {
	for _, a := range architectures {
		switch {
		case a.target != target:
		case strings.Contains(name, "GeForce"):
			return a.rates.halfRates()
		case slices.Contains(strings.Fields(name), "H20"):
			return a.rates.halfRates().halfRates().withS8(a.rates.S8 / 4)
		default:
			return a.rates
		}
	}
	return Rates{}
}

// withS8 is the rates with another one of products of bytes.
func (r Rates) withS8(s8 float64) Rates {
	r.S8 = s8
	return r
}

// SliceBandwidth is the bandwidth of a MIG slice with some bytes of memory, of a device
// with a driver's name whose bus gives the bandwidth that was read: a slice has the same
// share of the memory's bandwidth as of its bytes (NVIDIA Multi-Instance GPU User Guide,
// "Memory Slice"), and the bus may be that of the whole device. Of a product without a
// sheet it is what was read.
func SliceBandwidth(target, name string, bytes int64, read float64) float64 {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
	longest := 0
	most := read
	for _, s := range Specs() {
		own := strings.Fields(s.Name)
		missing := slices.ContainsFunc(own, func(w string) bool { return !slices.Contains(words, w) })
		// "A100 80GB" is more of a name than "A100".
		if s.Target == target && !missing && len(own) > longest && s.Memory > 0 {
			longest = len(own)
			most = s.Bandwidth * float64(bytes) / float64(s.Memory)
		}
	}
	return min(read, most)
}

// OwnShared is the static shared memory of a kernel, of which the driver reports some
// bytes: on sm_90 those that the system takes of each block may be among them, which the
// device reserves beside what is counted. No kernel of this program declares so many.
func (s Spec) OwnShared(reported int) int {
	if s.Warpgroups() && reported == s.ReservedShared {
		return 0
	}
	return reported
}

// Warpgroups reports whether the target has wgmma and bulk tensor copies, which
// alone reach the full rate of its tensor cores. All targets have mma.sync,
// ldmatrix and cp.async.
func (s Spec) Warpgroups() bool { return s.Target == "sm_90a" }

// DependentLaunches reports whether a kernel for the target may begin before the one
// before it has ended, and wait for it (griddepcontrol, PTX ISA: sm_90 and higher).
func (s Spec) DependentLaunches() bool { return strings.HasPrefix(s.Target, "sm_90") }

// PTXTarget is Target as package ptx has it.
func PTXTarget(s Spec) (t ptx.Target) {
	var arch string
	fmt.Sscanf(s.Target, "sm_%d%s", &t.SM, &arch)
	if arch == "a" {
		t.Arch = 'a'
	}
	return t
}

// architecture is what is the same for all devices of a compute capability.
// Sources: CUDA C++ Programming Guide, tables "Technical Specifications per
// Compute Capability" and "Throughput of Native Arithmetic Instructions", and the
// compute capability sections on shared memory. The tensor cores' rates are the
// peaks that NVIDIA's whitepapers and data sheets state without sparsity, over
// SMs, clock and two operations: A100 (312 Tflop/s of f16 on 108 SMs at 1410
// MHz), GA102 (A40: 149.7, 84, 1740), Ada (L4: 121, 58, 2040), H100 SXM5 (989.4,
// 132, 1830), V100 (125, 80, 1530), T4 (65, 40, 1590), B200 (2250, 148, 1850). Shared
// memory of sm_70 and sm_75 is the largest carveout.
type architecture struct {
	target                string
	major, minor          int
	blockShared, smShared int // KiB
	warps, blocks         int
	cluster               int
	rates                 Rates
}

var architectures = []architecture{
	{
		"sm_70", 7, 0, 96, 96, 64, 32, 0,
		Rates{F32: 64, F16: 512},
	},
	{
		"sm_75", 7, 5, 64, 64, 32, 16, 0,
		Rates{F32: 64, F16: 512, S8: 1024},
	},
	{
		"sm_80", 8, 0, 163, 164, 64, 32, 0,
		Rates{F32: 64, TF32: 512, F16: 1024, BF16: 1024, S8: 2048},
	},
	{
		"sm_86", 8, 6, 99, 100, 48, 16, 0,
		Rates{F32: 128, TF32: 256, F16: 512, BF16: 512, S8: 1024},
	},
	{
		"sm_89", 8, 9, 99, 100, 48, 24, 0,
		Rates{
			F32:  128,
			TF32: 256,
			F16:  512,
			BF16: 512,
			F8:   1024,
			S8:   1024,
		},
	},
	{
		"sm_90a", 9, 0, 227, 228, 64, 32, 8,
		Rates{
			F32:  128,
			TF32: 1024,
			F16:  2048,
			BF16: 2048,
			F8:   4096,
			S8:   4096,
		},
	},
	{
		"sm_100", 10, 0, 227, 228, 64, 32, 8,
		Rates{
			F32:  128,
			TF32: 2048,
			F16:  4096,
			BF16: 4096,
			F8:   8192,
			S8:   8192,
		},
	},
	{
		"sm_120", 12, 0, 99, 100, 48, 24, 8,
		Rates{
			F32:  128,
			TF32: 256,
			F16:  512,
			BF16: 512,
			F8:   1024,
			S8:   1024,
		},
	},
	// AMD's compute units, with wavefronts of 64 threads that count as two warps, and
	// local data share as shared memory (ROCm documentation, GPU specifications, MI250 and
	// MI300 Series microarchitecture: flop a clock and compute unit, halved). Up to eight
	// wavefronts a SIMD (LLVM, User Guide for AMDGPU Backend); as many blocks are a
	// convention.
	{
		"gfx90a", 0, 0, 64, 64, 64, 32, 0,
		Rates{F32: 64, F16: 512, BF16: 512, S8: 512},
	},
	{
		"gfx942", 0, 0, 64, 64, 64, 32, 0,
		Rates{
			F32:  128,
			TF32: 512,
			F16:  1024,
			BF16: 1024,
			F8:   2048,
			S8:   2048,
		},
	},
}

// WaveWarps is how many warps of 32 threads the threads are that run in lockstep: two on
// AMD's GPUs, whose plans count wavefronts of 64 as their warps.
func (s Spec) WaveWarps() int {
	if strings.HasPrefix(s.Target, "gfx") {
		return 2
	}
	return 1
}

// The generated code is for architectures from firstGenerated to lastGenerated; of the
// others there is what a price needs.
const firstGenerated, lastGenerated = 80, 90

// reservedShared is what the system takes of the shared memory of each block, from
// compute capability 8.0 on.
func (a architecture) reservedShared() int {
	if a.major < 8 {
		return 0
	}
	return 1 << 10
}

// Target names what code is generated for on a device of compute capability
// major.minor. PTX runs on all later devices but for that of targets that end
// in a, which runs on its own only; so later devices get the newest without.
func Target(major, minor int) (string, error) {
	for _, a := range slices.Backward(architectures) {
		if !a.generated() {
			continue
		}
		own := a.major == major && a.minor == minor
		if own ||
			!strings.HasSuffix(a.target, "a") &&
				10*a.major+a.minor <= 10*major+minor {
			return a.target, nil
		}
	}
	return "", fmt.Errorf("compute capability %d.%d: code is generated for 8.0 and up", major, minor)
}

// generated reports whether code is generated for the architecture.
func (a architecture) generated() bool {
	number := 10*a.major + a.minor
	return number >= firstGenerated && number <= lastGenerated
}

// spec is what all devices of the architecture have in common.
func (a architecture) spec() Spec {
	return Spec{
		Target: a.target, Registers: 64 << 10,
		BlockRegisters: 64 << 10, ThreadRegisters: 255, RegisterUnit: 256,
		BlockShared: a.blockShared << 10, SMShared: a.smShared << 10,
		ReservedShared: a.reservedShared(),
		BlockThreads:   1024, Warps: a.warps, Blocks: a.blocks,
		Cluster: a.cluster, Rates: a.rates,
	}
}

// ClusteredSMs is the SMs that clusters of so many blocks can all be on at once. A
// cluster is within a GPC, which has up to 18 SMs (NVIDIA H100 Tensor Core GPU
// Architecture whitepaper, GH100 block diagram), in pairs: of 18, clusters of 4 and
// 8 leave two.
func (s Spec) ClusteredSMs(blocks int) int {
	if blocks <= 2 {
		return s.SMs
	}
	return s.SMs * 16 / 18
}

// An Occupancy is how many blocks of a kernel an SM holds at once.
type Occupancy struct {
	Blocks int     // on an SM; 0: the kernel cannot run
	Warps  int     // on an SM
	Share  float64 // of the warps an SM can hold, 0 to 1
	Limit  string  // what allows no more: "registers", "shared memory", "warps", "blocks", "threads"
}

// Occupancy counts the blocks an SM holds of a kernel with this many registers
// a thread, bytes of shared memory and threads a block. Registers are given to
// whole warps in multiples of RegisterUnit, from the quarter of the SM the
// warp runs on; shared memory with the reserved part, in multiples of 128
// bytes. Formula: CUDA occupancy calculator (cuda_occupancy.h).
func (s Spec) Occupancy(registers, shared, threads int) Occupancy {
	if limit := s.exceededLimit(registers, shared, threads); limit != "" {
		return Occupancy{Limit: limit}
	}
	warps := (threads + WarpThreads - 1) / WarpThreads
	best := Occupancy{Blocks: s.Blocks, Limit: "blocks"}
	for _, l := range []Occupancy{
		{Blocks: s.Warps / warps, Limit: "warps"},
		{Blocks: s.warpsByRegisters(registers) / warps, Limit: "registers"},
		{Blocks: s.SMShared / roundUp(shared+s.ReservedShared, sharedUnit), Limit: "shared memory"},
	} {
		if l.Blocks < best.Blocks {
			best = l
		}
	}
	best.Warps = best.Blocks * warps
	best.Share = float64(best.Warps) / float64(s.Warps)
	return best
}

// RegistersPerThread is the most registers of each thread of a block that has an SM to
// itself: its warps share the registers of the SM's sub-partitions.
func (s Spec) RegistersPerThread(threads int) int {
	warps := (roundUp(threads, WarpThreads)/WarpThreads + SubPartitions - 1) / SubPartitions
	return min(
		s.BlockRegisters/SubPartitions/warps/WarpThreads/8*8, s.ThreadRegisters,
	)
}

// ProducerRegisters is the registers that a thread of a producer warpgroup keeps.
const ProducerRegisters = 40

// ConsumerRegisters is the registers of a thread of the given number of warpgroups
// after a producer of extra threads has given up its own; 0 where the producer is no
// whole warpgroup, or nothing is gained. All threads start with equal parts of the
// block's registers. Counts are multiples of 8 up to 256 (PTX ISA, setmaxnreg).
func (s Spec) ConsumerRegisters(groups, extra int) int {
	if extra != WarpgroupThreads {
		return 0
	}
	first := s.RegistersPerThread((groups + 1) * WarpgroupThreads)
	if first >= s.ThreadRegisters || first <= ProducerRegisters {
		return 0
	}
	return min(first+(first-ProducerRegisters)/groups, s.ThreadRegisters) /
		8 * 8
}

// ResidentBlocks is the number of blocks of a kernel that run at the same time, in
// whole clusters and at most one a tile (see Occupancy).
func (s Spec) ResidentBlocks(registers, shared, threads, cluster int, tiles int64) int64 {
	at := s.Occupancy(registers, shared, threads)
	return min(
		tiles,
		int64(max(cluster, at.Blocks*s.ClusteredSMs(cluster)/cluster*cluster)),
	)
}

// Clusters is an estimate of Driver.Clusters from the spec alone.
func (s Spec) Clusters(l Launch) int {
	r := l.Function.Resources()
	size := l.Cluster.Count()
	at := s.Occupancy(
		r.Registers, r.SharedBytes+l.SharedBytes,
		l.Block.Count(),
	)
	return at.Blocks * s.ClusteredSMs(size) / size
}

// exceededLimit names the limit that a single block of a kernel exceeds; "" where it
// can run.
func (s Spec) exceededLimit(registers, shared, threads int) string {
	switch {
	case threads < 1 || threads > s.BlockThreads:
		return "threads"
	case registers > s.ThreadRegisters:
		return "registers"
	case shared > s.BlockShared:
		return "shared memory"
	}
	return ""
}

// warpsByRegisters is the number of warps that the registers of an SM suffice for.
func (s Spec) warpsByRegisters(registers int) int {
	if registers <= 0 {
		return s.Warps
	}
	return s.Registers / SubPartitions /
		roundUp(registers*WarpThreads, s.RegisterUnit) * SubPartitions
}

// roundUp is the smallest multiple of unit ≥ n.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// Check returns why a launch cannot run on the device, before the driver is asked.
func (s Spec) Check(l Launch) error {
	if l.Function == nil {
		return fmt.Errorf("launch: no function")
	}
	r := l.Function.Resources()
	grid := l.Grid.Full()
	block := l.Block.Full()
	threads := block.Count()
	switch {
	case grid.X > 1<<31-1 ||
		grid.Y > 1<<16-1 ||
		grid.Z > 1<<16-1:
		return fmt.Errorf(
			"launch: a grid of %dx%dx%d blocks; there may be %dx%dx%d",
			grid.X, grid.Y, grid.Z,
			1<<31-1, 1<<16-1,
			1<<16-1,
		)
	case threads > s.BlockThreads || block.Z > 64:
		return fmt.Errorf(
			"launch: a block of %dx%dx%d threads; there may be %d, 64 of them along z",
			block.X, block.Y, block.Z, s.BlockThreads,
		)
	case r.MaxThreads > 0 && threads > r.MaxThreads:
		return fmt.Errorf("launch: a block of %d threads; the function allows %d", threads, r.MaxThreads)
	case r.Registers*roundUp(threads, WarpThreads) > s.BlockRegisters:
		return fmt.Errorf("launch: %d threads of %d registers need more than the %d a block may have", threads, r.Registers, s.BlockRegisters)
	case l.SharedBytes < 0 ||
		l.SharedBytes+r.SharedBytes > s.BlockShared:
		return fmt.Errorf(
			"launch: a block of %d bytes of shared memory; there may be %d",
			l.SharedBytes+r.SharedBytes, s.BlockShared,
		)
	}
	if l.Dependent && !s.DependentLaunches() {
		return fmt.Errorf("launch: %s has no programmatic dependent launches", s.Target)
	}
	return s.checkCluster(grid, l.Cluster)
}

// checkCluster checks the clusters of a launch.
func (s Spec) checkCluster(grid, cluster Dim3) error {
	if cluster == (Dim3{}) {
		return nil
	}
	c := cluster.Full()
	switch {
	case c.Count() > 1 && s.Cluster == 0:
		return fmt.Errorf("launch: %s has no clusters", s.Target)
	case c.Count() > max(1, s.Cluster):
		return fmt.Errorf("launch: a cluster of %d blocks; there may be %d", c.Count(), s.Cluster)
	case grid.X%c.X != 0 ||
		grid.Y%c.Y != 0 ||
		grid.Z%c.Z != 0:
		return fmt.Errorf(
			"launch: clusters of %dx%dx%d do not divide a grid of %dx%dx%d",
			c.X, c.Y, c.Z,
			grid.X, grid.Y, grid.Z,
		)
	}
	return nil
}
