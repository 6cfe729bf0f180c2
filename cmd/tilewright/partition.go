package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// partitionCommand splits a module into fusions and writes it with them.
var partitionCommand = command{
	name: "partition", args: "FILE", short: "split a module into fusions, and say why",
	long: `Splits a module that is not fused yet (StableHLO, or HLO before fusion) into fusions, as tune and show
do, and prints for every fusion what it costs and what its operations would cost one by one: bytes that it
moves, operations with those that tiles repeat, launches. -why adds the decisions: which neighbours joined,
which did not, and the price of both ways. Instructions outside are listed with the reason.

  tilewright partition model.mlir
  tilewright partition model.mlir -why
  tilewright partition model.mlir -o fused.hlo    the module with fusions, as HLO text

Prices are for a nominal processor; only their ratios matter. Fusions in the body of a while count as often as
it runs, where that is known.`,
	run: runPartition,
}

// partitionJSON is the result of partition -json.
type partitionJSON struct {
	// Fusions in the order in which they run, and how many are distinct.
	Fusions  []splitJSON `json:"fusions"`
	Distinct int         `json:"distinct"`
	// Instructions that stay outside.
	Outside []outsideJSON `json:"outside,omitempty"`
	// Prices of a run of the entry: of every operation alone, and as partitioned.
	Apart priceJSON `json:"apart"`
	Price priceJSON `json:"price"`
}

// splitJSON is one fusion of a partition.
type splitJSON struct {
	// Name, and fingerprint of the canonical form.
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	// Runs in a run of the entry; unknown says that a loop around it has no known
	// trip count, or a conditional chooses it, and counts once.
	Runs    float64 `json:"runs"`
	Unknown bool    `json:"unknown,omitempty"`
	// Instructions of the fusion.
	Instrs int `json:"instrs"`
	// Prices of one run: of every operation alone, and of the fusion.
	Apart priceJSON `json:"apart"`
	Price priceJSON `json:"price"`
	// Decisions.
	Why []string `json:"why,omitempty"`
}

// priceJSON is a price: bytes moved, flop, kernels.
type priceJSON struct {
	Bytes    float64 `json:"bytes"`
	Flop     float64 `json:"flop"`
	Launches float64 `json:"launches"`
}

// newPriceJSON converts n times a price.
func newPriceJSON(p partition.Price, n float64) priceJSON {
	return priceJSON{n * p.Bytes, n * p.Work, n * p.Launches}
}

// plus is the sum.
func (a priceJSON) plus(b priceJSON) priceJSON {
	return priceJSON{a.Bytes + b.Bytes, a.Flop + b.Flop, a.Launches + b.Launches}
}

// runPartition partitions a file, prints the result and writes -o.
func runPartition(c *call) error {
	c.jsonFlag()
	out := c.String("o", "", "write the module with fusions to this `file`, as HLO text")
	replace := c.Bool("f", false, "replace a file of another kind with -o")
	why := c.Bool("why", false, "print every decision")
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	file := output{*out, hloFile, args, *replace}
	if err := file.check(); err != nil {
		return err
	}
	split, err := c.partitioned(args[0])
	if err != nil {
		return err
	}
	if *out != "" {
		err := file.write(func(w *bufio.Writer) error {
			m := *split.Module
			m.Name = cmp.Or(m.Name, m.Entry.Name) // XLA reads no computations without a header
			_, err := w.WriteString(m.String())
			return err
		})
		if err != nil {
			return err
		}
	}
	j := newPartitionJSON(split)
	if c.json {
		return c.printJSON(j)
	}
	return j.print(c, *why)
}

// newPartitionJSON converts a partition.
func newPartitionJSON(split *partition.Result) *partitionJSON {
	j := &partitionJSON{Fusions: []splitJSON{}}
	runs := partition.Executions(split.Module)
	distinct := map[string]bool{}
	for _, f := range split.Module.Fusions() {
		part := newSplitJSON(f, split.Fusions[f], runs[f])
		j.Fusions = append(j.Fusions, part)
		distinct[part.Fingerprint] = true
		j.Apart = j.Apart.plus(part.Apart.times(part.Runs))
		j.Price = j.Price.plus(part.Price.times(part.Runs))
	}
	j.Distinct = len(distinct)
	for _, o := range untileable(split.Outside) {
		j.Outside = append(j.Outside, outsideJSON{
			o.Instr.Name, string(o.Instr.Op), o.Reason,
		})
	}
	return j
}

// times is n times the price.
func (a priceJSON) times(n float64) priceJSON {
	return priceJSON{n * a.Bytes, n * a.Flop, n * a.Launches}
}

// newSplitJSON converts a fusion; of is nil for one that was in the file.
func newSplitJSON(f *hlo.Computation, of *partition.Fusion, runs partition.Execution) splitJSON {
	print := f.Fingerprint()
	j := splitJSON{
		Name:        f.Name,
		Fingerprint: hex.EncodeToString(print[:]),
		Runs:        runs.Times,
		Unknown:     runs.Unknown,
		Instrs:      len(f.Instrs) - len(f.Params),
	}
	if of != nil {
		j.Apart, j.Price = newPriceJSON(of.Apart, 1), newPriceJSON(of.Price, 1)
		j.Why = of.Reasons
	}
	return j
}

// print prints a line for every fusion, what is outside, and the sums.
func (j *partitionJSON) print(c *call, why bool) error {
	t := c.table()
	for _, f := range j.Fusions {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, f.describe())
		for _, reason := range f.Why {
			if why {
				fmt.Fprintf(t, "  %s\n", reason)
			}
		}
	}
	if len(j.Outside) > 0 {
		fmt.Fprintf(t, "\noutside of the fusions\n")
	}
	for _, o := range j.Outside {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", o.Instr, o.Op, o.Reason)
	}
	fmt.Fprintf(
		t, "\n%d fusions, %d distinct: %s\n",
		len(j.Fusions), j.Distinct, comparePrices(j.Price, j.Apart),
	)
	return t.Flush()
}

// describe is a fusion in a line.
func (f *splitJSON) describe() string {
	var b strings.Builder
	if f.Runs != 1 || f.Unknown {
		fmt.Fprintf(&b, "%.4g×", f.Runs)
		if f.Unknown {
			b.WriteString(" or more or fewer")
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "%d instructions: %s", f.Instrs, comparePrices(f.Price, f.Apart))
	return b.String()
}

// comparePrices is a price beside that of the operations one by one.
func comparePrices(joined, apart priceJSON) string {
	if apart.Launches == 0 {
		return "as it was read"
	}
	return fmt.Sprintf(
		"%.4g MB instead of %.4g, %.4g Mflop instead of %.4g, launches %.4g instead of %.4g",
		joined.Bytes/1e6, apart.Bytes/1e6, joined.Flop/1e6, apart.Flop/1e6,
		joined.Launches, apart.Launches,
	)
}
