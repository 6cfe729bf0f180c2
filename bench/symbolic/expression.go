package main

import (
	"fmt"
	"strconv"
	"strings"
)

// An operator is what a node of an expression computes.
type operator byte

// The operators of the texts of all engines.
const (
	opConst operator = iota
	opVar
	opAdd
	opSub
	opNeg
	opMul
	opDiv
	opCeil
	opMod
)

// An expression is a tree as it was written. Divisors are constants.
type expression struct {
	op operator
	// Operands; y is nil for opNeg, both are for opConst and opVar.
	x, y *expression
	// The number of opConst, which variable opVar is.
	c int64
}

// A reader parses the syntax that MLIR, isl's driver and the simplifier share:
// + − *, floordiv, ceildiv and mod, which bind as * does.
type reader struct {
	// What is left of the text.
	text string
	// Numbers of the variables.
	names map[string]int64
}

// numberOf numbers the names from 0 on.
func numberOf(names []string) map[string]int64 {
	out := map[string]int64{}
	for i, name := range names {
		out[name] = int64(i)
	}
	return out
}

// parse reads text over the named variables.
func parse(text string, names map[string]int64) (e *expression, err error) {
	r := &reader{text, names}
	defer func() {
		if f, failed := recover().(parseError); failed {
			err = fmt.Errorf("%q at %q: %s", text, r.text, string(f))
		}
	}()
	e = r.sum()
	if r.space(); r.text != "" {
		panic(parseError("trailing text"))
	}
	return e, nil
}

// A parseError ends the reading of one text.
type parseError string

// space skips blanks.
func (r *reader) space() { r.text = strings.TrimLeft(r.text, " ") }

// take skips word if the text goes on with it.
func (r *reader) take(word string) bool {
	r.space()
	rest, ok := strings.CutPrefix(r.text, word)
	if ok {
		r.text = rest
	}
	return ok
}

// sum reads products with + and − between them.
func (r *reader) sum() *expression {
	e := r.product()
	for {
		switch {
		case r.take("+"):
			e = &expression{op: opAdd, x: e, y: r.product()}
		case r.take("-"):
			e = &expression{op: opSub, x: e, y: r.product()}
		default:
			return e
		}
	}
}

// product reads factors with the other operators between them.
func (r *reader) product() *expression {
	e := r.factor()
	for {
		switch {
		case r.take("*"):
			e = &expression{op: opMul, x: e, y: r.factor()}
		case r.take("floordiv"):
			e = r.divided(opDiv, e)
		case r.take("ceildiv"):
			e = r.divided(opCeil, e)
		case r.take("mod"):
			e = r.divided(opMod, e)
		default:
			return e
		}
	}
}

// divided reads the divisor of x.
func (r *reader) divided(op operator, x *expression) *expression {
	y := r.factor()
	if y.op != opConst || y.c <= 0 {
		panic(parseError("the divisor is no positive constant"))
	}
	return &expression{op: op, x: x, y: y}
}

// factor reads a number, a name, a sign or a parenthesis.
func (r *reader) factor() *expression {
	switch {
	case r.take("-"):
		x := r.factor()
		if x.op == opConst {
			return &expression{op: opConst, c: -x.c}
		}
		return &expression{op: opNeg, x: x}
	case r.take("("):
		e := r.sum()
		if !r.take(")") {
			panic(parseError("a parenthesis is not closed"))
		}
		return e
	}
	return r.word()
}

// word reads a number or a name.
func (r *reader) word() *expression {
	r.space()
	n := strings.IndexFunc(r.text, func(c rune) bool {
		return (c < '0' ||
			c > '9') && (c < 'a' || c > 'z')
	})
	if n < 0 {
		n = len(r.text)
	}
	word := r.text[:n]
	r.text = r.text[n:]
	if v, known := r.names[word]; known {
		return &expression{op: opVar, c: v}
	}
	c, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(parseError("neither a number nor a variable"))
	}
	return &expression{op: opConst, c: c}
}

// at is the value of e where variable i is v[i].
func (e *expression) at(v []int64) int64 {
	switch e.op {
	case opConst:
		return e.c
	case opVar:
		return v[e.c]
	case opNeg:
		return -e.x.at(v)
	}
	x, y := e.x.at(v), e.y.at(v)
	switch e.op {
	case opAdd:
		return x + y
	case opSub:
		return x - y
	case opMul:
		return x * y
	case opDiv:
		return floorDiv(x, y)
	case opCeil:
		return -floorDiv(-x, y)
	}
	return x - y*floorDiv(x, y)
}

// floorDiv is ⌊x/y⌋ for y > 0.
func floorDiv(x, y int64) int64 {
	q := x / y
	if x%y < 0 {
		q--
	}
	return q
}

// substitute is e with with[i] for variable i.
func (e *expression) substitute(with []*expression) *expression {
	switch e.op {
	case opConst:
		return e
	case opVar:
		return with[e.c]
	}
	out := &expression{op: e.op, x: e.x.substitute(with)}
	if e.y != nil {
		out.y = e.y.substitute(with)
	}
	return out
}

// symbols are the operators as texts write them.
var symbols = map[operator]string{opAdd: "+", opSub: "-", opMul: "*", opDiv: "floordiv", opCeil: "ceildiv", opMod: "mod"}

// String writes e with all parentheses.
func (e *expression) String() string {
	switch e.op {
	case opConst:
		return fmt.Sprint(e.c)
	case opVar:
		return fmt.Sprint("x", e.c)
	case opNeg:
		return "(-" + e.x.String() + ")"
	}
	return "(" + e.x.String() + " " + symbols[e.op] + " " + e.y.String() + ")"
}
