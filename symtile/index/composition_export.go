package index

import (
	"fmt"
	"strings"
)

// ISL writes the maps as isl_pw_multi_aff texts, one a map, so that isl can be
// asked the same question. Ranges of later maps are passed through the earlier
// ones as p0, p1, …, for isl's composition has nothing else for them.
func (c *Composition) ISL() []string {
	pending := 0
	for _, l := range c.maps {
		pending += l.ranges
	}
	var out []string
	at := len(c.maps[0].in) // in c.vars: the map's own ranges, then those pending
	for i := range c.maps {
		l := &c.maps[i]
		pending -= l.ranges
		own := c.vars[at : at+l.ranges]
		later := c.vars[at+l.ranges:]
		at += l.ranges
		pass := numbered("p", pending)
		where := l.box(own)
		for j, v := range later {
			if i == 0 {
				where = append(where, between(v.Lo, pass[j], v.Hi))
			}
		}
		text := l.texts(islSyntax)
		for _, b := range l.where {
			where = append(
				where,
				between(b.in.Lo, text[b.x], b.in.Hi),
			)
		}
		var results []string
		for _, x := range l.results {
			results = append(results, text[x])
		}
		out = append(
			out,
			fmt.Sprintf("{ [%s] -> [%s] : %s }", strings.Join(append(l.names(), pass...), ","),
				strings.Join(append(results, pass...), ","), strings.Join(where, " and ")),
		)
	}
	return out
}

// An MLIRMap is a map of a chain as MLIR's affine_map texts.
type MLIRMap struct {
	Map    string     // its results
	Vars   []Interval // of its dimensions, then its symbols
	Where  string     // the constrained expressions as results
	Bounds []Interval // of those
}

// MLIR writes the maps as affine_map texts, ranges being symbols.
func (c *Composition) MLIR() []MLIRMap {
	var out []MLIRMap
	at := len(c.maps[0].in)
	for i := range c.maps {
		l := &c.maps[i]
		m := MLIRMap{
			Vars: append([]Interval(nil), l.in...),
		}
		for _, v := range c.vars[at : at+l.ranges] {
			m.Vars = append(m.Vars, Interval{v.Lo, v.Hi})
		}
		at += l.ranges
		text := l.texts(mlirSyntax)
		var results, where []string
		for _, x := range l.results {
			results = append(results, text[x])
		}
		for _, b := range l.where {
			where = append(where, text[b.x])
			m.Bounds = append(m.Bounds, b.in)
		}
		head := fmt.Sprintf(
			"affine_map<(%s)[%s] -> ",
			strings.Join(numbered("d", len(l.in)), ", "),
			strings.Join(numbered("s", l.ranges), ", "),
		)
		m.Map = head + "(" + strings.Join(results, ", ") + ")>"
		m.Where = head + "(" + strings.Join(where, ", ") + ")>"
		out = append(out, m)
	}
	return out
}

func numbered(stem string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", stem, i)
	}
	return names
}

func between(lo int64, x string, hi int64) string {
	return fmt.Sprintf("%d <= %s <= %d", lo, x, hi)
}

// names are those of the link's dimensions and ranges, d0.. and s0...
func (l *link) names() []string {
	return append(
		numbered("d", len(l.in)),
		numbered("s", l.ranges)...,
	)
}

// box states the bounds of the link's variables.
func (l *link) box(ranges []Variable) (out []string) {
	for i, name := range l.names() {
		if i < len(l.in) {
			out = append(
				out,
				between(l.in[i].Lo, name, l.in[i].Hi),
			)
		} else {
			v := ranges[i-len(l.in)]
			out = append(out, between(v.Lo, name, v.Hi))
		}
	}
	return out
}

// A syntax is how another program writes the operations of a script: %[1]s and
// %[2]s are the operands.
type syntax map[scriptCode]string

var (
	islSyntax = syntax{
		scriptAdd: "(%[1]s + %[2]s)", scriptSub: "(%[1]s - %[2]s)", scriptMul: "(%[1]s * %[2]s)",
		scriptDiv: "floor((%[1]s)/%[2]s)", scriptCeilDiv: "ceil((%[1]s)/%[2]s)", scriptMod: "((%[1]s) mod %[2]s)",
		scriptMin: "min(%[1]s, %[2]s)", scriptMax: "max(%[1]s, %[2]s)",
	}
	mlirSyntax = syntax{
		scriptAdd: "(%[1]s + %[2]s)", scriptSub: "(%[1]s - %[2]s)", scriptMul: "(%[1]s * %[2]s)",
		scriptDiv: "(%[1]s floordiv %[2]s)", scriptCeilDiv: "(%[1]s ceildiv %[2]s)", scriptMod: "(%[1]s mod %[2]s)",
		scriptMin: "min(%[1]s, %[2]s)", scriptMax: "max(%[1]s, %[2]s)",
	}
)

// texts writes every value of the link's script.
func (l *link) texts(s syntax) []string {
	names := l.names()
	out := make([]string, len(l.ops))
	for i, op := range l.ops {
		switch op.code {
		case scriptConst:
			out[i] = fmt.Sprint(op.c)
		case scriptVar:
			out[i] = names[op.c]
		default:
			out[i] = fmt.Sprintf(
				s[op.code],
				out[op.x],
				out[op.y],
			)
		}
	}
	return out
}
