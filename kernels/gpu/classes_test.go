package gpu

import (
	"os"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// testdata/classes.txt has a computation of every class, of odd extents: a
// title, the text, an empty line. Random plans of all give the reference's
// results, for every target.
func TestClassesOnSimulator(t *testing.T) {
	src, err := os.ReadFile("testdata/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for n, block := range strings.Split(strings.TrimSpace(string(src)), "\n\n")[1:] {
		title, text, _ := strings.Cut(block, "\n")
		t.Run(title, func(t *testing.T) {
			m, err := hlo.Parse("classes.txt", []byte(text+"\n"))
			if err != nil {
				t.Fatalf("case %d: %v", n, err)
			}
			p, err := symtile.Analyze(m.Entry)
			if err != nil {
				t.Fatal(err)
			}
			checkPlans(t, p, 4)
		})
	}
}
