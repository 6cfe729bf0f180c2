package sim

import (
	"encoding/binary"
	"math"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim/internal/m16n8k16"
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
		if in.mods.trans {
			columnPairs(d, mem, row)
		} else {
			rowPairs(d, mem, row)
		}
	}
}

// rowPairs gives each lane a pair of neighbouring elements of a row: four lanes have a row
// of 16 bytes.
func rowPairs(d *word, mem []byte, row *[8]uint32) {
	for r, at := range row {
		b := mem[at:][:16]
		lanes := (*[4]uint32)(d[4*r:])
		for i := range lanes {
			lanes[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
	}
}

// columnPairs gives each lane a pair of neighbouring elements of a column: lane 4·c+i has
// those of rows 2i and 2i+1.
func columnPairs(d *word, mem []byte, row *[8]uint32) {
	for i := range 4 {
		upper := mem[row[2*i]:][:16]
		lower := mem[row[2*i+1]:][:16]
		for c := range 8 {
			d[4*c+i] = uint32(binary.LittleEndian.Uint16(lower[2*c:]))<<16 |
				uint32(binary.LittleEndian.Uint16(upper[2*c:]))
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
	var a m16n8k16.A
	var b m16n8k16.B
	if in.mods.product.a.typ == ptx.F16 {
		w.halves(&a, &b, r)
	} else {
		w.bfloats(&a, &b, r)
	}
	// A row of C lies in four lanes, with its even columns in one register and its odd
	// columns in the next.
	var c m16n8k16.C
	for i := range c {
		even := (*[4]uint32)(w.r32[r[10+i>>3*2].index][4*(i&7):])
		odd := (*[4]uint32)(w.r32[r[11+i>>3*2].index][4*(i&7):])
		for t := range even {
			c[i][2*t] = math.Float32frombits(even[t])
			c[i][2*t+1] = math.Float32frombits(odd[t])
		}
	}
	c.Add(&a, &b)
	for i := range c {
		even := (*[4]uint32)(w.r32[r[i>>3*2].index][4*(i&7):])
		odd := (*[4]uint32)(w.r32[r[1+i>>3*2].index][4*(i&7):])
		for t := range even {
			even[t], odd[t] = canonical(c[i][2*t]), canonical(c[i][2*t+1])
		}
	}
}

// halves distributes the fragments of an m16n8k16 of halves to the matrices A and B: lane
// 4g+t has columns 2t and 2t+1 of rows g of A, and rows 2t and 2t+1 of column g of B.
func (w *warp) halves(
	a *m16n8k16.A, b *m16n8k16.B, r []register,
) {
	for i := range 4 {
		for g := range 8 {
			lanes := (*[4]uint32)(w.r32[r[4+i].index][4*g:])
			row := (*[8]float32)(a[g+8*(i&1)][8*(i>>1):])
			for t, x := range lanes {
				row[2*t], row[2*t+1] = halfToFloat(uint16(x)), halfToFloat(uint16(x>>16))
			}
		}
	}
	for i := range 2 {
		rows := (*[8][8]float32)(b[8*i:])
		for g := range 8 {
			lanes := (*[4]uint32)(w.r32[r[8+i].index][4*g:])
			for t, x := range lanes {
				rows[2*t][g], rows[2*t+1][g] = halfToFloat(uint16(x)), halfToFloat(uint16(x>>16))
			}
		}
	}
}

// bfloats distributes the fragments of an m16n8k16 of bfloat16 to the matrices A and B: lane
// 4g+t has columns 2t and 2t+1 of rows g of A, and rows 2t and 2t+1 of column g of B.
func (w *warp) bfloats(
	a *m16n8k16.A, b *m16n8k16.B, r []register,
) {
	for i := range 4 {
		for g := range 8 {
			lanes := (*[4]uint32)(w.r32[r[4+i].index][4*g:])
			row := (*[8]float32)(a[g+8*(i&1)][8*(i>>1):])
			for t, x := range lanes {
				row[2*t], row[2*t+1] = math.Float32frombits(x<<16), math.Float32frombits(x&^0xffff)
			}
		}
	}
	for i := range 2 {
		rows := (*[8][8]float32)(b[8*i:])
		for g := range 8 {
			lanes := (*[4]uint32)(w.r32[r[8+i].index][4*g:])
			for t, x := range lanes {
				rows[2*t][g], rows[2*t+1][g] = math.Float32frombits(x<<16), math.Float32frombits(x&^0xffff)
			}
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
