package cpu

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A knob is a launch choice of this backend, a whole number of a plan. Absent
// means what the backend chooses by itself.
type knob struct {
	name     string
	min, max int64
	absent   string              // what absence means
	offers   func(facts) []int64 // values worth a try with a tiling, besides absence; nil for none
}

// knobs are all there are. Lowering reads them with lowering.knob.
//
// rows and unroll are not offered, since no value but the default won by more than
// 2 % of any fusion of BenchmarkLandscape in its default tiling, one thread, best of
// 40 to 60 in turn (Zen 3). rows=0: softmax takes 391 µs rather than 198, layernorm
// 246 rather than 90, a chain 330 rather than 280, in bf16 561 rather than 308, the
// others the same or up to 5 % longer. unroll=1: the chain 406 rather than 362, in
// bf16 301 rather than 279, layernorm 127 rather than 124, softmax 196 rather than
// 199; 2, 3 and 4 the same within 1 %, but 4 to 7 % longer for the chain in s8. (A
// transpose took 793 rather than 840 with 2, which it does not read, and 793 without
// the next time.)
var knobs = []knob{
	{"threads", 1, 1024, "one for each core", offerThreads},
	{"group", 1, 1 << 20, "one row of tiles: the last dimension fastest", offerGroups},
	{"splitk", 1, 64, "1: a tile program does whole contractions and reductions", offerSplits},
	{"pack", 0, 1, "operands of dots are read where they are, or packed in scratch, as their shapes suggest", offerPacks},
	{"online", 0, 1, "1: a maximum of rows and what is summed with it, or a mean and a variance, take one loop over their tiles, not one each", nil},
	{"rows", 0, 1, "1: where machine code can, all of a row before the next, not all of a tile instruction by instruction", nil},
	{"stream", 0, 1, "1 for arrays of at least half the last cache: they are written past the caches", offerStreams},
	{"prefetch", 0, 64, "rows fetched ahead: 2, or 0 where no rows are written", offerPrefetch},
	{"strip", 64, 4096, "512 elements computed at a time where a row is not one machine function", offerStrips},
	{"unroll", 1, 4, "vectors computed in turn: 4, 2 where a row takes three passes, or as many as registers hold", nil},
}

// facts are what the values of knobs worth a try depend on.
type facts struct {
	candidate
	p      *symtile.Program
	grid   []int64 // tiles along each parallel dimension
	dot    bool    // there is one
	reads  float64 // bytes of the parameters
	writes float64 // bytes of the outputs
	spec   deviceSpec
	lanes  int64 // workers of a plan without threads=
}

// checkKnobs says what is wrong with the knobs of a plan.
func checkKnobs(plan kernels.Plan) error {
	for _, k := range plan.Knobs {
		known := knobNamed(k.Name)
		if known == nil {
			return fmt.Errorf("the CPU backend has no knob %q; it has %s", k.Name, knobNames())
		}
		if k.Value < known.min || k.Value > known.max {
			return fmt.Errorf(
				"%s=%d is not between %d and %d", k.Name, k.Value, known.min, known.max,
			)
		}
	}
	return nil
}

func knobNamed(name string) *knob {
	for i := range knobs {
		if knobs[i].name == name {
			return &knobs[i]
		}
	}
	return nil
}

func knobNames() string {
	var names []string
	for _, k := range knobs {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}
