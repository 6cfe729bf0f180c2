package tuner

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Moving time between any two claims never gains: the division is the best of those
// in which a claim that gets time gets more than its setup.
func TestDivideIsBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		claims := make([]claim, 1+rng.IntN(6))
		for k := range claims {
			claims[k] = claim{
				most:  math.Exp(4 * rng.NormFloat64()),
				setup: time.Duration(rng.Int64N(int64(time.Second))),
				scale: time.Duration(1 + rng.Int64N(int64(10*time.Second))),
			}
		}
		total := time.Duration(rng.Int64N(int64(time.Minute)))
		times := divide(total, claims)
		sum := time.Duration(0)
		for _, x := range times {
			sum += x
		}
		if sum > total+time.Millisecond {
			t.Fatalf("%v divided as %v, %v", total, times, sum)
		}
		const step = 10 * time.Millisecond
		for a := range claims {
			for b := range claims {
				if a == b || times[a] <= claims[a].setup+step || times[b] <= claims[b].setup {
					continue
				}
				before := claims[a].gain(times[a]) + claims[b].gain(times[b])
				after := claims[a].gain(times[a]-step) + claims[b].gain(times[b]+step)
				if after > before*(1+1e-6) {
					t.Fatalf("%+v: %v; %v from %d to %d gains %v", claims, times, step, a, b, after-before)
				}
			}
		}
	}
}

// Limits that fit are given whole; nothing is given where nothing can be gained, or
// where the setup takes all of the time.
func TestDivideAtItsEdges(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		total  time.Duration
		claims []claim
		want   []time.Duration
	}{
		"limits fit":  {time.Hour, []claim{{1, s, s, 2 * s}, {5, s, s, 3 * s}}, []time.Duration{3 * s, 4 * s}},
		"no gain":     {time.Hour, []claim{{0, s, s, 2 * s}, {5, s, s, 3 * s}}, []time.Duration{0, 4 * s}},
		"long setup":  {s, []claim{{1, 2 * s, s, 0}}, []time.Duration{0}},
		"nothing":     {s, nil, nil},
		"no time":     {0, []claim{{1, 0, s, 0}}, []time.Duration{0}},
		"the greater": {10 * s, []claim{{1e-9, 4 * s, s, 0}, {1, 4 * s, s, 0}}, []time.Duration{0, 10 * s}},
	} {
		got := divide(c.total, c.claims)
		for k, want := range c.want {
			if d := got[k] - want; d < -time.Millisecond || d > time.Millisecond {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}
