package index

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestText runs the cases under testdata/expr, testdata/map and
// testdata/constraint. A case names the rules it must see with expect=; a rule
// of the table that no case expects is an error.
func TestText(t *testing.T) {
	expected := map[string]bool{}
	for _, dir := range []string{"expr", "map", "constraint"} {
		datadriven.Walk(t, filepath.Join("testdata", dir), func(t *testing.T, path string) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				r := NewRing()
				out := runCase(r, d)
				checkExpected(t, r, d, expected)
				return strings.TrimRight(out, "\n") + "\n"
			})
		})
	}
	for _, rule := range Rules() {
		if !expected[rule.Name] {
			t.Errorf("no case expects rule %s: %s", rule.Name, rule.Identity)
		}
	}
}

func checkExpected(t *testing.T, r *Ring, d *datadriven.TestData, expected map[string]bool) {
	for _, arg := range d.CmdArgs {
		if arg.Key != "expect" {
			continue
		}
		for _, name := range arg.Vals {
			expected[name] = true
			if !slices.Contains(r.Fired(), name) {
				d.Fatalf(t, "rule %s did not fire, only %v", name, r.Fired())
			}
		}
	}
}

// runCase is the verbs of the text cases: simplify, map, compose, constraint,
// implies, and the refusals, which print an error.
func runCase(r *Ring, d *datadriven.TestData) string {
	vars, err := caseVars(r, d)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(d.Input), "\n")
	switch d.Cmd {
	case "simplify":
		return simplifyCase(r, d.Input, vars)
	case "map":
		m, err := r.ParseMap(d.Input)
		if err != nil {
			return err.Error()
		}
		out := m.apply(caseArg(d, "op"), caseArg(d, "which"))
		if caseArg(d, "op") == "" {
			if same, diff, err := m.Equal(out); err == nil && !same {
				return out.String() + "\nbut " + diff
			}
		}
		return out.String()
	case "compose":
		return composeCase(r, lines)
	case "constraint":
		c, err := r.ParseConstraint(d.Input, vars)
		if err != nil {
			return err.Error()
		}
		return c.Simplify().String()
	case "implies":
		return impliesCase(r, lines, vars)
	}
	return "unknown verb " + d.Cmd
}

func simplifyCase(r *Ring, text string, vars map[string]Expr) string {
	e, err := r.Parse(strings.TrimSpace(text), vars)
	if err != nil {
		return err.Error()
	}
	out := e.String() + "\nin " + e.Range().String()
	if m, res := e.Congruence(); m > 1 {
		out += fmt.Sprintf(", %d mod %d", res, m)
	}
	return out
}

func composeCase(r *Ring, lines []string) string {
	first, err := r.ParseMap(lines[0])
	if err != nil {
		return err.Error()
	}
	for _, line := range lines[1:] {
		second, err := r.ParseMap(line)
		if err != nil {
			return err.Error()
		}
		first = Compose(first, second)
	}
	return first.Simplify().String()
}

func impliesCase(r *Ring, lines []string, vars map[string]Expr) string {
	c, err := r.ParseConstraint(lines[0], vars)
	if err != nil {
		return err.Error()
	}
	d, err := r.ParseConstraint(lines[1], vars)
	if err != nil {
		return err.Error()
	}
	return c.Implies(d).String()
}

func caseArg(d *datadriven.TestData, key string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == key {
			return strings.Join(arg.Vals, ",")
		}
	}
	return ""
}

// caseVars reads arguments such as d0=0..7; s names are tile sizes.
func caseVars(r *Ring, d *datadriven.TestData) (map[string]Expr, error) {
	vars := map[string]Expr{}
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) != 1 || !strings.Contains(arg.Vals[0], "..") {
			continue
		}
		lo, hi, _ := strings.Cut(arg.Vals[0], "..")
		v := Variable{Name: arg.Key}
		var err1, err2 error
		v.Lo, err1 = strconv.ParseInt(lo, 10, 64)
		v.Hi, err2 = strconv.ParseInt(hi, 10, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("bad range %s", arg.Vals[0])
		}
		if strings.HasPrefix(arg.Key, "s") {
			v.Role = RoleTileSize
		}
		vars[arg.Key] = r.Var(v)
	}
	return vars, nil
}

// dividend is a sum such as rules meet: multiples, small rests, inner floors.
func (g *generator) dividend() naiveExpr {
	x := naiveExpr{
		g.vars[0].r.Const(0),
		func([]int64) int64 { return 0 },
		"0",
	}
	for range 1 + g.rnd.Intn(3) {
		y := g.expr(g.rnd.Intn(3))
		k := []int64{
			1, 1, -1, 2, -2, 3, 4, 6, 8, 12,
		}[g.rnd.Intn(10)]
		was := x
		x = naiveExpr{
			x.e.Add(y.e.Scale(k)),
			func(v []int64) int64 { return was.f(v) + k*y.f(v) },
			fmt.Sprintf("%s + %s * %d", x.text, y.text, k),
		}
	}
	return x
}

// TestCanonicity counts functions that have more than one normal form among
// random expressions over one box. The ceiling only goes down.
func TestCanonicity(t *testing.T) {
	const ceiling = 45 // in a thousand
	r := NewRing()
	g := &generator{
		rnd:      rand.New(rand.NewSource(7)),
		lo:       []int64{0, 0, 0},
		hi:       []int64{15, 3, 7},
		noSymbol: true,
	}
	for i, hi := range g.hi {
		g.vars = append(
			g.vars,
			r.Var(Variable{Name: fmt.Sprintf("d%d", i), Hi: hi}),
		)
	}
	n := 20000
	if testing.Short() {
		n = 4000
	}
	forms := map[string]map[Expr]int{}
	for range n {
		x := g.expr(1 + g.rnd.Intn(3))
		var key strings.Builder
		points(g.lo, g.hi, func(v []int64) bool {
			fmt.Fprint(&key, x.f(v), ",")
			return true
		})
		if forms[key.String()] == nil {
			forms[key.String()] = map[Expr]int{}
		}
		forms[key.String()][x.e]++
	}
	several := reportForms(t, forms)
	if several*1000 > ceiling*len(forms) {
		t.Errorf("more than %d of 1000 functions have several forms", ceiling)
	}
}

func reportForms(t *testing.T, forms map[string]map[Expr]int) (several int) {
	var lines []string
	for _, f := range forms {
		if len(f) < 2 {
			continue
		}
		several++
		var texts []string
		for e := range f {
			texts = append(texts, e.String())
		}
		slices.SortFunc(texts, func(a, b string) int { return len(a) - len(b) })
		lines = append(lines, strings.Join(texts, "   |   "))
	}
	slices.SortFunc(lines, func(a, b string) int { return len(a) - len(b) })
	t.Logf("%d functions, %d with several forms", len(forms), several)
	if path := os.Getenv("TILEWRIGHT_FORMS"); path != "" {
		_ = os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
	}
	return several
}
