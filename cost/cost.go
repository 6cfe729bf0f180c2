// Package cost says what a plan should cost: features, a roofline prior, a
// fitted correction, ranking and judging.
package cost

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A Term is one part of a prediction, in seconds.
type Term struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// A Ranked plan with its prediction and the terms that make it.
type Ranked struct {
	Plan     kernels.Plan
	Features Features
	Seconds  float64
	Terms    []Term
}

// A Model predicts seconds: a roofline of the device times the exponential of
// a fitted linear correction of log features.
type Model struct {
	device kernels.Device
	fit    *correction // nil: the prior alone
}

// Overheads of the prior, seconds. They are of the order Go code on a current
// core shows; the fitted correction learns the rest.
const (
	programOverhead = 150e-9 // locating a tile program and its edges
	stepOverhead    = 40e-9  // starting a tile op
	launchOverhead  = 5e-6   // waking and joining the lanes
)

// Roofline is the prior: no correction.
func Roofline(d kernels.Device) *Model { return &Model{device: d} }

// Predict returns seconds and the terms they are made of; the terms add up.
//
// The lanes a plan uses share its work in waves. Arithmetic and each level's
// traffic overlap, so the largest of them counts whole and the others a fifth:
// out-of-order cores hide most, not all, of the rest.
func (m *Model) Predict(f Features) (float64, []Term) {
	share := f.Lanes / float64(max(1, m.device.Lanes)) / math.Max(f.Waves, 1)
	parts := []Term{{"arithmetic", f.PaddedFLOPs / (m.device.FLOPS * share)}}
	for k, l := range m.device.Levels {
		if k < len(f.Traffic) {
			parts = append(parts, Term{l.Name, f.Traffic[k] / (l.Bandwidth * share) * m.runPenalty(f, k)})
		}
	}
	largest := 0
	for k, p := range parts {
		if p.Seconds > parts[largest].Seconds {
			largest = k
		}
	}
	for k := range parts {
		if k != largest {
			parts[k].Seconds /= 5
		}
	}
	waves := f.Waves / f.Lanes
	parts = append(parts,
		Term{"tile programs", f.Tiles * programOverhead * waves},
		Term{"tile ops", f.Steps * stepOverhead * waves},
		Term{"launch", launchOverhead})
	total := 0.0
	for _, p := range parts {
		total += p.Seconds
	}
	if m.fit != nil {
		factor := math.Exp(m.fit.residual(f))
		parts = append(parts, Term{"fitted correction", total * (factor - 1)})
		total *= factor
	}
	return total, parts
}

// line is what memory moves at a time, bytes.
const line = 64

// runPenalty is how much of every line moved from level k is thrown away when
// runs are shorter than a line. The innermost level is scratch, which is dense.
func (m *Model) runPenalty(f Features, k int) float64 {
	if k == 0 {
		return 1
	}
	return math.Max(1, line/math.Max(f.InnerRun, 4)/2)
}

// LowerBound is the least time physically plausible on the device, seconds: a
// quarter of the useful arithmetic at the calibrated peak of all lanes (other
// code can be that much better than what calibrates). A kernel below it is wrong.
func (m *Model) LowerBound(f Features) float64 {
	return f.FLOPs / m.device.FLOPS / 16
}

// Rank orders plans of the symbolic program p, cheapest first; ties keep the
// order of the plans' text. Plans that are not legal are an error.
func (m *Model) Rank(p *symtile.Program, plans []kernels.Plan) ([]Ranked, error) {
	ranked := make([]Ranked, len(plans))
	errs := make([]error, len(plans))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(plans)); n = next.Add(1) - 1 {
				ranked[n], errs[n] = m.rank(p, plans[n])
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(ranked, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), a.Plan.Compare(b.Plan))
	})
	return ranked, nil
}

func (m *Model) rank(p *symtile.Program, plan kernels.Plan) (Ranked, error) {
	q, err := p.At(plan.Tiles)
	if err != nil {
		return Ranked{}, fmt.Errorf("plan %s: %w", plan, err)
	}
	f := Measure(q, plan, m.device)
	seconds, terms := m.Predict(f)
	return Ranked{Plan: plan, Features: f, Seconds: seconds, Terms: terms}, nil
}
