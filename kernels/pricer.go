package kernels

import (
	"math"

	"github.com/tilewright/tilewright/symtile"
)

// A PricedBackend is a backend that says what its plans cost before they run. It is
// an optional interface of a Backend. The plans of a backend without prices all cost
// the same, and are tried in the order in which Plans yields them.
type PricedBackend interface {
	Backend
	// Pricer prices the plans of a symbolic program on the backend's device. Nothing
	// is measured for it.
	Pricer(*symtile.Program) (Pricer, error)
}

// PricerOf is the pricer of a backend for a program; one for which all plans cost the
// same where the backend has no prices.
func PricerOf(b Backend, p *symtile.Program) (Pricer, error) {
	if priced, ok := b.(PricedBackend); ok {
		return priced.Pricer(p)
	}
	return SamePrice(p), nil
}

// SamePrice has all plans of a program tie.
func SamePrice(p *symtile.Program) Pricer { return samePrice{p} }

type samePrice struct{ p *symtile.Program }

func (samePrice) Terms() PriceTerms {
	return PriceTerms{Names: []string{"unpriced"}, Tie: 1}
}

func (x samePrice) Price(plan Plan, price *Price) error {
	price.Seconds[0] = 1
	price.Lanes = 1
	return x.p.Check(plan.Tiles)
}

// A Pricer prices the plans of one symbolic program on one device. It is for one
// goroutine at a time.
type Pricer interface {
	// Terms describes the parts of a price. They are the same for every program that
	// a backend prices on a device.
	Terms() PriceTerms
	// Price writes what a plan costs to price, whose Seconds the caller has made as
	// long as Terms().Names. It allocates nothing. A plan that is not legal, or has
	// knobs that the backend does not have, is an error.
	Price(plan Plan, price *Price) error
}

// PriceTerms describes the parts of a price and how they add up to seconds.
type PriceTerms struct {
	Names []string // of the terms, in the order of Price.Seconds
	// Overlapping is how many of the terms, the first ones, run at the same time:
	// the longest of them counts whole and each of the others by the share Hidden. The
	// other terms are added.
	Overlapping int
	Hidden      float64
	// Tie is the share by which the prices of plans differ that are as good as each
	// other; such plans stay in the order in which Backend.Plans yields them.
	Tie float64
}

// A Price is what a plan is expected to cost. Its zero value has no terms.
type Price struct {
	Seconds []float64 // of each term
	Lanes   float64   // lanes of the device that the plan uses
	Scratch float64   // bytes of fast memory that a tile program needs
}

// Total is the seconds of a price: the sum of its terms, of overlapping ones the
// longest and a share of the others. It is infinite where a term is.
func (p *Price) Total(terms *PriceTerms) float64 {
	longest := 0.0
	overlapped := 0.0
	added := 0.0
	n := min(terms.Overlapping, len(p.Seconds))
	for _, seconds := range p.Seconds[:n] {
		if seconds > longest { // max looks for NaN, too, which takes longer
			longest = seconds
		}
		overlapped += seconds
	}
	for _, seconds := range p.Seconds[n:] {
		added += seconds
	}
	if math.IsInf(longest, 1) {
		return longest
	}
	return longest + (overlapped-longest)*terms.Hidden + added
}
