package rowkernel

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// A machine emulates the instructions of row kernels, whose recording it runs. Its memory
// is what place put there; any other address is a mistake. Registers of 32 bytes are the
// low halves of those of 64, and what writes them clears the rest.
type machine struct {
	pieces      map[uint64][]byte
	next        uint64
	constants   uint64
	general     [16]uint64
	vectors     [32]lanes
	masks       [8]uint16
	left, right int64 // what was compared, or the result and 0
}

// lanes are a vector of 64 bytes.
type lanes [16]uint32

// place puts a piece in memory, far from the others.
func (m *machine) place(x []byte) uint64 {
	if m.pieces == nil {
		m.pieces, m.next = map[uint64][]byte{}, 1<<20
	}
	at := m.next
	m.pieces[at] = x
	m.next += uint64(len(x)+1<<16) &^ 63
	return at
}

// bytes are n bytes at an address.
func (m *machine) bytes(at uint64, n int) []byte {
	for begin, x := range m.pieces {
		if at >= begin && at+uint64(n) <= begin+uint64(len(x)) {
			return x[at-begin:][:n]
		}
	}
	panic(fmt.Sprintf("%d bytes at %#x are not there", n, at))
}

// run runs a recording with an argument block.
func (m *machine) run(code []amd64.Instruction, args uint64) (err error) {
	labels := map[amd64.Label]int{}
	for n, i := range code {
		if i.Bound != 0 {
			labels[i.Bound] = n
		}
	}
	m.general[number(amd64.RDI)] = args
	at := 0
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s %v: %v", code[at].Op, code[at].Operands, r)
		}
	}()
	for steps := 0; steps < 1e7; steps++ {
		i := code[at]
		jump, isJump := jumps[i.Op]
		switch {
		case i.Op == amd64.RET:
			return nil
		case isJump && jump(m.left, m.right):
			at = labels[i.Operands[0].(amd64.Label)]
		case i.Bound == 0 && !isJump:
			m.step(i.Op, i.Operands)
		}
		at++
	}
	return fmt.Errorf("it does not end")
}

// jumps are the conditions of jumps.
var jumps = map[amd64.Op]func(x, y int64) bool{
	amd64.JMP: func(x, y int64) bool { return true },
	amd64.JE:  func(x, y int64) bool { return x == y },
	amd64.JL:  func(x, y int64) bool { return x < y },
	amd64.JG:  func(x, y int64) bool { return x > y },
	amd64.JGE: func(x, y int64) bool { return x >= y },
	amd64.JAE: func(x, y int64) bool { return uint64(x) >= uint64(y) },
}

func number(r amd64.Reg) int {
	n := int(r & 15)
	if r >= amd64.X(16) {
		n += 16
	}
	return n
}

// size is the bytes of a register.
func size(o amd64.Operand) int {
	r, ok := o.(amd64.Reg)
	if !ok {
		return 0
	}
	return [...]int{1: 8, 2: 4, 3: 1, 4: 16, 5: 32, 6: 64, 7: 2, 8: 16, 9: 32, 10: 64}[r>>4]
}

func (m *machine) address(a amd64.Mem) uint64 {
	at := uint64(int64(a.Disp))
	if a.Label != 0 {
		return at + m.constants
	}
	if a.Base != 0 {
		at += m.general[number(a.Base)]
	}
	if a.Index != 0 {
		at += m.general[number(a.Index)] * uint64(max(a.Scale, 1))
	}
	return at
}

func (m *machine) step(op amd64.Op, o []amd64.Operand) {
	switch op {
	case amd64.PREFETCHT0, amd64.SFENCE, amd64.VZEROUPPER:
		return
	case amd64.MOV, amd64.LEA, amd64.ADD, amd64.SUB, amd64.XOR, amd64.CMP, amd64.TEST, amd64.CMOVL:
		m.integer(op, o)
		return
	case amd64.VMOVSS:
		binary.LittleEndian.PutUint32(m.bytes(m.address(o[0].(amd64.Mem)), 4), m.vectors[number(o[1].(amd64.Reg))][0])
		return
	}
	if to, ok := o[0].(amd64.Mem); ok {
		m.store(op, to, o[1:])
		return
	}
	to := o[0].(amd64.Reg)
	n := size(to) / 4
	switch op {
	case amd64.VPMOVD2M:
		m.setMask(to, m.vector(o[1], 16), func(x uint32) bool { return int32(x) < 0 })
		return
	case amd64.VCMPPS, amd64.VPCMPEQD, amd64.VPCMPGTD:
		if size(to) == 2 { // in which every lane is all ones or zeros
			m.setMask(to, m.each(op, o[1:], 16), func(x uint32) bool { return x != 0 })
			return
		}
	}
	if isFused(op) {
		o = append([]amd64.Operand{o[0]}, o...) // The destination is read.
	}
	y := m.each(op, o[1:], n)
	clear(y[n:])
	m.vectors[number(to)] = y
}

func (m *machine) setMask(to amd64.Reg, x lanes, on func(uint32) bool) {
	bits := uint16(0)
	for n := range x {
		if on(x[n]) {
			bits |= 1 << n
		}
	}
	m.masks[number(to)] = bits
}

// integer runs an instruction on general registers.
func (m *machine) integer(op amd64.Op, o []amd64.Operand) {
	wide := size(o[0]) != 4
	y := m.integerValue(o[1], wide)
	if to, ok := o[0].(amd64.Mem); ok {
		binary.LittleEndian.PutUint64(m.bytes(m.address(to), 8), uint64(y))
		return
	}
	to := &m.general[number(o[0].(amd64.Reg))]
	x := int64(*to)
	if !wide {
		x, y = int64(uint32(x)), int64(uint32(y))
	}
	switch op {
	case amd64.MOV, amd64.LEA:
		*to = uint64(y)
	case amd64.ADD:
		*to = uint64(x + y)
	case amd64.XOR:
		*to = uint64(x ^ y)
	case amd64.CMP:
		m.left, m.right = x, y
	case amd64.SUB:
		*to, m.left, m.right = uint64(x-y), x, y
	case amd64.TEST:
		m.left, m.right = x&y, 0
	case amd64.CMOVL:
		if m.left < m.right {
			*to = uint64(y)
		}
	}
	if !wide {
		*to = uint64(uint32(*to))
	}
	if op == amd64.LEA {
		*to = m.address(o[1].(amd64.Mem))
	}
}

func (m *machine) integerValue(o amd64.Operand, wide bool) int64 {
	switch o := o.(type) {
	case amd64.Imm:
		return int64(o)
	case amd64.Reg:
		return int64(m.general[number(o)])
	}
	at := m.address(o.(amd64.Mem))
	if wide {
		return int64(binary.LittleEndian.Uint64(m.bytes(at, 8)))
	}
	return int64(binary.LittleEndian.Uint32(m.bytes(at, 4)))
}

// vector is a register, or n lanes of memory.
func (m *machine) vector(o amd64.Operand, n int) (x lanes) {
	if r, ok := o.(amd64.Reg); ok {
		return m.vectors[number(r)]
	}
	data := m.bytes(m.address(o.(amd64.Mem)), 4*n)
	for k := range n {
		x[k] = binary.LittleEndian.Uint32(data[4*k:])
	}
	return x
}

// store stores a vector, the lanes of it that a mask turns on, or its halves.
func (m *machine) store(op amd64.Op, to amd64.Mem, o []amd64.Operand) {
	at := m.address(to)
	from := o[len(o)-1].(amd64.Reg)
	x := m.vectors[number(from)]
	if op == amd64.VMOVNTPS && at%uint64(size(from)) != 0 {
		panic("a non-temporal store is not aligned")
	}
	for k := range size(from) / 4 {
		if op == amd64.VMASKMOVPS && int32(m.vectors[number(o[0].(amd64.Reg))][k]) >= 0 {
			continue
		}
		binary.LittleEndian.PutUint32(m.bytes(at+uint64(4*k), 4), x[k])
	}
}

// each computes n lanes of the result of an instruction.
func (m *machine) each(op amd64.Op, o []amd64.Operand, n int) (y lanes) {
	imm := 0
	if i, ok := o[len(o)-1].(amd64.Imm); ok {
		imm, o = int(i), o[:len(o)-1]
	}
	switch op {
	case amd64.VPMOVM2D:
		for k := range y {
			y[k] = -uint32(m.masks[number(o[0].(amd64.Reg))] >> k & 1)
		}
		return y
	case amd64.VPBROADCASTW, amd64.VPMOVZXWD, amd64.VCVTPH2PS, amd64.VPMOVDW, amd64.VCVTPS2PH, amd64.VCVTNEPS2BF16,
		amd64.VPACKUSDW, amd64.VEXTRACTI128:
		return m.halves(op, o, imm, n)
	case amd64.VBROADCASTSS:
		return slices16(m.vector(o[0], 1)[0])
	case amd64.VMASKMOVPS:
		return m.maskedLoad(o, n)
	case amd64.VINSERTF64X4:
		y = m.vector(o[0], 16)
		high := m.vector(o[1], 8)
		copy(y[8*imm:], high[:8])
		return y
	case amd64.VEXTRACTF64X4:
		high := m.vector(o[0], 16)
		copy(y[:8], high[8*imm:])
		return y
	case amd64.VBLENDMPS:
		x, z := m.vector(o[1], n), m.vector(o[2], n)
		for k := range n {
			y[k] = x[k]
			if m.masks[number(o[0].(amd64.Reg))]>>k&1 != 0 {
				y[k] = z[k]
			}
		}
		return y
	}
	var args [3]lanes
	for k, x := range o {
		args[k] = m.vector(x, n)
	}
	return shuffled(op, args, imm, n)
}

// maskedLoad loads the lanes that a mask turns on.
func (m *machine) maskedLoad(o []amd64.Operand, n int) (y lanes) {
	mask := m.vectors[number(o[0].(amd64.Reg))]
	at := m.address(o[1].(amd64.Mem))
	for k := range n {
		if int32(mask[k]) < 0 {
			y[k] = binary.LittleEndian.Uint32(m.bytes(at+uint64(4*k), 4))
		}
	}
	return y
}

func slices16(x uint32) (y lanes) {
	for k := range y {
		y[k] = x
	}
	return y
}

// shuffled moves or computes lanes.
func shuffled(op amd64.Op, x [3]lanes, imm, n int) (y lanes) {
	for k := range n {
		switch op {
		case amd64.VPERMPS:
			y[k] = x[1][int(x[0][k])%n]
		case amd64.VPERMILPS:
			y[k] = x[0][k&^3+imm>>(2*(k&3))&3]
		case amd64.VPERM2F128:
			half := imm >> (k / 4 * 4) & 3
			y[k] = x[half/2][half%2*4+k%4]
		default:
			y[k] = laneOf(op, x[0][k], x[1][k], x[2][k], imm)
		}
	}
	return y
}

func real32(x uint32) float32  { return math.Float32frombits(x) }
func real64(x uint32) float64  { return float64(math.Float32frombits(x)) }
func bits32(x float64) uint32  { return math.Float32bits(float32(x)) }
func isNaN(x uint32) bool      { return x&(1<<31-1) > 0xff<<23 }
func orNaN(x uint32) uint32    { return x | 1<<22 }
func ones(is bool) uint32      { return map[bool]uint32{true: 1<<32 - 1}[is] }
func flipped(x uint32) uint32  { return x ^ 1<<31 }
func isFused(op amd64.Op) bool { return op >= amd64.VFMADD132PS && op <= amd64.VFNMSUB231SD }

// laneOf computes a lane.
func laneOf(op amd64.Op, x, y, z uint32, imm int) uint32 {
	switch op {
	case amd64.VMOVUPS, amd64.VMOVAPS, amd64.VMOVDQU:
		return x
	case amd64.VANDPS, amd64.VPAND:
		return x & y
	case amd64.VANDNPS, amd64.VPANDN:
		return ^x & y
	case amd64.VORPS, amd64.VPOR:
		return x | y
	case amd64.VXORPS, amd64.VPXOR:
		return x ^ y
	case amd64.VPADDD:
		return x + y
	case amd64.VPSUBD:
		return x - y
	case amd64.VPSLLD:
		return x << imm
	case amd64.VPSRLD:
		return x >> imm
	case amd64.VPSRAD:
		return uint32(int32(x) >> imm)
	case amd64.VPCMPEQD:
		return ones(x == y)
	case amd64.VPCMPGTD:
		return ones(int32(x) > int32(y))
	case amd64.VBLENDVPS:
		if int32(z) < 0 {
			return y
		}
		return x
	case amd64.VCVTDQ2PS:
		return math.Float32bits(float32(int32(x)))
	case amd64.VCMPPS:
		return ones(compares(imm, real32(x), real32(y)))
	case amd64.VMAXPS:
		if real32(x) > real32(y) {
			return x
		}
		return y
	case amd64.VMINPS:
		if real32(x) < real32(y) {
			return x
		}
		return y
	case amd64.VROUNDPS, amd64.VSQRTPS:
		if isNaN(x) {
			return orNaN(x)
		}
		return unaryLane(op, x, imm)
	}
	if isFused(op) {
		return fusedOrder(op, x, y, z)
	}
	return arithmetic(op, x, y)
}

func unaryLane(op amd64.Op, x uint32, imm int) uint32 {
	if op == amd64.VSQRTPS {
		return generated(math.Sqrt(real64(x)))
	}
	if imm&7 != 0 {
		panic(fmt.Sprintf("rounding %d is not emulated", imm))
	}
	return generated(math.RoundToEven(real64(x)))
}

// generated is the f32 of a result, whose NaN is the one that processors make.
func generated(x float64) uint32 {
	if x != x {
		return 0xffc00000
	}
	return bits32(x)
}

func compares(predicate int, x, y float32) bool {
	nan := x != x || y != y
	switch predicate {
	case 0:
		return x == y
	case 1, 17:
		return x < y
	case 18:
		return x <= y
	case 3:
		return nan
	case 4:
		return x != y
	case 5:
		return !(x < y)
	case 7:
		return !nan
	case 29:
		return x >= y
	case 30:
		return x > y
	}
	panic(fmt.Sprintf("predicate %d is not emulated", predicate))
}

// arithmetic computes sums, differences, products and quotients; float64 holds enough
// that rounding twice is rounding once (Figueroa, When is double rounding innocuous?, 1995).
func arithmetic(op amd64.Op, x, y uint32) uint32 {
	if isNaN(x) {
		return orNaN(x)
	}
	if isNaN(y) {
		return orNaN(y)
	}
	a, b := real64(x), real64(y)
	switch op {
	case amd64.VADDPS:
		return generated(a + b)
	case amd64.VSUBPS:
		return generated(a - b)
	case amd64.VMULPS:
		return generated(a * b)
	case amd64.VDIVPS:
		return generated(a / b)
	}
	panic("the instruction is not emulated")
}

// fusedOrder finds the factors and the addend of a fused operation on its destination and
// two more operands.
func fusedOrder(op amd64.Op, d, a, b uint32) uint32 {
	n := op - amd64.VFMADD132PS
	kind, order := n/12, n%12/4
	if n%4 != 0 {
		panic("the instruction is not emulated")
	}
	factors := [3][3]uint32{{d, b, a}, {a, d, b}, {a, b, d}}[order]
	return fusedLane(factors[0], factors[1], factors[2], kind >= 2, kind%2 == 1)
}

// fusedLane computes ±x·y ± z, rounded once. NaN of x comes before those of y and z.
func fusedLane(x, y, z uint32, negate, subtract bool) uint32 {
	for _, v := range []uint32{x, y, z} {
		if isNaN(v) {
			return orNaN(v)
		}
	}
	if negate {
		x = flipped(x)
	}
	if subtract {
		z = flipped(z)
	}
	product, addend := real64(x)*real64(y), real64(z)
	sum := product + addend
	// The rest of the sum, exactly (Knuth, The art of computer programming 2, 4.2.2):
	// where there is one, the last bit is made odd, so that rounding again is right.
	part := sum - product
	rest := (product - (sum - part)) + (addend - part)
	if b := math.Float64bits(sum); rest != 0 && b&1 == 0 && !math.IsInf(sum, 0) {
		if (rest > 0) == (sum > 0) {
			b++
		} else {
			b--
		}
		sum = math.Float64frombits(b)
	}
	return generated(sum)
}
