package tuner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A recordedSpace is what a backend offered of a fusion, with prices and times: lines of µs of
// the price, µs of the time and the plan, first the default. They are of
//
//	go run ./bench/oracle -plans 1100 -cheapest 60 -blocks 6 -only NAME -o FILE
//
// on two cores of a Zen 4, depthwise_conv of a Zen 5; the time is the shortest sample but one.
type recordedSpace struct {
	plans []kernels.Plan
	known map[string][2]float64 // price and time in seconds, by the text of a plan
}

// recordedDefault is what the default takes; the other times and prices are scaled as it is.
const recordedDefault = 2e-3

// readSpace reads a recorded space.
func readSpace(t *testing.T, name string) *recordedSpace {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "landscapes", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := &recordedSpace{known: map[string][2]float64{}}
	scale := 0.0
	for line := range strings.Lines(string(text)) {
		column := strings.Split(strings.TrimSpace(line), "\t")
		plan, err := kernels.ParsePlan(column[2])
		var price, micros float64
		if err == nil {
			_, err = fmt.Sscan(column[0]+" "+column[1], &price, &micros)
		}
		if err != nil {
			t.Fatal(err)
		}
		if scale == 0 {
			scale = recordedDefault / micros
		}
		s.plans = append(s.plans, plan)
		s.known[plan.String()] = [2]float64{price * scale, micros * scale}
	}
	return s
}

// A recordedLab runs the plans of a recorded space, on a machine on which other work runs for
// a share of the time, in stretches of some 20 ms, in which kernels take longer, some of
// them more than others.
type recordedLab struct {
	*unsteadyLab
	space  *recordedSpace
	load   float64
	busy   bool
	until  time.Time // of what is busy now
	slower float64   // what a kernel takes meanwhile, on average
	waited time.Duration
}

func (l *recordedLab) Plans(context.Context, *symtile.Program) iter.Seq[kernels.Plan] {
	return slices.Values(l.space.plans)
}

func (l *recordedLab) Default(context.Context, *symtile.Program) (kernels.Plan, error) {
	return l.space.plans[0], nil
}

func (l *recordedLab) Pricer(*symtile.Program) (kernels.Pricer, error) { return recordedPricer{l}, nil }
func (l *recordedLab) Quiet() float64                                  { return 1 - l.load }

func (l *recordedLab) Disturbance() kernels.Disturbance {
	return kernels.Disturbance{Waited: l.waited}
}

type recordedPricer struct{ l *recordedLab }

func (recordedPricer) Terms() kernels.PriceTerms {
	return kernels.PriceTerms{Names: []string{"recorded"}, Tie: 0.01}
}

func (p recordedPricer) Price(plan kernels.Plan, price *kernels.Price) error {
	known, ok := p.l.space.known[plan.String()]
	if !ok {
		return errors.New("it was not recorded")
	}
	price.Seconds[0], price.Lanes = known[0], 1
	return nil
}

// A recordedKernel is slower by where it lies, and by a state of the machine.
type recordedKernel struct {
	kernels.Kernel
	l         *recordedLab
	luck      float64
	sensitive float64 // to other work: 0.5 to 1.5
}

func (l *recordedLab) Compile(ctx context.Context, p *symtile.Program, plan kernels.Plan) (kernels.Kernel, error) {
	h := fnv.New64a()
	h.Write([]byte(plan.String()))
	v := int64(h.Sum64() >> 32)
	l.now = l.now.Add(4 * time.Millisecond)
	l.truth = append(l.truth, l.space.known[plan.String()][1])
	k, err := l.lab.Compile(ctx, p, l.plan(int64(len(l.truth)-1)))
	if err != nil {
		return nil, err
	}
	return &recordedKernel{k, l, l.luckOf(v), 0.5 + float64(v%1000)/1000}, nil
}

// work lets other work begin and end.
func (l *recordedLab) work() {
	for l.load > 0 && l.now.After(l.until) {
		l.busy = !l.busy
		mean := 0.02
		if l.busy {
			mean *= l.load / (1 - l.load)
			l.slower = 1.3 + l.rng.ExpFloat64()
		}
		l.until = l.until.Add(time.Duration(mean * l.rng.ExpFloat64() * 1e9))
	}
}

func (k *recordedKernel) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	l := k.l
	l.work()
	d, err := k.Kernel.Run(ctx, in, out)
	if err != nil {
		return 0, err
	}
	longer := k.luck - 1
	if l.busy {
		longer += (l.slower - 1) * k.sensitive
		l.waited += time.Duration(float64(d) * (l.slower - 1) * k.sensitive / 2)
	}
	extra := time.Duration(float64(d) * longer)
	l.now = l.now.Add(extra)
	return d + extra, nil
}

// tuneRecorded tunes a recorded space in two visits, with so many candidates, or as many as
// the budget lets try where they are 0. The budget is that of kernels which take 2 ms by
// default; those that were recorded take a hundredth.
func tuneRecorded(t *testing.T, s *recordedSpace, seed uint64, load float64, candidates int) cache.Record {
	l := &recordedLab{space: s, load: load, unsteadyLab: &unsteadyLab{
		lab: newLab(seed, 0.02), luck: 0.01, state: map[[2]int64]float64{},
	}}
	l.until = l.now
	return inTwoVisits(t, l.lab, l, Options{Budget: time.Minute, Candidates: candidates})
}

// recordedPairs are two records each of every recorded space, so many times.
func recordedPairs(t *testing.T, times uint64, load float64, candidates int, use func(s *recordedSpace, a, b *cache.Record)) {
	for _, name := range []string{"multi_output_reduce", "down_residual", "layernorm", "depthwise_conv"} {
		s := readSpace(t, name)
		for seed := range times {
			a := tuneRecorded(t, s, 2*seed, load, candidates)
			b := tuneRecorded(t, s, 2*seed+1, load, candidates)
			use(s, &a, &b)
		}
	}
}

// Errors of tunings by the recorded times, as ratios: what the fastest plan that was tried
// takes over the fastest of the space (exploration), and the winner over the fastest that was
// tried (selection).
type errorsFound struct {
	exploration, selection float64 // sums of logarithms
	worst                  float64 // winner over the fastest of the space
	records, trials        int
}

// add adds a record.
func (e *errorsFound) add(s *recordedSpace, r *cache.Record) {
	best, tried := math.Inf(1), math.Inf(1)
	for _, x := range s.known {
		best = min(best, x[1])
	}
	for _, x := range r.Trials {
		if known, ok := s.known[x.Plan]; ok {
			tried = min(tried, known[1])
		}
	}
	winner := s.known[r.Plan][1]
	e.exploration += math.Log(tried / best)
	e.selection += math.Log(winner / tried)
	e.worst = max(e.worst, winner/best)
	e.records++
	e.trials += len(r.Trials)
}

func (e *errorsFound) String() string {
	n := float64(e.records)
	return fmt.Sprintf("%d records of %.0f trials: exploration %.3f, selection %.3f, worst %.3f",
		e.records, float64(e.trials)/n, math.Exp(e.exploration/n), math.Exp(e.selection/n), e.worst)
}

// Two tunings of recorded spaces, on a quiet machine and on one that others use half of the
// time, find the same winner or one that a record declares as a tie, and none that is slower
// than the default.
func TestRecordedSpaces(t *testing.T) {
	if testing.Short() {
		t.Skip("it tunes 56 times")
	}
	for _, c := range []struct {
		load       float64
		times      uint64
		candidates int
	}{{0, 1, 0}, {0, 2, 40}, {0.5, 4, 0}} {
		pairs, flips, undeclared, slower := 0, 0, 0, 0
		var found errorsFound
		recordedPairs(t, c.times, c.load, c.candidates, func(s *recordedSpace, a, b *cache.Record) {
			pairs++
			for _, r := range []*cache.Record{a, b} {
				found.add(s, r)
				if s.known[r.Plan][1] > 1.01*s.known[r.Default][1] {
					slower++
				}
				if len(r.Trials) < cheapestTried {
					t.Logf("load %v: %d were tried, the race ended by %s: %+v", c.load, len(r.Trials), r.Certificate.Ended, r.Certificate.Visits)
				}
			}
			if a.Plan != b.Plan {
				flips++
				if !slices.Contains(a.Ties, b.Plan) && !slices.Contains(b.Ties, a.Plan) {
					undeclared++
					t.Logf("load %v: %s, then %s", c.load, a.Plan, b.Plan)
				}
			}
		})
		t.Logf("load %v, %d pairs: %d winners over 1 %% slower than the default, %d flips, %d not declared",
			c.load, pairs, slower, flips, undeclared)
		t.Logf("load %v: %v", c.load, &found)
		if undeclared > 0 || slower > 0 {
			t.Error("noise decides")
		}
	}
}
