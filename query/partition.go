package query

import (
	"encoding/hex"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/partition"
)

// A Partition is a module as fusions, with the price of both.
type Partition struct {
	// Fusions in the order in which they run, and how many are distinct.
	Fusions  []Split `json:"fusions"`
	Distinct int     `json:"distinct"`
	// Structures of the distinct fusions, in the order of the first fusion of each.
	Structures []Structure `json:"structures"`
	// Instructions that stay outside.
	Outside []Outside `json:"outside,omitempty"`
	// Prices of a run of the entry: of every operation alone, and as partitioned.
	Apart Price `json:"apart"`
	Price Price `json:"price"`
}

// A Structure is the fusions that differ in extents only, as the updates of an
// optimiser do: a run of tune with a budget races one of them, and its winner for the
// others.
type Structure struct {
	// Name of the first fusion.
	Name string `json:"name"`
	// Fusions, and how many of them are distinct.
	Fusions  int `json:"fusions"`
	Distinct int `json:"distinct"`
	// Shapes of the first result, each once.
	Shapes []string `json:"shapes"`
	// Price of all in a run of the entry.
	Price Price `json:"price"`
}

// add counts a fusion; isNew says that it is like none before.
func (s *Structure) add(f *hlo.Computation, price Price, isNew bool) {
	s.Fusions++
	s.Price = s.Price.plus(price)
	if !isNew {
		return
	}
	s.Distinct++
	if text := FirstShape(f); !slices.Contains(s.Shapes, text) {
		s.Shapes = append(s.Shapes, text)
	}
}

// FirstShape is the shape of a fusion's first result, by which those of one structure are
// told apart: "f32[64,48]".
func FirstShape(f *hlo.Computation) string {
	shape := f.Root.Shape
	if len(shape.Tuple) > 0 {
		shape = shape.Tuple[0]
	}
	return shape.String()
}

// A Split is one fusion of a partition.
type Split struct {
	// Name, and fingerprint of the canonical form.
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	// Source is the operation and the line of the user's program that it comes from;
	// "" if unknown.
	Source string `json:"source,omitempty"`
	// Runs in a run of the entry; unknown says that a loop around it has no known
	// trip count, or a conditional chooses it, and counts once.
	Runs    float64 `json:"runs"`
	Unknown bool    `json:"unknown,omitempty"`
	// Instructions of the fusion.
	Instrs int `json:"instrs"`
	// Prices of one run: of every operation alone, and of the fusion.
	Apart Price `json:"apart"`
	Price Price `json:"price"`
	// Decisions.
	Why []string `json:"why,omitempty"`
}

// A Price is a price: bytes moved, flop, kernels.
type Price struct {
	Bytes    float64 `json:"bytes"`
	Flop     float64 `json:"flop"`
	Launches float64 `json:"launches"`
}

// newPrice converts n times a price.
func newPrice(p partition.Price, n float64) Price {
	return Price{n * p.Bytes, n * p.Work, n * p.Launches}
}

// plus is the sum.
func (a Price) plus(b Price) Price {
	return Price{a.Bytes + b.Bytes, a.Flop + b.Flop, a.Launches + b.Launches}
}

// NewPartition converts a partition.
func NewPartition(split *partition.Result) *Partition {
	j := &Partition{Fusions: []Split{}, Structures: []Structure{}}
	runs := partition.Executions(split.Module)
	callers := split.Module.Callers()
	distinct := map[string]bool{}
	structures := map[cache.Fingerprint]int{}
	for _, f := range split.Module.Fusions() {
		part := newSplit(f, split.Fusions[f], runs[f])
		part.Source, _ = origin.First(f.Sources(callers[f]))
		j.Fusions = append(j.Fusions, part)
		price := part.Price.times(part.Runs)
		j.Apart = j.Apart.plus(part.Apart.times(part.Runs))
		j.Price = j.Price.plus(price)
		print := cache.StructureOf(f.Canonical()).Print
		at, known := structures[print]
		if !known {
			at = len(j.Structures)
			structures[print] = at
			j.Structures = append(j.Structures, Structure{Name: f.Name})
		}
		j.Structures[at].add(f, price, !distinct[part.Fingerprint])
		distinct[part.Fingerprint] = true
	}
	j.Distinct = len(distinct)
	j.Outside = NewOutside(split.Outside)
	return j
}

// times is n times the price.
func (a Price) times(n float64) Price {
	return Price{n * a.Bytes, n * a.Flop, n * a.Launches}
}

// newSplit converts a fusion; of is nil for one that was in the file.
func newSplit(f *hlo.Computation, of *partition.Fusion, runs partition.Execution) Split {
	print := f.Fingerprint()
	j := Split{
		Name:        f.Name,
		Fingerprint: hex.EncodeToString(print[:]),
		Runs:        runs.Times,
		Unknown:     runs.Unknown,
		Instrs:      len(f.Instrs) - len(f.Params),
	}
	if of != nil {
		j.Apart, j.Price = newPrice(of.Apart, 1), newPrice(of.Price, 1)
		j.Why = of.Reasons
	}
	return j
}
