package symtile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// limitCases are programs that a walk of every path would never end with. Of each
// the instructions and the operations of its tile program are counted, never the
// time; a refusal names its rule.
var limitCases = []struct {
	name, text string
	// ops are the most operations, dims the dimensions of the space.
	ops, dims int
	refused   string
}{
	{"500 operations in a row", repeated(500, "x# = f32[64,64] multiply(x@, x@)\n"), 501, 2, ""},
	{"40 pairs", repeated(40, "t# = f32[32,128] reshape(x@)\nu# = f32[128,32] transpose(t#), dimensions={1,0}\nx# = f32[64,64] reshape(u#)\n"), 121, 2, ""},
	{"50,000 operands", concatenated(50_000, "x0"), 50_001, 1, ""},
	{"50,000 computed operands", concatenated(50_000, "negate(x0)"), 100_000, 1, ""},
	{"46 sums", sums(46), 46 * 5, 46, ""},
	{"22 turns", turned(22), 23, 2, ""},
	{"26 turns", turned(26), 0, 0, "overflow"},
	{"a scan of 6 levels", scanned(6), 4351, 2, ""},
	{"a scan of 30 levels", scanned(30), 0, 0, "too-large"},
}

// repeated is a text in which a step follows itself: # is its number, @ the one
// before.
func repeated(n int, step string) string {
	var b strings.Builder
	b.WriteString("x0 = f32[64,64] parameter(0)\n")
	for k := 1; k <= n; k++ {
		b.WriteString(strings.NewReplacer("#", fmt.Sprint(k), "@", fmt.Sprint(k-1)).Replace(step))
	}
	return b.String()
}

// turned is n transposes and reshapes in turns, each of which multiplies the divisors of
// the indices by 35. Those of 26 took numbers of more than 64 bits, at other elements.
func turned(n int) string {
	var b strings.Builder
	b.WriteString("x0 = f32[35,24] parameter(0)\n")
	for k := 1; k <= n; k++ {
		if k%2 == 1 {
			fmt.Fprintf(&b, "x%d = f32[24,35] transpose(x%d), dimensions={1,0}\n", k, k-1)
		} else {
			fmt.Fprintf(&b, "x%d = f32[35,24] reshape(x%d)\n", k, k-1)
		}
	}
	return b.String()
}

// concatenated joins n arrays, the first of which is the parameter.
func concatenated(n int, operand string) string {
	var b strings.Builder
	b.WriteString("x0 = f32[4] parameter(0)\n")
	names := []string{"x0"}
	for k := 1; k < n; k++ {
		name := operand
		if strings.Contains(operand, "(") {
			name = fmt.Sprintf("y%d", k)
			fmt.Fprintf(&b, "%s = f32[4] %s\n", name, operand)
		}
		names = append(names, name)
	}
	fmt.Fprintf(&b, "ROOT c = f32[%d] concatenate(%s), dimensions={0}\n", 4*n, strings.Join(names, ", "))
	return b.String()
}

// sums is the norm of n arrays.
func sums(n int) string {
	var b strings.Builder
	b.WriteString("HloModule m\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nfused {\n zero = f32[] constant(0)\n")
	var params, args []string
	total := "zero"
	for k := range n {
		fmt.Fprintf(&b, " p%[1]d = f32[4096] parameter(%[1]d)\n q%[1]d = f32[4096] multiply(p%[1]d, p%[1]d)\n r%[1]d = f32[] reduce(q%[1]d, zero), dimensions={0}, to_apply=sum\n s%[1]d = f32[] add(%[2]s, r%[1]d)\n", k, total)
		total = fmt.Sprintf("s%d", k)
		params = append(params, fmt.Sprintf("p%[1]d = f32[4096] parameter(%[1]d)", k))
		args = append(args, fmt.Sprintf("p%d", k))
	}
	fmt.Fprintf(&b, " ROOT n = f32[] sqrt(%s)\n}\nENTRY e {\n %s\n ROOT f = f32[] fusion(%s), kind=kInput, calls=fused\n}\n", total, strings.Join(params, "\n "), strings.Join(args, ", "))
	return b.String()
}

// scanned adds neighbours again and again, and puts the sums back between them: each
// level reads the one before at three tiles.
func scanned(n int) string {
	return repeated(n, `a# = f32[64,32] slice(x@), slice={[0:64],[0:64:2]}
b# = f32[64,32] slice(x@), slice={[0:64],[1:64:2]}
c# = f32[64,32] add(a#, b#)
d# = f32[64,64] concatenate(c#, b#), dimensions={1}
x# = f32[64,64] add(d#, x@)
`)
}

func TestLimits(t *testing.T) {
	for _, c := range limitCases {
		m, err := hlo.Parse(c.name, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Analyze(t.Context(), m.Fusions()[0])
		var no *Untileable
		switch {
		case c.refused != "":
			if !errors.As(err, &no) || no.Rule != c.refused || no.Instr == nil {
				t.Errorf("%s: %v, not refused by %s", c.name, err, c.refused)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case len(p.Ops) > c.ops || len(p.Space.Dims) != c.dims:
			t.Errorf("%s: %d operations, %d dimensions; at most %d, and %d", c.name, len(p.Ops), len(p.Space.Dims), c.ops, c.dims)
		default:
			t.Logf("%s: %d operations, %d dimensions", c.name, len(p.Ops), len(p.Space.Dims))
			if _, err := NewExtents(p); err != nil && !errors.As(err, &no) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// Calls of calls are inlined up to a number of visits, whatever they would make.
func TestInlinedVisits(t *testing.T) {
	for _, c := range []struct {
		depth, twice int
		visits       int
	}{
		{100_000, 0, 100_001},
		{60, 60, maxVisited + 1},
	} {
		var b strings.Builder
		b.WriteString("HloModule m\nc0 { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p) }\n")
		for k := 1; k <= c.depth; k++ {
			second := ""
			if c.twice > 0 {
				second = fmt.Sprintf(" q = f32[4] fusion(p), kind=kLoop, calls=c%d\n", k-1)
			}
			fmt.Fprintf(&b, "c%d { p = f32[4] parameter(0)\n%s ROOT r = f32[4] fusion(%s), kind=kLoop, calls=c%d }\n", k, second, map[bool]string{true: "q", false: "p"}[second != ""], k-1)
		}
		fmt.Fprintf(&b, "ENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] fusion(p), kind=kLoop, calls=c%d }\n", c.depth)
		m, err := hlo.Parse("calls", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		f := m.Fusions()[0]
		in := &inliner{out: &hlo.Computation{}}
		_, err = in.computation(f, f.Params, "")
		var no *Untileable
		if refused := errors.As(err, &no); refused != (c.visits > maxVisited) || in.visited != c.visits {
			t.Errorf("%d deep: %v after %d visits, want %d", c.depth, err, in.visited, c.visits)
		}
	}
}

// A tile that no sizes make legal is refused in words, by the name of the instruction.
func TestNoSizes(t *testing.T) {
	text := "t0 = f32[6,35] parameter(0)\n"
	rows := []int{10, 21, 42, 14, 35, 6, 15, 5}
	for k := range 40 {
		d := rows[k%len(rows)]
		text += fmt.Sprintf(
			"r%[1]d = f32[%[3]d,%[4]d] reshape(t%[2]d)\nt%[1]d = f32[%[4]d,%[3]d] transpose(r%[1]d), dimensions={1,0}\n",
			k+1, k, d, 210/d,
		)
	}
	m, err := hlo.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var no *Untileable
	_, err = Analyze(t.Context(), m.Entry)
	if !errors.As(err, &no) || !strings.Contains(no.Reason, "whatever the sizes of tiles") {
		t.Errorf("%v", err)
	}
}
