package gpu

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
)

// Pricer prices the plans of a program by the terms of the estimate.
func (b *Backend) Pricer(p *symtile.Program) (kernels.Pricer, error) {
	return NewPricer(p, b.session.Spec())
}

// NewPricer prices the plans of a program for a device that need not be present.
func NewPricer(p *symtile.Program, s device.Spec) (kernels.Pricer, error) {
	m, err := newEstimate(p, s)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Terms implements kernels.Pricer.
func (m *estimate) Terms() kernels.PriceTerms {
	return kernels.PriceTerms{
		Names:       priceTerms,
		Overlapping: overlappingTerms,
		Hidden:      hiddenShare,
		Tie:         tie,
	}
}

// Price implements kernels.Pricer.
func (m *estimate) Price(plan kernels.Plan, price *kernels.Price) error {
	if err := m.p.Check(plan.Tiles); err != nil {
		return err
	}
	k, err := knobsOf(plan, m.spec)
	if err != nil {
		return err
	}
	programs := m.set(plan.Tiles)
	c := m.candidate(plan.Tiles, programs, k)
	copy(price.Seconds, c.terms[:])
	price.Lanes = min(
		programs, float64(max(1, m.spec.SMs)),
	)
	price.Scratch = c.shared
	return nil
}
