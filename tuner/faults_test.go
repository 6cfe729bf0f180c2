package tuner

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

var faultCount = flag.Int("faults", 200, "`number` of kernels with a fault that are raced")

// A fault is what is wrong with the results of a kernel.
type fault struct {
	name  string
	spoil func(rng *rand.Rand, out kernels.Buffer)
	// The outputs that it can be in; nil means all.
	in func(out kernels.Buffer) bool
}

// narrow are the outputs whose rounding is larger than what precedes it.
func narrow(out kernels.Buffer) bool {
	return !out.Shape.DType.IsFloat() || out.Shape.DType.Bits() <= 16
}

// faults are tampered results. Arrays have two dimensions.
var faults = []fault{
	{"last element 0", func(_ *rand.Rand, b kernels.Buffer) { shift(b, b.Shape.Elements()-1, -b.Float(b.Shape.Elements()-1)) }, nil},
	{"one rounding off", func(rng *rand.Rand, b kernels.Buffer) { nextAfter(b, rng.Int64N(b.Shape.Elements())) }, narrow},
	{"all roundings off", func(_ *rand.Rand, b kernels.Buffer) {
		for k := range b.Shape.Elements() {
			nextAfter(b, k)
		}
	}, narrow},
	{"one element off by 1 %", func(rng *rand.Rand, b kernels.Buffer) {
		k := rng.Int64N(b.Shape.Elements())
		shift(b, k, max(1e-3, math.Abs(b.Float(k))/100))
	}, nil},
	{"tail mask", func(rng *rand.Rand, b kernels.Buffer) {
		n := b.Shape.Dims[1]
		row := rng.Int64N(b.Shape.Dims[0])
		move(b, row*n+n-1, row*n+n-2)
	}, nil},
	{"rows swapped", func(rng *rand.Rand, b kernels.Buffer) {
		n := b.Shape.Dims[1]
		for c := range n {
			x, y := b.Float(c), b.Float(n+c)
			set(b, c, y)
			set(b, n+c, x)
		}
	}, nil},
	{"column not done", func(rng *rand.Rand, b kernels.Buffer) {
		n := b.Shape.Dims[1]
		at := rng.Int64N(n)
		for r := range b.Shape.Dims[0] {
			unwrite(b, r*n+at)
		}
	}, nil},
	{"row not done", func(rng *rand.Rand, b kernels.Buffer) {
		n := b.Shape.Dims[1]
		row := rng.Int64N(b.Shape.Dims[0])
		for c := range n {
			unwrite(b, row*n+c)
		}
	}, nil},
	{"mask dropped", func(rng *rand.Rand, b kernels.Buffer) { unwrite(b, b.Shape.Elements()-1) }, nil},
	{"sign", func(rng *rand.Rand, b kernels.Buffer) {
		k := rng.Int64N(b.Shape.Elements())
		shift(b, k, -2*b.Float(k))
	}, nil},
	{"NaN", func(rng *rand.Rand, b kernels.Buffer) {
		b.SetFloat(rng.Int64N(b.Shape.Elements()), math.NaN())
	}, func(b kernels.Buffer) bool { return b.Shape.DType.IsFloat() }},
}

// shift adds to an element; what is 0 becomes 1.
func shift(b kernels.Buffer, k int64, by float64) {
	if b.Float(k)+by == b.Float(k) {
		by = 1
	}
	set(b, k, b.Float(k)+by)
}

// set writes an element of any type.
func set(b kernels.Buffer, k int64, v float64) {
	if b.Shape.DType.IsFloat() {
		b.SetFloat(k, v)
	} else {
		b.SetInt(k, int64(v))
	}
}

// nextAfter makes an element the next number of its type.
func nextAfter(b kernels.Buffer, k int64) { b.Data[k*b.Shape.DType.Size()] ^= 1 }

// move overwrites an element by another.
func move(b kernels.Buffer, to, from int64) {
	if b.Float(to) == b.Float(from) {
		shift(b, to, 1)
		return
	}
	set(b, to, b.Float(from))
}

// unwrite makes an element what a buffer holds before it is written.
func unwrite(b kernels.Buffer, k int64) {
	size := b.Shape.DType.Size()
	for n := range size {
		b.Data[k*size+n] = 0xFF
	}
}

// A saboteur compiles right kernels and spoils the results of the default plan or of
// all others, which it says take half as long.
type saboteur struct {
	kernels.Backend
	fault fault
	rng   *rand.Rand
	// The share of runs that are spoilt, and the first run that is.
	rate  float64
	after int
	// The default is the one that is spoilt.
	standard bool
	plan     string // of the default
	seed     uint64 // of a fault that is the same in every run
}

const defaultTime = 200 * time.Microsecond

func (s *saboteur) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	plan, err := s.Backend.Default(context.Background(), p)
	s.plan = plan.String()
	return plan, err
}

func (s *saboteur) Compile(
	ctx context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	k, err := s.Backend.Compile(ctx, p, plan)
	if err != nil {
		return nil, err
	}
	return &spoilt{k, s, plan.String() == s.plan, 0}, nil
}

// A spoilt kernel is a right one with a fault.
type spoilt struct {
	kernels.Kernel
	s        *saboteur
	standard bool
	runs     int
}

func (k *spoilt) Deterministic() bool { return true }

func (k *spoilt) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	_, err := k.Kernel.Run(ctx, in, out)
	s := k.s
	if k.runs++; k.standard == s.standard && k.runs > s.after && s.rng.Float64() < s.rate {
		rng := s.rng
		if s.rate == 1 { // the same fault in every run
			rng = rand.New(rand.NewPCG(s.seed, 1))
		}
		s.fault.spoil(rng, out[0])
	}
	if k.standard {
		return defaultTime, err
	}
	return defaultTime / 2, err
}

// race tunes a program; caught reports whether the spoilt plan is recorded as wrong
// and another won.
func (s *saboteur) race(t *testing.T, p *symtile.Program) (caught bool) {
	t.Helper()
	model, err := cost.Fit(nil)
	if err != nil {
		t.Fatal(err)
	}
	tn := &Tuner{
		Backend: s,
		Cache:   cache.Open(filepath.Join(t.TempDir(), "t.db")),
		Model:   model,
		Options: Options{Candidates: 2, Budget: 30 * time.Second},
	}
	r, err := tn.Tune(t.Context(), p.Fusion)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Record.Trials {
		if (x.Plan == r.Record.Default) == s.standard && x.Failure != cache.FailedWrong {
			return false
		}
	}
	return (r.Record.Plan == r.Record.Default) != s.standard &&
		(r.Record.DefaultFailure() != "") == s.standard
}

// programs are small fusions of several types.
func programs(t *testing.T) (all []*symtile.Program) {
	for _, text := range kerneltest.Blocks(t, "testdata/faulty.hlo") {
		all = append(all, kerneltest.Program(t, text))
	}
	return all
}

// Kernels with an injected fault do not win. Those that are wrong in every run are
// caught, and of those that are wrong in 5 % of the runs or more 95 %. A third is in
// default plans.
func TestInjectedFaults(t *testing.T) {
	backend := cpu.New()
	all := programs(t)
	rng := rand.New(rand.NewPCG(13, 5))
	var tried, caught [2]int
	rates := []float64{1, 0.05, 1, 0.1, 1, 0.25, 1, 0.5}
	for n := 0; n < *faultCount; {
		f := faults[rng.IntN(len(faults))]
		p := all[rng.IntN(len(all))]
		out, err := kernels.NewBuffer(kernels.OutputShapes(p.Fusion)[0])
		if err != nil {
			t.Fatal(err)
		}
		if f.in != nil && !f.in(out) {
			continue
		}
		s := &saboteur{
			Backend: backend, fault: f, rng: rng,
			rate: rates[n%len(rates)], standard: n%3 == 0, seed: rng.Uint64(),
		}
		kind := 0
		if s.rate < 1 {
			kind = 1
		}
		tried[kind]++
		if s.race(t, p) {
			caught[kind]++
		} else {
			t.Logf("not caught: %s in %.0f %% of the runs, default %t, of\n%s", f.name, 100*s.rate, s.standard, p.Fusion.Canonical())
		}
		n++
	}
	t.Logf("faults in every run: %d of %d caught; in 5 to 50 %% of the runs: %d of %d caught", caught[0], tried[0], caught[1], tried[1])
	if caught[0] < tried[0] {
		t.Error("a kernel that is always wrong is not caught")
	}
	if 100*caught[1] < 95*tried[1] {
		t.Error("fewer than 95 % of the kernels that are wrong now and then are caught")
	}
}

// Kernels that pass a verification won before what is timed was compared: of 19 with
// one element wrong in a tenth of the runs 17 did, and all that are right three times
// and wrong after.
func TestFaultsAfterVerification(t *testing.T) {
	backend := cpu.New()
	all := programs(t)
	for n := range 2 * 19 {
		s := &saboteur{
			Backend: backend, fault: faults[0],
			rng: rand.New(rand.NewPCG(uint64(n), 17)), rate: 0.1,
		}
		if n%2 == 1 {
			s.rate, s.after = 1, 3
		}
		if !s.race(t, all[n/2%len(all)]) {
			t.Errorf("number %d wins, wrong in %.0f %% of the runs after %d", n, 100*s.rate, s.after)
		}
	}
}
