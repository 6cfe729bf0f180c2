package gpu

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
)

// The knobs of this backend are one table, which plans are read, checked, offered and
// printed by.

// knobs are the launch choices of a plan, in addition to the tile sizes.
type knobs struct {
	// Warps of a tile program.
	warps int
	// Slots of the ring of a loop's operands in shared memory.
	stages int
	// 1: products are stored through shared memory, so that stores are coalesced; 2: those
	// of warpgroups by tensor copies (see boxStore).
	epilogue int
	// Rows of tiles that are traversed together (see raster).
	group int
	// Additional warps, one thread of which starts the tensor copies: 0, 1, 2 or 4; 4
	// are a warpgroup, which gives its registers to the others.
	producer int
	// Blocks that load the operands that they share for each other.
	cluster int
	// 1: what is read once, and results that are larger than the L2 cache, are the first
	// to leave it.
	l2 int
	// 1: loops that are apart only because one needs the maximum of another are one
	// (symtile.Program.Online); 2: by warpgroups.
	online int
	// 1: the second kernel of a plan with pieces begins while the first one runs.
	pdl int
	// 1: as many blocks as run at the same time, each of which loops over tiles; 2:
	// with two math groups in turns.
	persistent int
	// 1: sums of 8-bit floats by warpgroups are added to sums of f32 after each tile of k.
	promote int
	// 1: exponentials are within 3 units of f32 also where results have 16 bits.
	precise int
	// Blocks that share the iterations of a tile's loops (see phase).
	splitk int
	// Blocks that share the iterations of the tiles that are left after whole rounds of
	// them (see stream).
	streamk int
	// 1: products of f32 round their operands to tf32, on tensor cores; cutOff.
	tf32 int
	// Bytes of the widest access of a thread.
	vector int
}

// maxVectorBytes is the width of the widest memory instruction.
const maxVectorBytes = 16

// maxStages is the most slots that a ring of shared memory has.
const maxStages = 8

// maxOfferedStages bounds the slots of rings of tilings that are not among the
// cheapest; estimate.deeperRings tries more for those that are.
const maxOfferedStages = 4

// launchFacts are what the offers of the knob table depend on.
type launchFacts struct {
	spec device.Spec
	// Dots is set where there are products, and tensor where tensor cores can compute
	// one of them.
	dots   bool
	tensor bool // tensor cores have one of them
}

// cutOff is the value of the knob tf32 with which products by warps leave the lower bits of
// operands to tensor cores, which ignore them. Tensor copies of wgmma round for nothing.
const cutOff = 2

// knobTable has all knobs of this backend. Knobs without offers are chosen by the
// tiling (see feasibleCandidates and estimate.scheduled).
var knobTable = kernels.KnobTable[launchFacts]{
	{Name: "cluster", Min: 1, Max: 8, PowerOfTwo: true, Default: 1, Priced: true, Absent: "1: blocks load their operands alone"},
	{Name: "epilogue", Min: 0, Max: byBoxes, Priced: true, Absent: "0: products are stored as they are in registers", Offers: offerEpilogues},
	{Name: "group", Min: 1, Max: 1 << 16, Default: 1, Priced: true, Absent: "1: one row of tiles, the last dimension fastest"},
	{Name: "l2", Min: 0, Max: 1, Absent: "0: the L2 cache treats all arrays alike"},
	{Name: "online", Min: 0, Max: byWarpgroups, Priced: true, Absent: "0: a maximum of rows and what is summed with it take a loop each"},
	{Name: "pdl", Min: 0, Max: 1, Priced: true, Absent: "0: the second kernel of a plan begins when the first has ended"},
	{Name: "persistent", Min: 0, Max: pingpong, Priced: true, Absent: "0: a block for each tile"},
	{Name: "precise", Min: 0, Max: 1, Absent: "0: exponentials are within 2^-17 of themselves where results have 16 bits"},
	{Name: "producer", Min: 0, Max: 4, PowerOfTwo: true, Default: 1, Priced: true, Absent: "1: a warp of its own starts tensor copies"},
	{Name: "promote", Min: 0, Max: 1, Priced: true, Absent: "0: products of 8-bit floats by warpgroups are summed in 14 bits over all of k"},
	{Name: "splitk", Min: 1, Max: maxPieces, Default: 1, Priced: true, Absent: "1: a block does all iterations of its tile's loops"},
	{Name: "stages", Min: 1, Max: maxStages, Default: 2, Priced: true, Absent: "2 tiles of a loop's operands in shared memory", Offers: offerStages},
	{Name: "streamk", Min: 0, Max: maxPieces, Priced: true, Absent: "0: no block has a part of a tile that another one ends"},
	{Name: kernels.TF32, Min: 0, Max: cutOff, Priced: true, Absent: "0: products of f32 are exact"},
	{Name: "vector", Min: 1, Max: maxVectorBytes, PowerOfTwo: true, Default: maxVectorBytes, Priced: true, Absent: "16 bytes an access"},
	{Name: "warps", Min: 1, Max: 32, PowerOfTwo: true, Default: 4, Priced: true, Absent: "4 warps of a block", Offers: offerWarps},
}

// CheckKnobs reports which knob of a plan this backend does not have, or which value is
// out of the range that it has on any device.
func CheckKnobs(plan kernels.Plan) error { return knobTable.Check("GPU", plan) }

// field is the field of a knob.
func (k *knobs) field(name string) *int {
	switch name {
	case "cluster":
		return &k.cluster
	case "epilogue":
		return &k.epilogue
	case "group":
		return &k.group
	case "l2":
		return &k.l2
	case "online":
		return &k.online
	case "pdl":
		return &k.pdl
	case "persistent":
		return &k.persistent
	case "precise":
		return &k.precise
	case "producer":
		return &k.producer
	case "promote":
		return &k.promote
	case "splitk":
		return &k.splitk
	case "stages":
		return &k.stages
	case "streamk":
		return &k.streamk
	case kernels.TF32:
		return &k.tf32
	case "vector":
		return &k.vector
	case "warps":
		return &k.warps
	}
	panic("knob " + name + " has no field")
}

// maxOfferedWarps is the warps of the largest blocks that are offered.
const maxOfferedWarps = 16

// offerWarps offers powers of two.
func offerWarps(f launchFacts) (all []int64) {
	for n := 1; n <= min(maxOfferedWarps, f.spec.BlockThreads/device.WarpThreads); n *= 2 {
		all = append(all, int64(n))
	}
	return all
}

// offerStages offers rings for the operands of products.
func offerStages(f launchFacts) []int64 {
	switch {
	case f.tensor:
		return []int64{1, 2, 3, maxOfferedStages}
	case f.dots:
		return []int64{1, 2, 3}
	}
	return []int64{2}
}

// offerEpilogues offers both values for products on tensor cores.
func offerEpilogues(f launchFacts) []int64 {
	if f.tensor {
		return []int64{0, 1}
	}
	return []int64{0}
}

// defaultKnobs are the knobs of a plan without any.
var defaultKnobs = func() (k knobs) {
	for _, row := range knobTable {
		*k.field(row.Name) = int(row.Default)
	}
	return k
}()

// knobsOf reads the knobs of a plan and checks them against a device.
func knobsOf(plan kernels.Plan, s device.Spec) (knobs, error) {
	k := defaultKnobs
	if err := CheckKnobs(plan); err != nil {
		return k, err
	}
	for _, knob := range plan.Knobs {
		*k.field(knob.Name) = int(knob.Value)
	}
	if k.cluster > max(1, s.Cluster) {
		return k, fmt.Errorf(
			"cluster=%d is more than the %d blocks of a cluster of %s",
			k.cluster, max(1, s.Cluster), s.Target,
		)
	}
	wave := s.WaveWarps()
	if k.warps*wave*device.WarpThreads > s.BlockThreads {
		return k, fmt.Errorf("warps=%d is more than the %d threads of a block", k.warps, s.BlockThreads)
	}
	k.warps *= wave
	return k, nil
}

// plan is a tiling with these knobs, without those at their defaults.
func (k knobs) plan(t symtile.Tiling) kernels.Plan {
	p := kernels.Plan{Tiles: t}
	for _, row := range knobTable {
		if v := int64(*k.field(row.Name)); v != row.Default {
			p = p.With(row.Name, v)
		}
	}
	return p
}

// baseRegisters is the registers of a thread for addresses and fragments, without its
// results.
const baseRegisters = 40

// maxPieces bounds the pieces that blocks share a tile in (knob splitk).
const maxPieces = 1 << 12

// byBoxes is the value of the knob epilogue with tensor copies.
const byBoxes = 2

// byWarpgroups is the value of the knob online for warpgroups.
const byWarpgroups = 2

// pingpong is the value of the knob persistent with two math groups.
const pingpong = 2

// maxPartials bounds the partial results that a thread holds in registers.
const maxPartials = 128
