package cost

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
)

// A Term is one part of a prediction, in seconds.
type Term struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Features are the price of a plan as it is stored with measurements. A model
// is fitted to them and predicts from them, and needs nothing else.
type Features struct {
	// The terms as the backend prices them.
	Terms []Term `json:"terms"`
	// The number of terms, the first ones, that run at the same time: the
	// longest counts as a whole, the others by the share Hidden.
	Overlapping int     `json:"overlapping"`
	Hidden      float64 `json:"hidden"` // … and of the others this share
	// Lanes of the device that the plan uses.
	Lanes float64 `json:"lanes"`
	// Bytes of fast memory that a tile program needs.
	Scratch float64 `json:"scratch"`
	// Plan has the elements of a tile of all dimensions, the sizes along the last ones, and
	// the knobs; empty in what was stored before it was kept.
	Plan []Number `json:"plan,omitempty"`
}

// A Number is a number of a plan, by its name.
type Number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// tileNumber is the name of the elements of a tile. No knob has it.
const tileNumber = "tile elements"

// sideNumbers are the names of the sizes of a tile along the last dimension, the one before
// and so on: of products k, n, m and the batches. No knob has them.
var sideNumbers = [...]string{"tile of the last", "tile of the 2nd last", "tile of the 3rd last", "tile of the 4th last"}

// numbersOf are the numbers of a plan.
func numbersOf(plan kernels.Plan) []Number {
	all := []Number{{tileNumber, tileElements(plan)}}
	for k, name := range sideNumbers {
		if size := tileSide(plan, k); size > 0 {
			all = append(all, Number{name, size})
		}
	}
	for _, k := range plan.Knobs {
		all = append(all, Number{k.Name, float64(k.Value)})
	}
	return all
}

// tileSide is the size of a tile along the dimension that k others follow; 0 where there is
// none.
func tileSide(plan kernels.Plan, k int) float64 {
	if k >= len(plan.Tiles) {
		return 0
	}
	return float64(plan.Tiles[len(plan.Tiles)-1-k])
}

// tileElements is the product of the tile sizes of a plan.
func tileElements(plan kernels.Plan) float64 {
	n := 1.0
	for _, size := range plan.Tiles {
		n *= float64(size)
	}
	return n
}

// FeaturesOf prices a plan.
func FeaturesOf(pricer kernels.Pricer, plan kernels.Plan) (Features, error) {
	terms := pricer.Terms()
	price := kernels.Price{
		Seconds: make([]float64, len(terms.Names)),
	}
	if err := pricer.Price(plan, &price); err != nil {
		return Features{}, err
	}
	return featuresOf(plan, &price, &terms), nil
}

// featuresOf combines a price with the names of its terms and the numbers of its plan.
func featuresOf(plan kernels.Plan, price *kernels.Price, terms *kernels.PriceTerms) Features {
	f := Features{
		Terms:       make([]Term, len(terms.Names)),
		Overlapping: terms.Overlapping,
		Hidden:      terms.Hidden,
		Lanes:       price.Lanes,
		Scratch:     price.Scratch,
		Plan:        numbersOf(plan),
	}
	for k, name := range terms.Names {
		f.Terms[k] = Term{name, price.Seconds[k]}
	}
	return f
}

// split is the inverse of featuresOf. Stored numbers that no pricer gives are
// corrected.
func (f *Features) split() (kernels.Price, kernels.PriceTerms) {
	price := kernels.Price{Lanes: f.Lanes, Scratch: f.Scratch}
	terms := kernels.PriceTerms{
		Overlapping: min(max(0, f.Overlapping), len(f.Terms)),
		Hidden:      f.Hidden,
	}
	for _, t := range f.Terms {
		price.Seconds = append(price.Seconds, t.Seconds)
		terms.Names = append(terms.Names, t.Name)
	}
	return price, terms
}

// sameTerms reports whether two prices have the same terms.
func (f *Features) sameTerms(g *Features) bool {
	return f.Overlapping == g.Overlapping &&
		slices.EqualFunc(f.Terms, g.Terms, func(a, b Term) bool {
			return a.Name == b.Name
		})
}

// plausible reports whether the features are numbers that a fit can use.
func (f *Features) plausible() bool {
	total := 0.0
	for _, t := range f.Terms {
		if !(t.Seconds >= 0) || math.IsInf(t.Seconds, 0) {
			return false
		}
		total += t.Seconds
	}
	return total > 0 && f.Lanes >= 1 && f.Scratch >= 0
}

// A Model predicts seconds from the terms of a price:
//
//	(Σ weight·factor·term) · exp(residual(price, plan))
//
// Overlapping terms have the weight of kernels.PriceTerms, others 1; the factors and the
// residual, which has a variance, are fitted. The zero Model is the prior, the price as it
// is.
type Model struct {
	// Fitted factors by the name of the term; 1 for others.
	factors map[string]float64
	// nil without one.
	residual *residual
	// Number of samples of the fit.
	samples int
}

// Fitted is the number of samples that the model was fitted to; 0 for the
// prior.
func (m *Model) Fitted() int { return m.samples }

// Predict returns the predicted seconds and the terms that they consist of; the
// terms add up.
func (m *Model) Predict(f Features) (float64, []Term) {
	price, set := f.split()
	p := m.predictor(&set)
	p.weigh(&price)
	terms := make([]Term, len(f.Terms), len(f.Terms)+1)
	total := 0.0
	for k, name := range set.Names {
		terms[k] = Term{
			name, price.Seconds[k] * p.weights[k],
		}
		total += terms[k].Seconds
	}
	if p.residual != nil {
		p.residual.storedNumbers(f.Plan, p.at)
		left := p.residual.expected(&price, p.at)
		seconds := total * math.Exp(left)
		terms = append(terms, Term{"fitted correction", seconds - total})
		total = seconds
	}
	return total, terms
}

// Doubt is the standard deviation of the logarithm of the time that Predict gives, within
// a fusion: how far the correction may be off. It is 0 for a model without a correction for
// these terms, which knows no deviation.
func (m *Model) Doubt(f Features) float64 {
	price, set := f.split()
	p := m.predictor(&set)
	if p.residual == nil {
		return 0
	}
	p.residual.storedNumbers(f.Plan, p.at)
	p.residual.expected(&price, p.at)
	return math.Sqrt(p.residual.variance(p.at))
}

// A predictor is a model prepared for prices with the same terms, so that a
// prediction allocates nothing.
type predictor struct {
	terms   *kernels.PriceTerms
	prior   bool
	factors []float64
	// Weights of the price that was predicted last, and where the residual has it.
	weights  []float64
	at       []float64
	residual *residual
}

// predictor matches the factors with the terms by name. A residual of other
// terms is left out.
func (m *Model) predictor(terms *kernels.PriceTerms) *predictor {
	p := &predictor{
		terms:   terms,
		prior:   m.samples == 0,
		factors: ones(len(terms.Names)),
		weights: make([]float64, len(terms.Names)),
	}
	for k, name := range terms.Names {
		if x, known := m.factors[name]; known {
			p.factors[k] = x
		}
	}
	if m.residual != nil &&
		slices.Equal(m.residual.terms, terms.Names) {
		p.residual = m.residual
		p.at = make([]float64, len(m.residual.mean))
	}
	return p
}

// total is the predicted time of a plan with a price.
func (p *predictor) total(plan kernels.Plan, price *kernels.Price) float64 {
	if p.prior {
		return price.Total(p.terms)
	}
	p.weigh(price)
	total := 0.0
	for k, t := range price.Seconds {
		total += t * p.weights[k]
	}
	if p.residual != nil && !math.IsInf(total, 1) {
		p.residual.planNumbers(plan, p.at)
		left := p.residual.expected(price, p.at)
		total *= math.Exp(left)
	}
	return total
}

// weigh computes the weight of each term of a price.
func (p *predictor) weigh(price *kernels.Price) {
	weigh(
		p.weights, price.Seconds, p.factors,
		p.terms.Overlapping, p.terms.Hidden,
	)
}

// weigh writes by how much each term counts: its factor, and the share hidden
// of that if a longer one of the overlapping terms hides it.
func weigh(weights, t, factors []float64, overlapping int, hidden float64) {
	longest := 0
	for k := range overlapping {
		if t[k]*factors[k] > t[longest]*factors[longest] {
			longest = k
		}
	}
	for k := range t {
		weights[k] = factors[k]
		if k < overlapping && k != longest {
			weights[k] *= hidden
		}
	}
}
