package sim

import (
	"fmt"
	"math/bits"
	"strings"
)

// Class groups instructions for counting.
type Class uint8

// The classes of instructions.
const (
	Arithmetic Class = iota // integer arithmetic, logic, moves, conversions
	Floating                // floating-point arithmetic on scalars
	Special                 // ex2, rcp, sqrt …
	Control                 // branches, exits
	GlobalMemory
	SharedMemory
	OtherMemory // local, param, const
	Atomic
	AsyncCopy // cp.async, bulk and tensor copies with their groups
	Matrix    // ldmatrix, stmatrix, mma, wgmma
	Exchange  // shfl, vote, match, redux, elect
	Synchronise
	classes
)

func (c Class) String() string {
	return [...]string{
		"arithmetic", "floating", "special", "control", "global", "shared", "other memory",
		"atomic", "async copy", "matrix", "exchange", "synchronise",
	}[c]
}

// Traffic is what requests to one kind of memory cost. A request is one warp's
// access; Units are the 32-byte sectors (global) or the wavefronts (shared)
// that it took, Ideal the fewest that could have moved as many bytes.
type Traffic struct {
	Requests, Units, Ideal, Bytes int64
}

func (t *Traffic) add(o Traffic) {
	t.Requests += o.Requests
	t.Units += o.Units
	t.Ideal += o.Ideal
	t.Bytes += o.Bytes
}

// Ratio is the units over the ideal ones: 1 is coalesced, and free of bank
// conflicts.
func (t Traffic) Ratio() float64 {
	return float64(t.Units) / float64(max(1, t.Ideal))
}

// Counters are what one launch did, summed over the grid.
type Counters struct {
	WarpInstructions int64
	LaneInstructions int64 // warp instructions weighted with active lanes; with Options.Counters
	Instructions     [classes]int64
	GlobalLoad       Traffic
	GlobalStore      Traffic
	SharedLoad       Traffic
	SharedStore      Traffic
	MMA              int64 // warp-wide mma instructions
	WGMMA            int64 // wgmma instructions of a warpgroup, counted once for its four warps
	MatrixFLOPs      int64 // 2·M·N·K of mma and wgmma
	Barriers         int64 // barriers that opened
	Atomics          int64 // lanes
	BulkCopies       int64
	BulkBytes        int64
}

// Add adds what another launch did.
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

const sectorBytes = 32

// sectors counts the distinct 32-byte sectors of a warp's access of n bytes a
// lane, n a power of two ≤ 32. Lanes that read the same bytes share them.
func sectors(addr *long, active uint32, n int64) Traffic {
	var list [warpSize]uint64
	var covered [warpSize]uint32 // bytes of each
	k := 0
	last := -1
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
	for g := 0; g < warpSize; g += group {
		m := active >> g & uint32(1<<group-1)
		if m == 0 {
			continue
		}
		var most uint8
		var words [32][8]uint64
		var count [32]uint8
		for ; m != 0; m &= m - 1 {
			a := addr[g+firstLane(m)]
			for o := uint64(0); o < uint64(max(n, 4)); o += 4 {
				most = max(most, addWord(&words, &count, (a+o)/4))
			}
			t.Bytes += n
		}
		t.Units += int64(most)
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
