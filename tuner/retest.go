package tuner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
)

// A Retest is a certificate beside new measurements of the same plans.
type Retest struct {
	// Comparisons of the stored winner with the others, of new blocks only.
	Comparisons []cache.Comparison
	// Regret is the winner's median ratio to the best of them, minus 1: 0 where none is
	// faster.
	Regret float64
	// Refuted are the plans that the winner is slower than by more than the certificate
	// says, beyond doubt: at its confidence for all comparisons together.
	Refuted []string
	// Visit is the state of the device meanwhile.
	Visit cache.Visit
}

// retestStream separates the random numbers of retests from those of races: "test" in
// ASCII.
const retestStream = 0x74657374

// Retest measures the plans of a record's certificate again, in as many blocks as its
// claim needs twice, and holds the claim against that. Nothing is stored. Plans are verified
// before they are timed, as in a race; the error is that of the fusion, of a winner that no
// longer runs, or of ctx. A record without a certificate has no claim: *NoClaimError.
func (t *Tuner) Retest(ctx context.Context, r *cache.Record) (Retest, error) {
	if r.Certificate == nil || r.Regret < 0 {
		return Retest{}, &NoClaimError{r.Name}
	}
	folder, err := os.MkdirTemp("", "retest")
	if err != nil {
		return Retest{}, err
	}
	defer os.RemoveAll(folder)
	apart := *t
	apart.Cache = cache.Open(filepath.Join(folder, "samples.db"))
	race, err := apart.retestRace(ctx, r)
	if err != nil {
		return Retest{}, fmt.Errorf("%s: %w", r.Name, err)
	}
	defer race.close()
	if err := race.verifyAll(ctx); err != nil {
		return Retest{}, fmt.Errorf("%s: %w", r.Name, err)
	}
	winner := race.candidates[0]
	if winner.eliminated {
		return Retest{}, race.noWinner(ErrNothingRan)
	}
	for need := 2 * fewestBlocks(race.pairError()); race.blocks() < need; {
		if err := race.timeCounted(ctx, race.ran()); err != nil {
			return Retest{}, err
		}
	}
	return race.retested(winner, r.Regret), nil
}

// A NoClaimError is about a record whose regret is not known, or that is from before there
// were certificates.
type NoClaimError struct{ Fusion string }

func (e *NoClaimError) Error() string {
	return e.Fusion + ": its record makes no claim that could be measured again"
}

// retestRace is a race of the winner of a record, first, and the plans that it was
// compared with.
func (t *Tuner) retestRace(ctx context.Context, r *cache.Record) (*race, error) {
	p, err := kernels.ProgramOfText(ctx, r.Canonical)
	if err != nil {
		return nil, err
	}
	pricer, err := kernels.PricerOf(t.Backend, p)
	if err != nil {
		return nil, err
	}
	texts := []string{r.Plan}
	for _, x := range r.Certificate.Comparisons {
		texts = append(texts, x.Plan)
	}
	s := &selection{tuner: t, program: p, fusion: p.Fusion, key: r.Key}
	for _, text := range texts {
		plan, err := kernels.ParsePlan(text)
		if err != nil {
			return nil, err
		}
		ranked, err := (&cost.Model{}).Rank(ctx, pricer, []kernels.Plan{plan})
		if err != nil {
			return nil, err
		}
		if err := s.add(ranked); err != nil {
			return nil, err
		}
	}
	seed := uint64(t.Options.Seed)
	x := &race{
		selection: s,
		rng:       rand.New(rand.NewPCG(seed, retestStream)),
		recheck:   rand.New(rand.NewPCG(seed, recheckStream)),
	}
	return x, nil
}

// retested holds a claim against what was measured.
func (r *race) retested(winner *candidate, claim float64) Retest {
	out := Retest{Comparisons: r.comparisons(winner), Visit: r.watch.end()}
	alpha := r.pairError()
	for _, x := range r.ran() {
		if x == winner {
			continue
		}
		_, ratios := r.ratios(x, winner)
		if atMost(ratios, alpha) < 1/(1+claim) {
			out.Refuted = append(out.Refuted, x.trial.Plan)
		}
	}
	for _, x := range out.Comparisons {
		out.Regret = max(out.Regret, x.Ratio-1)
	}
	return out
}
