package cost

import (
	"math"

	"github.com/tilewright/tilewright/kernels"
)

// A Term is one part of a prediction, in seconds.
type Term struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Rates of the prior that no device reports. They are those of the CPU backend's
// machine code on x86 cores at about 2.5 GHz, from the calibration to the timings
// of the corpus (TestCorpus -timings); calibration replaces them by the device's
// own.
const (
	elementFLOPs  = 3       // flop of the peak that an elementwise flop takes: no product is added to it
	functionFLOPs = 3.5     // the same for functions, whose polynomials are
	rowSeconds    = 6.5e-9  // to start an innermost loop
	stridedSecs   = 0.45e-9 // to move an element on its own
	shortSeconds  = 2e-9    // to move an element of a row that is no vector
	maskedSeconds = 0.6e-9  // to see whether an element is masked
	bodySeconds   = 130e-9  // to locate the tiles of a tile program or an iteration
	stepSeconds   = 10e-9   // to start a tile op
	launchSeconds = 1.5e-6  // to run at all
	wakeSeconds   = 4e-6    // to wake and join each lane but the first
	hiddenShare   = 1.0 / 5 // what counts of arithmetic and traffic that is not the longest: cores hide the rest
)

// computeTerms come first, then one for each level of memory, then overheads.
var (
	computeTerms  = []string{"dots", "elements", "functions"}
	overheadTerms = []string{
		"rows", "strided", "short rows", "masks", "tile programs", "tile ops", "launch",
	}
)

// maxTerms is what most devices need; more only cost an allocation.
const maxTerms = 16

func termNames(d kernels.Device) []string {
	if d.Account != nil {
		return d.Account.Terms
	}
	names := append([]string(nil), computeTerms...)
	for _, l := range d.Levels {
		names = append(names, l.Name)
	}
	return append(names, overheadTerms...)
}

// rawTerms appends the seconds of every term, before factors and overlap: work
// over the rate of the lanes that share it, in waves.
func rawTerms(t []float64, f *Features, d *kernels.Device) []float64 {
	if d.Account != nil {
		t = append(
			t,
			make([]float64, len(d.Account.Terms))...,
		)
		copy(t[len(t)-len(d.Account.Terms):], f.Own)
		return t
	}
	share := f.Lanes /
		float64(max(1, d.Lanes)) /
		math.Max(f.Waves, 1)
	flops := d.FLOPS * share
	t = append(t,
		f.DotFLOPs/flops,
		elementFLOPs*(f.PaddedFLOPs-f.DotFLOPs-f.FunctionFLOPs)/flops,
		functionFLOPs*f.FunctionFLOPs/flops)
	for k, l := range d.Levels {
		bytes := 0.0
		if k < len(f.Traffic) {
			bytes = f.Traffic[k]
		}
		t = append(
			t,
			bytes/(l.Bandwidth*share)*wasted(f, k),
		)
	}
	waves := f.Waves / f.Lanes
	return append(t,
		f.Rows*rowSeconds*waves,
		f.Strided*stridedSecs*waves,
		f.Short*shortSeconds*waves,
		f.Masked*maskedSeconds*waves,
		f.Bodies*bodySeconds*waves,
		f.Steps*stepSeconds*waves,
		launchSeconds+wakeSeconds*(f.Lanes-1))
}

// line is what memory moves at a time, bytes.
const line = 64

// wasted is how much of every line moved from level k is thrown away when runs
// are shorter than half a line. The innermost level is scratch, which is dense.
func wasted(f *Features, k int) float64 {
	if k == 0 {
		return 1
	}
	return math.Max(1, line/2/math.Max(f.InnerRun, 1))
}

// An overlap says that of some terms, the first ones, the longest counts whole
// and of the others a share.
type overlap struct {
	terms int
	share float64
}

func overlapOf(d *kernels.Device) overlap {
	if d.Account != nil {
		return overlap{d.Account.Overlapping, d.Account.Hidden}
	}
	return overlap{len(computeTerms) + len(d.Levels), hiddenShare}
}

// overlapped is by how much each raw term counts: its factor, and less when
// longer arithmetic or traffic hides it.
func overlapped(t, factors []float64, o overlap) []float64 {
	longest := 0
	for k := range o.terms {
		if t[k]*factors[k] > t[longest]*factors[longest] {
			longest = k
		}
	}
	weights := make([]float64, len(t))
	for k := range t {
		weights[k] = factors[k]
		if k < o.terms && k != longest {
			weights[k] *= o.share
		}
	}
	return weights
}
