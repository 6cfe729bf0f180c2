package kernels

import (
	"fmt"
	"strings"
)

// A KnobRow describes one knob of a backend. F is what the backend's offers depend on.
type KnobRow[F any] struct {
	Name       string
	Min, Max   int64
	PowerOfTwo bool   // only powers of two between Min and Max are values
	Default    int64  // the value that is used where the knob is absent; 0 where Absent says that it depends
	Absent     string // what absence means, for people
	// Priced is set where terms of the backend's price describe the knob's effect.
	Priced bool
	// Offers lists the values that are worth a try besides absence; nil for none.
	Offers func(F) []int64
}

// A KnobTable is all knobs of a backend.
type KnobTable[F any] []KnobRow[F]

// Find returns the row of a name; nil without.
func (t KnobTable[F]) Find(name string) *KnobRow[F] {
	for k := range t {
		if t[k].Name == name {
			return &t[k]
		}
	}
	return nil
}

// Check reports which knob of a plan the backend does not have, or which value is out
// of its range. Backend names the backend in the error.
func (t KnobTable[F]) Check(backend string, plan Plan) error {
	for _, k := range plan.Knobs {
		row := t.Find(k.Name)
		switch {
		case row == nil:
			return fmt.Errorf(
				"the %s backend has no knob %q; it has %s", backend, k.Name, t.names(),
			)
		case k.Value < row.Min || k.Value > row.Max:
			return fmt.Errorf(
				"%s=%d is not between %d and %d", k.Name, k.Value, row.Min, row.Max,
			)
		case row.PowerOfTwo && k.Value&(k.Value-1) != 0:
			return fmt.Errorf("%s=%d is not a power of two", k.Name, k.Value)
		}
	}
	return nil
}

// names lists the knobs for people.
func (t KnobTable[F]) names() string {
	var names []string
	for _, row := range t {
		names = append(names, row.Name)
	}
	return strings.Join(names, ", ")
}
