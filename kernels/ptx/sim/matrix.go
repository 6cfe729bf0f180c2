package sim

import (
	"encoding/binary"
	"math"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// ldmatrix loads 8×8 matrices of 16-bit elements: lane 8i+r gives the address
// of row r of matrix i; lane l receives elements 2(l%4) and +1 of row l/4, or
// with .trans of column l/4 (PTX ISA, ldmatrix).
func ldmatrix(w *warp, in *instr) {
	if w.active != allLanes {
		w.notWhole("ldmatrix")
		return
	}
	addr := w.addresses(&in.at, &w.addr)
	n := in.mods.matrices
	rows := uint32(uint64(1)<<(8*n) - 1)
	if w.cta.work.executed != nil {
		w.cta.work.counters.SharedLoad.add(wavefronts(addr, rows, 16))
	}
	mem, offset := w.matrixRows(in, addr, n)
	if mem == nil {
		return
	}
	for i := range n {
		d := &w.r32[in.list[i].index]
		row := (*[8]uint32)(offset[8*i:])
		// Lane l receives a pair of neighbouring elements of a row, or of a
		// column of the transposed matrix.
		for l := range d {
			if !in.mods.trans {
				d[l] = binary.LittleEndian.Uint32(
					mem[row[l>>2]+uint32(l&3*4):],
				)
				continue
			}
			at := uint32(l >> 2 * 2)
			lo := binary.LittleEndian.Uint16(mem[row[l&3*2]+at:])
			hi := binary.LittleEndian.Uint16(mem[row[l&3*2+1]+at:])
			d[l] = uint32(hi)<<16 | uint32(lo)
		}
	}
}

// matrixRows resolves the rows of n matrices. It returns bytes and the offset of
// each row in them, and nil if a row is out of bounds.
func (w *warp) matrixRows(
	in *instr, addr *long, n int,
) (mem []byte, offset [warpSize]uint32) {
	w.active = uint32(uint64(1)<<(8*n) - 1)
	mem = w.coalesced(in.space, addr, 16, reading)
	w.active = allLanes
	if mem != nil {
		return mem, w.offset
	}
	mem = make([]byte, 16*8*n)
	for l := range 8 * n {
		b := w.bytesAt(
			in.space, addr[l], 16, 16, l, reading,
		)
		if b == nil {
			return nil, offset
		}
		offset[l] = uint32(16 * l)
		copy(mem[16*l:], b)
	}
	return mem, offset
}

// stmatrix stores 8×8 matrices, the inverse of ldmatrix.
func stmatrix(w *warp, in *instr) {
	if w.active != allLanes {
		w.notWhole("stmatrix")
		return
	}
	w.beginStore()
	defer w.endStore()
	addr := w.addresses(&in.at, &w.addr)
	n := in.mods.matrices
	if w.cta.work.executed != nil {
		w.cta.work.counters.SharedStore.add(wavefronts(
			addr, uint32(uint64(1)<<(8*n)-1), 16,
		))
	}
	for i := range n {
		s := &w.r32[in.list[i].index]
		for r := range 8 {
			b := w.bytesAt(
				in.space, addr[8*i+r], 16,
				16, 8*i+r, writing,
			)
			if b == nil {
				return
			}
			for c := range 8 {
				l := r*4 + c/2
				half := c & 1
				if in.mods.trans {
					l = c*4 + r/2
					half = r & 1
				}
				binary.LittleEndian.PutUint16(
					b[c*2:],
					uint16(s[l]>>(half*16)),
				)
			}
		}
	}
}

// movmatrix transposes an 8×8 matrix that the registers of the warp hold.
func movmatrix(w *warp, in *instr) {
	if w.active != allLanes {
		w.notWhole("movmatrix")
		return
	}
	s := w.r32[in.a]
	d := &w.r32[in.d]
	for l := range d {
		// Element (row, column) lies in lane 4·row + column/2, in half
		// column%2.
		half := l >> 2 & 1 * 16
		lo := s[l&3*2*4+l>>3] >> half & 0xffff
		hi := s[(l&3*2+1)*4+l>>3] >> half & 0xffff
		d[l] = hi<<16 | lo
	}
}

// mma is mma.sync of all types but f64; list holds the registers of D, A, B and
// C. Sums are float32, in order of k.
func mma(w *warp, in *instr) {
	if w.active != allLanes {
		w.notWhole("mma")
		return
	}
	p := in.mods.product
	w.countMMA(p)
	if p.a.typ == ptx.F16 &&
		p.k == 16 && p.d.typ == ptx.F32 ||
		p.a.typ == ptx.BF16 && p.k == 16 {
		// This shape, the one that kernels use most, has code of its own.
		mma16816(w, in)
		return
	}
	var a [16][32]float32
	var b [32][8]float32
	regs := in.list[p.nd:]
	for i := range p.na {
		w.scatter(regs[i], &p.a, func(l, e int, v float32) {
			r, c := p.fragmentA(l, i, e)
			a[r][c] = v
		})
	}
	for i := range p.nb {
		w.scatter(regs[p.na+i], &p.b, func(l, e int, v float32) {
			r, c := p.fragmentB(l, i, e)
			b[r][c] = v
		})
	}
	acc := regs[p.na+p.nb:]
	if p.integer {
		w.integerProduct(p, &a, &b, acc, in.list)
		return
	}
	c := w.gatherC(p, acc)
	// The sum is in order of k; devices add in another order, with other last
	// bits.
	for r := range 16 {
		for col := range 8 {
			s := c[r][col]
			for k := range p.k {
				s += a[r][k] * b[k][col]
			}
			c[r][col] = s
		}
	}
	w.scatterD(p, &c, in.list)
}

// countMMA counts an mma and its operations.
func (w *warp) countMMA(p *product) {
	c := &w.cta.work.counters
	c.MMA++
	c.MatrixFLOPs += int64(2 * p.m * p.n * p.k)
}

// gatherC collects the matrix C from its fragments.
func (w *warp) gatherC(
	p *product, acc []register,
) (c [16][8]float32) {
	for l := range warpSize {
		for i := range 4 {
			r, col := p.fragmentC(l, i)
			if p.c.typ == ptx.F16 {
				c[r][col] = halfToFloat(
					uint16(w.r32[acc[i/2].index][l] >> (i &
						1 * 16)),
				)
				continue
			}
			c[r][col] = math.Float32frombits(
				w.r32[acc[i].index][l],
			)
		}
	}
	return c
}

// scatterD distributes the matrix D to its fragments.
func (w *warp) scatterD(
	p *product, c *[16][8]float32, d []register,
) {
	for l := range warpSize {
		for i := range 4 {
			r, col := p.fragmentC(l, i)
			if p.d.typ == ptx.F16 {
				shift := i & 1 * 16
				reg := &w.r32[d[i/2].index]
				reg[l] = reg[l]&^(0xffff<<shift) |
					uint32(floatToHalf(c[r][col]))<<shift
				continue
			}
			w.r32[d[i].index][l] = canonical(c[r][col])
		}
	}
}

// integerProduct computes D = A·B + C of integers. The elements are at most 8
// bits wide, so that float32 holds them exactly.
func (w *warp) integerProduct(
	p *product, a *[16][32]float32,
	b *[32][8]float32, acc, d []register,
) {
	for l := range warpSize {
		for i := range 4 {
			r, col := p.fragmentC(l, i)
			s := int64(int32(w.r32[acc[i].index][l]))
			for k := range p.k {
				s += int64(a[r][k]) * int64(b[k][col])
			}
			if p.saturate {
				s = int64(int32(saturate32(s)))
			}
			w.r32[d[i].index][l] = uint32(s)
		}
	}
}

// mma16816 is the m16n8k16 of half and bfloat16 into float32, the mma in which
// kernels spend their time: it has fixed sizes and no call per element.
func mma16816(w *warp, in *instr) {
	r := in.list
	var a [16][16]float32
	var b [16][8]float32
	if in.mods.product.a.typ == ptx.F16 {
		w.halves(&a, &b, r)
	} else {
		w.bfloats(&a, &b, r)
	}
	for h := range 2 {
		c0 := &w.r32[r[10+2*h].index]
		c1 := &w.r32[r[11+2*h].index]
		d0 := &w.r32[r[2*h].index]
		d1 := &w.r32[r[2*h+1].index]
		for g := range 8 {
			row := rowTimes(
				&a[g+8*h], &b,
				(*[4]uint32)(c0[4*g:]),
				(*[4]uint32)(c1[4*g:]),
			)
			for t := range 4 {
				d0[4*g+t], d1[4*g+t] = canonical(row[2*t]),
					canonical(row[2*t+1])
			}
		}
	}
}

// rowTimes is a row of C plus a row of A times B. The row of C lies in four
// lanes, with its even columns in even and its odd columns in odd.
func rowTimes(
	a *[16]float32,
	b *[16][8]float32,
	even, odd *[4]uint32,
) [8]float32 {
	s0 := math.Float32frombits(even[0])
	s1 := math.Float32frombits(odd[0])
	s2 := math.Float32frombits(even[1])
	s3 := math.Float32frombits(odd[1])
	s4 := math.Float32frombits(even[2])
	s5 := math.Float32frombits(odd[2])
	s6 := math.Float32frombits(even[3])
	s7 := math.Float32frombits(odd[3])
	for k, x := range a {
		row := &b[k]
		s0 += x * row[0]
		s1 += x * row[1]
		s2 += x * row[2]
		s3 += x * row[3]
		s4 += x * row[4]
		s5 += x * row[5]
		s6 += x * row[6]
		s7 += x * row[7]
	}
	return [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}

// halves distributes the fragments of an m16n8k16 of halves to the matrices A and
// B.
func (w *warp) halves(
	a *[16][16]float32,
	b *[16][8]float32, r []register,
) {
	for i := range 4 {
		s := &w.r32[r[4+i].index]
		for l := range s {
			row := &a[l>>2+8*(i&1)]
			c := l&3*2 + 8*(i>>1)
			row[c&15], row[(c+1)&15] = halfToFloat(uint16(s[l])),
				halfToFloat(uint16(s[l]>>16))
		}
	}
	for i := range 2 {
		s := &w.r32[r[8+i].index]
		for l := range s {
			k := l&3*2 + 8*i
			b[k&15][l>>2&7], b[(k+1)&15][l>>2&7] =
				halfToFloat(
					uint16(s[l]),
				),
				halfToFloat(uint16(s[l]>>16))
		}
	}
}

// bfloats distributes the fragments of an m16n8k16 of bfloat16 to the matrices A
// and B.
func (w *warp) bfloats(
	a *[16][16]float32,
	b *[16][8]float32, r []register,
) {
	for i := range 4 {
		s := &w.r32[r[4+i].index]
		for l := range s {
			row := &a[l>>2+8*(i&1)]
			c := l&3*2 + 8*(i>>1)
			row[c&15], row[(c+1)&15] = math.Float32frombits(s[l]<<16),
				math.Float32frombits(s[l]&^0xffff)
		}
	}
	for i := range 2 {
		s := &w.r32[r[8+i].index]
		for l := range s {
			k := l&3*2 + 8*i
			b[k&15][l>>2&7], b[(k+1)&15][l>>2&7] =
				math.Float32frombits(
					s[l]<<16,
				),
				math.Float32frombits(s[l]&^0xffff)
		}
	}
}

// mmaF64 is mma of f64; fragments are laid out as for other types with one
// element a register.
func mmaF64(w *warp, in *instr) {
	if w.active != allLanes {
		w.notWhole("mma")
		return
	}
	p := in.mods.product
	w.countMMA(p)
	var a [16][16]float64
	var b [16][8]float64
	d := in.list[:p.nd]
	rest := in.list[p.nd:]
	for l := range warpSize {
		for i := range p.na {
			r, c := p.fragmentA(l, i, 0)
			a[r][c] = math.Float64frombits(
				w.r64[rest[i].index][l],
			)
		}
		for i := range p.nb {
			r, c := p.fragmentB(l, i, 0)
			b[r][c] = math.Float64frombits(
				w.r64[rest[p.na+i].index][l],
			)
		}
	}
	acc := rest[p.na+p.nb:]
	for l := range warpSize {
		for i := range p.nd {
			r, c := p.fragmentC(l, i)
			s := math.Float64frombits(w.r64[acc[i].index][l])
			for k := range p.k {
				s = math.FMA(a[r][k], b[k][c], s)
			}
			w.r64[d[i].index][l] = math.Float64bits(s)
		}
	}
}
