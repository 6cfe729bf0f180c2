package symtile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// scatterText is a scatter of rows, or what a case has in its place.
const scatterText = `fold { a = f32[] parameter(0)
b = f32[] parameter(1)
ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[10,8] parameter(0)
i = s32[2,6,1] parameter(1)
u = f32[2,6,8] parameter(2)
ROOT s = f32[10,8] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=fold }`

// analyzedScatter is the program of a text in which some words are replaced.
func analyzedScatter(t *testing.T, words ...string) (*Program, error) {
	t.Helper()
	m, err := hlo.Parse("f", []byte(strings.NewReplacer(words...).Replace(scatterText)))
	if err != nil {
		t.Fatal(err)
	}
	return Analyze(t.Context(), m.Entry)
}

// A scatter has the dimensions of its result, and a sequential one along the first of its
// index vectors; the others are whole, which keeps the order of updates.
func TestScatterGoesThroughItsUpdates(t *testing.T) {
	p, err := analyzedScatter(t)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.DimNames()); got != "[d0 d1 update]" {
		t.Errorf("the dimensions are %s", got)
	}
	q, err := p.At(Tiling{5, 3, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"for t2 {", "i parameter() offsets [t2, 0, 0] sizes [1, 6, 1]", "u parameter() offsets [t2, 0, t1 * 3] sizes [1, 6, 3]",
	} {
		if !strings.Contains(q.String(), want) {
			t.Errorf("there is no %q in\n%s", want, q)
		}
	}
}

// What a scatter cannot be tiled with has a reason; windows that cannot overlap in part
// may be anywhere in the updates.
func TestScatterRefusals(t *testing.T) {
	several := []string{
		"f32[2,6,8] parameter(2)", "f32[8,3,2,6] parameter(2)", "update_window_dims={2}, inserted_window_dims={0}",
		"update_window_dims={0,1}, inserted_window_dims={}", "scatter_dims_to_operand_dims={0}", "scatter_dims_to_operand_dims={1}",
	}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"add(a, b)", "divide(a, b)"}, "it combines elements by a computation of its own"},
		{[]string{"f32[", "c64["}, "it is not computed of complex numbers"},
		{[]string{"f32[2,6,8]", "f32[8,2,6]", "window_dims={2}", "window_dims={0}"}, ""},
		{append(several, "f32[10,8]", "f32[8,10]"), "its windows can overlap in part, and are not the last dimensions of its updates"},
	} {
		_, err := analyzedScatter(t, c.words...)
		var no *Untileable
		switch {
		case c.want == "" && err == nil:
		case !errors.As(err, &no) || no.Reason != c.want || UntileableReason(no.Instr) != c.want:
			t.Errorf("%q: %v", c.words, err)
		}
	}
}
