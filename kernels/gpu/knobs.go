package gpu

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
)

// knobs are the launch choices of a plan, beside the tile sizes.
type knobs struct {
	warps      int // of a block
	stages     int // tiles of a loop's operands in shared memory at once
	epilogue   int // 1: products go through shared memory on their way out
	group      int // rows of tiles that blocks go through together; see raster
	producer   int // warps beside the others, one of which starts the tensor copies: 0, 1, 2 or 4, a warpgroup, which gives registers away
	cluster    int // blocks that bring operands they share to each other
	persistent int // 1: as many blocks as run at once, each of which goes from tile to tile; 2: and has two teams, which do so in turns
	splitk     int // blocks that share the iterations of a tile's loops; see split.go
	tf32       int // 1: products of f32 round their operands to tf32, on tensor cores
	vector     int // bytes of the widest access of a thread
}

// maxStages is the most slots that a ring of shared memory has.
const maxStages = 8

// launchFacts are what the launch choices worth a try with every tiling depend on.
type launchFacts struct {
	spec   device.Spec
	dots   bool // there are products
	tensor bool // tensor cores have one of them
}

// knobTable is all knobs of this backend. Those without offers are chosen by the
// tiling: see feasibleCandidates and estimate.scheduled.
var knobTable = kernels.KnobTable[launchFacts]{
	{Name: "cluster", Min: 1, Max: 8, PowerOfTwo: true, Default: 1, Absent: "1: blocks load their operands alone"},
	{Name: "epilogue", Min: 0, Max: 1, Absent: "0: products are stored as they are in registers", Offers: offerEpilogues},
	{Name: "group", Min: 1, Max: 1 << 16, Default: 1, Absent: "1: one row of tiles, the last dimension fastest"},
	{Name: "persistent", Min: 0, Max: pingpong, Absent: "0: a block for each tile"},
	{Name: "producer", Min: 0, Max: 4, PowerOfTwo: true, Default: 1, Absent: "1: a warp of its own starts tensor copies"},
	{Name: "splitk", Min: 1, Max: maxPieces, Default: 1, Absent: "1: a block does all iterations of its tile's loops"},
	{Name: "stages", Min: 1, Max: maxStages, Default: 2, Absent: "2 tiles of a loop's operands in shared memory", Offers: offerStages},
	{Name: kernels.TF32, Min: 0, Max: 1, Absent: "0: products of f32 are exact"},
	{Name: "vector", Min: 1, Max: maxVectorBytes, PowerOfTwo: true, Default: maxVectorBytes, Absent: "16 bytes an access"},
	{Name: "warps", Min: 1, Max: 32, PowerOfTwo: true, Default: 4, Absent: "4 warps of a block", Offers: offerWarps},
}

// field is where the value of a knob is.
func (k *knobs) field(name string) *int {
	switch name {
	case "cluster":
		return &k.cluster
	case "epilogue":
		return &k.epilogue
	case "group":
		return &k.group
	case "persistent":
		return &k.persistent
	case "producer":
		return &k.producer
	case "splitk":
		return &k.splitk
	case "stages":
		return &k.stages
	case kernels.TF32:
		return &k.tf32
	case "vector":
		return &k.vector
	}
	return &k.warps
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

// offerEpilogues offers both for the products of tensor cores.
func offerEpilogues(f launchFacts) []int64 {
	if f.tensor {
		return []int64{0, 1}
	}
	return []int64{0}
}

// knobsOf reads the knobs of a plan.
func knobsOf(plan kernels.Plan, s device.Spec) (knobs, error) {
	var k knobs
	if err := knobTable.Check("GPU", plan); err != nil {
		return k, err
	}
	for i := range knobTable {
		row := &knobTable[i]
		*k.field(row.Name) = int(plan.Knob(row.Name, row.Default))
	}
	if k.cluster > max(1, s.Cluster) {
		return k, fmt.Errorf(
			"cluster=%d is more than the %d blocks of a cluster of %s",
			k.cluster, max(1, s.Cluster), s.Target,
		)
	}
	if k.warps*device.WarpThreads > s.BlockThreads {
		return k, fmt.Errorf("warps=%d is more than the %d threads of a block", k.warps, s.BlockThreads)
	}
	return k, nil
}

// plan is the plan of a tiling with these knobs; those at their defaults are left out.
func (k knobs) plan(t symtile.Tiling) kernels.Plan {
	p := kernels.Plan{Tiles: t}
	for _, row := range knobTable {
		if v := int64(*k.field(row.Name)); v != row.Default {
			p = p.With(row.Name, v)
		}
	}
	return p
}

// maxPieces of a tile.
const maxPieces = 1 << 12

// pingpong is the value of the knob persistent of plans with two teams.
const pingpong = 2

// maxPartials is how many partial results a thread keeps.
const maxPartials = 128
