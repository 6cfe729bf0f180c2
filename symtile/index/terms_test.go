package index

import "testing"

// rebuild makes e again from what Terms and Atom say.
func rebuild(e Expr) Expr {
	terms, c := e.Terms()
	sum := e.Ring().Const(c)
	for _, t := range terms {
		sum = sum.Add(rebuildAtom(t.Of).Scale(t.Factor))
	}
	return sum
}

func rebuildAtom(e Expr) Expr {
	kind, args := e.Atom()
	switch kind {
	case QuotientAtom:
		return rebuild(args[0]).DivExpr(rebuild(args[1]))
	case MinAtom:
		return rebuild(args[0]).Min(e.Ring().Const(0))
	case ProductAtom:
		product := e.Ring().Const(1)
		for _, f := range args {
			product = product.Mul(rebuild(f))
		}
		return product
	}
	return e
}

func TestTermsRebuildTheExpression(t *testing.T) {
	r := NewRing()
	vars := map[string]Expr{}
	for _, name := range []string{"x", "y", "s"} {
		vars[name] = r.Var(Variable{Name: name, Lo: 1, Hi: 1000, Role: RoleDim})
	}
	for _, text := range []string{"7", "x", "3*x + 2*y - 5", "x floordiv 8 + x mod 8", "(x*4 + y) floordiv 7", "x*s + y", "(x + 3) floordiv s", "min(x, y*2)", "max(x - 5, 0)"} {
		e, err := r.Parse(text, vars)
		if err != nil {
			t.Fatal(err)
		}
		if got := rebuild(e); got != e {
			t.Errorf("%s: rebuilt as %s", e, got)
		}
	}
}
