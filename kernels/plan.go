package kernels

import "github.com/tilewright/tilewright/symtile"

// A Plan is one way to run a program: tile sizes and launch choices. Its text
// form is "64,32,16 threads=2": sizes, then knobs sorted by name.
type Plan struct {
	Tiles symtile.Tiling
	Knobs []Knob // sorted by name, no duplicates, only those that differ from the backend's default of absent
}

// A Knob is a launch choice with a small integer value, e.g. threads=2.
type Knob struct {
	Name  string
	Value int64
}

func (p Plan) String() string          { panic("kernels room") }
func ParsePlan(s string) (Plan, error) { panic("kernels room") }

// Knob returns the value of the named knob, or def when absent.
func (p Plan) Knob(name string, def int64) int64 { panic("kernels room") }

// With returns p with the knob set.
func (p Plan) With(name string, v int64) Plan { panic("kernels room") }
