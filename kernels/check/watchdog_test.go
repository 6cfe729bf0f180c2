package check

import (
	"context"
	"errors"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// A scripted kernel does what run does.
type scripted struct{ run func(context.Context) error }

func (scripted) Source() string { return "" }
func (scripted) Close() error   { return nil }

func (k scripted) Run(ctx context.Context, _, _ []kernels.Buffer) (time.Duration, error) {
	return time.Nanosecond, k.run(ctx)
}

// A run that goes on after its time is abandoned; one that ends then is not, and the
// errors and panics of all others are passed on. The collector is off as long as an
// abandoned run goes on.
func TestHungRunsAreAbandoned(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	ended := make(chan struct{})
	failed := errors.New("launch failed")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		limit time.Duration
		run   func(context.Context) error
		want  error
		hangs bool
	}{
		{"right", t.Context(), time.Hour, func(context.Context) error { return nil }, nil, false},
		{"failed", t.Context(), time.Hour, func(context.Context) error { return failed }, failed, false},
		{"stopped", t.Context(), time.Millisecond, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, context.DeadlineExceeded, false},
		{"hung", t.Context(), time.Millisecond, func(context.Context) error {
			<-ended
			return nil
		}, context.DeadlineExceeded, true},
		{"cancelled", done, 0, func(context.Context) error {
			<-ended
			return nil
		}, context.Canceled, true},
	} {
		_, err := Bounded(scripted{c.run}, c.limit).Run(c.ctx, nil, nil)
		var hung *Hung
		if !errors.Is(err, c.want) || errors.As(err, &hung) != c.hangs {
			t.Errorf("%s: %v", c.name, err)
		}
		off := debug.SetGCPercent(100) < 0
		if off != c.hangs {
			t.Errorf("%s: the collector is off: %v", c.name, off)
		}
		if c.hangs { // what a process does not do: the next case begins anew
			collector.release()
		}
	}
	close(ended)
	defer func() {
		if p := recover(); p != "a bug" {
			t.Errorf("panic %v", p)
		}
	}()
	Watched(scripted{func(context.Context) error { panic("a bug") }}).Run(t.Context(), nil, nil)
}
