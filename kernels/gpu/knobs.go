package gpu

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
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

// A knobRow is a knob with what it can be.
type knobRow struct {
	name   string
	def    int64
	lo, hi int64
	power  bool
	of     func(k *knobs) *int
}

var knobTable = []knobRow{
	{"cluster", 1, 1, 8, true, func(k *knobs) *int { return &k.cluster }},
	{"epilogue", 0, 0, 1, false, func(k *knobs) *int { return &k.epilogue }},
	{"group", 1, 1, 1 << 16, false, func(k *knobs) *int { return &k.group }},
	{"persistent", 0, 0, pingpong, false, func(k *knobs) *int { return &k.persistent }},
	{"producer", 1, 0, 4, true, func(k *knobs) *int { return &k.producer }},
	{"splitk", 1, 1, maxPieces, false, func(k *knobs) *int { return &k.splitk }},
	{"stages", 2, 1, maxStages, false, func(k *knobs) *int { return &k.stages }},
	{kernels.TF32, 0, 0, 1, false, func(k *knobs) *int { return &k.tf32 }},
	{"vector", maxVectorBytes, 1, maxVectorBytes, true, func(k *knobs) *int { return &k.vector }},
	{"warps", 4, 1, 32, true, func(k *knobs) *int { return &k.warps }},
}

// knobsOf reads the knobs of a plan.
func knobsOf(plan kernels.Plan, s device.Spec) (knobs, error) {
	var k knobs
	for _, row := range knobTable {
		v := plan.Knob(row.name, row.def)
		if v < row.lo || v > row.hi ||
			row.power && v&(v-1) != 0 {
			return k, fmt.Errorf(
				"%s=%d is not between %d and %d, or no power of two where it has to be",
				row.name, v, row.lo, row.hi,
			)
		}
		*row.of(&k) = int(v)
	}
	for _, x := range plan.Knobs {
		if !known(x.Name) {
			return k, fmt.Errorf("the GPU backend has no knob %q; it has %s", x.Name, knobNames())
		}
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

func known(name string) bool {
	for _, row := range knobTable {
		if row.name == name {
			return true
		}
	}
	return false
}

// knobNames lists the knobs, for people.
func knobNames() string {
	var names []string
	for _, row := range knobTable {
		names = append(names, row.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// maxPieces of a tile.
const maxPieces = 1 << 12

// pingpong is the value of the knob persistent of plans with two teams.
const pingpong = 2

// maxPartials is how many partial results a thread keeps.
const maxPartials = 128
