package sim

import (
	"math"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// wgmmaShape describes a wgmma.mma_async: the part of it that one warp of the
// warpgroup computes. The list of its instruction holds the accumulators, then
// A's registers if A is in registers, then the descriptors of A (else) and B,
// then the predicate scale-d.
type wgmmaShape struct {
	product
	// acc is the number of registers of the accumulators.
	acc int
	// fromRegs is set if A is in registers.
	fromRegs bool
	// negA and negB negate an operand.
	negA, negB bool
	// transA and transB are set for operands that are major along m or n instead
	// of k.
	transA, transB bool
}

// registersA is the number of registers of A.
func (s *wgmmaShape) registersA() int {
	if s.fromRegs {
		return s.na
	}
	return 0
}

// newWgmma decodes the shape and the types of a wgmma; it returns nil if the
// wgmma is not modelled.
func newWgmma(code *ptx.Opcode) *wgmmaShape {
	sh := code.Shape()
	s := &wgmmaShape{}
	var ok [3]bool
	s.m = sh.M
	s.n = sh.N
	s.k = sh.K
	s.d, ok[0] = elementTypes[code.Type(0)]
	s.a, ok[1] = elementTypes[code.Type(1)]
	s.b, ok[2] = elementTypes[code.Type(2)]
	if !ok[0] || !ok[1] ||
		!ok[2] || s.m != 64 ||
		s.a.decode == nil {
		return nil
	}
	s.c = s.d
	s.integer = s.d.typ == ptx.S32
	s.saturate = code.Has(ptx.ModSatfinite)
	s.acc = s.n * 16 * s.d.bits / 32 / warpSize
	s.na = 4
	return s
}

// product describes an mma: its shape m×n×k, its types, and the number of
// registers of each fragment.
type product struct {
	m, n, k    int
	a, b, c, d elementType
	// nd, na and nb are the numbers of registers of D (and C), A and B.
	nd, na, nb int
	// integer is set for products of integers, and saturate if they clamp their
	// sums.
	integer  bool
	saturate bool
}

// elementType is the representation of matrix elements in registers.
type elementType struct {
	typ  ptx.Type
	bits int
	// decode converts the bits of an element to float32, which is exact for all
	// operands of fewer than 32 bits; nil for types of results.
	decode func(uint32) float32
}

// elementTypes are the types of operands and results of matrix instructions.
var elementTypes = map[ptx.Type]elementType{
	ptx.F16:  {ptx.F16, 16, func(v uint32) float32 { return halfToFloat(uint16(v)) }},
	ptx.BF16: {ptx.BF16, 16, func(v uint32) float32 { return math.Float32frombits(v << 16) }},
	// A device reads the upper 19 bits of a tf32 operand.
	ptx.TF32: {ptx.TF32, 32, func(v uint32) float32 {
		return math.Float32frombits(v &^ (1<<13 - 1))
	}},
	ptx.F32:  {ptx.F32, 32, math.Float32frombits},
	ptx.E4M3: {ptx.E4M3, 8, tabulated(e4m3Format)},
	ptx.E5M2: {ptx.E5M2, 8, tabulated(e5m2Format)},
	ptx.S8:   {ptx.S8, 8, func(v uint32) float32 { return float32(int8(v)) }},
	ptx.U8:   {ptx.U8, 8, func(v uint32) float32 { return float32(v) }},
	ptx.S32:  {ptx.S32, 32, nil},
	ptx.F64:  {ptx.F64, 64, nil},
}

// tabulated decodes an 8-bit format by a table.
func tabulated(f smallFormat) func(uint32) float32 {
	var table [256]float32
	for i := range table {
		table[i] = float32(f.value(uint16(i)))
	}
	return func(v uint32) float32 { return table[v&0xff] }
}

// Fragments of mma.m16n8kK (PTX ISA, "Matrix Fragments for mma"): lane l is in
// group g = l/4 and is t = l%4 of it. With E elements in a register, register
// i, element e of A is at row g + 8(i%2) and column tE + 4E(i/2) + e; of B at
// row tE + 4Ei + e and column g; register i of C and D (two 32-bit elements a
// row) is at row g + 8(i/2), column 2t + i%2.

// fragmentA is the row and the column of element e of register i of A in lane l.
func (p *product) fragmentA(l, i, e int) (row, col int) {
	per := p.a.perRegister()
	g, t := l>>2, l&3
	if p.m == 8 {
		return g, t*per + e
	}
	return g + 8*(i&1), t*per + 4*per*(i>>1) + e
}

// fragmentB is the row and the column of element e of register i of B in lane l.
func (p *product) fragmentB(l, i, e int) (row, col int) {
	per := p.a.perRegister()
	return l&3*per + 4*per*i + e, l >> 2
}

// fragmentC is the row and the column of register i of C and D in lane l.
func (p *product) fragmentC(l, i int) (row, col int) {
	return l>>2 + 8*(i>>1), l&3*2 + i&1
}

// perRegister is the number of elements in a register of 32 bits.
func (e *elementType) perRegister() int { return max(32/e.bits, 1) }

// newProduct decodes the shape and the types of an mma; it returns nil if the mma
// is not modelled.
func newProduct(code *ptx.Opcode) *product {
	s := code.Shape()
	p := &product{
		m:        s.M,
		n:        s.N,
		k:        s.K,
		saturate: code.Has(ptx.ModSatfinite),
	}
	var ok [4]bool
	p.d, ok[0] = elementTypes[code.Type(0)]
	p.a, ok[1] = elementTypes[code.Type(1)]
	p.b, ok[2] = elementTypes[code.Type(2)]
	p.c, ok[3] = elementTypes[code.Type(3)]
	if !ok[0] || !ok[1] ||
		!ok[2] || !ok[3] ||
		p.a.bits != p.b.bits ||
		s == (ptx.Shape{}) {
		return nil
	}
	p.integer = p.d.typ == ptx.S32
	p.na = p.m * p.k * p.a.bits / 32 / warpSize
	p.nb = p.n * p.k * p.a.bits / 32 / warpSize
	p.nd = p.m * p.n * p.d.bits / 32 / warpSize
	if p.a.bits == 64 {
		p.na = p.na / 2
		p.nb = p.nb / 2
		p.nd = p.nd / 2
		return p
	}
	if p.m != 16 || p.n != 8 ||
		p.a.decode == nil || p.na < 1 {
		return nil
	}
	return p
}

// accumulatorAt is the register and the lane that hold column j of row r.
func accumulatorAt(r, j int) (i, l int) {
	return j>>3*4 + r>>3*2 + j&1,
		r&7*4 + j&7>>1
}
