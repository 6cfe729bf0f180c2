package kernels

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile"
)

// A Plan is one way to run a program: tile sizes and knobs. Its text form is "64,32,16
// threads=2": sizes, then knobs sorted by name. A program without dimensions has the
// sizes "-".
type Plan struct {
	Tiles symtile.Tiling
	// Knobs are sorted by name without duplicates. A knob that is absent has the
	// backend's default.
	Knobs []Knob
}

// A Knob is a launch choice with a small integer value, e.g. threads=2.
type Knob struct {
	Name  string
	Value int64
}

// String is the text form, which ParsePlan reads.
func (p Plan) String() string { return string(p.appendTo(nil)) }

// appendTo appends the text form.
func (p Plan) appendTo(b []byte) []byte {
	for k, t := range p.Tiles {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, t, 10)
	}
	if len(p.Tiles) == 0 {
		b = append(b, '-')
	}
	for _, k := range p.Knobs {
		b = append(append(append(b, ' '), k.Name...), '=')
		b = strconv.AppendInt(b, k.Value, 10)
	}
	return b
}

// ParsePlan reads "64,32,16 threads=2".
func ParsePlan(s string) (Plan, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return Plan{}, fmt.Errorf("an empty plan; expected tile sizes such as 64,32,16 threads=2")
	}
	var p Plan
	if words[0] != "-" {
		for _, size := range strings.Split(words[0], ",") {
			v, err := strconv.ParseInt(size, 10, 64)
			if err != nil || v < 1 {
				return Plan{}, fmt.Errorf("plan %q: %q is not a tile size", s, size)
			}
			p.Tiles = append(p.Tiles, v)
		}
	}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		v, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil || !knobName(name) {
			return Plan{}, fmt.Errorf("plan %q: %q is not a knob such as threads=2", s, word)
		}
		if p.has(name) {
			return Plan{}, fmt.Errorf("plan %q: %s is set twice", s, name)
		}
		p = p.With(name, v)
	}
	return p, nil
}

func knobName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && c != '_' &&
			(c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (p Plan) find(name string) (int, bool) {
	return slices.BinarySearchFunc(p.Knobs, name, func(k Knob, name string) int {
		return strings.Compare(k.Name, name)
	})
}

func (p Plan) has(name string) bool {
	_, ok := p.find(name)
	return ok
}

// Knob returns the value of the named knob, or def when absent.
func (p Plan) Knob(name string, def int64) int64 {
	for k := range p.Knobs { // few: a binary search takes longer
		if p.Knobs[k].Name == name {
			return p.Knobs[k].Value
		}
	}
	return def
}

// With returns p with the knob set.
func (p Plan) With(name string, v int64) Plan {
	k, ok := p.find(name)
	knobs := slices.Clone(p.Knobs)
	if ok {
		knobs[k].Value = v
	} else {
		knobs = slices.Insert(knobs, k, Knob{name, v})
	}
	return Plan{Tiles: p.Tiles, Knobs: knobs}
}

// Compare orders plans by the length of their text, then by the text: the
// smallest encoding, which breaks ties between equally good plans.
func (p Plan) Compare(q Plan) int {
	n := 0 // what both texts begin with decides nothing
	for n < min(len(p.Tiles), len(q.Tiles))-1 && p.Tiles[n] == q.Tiles[n] {
		n++
	}
	p.Tiles, q.Tiles = p.Tiles[n:], q.Tiles[n:]
	var x, y [128]byte // longer texts are allocated
	a := p.appendTo(x[:0])
	b := q.appendTo(y[:0])
	return cmp.Or(
		cmp.Compare(len(a), len(b)),
		bytes.Compare(a, b),
	)
}
