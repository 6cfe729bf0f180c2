package main

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A chain is maps to be applied one after the other, the first one first. Its JSON
// is a line of a workload, as -workload reads it.
type chain struct {
	ID   string     `json:"id"`
	Maps []chainMap `json:"chain"`
}

// A chainMap is a map as it is written, over d0.. and s0...
type chainMap struct {
	Dims    []variable `json:"dims"`
	Ranges  []variable `json:"syms"`
	Results []string   `json:"exprs"`
	Where   []bound    `json:"constraints"`
}

// A variable has a value in [Lo, Hi].
type variable struct {
	Name string `json:"name"`
	Lo   int64  `json:"lo"`
	Hi   int64  `json:"hi"`
}

// A bound says that Expr is in [Lo, Hi].
type bound struct {
	Expr string `json:"expr"`
	Lo   int64  `json:"lo"`
	Hi   int64  `json:"hi"`
}

// variables are those of the composed map: the dimensions of the first map, then
// the ranges of all maps, the first one's first.
func (c *chain) variables() []variable {
	out := slices.Clone(c.Maps[0].Dims)
	for _, m := range c.Maps {
		out = append(out, m.Ranges...)
	}
	return out
}

// names are d0.. and s0.. for the variables.
func (c *chain) names() (out []string) {
	dims := len(c.Maps[0].Dims)
	for i := range c.variables() {
		if i < dims {
			out = append(out, fmt.Sprint("d", i))
		} else {
			out = append(out, fmt.Sprint("s", i-dims))
		}
	}
	return out
}

// namesOfMLIR are the names that MLIR gives to the variables: it puts the symbols
// of a later map before those of the maps so far.
func (c *chain) namesOfMLIR() map[string]int64 {
	at := int64(len(c.Maps[0].Dims))
	out := numberOf(c.names()[:at])
	after := int64(len(c.variables())) - at
	for _, m := range c.Maps {
		after -= int64(len(m.Ranges))
		for i := range int64(len(m.Ranges)) {
			out[fmt.Sprint("s", after+i)] = at + i
		}
		at += int64(len(m.Ranges))
	}
	return out
}

// sources are the maps for package index.
func (c *chain) sources() (out []index.MapSource) {
	convert := func(vs []variable) (out []index.Variable) {
		for _, v := range vs {
			out = append(out, index.Variable{Name: v.Name, Lo: v.Lo, Hi: v.Hi})
		}
		return out
	}
	for _, m := range c.Maps {
		s := index.MapSource{Dims: convert(m.Dims), Ranges: convert(m.Ranges), Results: m.Results}
		for _, b := range m.Where {
			s.Where = append(s.Where, index.BoundSource{Expr: b.Expr, In: index.Interval{Lo: b.Lo, Hi: b.Hi}})
		}
		out = append(out, s)
	}
	return out
}

// A composed chain says what is right: by its stages, evaluated one after the other.
type composed struct {
	// Dimensions of the first map, then the ranges of all maps.
	vars []variable
	// The maps as they were parsed.
	stages []stage
	// Results of the last map over vars, by substitution; they have no other use than
	// to be counted.
	results []*expression
}

// A stage is one map of a chain: expressions over its dimensions, then its ranges.
type stage struct {
	// Dimensions, which are the results of the stage before.
	dims []variable
	// Number of the ranges.
	ranges int
	// Results.
	results []*expression
	// Constraints.
	where []condition
}

// A condition says that x is in [lo, hi].
type condition struct {
	x      *expression
	lo, hi int64
}

// holds reports whether v satisfies the condition.
func (c condition) holds(v []int64) bool {
	x := c.x.at(v)
	return c.lo <= x && x <= c.hi
}

// compose parses the maps of the chain and substitutes them into each other.
func (c *chain) compose() (*composed, error) {
	if len(c.Maps) == 0 {
		return nil, errors.New("a chain needs a map")
	}
	out := &composed{vars: c.variables()}
	free := int64(0)
	next := func() *expression {
		free++
		return &expression{op: opVar, c: free - 1}
	}
	for range c.Maps[0].Dims {
		out.results = append(out.results, next())
	}
	for i, m := range c.Maps {
		st, err := m.parse()
		if err != nil {
			return nil, fmt.Errorf("map %d: %w", i, err)
		}
		with := slices.Clone(out.results)
		if len(with) != len(m.Dims) {
			return nil, fmt.Errorf("map %d has %d dimensions, the map before it %d results", i, len(m.Dims), len(with))
		}
		for range m.Ranges {
			with = append(with, next())
		}
		out.results = nil
		for _, x := range st.results {
			out.results = append(out.results, x.substitute(with))
		}
		out.stages = append(out.stages, st)
	}
	return out, nil
}

// parse reads the expressions of a map.
func (m *chainMap) parse() (stage, error) {
	var names []string
	for _, v := range slices.Concat(m.Dims, m.Ranges) {
		names = append(names, v.Name)
	}
	// Dimensions come first, as at evaluates them.
	number := numberOf(names)
	out := stage{dims: m.Dims, ranges: len(m.Ranges)}
	for _, b := range m.Where {
		x, err := parse(b.Expr, number)
		if err != nil {
			return out, err
		}
		out.where = append(out.where, condition{x, b.Lo, b.Hi})
	}
	for _, text := range m.Results {
		x, err := parse(text, number)
		if err != nil {
			return out, err
		}
		out.results = append(out.results, x)
	}
	return out, nil
}

// at evaluates the stages at v, a value for each of vars. It is not ok outside of
// the domain: where a constraint does not hold, or a result is not in the range of
// the dimension that it becomes.
func (c *composed) at(v []int64) (results []int64, ok bool) {
	free := len(c.stages[0].dims)
	results = v[:free]
	for _, st := range c.stages {
		for i, d := range st.dims {
			if results[i] < d.Lo || results[i] > d.Hi {
				return nil, false
			}
		}
		// The stage's own variables: what the one before computed, and its ranges.
		in := slices.Concat(results, v[free:free+st.ranges])
		free += st.ranges
		for _, w := range st.where {
			if !w.holds(in) {
				return nil, false
			}
		}
		results = make([]int64, len(st.results))
		for i, x := range st.results {
			results[i] = x.at(in)
		}
	}
	return results, true
}

// A point is a point of the domain, and what the results are there.
type point struct {
	at, want []int64
}

// points are the points of the domain: all, where the box of the variables has at
// most so many points, or else those of a sample with the box's corners.
func (c *composed) points(most int, rnd *rand.Rand) (out []point) {
	n := 1
	for _, v := range c.vars {
		if n <= most {
			n *= int(v.Hi - v.Lo + 1)
		}
	}
	pick := c.counted
	if n > most {
		n = most
		pick = func(i int) []int64 { return c.sampled(i, rnd) }
	}
	for i := range n {
		v := pick(i)
		if want, ok := c.at(v); ok {
			out = append(out, point{v, want})
		}
	}
	return out
}

// newRand is a source of random numbers.
func newRand(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }

// counted is point i of the box.
func (c *composed) counted(i int) (v []int64) {
	for _, x := range c.vars {
		n := int(x.Hi - x.Lo + 1)
		v = append(v, x.Lo+int64(i%n))
		i /= n
	}
	return v
}

// sampled is a corner of the box for small i, then any point.
func (c *composed) sampled(i int, rnd *rand.Rand) (v []int64) {
	corners := 1 << min(len(c.vars), 6)
	for j, x := range c.vars {
		at := x.Lo
		switch {
		case i >= corners:
			at += rnd.Int63n(x.Hi - x.Lo + 1)
		case i>>j&1 == 1:
			at = x.Hi
		}
		v = append(v, at)
	}
	return v
}
