package kernels

import (
	"testing"

	"github.com/tilewright/tilewright/symtile"
)

func TestPlanText(t *testing.T) {
	for text, want := range map[string]string{
		"64,32,16":                      "64,32,16",
		"64,32,16 threads=2":            "64,32,16 threads=2",
		"  8   threads=2  stages=3 ":    "8 stages=3 threads=2",
		"-":                             "-",
		"1 a_b=-4":                      "1 a_b=-4",
		"":                              "",
		"8,":                            "",
		"8,0":                           "",
		"8 threads":                     "",
		"8 threads=x":                   "",
		"8 THREADS=1":                   "",
		"8 threads=1 threads=2":         "",
		"99999999999999999999":          "",
		"8 threads=9999999999999999999": "",
	} {
		p, err := ParsePlan(text)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is read as %s", text, p)
		case want != "" && (err != nil || p.String() != want):
			t.Errorf("%q is read as %s, %v", text, p, err)
		}
	}
	p := Plan{
		Tiles: symtile.Tiling{4, 2},
	}.With("z", 1).With("a", 2).With("z", 3)
	if p.String() != "4,2 a=2 z=3" ||
		p.Knob("z", 0) != 3 ||
		p.Knob("none", 7) != 7 {
		t.Errorf("got %s", p)
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add("64,32,16 threads=2")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlan(text)
		if err != nil {
			return
		}
		if q, err := ParsePlan(p.String()); err != nil || q.String() != p.String() {
			t.Errorf("%q prints as %q, which reads as %q, %v", text, p, q, err)
		}
	})
}
