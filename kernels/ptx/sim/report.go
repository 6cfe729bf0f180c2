package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// Kind is the kind of an error in a kernel.
type Kind string

// The kinds of findings.
const (
	// OutOfBounds is an access outside of any allocation, or outside of shared,
	// local or parameter memory.
	OutOfBounds Kind = "out of bounds"
	// Misaligned is an access whose address is not a multiple of its size.
	Misaligned Kind = "misaligned"
	// Uninitialised is a read of a register or a byte that nothing has written.
	Uninitialised Kind = "uninitialised read"
	// Race is a pair of conflicting accesses that nothing orders.
	Race Kind = "data race"
	// MissingWait is an access to data that an asynchronous operation still uses.
	MissingWait Kind = "missing wait"
	// MissingFence is a read by the async proxy of what generic stores wrote,
	// without fence.proxy.async between.
	MissingFence Kind = "missing fence"
	// DivergentBarrier is an operation of a whole warp that some of its lanes, or
	// some warps of a group, do not execute.
	DivergentBarrier Kind = "divergent barrier"
	// Deadlock is a cluster none of whose warps can continue.
	Deadlock Kind = "deadlock"
	// BudgetExceeded is a CTA that executes more instructions than
	// Options.Budget.
	BudgetExceeded Kind = "instruction budget exceeded"
	// Unwritten is an output that the kernel did not write completely.
	Unwritten Kind = "output not written"
	// InvalidOperation is an operand that no device accepts: a descriptor, a
	// barrier number, a lane mask.
	InvalidOperation Kind = "invalid operation"
)

// fatal kinds end the launch, because later findings would have no meaning.
var fatal = map[Kind]bool{
	DivergentBarrier: true,
	Deadlock:         true,
	BudgetExceeded:   true,
	InvalidOperation: true,
}

// Site is an instruction and the thread that executed it.
type Site struct {
	// PC is the index of the instruction in the entry.
	PC int
	// Line is the line of the PTX text; 0 if the module was built rather than
	// parsed.
	Line int
	// Text is the instruction as PTX, and Comment its source comment.
	Text    string
	Comment string // its source comment
	// CTA is %ctaid, and Warp the number of the warp in the CTA.
	CTA  [3]int
	Warp int // in the CTA
	// Lane is the lane; -1 is the warp as a whole.
	Lane int
}

// String names the line, the instruction and the thread. Long instructions, such
// as a wgmma with its registers, are shortened.
func (s Site) String() string {
	var b strings.Builder
	if s.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", s.Line)
	}
	text := s.Text
	// A wgmma names up to 128 registers.
	if len(text) > 110 {
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
	Kind Kind
	At   Site
	// Space is "global", "shared", "register", another state space, or "".
	Space string
	// Addr is the address in Space; 0 if it has no meaning.
	Addr   uint64
	Detail string
	// Other is the access that this one conflicts with.
	Other *Site
	// Count is the number of threads and times.
	Count int
}

// String is the finding on one line.
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

// findingKey is what findings that are counted together have in common.
type findingKey struct {
	kind Kind
	pc   int
}

// findings collects what one worker found.
type findings map[findingKey]*Finding

// add counts a finding; of those at one instruction, the first by CTA, warp and
// lane is kept, so that the report does not depend on the schedule.
func (fs findings) add(f Finding) {
	key := findingKey{f.Kind, f.At.PC}
	f.Count = max(f.Count, 1)
	have := fs[key]
	if have == nil {
		fs[key] = &f
		return
	}
	count := have.Count + f.Count
	// Workers finish in any order; the first site by CTA does not depend on it.
	if earlier(f.At, have.At) {
		*have = f
	}
	have.Count = count
}

// earlier orders sites by CTA, warp and lane.
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
		// Symptoms come last, since an earlier finding usually explains them.
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

// Class groups instructions for counting.
type Class uint8

// The classes of instructions.
const (
	// Arithmetic is integer arithmetic, logic, moves and conversions.
	Arithmetic Class = iota
	// Floating is floating-point arithmetic on scalars.
	Floating
	// Special is the functions of the special function units: ex2, rcp, sqrt and
	// their like.
	Special
	// Control is branches and exits.
	Control
	// GlobalMemory is loads and stores of global memory, generic ones included.
	GlobalMemory
	// SharedMemory is loads and stores of shared memory.
	SharedMemory
	// OtherMemory is loads and stores of local, parameter and constant memory.
	OtherMemory
	// Atomic is atom and red.
	Atomic
	// AsyncCopy is cp.async, bulk and tensor copies with their groups.
	AsyncCopy
	// Matrix is ldmatrix, stmatrix, mma and wgmma.
	Matrix
	// Exchange is shfl, vote, match, redux and elect.
	Exchange
	// Synchronise is barriers, fences and mbarriers.
	Synchronise
	// classes is the number of classes.
	classes
)

// String is the name of the class in counters.
func (c Class) String() string {
	return [...]string{
		"arithmetic", "floating", "special", "control", "global", "shared", "other memory",
		"atomic", "async copy", "matrix", "exchange", "synchronise",
	}[c]
}

// Traffic is the cost of requests to one kind of memory. A request is one warp's
// access; Units are the 32-byte sectors (global) or the wavefronts (shared) that
// it took, and Ideal the fewest that could have moved as many bytes.
type Traffic struct {
	Requests, Units, Ideal, Bytes int64
}

// add adds the cost of other requests.
func (t *Traffic) add(o Traffic) {
	t.Requests += o.Requests
	t.Units += o.Units
	t.Ideal += o.Ideal
	t.Bytes += o.Bytes
}

// Ratio is the quotient of actual and ideal units: 1 is coalesced, and free of
// bank conflicts.
func (t Traffic) Ratio() float64 {
	return float64(t.Units) / float64(max(1, t.Ideal))
}

// Counters are the counts of one launch, summed over the grid.
type Counters struct {
	WarpInstructions int64
	// LaneInstructions are warp instructions weighted with active lanes; with
	// Options.Counters.
	LaneInstructions int64
	// Instructions are the warp instructions of each class.
	Instructions [classes]int64
	GlobalLoad   Traffic
	GlobalStore  Traffic
	SharedLoad   Traffic
	SharedStore  Traffic
	// MMA is the number of warp-wide mma instructions.
	MMA int64
	// WGMMA is the number of wgmma instructions of a warpgroup, counted once for
	// its four warps.
	WGMMA int64
	// MatrixFLOPs is the sum of 2·M·N·K over mma and wgmma.
	MatrixFLOPs int64
	// Barriers is the number of completed barriers.
	Barriers int64
	// Atomics is the number of atomic operations, counted by lane.
	Atomics    int64
	BulkCopies int64
	BulkBytes  int64
}

// Add adds the counts of another launch.
func (c *Counters) Add(o *Counters) {
	c.WarpInstructions += o.WarpInstructions
	c.LaneInstructions += o.LaneInstructions
	for i := range c.Instructions {
		c.Instructions[i] += o.Instructions[i]
	}
	c.GlobalLoad.add(o.GlobalLoad)
	c.GlobalStore.add(o.GlobalStore)
	c.SharedLoad.add(o.SharedLoad)
	c.SharedStore.add(o.SharedStore)
	c.MMA += o.MMA
	c.WGMMA += o.WGMMA
	c.MatrixFLOPs += o.MatrixFLOPs
	c.Barriers += o.Barriers
	c.Atomics += o.Atomics
	c.BulkCopies += o.BulkCopies
	c.BulkBytes += o.BulkBytes
}

// String is one line a counter that is not zero.
func (c Counters) String() string {
	var b strings.Builder
	line := func(name string, n int64) {
		if n != 0 {
			fmt.Fprintf(&b, "%s %d\n", name, n)
		}
	}
	line("warp instructions", c.WarpInstructions)
	for i, n := range c.Instructions {
		line("  "+Class(i).String(), n)
	}
	traffic := func(name, unit string, t Traffic) {
		if t.Requests != 0 {
			fmt.Fprintf(
				&b, "%s: %d requests, %d %s (%.2f of the ideal %d), %d bytes\n",
				name, t.Requests, t.Units, unit,
				t.Ratio(), t.Ideal, t.Bytes,
			)
		}
	}
	traffic("global load", "sectors", c.GlobalLoad)
	traffic("global store", "sectors", c.GlobalStore)
	traffic("shared load", "wavefronts", c.SharedLoad)
	traffic("shared store", "wavefronts", c.SharedStore)
	line("mma", c.MMA)
	line("wgmma", c.WGMMA)
	line("matrix FLOPs", c.MatrixFLOPs)
	line("barriers", c.Barriers)
	line("atomics", c.Atomics)
	line("bulk copies", c.BulkCopies)
	line("bulk bytes", c.BulkBytes)
	return b.String()
}

// sectorBytes is the granularity of global memory traffic.
const sectorBytes = 32

// sectors counts the distinct 32-byte sectors of a warp's access of n bytes a
// lane, n a power of two ≤ 32. Lanes that read the same bytes share them.
func sectors(addr *long, active uint32, n int64) Traffic {
	var list [warpSize]uint64
	var covered [warpSize]uint32 // bytes of each
	k := 0
	last := -1
	// Neighbouring lanes mostly access the same sector, so that the last one is
	// tried first.
	for m := active; m != 0; m &= m - 1 {
		a := addr[firstLane(m)]
		s := a / sectorBytes
		bytes := uint32(1<<n-1) << (a % sectorBytes)
		if last >= 0 && list[last&31] == s {
			covered[last&31] |= bytes
			continue
		}
		last = -1
		for j := range k {
			if list[j&31] == s {
				last = j
			}
		}
		if last < 0 {
			last = k
			list[k&31] = s
			k++
		}
		covered[last&31] |= bytes
	}
	moved := int64(0)
	for j := range k {
		moved += int64(bits.OnesCount32(covered[j&31]))
	}
	return Traffic{
		Requests: 1,
		Units:    int64(k),
		Ideal:    (moved + sectorBytes - 1) / sectorBytes,
		Bytes:    moved,
	}
}

// wavefronts counts the passes that shared memory needs: 32 banks of 4 bytes,
// one word of each a pass; 8-byte accesses go by half warps and 16-byte ones
// by quarters.
func wavefronts(addr *long, active uint32, n int64) Traffic {
	group := warpSize
	if n > 4 {
		group = max(warpSize*4/int(n), 8)
	}
	t := Traffic{Requests: 1}
	// Each group of lanes is served on its own; the bank with the most distinct
	// words determines the number of passes.
	for g := 0; g < warpSize; g += group {
		m := active >> g & uint32(1<<group-1)
		if m == 0 {
			continue
		}
		var passes uint8
		var words [32][8]uint64
		var count [32]uint8
		for ; m != 0; m &= m - 1 {
			a := addr[g+firstLane(m)]
			for o := uint64(0); o < uint64(max(n, 4)); o += 4 {
				passes = max(
					passes,
					addWord(&words, &count, (a+o)/4),
				)
			}
			t.Bytes += n
		}
		t.Units += int64(passes)
		t.Ideal++
	}
	return t
}

// addWord enters a word in its bank and returns how many it has.
func addWord(words *[32][8]uint64, count *[32]uint8, word uint64) uint8 {
	b := word & 31
	k := count[b]
	for q := range min(k, 8) {
		if words[b][q] == word {
			return k
		}
	}
	if k < 8 {
		words[b][k] = word
	}
	count[b] = k + 1
	return k + 1
}
