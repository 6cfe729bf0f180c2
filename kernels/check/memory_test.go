package check

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

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
	_, err = Inputs(m.Entry, Normals, 1)
	if err == nil || !strings.Contains(err.Error(), "all parameters and results") {
		t.Errorf("3 arrays of %d bytes: %v", 4*elements, err)
	}
}

// However many kernels are verified and timed, a race allocates the inputs of its two
// cases, the outputs once, and little else.
func TestArraysOfARace(t *testing.T) {
	const text = "p = bf16[6144,8192] parameter(0)\nROOT n = bf16[6144,8192] negate(p)"
	m, err := hlo.Parse("large", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v, err := NewVerifier(t.Context(), m.Entry, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := v.NewBench(t.Context(), 1, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w, err := v.Examine(t.Context(), negater{})
		if err == nil {
			err = b.Rerun(t.Context(), negater{}, w)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	const array, extra = 6144 * 8192 * 2, 32 << 20
	if got := after.TotalAlloc - before.TotalAlloc; got > 3*array+extra {
		t.Errorf("%d bytes were allocated for inputs of %d in two cases and as large outputs", got, array)
	}
}

// A negater is a kernel that negates bf16.
type negater struct{}

func (negater) Source() string { return "" }
func (negater) Close() error   { return nil }
func (negater) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	from, to := kernels.Elements[uint64](in[0]), kernels.Elements[uint64](out[0])
	for k, v := range from {
		to[k] = v ^ 0x8000_8000_8000_8000
	}
	return time.Millisecond, nil
}
