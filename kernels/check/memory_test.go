package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Arrays that fit alone but not together are refused before one of them is filled.
func TestArraysTogether(t *testing.T) {
	elements := int64(1 << 26)
	for elements < 1<<40 && kernels.CheckFreeMemory(3*4*elements) == nil {
		elements *= 2
	}
	if kernels.CheckFreeMemory(4*elements) != nil {
		t.Skip("one array of a power of two does not fit, or everything does")
	}
	text := fmt.Sprintf(`x = f32[%[1]d] parameter(0)
y = f32[%[1]d] parameter(1)
ROOT z = f32[%[1]d] add(x, y)`, elements)
	m, err := hlo.Parse("large", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewVerifier(t.Context(), m.Entry, 1)
	if err == nil || !strings.Contains(err.Error(), "all parameters and results") {
		t.Errorf("3 arrays of %d bytes: %v", 4*elements, err)
	}
}
