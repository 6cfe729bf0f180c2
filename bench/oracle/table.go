package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/tilewright/tilewright/cost"
)

// The columns of a line: the default, what was tuned, and the best of the first k by price.
const (
	header  = " default   tuned      @1      @4      @8     @16      ρ  price  bound  quiet before, after  repeated"
	columns = 6
)

// firsts are the k of @k.
var firsts = []int{1, 4, 8, 16}

// A table has the samples of the plans of a fusion: a line of a file of samples.
type table struct {
	Fusion string `json:"fusion"`
	Device string `json:"device"`
	// Clock is "elapsed" time or time of the "processor".
	Clock string `json:"clock"`
	// Plans are in the order of their prices, but for a tuned one at the end, whose price
	// is 0.
	Plans  []string  `json:"plans"`
	Prices []float64 `json:"prices"`
	// Default and Tuned are positions; −1 is none.
	Default int `json:"default"`
	Tuned   int `json:"tuned"`
	// Seconds of each plan in each block.
	Seconds [][]float64 `json:"seconds"`
	// Bound is the lower bound of the time of any kernel (cost.LowerBound), in seconds.
	Bound float64 `json:"bound"`
	// Quiet is the share of the machine that was there, before and after.
	Quiet [2]float64 `json:"quiet"`
	// Repeated are samples that were taken again, since other work took a part of them.
	Repeated int `json:"repeated"`
}

// ratio is the median of the ratios of two plans within the blocks of a parity.
func (t *table) ratio(a, b, parity int) float64 {
	var all []float64
	x, y := t.Seconds[a], t.Seconds[b]
	for n := parity; n < len(x); n += 2 {
		all = append(all, x[n]/y[n])
	}
	return median(all)
}

// median of numbers, which it sorts: the mean of the two in the middle where their number
// is even. There is at least one.
func median(v []float64) float64 {
	slices.Sort(v)
	return stat.Quantile(0.5, stat.LinInterp, v, nil)
}

// fastest is the plan with the least median of the even blocks, of the first n.
func (t *table) fastest(n int) int {
	best, least := 0, 0.0
	for k := range min(n, len(t.Plans)) {
		var even []float64
		for i, s := range t.Seconds[k] {
			if i%2 == 0 {
				even = append(even, s)
			}
		}
		if m := median(even); k == 0 || m < least {
			best, least = k, m
		}
	}
	return best
}

// ratios are the columns of a line, by the odd blocks; 0 where there is no such plan. The
// best of the first k is the one that the even blocks find, as a race of these plans would:
// not the one that happens to be the fastest in the blocks by which it is judged. So a ratio
// below 1 is the luck of the best plan, and on a quiet machine near 1.
func (t *table) ratios() (out [columns]float64) {
	best := t.fastest(len(t.Plans))
	if t.Default >= 0 {
		out[0] = t.ratio(t.Default, best, 1)
	}
	if t.Tuned >= 0 {
		out[1] = t.ratio(t.Tuned, best, 1)
	}
	for k, n := range firsts {
		out[2+k] = t.ratio(t.fastest(n), best, 1)
	}
	return out
}

// The last columns say how right the prices are as times, and not only the first of them.
//
// order is Spearman's ρ of prices and medians, and the median of price over time.
func (t *table) order() (rho, price float64) {
	var predicted, measured, over []float64
	for k, price := range t.Prices {
		if price > 0 { // a tuned plan that is not offered has no price
			m := median(slices.Clone(t.Seconds[k]))
			predicted = append(predicted, price)
			measured = append(measured, m)
			over = append(over, price/m)
		}
	}
	return cost.Spearman(predicted, measured), median(over)
}

// plausible refuses a line that no landscape writes.
func (t *table) plausible() error {
	n := len(t.Plans)
	if n == 0 || len(t.Prices) != n || len(t.Seconds) != n ||
		max(t.Default, t.Tuned) >= n ||
		min(t.Default, t.Tuned) < -1 {
		return fmt.Errorf("the samples of %q do not fit its plans", t.Fusion)
	}
	for _, s := range t.Seconds {
		if len(s) < fewestBlocks ||
			len(s) != len(t.Seconds[0]) ||
			slices.Min(s) <= 0 {
			return fmt.Errorf("the samples of %q are not times of %d blocks and more", t.Fusion, fewestBlocks)
		}
	}
	return nil
}

// readTables reads a file of samples; a missing one has none.
func readTables(file string) (all []table, err error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var t table
		if err := d.Decode(&t); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if err := t.plausible(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, t)
	}
}

// appendTo adds the table to a file of samples.
func (t *table) appendTo(file string) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// print writes the line of a fusion.
func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "%-30s %5d ", t.Fusion, len(t.Plans))
	for _, r := range t.ratios() {
		fmt.Fprintf(w, " %7.3f", r)
	}
	rho, price := t.order()
	fmt.Fprintf(w, "  %5.2f %6.2f", rho, price)
	fmt.Fprintf(w, " %6.1f ", t.overBound())
	for _, q := range t.Quiet {
		fmt.Fprintf(w, " %.0f%%", 100*q)
	}
	fmt.Fprintf(w, " %6d\n", t.Repeated)
}

// overBound is the least time of any sample over the lower bound; 0 without one.
func (t *table) overBound() float64 {
	if t.Bound == 0 {
		return 0
	}
	least := math.Inf(1)
	for _, s := range t.Seconds {
		least = min(least, slices.Min(s))
	}
	return least / t.Bound
}

// summarize writes the geometric means and the largest ratios of all fusions.
func summarize(w io.Writer, all []table) {
	var logs [columns][]float64
	for k := range all {
		for i, r := range all[k].ratios() {
			if r > 0 {
				logs[i] = append(logs[i], math.Log(r))
			}
		}
	}
	means := fmt.Sprintf("%-30s %5d ", "geometric mean", len(all))
	worst := fmt.Sprintf("%-30s %5s ", "worst", "")
	for _, l := range logs {
		if len(l) == 0 {
			l = []float64{math.Inf(-1)}
		}
		means += fmt.Sprintf(" %7.3f", math.Exp(stat.Mean(l, nil)))
		worst += fmt.Sprintf(" %7.3f", math.Exp(slices.Max(l)))
	}
	fmt.Fprintf(w, "%s\n%s\n", means, worst)
	// A time below the bound is a wrong kernel, or a bound that is too high; half of a
	// time is that of a kernel that skips half of its work.
	below, half := 0, 0
	for k := range all {
		switch x := all[k].overBound(); {
		case x > 0 && x < 1:
			below++
		case x >= 1 && x < 2:
			half++
		}
	}
	fmt.Fprintf(w, "the least time is below the lower bound in %d fusions; a kernel in half of that time would be in %d more\n", below, half)
}
