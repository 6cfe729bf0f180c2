package gpu

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/kerneltest"
)

// testdata/classes.txt has a computation of every class, of odd extents: a
// title, the text, an empty line. Random plans of all give the reference's
// results, for every target.
func TestClassesOnSimulator(t *testing.T) {
	for _, block := range kerneltest.Blocks(t, "testdata/classes.txt")[1:] {
		title, text, _ := strings.Cut(block, "\n")
		t.Run(title, func(t *testing.T) {
			p := kerneltest.Program(t, text)
			checkPlans(t, p, 4)
		})
	}
}
