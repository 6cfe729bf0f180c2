package kernels

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// PlanNames are the names of the dimensions of a fusion's plans, in order. Plans are
// stored and exchanged as bare lists of sizes; with names they are for people:
// "64,256,32 threads=1" is "m=64 n=256 k=32 threads=1". nil knows no names, and leaves
// plans as they are.
type PlanNames []string

// PlanNamesOf are the names of symtile.Program.DimNames.
func PlanNamesOf(p *symtile.Program) PlanNames { return p.DimNames() }

// PlanNamesOfText are the names for plans of a fusion given as its canonical text; nil
// if that is no fusion that has tiles.
func PlanNamesOfText(ctx context.Context, canonical string) PlanNames {
	p, err := ProgramOfText(ctx, canonical)
	if err != nil {
		return nil
	}
	return PlanNamesOf(p)
}

// ProgramOfText is the tile program of a fusion given as its canonical text. The error
// is of the text, a *symtile.Untileable, or of ctx.
func ProgramOfText(ctx context.Context, canonical string) (*symtile.Program, error) {
	m, err := hlo.Parse("record", []byte("HloModule record\n"+canonical))
	if err != nil {
		return nil, err
	}
	return symtile.Analyze(ctx, m.Entry)
}

// Text is a plan with the names of its dimensions: "m=64 n=256 k=32 threads=1". A plan
// of another number of sizes, one without any, and one with a knob that has the name of
// a dimension stay a list.
func (n PlanNames) Text(p Plan) string {
	if len(n) != len(p.Tiles) || len(n) == 0 ||
		slices.ContainsFunc(p.Knobs, func(k Knob) bool { return slices.Contains(n, k.Name) }) {
		return p.String()
	}
	words := make([]string, len(n))
	for k, size := range p.Tiles {
		words[k] = fmt.Sprintf("%s=%d", n[k], size)
	}
	knobs := strings.TrimPrefix(Plan{Knobs: p.Knobs}.String(), "-")
	return strings.Join(words, " ") + knobs
}

// Stored is Text of the text form of a plan; a text that is no plan stays as it is.
func (n PlanNames) Stored(text string) string {
	p, err := ParsePlan(text)
	if err != nil {
		return text
	}
	return n.Text(p)
}

// Parse reads both forms: "64,256,32 threads=1" and "m=64 n=256 k=32 threads=1", with
// names in any order. Of the named form every dimension has to be given.
func (n PlanNames) Parse(text string) (Plan, error) {
	if len(n) == 0 {
		return ParsePlan(text)
	}
	sizes := make([]int64, len(n))
	given := 0
	var knobs []string
	for _, word := range strings.Fields(text) {
		name, value, named := strings.Cut(word, "=")
		k := slices.Index(n, name)
		if !named || k < 0 {
			knobs = append(knobs, word)
			continue
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil || v < 1 {
			return Plan{}, fmt.Errorf("plan %q: %q is not a tile size", text, word)
		}
		if sizes[k] != 0 {
			return Plan{}, fmt.Errorf("plan %q: %s is set twice", text, name)
		}
		sizes[k] = v
		given++
	}
	if given == 0 && len(knobs) > 0 && !strings.Contains(knobs[0], "=") {
		return ParsePlan(text)
	}
	for k, size := range sizes {
		if size == 0 {
			return Plan{}, fmt.Errorf("plan %q has no size of %s; its dimensions are %s", text, n[k], strings.Join(n, ", "))
		}
	}
	p, err := ParsePlan(strings.Join(append([]string{"-"}, knobs...), " "))
	if err != nil {
		return Plan{}, fmt.Errorf("plan %q: its dimensions are %s: %w", text, strings.Join(n, ", "), err)
	}
	p.Tiles = sizes
	return p, nil
}
