package index_test

import (
	"fmt"
	"log"

	"github.com/tilewright/tilewright/symtile/index"
)

// An expression is in normal form as soon as it is built: the digits of i in base 8
// are put together to i again, and what the ranges prove disappears.
func ExampleRing() {
	r := index.NewRing()
	i := r.Var(index.Variable{Name: "i", Lo: 0, Hi: 127})
	digits := i.Div(8).Scale(8).Add(i.Mod(8))
	fmt.Println(digits, digits == i)
	fmt.Println(i.Div(128), i.Mod(256), i.AddConst(128).Div(128))
	fmt.Println(i.Scale(4).Mod(8), i.Scale(4).Range())
	// Output:
	// i true
	// 0 i 1
	// (i mod 2) * 4 [0, 508]
}

// Parse reads the syntax that expressions are printed in.
func ExampleRing_Parse() {
	r := index.NewRing()
	vars := map[string]index.Expr{
		"s0": r.Var(index.Variable{Name: "s0", Hi: 255}),
		"s1": r.Var(index.Variable{Name: "s1", Hi: 255}),
	}
	e, err := r.Parse("s0 + s1*32 - (s0 floordiv 32)*32", vars)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e)
	fmt.Println(e.Range(), r.Fired())
	// Output:
	// s1 * 32 + s0 mod 32
	// [0, 8191] [range-mod]
}

// Composing the maps of two reshapes gives the identity.
func ExampleCompose() {
	r := index.NewRing()
	flatten, err := r.ParseMap("(d0) -> (d0 floordiv 64, d0 mod 64), domain: d0 in [0, 4095]")
	if err != nil {
		log.Fatal(err)
	}
	unflatten, err := r.ParseMap("(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 63], d1 in [0, 63]")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(index.Compose(unflatten, flatten).Simplify())
	// Output:
	// (d0, d1) -> (d0, d1), domain: d0 in [0, 63], d1 in [0, 63]
}

// Constraints are decided symbolically, for all values of their variables.
func ExampleConstraint() {
	r := index.NewRing()
	s := r.Var(index.Variable{Name: "s", Lo: 1, Hi: 64})
	divides := index.Divides(s, r.Const(64))
	small := index.Require(s, 1, 8)
	both := index.And(divides, small)
	fmt.Println(both.Simplify())
	fmt.Println("satisfiable:", both.Satisfiable())
	fmt.Println("implies s ≤ 16:", both.Implies(index.Require(s, 1, 16)))
	for v := int64(1); v <= 9; v++ {
		if both.Holds(map[index.Expr]int64{s: v}) {
			fmt.Print(v, " ")
		}
	}
	// Output:
	// 64 mod s in [0, 0] && s in [1, 8]
	// satisfiable: yes
	// implies s ≤ 16: yes
	// 1 2 4 8
}

// Compile makes a function of expressions that needs no ring and does not allocate.
func ExampleCompile() {
	r := index.NewRing()
	i := r.Var(index.Variable{Name: "i", Hi: 1023})
	j := r.Var(index.Variable{Name: "j", Hi: 31})
	f, err := index.Compile([]index.Expr{i, j}, []index.Expr{i.Div(32), i.Mod(32).Mul(j)})
	if err != nil {
		log.Fatal(err)
	}
	out := make([]int64, f.Results())
	scratch := make([]int64, f.ScratchLen())
	f.Eval([]int64{100, 3}, out, scratch)
	fmt.Println(out)
	// Output:
	// [3 12]
}
