package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind names what is wrong with a kernel.
type Kind string

// The kinds of findings.
const (
	OutOfBounds      Kind = "out of bounds"
	Misaligned       Kind = "misaligned"
	Uninitialised    Kind = "uninitialised read"
	Race             Kind = "data race"
	MissingWait      Kind = "missing wait"  // touches what an asynchronous operation still uses
	MissingFence     Kind = "missing fence" // generic writes read by the async proxy without fence.proxy.async
	DivergentBarrier Kind = "divergent barrier"
	Deadlock         Kind = "deadlock"
	BudgetExceeded   Kind = "instruction budget exceeded"
	Unwritten        Kind = "output not written"
	InvalidOperation Kind = "invalid operation" // an operand no device accepts: descriptor, barrier number, lane mask…
)

// fatal kinds end the launch: what follows them would mean nothing.
var fatal = map[Kind]bool{
	DivergentBarrier: true,
	Deadlock:         true,
	BudgetExceeded:   true,
	InvalidOperation: true,
}

// Site is a place in the program and who was there.
type Site struct {
	PC      int    // index of the instruction in the entry
	Line    int    // line of the PTX text, 0 if it was built rather than parsed
	Text    string // the instruction
	Comment string // its source comment
	CTA     [3]int
	Warp    int // in the CTA
	Lane    int // -1: the warp as a whole
}

func (s Site) String() string {
	var b strings.Builder
	if s.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", s.Line)
	}
	text := s.Text
	if len(text) > 110 { // the registers of a wgmma
		text = text[:70] + " … " + text[len(text)-30:]
	}
	b.WriteString(`"` + text + `"`)
	if s.Comment != "" {
		fmt.Fprintf(&b, " (%s)", s.Comment)
	}
	fmt.Fprintf(
		&b, " by CTA %d,%d,%d warp %d",
		s.CTA[0], s.CTA[1],
		s.CTA[2], s.Warp,
	)
	if s.Lane >= 0 {
		fmt.Fprintf(&b, " lane %d", s.Lane)
	}
	return b.String()
}

// Finding is one thing that is wrong. Findings of one kind at one instruction
// are counted together; the site is that of the first CTA, warp and lane.
type Finding struct {
	Kind   Kind
	At     Site
	Space  string // "global", "shared", "register", … or ""
	Addr   uint64 // where in Space; 0 when it says nothing
	Detail string
	Other  *Site // the access it conflicts with
	Count  int
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s: %v", f.Kind, f.At)
	if f.Space != "" {
		s += ": " + f.Space
		if f.Addr != 0 {
			s += fmt.Sprintf(" %#x", f.Addr)
		}
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	if f.Other != nil {
		s += "; conflicts with " + f.Other.String()
	}
	if f.Count > 1 {
		s += fmt.Sprintf(" (%d times)", f.Count)
	}
	return s
}

type findingKey struct {
	kind Kind
	pc   int
}

// findings collects what one worker found.
type findings map[findingKey]*Finding

func (fs findings) add(f Finding) {
	key := findingKey{f.Kind, f.At.PC}
	f.Count = max(f.Count, 1)
	have := fs[key]
	if have == nil {
		fs[key] = &f
		return
	}
	count := have.Count + f.Count
	if earlier(f.At, have.At) {
		*have = f
	}
	have.Count = count
}

func earlier(a, b Site) bool {
	c := slices.Compare(
		[]int{a.CTA[2], a.CTA[1], a.CTA[0]},
		[]int{
			b.CTA[2],
			b.CTA[1],
			b.CTA[0],
		},
	)
	if c != 0 {
		return c < 0
	}
	return cmp.Or(cmp.Compare(
		a.Warp, b.Warp,
	), cmp.Compare(a.Lane, b.Lane)) < 0
}

// symptoms are kinds that another finding usually explains.
var symptoms = map[Kind]bool{Deadlock: true, BudgetExceeded: true}

// sorted lists the findings in program order, symptoms last.
func (fs findings) sorted() []Finding {
	out := make([]Finding, 0, len(fs))
	for _, f := range slices.SortedFunc(maps.Values(fs), func(a, b *Finding) int {
		return cmp.Or(
			cmp.Compare(boolBit(symptoms[a.Kind]), boolBit(symptoms[b.Kind])),
			cmp.Compare(a.At.PC, b.At.PC),
			cmp.Compare(a.Kind, b.Kind),
		)
	}) {
		out = append(out, *f)
	}
	return out
}
