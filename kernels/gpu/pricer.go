package gpu

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
)

// account is what the cost model goes by on a device: the terms of estimate.
func account(s device.Spec) *kernels.Account {
	return &kernels.Account{
		Terms:       accountTerms,
		Overlapping: overlappingTerms,
		Hidden:      hiddenShare,
		Tie:         tie,
		Of: func(p *symtile.Program) (func(kernels.Plan) []float64, error) {
			m, err := newEstimate(p, s)
			if err != nil {
				return nil, err
			}
			return func(plan kernels.Plan) []float64 {
				return m.account(plan)
			}, nil
		},
	}
}

// account are the terms of a plan, none for one with knobs that the device has
// not got: it is rejected when it is compiled.
func (m *estimate) account(plan kernels.Plan) []float64 {
	k, err := knobsOf(plan, m.sheet)
	if err != nil {
		return nil
	}
	programs := m.set(plan.Tiles)
	c := m.candidate(plan.Tiles, programs, k)
	return c.terms[:]
}
