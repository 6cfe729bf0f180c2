package tilewright_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The limits that every package keeps. They follow what was measured in bbolt,
// wazero, avo and gonum: 14 to 16 tokens a code line at the 90th percentile, 0.1
// to 0.8 % of the lines over 30 tokens, 18 to 24 % comments, knots of at most 14
// files in a compiler's back end.
const (
	maxFiles        = 30   // files of a package
	maxKnot         = 12   // files that use each other in a circle
	maxTokensP90    = 16   // tokens of a code line, 90th percentile
	maxDenseShare   = 0.01 // share of the code lines with more than denseLine tokens
	minCommentShare = 0.15 // comment lines in comment and code lines
	maxFunctionP50  = 12   // lines of a function, over the whole tree
	maxFunctionP90  = 35
	minCodeLines    = 100 // of a package whose shares of lines say something
)

// knotLimits are the limits of the two code generators, where the lowering of a
// program and the lowerings of its operations call each other.
var knotLimits = map[string]int{"kernels/cpu": 20, "kernels/gpu": 20}

// A shortfall is what a package does not keep yet, as measured on the day that it
// was written down: the tests allow that much and no more. A field that is 0 is
// kept.
type shortfall struct {
	files        int
	knot         int
	tokensP90    int
	commentShare float64
	undocumented int
}

// shortfalls only shrink: a package that keeps a limit loses its field.
var shortfalls = map[string]shortfall{
	"kernels/cpu/internal/amd64": {tokensP90: 19}, // a line of its table is an instruction
}

// selfExplanatory are methods that need no comment: the standard library gives
// them their meaning.
var selfExplanatory = regexp.MustCompile(`\.(Error|String|Unwrap)$`)

// A finding is one number of a package against its limit.
type finding struct {
	dir, what       string
	measured, limit float64
	known           float64  // shortfall; 0: none
	detail          []string // printed with an error
}

// report fails the test if the number exceeds its limit, or, where the package
// has a known shortfall, that one.
func (f finding) report(t *testing.T) {
	t.Helper()
	switch {
	case f.known == 0 && f.measured > f.limit:
		t.Errorf("%s: %s: %.4g, want at most %.4g\n%s", f.dir, f.what, f.measured, f.limit, strings.Join(f.detail, "\n"))
	case f.known != 0 && f.measured > f.known:
		t.Errorf("%s: %s: %.4g; the shortfall that is written down is %.4g, the limit %.4g", f.dir, f.what, f.measured, f.known, f.limit)
	case f.known != 0 && f.measured <= f.limit:
		t.Errorf("%s: %s: %.4g keeps the limit %.4g: delete the field of its shortfall", f.dir, f.what, f.measured, f.limit)
	}
}

func TestFileCounts(t *testing.T) {
	for _, p := range parsed(t) {
		n := len(p.Files)
		t.Logf("%-22s %d files", p.Dir, n)
		finding{
			dir: p.Dir, what: "files",
			measured: float64(n), limit: maxFiles, known: float64(shortfalls[p.Dir].files),
		}.report(t)
	}
}

// TestFileKnots bounds the largest group of files of a package that use each other
// in a circle: what has to be read together to understand one of them.
func TestFileKnots(t *testing.T) {
	packages, err := loadPackages("./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		dir := strings.TrimPrefix(p.Path, module)
		var largest []string
		if knots := filesOf(p).knots(); len(knots) > 0 {
			largest = knots[0]
		}
		limit := maxKnot
		if l, special := knotLimits[dir]; special {
			limit = l
		}
		t.Logf("%-22s %2d files, largest knot %2d (limit %d)", dir, len(p.Files), len(largest), limit)
		finding{
			dir: dir, what: "files of a knot",
			measured: float64(len(largest)), limit: float64(limit), known: float64(shortfalls[dir].knot),
			detail: largest,
		}.report(t)
	}
}

// TestLineDensity bounds the tokens of a line, so that one can be read at a glance.
func TestLineDensity(t *testing.T) {
	var all density
	for _, p := range parsed(t) {
		d := densityOf(p)
		p90 := quantile(d.Tokens, 0.9)
		t.Logf("%-22s tokens a line p50 %d p90 %d mean %.2f, %.2f %% over %d",
			p.Dir, quantile(d.Tokens, 0.5), p90, d.meanTokens(), 100*d.denseShare(), denseLine)
		all.merge(d)
		if len(d.Tokens) < minCodeLines {
			continue
		}
		finding{
			dir: p.Dir, what: "tokens a line, 90th percentile",
			measured: float64(p90), limit: maxTokensP90, known: float64(shortfalls[p.Dir].tokensP90),
		}.report(t)
		finding{
			dir: p.Dir, what: fmt.Sprintf("share of lines over %d tokens", denseLine),
			measured: d.denseShare(), limit: maxDenseShare,
			detail: d.Dense,
		}.report(t)
	}
	t.Logf("%-22s tokens a line p50 %d p90 %d mean %.2f, %.2f %% over %d",
		"all", quantile(all.Tokens, 0.5), quantile(all.Tokens, 0.9), all.meanTokens(), 100*all.denseShare(), denseLine)
}

// TestCommentShare demands comments. A line with code and a comment counts as
// code.
func TestCommentShare(t *testing.T) {
	var all density
	for _, p := range parsed(t) {
		d := densityOf(p)
		share, want := d.commentShare(), minCommentShare
		if known := shortfalls[p.Dir].commentShare; known != 0 {
			want = known
		}
		t.Logf("%-22s %4.1f %% of %5d lines", p.Dir, 100*share, d.CommentLines+len(d.Tokens))
		all.merge(d)
		if len(d.Tokens) >= minCodeLines && share < want {
			t.Errorf("%s: %.1f %% comments, want at least %.1f %%", p.Dir, 100*share, 100*want)
		}
		if want < minCommentShare && share >= minCommentShare {
			t.Errorf("%s: %.1f %% comments keep the limit: delete the field of its shortfall", p.Dir, 100*share)
		}
	}
	t.Logf("%-22s %4.1f %% of %5d lines", "all", 100*all.commentShare(), all.CommentLines+len(all.Tokens))
}

// TestFunctionLengths keeps functions short over the whole tree. None is longer
// than longFunction lines unless its body is one switch.
func TestFunctionLengths(t *testing.T) {
	var all density
	for _, p := range parsed(t) {
		all.merge(densityOf(p))
	}
	for _, long := range all.Long {
		t.Errorf("%s, want at most %d", long, longFunction)
	}
	p50, p90 := quantile(all.Functions, 0.5), quantile(all.Functions, 0.9)
	t.Logf("%d functions, lines p50 %d p90 %d max %d", len(all.Functions), p50, p90, quantile(all.Functions, 1))
	if p50 > maxFunctionP50 || p90 > maxFunctionP90 {
		t.Errorf("functions grow: p50 %d lines, want at most %d; p90 %d, want at most %d", p50, maxFunctionP50, p90, maxFunctionP90)
	}
}

// TestExportsDocumented demands a comment on every exported name that does not
// explain itself.
func TestExportsDocumented(t *testing.T) {
	for _, p := range parsed(t) {
		d := densityOf(p)
		missing := slices.DeleteFunc(d.Undocumented, func(u string) bool {
			return selfExplanatory.MatchString(u)
		})
		t.Logf("%-22s %3d exported, %d undocumented", p.Dir, d.Exported, len(missing))
		finding{
			dir: p.Dir, what: "undocumented exports",
			measured: float64(len(missing)), limit: 0, known: float64(shortfalls[p.Dir].undocumented),
			detail: missing,
		}.report(t)
	}
}

// parsed holds the packages of the tree under all build tags.
func parsed(t *testing.T) []*sourcePackage {
	t.Helper()
	packages, err := parsePackages(".")
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
