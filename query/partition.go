package query

import (
	"encoding/hex"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// A Partition is a module as fusions, with the price of both.
type Partition struct {
	// Fusions in the order in which they run, and how many are distinct.
	Fusions  []Split `json:"fusions"`
	Distinct int     `json:"distinct"`
	// Instructions that stay outside.
	Outside []Outside `json:"outside,omitempty"`
	// Prices of a run of the entry: of every operation alone, and as partitioned.
	Apart Price `json:"apart"`
	Price Price `json:"price"`
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
	j := &Partition{Fusions: []Split{}}
	runs := partition.Executions(split.Module)
	distinct := map[string]bool{}
	for _, f := range split.Module.Fusions() {
		part := newSplit(f, split.Fusions[f], runs[f])
		j.Fusions = append(j.Fusions, part)
		distinct[part.Fingerprint] = true
		j.Apart = j.Apart.plus(part.Apart.times(part.Runs))
		j.Price = j.Price.plus(part.Price.times(part.Runs))
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
		Source:      f.Source().String(),
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
