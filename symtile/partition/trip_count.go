package partition

import (
	"regexp"
	"strconv"
	"sync"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An Execution is how often a computation runs.
type Execution struct {
	// Times is for one run of the entry: the product of the trip counts of the
	// loops around it, summed over its callers. A loop whose trip count is not
	// known counts once, and so does each branch of a conditional.
	Times float64
	// Unknown reports such a loop or conditional around one of the calls.
	Unknown bool
}

// Executions counts how often the computations run that the entry of m calls,
// directly or not, by calls, fusions and control flow. Modules with and without
// fusions are counted alike.
func Executions(
	m *hlo.Module,
) map[*hlo.Computation]Execution {
	all := map[*hlo.Computation]Execution{m.Entry: {Times: 1}}
	order := reachable(m.Entry)
	for k := len(order) - 1; k >= 0; k-- { // callers before callees
		for _, i := range order[k].Instrs {
			countCalls(i, all[order[k]], all)
		}
	}
	return all
}

// countCalls adds the runs of what an instruction calls, which itself runs as
// often as x says.
func countCalls(
	i *hlo.Instr, x Execution, all map[*hlo.Computation]Execution,
) {
	for k, callee := range i.Callees() {
		n := x
		switch i.Op {
		case hlo.OpWhile:
			trips, known := TripCount(i)
			if k == 0 {
				trips++ // the condition runs once more
			}
			n.Times *= float64(trips)
			n.Unknown = n.Unknown || !known
		case hlo.OpConditional:
			n.Unknown = true
		}
		old := all[callee]
		all[callee] = Execution{old.Times + n.Times, old.Unknown ||
			n.Unknown}
	}
}

// knownTripCount is what XLA notes in the backend_config of a while.
var knownTripCount = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"(\d+)"`) })

// TripCount is how often the body of a while runs, where that follows from the
// text: XLA has noted it, or a counter goes by a constant step from a constant to
// another. Otherwise it is 1 and not known.
func TripCount(
	while *hlo.Instr) (n int64, known bool,
) {
	for _, a := range while.Attrs.Other {
		found := knownTripCount().FindStringSubmatch(a.Value)
		if found == nil {
			continue
		}
		if n, err := strconv.ParseInt(found[1], 10, 64); err == nil {
			return n, true
		}
	}
	condition, body := while.Attrs.Branches[0], while.Attrs.Branches[1]
	test := condition.Root
	if test.Op != hlo.OpCompare {
		return 1, false
	}
	k, ok := stateElement(test.Operands[0])
	limit, isConstant := constantInteger(test.Operands[1])
	if !ok || !isConstant {
		return 1, false
	}
	first, hasFirst := constantInteger(elementOf(while.Operands[0], k))
	step, hasStep := counterStep(body, k)
	if !hasFirst || !hasStep {
		return 1, false
	}
	return trips(first, limit, step, test.Attrs.Direction)
}

// trips is how often a counter from first on by step is still in the relation to
// limit.
func trips(
	first, limit, step int64, direction string) (int64, bool,
) {
	distance := limit - first
	switch {
	case step > 0 &&
		direction == "LE", step < 0 &&
		direction == "GE":
		distance += step / max(step, -step)
	case step > 0 &&
		direction == "LT", step < 0 &&
		direction == "GT":
	case direction == "NE" &&
		step != 0 &&
		distance%step == 0 &&
		distance/step >= 0:
	default:
		return 1, false
	}
	if step < 0 {
		distance, step = -distance, -step
	}
	return max(0, (distance+step-1)/step), true
}

// stateElement is the number of the element of a loop's state that an instruction
// takes out of the parameter; 0 where the state is no tuple.
func stateElement(i *hlo.Instr) (int, bool) {
	switch {
	case i.Op == hlo.OpParameter &&
		i.Shape.DType != hlo.Tuple:
		return 0, true
	case i.Op == hlo.OpGetTupleElement &&
		i.Operands[0].Op == hlo.OpParameter:
		return i.Attrs.Index, true
	}
	return 0, false
}

// elementOf is element k of a tuple that is put together here, or the value
// itself where it is no tuple; nil where it is not known.
func elementOf(
	i *hlo.Instr, k int,
) *hlo.Instr {
	switch {
	case i.Shape.DType != hlo.Tuple:
		return i
	case i.Op == hlo.OpTuple:
		return i.Operands[k]
	}
	return nil
}

// counterStep is the constant that a body adds to element k of its state.
func counterStep(
	body *hlo.Computation, k int) (int64, bool,
) {
	next := elementOf(body.Root, k)
	if next == nil ||
		next.Op != hlo.OpAdd &&
			next.Op != hlo.OpSubtract {
		return 0, false
	}
	for n, o := range next.Operands {
		from, ok := stateElement(o)
		step, isConstant := constantInteger(next.Operands[1-n])
		switch {
		case !ok || from != k || !isConstant:
		case next.Op == hlo.OpAdd:
			return step, true
		case n == 0:
			return -step, true
		}
	}
	return 0, false
}

// constantInteger is the value of a constant scalar of integers. Copies keep it.
func constantInteger(i *hlo.Instr) (int64, bool) {
	for i != nil &&
		(i.Op == hlo.OpCopy ||
			i.Op == hlo.OpConvert &&
				i.Shape.DType.IsInteger()) {
		i = i.Operands[0]
	}
	if i == nil ||
		i.Op != hlo.OpConstant ||
		i.Literal == nil ||
		len(i.Literal.Ints) != 1 {
		return 0, false
	}
	return i.Literal.Ints[0], true
}
