package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// A change is one way to break an instruction, by a pattern of its line and what is put
// in its place.
type change struct {
	name     string
	pattern  *regexp.Regexp
	replaced string
}

func changeOf(name, pattern, replaced string) change {
	return change{name, regexp.MustCompile(pattern), replaced}
}

// changes are drawn with equal chances among those that a kernel has a place for.
var changes = []change{
	changeOf("barrier dropped", `^\s*bar\.sync\s+\d+;`, ""),
	changeOf("barrier of warps dropped", `^\s*bar\.warp\.sync.*`, ""),
	changeOf("wait one group short", `^(\s*(?:cp\.async|wgmma)\.wait_group\S*)\s+(?:0x)?0;`, "$1 1;"),
	changeOf("wait dropped", `^\s*(?:cp\.async\.|wgmma\.|cp\.async\.bulk\.)wait_.*;`, ""),
	changeOf("commit dropped", `^\s*(?:cp\.async|wgmma)\.commit_group.*;`, ""),
	changeOf("copy dropped", `^.*cp\.async\.(?:cg|ca|bulk\.tensor)\S* .*;`, ""),
	changeOf("fence dropped", `^.*(?:fence\.proxy\.async|wgmma\.fence|membar|fence\.acq_rel).*;`, ""),
	changeOf("fewer bytes expected", `(expect_tx\S* _, \[[^\]]*\]), (\d+)0;`, "${1}, ${2}6;"),
	changeOf("arrival dropped", `^.*mbarrier\.arrive\S* .*;`, ""),
	changeOf("initial count changed", `(mbarrier\.init\S* \[[^\]]*\]), (\d);`, "${1}, 1${2};"),
	changeOf("wait for the other parity", `(try_wait\.parity\S* \S+ \[[^\]]*\]), \S+;`, "${1}, 1;"),
	changeOf("shared load elsewhere", `(ld\.shared\S*\s.*)\[(\S+?)(?:\+\d+)?\];`, "${1}[${2}+64];"),
	changeOf("shared store elsewhere", `(st\.shared\S*\s+)\[\s*(\S+?)(?: ?\+ ?\d+)?\s*\],`, "${1}[${2}+64],"),
	changeOf("global load elsewhere", `(ld\.global\S*\s.*)\[\s*(\S+?)(?: ?\+ ?\d+)?\s*\];`, "${1}[${2}+16];"),
	changeOf("global store elsewhere", `(st\.global\S*\s+)\[\s*(\S+?)(?: ?\+ ?\d+)?\s*\],`, "${1}[${2}+16],"),
	changeOf("matrix load elsewhere", `(ldmatrix.*)\[(\S+?)(?:\+\d+)?\];`, "${1}[${2}+128];"),
	changeOf("guard dropped", `^(\s*)@!?%p\d+ ((?:ld|st|atom|red|mbarrier|cp)\S* .*;)`, "$1$2"),
	changeOf("guard inverted", `^(\s*)@(%p\d+ (?:ld|st|atom|red|mbarrier|cp|bra)\S*\s.*;)`, "$1@!$2"),
	changeOf("store dropped", `^.*st\.(?:global|shared)\S* .*;`, ""),
	changeOf("sum for difference", `\bsub\.(s32|f32)\b`, "add.$1"),
	changeOf("difference for sum", `\badd\.(s32|s64|f32)\b`, "sub.$1"),
	changeOf("other bound", `\bsetp\.(?:lt|gt)\.s32\b`, "setp.le.s32"),
	changeOf("shifted by one more", `(\bsh[lr]\.b32.*), (\d)(\d?);`, "${1}, 1${2};"),
	changeOf("smaller mask", `(\band\.b32.*), (?:[1-9]\d*);`, "$1, 3;"),
	changeOf("minimum for maximum", `\bmax\.`, "min."),
	changeOf("other lane", `(shfl\.sync\.bfly\S*.*), (\d+), 31, -1;`, "${1}, 0, 31, -1;"),
	changeOf("product not added", `(wgmma\.mma_async.*), (%p\d+|1), 1, 1`, "${1}, 0, 1, 1"),
	changeOf("operand negated", `(wgmma\.mma_async.*), 1, 1(, [01], [01])?;`, "$1, -1, 1$2;"),
	changeOf("other fragment", `(mma\.sync.*\}, \{)\s*(%r\d+), (%r\d+)(.*\}, \{)`, "$1 $3, $2$4"),
	changeOf("atomic dropped", `^.*\b(?:atom|red)\.\S+ .*;`, ""),
}

// A mutant is a case with one changed line.
type mutant struct {
	base   *foreignCase
	change string
	line   int
	text   string
}

// mutate changes one line of a case; nil if it has none that the drawn change is for.
func mutate(c *foreignCase, rng *rand.Rand) *mutant {
	lines := strings.Split(string(c.PTX), "\n")
	how := changes[rng.IntN(len(changes))]
	// The places that the change is for, of which each is as likely as any other.
	var at []int
	for i, l := range lines {
		if how.pattern.MatchString(l) &&
			how.pattern.ReplaceAllString(l, how.replaced) != l {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	// The case is copied, because its other mutants start from the same text.
	i := at[rng.IntN(len(at))]
	m := &mutant{base: c, change: how.name, line: i + 1, text: strings.TrimSpace(lines[i])}
	lines = slices.Clone(lines)
	lines[i] = how.pattern.ReplaceAllString(lines[i], how.replaced)
	broken := *c
	broken.PTX = []byte(strings.Join(lines, "\n"))
	m.base = &broken
	return m
}

// found says how a mutant was found: refused, by a finding, or by its results; "" if it
// was not.
func (m *mutant) found(known []excuse) string {
	c := m.base
	// A change may leave text that is no PTX, which is found, too.
	module, err := ptx.Parse(c.Name, c.PTX)
	if err != nil {
		return "refused"
	}
	p, err := sim.Load(module)
	if err != nil {
		return "refused"
	}
	o, err := c.run(p)
	switch {
	case err != nil:
		return "refused"
	case len(unexplained(known, c.Name, o.Findings)) > 0:
		return "found by a check"
	case o.Wrong > 0:
		return "wrong result"
	}
	return ""
}

// judgeMutants draws mutants of cases that are right, and prints how they were found.
func judgeMutants(good []*foreignCase, known []excuse, n int, seed uint64, out io.Writer) {
	rng := rand.New(rand.NewPCG(seed, 7))
	// Counts by change and by how mutants were found.
	count := map[string]map[string]int{}
	total := map[string]int{}
	for drawn := 0; drawn < n && len(good) > 0; {
		// Kernels without a place for the change are drawn again.
		m := mutate(good[rng.IntN(len(good))], rng)
		if m == nil {
			continue
		}
		drawn++
		how := m.found(known)
		if how == "" {
			how = "not found"
			fmt.Fprintf(out, "not found: %s: %s, line %d: %s\n", m.base.Name, m.change, m.line, m.text)
		}
		if count[m.change] == nil {
			count[m.change] = map[string]int{}
		}
		count[m.change][how]++
		total[how]++
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	// The table has a row for each change that was drawn, in the order of changes.
	ways := []string{"found by a check", "wrong result", "refused", "not found"}
	fmt.Fprintln(w, "change\t"+strings.Join(ways, "\t"))
	row := func(name string, c map[string]int) {
		fmt.Fprint(w, name)
		for _, how := range ways {
			fmt.Fprintf(w, "\t%d", c[how])
		}
		fmt.Fprintln(w)
	}
	for _, c := range changes {
		if count[c.name] != nil {
			row(c.name, count[c.name])
		}
	}
	row("all", total)
	w.Flush()
}
