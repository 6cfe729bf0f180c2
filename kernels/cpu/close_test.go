package cpu

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A run of minutes, in one tile program, ends with its context, and a Close before that
// leaves the machine code to it.
func TestCloseDuringRun(t *testing.T) {
	if !vector.Supported() {
		t.Skip("no machine code here")
	}
	text, err := os.ReadFile("testdata/long_rows.hlo")
	if err != nil {
		t.Fatal(err)
	}
	source := strings.ReplaceAll(string(text), "ROWS", "1048576")
	p := kerneltest.Program(t, source)
	plan := kernels.Plan{Tiles: symtile.Tiling{1 << 20, 1 << 17}}
	k, err := New().Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	in, out := zeros(t, p.Physical.ParamShapes()), zeros(t, kernels.OutputShapes(p.Physical))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := k.Run(ctx, in, out)
		ended <- err
	}()
	for running := k.(*kernel); running.running.TryLock(); time.Sleep(time.Millisecond) {
		running.running.Unlock()
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(20 * time.Millisecond)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the run returned %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// zeros are arrays of zeros.
func zeros(t *testing.T, shapes []hlo.Shape) (all []kernels.Buffer) {
	for _, s := range shapes {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}
