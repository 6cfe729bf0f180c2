package cpu

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
)

// A turn is a rearrangement of elements of four bytes in which neighbours along
// one dimension of the source become neighbours along another of the result:
// blocks of 8 by 8 are transposed in registers.
type turn struct {
	outer []turnDim
	rows  turnDim // neighbours in the source
	cols  turnDim // neighbours in the result
	start int64
}

// A turnDim is a dimension with its strides, in elements.
type turnDim struct{ size, from, to int64 }

// newTurn describes g as a turn, if it is one with at least a block.
func newTurn(g *gather) (*turn, bool) {
	t := &turn{start: g.start}
	to := rowMajorOf(g.dims)
	inner := len(g.dims) - 1
	at := slices.IndexFunc(g.dims[:inner], func(d gatherDim) bool { return d.stride == 1 })
	if at < 0 || g.dims[at].size < 8 || g.dims[inner].size < 8 || g.dims[inner].stride < 1 {
		return nil, false
	}
	for k, d := range g.dims {
		x := turnDim{d.size, d.stride, to[k]}
		switch k {
		case at:
			t.rows = x
		case inner:
			t.cols = x
		default:
			t.outer = append(t.outer, x)
		}
	}
	return t, true
}

func rowMajorOf(dims []gatherDim) []int64 {
	sizes := make([]int64, len(dims))
	for k, d := range dims {
		sizes[k] = d.size
	}
	return rowMajor(sizes)
}

// turnArgs: n blocks one below the other, strides in bytes.
type turnArgs struct {
	n        int64
	from, to unsafe.Pointer
	fromStep int64
	toStep   int64
}

var turner = sync.OnceValues(func() (amd64.Func, bool) {
	if !machineCode() {
		return amd64.Func{}, false
	}
	return loaded(turnBlocks)
})

// turnBlocks transposes blocks of 8 by 8: eight rows of the source, one source
// step apart, become columns of the result.
func turnBlocks(a *amd64.Assembler) error {
	loadArgs(a)
	a.Emit(amd64.MOV, amd64.RCX, amd64.Mem{Base: amd64.RDI, Disp: 24})
	a.Emit(amd64.MOV, amd64.RBX, amd64.Mem{Base: amd64.RDI, Disp: 32})
	a.Emit(amd64.LEA, amd64.R8, amd64.Mem{Base: amd64.RCX, Index: amd64.RCX, Scale: 2})
	a.Emit(amd64.LEA, amd64.R10, amd64.Mem{Base: amd64.RBX, Index: amd64.RBX, Scale: 2})
	loop := a.NewLabel()
	a.Bind(loop)
	a.Emit(amd64.LEA, amd64.R9, amd64.Mem{Base: amd64.RSI, Index: amd64.RCX, Scale: 4})
	a.Emit(amd64.LEA, amd64.R11, amd64.Mem{Base: amd64.RDX, Index: amd64.RBX, Scale: 4})
	for k, m := range eightRows(amd64.RSI, amd64.R9, amd64.RCX, amd64.R8) {
		a.Emit(amd64.VMOVUPS, amd64.Y(k), m)
	}
	for k := range 4 { // pairs of rows, low and high halves of each lane
		a.Emit(amd64.VUNPCKLPS, amd64.Y(8+2*k), amd64.Y(2*k), amd64.Y(2*k+1))
		a.Emit(amd64.VUNPCKHPS, amd64.Y(9+2*k), amd64.Y(2*k), amd64.Y(2*k+1))
	}
	for half := range 2 { // of four rows
		for k := range 2 {
			x, y := amd64.Y(8+4*half+k), amd64.Y(10+4*half+k)
			a.Emit(amd64.VSHUFPS, amd64.Y(4*half+2*k), x, y, amd64.Imm(0x44))
			a.Emit(amd64.VSHUFPS, amd64.Y(4*half+2*k+1), x, y, amd64.Imm(0xee))
		}
	}
	for k := range 4 { // lanes
		a.Emit(amd64.VPERM2F128, amd64.Y(8+k), amd64.Y(k), amd64.Y(4+k), amd64.Imm(0x20))
		a.Emit(amd64.VPERM2F128, amd64.Y(12+k), amd64.Y(k), amd64.Y(4+k), amd64.Imm(0x31))
	}
	for k, m := range eightRows(amd64.RDX, amd64.R11, amd64.RBX, amd64.R10) {
		a.Emit(amd64.VMOVUPS, m, amd64.Y(8+k))
	}
	a.Emit(amd64.ADD, amd64.RSI, amd64.Imm(32))
	a.Emit(amd64.LEA, amd64.RDX, amd64.Mem{Base: amd64.RDX, Index: amd64.RBX, Scale: 8})
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, loop)
	return nil
}

// eightRows are the addresses of rows that are step apart, from base; four is
// base + 4 steps, three is 3 steps.
func eightRows(base, four, step, three amd64.Reg) [8]amd64.Mem {
	var m [8]amd64.Mem
	for k, b := range [2]amd64.Reg{base, four} {
		m[4*k] = amd64.Mem{Base: b}
		m[4*k+1] = amd64.Mem{Base: b, Index: step, Scale: 1}
		m[4*k+2] = amd64.Mem{Base: b, Index: step, Scale: 2}
		m[4*k+3] = amd64.Mem{Base: b, Index: three, Scale: 1}
	}
	return m
}

// runTurn rearranges the whole tile.
func runTurn[T number](w *worker, t *turn, f amd64.Func, dst, src []T) {
	var index [maxRank]int64
	from, to := t.start, int64(0)
	for {
		turnTile(w, t, f, dst[to:], src[from:])
		d := len(t.outer) - 1
		for ; d >= 0; d-- {
			x := t.outer[d]
			index[d]++
			from, to = from+x.from, to+x.to
			if index[d] < x.size {
				break
			}
			from, to = from-index[d]*x.from, to-index[d]*x.to
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// turnTile transposes rows by cols elements: whole blocks, then what is left.
func turnTile[T number](w *worker, t *turn, f amd64.Func, dst, src []T) {
	rows, cols := t.rows.size&^7, t.cols.size&^7
	for j := int64(0); j < cols; j += 8 {
		w.turn = turnArgs{rows / 8, unsafe.Pointer(&src[j*t.cols.from]), unsafe.Pointer(&dst[j]), 4 * t.cols.from, 4 * t.rows.to}
		f.Call(unsafe.Pointer(&w.turn))
	}
	for i := int64(0); i < t.rows.size; i++ {
		first := cols
		if i >= rows {
			first = 0
		}
		row := dst[i*t.rows.to:]
		for j := first; j < t.cols.size; j++ {
			row[j] = src[i+j*t.cols.from]
		}
	}
}
