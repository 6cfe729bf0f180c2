// Package tuner is the story: lookup, rank, race, keep.
package tuner

import (
	"context"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Options of a tuning run; the zero value is right.
type Options struct {
	Try     int           // plans measured per fusion; 0 means 16
	Budget  time.Duration // wall time per fusion; 0 means 10 s
	Seed    int64         // of inputs and racing order
	Margin  float64       // ratio the default must lose by; 0 means 0.02
	Force   bool          // measure again although a winner is stored
	Observe func(Event)   // called in order, from one goroutine; may be nil
}

// An Event is one line of the trace.
type Event struct{ Kind string }

// A Tuner tunes fusions on one backend.
type Tuner struct {
	Backend kernels.Backend
	Cache   *cache.DB
	Model   *cost.Model // nil means the roofline, fitted to the samples in Cache
	Options Options
}

// A Result of tuning one fusion.
type Result struct {
	Record cache.Record
	Hit    bool // nothing was measured
}

// Lookup is the compiler's door: it never compiles, runs or writes.
func (t *Tuner) Lookup(c *hlo.Computation) (cache.Record, bool, error) { panic("tuner room") }

// Tune is Lookup that fills the gap by measuring.
func (t *Tuner) Tune(ctx context.Context, c *hlo.Computation) (Result, error) { panic("tuner room") }
