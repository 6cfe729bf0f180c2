package gpu

import (
	"errors"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// Rounding to tf32 is offered, and right, only where it is allowed; then the
// device's revision says so. The default plan never rounds.
func TestTF32(t *testing.T) {
	p := kerneltest.Program(t, matmul("f32", "f32", "nn", 64, 64, 128))
	v := kerneltest.Verifier(t, p, 1)
	for _, allowed := range []bool{false, true} {
		b := New(simulatedSession(t, "sm_80"))
		if allowed {
			b.AllowTF32()
		}
		offered := 0
		for x := range b.Plans(t.Context(), p) {
			offered += int(x.Knob(kernels.TF32, 0))
		}
		if (offered > 0) != allowed {
			t.Errorf("allowed %v: %d plans with tf32", allowed, offered)
		}
		if said := strings.HasSuffix(b.Identity().Revision, "+tf32"); said != allowed {
			t.Errorf("allowed %v: revision %s", allowed, b.Identity().Revision)
		}
		if def, err := b.Default(t.Context(), p); err != nil || def.Knob(kernels.TF32, 0) != 0 {
			t.Errorf("allowed %v: default %s, %v", allowed, def, err)
		}
		if def, err := TF32Plan(t.Context(), p, b.session.Spec()); err != nil ||
			def.Knob(kernels.TF32, 0) == 0 {
			t.Errorf("with tf32: %s, %v", def, err)
		}
		for rounding := range int64(cutOff) {
			plan := kernels.Plan{Tiles: symtile.Tiling{64, 64, 32}}.With(kernels.TF32, 1+rounding)
			k, err := b.Compile(t.Context(), p, plan)
			if err != nil {
				t.Fatal(err)
			}
			var wrong *check.WrongResult
			if err := v.For(plan, b.Identity().TF32Allowed()).Verify(
				t.Context(), k,
			); errors.As(err, &wrong) == allowed {
				t.Errorf("allowed %v, %s: %v", allowed, plan, err)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
