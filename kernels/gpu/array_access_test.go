package gpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// emitted is the emitter of a plan's kernel when it is done with it, where choices
// were made before, if any; nil if the plan is refused.
func emitted(
	t *testing.T, p *symtile.Program,
	plan kernels.Plan, h *hints, made func(*emitter),
) (e *emitter) {
	sheet := newSimulator("sm_80").Spec()
	k, err := knobsOf(plan, sheet)
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.At(plan.Tiles)
	if err != nil {
		return nil
	}
	defer func() {
		if r, refused := recover().(unsupported); refused {
			t.Log(r)
			e = nil
		}
	}()
	for h.changed = true; h.changed; {
		h.changed = false
		e = newEmitter(q, sheet, k, h)
		e.begin(phaseWhole, ptx.NewBuilder(versionOf(q, sheet.Target, true)), map[string]operand{})
		made(e)
		e.kernel()
	}
	return e
}

// moved is what an emitted kernel moves of global memory over the grid; false
// where that is not foreseen.
func moved(e *emitter) (coalesce.Count, bool) {
	if e == nil {
		return coalesce.Count{}, false
	}
	x, err := e.traffic()
	return x.Load.Plus(x.Store), err == nil
}

// permutations of the dimensions that have more than one element, the others
// after them.
func permutations(sizes []int64) [][]int {
	all := [][]int{{}}
	for d := range sizes {
		var longer [][]int
		for _, o := range all {
			for k := range len(o) + 1 {
				longer = append(longer, slices.Insert(slices.Clone(o), k, d))
				if sizes[d] == 1 {
					break
				}
			}
		}
		all = longer
	}
	return all
}

// A rivalry is of a kernel and those with other spreads than were chosen for it.
type rivalry struct {
	t     *testing.T
	p     *symtile.Program
	plan  kernels.Plan
	hints *hints
	best  coalesce.Count
	tried int
	fewer int // that move fewer sectors, in more requests
}

// against emits the kernel with a thread layout in place of the one that was chosen, if
// it serves as many arrays.
func (r *rivalry) against(what any, c chosenLayout, s *coalesce.ThreadLayout, made func(*emitter, chosenLayout)) {
	for k, x := range c.accesses {
		if c.Coalesced[k] &&
			!c.box.Count(s, x.ArrayAccess).CoalescedLike(c.Counts[k]) {
			return
		}
	}
	r.tried++
	c.Layout = s
	n, ok := moved(
		emitted(r.t, r.p, r.plan, r.hints, func(e *emitter) {
			made(e, c)
		}),
	)
	switch {
	case !ok || 100*r.best.Sectors <= 103*n.Sectors:
	case n.Requests > r.best.Requests:
		r.fewer++
	default:
		r.t.Errorf("plan %s: %v: %+v, and %+v by %+v", r.plan, what, r.best, n, *s)
	}
}

// flats tries all orders and widths for a tile.
func (r *rivalry) flats(key choiceKey, c chosenLayout) {
	for _, o := range permutations(c.box.Sizes) {
		fast := int64(1)
		if len(o) > 0 {
			fast = c.box.Sizes[coalesce.FastestDim(c.box.Sizes, o)]
		}
		for v := c.box.VectorWidth(fast); v >= 1; v /= 2 {
			s := coalesce.NewThreadLayout(c.box.Sizes, nil, o, c.box.Threads, c.box.Threads, v)
			r.against(key, c, s, func(e *emitter, c chosenLayout) { e.choices[key] = c })
		}
	}
}

// onTensors reports whether a choice is for an operand that tensor cores read in
// chunks of 16 bytes: it says along what, not how threads go over it.
func onTensors(e *emitter, key choiceKey) bool {
	return !key.stored && hasTensor(e.p, e.spec, e.knobs) &&
		slices.ContainsFunc(e.p.Ops, func(op symtile.Op) bool {
			return op.Code == hlo.OpDot && slices.Contains(op.Args, key.op)
		})
}

// The thread layout that is chosen for a tile moves, counted by the requests of the
// whole kernel over its grid, the fewest sectors of all orders of its dimensions
// and all widths of vectors that serve its arrays as well. Some others move fewer
// in more requests: what broadcasts read again is counted once when it is chosen.
func TestChosenSpreads(t *testing.T) {
	choices, tried, fewer := 0, 0, 0
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		tilings := slices.Collect(p.Space.Tilings())
		rng := rand.New(rand.NewPCG(3, uint64(len(tilings))))
		for range 200 {
			plan := kernels.Plan{
				Tiles: tilings[rng.IntN(len(tilings))],
			}.With("warps", 1<<rng.IntN(4)).With(
				"epilogue", rng.Int64N(2),
			)
			q, err := p.At(plan.Tiles)
			if err != nil || q.Programs() > 60 || loopTurns(p, plan.Tiles) > 300 {
				continue
			}
			r := &rivalry{
				t:    t,
				p:    p,
				plan: plan,
				hints: &hints{
					sharedResults:  map[bufferKey]bool{},
					staged:         map[int]bool{},
					separateStores: map[int]bool{},
				},
			}
			e := emitted(t, p, plan, r.hints, func(*emitter) {})
			var ok bool
			if r.best, ok = moved(e); !ok {
				break
			}
			for key, c := range e.choices {
				if !onTensors(e, key) {
					r.flats(key, c)
				}
			}
			for key, c := range e.folds {
				for _, s := range c.box.ReductionLayouts(permutations(c.box.Sizes)[0], *c.fold) {
					r.against(key, c, s, func(e *emitter, c chosenLayout) { e.folds[key] = c })
				}
			}
			choices = choices + len(e.choices) + len(e.folds)
			tried = tried + r.tried
			fewer = fewer + r.fewer
			break
		}
	})
	t.Logf("%d choices; of %d others %d move fewer sectors in more requests", choices, tried, fewer)
	if choices < 40 || 20*fewer > tried {
		t.Errorf("%d choices; of %d others %d move fewer sectors", choices, tried, fewer)
	}
}

// wasteful says why the default plans of fusions move more than a quarter more
// sectors than their requests would need.
var wasteful = map[string]string{
	"fused_computation.gemm_prologue":  "tiles of 3 rows of fragments",
	"fused_computation.reverse_slice":  "rows of 50 elements, reversed: neighbours go down, and begin anywhere in a sector",
	"fused_computation.int8_gemm":      "tiles of 2 rows and 40 columns of bytes: parts of sectors",
	"fused_computation.odd_primes":     "rows of a prime length begin anywhere in a sector",
	"fused_computation.pad":            "rows of odd lengths begin anywhere in a sector",
	"fused_computation.conv1d_dilated": "fragments of tensor cores are stored as they lie: 16 bytes of a row each",
}

// The kernels of default plans move about as many sectors as their requests
// need, or it is known why not.
func TestSectors(t *testing.T) {
	sheet := newSimulator("sm_80").Spec()
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		plan, err := DefaultPlan(t.Context(), p, sheet)
		if err != nil {
			t.Fatal(err)
		}
		im, err := compile(p, plan, sheet)
		if err != nil {
			t.Fatal(err)
		}
		x, err := im.traffic()
		if err != nil {
			t.Skip(err)
		}
		less := true
		for _, c := range []coalesce.Count{x.Load, x.Store} {
			much := 4*c.Sectors > 5*c.Ideal
			if less = less && !much; much && wasteful[p.Fusion.Name] == "" {
				t.Errorf("plan %s: %d sectors, %d would do", plan, c.Sectors, c.Ideal)
			}
		}
		if less && wasteful[p.Fusion.Name] != "" {
			t.Errorf("plan %s: %+v is no more than is needed, in spite of %s", plan, x, wasteful[p.Fusion.Name])
		}
	})
}
