package device

import "github.com/tilewright/tilewright/kernels/ptx"

// A registerFit says how many registers ptxas gives a thread for the pressure of a text:
// base + ordered·(pressure in the order of the text) + hoisted·(what loads that are moved
// to the front add) + large·(what the pressure is beyond largePressure). The numbers are
// least absolute deviations over 276 kernels of bench/gpu with ptxas 12.9 and 13.5, and of
// fitSums over 853; fitFew, fitOther and squeezes are those with the most blocks right of 1,896.
type registerFit struct {
	base, ordered, hoisted, large float64
	squeeze
}

// largePressure is that from which on a thread has the registers of two blocks an SM, of
// which ptxas uses more.
const largePressure = 128

var (
	// fitGroups is for products of wgmma, whose sums stay where they are.
	fitGroups = registerFit{base: 6, ordered: 1, squeeze: alone}
	// fitMMA is for products of mma.sync: fragments are loaded just before they are
	// multiplied.
	fitMMA = registerFit{
		base: 6, ordered: 0.85, hoisted: 0.1, large: 0.35,
		squeeze: squeeze{most: 16, values: 0.75, share: 0.13},
	}
	// fitNarrowMMA is for products of f8 where f16 is multiplied in their place.
	fitNarrowMMA = registerFit{ordered: 1.25, squeeze: alone}
	// fitSums is for products by single threads: their sums stay where they are, too, and
	// the factors are loaded just before they are multiplied.
	fitSums = registerFit{
		base: 2, ordered: 1.02, hoisted: 0.2, large: 0.3,
		squeeze: squeeze{most: registerUnit, values: 1, base: 2, share: 0.25},
	}
	// fitFew is for products by single threads of few sums, whose loops ptxas unrolls.
	fitFew = registerFit{
		base: 12, ordered: 1.2, hoisted: 0.1, large: 0.5,
		squeeze: squeeze{most: 12, values: 1, share: 0.1},
	}
	// fitOther is for all other code, of which ptxas loads some ahead.
	fitOther = registerFit{
		base: 8, ordered: 1.2, hoisted: 0.2, large: 0.5,
		squeeze: squeeze{most: 12, values: 1, base: 2, share: 0.05, all: wholeRows},
	}
)

// manySums is from how many multiply-adds to a register on a kernel is a product.
const manySums = 32

// registers is the fit for a pressure.
func (f registerFit) registers(p ptx.Pressure) float64 {
	ordered := float64(p.Ordered)
	return f.base + f.ordered*ordered +
		f.hoisted*float64(p.Hoisted-p.Ordered) +
		f.large*max(0, ordered-largePressure)
}

// A squeeze is what ptxas saves of a thread's registers where one more block fits an SM then:
// at most so many, with room for a part of what values fill at the same time, and a base, or a
// share of what it would take. From all values on, at most does not apply where loads are
// moved to the front: they are given up for a block more, down to the order of the text; 0 is never.
type squeeze struct {
	most, values, base, share float64
	all                       int
}

// wholeRows is from how many values on a thread of a kernel without products has rows in
// registers. Of 372 such kernels of bench/gpu 91 % have the blocks of ptxas 12.9 and 13.5 with
// it, and 88 % where at most 12 registers are saved.
const wholeRows = 42

// registerUnit is the number in which an SM hands out registers.
const registerUnit = 8

// alone is the squeeze of products whose registers are all the warpgroup's, or converted.
var alone = squeeze{most: registerUnit, values: 1, base: 2, share: 0.1}

// least is the fewest registers of a thread that needs some by the fit.
func (q squeeze) least(need float64, p ptx.Pressure) float64 {
	kept := q.values*float64(p.Ordered) + q.base
	if q.all == 0 || p.Ordered < q.all || p.Hoisted == p.Ordered {
		kept = max(kept, need-q.most)
	}
	return min(kept, need/(1+q.share))
}

// assigned is the registers of a thread that needs some by the fit: fewer, down to the least,
// where more blocks of so many threads fit an SM.
func (s Spec) assigned(need, least float64, threads int) int {
	n := int(need)
	blocks := s.Occupancy(n, 0, threads).Blocks
	for fewer := n - 1; float64(fewer) >= least; fewer-- {
		if more := s.Occupancy(fewer, 0, threads).Blocks; more > blocks {
			n, blocks = fewer, more
		}
	}
	return n
}

// fitOf is how registers follow from the pressure of an entry.
func (s Spec) fitOf(e *ptx.Entry) registerFit {
	multiplies, narrow, sums := false, false, 0
	for i := range e.Body {
		in := &e.Body[i].Instr
		switch in.Opcode.Op {
		case ptx.OpWgmmaMMAAsync:
			return fitGroups
		case ptx.OpMMA:
			multiplies = true
			// Tensor cores of sm_90 have s8, and f8 by wgmma only.
			from := in.Opcode.Type(1)
			narrow = narrow || from == ptx.E4M3 || from == ptx.E5M2
		case ptx.OpFma, ptx.OpMad:
			if len(in.Operands) == 4 && in.Operands[0].Reg == in.Operands[3].Reg {
				sums++
			}
		}
	}
	switch {
	case multiplies && narrow && s.Warpgroups():
		return fitNarrowMMA
	case multiplies:
		return fitMMA
	case sums >= manySums:
		return fitSums
	case sums > 0:
		return fitFew
	}
	return fitOther
}

// AssignedRegisters is the registers of a thread that ptxas is likely to assign to an entry in
// blocks of so many threads, by its text, and the bytes of its values for which that is
// too few.
func (s Spec) AssignedRegisters(e *ptx.Entry, threads int) (n, spilled int) {
	most := s.RegistersPerThread(threads)
	// A producer that gives registers away has the block take all of them.
	if e.MinNCTAPerSM == 1 {
		return most, 0
	}
	p := e.Pressure()
	fit := s.fitOf(e)
	need := min(float64(most), fit.registers(p))
	return s.assigned(need, fit.least(need, p), threads), 4 * max(0, p.Ordered-most)
}

// Ptxas keeps a limit without the stack where it has promisedFactor registers for each that
// values fill, and promisedBase beside them. Below manyValues it does not: it loads whole rows
// ahead, and then spills them.
const promisedFactor, promisedBase, manyValues = 1.1, 4, 48

// PromisedBlocks is the number of blocks an SM that a product by single threads asks of ptxas
// (.minnctapersm): those that it is priced with. Otherwise ptxas, which does not know dynamic
// shared memory, keeps values on the stack for a block more that does not fit. It is 0 where
// nothing is asked.
func (s Spec) PromisedBlocks(e *ptx.Entry, shared, threads int) int {
	p := e.Pressure()
	if e.MinNCTAPerSM > 0 || p.Ordered < manyValues || s.fitOf(e) != fitSums {
		return 0
	}
	n, _ := s.AssignedRegisters(e, threads)
	blocks := s.Occupancy(n, shared, threads).Blocks
	if blocks < 2 {
		return 0
	}
	most := s.RegistersPerThread(threads)
	for n < most && s.Occupancy(n+1, shared, threads).Blocks == blocks {
		n++
	}
	if float64(n) < promisedFactor*float64(p.Ordered)+promisedBase {
		return 0
	}
	return blocks
}
