package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A shapeList is the flag -shape: extents that the text of a module leaves open. A
// module is read once for each of the values that are given.
type shapeList struct {
	// names in the order of the command line, and the values of each.
	names  []string
	values map[string][][]int64
	// at is the value that is taken now.
	at int
	// used are the names that a module had.
	used map[string]bool
}

// shapeFlag defines -shape.
func (c *call) shapeFlag() {
	c.Var(
		&c.shapes, "shape",
		"`NAME=8x128`, the extents of a parameter that the text leaves open (?); of NAME=8x128,16x128 each is taken in turn;\n      ?=8 is every extent that is left open",
	)
}

// String prints nothing: there is no default.
func (s *shapeList) String() string { return "" }

// Set parses NAME=8x128,16x128.
func (s *shapeList) Set(text string) error {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write it as NAME=8x128")
	}
	if s.values == nil {
		s.values = map[string][][]int64{}
	}
	if s.values[name] != nil {
		return fmt.Errorf("%s is given twice; several values are written as %s=8,16", name, name)
	}
	for _, value := range strings.Split(list, ",") {
		dims, err := parseExtents(value)
		if err != nil {
			return err
		}
		if name == "?" && len(dims) != 1 {
			return fmt.Errorf("?=%s: one number for every extent that is open", value)
		}
		s.values[name] = append(s.values[name], dims)
	}
	s.names = append(s.names, name)
	if n := len(s.values[name]); n > 1 && s.count() > 1 && n != s.count() {
		return fmt.Errorf("%s has %d values, and another parameter %d; those of all are taken together", name, n, s.count())
	}
	return nil
}

// parseExtents parses 8x128; the parameter's rank is checked where it is known.
func parseExtents(text string) (dims []int64, err error) {
	for _, word := range strings.Split(text, "x") {
		d, err := strconv.ParseInt(word, 10, 64)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("%q in %q is not an extent", word, text)
		}
		dims = append(dims, d)
	}
	return dims, nil
}

// count is how many values are taken in turn, at least 1.
func (s *shapeList) count() int {
	n := 1
	for _, values := range s.values {
		n = max(n, len(values))
	}
	return n
}

// given are the extents that are taken now.
func (s *shapeList) given() hlo.Extents {
	if len(s.names) == 0 {
		return nil
	}
	e := hlo.Extents{}
	for name, values := range s.values {
		e[name] = values[min(s.at, len(values)-1)]
	}
	return e
}

// label is what is taken now, as on the command line: arg0=8x128; "" without the flag.
func (s *shapeList) label() string {
	var words []string
	for _, name := range s.names {
		values := s.values[name]
		text := strings.ReplaceAll(strings.Trim(fmt.Sprint(values[min(s.at, len(values)-1)]), "[]"), " ", "x")
		words = append(words, name+"="+text)
	}
	return strings.Join(words, " ")
}

// take leaves out the modules that no value changes after the first, and notes which
// names the others have.
func (s *shapeList) take(modules []query.Part) []query.Part {
	if s.used == nil {
		s.used = map[string]bool{}
	}
	for _, m := range modules {
		for _, name := range m.Open {
			s.used["?"] = true
			s.used[name] = true
		}
	}
	if s.at == 0 {
		return modules
	}
	return slices.DeleteFunc(modules, func(m query.Part) bool { return len(m.Open) == 0 })
}

// unused is the error of a name that no module had.
func (s *shapeList) unused() error {
	for _, name := range s.names {
		if !s.used[name] {
			open := slices.Sorted(maps.Keys(s.used))
			open = slices.DeleteFunc(open, func(name string) bool { return name == "?" })
			return usagef(
				"-shape %s: the module has no such parameter with an extent that is open; it has %s", name,
				cmp.Or(strings.Join(open, ", "), "none"),
			)
		}
	}
	return nil
}

// eachShape does something for each value of -shape, which is printed before where
// there are several. A miss of one is a miss of all.
func (c *call) eachShape(do func() error) (missed error) {
	n := c.shapes.count()
	for c.shapes.at = range n {
		if n > 1 && !c.json {
			fmt.Fprintf(c.out, "-shape %s\n", c.shapes.label())
		}
		err := do()
		if errors.Is(err, errMiss) {
			missed, err = err, nil
		}
		if err != nil {
			return err
		}
		if n > 1 && !c.json && c.shapes.at < n-1 {
			fmt.Fprintln(c.out)
		}
	}
	return missed
}
