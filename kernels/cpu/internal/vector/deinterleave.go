package vector

import "github.com/tilewright/tilewright/kernels/cpu/internal/amd64"

// Reducing a run by a computation of pairs takes neighbours apart again and again:
// the elements at even places are the left operands, those at odd places the right
// ones. Two vectors of eight elements give one vector of each.

// LoadPairs loads eight pairs of neighbours of four bytes at an address, which moves by
// eight bytes a pair, and returns the first ones of the pairs and the second ones. A shuffle
// within halves gathers the elements of each side, a permutation orders them.
func LoadPairs(c *amd64.Chain, at amd64.Reg) (left, right amd64.Value) {
	low := c.Load(amd64.VMOVUPS, amd64.Mem{Base: at}, 64)
	high := c.Load(amd64.VMOVUPS, amd64.Mem{Base: at, Disp: 32}, 64)
	const firsts = amd64.Imm(0x88)
	const seconds = amd64.Imm(0xdd)
	const inOrder = amd64.Imm(0xd8)
	left = c.Do(amd64.VPERMPD, c.Do(amd64.VSHUFPS, low, high, firsts), inOrder)
	right = c.Do(amd64.VPERMPD, c.Do(amd64.VSHUFPS, low, high, seconds), inOrder)
	return left, right
}
