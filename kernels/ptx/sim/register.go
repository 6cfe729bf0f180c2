package sim

import "math/bits"

const (
	warpSize = 32
	allLanes = 1<<warpSize - 1
)

// word and long hold one register of all lanes.
type (
	word [warpSize]uint32
	long [warpSize]uint64
)

func firstLane(m uint32) int { return bits.TrailingZeros32(m) & 31 }

func fill[T uint32 | uint64](r []T, v T) {
	for l := range r {
		r[l] = v
	}
}

// bank is a register file: registers of up to 32 bits, of 64 bits, predicates.
type bank uint8

const (
	noBank bank = iota
	bank32
	bank64
	bankPred
)

// register is a register of the dense files of an entry.
type register struct {
	bank  bank
	index int32
}
