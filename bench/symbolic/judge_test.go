package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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
		points := what.points(100, newRand(1))
		if diff := compare(e.answers["c"], points); (diff == "") != right {
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

// TestCheck checks a few chains on all processors.
func TestCheck(t *testing.T) {
	s := &session{chains: 60, seed: 1, points: 300, alone: true}
	var out strings.Builder
	if err := s.run(&out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "60 chains of seed 1") || !strings.Contains(out.String(), " 0 wrong, 0 longer") {
		t.Error(out.String())
	}
}

// workload is two chains, and answers what the simplifier makes of them.
const (
	workload = `{"id": "split", "chain": [{"dims": [{"name": "d0", "lo": 0, "hi": 15}, {"name": "d1", "lo": 0, "hi": 7}], "exprs": ["(d0 * 8 + d1) floordiv 8", "(d0 * 8 + d1) mod 8"]}]}
{"id": "rows", "chain": [{"dims": [{"name": "x", "lo": 0, "hi": 127}], "syms": [{"name": "k", "lo": 0, "hi": 3}], "exprs": ["x * 4 + k"], "constraints": [{"expr": "x", "lo": 0, "hi": 99}]}, {"dims": [{"name": "i", "lo": 0, "hi": 511}], "exprs": ["i floordiv 100", "i mod 100"]}]}
`
	answers = `{"engine":"tilewright","id":"split","pieces":1,"exprs":["d0","d1"],"vars":[[0,15],[0,7]],"ncons":0,"ops":0}
{"engine":"tilewright","id":"rows","pieces":1,"exprs":["d0 floordiv 25","(d0 mod 25) * 4 + s0"],"vars":[[0,99],[0,3]],"ncons":0,"ops":4}
`
)

// TestWorkload judges the chains of a file, and writes answers and times.
func TestWorkload(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	s := &session{
		workload: file("work.jsonl"), answers: file("out.jsonl"), times: file("out.tsv"),
		points: 100, budget: 100 * time.Microsecond, rounds: 1, dir: file("judge"),
	}
	if err := os.WriteFile(s.workload, []byte(workload), 0o666); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := s.run(&out); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^tilewright +[0-9]+ +[0-9]+ +[0-9]+$`).MatchString(out.String()) {
		t.Errorf("no times in\n%s", out.String())
	}
	if got, _ := os.ReadFile(s.answers); string(got) != answers {
		t.Errorf("answers:\n%s", got)
	}
	got, _ := os.ReadFile(s.times)
	if !regexp.MustCompile(`(?m)^split\t[0-9]+\t[0-9]+\t[0-9.]+\t[0-9.]+$`).Match(got) {
		t.Errorf("times:\n%s", got)
	}
}

// TestWorkloadErrors: a bad workload or driver is an error that says where it is.
func TestWorkloadErrors(t *testing.T) {
	good := strings.SplitAfter(workload, "\n")[0]
	for _, c := range []struct{ text, driver, want string }{
		{good + strings.ReplaceAll(good, "(d0 * 8", "(d7 * 8"), "", "work.jsonl: split: map 0: .*neither a number nor a variable"},
		{`{"id": "nothing", "chain": []}`, "", "nothing: a chain needs a map"},
		{`{"id": "two", "chain": [{"exprs": ["1"]}, {"exprs": ["1"]}]}`, "", "two: map 1 has 0 dimensions, the map before it 1 results"},
		{"", "", "work.jsonl has no chains"},
		{"{", "", "work.jsonl: unexpected EOF"},
		{good, "./no-such-driver", "no-such-driver"},
	} {
		dir := t.TempDir()
		s := &session{workload: filepath.Join(dir, "work.jsonl"), isl: c.driver, points: 100, dir: dir}
		if err := os.WriteFile(s.workload, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		err := s.run(io.Discard)
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}
