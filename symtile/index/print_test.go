package index

import "testing"

// TestPrintParses: what String prints is read back as the same expression.
func TestPrintParses(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 2000
	}
	r, bad, total := NewRing(), 0, 0
	for seed := range n {
		r.Reset()
		g := newGenerator(int64(seed), r, 3)
		x := g.expr(1 + g.rnd.Intn(5))
		if r.Err() != nil {
			continue
		}
		total++
		vars := map[string]Expr{}
		for _, v := range g.vars {
			vars[v.String()] = v
		}
		text := x.e.String()
		back, err := r.Parse(text, vars)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkMeaning(t, g, naiveExpr{back, x.f, text})
		if t.Failed() {
			t.Fatalf("seed %d %s", seed, x.text)
		}
		if back != x.e {
			if bad++; bad <= 10 {
				t.Errorf("seed %d: %s\n reads  %s", seed, text, back)
			}
		}
	}
	t.Logf("%d of %d read back as another form", bad, total)
}

// TestExtractConstant: a sum whose terms cancelled when its dividends were recentred
// is a constant, which is no remainder (a chain of seed 991 panicked).
func TestExtractConstant(t *testing.T) {
	r := NewRing()
	if _, ok := r.remainderOf(constForm(3)); ok {
		t.Error("3 is a remainder")
	}
	if x, cost := r.search(constForm(3), 0); cost != 0 || len(x.t) != 0 || x.c != 3 {
		t.Errorf("3 is written %v at cost %d", x, cost)
	}
}
