// Package mutate breaks texts of PTX in one line: a barrier dropped, a wait one group
// short, another address. Kernels of other compilers (bench/foreign) and those of this
// one (kernels/gpu) are given the same changes, so that the checks of the simulator can be
// compared on both.
package mutate

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
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

// A Mutant is a text with one changed line.
type Mutant struct {
	// Change is the name of what was done, to line Line, from 1, which was Before.
	Change string
	Line   int
	Before string
	// Text is the whole text.
	Text string
}

// Draw changes one line of a text; nil if it has none that the drawn change is for.
// Changes are as likely as each other, and so are the lines that one is for.
func Draw(text string, rng *rand.Rand) *Mutant {
	how := &changes[rng.IntN(len(changes))]
	lines := strings.Split(text, "\n")
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
	i := at[rng.IntN(len(at))]
	m := &Mutant{Change: how.name, Line: i + 1, Before: strings.TrimSpace(lines[i])}
	lines[i] = how.pattern.ReplaceAllString(lines[i], how.replaced)
	m.Text = strings.Join(lines, "\n")
	return m
}

// Names are the names of all changes, in the order of tables.
func Names() (all []string) {
	for _, c := range changes {
		if !slices.Contains(all, c.name) {
			all = append(all, c.name)
		}
	}
	return all
}
