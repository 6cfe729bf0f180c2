package main

import (
	"fmt"
	"math/rand"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A chain is maps to be applied one after the other, the first one first. Its JSON
// is a line of a workload, as bench-symbolic reads it.
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

// A composed chain is its maps put into each other by substitution, over the
// variables of the chain. It says what is right.
type composed struct {
	// Dimensions of the first map, then the ranges of all maps.
	vars []variable
	// Results of the last map, over vars.
	results []*expression
	// Constraints of all maps, and the ranges of dimensions of later maps.
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

// compose substitutes the maps of the chain into each other.
func (c *chain) compose() (*composed, error) {
	out := &composed{vars: c.variables()}
	free := 0
	for i := range c.Maps[0].Dims {
		out.results = append(out.results, &expression{op: opVar, c: int64(i)})
		free++
	}
	for i, m := range c.Maps {
		with := slices.Clone(out.results)
		for j, d := range m.Dims {
			if i > 0 {
				out.where = append(out.where, condition{with[j], d.Lo, d.Hi})
			}
		}
		for range m.Ranges {
			with = append(with, &expression{op: opVar, c: int64(free)})
			free++
		}
		if err := out.apply(m, with); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// apply puts with for the variables of m.
func (c *composed) apply(m chainMap, with []*expression) error {
	var names []string
	for _, v := range slices.Concat(m.Dims, m.Ranges) {
		names = append(names, v.Name)
	}
	number := numberOf(names)
	for _, b := range m.Where {
		x, err := parse(b.Expr, number)
		if err != nil {
			return err
		}
		c.where = append(c.where, condition{x.substitute(with), b.Lo, b.Hi})
	}
	c.results = nil
	for _, text := range m.Results {
		x, err := parse(text, number)
		if err != nil {
			return err
		}
		c.results = append(c.results, x.substitute(with))
	}
	return nil
}

// points are the points of the domain: all, where the box of the variables has at
// most so many points, or else those of a sample with the box's corners.
func (c *composed) points(most int, rnd *rand.Rand) (out [][]int64) {
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
		if !slices.ContainsFunc(c.where, func(w condition) bool { return !w.holds(v) }) {
			out = append(out, v)
		}
	}
	return out
}

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
	for j, x := range c.vars {
		switch {
		case i >= 1<<min(len(c.vars), 6):
			v = append(
				v,
				x.Lo+rnd.Int63n(x.Hi-x.Lo+1),
			)
		case i>>j&1 == 0:
			v = append(v, x.Lo)
		default:
			v = append(v, x.Hi)
		}
	}
	return v
}
