package ptx

import (
	"regexp"
	"testing"
)

// Every row names the section of the PTX ISA that it comes from, its version
// and its target.
func TestRowsNameTheirSection(t *testing.T) {
	section := regexp.MustCompile(`^9\.7(\.\d+){2,4}$`)
	rows, ops := 0, 0
	for _, forms := range forms() {
		for _, f := range forms {
			if rows++; !section.MatchString(f.row.section) {
				t.Errorf("%s: %q is no section", f.row.syntax, f.row.section)
			}
		}
		if len(forms) > 0 {
			ops++
		}
	}
	for o := NoOp + 1; o < numOps; o++ {
		// The operands of a call are those of the function.
		if len(forms()[o]) == 0 && o != OpCall {
			t.Errorf("%s has no row", o)
		}
	}
	t.Logf("%d rows of %d operations", rows, ops)
}
