package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
)

// A Model predicts seconds: terms of a roofline of the device, each times a
// calibrated factor, and the exponential of a linear correction of log features.
type Model struct {
	device  kernels.Device
	names   []string  // of the terms
	factors []float64 // of the terms; 1 is the prior
	fit     *correction
	samples int // that made it
}

// Roofline is the prior: nothing fitted.
func Roofline(d kernels.Device) *Model {
	m := &Model{device: d, names: termNames(d)}
	for range m.names {
		m.factors = append(m.factors, 1)
	}
	return m
}

// Fitted is how many samples the model was fitted to; 0 for the prior.
func (m *Model) Fitted() int { return m.samples }

// Predict returns seconds and the terms they are made of; the terms add up.
func (m *Model) Predict(f Features) (float64, []Term) {
	var raw [maxTerms]float64
	t := rawTerms(raw[:0], &f, &m.device)
	weights := overlapped(t, m.factors, overlapOf(&m.device))
	terms := make([]Term, len(t), len(t)+1)
	total := 0.0
	for k := range t {
		terms[k] = Term{m.names[k], t[k] * weights[k]}
		total += terms[k].Seconds
	}
	if m.fit != nil {
		factor := math.Exp(m.fit.residual(&f))
		terms = append(terms, Term{
			"fitted correction", total * (factor - 1),
		})
		total *= factor
	}
	return total, terms
}

// Safety factors of LowerBound.
const (
	peakSafety      = 16 // other code can be that much better than what calibrates: vector units, several accumulators
	bandwidthSafety = 4
	matrixSafety    = 1.5 // the peak of matrix units is a data sheet's
)

// LowerBound is the least time physically plausible on the device, seconds; a
// kernel below it is wrong, not fast (D8). The arithmetic of the dots that the
// tiles do takes the peak of all lanes or of the matrix units; what is read and written at all takes
// the bandwidth of the innermost level that it fits into as a whole, since it
// may lie there from an earlier run. Both with a safety factor: the rates are
// measured, on a machine that others may use too.
func (m *Model) LowerBound(f Features) float64 {
	bound := min(f.FLOPs, f.DotFLOPs) /
		max(m.device.FLOPS*peakSafety, m.device.Matrix*matrixSafety)
	for k, l := range m.device.Levels {
		capacity := float64(l.Bytes)
		if !l.Shared {
			capacity *= float64(max(1, m.device.Lanes))
		}
		if l.Bytes == 0 || f.Compulsory <= capacity ||
			k == len(m.device.Levels)-1 {
			return max(bound, f.Compulsory/(l.Bandwidth*bandwidthSafety))
		}
	}
	return bound
}

// modelVersion changes when features or terms change their meaning.
const modelVersion = 2

// storedModel is a Model as JSON.
type storedModel struct {
	Version    int                `json:"version"`
	Device     string             `json:"device"`
	Backend    string             `json:"backend"`
	Revision   string             `json:"revision"`
	Samples    int                `json:"samples"`
	Factors    map[string]float64 `json:"factors"` // by term; one that is left out is 1
	Correction *correction        `json:"correction,omitempty"`
}

// MarshalJSON writes what was fitted, not the rates of the device.
func (m *Model) MarshalJSON() ([]byte, error) {
	s := storedModel{
		modelVersion, m.device.Name, m.device.Backend,
		m.device.Revision, m.samples,
		map[string]float64{}, m.fit,
	}
	for k, name := range m.names {
		s.Factors[name] = m.factors[k]
	}
	return json.Marshal(s)
}

// ReadModel reads a model that MarshalJSON wrote and puts it on the rates of d,
// whose backend must be the one it was fitted for. The device may be another:
// factors are ratios, and carry over better than nothing does.
func ReadModel(text []byte, d kernels.Device) (*Model, error) {
	var s storedModel
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("not a cost model: %w", err)
	}
	m := Roofline(d)
	switch {
	case s.Version != modelVersion:
		return nil, fmt.Errorf("a cost model of version %d; this tilewright reads %d: fit it again", s.Version, modelVersion)
	case s.Backend != d.Backend:
		return nil, fmt.Errorf("the cost model is of the backend %q, not %q", s.Backend, d.Backend)
	}
	for name, x := range s.Factors {
		k := slices.Index(m.names, name)
		if k < 0 {
			continue // a level that this device has not
		}
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("the cost model's factor of %s is %v", name, x)
		}
		m.factors[k] = x
	}
	if s.Correction != nil && !s.Correction.plausible() {
		return nil, errors.New("the cost model's correction is damaged")
	}
	m.fit = s.Correction
	m.samples = s.Samples
	return m, nil
}
