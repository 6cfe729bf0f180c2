package cache

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Key is the exact context of a winner: a record answers only for the key it
// was measured under.
type Key struct {
	// Fusion is the fingerprint of the canonical form of the fusion.
	Fusion Fingerprint `json:"fusion"`
	// Device names the device stably, across runs and machines of one kind.
	Device string `json:"device"`
	// Backend names the code generator, and Codegen its revision: code of
	// another revision has other times.
	Backend string `json:"backend"`
	Codegen string `json:"codegen"`
}

// A Fingerprint is a SHA-256; its text form is hexadecimal.
type Fingerprint [32]byte

// MarshalText writes 64 hexadecimal digits.
func (f Fingerprint) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, f[:]), nil
}

// UnmarshalText reads 64 hexadecimal digits.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(f) {
		return fmt.Errorf(
			"a fingerprint has %d hexadecimal digits, not %d",
			hex.EncodedLen(len(f)), len(text),
		)
	}
	_, err := hex.Decode(f[:], text)
	return err
}

// A Record is what is known about one key: the winner, what it was compared
// with, and every sample. Times are in seconds.
type Record struct {
	Key
	// Name of the fusion, for people.
	Name string `json:"name"`
	// Source is the operation and the line of the user's program that it comes
	// from, for people; "" if unknown. OtherSources are those of further fusions that are
	// alike: the first eight that the run which made the record met, in their order. A
	// run that finds the record does not change them.
	Source       string   `json:"source,omitempty"`
	OtherSources []string `json:"otherSources,omitempty"`
	// Canonical is the canonical text of the fusion, so that a record can be
	// understood, and measured again, without the module it came from.
	Canonical string `json:"canonical"`
	// Safe is the safe context at the time of measuring: the driver's version
	// and the like.
	Safe map[string]string `json:"safe"`
	// Plan is the winner and Default the plan it was compared with, as text
	// (kernels.ParsePlan).
	Plan    string `json:"plan"`
	Default string `json:"default"`
	// Dims are the names of the dimensions of which the plans have the tile sizes, in
	// their order, for people; none in records from before there were any.
	Dims []string `json:"dims,omitempty"`
	// Seconds and DefaultSeconds are the medians of the two.
	Seconds        float64 `json:"seconds"`
	DefaultSeconds float64 `json:"defaultSeconds"`
	// Speedup of the winner over the default: the median of paired ratios and
	// the ends of its 95 % interval. An upper end of 0 is unknown.
	Speedup [3]float64 `json:"speedup"`
	// Regret is an upper bound, at the confidence of Certificate, or else at 95 %, on the
	// winner's time over that of the best plan that was tried, minus 1; −1 is unknown.
	Regret float64 `json:"regret"`
	// Certificate is the evidence for Regret; nil in records from before there was any,
	// and in provisional and untimed ones.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Ties are the plans that are statistically equal to the winner.
	Ties []string `json:"ties"`
	// Trials are all plans that were tried, the winner and the default included.
	Trials []Trial `json:"trials"`
	// Checked records agreed with the reference before they were timed.
	Checked bool `json:"checked"`
	// Untimed records come from a device that cannot time kernels: Seconds,
	// DefaultSeconds and Speedup are predictions of the cost model.
	Untimed bool `json:"untimed,omitempty"`
	// Provisional records are of races that were interrupted, or that only timed
	// the default plan: the plan is right, and the best of those timed so far.
	Provisional bool `json:"provisional,omitempty"`
	// Like is the name of a fusion that differs in extents only, whose winner was raced
	// beside the default here, and nothing else; empty where plans were ranked.
	Like string `json:"like,omitempty"`
	// Evidence is what the backend recorded of the device's clock during the
	// samples. Its form is the backend's.
	Evidence json.RawMessage `json:"evidence,omitempty"`
	// Roof is the shortest time that the rates of the device allowed it; nil where none
	// were known.
	Roof *Roof `json:"roof,omitempty"`
	// Prices are how well the prices of the plans ordered their times, and the terms of
	// some; nil in records from before they were kept.
	Prices *Prices `json:"prices,omitempty"`
	// Legal is the number of plans that were offered. Tilings is that of the legal tilings of
	// the fusion, each of which is a plan without knobs, math.MaxInt64 where there are at least
	// as many; Plans that of its legal plans, tilings with settings of the knobs that are worth
	// a try with each, and with MorePlans there are at least so many. Both are 0 in records
	// from before they were counted. Proven plans, of those offered, are known to be the
	// cheapest of all legal ones by the backend's price.
	Legal     int64 `json:"legal"`
	Tilings   int64 `json:"tilings,omitempty"`
	Plans     int64 `json:"plans,omitempty"`
	MorePlans bool  `json:"morePlans,omitempty"`
	Proven    int64 `json:"proven,omitempty"`
	// When and By are the time and the tool that made the record.
	When time.Time `json:"when"`
	By   string    `json:"by"`
	Note string    `json:"note,omitempty"`
}

// Prices say of the plans that were tried how their predicted times compare with those
// that were measured.
type Prices struct {
	// Kendall is the rank correlation of predicted with measured times; Regret1, Regret3
	// and Regret8 are the best measured time of so many plans of the least predicted ones,
	// over the best of all. They are 0 where nothing was timed.
	Kendall float64 `json:"kendall"`
	Regret1 float64 `json:"regret1"`
	Regret3 float64 `json:"regret3"`
	Regret8 float64 `json:"regret8"`
	// Explained are the winner, the default and the fastest other plan.
	Explained []Explained `json:"explained"`
	// Sheet is the device sheet that the prices were made of, as it was, without the sources
	// of its numbers; absent where the backend has none, and in older records.
	Sheet json.RawMessage `json:"sheet,omitempty"`
}

// An Explained plan has the terms of its predicted time, which add up to that.
type Explained struct {
	Plan  string `json:"plan"`
	Terms []Term `json:"terms"`
}

// A Term is a part of a predicted time, in seconds.
type Term struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// maxSheetBytes is the length of a sheet in a record, above the longest built-in one.
const maxSheetBytes = 1 << 14

// plausible refuses prices with names that are longer than names are, or such a sheet.
func (p *Prices) plausible() error {
	if p == nil {
		return nil
	}
	if len(p.Sheet) > maxSheetBytes {
		return fmt.Errorf("a device sheet of %d bytes", len(p.Sheet))
	}
	for _, x := range p.Explained {
		if len(x.Plan) > maxPlanBytes {
			return fmt.Errorf("a plan of %d bytes is explained", len(x.Plan))
		}
		for _, t := range x.Terms {
			if len(t.Name) > maxNameBytes {
				return fmt.Errorf("a term's name has %d bytes", len(t.Name))
			}
		}
	}
	return nil
}

// A Roof is the shortest time that the rates of a device allow a fusion.
type Roof struct {
	// Seconds are the work over the rate that takes the longest.
	Seconds float64 `json:"seconds"`
	// By names that rate: "products", or a level of memory.
	By string `json:"by"`
	// Mismeasured is set where the winner is faster: then the rate that was stored was
	// too low, and the roof says nothing.
	Mismeasured bool `json:"mismeasured,omitempty"`
	// Contradicted are the rates that were too low for the time of a plan that did its work
	// on inputs that it had not seen, and what they are when they are measured again.
	Contradicted []string `json:"contradicted,omitempty"`
}

// Headroom is the time of the winner over its roof, at least 1; 0 where the roof is not
// known or mismeasured.
func (r *Record) Headroom() float64 {
	if r.Roof == nil || r.Roof.Mismeasured || r.Roof.Seconds <= 0 {
		return 0
	}
	return r.Seconds / r.Roof.Seconds
}

// DefaultFailure says how the default plan failed its check: that it is not compiled,
// gives wrong results, is faster than the device can be, or ends in an error. It is
// empty for a default that passed, and for one whose check did not end in time.
func (r *Record) DefaultFailure() string {
	for _, t := range r.Trials {
		if t.Plan == r.Default && t.Failure != "" && t.Failure != FailedTimeout {
			return fmt.Sprintf("the default plan %s fails its check: %s: %s", t.Plan, t.Failure, t.Detail)
		}
	}
	return ""
}

// A race is the stored form of an unfinished one. Its key tells if that which it is
// stored under is damaged.
type race struct {
	Key    Key     `json:"key"`
	Trials []Trial `json:"trials"`
}

// A Trial is one plan that was tried: its samples, or why it failed. Samples,
// Blocks and, where clocks are known, Clocks have one element a sample, in the
// order of measuring.
type Trial struct {
	Plan string `json:"plan"`
	// Predicted is the time that the cost model expected.
	Predicted float64 `json:"predicted"`
	// Samples are seconds a run.
	Samples []float64 `json:"samples,omitempty"`
	// Clocks are the frequencies of the device, in Hz, 0 where one is unknown;
	// the slice is empty when all are.
	Clocks []float64 `json:"clocks,omitempty"`
	// Blocks are the numbers of the blocks of a race; only samples of one block
	// are comparable.
	Blocks []int `json:"blocks,omitempty"`
	// Features are the inputs of the cost model, in its own form.
	Features json.RawMessage `json:"features,omitempty"`
	// Dropped trials lost their race before its end.
	Dropped bool `json:"dropped,omitempty"`
	// Failure is one of the Failed constants, or empty; Detail is its error.
	Failure string `json:"failure,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// The values of Trial.Failure.
const (
	FailedRejected    = "rejected"    // the backend does not compile the plan
	FailedWrong       = "wrong"       // its results differ from the reference's
	FailedImplausible = "implausible" // it was faster than the device can be
	FailedTimeout     = "timeout"     // it was stopped, or the budget ended before its turn
	FailedError       = "error"       // compiling or running it failed otherwise
)

// Add adds a sample of a block. hertz is the clock of the device during the
// sample, 0 where it is unknown. The first known clock makes those of the samples
// before it explicit zeros.
func (t *Trial) Add(seconds, hertz float64, block int) {
	t.Samples = append(t.Samples, seconds)
	t.Blocks = append(t.Blocks, block)
	if len(t.Clocks) == 0 && hertz == 0 {
		return
	}
	unknown := len(t.Samples) - 1 - len(t.Clocks)
	t.Clocks = append(t.Clocks, make([]float64, unknown)...)
	t.Clocks = append(t.Clocks, hertz)
}

// clock is the device's clock during sample k in Hz, 0 where it is unknown.
func (t *Trial) clock(k int) float64 {
	if len(t.Clocks) == 0 {
		return 0
	}
	return t.Clocks[k]
}

// Median is the median of the samples, in seconds; 0 when there are none.
func (t Trial) Median() float64 {
	n := len(t.Samples)
	if n == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t.Samples))
	return (s[(n-1)/2] + s[n/2]) / 2
}

// Limits of what is stored, so that an import cannot bring in a file of any size.
const (
	maxNameBytes = 1 << 10 // of a device, backend or revision
	maxPlanBytes = 1 << 12 // of the text of a plan
)

// plausible refuses a record whose values cannot have been measured. Records are
// checked when they are stored, imported and read.
func (r *Record) plausible() error {
	switch {
	case r.Plan == "" || len(r.Plan) > maxPlanBytes:
		return errors.New("a record needs a plan")
	case !isDuration(r.Seconds):
		return fmt.Errorf("%v seconds is not a time", r.Seconds)
	case !dimsPlausible(r.Dims):
		return errors.New("the names of its dimensions are none")
	case r.DefaultSeconds != 0 && !isDuration(r.DefaultSeconds):
		return fmt.Errorf("%v seconds is not a time of the default", r.DefaultSeconds)
	case r.Regret != -1 && !(r.Regret >= 0) ||
		math.IsInf(r.Regret, 0):
		return fmt.Errorf("%v is not a regret", r.Regret)
	case r.Roof != nil && !r.Roof.plausible(r.Seconds):
		return fmt.Errorf("a roof of %v seconds, and a winner of %v", r.Roof.Seconds, r.Seconds)
	case r.Legal < 0:
		return fmt.Errorf("%d is not a number of plans", r.Legal)
	case r.Tilings < 0:
		return fmt.Errorf("%d is not a number of tilings", r.Tilings)
	case r.Plans < 0 || r.Proven < 0 || r.Proven > r.Legal:
		return fmt.Errorf("%d of %d offered plans are not the cheapest of %d", r.Proven, r.Legal, r.Plans)
	case r.When.Year() < 0 || r.When.Year() > 9999:
		return fmt.Errorf("%v is not a date", r.When)
	}
	for _, s := range r.Speedup {
		if !(s >= 0) || math.IsInf(s, 0) {
			return fmt.Errorf("%v is not a speedup", s)
		}
	}
	return errors.Join(r.Key.plausible(), r.Certificate.plausible(), r.Prices.plausible(), plausible(r.Trials))
}

// dimsPlausible reports whether texts can be names of dimensions: words without a comma,
// which separates them in a snapshot.
func dimsPlausible(dims []string) bool {
	for _, name := range dims {
		if name == "" || strings.ContainsAny(name, ", =") {
			return false
		}
	}
	return len(strings.Join(dims, ",")) <= maxPlanBytes
}

// plausible reports whether a roof is a time, and called mismeasured by a winner that is
// faster.
func (r *Roof) plausible(winner float64) bool {
	for _, why := range r.Contradicted {
		if len(why) > maxPlanBytes {
			return false
		}
	}
	return isDuration(r.Seconds) && len(r.By) <= maxNameBytes && (winner >= r.Seconds || r.Mismeasured)
}

// plausible refuses a key without a device or a backend.
func (k *Key) plausible() error {
	for _, s := range k.names() {
		if len(s) > maxNameBytes {
			return fmt.Errorf("%.20q… is too long for a key", s)
		}
	}
	if k.Device == "" || k.Backend == "" {
		return errors.New("a record needs a device and a backend")
	}
	return nil
}

// plausible refuses trials of which one cannot be true.
func plausible(ts []Trial) error {
	for _, t := range ts {
		if err := t.plausible(); err != nil {
			return fmt.Errorf("trial of plan %.60q: %w", t.Plan, err)
		}
	}
	return nil
}

// plausible refuses a trial whose slices do not belong together or whose values
// are no times, clocks or blocks. Features that are not JSON are an error of its encoding.
func (t *Trial) plausible() error {
	switch {
	case t.Plan == "" || len(t.Plan) > maxPlanBytes:
		return errors.New("a trial needs a plan")
	case len(t.Blocks) != 0 && len(t.Blocks) != len(t.Samples):
		return fmt.Errorf("%d samples in %d blocks", len(t.Samples), len(t.Blocks))
	case len(t.Clocks) != 0 && len(t.Clocks) != len(t.Samples):
		return fmt.Errorf("%d clocks of %d samples", len(t.Clocks), len(t.Samples))
	case math.IsNaN(t.Predicted) || math.IsInf(t.Predicted, 0):
		return fmt.Errorf("a prediction of %v seconds", t.Predicted)
	}
	for _, s := range t.Samples {
		if !isDuration(s) {
			return fmt.Errorf("%v seconds is not a time", s)
		}
	}
	for _, h := range t.Clocks {
		if h != 0 && !isDuration(h) {
			return fmt.Errorf("%v Hz is not a clock", h)
		}
	}
	for _, b := range t.Blocks {
		if b < 0 || b > maxBlockNumber {
			return fmt.Errorf("%d is not a block", b)
		}
	}
	return nil
}

// isDuration reports whether a number of seconds, or of Hz, is positive and
// finite.
func isDuration(s float64) bool {
	return s > 0 && !math.IsInf(s, 0)
}
