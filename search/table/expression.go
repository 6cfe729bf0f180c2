package table

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// An expression is a constraint or a part of a plan, over the parameters: numbers, names,
// + - * / // %, comparisons, and, or, not (or && || !), and parentheses. "//" and "/" of
// two integers is their quotient rounded down; a truth is 1 or 0.
type expression struct{ tree ast.Expr }

// pythonWord is what of Python is another sign in the notation of Go, whose parser is used.
var pythonWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:and|or|not)\b|//`) })

// signOf are these signs.
var signOf = map[string]string{"and": "&&", "or": "||", "not": "!", "//": "/"}

// parseExpression reads an expression. What the parser takes and nothing here gives a
// value, a call for instance, is an error of value.
func parseExpression(text string) (expression, error) {
	text = pythonWord().ReplaceAllStringFunc(text, func(word string) string { return signOf[word] })
	tree, err := parser.ParseExpr(text)
	return expression{tree}, err
}

// value is the value of an expression for the values of its parameters. A division by 0
// gives an infinity or no number, as the arithmetic of floating point does.
func (e expression) value(names map[string]float64) (float64, error) {
	switch x := e.tree.(type) {
	case *ast.BasicLit:
		return strconv.ParseFloat(x.Value, 64)
	case *ast.Ident:
		v, known := names[x.Name]
		if !known {
			return 0, fmt.Errorf("%s is no parameter that has numbers", x.Name)
		}
		return v, nil
	case *ast.ParenExpr:
		return expression{x.X}.value(names)
	case *ast.UnaryExpr:
		return unary(x, names)
	case *ast.BinaryExpr:
		return binary(x, names)
	}
	return 0, fmt.Errorf("%T is not understood here", e.tree)
}

// unary is −x, or !x, which is 1 for 0 and otherwise 0.
func unary(x *ast.UnaryExpr, names map[string]float64) (float64, error) {
	v, err := expression{x.X}.value(names)
	switch x.Op {
	case token.SUB:
		return -v, err
	case token.NOT:
		return truth(v == 0), err
	}
	return 0, fmt.Errorf("%s is not understood here", x.Op)
}

// binary is the value of two operands. Both are computed, also where the first one of
// "and" or "or" decides.
func binary(x *ast.BinaryExpr, names map[string]float64) (float64, error) {
	operation, known := operations[x.Op]
	if !known {
		return 0, fmt.Errorf("%s is not understood here", x.Op)
	}
	a, err := expression{x.X}.value(names)
	if err != nil {
		return 0, err
	}
	b, err := expression{x.Y}.value(names)
	if err != nil {
		return 0, err
	}
	return operation(a, b), nil
}

// operations are those of two operands, by the token of Go's scanner. Comparisons and
// connectives give truths.
var operations = map[token.Token]func(a, b float64) float64{
	token.ADD:  func(a, b float64) float64 { return a + b },
	token.SUB:  func(a, b float64) float64 { return a - b },
	token.MUL:  func(a, b float64) float64 { return a * b },
	token.QUO:  quotient,
	token.REM:  math.Mod,
	token.EQL:  func(a, b float64) float64 { return truth(a == b) },
	token.NEQ:  func(a, b float64) float64 { return truth(a != b) },
	token.LSS:  func(a, b float64) float64 { return truth(a < b) },
	token.LEQ:  func(a, b float64) float64 { return truth(a <= b) },
	token.GTR:  func(a, b float64) float64 { return truth(a > b) },
	token.GEQ:  func(a, b float64) float64 { return truth(a >= b) },
	token.LAND: func(a, b float64) float64 { return truth(a != 0 && b != 0) },
	token.LOR:  func(a, b float64) float64 { return truth(a != 0 || b != 0) },
}

// quotient is rounded down for integers, as constraints in Python and plans in Go both
// expect of them where no operand is negative.
func quotient(a, b float64) float64 {
	if a == math.Trunc(a) && b == math.Trunc(b) {
		return math.Floor(a / b)
	}
	return a / b
}

// truth is a truth as a number.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Plans are the plans of all points as text, by the template of the header; nil without
// one.
func (t *Table) Plans() ([]string, error) {
	if t.Header.Plan == "" {
		return nil, nil
	}
	// The template is split at its braces once: texts, and expressions between them.
	var parts []string
	var holes []expression
	rest := t.Header.Plan
	for {
		before, after, found := strings.Cut(rest, "{")
		parts = append(parts, before)
		if !found {
			break
		}
		text, after, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("plan %q: a brace is not closed", t.Header.Plan)
		}
		e, err := parseExpression(text)
		if err != nil {
			return nil, fmt.Errorf("plan %q: %w", t.Header.Plan, err)
		}
		holes, rest = append(holes, e), after
	}
	// Each point has its numbers in the place of the expressions.
	var plans []string
	for k := range t.Space.Points {
		var b strings.Builder
		names := t.numbers(k)
		for n, part := range parts {
			b.WriteString(part)
			if n == len(holes) {
				break
			}
			v, err := holes[n].value(names)
			if err != nil {
				return nil, fmt.Errorf("plan %q: %w", t.Header.Plan, err)
			}
			b.WriteString(strconv.FormatFloat(v, 'f', -1, 64))
		}
		plans = append(plans, b.String())
	}
	return plans, nil
}
