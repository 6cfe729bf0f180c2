package cpu

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestUnseenPrograms verifies the default and up to 64 offered plans of each
// computation in testdata/unseen.txt, programs that once gave wrong results or
// did not compile: a title, the text, an empty line.
func TestUnseenPrograms(t *testing.T) {
	src, err := os.ReadFile("testdata/unseen.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(src)), "\n\n")[1:] {
		title, text, _ := strings.Cut(block, "\n")
		t.Run(title, func(t *testing.T) {
			m, err := hlo.Parse("unseen.txt", []byte(text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			verifyOffered(t, m.Entry)
		})
	}
}

// verifyOffered verifies the default plan of a fusion and up to 64 others.
func verifyOffered(t *testing.T, c *hlo.Computation) {
	p, err := symtile.Analyze(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	v, err := check.NewVerifier(context.Background(), p.Physical, 3)
	if err != nil {
		t.Fatal(err)
	}
	b := New()
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	plans := []kernels.Plan{plan}
	for plan := range b.Plans(t.Context(), p) {
		if plans = append(plans, plan); len(plans) > 64 {
			break
		}
	}
	for _, plan := range plans {
		k, err := b.Compile(context.Background(), p, plan)
		if err != nil {
			t.Errorf("%s: %v", plan, err)
			continue
		}
		if err := v.Verify(context.Background(), k); err != nil {
			t.Errorf("%s: %v", plan, err)
		}
		k.Close()
	}
}
