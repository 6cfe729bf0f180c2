package gpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// A groupedProduct is a product of groups of rows, each with its own matrix.
type groupedProduct struct {
	d                string
	rows, n, k       int64
	groups           int64
	right, outermost bool
	// Weights is set where the groups are of what is contracted: a matrix for each.
	weights bool
	// Numbers are those that groups begin and end with; nil where they are a parameter.
	numbers [][2]int64
}

// text is the product in HLO, as JAX 0.10 takes ragged_dot apart.
func (c groupedProduct) text() string {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	g, sum := c.groups, c.d
	if c.d == "s8" {
		sum = "s32"
	}
	dims := fmt.Sprintf("%d,%d,%d", g, c.rows, c.k)
	param := 0
	next := func() int { param++; return param - 1 }
	if c.numbers == nil {
		line("ends = s32[%d] parameter(%d)", g, next())
		line("z = s32[1] constant({0})")
		line("most = s32[%d] slice(ends), slice={[0:%d]}", g-1, g-1)
		line("starts = s32[%d] concatenate(z, most), dimensions={0}", g)
	} else {
		var list [2][]string
		for _, x := range c.numbers {
			for k, v := range x {
				list[k] = append(list[k], fmt.Sprint(v))
			}
		}
		line("starts = s32[%d] constant({%s})", g, strings.Join(list[0], ", "))
		line("ends = s32[%d] constant({%s})", g, strings.Join(list[1], ", "))
	}
	line("x = %s[%d,%d] parameter(%d)", c.d, c.rows, c.k, next())
	line("xg = %s[%s] broadcast(x), dimensions={1,2}", c.d, dims)
	line("row = s32[%s] iota(), iota_dimension=1", dims)
	line("from = s32[%s] broadcast(starts), dimensions={0}", dims)
	line("to = s32[%s] broadcast(ends), dimensions={0}", dims)
	line("begun = pred[%s] compare(from, row), direction=LE", dims)
	line("open = pred[%s] compare(row, to), direction=LT", dims)
	line("own = pred[%s] and(begun, open)", dims)
	line("zero = %s[] constant(0)", c.d)
	line("zeros = %s[%s] broadcast(zero), dimensions={}", c.d, dims)
	line("a = %s[%s] select(own, xg, zeros)", c.d, dims)
	if c.weights {
		line("y = %s[%d,%d] parameter(%d)", c.d, c.rows, c.n, next())
		line("b = %s[%d,%d,%d] broadcast(y), dimensions={1,2}", c.d, g, c.rows, c.n)
		line("ROOT p = %s[%d,%d,%d] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}", sum, g, c.k, c.n)
		return s.String()
	}
	line("b = %s[%d,%d,%d] parameter(%d)", c.d, g, c.k, c.n, next())
	lc, rc := "2,0", "1,0"
	if c.outermost {
		lc, rc = "0,2", "0,1"
	}
	if c.right {
		line("ROOT p = %s[%d,%d] dot(b, a), lhs_contracting_dims={%s}, rhs_contracting_dims={%s}", sum, c.n, c.rows, rc, lc)
	} else {
		line("ROOT p = %s[%d,%d] dot(a, b), lhs_contracting_dims={%s}, rhs_contracting_dims={%s}", sum, c.rows, c.n, lc, rc)
	}
	return s.String()
}

// oddGroups are numbers that no sizes of groups give: rows that are in two groups or in none,
// groups that end before they begin, and the ends of the type.
func oddGroups(rng *rand.Rand, n, rows int64) (all [][2]int64) {
	draw := func() int64 {
		if rng.IntN(6) == 0 {
			return []int64{math.MinInt32, math.MaxInt32, -1, rows}[rng.IntN(4)]
		}
		return rng.Int64N(rows)
	}
	for range n {
		all = append(all, [2]int64{draw(), draw()})
	}
	return all
}

// Products of groups of rows give the reference's results with every kind of schedule, also
// for groups that overlap, are empty or are outside of the rows.
func TestGroupedProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	pick := func(list ...int64) int64 { return list[rng.IntN(len(list))] }
	ran := map[string]int{}
	for n := range 24 {
		target := []string{"sm_80", "sm_90a"}[n%2]
		dev := newSimulator(target)
		dev.spec.SMs = 2
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) { return dev, nil })
		if err != nil {
			t.Fatal(err)
		}
		c := groupedProduct{
			d: []string{"bf16", "f16", "f32", "s8"}[rng.IntN(4)], rows: pick(40, 128, 200, 256),
			n: pick(64, 128), k: pick(32, 64, 128), groups: pick(2, 3, 5, 8),
			right: rng.IntN(3) == 0, outermost: rng.IntN(2) == 0, weights: rng.IntN(4) == 0,
		}
		if n == 11 {
			// More than the lanes of a warp.
			c.groups, c.n = 40, 64
		}
		if rng.IntN(2) == 0 {
			c.numbers = oddGroups(rng, c.groups, c.rows)
		}
		p := kerneltest.Program(t, c.text())
		v := kerneltest.Verifier(t, p, int64(n))
		for range 4 {
			tiling := symtile.Tiling{min(c.rows, pick(32, 64, 128)), pick(32, 64), pick(1, 1, 1, 2), pick(16, 32, 64)}
			switch {
			case c.weights:
				tiling = symtile.Tiling{pick(1, 1, 1, 2), pick(16, 32), pick(32, 64), pick(16, 32, 64)}
			case c.right:
				tiling[0], tiling[1] = tiling[1], tiling[0]
			}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With("stages", pick(1, 2, 3))
			switch rng.IntN(6) {
			case 0, 1:
				plan = plan.With("persistent", pick(1, 1, 2)).With("producer", pick(1, 4))
			case 2:
				plan = plan.With("cluster", 2).With("producer", 1)
			case 3:
				plan = plan.With([]string{"splitk", "streamk"}[rng.IntN(2)], 3)
			}
			dev.last.WGMMA = 0
			if p.Check(tiling) == nil && verify(t, New(s), v, p, plan) {
				ran[target]++
				for _, k := range plan.Knobs {
					ran[fmt.Sprint(k.Name, "=", k.Value)]++
				}
				if dev.last.WGMMA > 0 {
					ran["wgmma"]++
				}
			}
			if t.Failed() {
				t.Log(c.text())
				return
			}
		}
	}
	t.Log(ran)
	for _, what := range []string{"sm_80", "sm_90a", "wgmma", "persistent=1", "cluster=2", "streamk=3"} {
		if ran[what] == 0 {
			t.Errorf("no plan of %s", what)
		}
	}
}

// Blocks multiply the tiles of the groups that they have rows of: with eight groups of 32 rows
// and tiles of 64, each block has two or three groups of eight.
func TestGroupsAreLeftOut(t *testing.T) {
	c := groupedProduct{d: "bf16", rows: 256, n: 64, k: 64, groups: 8}
	for n := range c.groups {
		c.numbers = append(c.numbers, [2]int64{32 * n, 32 * (n + 1)})
	}
	p := kerneltest.Program(t, c.text())
	v := kerneltest.Verifier(t, p, 1)
	for _, target := range []string{"sm_80", "sm_90a"} {
		dev := newSimulator(target)
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) { return dev, nil })
		if err != nil {
			t.Fatal(err)
		}
		var products [2]int64
		for k, groups := range []int64{1, 2} {
			plan := kernels.Plan{Tiles: symtile.Tiling{64, 64, groups, 64}}.With("warps", 4)
			if !verify(t, New(s), v, p, plan) {
				t.Fatal(plan)
			}
			products[k] = dev.last.WGMMA*64*64*16 + dev.last.MMA*16*8*16
		}
		all := c.groups * c.rows * c.n * c.k
		if products != [2]int64{all / 4, all} {
			t.Errorf("%s: %v products of %d", target, products, all)
		}
	}
}

// Rows are selected two elements at a time, as they come from shared memory: four selections for
// each wgmma, and nothing is converted.
func TestGroupedWords(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []bool{false, true} {
		c := groupedProduct{d: "bf16", rows: 256, n: 64, k: 64, groups: 8, right: right}
		plan := kernels.Plan{Tiles: symtile.Tiling{64, 64, 1, 64}}.With("warps", 4)
		text, err := PTX(kerneltest.Program(t, c.text()), plan, s)
		if err != nil {
			t.Fatal(err)
		}
		_, loop, _ := strings.Cut(text, "$LOOP:")
		loop, _, _ = strings.Cut(loop, "bra $LOOP")
		products := strings.Count(loop, "wgmma.mma_async")
		// Two more bound what is read of the numbers of groups.
		selected := strings.Count(loop, "selp.")
		if products != 4 || selected > 4*products+2 || strings.Contains(loop, "cvt.") {
			t.Errorf("right=%v: %d products, %d selections:\n%s", right, products, selected, loop)
		}
	}
}

// The price of a plan that leaves groups out is that of what is left: with 2,048 rows of eight
// groups less than a third of the price of all.
func TestGroupedPrice(t *testing.T) {
	for _, name := range []string{"A100", "H100"} {
		s, err := device.ParseSpec(name)
		if err != nil {
			t.Fatal(err)
		}
		c := groupedProduct{d: "bf16", rows: 2048, n: 1024, k: 1024, groups: 8}
		all, err := feasibleCandidates(t.Context(), kerneltest.Program(t, c.text()), s, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		whole := math.Inf(1)
		for _, x := range all {
			if x.tiling[2] > 1 {
				whole = min(whole, x.seconds)
			}
		}
		t.Logf("%s: %.1f µs, %.1f with all groups", name, all[0].seconds*1e6, whole*1e6)
		if all[0].tiling[2] != 1 || all[0].seconds > whole/2.5 {
			t.Errorf("%s: %s in %g s, all groups in %g s", name, all[0].plan(), all[0].seconds, whole)
		}
	}
}
