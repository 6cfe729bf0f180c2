//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// A limit is a text of some size that a model has or could have.
type limit struct{ name, text string }

// limits are texts that algorithms which follow every path, or compare all pairs, would
// not end with. Each is made of what its name says.
func limits() []limit {
	return []limit{
		{"calls nested 100,000 deep", calls(100_000, "ROOT r = f32[4] call(p), to_apply=c@")},
		{"calls 2^60 wide", calls(61, "q = f32[4] call(p), to_apply=c@\n ROOT r = f32[4] call(q), to_apply=c@")},
		{"concatenate of 50,000 operands", joined(50_000, "", "x")},
		{"concatenate of 50,000 negated", joined(50_000, "y# = f32[2] negate(x)\n", "y#")},
		{"concatenate of 50,000 slices", joined(50_000, "y# = f32[2] slice(x), slice={[#:%]}\n", "y#")},
		{"shape of 100,000 dimensions", entry("x = f32[@] parameter(0)\nROOT r = f32[@] negate(x)\n", "@", "1"+strings.Repeat(",1", 99_999))},
		{"chain of 500 operations", entry("x0 = f32[1024,1024] parameter(0)\n" + repeated(500, "x# = f32[1024,1024] tanh(x@)\n"))},
		{"chain of 500 that double", fusion("x0 = f32[1024,1024] parameter(0)\n" + repeated(500, "x# = f32[1024,1024] add(x@, x@)\n"))},
		{"40 reshape/transpose pairs", entry("x0 = f32[24,35] parameter(0)\n" + repeated(40, "t# = f32[35,24] reshape(x@)\nx# = f32[24,35] transpose(t#), dimensions={1,0}\n"))},
		{"40 such pairs as a fusion", fusion("x0 = f32[24,35] parameter(0)\n" + repeated(40, "t# = f32[35,24] reshape(x@)\nx# = f32[24,35] transpose(t#), dimensions={1,0}\n"))},
		{"norm of 46 gradients", entry(norms(46))},
		{"norm of 46 as a fusion", norms(46)},
		{"fusion of 60,000 in a row", fusion("x0 = f32[64] parameter(0)\n" + repeated(60_000, "x# = f32[64] negate(x@)\n"))},
	}
}

// entry is a module of one computation, with replacements in it.
func entry(text string, replaced ...string) string {
	return "HloModule m\nENTRY e {\n" + strings.NewReplacer(replaced...).Replace(text) + "}\n"
}

// fusion is a module of one fusion, of the parameter in the first line. The partition
// takes it as it is: what is refused of a module's operations is left outside of
// fusions, here it refuses the whole.
func fusion(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	shape := strings.Fields(first)[2]
	return "HloModule m\nf {\n" + text + "}\nENTRY e {\n" + first + "\nROOT r = " + shape + " fusion(x0), kind=kLoop, calls=f\n}\n"
}

// repeated is a step n times: # is its number, @ the one before.
func repeated(n int, step string) string {
	var b strings.Builder
	for k := 1; k <= n; k++ {
		b.WriteString(strings.NewReplacer("#", fmt.Sprint(k), "@", fmt.Sprint(k-1)).Replace(step))
	}
	return b.String()
}

// calls are n computations with a body that calls the one before, c@.
func calls(n int, body string) string {
	return "HloModule m\nc0 { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p) }\n" +
		repeated(n-1, "c# { p = f32[4] parameter(0)\n "+body+" }\n") +
		fmt.Sprintf("ENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=c%d }\n", n-1)
}

// joined is a concatenate of n operands of two elements, each made by a step: # is twice
// the number of it, % two more.
func joined(n int, step, operand string) string {
	var steps, operands strings.Builder
	for k := range n {
		number := strings.NewReplacer("#", fmt.Sprint(2*k), "%", fmt.Sprint(2*k+2))
		steps.WriteString(number.Replace(step))
		operands.WriteString(", " + number.Replace(operand))
	}
	extent := 2
	if strings.Contains(step, "%") {
		extent = 2 * n
	}
	return entry(fmt.Sprintf("x = f32[%d] parameter(0)\n", extent) + steps.String() +
		fmt.Sprintf("ROOT c = f32[%d] concatenate(%s), dimensions={0}\n", 2*n, operands.String()[2:]))
}

// norms is the norm of n gradients, the text of a computation. The sums read nothing in
// common, so that as one fusion they have a dimension each.
func norms(n int) string {
	var b strings.Builder
	b.WriteString("z = f32[] constant(0)\na0 = f32[] negate(z)\n")
	for k := range n {
		fmt.Fprintf(&b, "x%d = f32[4096] parameter(%d)\n", k+1, k)
	}
	b.WriteString(repeated(n, "s# = f32[4096] multiply(x#, x#)\nr# = f32[] reduce(s#, z), dimensions={0}, to_apply=add\na# = f32[] add(a@, r#)\n"))
	return b.String() + fmt.Sprintf("ROOT o = f32[] sqrt(a%d)\n", n)
}

// limitCommands are what each text is given to.
var limitCommands = []string{"show", "rank -top 1", "tune -run-budget 8s -budget 300ms -try 2 -progress 0 -db DB"}

// reachLimits gives the texts to commands, and writes a table of what they took, in
// processor time, to limits.txt in the folder of -keep. No time is harm: the table is
// looked at.
func reachLimits(s *session) (r result, err error) {
	if s.quick {
		r.note = "left out"
		return r, nil
	}
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "text\tcommand\tseconds\tMB\tstatus")
	// Both are of all commands, for the row of the table of attacks.
	longest, largest := 0.0, int64(0)
	for n, l := range limits() {
		file := filepath.Join(s.dir, fmt.Sprintf("limit%d.hlo", n))
		if err := os.WriteFile(file, []byte(l.text), 0o600); err != nil {
			return r, err
		}
		for _, c := range limitCommands {
			r.tried++
			args := strings.Fields(strings.Replace(c, "DB", file+".db", 1))
			o := s.tilewright(append(args, file)...)
			fmt.Fprintf(t, "%s\t%s\t%.1f\t%d\t%d\n", l.name, args[0], o.seconds, o.memory>>10, o.code)
			longest, largest = max(longest, o.seconds), max(largest, o.memory)
			harm := o.harm()
			// What is beyond a limit is refused, which is no failure.
			if harm == "" && strings.Contains(o.out, ": failed: ") {
				harm = "a fusion failed: " + o.out
			}
			if harm != "" {
				r.harm("%s of %s: %s", c, l.name, harm)
			}
		}
	}
	t.Flush()
	r.note = fmt.Sprintf("at most %.1f s of processor time and %d MB", longest, largest>>10)
	if err := os.MkdirAll(s.keep, 0o755); err != nil {
		return r, err
	}
	return r, os.WriteFile(filepath.Join(s.keep, "limits.txt"), []byte(table.String()), 0o644)
}
