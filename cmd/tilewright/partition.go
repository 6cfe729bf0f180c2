package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner/report"
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
  tilewright partition model.mlir -device sim:H100    as for a GPU, which leaves other operations outside
  tilewright partition model.mlir -o fused.hlo    the module with fusions, as HLO text; of several with lines "// -----"

Prices are for a nominal processor; only their ratios matter. Fusions in the body of a while count as often as
it runs, where that is known.`,
	run: runPartition,
}

// runPartition partitions a file, prints the result and writes -o.
func runPartition(c *call) error {
	c.jsonFlag()
	out := c.String("o", "", "write the module with fusions to this `file`, as HLO text")
	replace := c.Bool("f", false, "replace a file with -o that -o has not written")
	why := c.Bool("why", false, "print every decision")
	device := c.splitFlag()
	c.shapeFlag()
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	if err := c.splitFor(*device); err != nil {
		return err
	}
	if *out != "" && c.shapes.count() > 1 {
		return usagef("-o takes one value of -shape")
	}
	file := c.output("o", *out, output.HLO, *replace)
	if err := file.Check(); err != nil {
		return err
	}
	return c.eachShape(func() error {
		return c.partition(args[0], file, *why)
	})
}

// writable refuses to write a module with parameters of which an extent is not known: HLO
// has no type for them.
func writable(m *hlo.Module) error {
	for _, i := range m.Entry.Params {
		if i.Shape.DType == hlo.Token && slices.Contains(m.Open, i.Name) {
			return fmt.Errorf("-o: an extent of %s is not known, and HLO has no such type: give it with -shape", i.Name)
		}
	}
	return nil
}

// partition partitions the modules of a file, prints the results and writes them to file.
func (c *call) partition(name string, file output.File, why bool) error {
	var texts []string
	failed := c.eachModule(name, false, func(_ string, split *partition.Result) error {
		m := *split.Module
		m.Name = cmp.Or(m.Name, m.Entry.Name) // XLA reads no computations without a header
		if file.Name == "" {
			return c.printSplit(split, why)
		}
		if err := writable(&m); err != nil {
			return err
		}
		texts = append(texts, m.ForXLA())
		return c.printSplit(split, why)
	})
	if len(texts) == 0 {
		return failed
	}
	return errors.Join(failed, file.Write(func(w *bufio.Writer) error {
		_, err := w.WriteString("// tilewright partition\n" + strings.Join(texts, "\n// -----\n\n")) // which output.HLO replaces
		return err
	}))
}

// printSplit prints a module that was split.
func (c *call) printSplit(split *partition.Result, why bool) error {
	j := query.NewPartition(split)
	if c.json {
		return c.printJSON(j)
	}
	return printPartition(c, j, why)
}

// printPartition prints a line for every fusion, what is outside, and the sums.
func printPartition(c *call, j *query.Partition, why bool) error {
	t := c.table()
	for _, f := range j.Fusions {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, describeSplit(f))
		if f.Source != "" {
			fmt.Fprintf(t, "  from %s\n", f.Source)
		}
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
	printStructures(t, j.Structures)
	fmt.Fprintf(
		t, "\n%s, %d distinct: %s\n",
		report.Counted(len(j.Fusions), "fusion"), j.Distinct, comparePrices(j.Price, j.Apart),
	)
	return t.Flush()
}

// printStructures prints the structures of several distinct fusions, a line each.
func printStructures(w io.Writer, all []query.Structure) {
	header := "\nfusions that differ in extents only, as one each (" +
		"`tune -run-budget` races one of them for all)\n"
	for _, s := range all {
		if s.Distinct < 2 {
			continue
		}
		fmt.Fprintf(
			w, "%s  %s\t%d fusions, %d distinct: %.4g MB, launches %.4g\t%s\n", header,
			s.Name, s.Fusions, s.Distinct, s.Price.Bytes/1e6, s.Price.Launches, firstShapes(s.Shapes),
		)
		header = ""
	}
}

// maxShapesShown bounds the shapes in a line.
const maxShapesShown = 6

// firstShapes is the first of a list of shapes, and how many there are more.
func firstShapes(all []string) string {
	text := strings.Join(all[:min(len(all), maxShapesShown)], " ")
	if n := len(all) - maxShapesShown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// describeSplit is a fusion in a line: how often it runs, its instructions, and what it
// costs beside what they would cost one by one.
func describeSplit(f query.Split) string {
	var b strings.Builder
	if f.Runs != 1 || f.Unknown {
		fmt.Fprintf(&b, "%.4g×", f.Runs)
		if f.Unknown {
			b.WriteString(" or more or fewer")
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "%s: %s", report.Counted(f.Instrs, "instruction"), comparePrices(f.Price, f.Apart))
	return b.String()
}

// comparePrices is a price beside that of the operations one by one.
func comparePrices(joined, apart query.Price) string {
	if apart.Launches == 0 {
		return "as it was read"
	}
	return fmt.Sprintf(
		"%.4g MB instead of %.4g, %.4g Mflop instead of %.4g, launches %.4g instead of %.4g",
		joined.Bytes/1e6, apart.Bytes/1e6, joined.Flop/1e6, apart.Flop/1e6,
		joined.Launches, apart.Launches,
	)
}
