package cpu

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/kernels"
)

// A knob is a launch choice of this backend, a whole number of a plan. Absent
// means what the backend chooses by itself.
type knob struct {
	name        string
	least, most int64
	absent      string // what absence means
}

// knobs are all there are. Lowering reads them with lowering.knob.
var knobs = []knob{
	{"threads", 1, 1024, "one for each core"},
	{"stream", 0, 1, "1 for arrays of at least half the last cache: they are written past the caches"},
	{"group", 1, 1 << 20, "one row of tiles: the last dimension fastest"},
}

// checkKnobs says what is wrong with the knobs of a plan.
func checkKnobs(plan kernels.Plan) error {
	for _, k := range plan.Knobs {
		known := knobNamed(k.Name)
		if known == nil {
			return fmt.Errorf("the CPU backend has no knob %q; it has %s", k.Name, knobNames())
		}
		if k.Value < known.least || k.Value > known.most {
			return fmt.Errorf("%s=%d is not between %d and %d", k.Name, k.Value, known.least, known.most)
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
