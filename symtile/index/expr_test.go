package index

import (
	"fmt"
	"math/rand"
	"testing"
)

// A naive is an expression as a person would evaluate it, beside the same
// expression in normal form.
type naiveExpr struct {
	e    Expr
	f    func(v []int64) int64
	text string
}

// A generator makes random expressions over a box of variables d0.. in [lo, hi].
type generator struct {
	rnd      *rand.Rand
	vars     []Expr
	lo, hi   []int64
	noSymbol bool
}

func newGenerator(seed int64, r *Ring, dims int) *generator {
	g := &generator{rnd: rand.New(rand.NewSource(seed))}
	for i := range dims {
		lo := []int64{
			0, 0, 0, 0, 1, 1, -3,
		}[g.rnd.Intn(7)]
		hi := lo +
			[]int64{1, 2, 3, 4, 5, 6, 7}[g.rnd.Intn(7)]
		g.lo, g.hi = append(g.lo, lo), append(g.hi, hi)
		g.vars = append(
			g.vars,
			r.Var(Variable{Name: fmt.Sprintf("d%d", i), Lo: lo, Hi: hi}),
		)
	}
	return g
}

func (g *generator) leaf() naiveExpr {
	if g.rnd.Intn(4) == 0 {
		c := int64(g.rnd.Intn(25) - 12)
		return naiveExpr{
			g.vars[0].r.Const(c),
			func([]int64) int64 { return c },
			fmt.Sprint(c),
		}
	}
	i := g.rnd.Intn(len(g.vars))
	return naiveExpr{
		g.vars[i],
		func(v []int64) int64 { return v[i] },
		fmt.Sprintf("d%d", i),
	}
}

func (g *generator) expr(depth int) naiveExpr {
	if depth == 0 {
		return g.leaf()
	}
	x, y := g.expr(depth-1), g.expr(g.rnd.Intn(depth))
	k := []int64{
		1, 2, 3, 4, 5, 6, 8, 12, 16,
	}[g.rnd.Intn(9)]
	switch g.rnd.Intn(13) {
	case 0, 1:
		return naiveExpr{
			x.e.Add(y.e),
			func(v []int64) int64 { return x.f(v) + y.f(v) },
			"(" + x.text + " + " + y.text + ")",
		}
	case 2:
		return naiveExpr{
			x.e.Sub(y.e),
			func(v []int64) int64 { return x.f(v) - y.f(v) },
			"(" + x.text + " - " + y.text + ")",
		}
	case 3:
		return naiveExpr{
			x.e.Scale(k),
			func(v []int64) int64 { return x.f(v) * k },
			fmt.Sprintf("(%s * %d)", x.text, k),
		}
	case 4, 5, 6:
		return naiveExpr{
			x.e.Div(k),
			func(v []int64) int64 { return FloorDiv(x.f(v), k) },
			fmt.Sprintf("(%s floordiv %d)", x.text, k),
		}
	case 7:
		return naiveExpr{
			x.e.Mod(k),
			func(v []int64) int64 { return floorMod(x.f(v), k) },
			fmt.Sprintf("(%s mod %d)", x.text, k),
		}
	case 8:
		return naiveExpr{
			x.e.CeilDiv(k),
			func(v []int64) int64 { return -FloorDiv(-x.f(v), k) },
			fmt.Sprintf("(%s ceildiv %d)", x.text, k),
		}
	case 9:
		return naiveExpr{
			x.e.Min(y.e),
			func(v []int64) int64 { return min(x.f(v), y.f(v)) },
			"min(" + x.text + ", " + y.text + ")",
		}
	case 10:
		return naiveExpr{
			x.e.Max(y.e),
			func(v []int64) int64 { return max(x.f(v), y.f(v)) },
			"max(" + x.text + ", " + y.text + ")",
		}
	case 11:
		if x.e.Range().Lo > 0 && !g.noSymbol {
			switch g.rnd.Intn(3) {
			case 0:
				return naiveExpr{
					y.e.DivExpr(x.e),
					func(v []int64) int64 { return FloorDiv(y.f(v), x.f(v)) },
					"(" + y.text + " floordiv " + x.text + ")",
				}
			case 1:
				return naiveExpr{
					y.e.CeilDivExpr(x.e),
					func(v []int64) int64 { return -FloorDiv(-y.f(v), x.f(v)) },
					"(" + y.text + " ceildiv " + x.text + ")",
				}
			}
			return naiveExpr{
				y.e.ModExpr(x.e),
				func(v []int64) int64 { return floorMod(y.f(v), x.f(v)) },
				"(" + y.text + " mod " + x.text + ")",
			}
		}
	}
	return naiveExpr{
		x.e.Mul(y.e),
		func(v []int64) int64 { return x.f(v) * y.f(v) },
		"(" + x.text + " * " + y.text + ")",
	}
}

// points calls f for every point of the box until it returns false.
func points(lo, hi []int64, f func(v []int64) bool) {
	v := append([]int64(nil), lo...)
	for {
		if !f(v) {
			return
		}
		i := len(v) - 1
		for ; i >= 0 && v[i] == hi[i]; i-- {
			v[i] = lo[i]
		}
		if i < 0 {
			return
		}
		v[i]++
	}
}

// TestExprMeaning compares random expressions with naive evaluation on every
// point of their box, and their ranges and congruences with what occurs.
func TestExprMeaning(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 2000
	}
	r := NewRing()
	for seed := range n {
		r.Reset()
		g := newGenerator(int64(seed), r, 3)
		x := g.expr(1 + g.rnd.Intn(5))
		if r.Err() != nil {
			continue
		}
		checkMeaning(t, g, x)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkMeaning(t *testing.T, g *generator, x naiveExpr) {
	code, err := Compile(g.vars, []Expr{x.e})
	if err != nil {
		t.Error(err)
		return
	}
	in := x.e.Range()
	m, res := x.e.Congruence()
	out, scratch := make([]int64, 1), make([]int64, code.ScratchLen())
	points(g.lo, g.hi, func(v []int64) bool {
		want := x.f(v)
		code.Eval(v, out, scratch)
		switch {
		case out[0] != want:
			t.Errorf(
				"%s\n = %s\n%v..%v at %v: got %d, want %d",
				x.text, x.e, g.lo,
				g.hi, v, out[0], want,
			)
		case !in.Contains(want):
			t.Errorf("%s\n = %s\n%v..%v at %v: %d is not in %v", x.text, x.e, g.lo, g.hi, v, want, in)
		case m == 0 && want != res || m > 0 && floorMod(want, m) != res:
			t.Errorf("%s\n = %s at %v: %d is not %d mod %d", x.text, x.e, v, want, res, m)
		default:
			return true
		}
		return false
	})
}
