package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tilewright/tilewright/symtile/index"
)

// simplifyCommand shows the normal form of an expression or a map.
var simplifyCommand = command{
	name: "simplify", args: "'EXPR' d0=0..7 …", short: "normal form, range, and the rules that fired",
	long: `Prints the normal form of an expression over bounded variables, its range and congruence, and the
rules that made it. A whole indexing map works too, with its domain in it, also as XLA prints it
(#xla_gpu.indexing_map<…>); affine_map<…>, which has no domain, with the ranges after it.

  tilewright simplify '(d0 mod 8) + (d0 floordiv 8) * 8' d0=0..63
  tilewright simplify '(d0, d1) -> (d0 * 4 + d1 mod 4), domain: d0 in [0, 9], d1 in [0, 3]'
  tilewright simplify 'affine_map<(d0, d1) -> (d0 * 4 + d1 mod 4)>' d0=0..9 d1=0..3

An expression that starts with a minus goes after --.`,
	run: runSimplify,
}

// simplifyJSON is the result of simplify -json.
type simplifyJSON struct {
	// The text as it was given.
	Input string `json:"input"`
	// The cheapest text of the normal form.
	Form string `json:"form"`
	// Range of an expression, inclusive.
	Range []int64 `json:"range,omitempty"`
	// Congruence [m, r] of an expression: it is always ≡ r (mod m).
	Mod []int64 `json:"mod,omitempty"`
	// Rules of the simplifier that fired.
	Rules []string `json:"rules"`
}

// runSimplify parses an expression or a map and prints its normal form.
func runSimplify(c *call) error {
	c.jsonFlag()
	args, err := c.parse(1, -1)
	if err != nil {
		return err
	}
	r := index.NewRing()
	j := simplifyJSON{Input: args[0]}
	if strings.Contains(args[0], "->") {
		err = j.simplifyMap(r, args)
	} else {
		err = j.simplifyExpr(r, args)
	}
	if err != nil {
		return err
	}
	if j.Rules = r.Fired(); j.Rules == nil {
		j.Rules = []string{}
	}
	if c.json {
		return c.printJSON(j)
	}
	j.print(c)
	return nil
}

// mapAlias is the name that a line of an MLIR file gives a map: #map0 = affine_map<…>.
var mapAlias = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*#[\w.$-]+\s*=\s*`) })

// simplifyMap normalises an indexing map in XLA's syntax, or one of MLIR over the
// ranges that follow it.
func (j *simplifyJSON) simplifyMap(r *index.Ring, args []string) error {
	ranges := map[string]index.Interval{}
	for _, text := range args[1:] {
		v, err := parseVariable(text)
		if err != nil {
			return err
		}
		ranges[v.Name] = index.Interval{Lo: v.Lo, Hi: v.Hi}
	}
	m, err := r.ParseMapOver(mapAlias().ReplaceAllLiteralString(args[0], ""), ranges)
	if err != nil {
		return err
	}
	j.Form = m.Simplify().String()
	return r.Err()
}

// simplifyExpr normalises an expression over the variables in the arguments.
func (j *simplifyJSON) simplifyExpr(r *index.Ring, args []string) error {
	vars := map[string]index.Expr{}
	for _, text := range args[1:] {
		v, err := parseVariable(text)
		if err != nil {
			return err
		}
		if _, twice := vars[v.Name]; twice {
			return usagef("%s is given twice", v.Name)
		}
		vars[v.Name] = r.Var(v)
	}
	e, err := r.Parse(args[0], vars)
	if err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	in := e.Range()
	j.Form = e.String()
	j.Range = []int64{in.Lo, in.Hi}
	if m, rest := e.Congruence(); m > 1 {
		j.Mod = []int64{m, rest}
	}
	return nil
}

// parseVariable parses "d0=0..7".
func parseVariable(text string) (index.Variable, error) {
	name, bounds, ok := strings.Cut(text, "=")
	lo, hi, two := strings.Cut(bounds, "..")
	a, err := strconv.ParseInt(lo, 10, 64)
	b, err2 := strconv.ParseInt(hi, 10, 64)
	if !ok || !two || err != nil ||
		err2 != nil || name == "" {
		return index.Variable{}, usagef("%q is not a variable with its range, such as d0=0..7", text)
	}
	if a > b {
		return index.Variable{}, usagef("%s has no values: %d is above %d", name, a, b)
	}
	return index.Variable{
		Name: name,
		Lo:   a,
		Hi:   b,
	}, nil
}

// print prints the result for people.
func (j *simplifyJSON) print(c *call) {
	fmt.Fprintln(c.out, j.Form)
	if j.Range != nil {
		fmt.Fprintf(c.out, "range [%d, %d]\n", j.Range[0], j.Range[1])
	}
	if j.Mod != nil {
		fmt.Fprintf(c.out, "always %d mod %d\n", j.Mod[1], j.Mod[0])
	}
	if len(j.Rules) > 0 {
		fmt.Fprintf(c.out, "rules %s\n", strings.Join(j.Rules, ", "))
	}
}
