package check

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A waiter is a kernel that runs until its context ends.
type waiter struct{}

func (waiter) Source() string { return "" }
func (waiter) Close() error   { return nil }
func (waiter) Run(ctx context.Context, _, _ []kernels.Buffer) (time.Duration, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// A sampler times by itself.
type sampler struct {
	waiter
	n, sets int
}

func (s *sampler) Sample(
	_ context.Context, sets []kernels.Set, n int,
) (kernels.Timing, error) {
	s.n, s.sets = n, len(sets)
	return kernels.Timing{Seconds: 0.25, Hertz: 1e9}, nil
}

// TestBounded: runs are bounded, and a kernel that times by itself still does.
func TestBounded(t *testing.T) {
	m, err := hlo.Parse("t", []byte("ENTRY e {\n x = f32[8] parameter(0)\n ROOT y = f32[8] negate(x)\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBench(context.Background(), m.Fusions()[0], 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s := &sampler{}
	for _, k := range []kernels.Kernel{waiter{}, s} {
		_, err := Bounded(k, time.Millisecond).Run(t.Context(), nil, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: %v", k, err)
		}
	}
	if _, err := b.Sample(
		t.Context(), Bounded(waiter{}, time.Millisecond), 3,
	); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got, err := b.Sample(
		t.Context(), Bounded(s, time.Millisecond), 7,
	); err != nil ||
		got != (kernels.Timing{Seconds: 0.25, Hertz: 1e9}) ||
		s.n != 7 || s.sets < 2 {
		t.Errorf("%v, %v; it was asked for %d runs on %d sets", got, err, s.n, s.sets)
	}
}

func TestPaired(t *testing.T) {
	var x, y []float64
	for n := range 20 {
		x, y = append(x, 2+float64(n%3)/100), append(y, 1)
	}
	p := Paired(x, y, 0.95)
	if p.Median < 2 || p.Median > 2.02 || p.Lo < 2 || p.Hi > 2.02 {
		t.Errorf("got %+v", p)
	}
	// 2·P(B ≤ 0) for n = 6 is 0.031: six pairs are the fewest that say anything at 95 %.
	if k := orderStatistic(5, 0.95); k != -1 {
		t.Errorf("5 pairs give order statistic %d", k)
	}
	if k := orderStatistic(6, 0.95); k != 0 {
		t.Errorf("6 pairs give order statistic %d", k)
	}
	if k := orderStatistic(20, 0.95); k != 5 { // tables give the 6th of 20
		t.Errorf("20 pairs give order statistic %d", k)
	}
	// 2⁻²⁰⁰⁰ is 0 in floating point; the normal distribution has 1000 − 1.96·√500 − ½.
	if k := orderStatistic(2000, 0.95); k < 954 || k > 956 {
		t.Errorf("2000 pairs give order statistic %d", k)
	}
}
