package packtiming

import (
	"regexp"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Weights are the parameters of fusions that have the same values in every run of their
// modules: constants, parameters of an entry whose names match Named, and what only
// moves or converts these. Parameters of loop bodies are none of them.
type Weights struct {
	// Named matches names of parameters, or those of the framework; nil matches none.
	Named *regexp.Regexp
	of    map[[32]byte]map[int]bool
}

// Add adds the fusions of a module. A parameter of fusions that are alike is a weight if
// it is one wherever they are executed.
func (w *Weights) Add(m *hlo.Module) {
	if w.of == nil {
		w.of = map[[32]byte]map[int]bool{}
	}
	// Computations are in the order of their text, callees first, and no value of one
	// is read by another: what is known of an instruction is known of its readers'
	// operands.
	constant := map[*hlo.Instr]bool{}
	for _, c := range m.Computations {
		for _, i := range c.Instrs {
			constant[i] = w.isConstant(m, i, constant)
			if i.Op == hlo.OpFusion {
				w.met(i, constant)
			}
		}
	}
}

// met notes which operands of a fusion instruction are constant.
func (w *Weights) met(i *hlo.Instr, constant map[*hlo.Instr]bool) {
	print := i.Attrs.Calls.Fingerprint()
	before, known := w.of[print]
	now := map[int]bool{}
	for k, o := range i.Operands {
		if constant[o] && (!known || before[k]) {
			now[k] = true
		}
	}
	w.of[print] = now
}

// isConstant reports whether an instruction has the same value in every run; its operands
// are known.
func (w *Weights) isConstant(m *hlo.Module, i *hlo.Instr, constant map[*hlo.Instr]bool) bool {
	switch i.Op {
	case hlo.OpConstant:
		return true
	case hlo.OpParameter:
		// Parameters of other computations are what their callers pass.
		return slices.Contains(m.Entry.Params, i) && w.names(i)
	case hlo.OpReshape, hlo.OpTranspose,
		hlo.OpConvert, hlo.OpCopy,
		hlo.OpBitcast, hlo.OpSlice:
		// What only moves or converts a weight is packed instead of it: the caller
		// keeps that, not the weight.
		return constant[i.Operands[0]]
	}
	return false
}

// names reports whether Named matches the name of a parameter, or what the framework
// calls it.
func (w *Weights) names(i *hlo.Instr) bool {
	return w.Named != nil &&
		(w.Named.MatchString(i.Name) ||
			w.Named.MatchString(i.Source().Op))
}

// Of are the parameters of a fusion that are weights, in order.
func (w *Weights) Of(f *hlo.Computation) (all []int) {
	for k, is := range w.of[f.Fingerprint()] {
		if is {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}
