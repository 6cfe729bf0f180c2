// Package cost says what a plan should cost: features, a roofline prior, a
// fitted correction, ranking and judging.
package cost

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// Features of one plan on one device. The cost model and every report read
// them from here and nowhere else.
type Features struct {
	FLOPs       float64   // useful arithmetic, flop (dots 2·m·n·k, transcendental weights documented)
	PaddedFLOPs float64   // arithmetic the tiles really do, masked lanes included
	Traffic     []float64 // bytes moved across each Device.Level, innermost first
	Tiles       float64   // tile programs
	Steps       float64   // tile ops run, loops included
	Waves       float64   // ⌈Tiles/lanes⌉·lanes / Tiles ≥ 1: parallel slack
	InnerRun    float64   // bytes contiguous in memory per access, worst load or store weighted by bytes
	Scratch     float64   // bytes of scratch a tile program touches
}

// Measure computes the features of a concrete program.
func Measure(p *symtile.Program, plan kernels.Plan, d kernels.Device) Features { panic("cost room") }

// A Term is one part of a prediction, in seconds.
type Term struct {
	Name    string
	Seconds float64
}

// A Ranked plan with its prediction and the terms that make it.
type Ranked struct {
	Plan     kernels.Plan
	Features Features
	Seconds  float64
	Terms    []Term
}

// A Sample is a measured plan, as stored.
type Sample struct {
	Group    string // the fusion it belongs to; the fit compares within groups
	Features Features
	Seconds  float64
}

// A Model predicts seconds: a roofline of the device times the exponential of
// a fitted linear correction of log features.
type Model struct{ _ int }

// Roofline is the prior: no correction.
func Roofline(d kernels.Device) *Model { panic("cost room") }

// Fit returns the model with its correction fitted to samples (ridge towards
// the prior); with few samples it stays near the prior.
func (m *Model) Fit(samples []Sample) (*Model, error) { panic("cost room") }

// Predict returns seconds and the terms they are made of.
func (m *Model) Predict(f Features) (float64, []Term) { panic("cost room") }

// LowerBound is the least time physically plausible on the device, seconds.
func (m *Model) LowerBound(f Features) float64 { panic("cost room") }

// Rank orders plans of the symbolic program p, cheapest first; ties keep the
// order of the plan's text.
func (m *Model) Rank(p *symtile.Program, plans []kernels.Plan) ([]Ranked, error) { panic("cost room") }
