package symtile

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// opRows are the rows of the op table.
func opRows() map[string][]string {
	rows := map[string][]string{
		"bitcast":      {"tiled as a transpose to physical order, a reshape and a transpose to logical order"},
		"elementwise":  {"the same tile; scalar operands need none"},
		"fusion, call": {"inlined: tiles propagate through what they call"},
		"collectives":  {"refused: " + hlo.OpAllReduce.Not(hlo.CPU)},
	}
	for op, x := range rewrites {
		rows[string(op)] = append(rows[string(op)], "rewritten as "+x.doc)
	}
	for op, x := range propagators {
		rows[string(op)] = append(rows[string(op)], x.doc)
	}
	for _, op := range hlo.Opcodes() {
		reason := cmp.Or(untileable[op], op.Not(hlo.CPU))
		if rows[string(op)] == nil && reason != "" && op.Class() != hlo.ClassCollective && op != hlo.OpCall {
			rows[string(op)] = []string{"refused: " + reason}
		}
	}
	return rows
}

// The op table in doc.go is the rewrites', the propagators' and the refusals';
// go test -run OpTable -rewrite writes it.
func TestOpTable(t *testing.T) {
	rows := opRows()
	var table strings.Builder
	for _, op := range slices.Sorted(maps.Keys(rows)) {
		for k, row := range rows[op] {
			if k > 0 {
				op = ""
			}
			fmt.Fprintf(&table, "//	%-21s %s\n", op, row)
		}
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "// This table")
	intro, _, _ := strings.Cut(rest, "//\t")
	want := before + "// This table" + intro + table.String() + "package symtile\n"
	if want == string(text) {
		return
	}
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile("doc.go", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("doc.go should be\n%s", want)
}

func analyze(t *testing.T, text string) (*Program, error) {
	t.Helper()
	m, err := hlo.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Analyze(t.Context(), m.Entry)
}

// A no always has a reason, an instruction and a rule.
func TestUntileable(t *testing.T) {
	for text, want := range map[string]string{
		"x = f32[8] parameter(0); ROOT s = f32[8] sort(x), dimensions={0}":                                                                                               "s (sort): every result depends on every element [not-in-op-table]",
		"x = f32[4] parameter(0); t = token[] after-all(); ROOT u = (f32[4], token[]) tuple(x, t)":                                                                       "t (after-all): it orders operations, and computes nothing [root]",
		"x = f32[8] parameter(0); n = f32[] constant(0); s = f32[0] slice(x), slice={[3:3]}; r = f32[] reduce(x, n), dimensions={0}, to_apply=add; ROOT t = tuple(s, r)": "s (slice): it has no elements, so that no tile would compute r [root]",
		"p = (f32[4], (f32[], ())) parameter(0); ROOT t = f32[4] get-tuple-element(p), index=0":                                                                          "t (get-tuple-element): p is part of a parameter that is a tuple; arrays have to be parameters of their own [tuple-parameter]",
	} {
		if _, err := analyze(t, text); err == nil || err.Error() != want {
			t.Errorf("%s\n got  %v\n want %s", text, err, want)
		}
	}
}

// Constraints of reshapes are one clause a boundary, not a product of cases.
func TestConstraintsStayFactored(t *testing.T) {
	const n = 12
	from, to := strings.Repeat("2,3,", n), strings.Repeat("6,", n)
	p, err := analyze(
		t,
		fmt.Sprintf("x = s8[%s] parameter(0); ROOT r = s8[%s] reshape(x)", strings.TrimSuffix(from, ","), strings.TrimSuffix(to, ",")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Space.Where) != n {
		t.Errorf("%d clauses for %d groups", len(p.Space.Where), n)
	}
	if got := p.Space.Count(); got != 531441 { // 3^12: sizes 1, 3 and 6; 2 and 4 cross rows of 3
		t.Errorf("%d tilings", got)
	}
}

func TestTilings(t *testing.T) {
	p, err := analyze(t, "x = f32[1,8,6,4,8] parameter(0); ROOT r = f32[48,32] reshape(x)")
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for tiling := range p.Space.Tilings() {
		if err := p.Check(tiling); err != nil {
			t.Fatalf("proposed: %v", err)
		}
		if _, err := p.At(tiling); err != nil {
			t.Fatalf("proposed: %v", err)
		}
		n++
	}
	if n != p.Space.Count() || n == 0 {
		t.Errorf("%d tilings, Count says %d", n, p.Space.Count())
	}
	for _, bad := range []Tiling{
		nil, {1}, {1, 1, 1}, {49, 1},
		{0, 1}, {4, 1}, {6, 5},
	} {
		if _, err := p.At(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// Reshapes that cancel add no constraints, also around elementwise operations.
func TestCancellingReshapes(t *testing.T) {
	for _, text := range []string{
		"x = f32[10,10,10] parameter(0); a = f32[50,20] reshape(x); ROOT b = f32[10,10,10] reshape(a)",
		"x = f32[10,10,10] parameter(0); a = f32[50,20] reshape(x); n = f32[50,20] negate(a); ROOT b = f32[10,10,10] reshape(n)",
		"x = f32[2,128,128] parameter(0); a = f32[16384,1,2] bitcast(x); ROOT b = f32[2,128,128] bitcast(a)",
		"x = f32[8,16] parameter(0); y = f32[8,16] parameter(1); a = f32[128] reshape(x); c = f32[128] reshape(y); s = f32[128] add(a, c); z = f32[] constant(2); w = f32[128] broadcast(z), dimensions={}; m = f32[128] multiply(s, w); ROOT b = f32[8,16] reshape(m)",
		"x = f32[4,8] parameter(0); n = f32[4,8] negate(x); ROOT b = f32[32] reshape(n)",
	} {
		p, err := analyze(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(text, "reshape(n)") && strings.Contains(text, "[32]") {
			if len(p.Space.Where) == 0 {
				t.Errorf("%s: no constraint", text)
			}
			continue
		}
		if len(p.Space.Where) > 0 {
			t.Errorf("%s\nwhere %s", text, p.Space.Where)
		}
	}
}
