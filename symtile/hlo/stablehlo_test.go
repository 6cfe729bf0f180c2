package hlo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
)

// Each pair is StableHLO and HLO with the same fingerprint.
func TestStableHLOPairs(t *testing.T) {
	datadriven.RunTest(t, "testdata/stablehlo_pairs.txt", func(t *testing.T, d *datadriven.TestData) string {
		left, right, _ := strings.Cut(d.Input, "\n=>\n")
		return comparePair(t, left, right)
	})
}

// comparePair says same, or where the canonical texts part.
func comparePair(t *testing.T, left, right string) string {
	a, err := Parse("f.mlir", []byte(left))
	if err != nil {
		return err.Error()
	}
	b, err := Parse("f.hlo", []byte(right))
	if err != nil {
		return err.Error()
	}
	printed, err := Parse("printed.hlo", []byte(a.String()))
	if err != nil || printed.Entry.Fingerprint() != a.Entry.Fingerprint() {
		t.Errorf("printed as HLO it is another module: %v\n%s", err, a)
	}
	if a.Entry.Fingerprint() == b.Entry.Fingerprint() {
		return "same"
	}
	x := strings.Split(a.Entry.Canonical(), "\n")
	y := strings.Split(b.Entry.Canonical(), "\n")
	for k := range min(len(x), len(y)) {
		if x[k] != y[k] {
			return x[k] + "\n" + y[k]
		}
	}
	return a.Entry.Canonical() + "\n" + b.Entry.Canonical()
}

// pairs are the texts of testdata/stablehlo_pairs.txt.
func pairs(t testing.TB) (all [][2]string) {
	text, err := os.ReadFile("testdata/stablehlo_pairs.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range strings.Split(string(text), "\npair\n")[1:] {
		pair, _, _ = strings.Cut(pair, "\n----\n")
		left, right, _ := strings.Cut(pair, "\n=>\n")
		all = append(all, [2]string{left, right})
	}
	return all
}

// Whole modules as JAX prints them, beside what XLA makes of them.
func TestStableHLOModules(t *testing.T) {
	files, err := filepath.Glob("../../testdata/stablehlo/*.mlir")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d modules, %v", len(files), err)
	}
	for _, f := range files {
		left, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		right, err := os.ReadFile(strings.TrimSuffix(f, ".mlir") + ".hlo")
		if err != nil {
			t.Fatal(err)
		}
		if got := comparePair(t, string(left), string(right)); got != "same" {
			t.Errorf("%s: %s", f, got)
		}
	}
}

func TestStableHLOErrors(t *testing.T) {
	datadriven.RunTest(t, "testdata/stablehlo_errors.txt", func(t *testing.T, d *datadriven.TestData) string {
		m, err := Parse("f.mlir", []byte(d.Input))
		if err != nil {
			return err.Error()
		}
		return m.String()
	})
}

// FuzzStableHLO: whatever is read prints as HLO that means the same, and so
// does its partition.
func FuzzStableHLO(f *testing.F) {
	files, err := filepath.Glob("../../testdata/stablehlo/*.mlir")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	for _, pair := range pairs(f) {
		f.Add(pair[0])
	}
	open, err := os.ReadFile("testdata/open_extents.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range strings.Split(string(open), "\nparse")[1:] {
		_, input, _ = strings.Cut(input, "\n")
		input, _, _ = strings.Cut(input, "\n----\n")
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ParseFor("given", []byte(text), Extents{"?": {3}}) // must end
		m, err := Parse("fuzz", []byte(text))
		if err != nil {
			holdPlace(t, text, err)
			return
		}
		again, err := Parse("again", []byte(m.String()))
		if err != nil || again.Entry.Fingerprint() != m.Entry.Fingerprint() {
			t.Fatalf("%v\n%s", err, m)
		}
	})
}

// holdPlace fails if the place of an error is not one of the text, or if what stands there is not what the error shows.
func holdPlace(t *testing.T, text string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	lines := strings.Split(text, "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Col < 1 || e.Col > len(lines[e.Line-1])+1 {
		t.Fatalf("%v is not in a text of %d lines", e.Position, len(lines))
	}
	next := lines[e.Line-1][e.Col-1:]
	if shown := e.Text[e.Caret:]; shown != "" && shown[0] < utf8.RuneSelf && (next == "" || shown[0] != '?' && shown[0] != next[0]) {
		t.Fatalf("%v shows %q where %q stands", e.Position, shown, next)
	}
}

// The place of an error is right after a look at what comes next has crossed lines.
func TestPlaceAfterLookahead(t *testing.T) {
	for _, text := range []string{
		"\"\n\nfoo", "0\n", "\"\n\nfoo.bar",
		"func.func @f(%a: tensor<4x\n5xf32>, %b: tensor<4x\n5xf32>, ?",
	} {
		_, err := parseStableHLO("fuzz", []byte(text))
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		holdPlace(t, text, err)
	}
}
