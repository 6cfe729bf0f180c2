package report

import (
	"fmt"
	"math"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A group is the fusions of a page that differ in extents only, which have one row and one
// card.
type group struct {
	// Sections of the fusions, in the order of the page.
	Sections []*fusionSection
}

// grouped are the fusions by structure, in the order of the first of each. Winners of
// different revisions of the code generator are not compared with each other, and a fusion
// whose text is not known, as in a snapshot, is alone.
func grouped(all []*fusionSection) (groups []*group) {
	type key struct {
		structure cache.Fingerprint
		codegen   string
	}
	of := map[key]*group{}
	for _, f := range all {
		k := key{f.Fusion, f.Codegen}
		if f.Canonical != "" {
			k.structure = cache.StructureOf(f.Canonical).Print
		}
		g := of[k]
		if g == nil {
			g = &group{}
			of[k] = g
			groups = append(groups, g)
		}
		g.Sections = append(g.Sections, f)
	}
	return groups
}

// firstShape is the shape of the first result of a canonical text; "" where it is none.
func firstShape(canonical string) string {
	m, err := hlo.Parse("canonical", []byte(canonical))
	if err != nil {
		return ""
	}
	if arrays := m.Entry.Root.Shape.Arrays(); len(arrays) > 0 {
		return arrays[0].String()
	}
	return ""
}

// First is the section of the first fusion.
func (g *group) First() *fusionSection { return g.Sections[0] }

// Several reports whether there is more than one.
func (g *group) Several() bool { return len(g.Sections) > 1 }

// ID of the card: a section has that of its fusion.
func (g *group) ID() string {
	if g.Several() {
		return "group-" + g.First().ID
	}
	return g.First().ID
}

// Name of the group.
func (g *group) Name() string {
	if g.Several() {
		return fmt.Sprintf("%s and %d of its structure", g.First().Name, len(g.Sections)-1)
	}
	return g.First().Name
}

// Times are the least and the most seconds of the winners.
func (g *group) Times() string {
	least, most := math.Inf(1), 0.0
	for _, f := range g.Sections {
		least, most = min(least, f.Seconds), max(most, f.Seconds)
	}
	if least == most {
		return Seconds(least)
	}
	return Seconds(least) + " to " + Seconds(most)
}

// Speed is the geometric mean of the speed-ups, in which each fusion counts alike.
func (g *group) Speed() float64 {
	logs := 0.0
	for _, f := range g.Sections {
		logs += math.Log(math.Max(f.Speedup[0], 1e-9))
	}
	return math.Exp(logs / float64(len(g.Sections)))
}

// Speeds are the least and the most of them.
func (g *group) Speeds() string {
	least, most := math.Inf(1), 0.0
	for _, f := range g.Sections {
		least, most = min(least, f.Speedup[0]), max(most, f.Speedup[0])
	}
	return fmt.Sprintf("each %.2f–%.2f", least, most)
}

// Regret is the largest; −1 where one is unknown.
func (g *group) Regret() float64 {
	most := 0.0
	for _, f := range g.Sections {
		if f.Stated() < 0 {
			return -1
		}
		most = max(most, f.Stated())
	}
	return most
}

// Plan is that of the first fusion, and says whether others have another one.
func (g *group) Plan() string {
	for _, f := range g.Sections {
		if f.Record.Plan != g.First().Record.Plan {
			return g.First().Record.Plan + ", and others"
		}
	}
	return g.First().Record.Plan
}

// Tried counts the plans that were tried together.
func (g *group) Tried() (n int) {
	for _, f := range g.Sections {
		n += f.Tried
	}
	return n
}

// Provisional counts the races that are not over.
func (g *group) Provisional() (n int) {
	for _, f := range g.Sections {
		if f.Standing != "" {
			n++
		}
	}
	return n
}
