package kernels

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// namedPlans are texts of plans of a product and what they are read as: a bare list, or
// the beginning of an error.
var namedPlans = map[string]string{
	"64,256,32":                      "64,256,32",
	"64,256,32 threads=1":            "64,256,32 threads=1",
	"m=64 n=256 k=32 threads=1":      "64,256,32 threads=1",
	" threads=1  k=32 n=256 m=64 ":   "64,256,32 threads=1",
	"64,256":                         "64,256", // what is wrong with it is said by who uses it
	"m=64 n=256":                     "has no size of k; its dimensions are m, n, k",
	"m=64 n=256 o=32":                "has no size of k",
	"m=64 n=256 k=32 k=32":           "k is set twice",
	"m=64 n=256 k=0":                 `"k=0" is not a tile size`,
	"m=64 n=256 k=x":                 `"k=x" is not a tile size`,
	"m=64 n=256 k=32 x":              `"x" is not a knob`,
	"m=64 n=256 k=32 a=1 a=2":        "a is set twice",
	"64,256,32 m=64":                 "has no size of n",
	"":                               "has no size of m",
	"threads=1":                      "has no size of m",
	"m=99999999999999999999 n=1 k=1": "is not a tile size",
}

func TestPlanNames(t *testing.T) {
	names := PlanNames{"m", "n", "k"}
	for text, want := range namedPlans {
		p, err := names.Parse(text)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && p.String() != want {
			t.Errorf("%q is read as %q, %v; want %q", text, p, err, want)
		}
	}
	for _, c := range []struct {
		names      PlanNames
		text, want string
	}{
		{names, "64,256,32 threads=1", "m=64 n=256 k=32 threads=1"},
		{names, "64,256", "64,256"},
		{names, "64,256,32 k=1", "64,256,32 k=1"},
		{names, "not a plan", "not a plan"},
		{nil, "64,256", "64,256"},
		{nil, "- threads=2", "- threads=2"},
		{PlanNames{}, "-", "-"},
	} {
		if got := c.names.Stored(c.text); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.text, c.names, got, c.want)
		}
	}
}

// TestPlanNamesOfText compares the names that a record's canonical text gives with those
// of the fusion.
func TestPlanNamesOfText(t *testing.T) {
	m, err := hlo.Parse("f", []byte(`HloModule f
f (x: f32[8,4]) -> f32[8] {
  x = f32[8,4] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[8] reduce(x, zero), dimensions={1}, to_apply=add
}
add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e (x: f32[8,4]) -> f32[8] {
  x = f32[8,4] parameter(0)
  ROOT f = f32[8] fusion(x), kind=kLoop, calls=f
}
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
	if err != nil {
		t.Fatal(err)
	}
	want := PlanNamesOf(p)
	got := PlanNamesOfText(t.Context(), m.Fusions()[0].Canonical())
	if strings.Join(want, " ") != "row sum" || strings.Join(got, " ") != "row sum" {
		t.Errorf("names %q, of the text %q, want row sum", want, got)
	}
	if got := PlanNamesOfText(t.Context(), "no HLO"); got != nil {
		t.Errorf("names of no HLO are %q", got)
	}
}

func FuzzPlanNames(f *testing.F) {
	for text := range namedPlans {
		f.Add(text)
	}
	names := PlanNames{"m", "n", "k"}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := names.Parse(text)
		if err != nil {
			return
		}
		named := names.Text(p)
		if q, err := names.Parse(named); err != nil || q.String() != p.String() {
			t.Errorf("%q prints as %q, which reads as %q, %v", text, named, q, err)
		}
	})
}
