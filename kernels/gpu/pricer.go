package gpu

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
)

// The price of a plan on a GPU is the estimate of its kernel (estimate.go): the seconds
// that memory, the arithmetic units, the tensor cores, shared memory and the L2 cache
// take for all blocks, of which the longest counts, and the time that blocks wait. An
// estimate is a kernels.Pricer.

// Pricer prices the plans of a program on the device of the session.
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
		Names:       priceTerms[:],
		Overlapping: overlappingTerms,
		Hidden:      hiddenShare,
		Tie:         tie,
	}
}

// Price implements kernels.Pricer. The lanes of a plan are the SMs that have a block, and
// its scratch is the shared memory of a block. A plan whose knobs the device does not have
// is an error; one that needs more registers or shared memory than there are takes
// infinitely long.
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
