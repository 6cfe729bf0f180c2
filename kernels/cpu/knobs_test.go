package cpu

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// knobRead is where the source reads a knob of a plan: plan.Knob("splitk", 1) or
// l.knob("rows", 1).
var knobRead = regexp.MustCompile(`\.[kK]nob\("([a-z0-9]+)"`)

// Every knob of the table is read somewhere, and every knob that is read is in the table.
func TestKnobsAreRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range knobRead.FindAllStringSubmatch(string(text), -1) {
			read[m[1]] = true
			if knobs.Find(m[1]) == nil {
				t.Errorf("%s reads the knob %s, which is not in the table", file, m[1])
			}
		}
	}
	for _, row := range knobs {
		if !read[row.Name] {
			t.Errorf("nothing reads the knob %s", row.Name)
		}
	}
}
