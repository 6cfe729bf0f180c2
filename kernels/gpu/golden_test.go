package gpu

import "testing"

// Goldens are the kernels that are emitted, and an assembler has seen them, or
// the test says which it has not.
func TestGoldens(t *testing.T) {
	all, err := Goldens()
	if err != nil || len(all) < 5 {
		t.Fatalf("%d goldens, %v", len(all), err)
	}
	seen, err := AssembledGoldens()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		sheet, err := ParseSheet(g.Target)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := PTX(g.Program, g.Plan, sheet); err != nil || text != g.PTX {
			t.Errorf("%s for %s: the kernel is not the one emitted (%v)", g.Name, g.Target, err)
		}
		if a, ok := seen[Hash(g.PTX)]; !ok {
			t.Logf("%s for %s has not been assembled: tilewright doctor, where ptxas is, makes the row for testdata/ptxas.tsv", g.Name, g.Target)
		} else if a.Spilled > 0 || a.Target != g.Target {
			t.Errorf("%s for %s: %s", g.Name, g.Target, a.Row())
		}
	}
}

func TestAssembledRows(t *testing.T) {
	a := Assembled{Hash: Hash("x"), Target: "sm_90a", Registers: 168, Shared: 1024, Tool: "ptxas 13.0"}
	if b, err := parseAssembled(a.Row()); err != nil || b != a {
		t.Errorf("%v is read as %v, %v", a, b, err)
	}
	for _, bad := range []string{"", "a\tb", a.Row() + "\tx", Hash("x") + "\tsm_80\tmany\t0\t0\tptxas"} {
		if _, err := parseAssembled(bad); err == nil {
			t.Errorf("%q is taken for a row", bad)
		}
	}
}
