package replicas

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Each case is the text of groups and what it stands for.
func TestParse(t *testing.T) {
	datadriven.RunTest(t, "testdata/groups.txt", func(t *testing.T, d *datadriven.TestData) string {
		groups, err := Parse(d.Input)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(groups)
	})
}

// FuzzParse: whatever is read is bounded, and has no empty group but in lists.
func FuzzParse(f *testing.F) {
	f.Add("[2,4]<=[2,2,2]T(2,0,1)")
	f.Add("mesh['a'=2,'b'=8], device_ids=([16]T(0)) {'b':(2)2,'a'}")
	f.Add("{{0,1},{}}")
	f.Fuzz(func(t *testing.T, text string) {
		groups, err := Parse(text)
		n := 0
		for _, g := range groups {
			n += len(g)
		}
		if err == nil && n > max(maxDevices, len(text)) {
			t.Fatalf("%d devices", n)
		}
	})
}
