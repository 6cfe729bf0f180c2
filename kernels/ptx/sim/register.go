package sim

import "math/bits"

const (
	// warpSize is the number of lanes of a warp.
	warpSize = 32
	// allLanes is the mask of all lanes of a warp.
	allLanes = 1<<warpSize - 1
)

// word and long hold one register of all lanes.
type (
	// word holds one 32-bit register of all lanes.
	word [warpSize]uint32
	// long holds one 64-bit register of all lanes.
	long [warpSize]uint64
)

// firstLane is the lowest lane of a mask that is not empty.
func firstLane(m uint32) int { return bits.TrailingZeros32(m) & 31 }

// fill sets all lanes of a register.
func fill[T uint32 | uint64](r []T, v T) {
	for l := range r {
		r[l] = v
	}
}

// bank is a register file of an entry: registers of up to 32 bits, registers of
// 64 bits, or predicates of one bit.
type bank uint8

const (
	// noBank is the bank of the sink: a register that is written and never read.
	noBank bank = iota
	bank32
	bank64
	bankPred
)

// register names a register by its index in the dense register file of a bank.
type register struct {
	bank  bank
	index int32
}
