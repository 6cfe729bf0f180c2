package main

import (
	"math/rand"
	"strings"
	"testing"
)

// TestCount counts operations as they are written and in the best way.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		text           string
		written, least int
	}{
		{"d0", 0, 0},
		{"-d0", 1, 1},
		{"-d0 + 27", 1, 1},
		{"(-d0) - (d1 floordiv 8) + 27", 3, 3},
		{"d0 * -1 + d1", 1, 1},
		{"d0 * 8 + d1 * 8", 3, 2},
		{"d0 + d0 + 3 - 3", 1, 1},
		{"(d0 * 1 + (d1 * (1)) + (0)) floordiv 4", 2, 2},
		{"d0 - (d0 floordiv 8) * 8", 3, 1},
		{"d0 floordiv 4 - (d0 floordiv 12) * 3", 4, 2},
		{"(d0 - 3) ceildiv 4", 2, 2},
		{"(d0 + 1 - ((d0 + 1) floordiv 5) * 5) floordiv 2 + 1", 7, 4},
	} {
		e, err := parse(c.text, numberOf([]string{"d0", "d1"}))
		if err != nil {
			t.Fatal(err)
		}
		if w, l := e.written(), e.least(); w != c.written ||
			l != c.least {
			t.Errorf("%s: %d operations, at least %d; want %d, %d", c.text, w, l, c.written, c.least)
		}
	}
}

// TestParseErrors: what an engine prints and nobody understands is an error.
func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", "d0 +", "d0 floordiv d1", "d0 mod 0", "(d0", "d0 d1", "x"} {
		if _, err := parse(text, numberOf([]string{"d0", "d1"})); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestWrongAnswersAreSeen: an answer that is off at one point of the domain is wrong,
// one that is off outside of it is right.
func TestWrongAnswersAreSeen(t *testing.T) {
	c := chain{ID: "c", Maps: []chainMap{
		{Dims: []variable{{"d0", 0, 63}}, Results: []string{"d0 floordiv 8", "d0 mod 8"}},
		{Dims: []variable{{"a", 0, 6}, {"b", 0, 7}}, Results: []string{"a * 8 + b"}},
	}}
	what, err := c.compose()
	if err != nil {
		t.Fatal(err)
	}
	for text, right := range map[string]bool{
		"d0":                           true,
		"d0 + (d0 floordiv 56)":        true,
		"d0 + (d0 floordiv 55)":        false,
		"d0 mod 55 + (d0 floordiv 56)": false,
	} {
		e := newEngine("e", "")
		if err := e.answer("c", []string{text}, numberOf(c.names())); err != nil {
			t.Fatal(err)
		}
		points := what.points(
			100,
			rand.New(rand.NewSource(1)),
		)
		if diff := what.compare(e.answers["c"], points); (diff == "") != right {
			t.Errorf("%s: %q", text, diff)
		}
	}
}

// TestJudge judges a few chains without other engines: nothing is wrong, nothing is
// longer than typed.
func TestJudge(t *testing.T) {
	s := &session{chains: 40, seed: 1, points: 300, dir: t.TempDir()}
	var out strings.Builder
	if err := s.run(&out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "longer than typed: 0") {
		t.Error(out.String())
	}
}

// TestNamesOfMLIR: MLIR puts symbols of later maps first.
func TestNamesOfMLIR(t *testing.T) {
	c := chain{Maps: []chainMap{
		{Dims: []variable{{"d0", 0, 1}}, Ranges: []variable{{"s0", 0, 1}}},
		{Ranges: []variable{{"s0", 0, 1}, {"s1", 0, 1}}},
	}}
	names := c.namesOfMLIR()
	for name, number := range map[string]int64{"d0": 0, "s0": 2, "s1": 3, "s2": 1} {
		if names[name] != number {
			t.Errorf("%s is variable %d, not %d", name, names[name], number)
		}
	}
}
