package golden

import "testing"

func TestAssembledRows(t *testing.T) {
	a := AssemblerReport{Hash: Hash("x"), Target: "sm_90a", Registers: 168, Shared: 1024, Tool: "ptxas 13.0"}
	if b, err := parseAssembled(a.Row()); err != nil || b != a {
		t.Errorf("%v is read as %v, %v", a, b, err)
	}
	for _, bad := range []string{"", "a\tb", a.Row() + "\tx", Hash("x") + "\tsm_80\tmany\t0\t0\tptxas"} {
		if _, err := parseAssembled(bad); err == nil {
			t.Errorf("%q is taken for a row", bad)
		}
	}
}
