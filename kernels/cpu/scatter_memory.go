package cpu

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/updates"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/scattering"
)

// A scatter reads and writes arrays where they are. Updates that are a parameter are read
// there, those only that fall into a tile; an operand that is one is copied straight to the
// tile of the result, which lies in an output that nothing else reads.

// readByScattersOnly reports whether scatters are the only readers of a parameter, as
// operands or as updates, so that no tile of it is loaded.
func readByScattersOnly(p *symtile.Program, n int) bool {
	op := p.Ops[n]
	reads := 0
	for _, user := range p.Ops {
		for k, a := range user.Args {
			if a != n {
				continue
			}
			if reads++; user.Code != hlo.OpScatter || !scattersInPlace(p, user, k) {
				return false
			}
		}
	}
	return reads > 0 && op.Code == hlo.OpParameter &&
		!slices.ContainsFunc(p.Roots, func(r symtile.Root) bool {
			return r.Op == n
		})
}

// scattersInPlace reports whether a scatter can read its operand (k is 0) or its updates
// (2) in an array: one step leads to the next element along each dimension. Short elements
// of windows are converted as rows of these; single ones would be one by one.
func scattersInPlace(p *symtile.Program, scatter symtile.Op, k int) bool {
	source := p.Ops[scatter.Args[k]]
	for _, d := range source.Tile {
		stride, known := d.Stride.Value()
		if d.Digits != nil || !known || stride < 1 {
			return false
		}
		for _, r := range p.Runtime {
			if slices.Contains(d.Offset.Vars(), r.Var) {
				return false
			}
		}
	}
	if k == 2 {
		return portable.IsNative(source.Instr.Shape.DType) ||
			windowsElements(scatter.Instr) > 1
	}
	return k == 0
}

// windowsElements is the elements of a window of a scatter.
func windowsElements(i *hlo.Instr) int64 {
	return hlo.Elements(scattering.Window(i))
}

// memoryStrides is the strides in its array of a tile that scattersInPlace accepts.
func memoryStrides(op symtile.Op) (strides []int64) {
	memory := op.Instr.Shape.Strides()
	for k, d := range op.Tile {
		stride, _ := d.Stride.Value()
		strides = append(strides, stride*memory[k])
	}
	return strides
}

// updatesInMemory is where the updates of a scatter are that it reads in their array.
type updatesInMemory[T portable.Number] struct {
	param int
	base  int // The slot of the place of element 0 of the tile.
	// How elements are converted, and the row for them; nil where they are of type T.
	read portable.Transfer[T]
	row  *value
}

// newUpdatesInMemory is where b finds the updates of a scatter.
func newUpdatesInMemory[T portable.Number](
	b *block, op symtile.Op, x *updates.Access, c *accumulator,
) *updatesInMemory[T] {
	source := b.l.p.Ops[op.Args[2]]
	shape := source.Instr.Shape
	base := b.l.p.Space.Ring.Const(0)
	memory := shape.Strides()
	for k, d := range source.Tile {
		base = base.Add(d.Offset.Scale(memory[k]))
	}
	u := &updatesInMemory[T]{
		param: source.Instr.Attrs.Param,
		base:  b.slot(base),
	}
	if portable.IsNative(shape.DType) {
		return u
	}
	row := int64(1)
	if n := len(x.Window); n > 0 {
		row = x.Window[n-1].Size
	}
	u.read = reader[T](shape.DType)
	u.row = b.l.value("updates", portable.ClassFor[T](), noTile, row)
	c.temporaries = append(c.temporaries, u.row)
	return u
}

// bind lets a run read the updates.
func (u *updatesInMemory[T]) bind(w *worker, r *updates.Run[T]) {
	data := w.in[u.param].Data
	base := w.slots[u.base]
	if u.read != nil {
		r.Read, r.Data, r.Base = u.read, data, base
		r.Row = whole[T](w, u.row)
		return
	}
	n := int64(len(data)) / portable.ClassFor[T]().Bytes()
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
	r.Src = all[min(base, n):]
}

// scatterResult lays out the tile of a scatter's result, in its output where nothing else
// reads it, and is the strides of its dimensions.
func scatterResult(l *lowering, op symtile.Op, v *value) []int64 {
	v.strides = l.outputStrides(op)
	if v.strides == nil || slices.Equal(v.strides, hlo.RowMajor(op.Tile.Sizes())) {
		v.strides = nil
		return hlo.RowMajor(op.Tile.Sizes())
	}
	v.n = spanOf(op.Tile.Sizes(), v.strides)
	return v.strides
}

// scatterStart is what sets the tile of a scatter's result to that of its operand.
func scatterStart[T portable.Number](
	b *block, op symtile.Op, c *accumulator, to []int64,
) step {
	out := c.outs[0]
	rows := newResultRows(op.Tile.Sizes(), to)
	n := op.Args[0]
	if readByScattersOnly(b.l.p, n) {
		source := b.l.p.Ops[n]
		shape := source.Instr.Shape
		param := source.Instr.Attrs.Param
		a := newTileAccess(b, source.Tile, shape, reader[T](shape.DType))
		return func(w *worker) {
			data := w.in[param].Data
			dst := whole[T](w, out)
			rows.each(func(at, from int64) {
				a.read(w, data, dst[at:][:rows.length], from)
			})
		}
	}
	base := b.l.arg(op, 0)
	c.inits = []*value{base}
	return func(w *worker) {
		dst := whole[T](w, out)
		if base.where == inSplat {
			x := first[T](w, base)
			rows.each(func(at, _ int64) {
				portable.Fill(dst[at:][:rows.length], x)
			})
			return
		}
		src := whole[T](w, base)
		rows.each(func(at, from int64) {
			copy(dst[at:][:rows.length], src[from:])
		})
	}
}

// roundedByStore reports whether a scatter's result of bf16 or f16 is only stored, which
// rounds it. Most of it is the operand, which is rounded already.
func roundedByStore(p *symtile.Program, op symtile.Op) bool {
	d := op.Instr.Shape.DType
	return op.Code == hlo.OpScatter &&
		(d == hlo.BF16 || d == hlo.F16) &&
		len(readersOf(p, op.Instr)) == 0
}

// resultRows is the runs of neighbours that a tile consists of.
type resultRows struct {
	length  int64   // Of a run.
	sizes   []int64 // Of the dimensions around it.
	strides []int64 // Of these.
}

// newResultRows divides a tile of the sizes, whose elements are the strides apart.
func newResultRows(sizes, strides []int64) *resultRows {
	r := &resultRows{length: 1}
	n := len(sizes)
	for n > 0 && (sizes[n-1] == 1 || strides[n-1] == r.length) {
		r.length *= sizes[n-1]
		n--
	}
	r.sizes, r.strides = sizes[:n], strides[:n]
	return r
}

// each goes through the runs, in row-major order: where each begins in the strides, and its
// number of elements before it.
func (r *resultRows) each(f func(at, from int64)) {
	var index [maxRank]int64
	at := int64(0)
	for n := range hlo.Elements(r.sizes) {
		f(at, n*r.length)
		for d := len(r.sizes) - 1; d >= 0; d-- {
			at += r.strides[d]
			if index[d]++; index[d] < r.sizes[d] {
				break
			}
			at -= index[d] * r.strides[d]
			index[d] = 0
		}
	}
}
