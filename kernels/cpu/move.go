package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A move brings elements from an array or a tile in scratch to another, without
// looking at them: width bytes each.
type move struct {
	dims     []moveDim // those far apart in the destination first
	width    int64
	split    bool // see trail
	stream   bool // past the caches
	to, from int  // places of element 0; −1 for 0
	start    int64
	cols     int // the dimension whose elements follow each other in the destination, −1: none
	rows     int // the same of the source
	next     int // another one, of rows of the destination
	dst, src func(w *worker) []byte
	block    *value // scratch of a transpose that streams, else nil
}

// A moveDim is a dimension with its strides in elements.
type moveDim struct {
	size, to, from  int64
	inside, outside []limit
}

// move lowers a route into one instruction, for the programs that own the result.
func (b *block) move(r *route, in *instr, m move, once []int) {
	var all []*move
	for _, t := range r.trails {
		if x := b.trail(t, in, m); x != nil {
			all = append(all, x)
		}
	}
	scratch := m.to < 0
	in.run = func(w *worker) {
		for _, d := range once {
			if w.tids[d] != 0 {
				return
			}
		}
		if scratch && (len(all) > 1 || all[0].partial(w)) {
			clear(m.dst(w))
		}
		for _, x := range all {
			x.run(w)
		}
		if m.stream {
			fence(w)
		}
	}
	b.add(in)
}

// trail lowers one trail of a route, nil when nothing can be on it.
func (b *block) trail(t trail, in *instr, m move) *move {
	if t.split && !slices.ContainsFunc(t.dims, func(d trailDim) bool { return len(d.outside) > 0 }) {
		return nil
	}
	source := b.l.p.Ops[t.op]
	m.from, m.start = -1, 0
	if source.Code == hlo.OpParameter {
		base, _ := t.memory(b.l)
		m.from = b.place(base)
		param := source.Instr.Attrs.Param
		m.src = func(w *worker) []byte { return w.in[param].Data }
	} else {
		v := b.l.of[t.op][0]
		in.full = append(in.full, v)
		m.src = v.data
		if v.where == inSplat {
			t.still()
		}
	}
	m.start, m.split = t.start, t.split
	for _, d := range t.dims {
		x := moveDim{size: d.size, to: d.to, from: d.at}
		for _, tile := range d.inside {
			x.inside = append(x.inside, newLimit(b, tile))
		}
		for _, tile := range d.outside {
			x.outside = append(x.outside, newLimit(b, tile))
		}
		m.dims = append(m.dims, x)
	}
	m.arrange()
	if m.block = nil; m.stream && m.turns() {
		m.block = b.l.value("block", classF32, splats, blockBytes/4)
		in.outs = append(in.outs, m.block)
	}
	return &m
}

// data is the bytes of a value.
func (v *value) data(w *worker) []byte {
	return unsafe.Slice((*byte)(w.base[v.id]), v.bytes())
}

// arrange orders dimensions, joins those that are one, and finds the ones whose
// elements follow each other.
func (m *move) arrange() {
	m.dims = slices.DeleteFunc(m.dims, func(d moveDim) bool { return d.size == 1 && len(d.inside)+len(d.outside) == 0 })
	slices.SortStableFunc(m.dims, func(x, y moveDim) int { return cmp.Or(cmp.Compare(y.to, x.to), cmp.Compare(y.from, x.from)) })
	for k := len(m.dims) - 2; k >= 0; k-- {
		x, y := &m.dims[k], m.dims[k+1]
		free := len(x.inside)+len(x.outside)+len(y.inside)+len(y.outside) == 0
		if free && x.to == y.to*y.size && x.from == y.from*y.size {
			x.size, x.to, x.from = x.size*y.size, y.to, y.from
			m.dims = slices.Delete(m.dims, k+1, k+2)
		}
	}
	m.cols = slices.IndexFunc(m.dims, func(d moveDim) bool { return d.to == 1 })
	m.rows = slices.IndexFunc(m.dims, func(d moveDim) bool { return d.from == 1 })
	m.next = len(m.dims) - 1
	for m.next >= 0 && m.next == m.cols {
		m.next--
	}
}

// turns says whether neighbours in the source are not neighbours in the
// destination.
func (m *move) turns() bool { return m.cols >= 0 && m.rows >= 0 && m.rows != m.cols }

// toOutput lowers what a root stores as moves, if it is that.
func (b *block) toOutput(k int, r symtile.Root) bool {
	if b.l.moves.picks[k] {
		b.pick(r)
		return true
	}
	route := b.l.moves.roots[k]
	if route == nil {
		return false
	}
	op := b.l.p.Ops[r.Op]
	box, axis, _ := op.Tile.Boxes()
	base := b.l.p.Space.Ring.Const(0)
	for k, d := range box {
		base = base.Add(d.Offset.Scale(op.Instr.Shape.Strides()[axis[k]]))
	}
	output := r.Output
	b.move(route, &instr{name: fmt.Sprintf("move to output %d", output)}, move{
		width: op.Instr.Shape.DType.Size(), to: b.place(base), stream: b.l.streams(op.Instr.Shape),
		dst: func(w *worker) []byte { return w.out[output].Data },
	}, r.Once)
	return true
}

// toScratch lowers an op that arranges elements of arrays anew.
func (b *block) toScratch(n int) {
	op := b.l.p.Ops[n]
	v := b.l.result(n)
	b.move(b.l.moves.ops[n], &instr{name: string(op.Code) + " from memory", outs: []*value{v}}, move{width: op.Instr.Shape.DType.Size(), to: -1, dst: v.data}, nil)
}

// A boxed is a part of a move: sizes along its dimensions, and where it begins.
type boxed struct {
	size     [maxRank]int64
	dst, src unsafe.Pointer
}

// span is the range of indices that are there.
func (d *moveDim) span(w *worker) (lo, hi int64) {
	hi = d.size
	for k := range d.inside {
		l, h := d.inside[k].span(w)
		lo, hi = max(lo, l), min(hi, h)
	}
	return lo, hi
}

// partial says whether some elements are not there.
func (m *move) partial(w *worker) bool {
	for k := range m.dims {
		if lo, hi := m.dims[k].span(w); lo > 0 || hi < m.dims[k].size {
			return true
		}
	}
	return false
}

// run moves all elements that are there.
func (m *move) run(w *worker) {
	var r region
	for k := range m.dims {
		if r.lo[k], r.hi[k] = m.dims[k].span(w); r.lo[k] >= r.hi[k] {
			return
		}
	}
	if !m.split {
		m.part(w, &r)
		return
	}
	for k := range m.dims { // the parts below and above along each dimension in turn
		d := &m.dims[k]
		if len(d.outside) == 0 {
			continue
		}
		lo, hi := d.outside[0].span(w)
		lo, hi = max(lo, r.lo[k]), min(hi, r.hi[k])
		if lo >= hi {
			m.part(w, &r)
			return
		}
		below, above := r, r
		below.hi[k], above.lo[k] = lo, hi
		m.part(w, &below)
		m.part(w, &above)
		r.lo[k], r.hi[k] = lo, hi
	}
}

// part moves the elements of a region.
func (m *move) part(w *worker, r *region) {
	to, from := int64(0), m.start
	if m.to >= 0 {
		to = w.places[m.to]
	}
	if m.from >= 0 {
		from += w.places[m.from]
	}
	var x boxed
	lastTo, firstFrom, lastFrom := int64(0), int64(0), int64(0)
	for k := range m.dims {
		d := &m.dims[k]
		if x.size[k] = r.hi[k] - r.lo[k]; x.size[k] <= 0 {
			return
		}
		to, from = to+r.lo[k]*d.to, from+r.lo[k]*d.from
		lastTo += (x.size[k] - 1) * d.to
		firstFrom, lastFrom = firstFrom+min(0, (x.size[k]-1)*d.from), lastFrom+max(0, (x.size[k]-1)*d.from)
	}
	n := m.width
	dst, src := m.dst(w)[to*n:(to+lastTo+1)*n], m.src(w)[(from+firstFrom)*n:(from+lastFrom+1)*n]
	x.dst, x.src = unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Add(unsafe.Pointer(unsafe.SliceData(src)), -firstFrom*n)
	m.boxed(w, &x)
}

// boxed chooses how.
func (m *move) boxed(w *worker, x *boxed) {
	switch {
	case m.cols < 0:
		m.each(x, -1, -1)
	case m.dims[m.cols].from == 1:
		m.copies(w, x)
	case m.dims[m.cols].from == 0 && x.size[m.cols]*m.width >= shortestFill:
		m.fills(w, x)
	case m.turns() && m.turned(w, x):
	default:
		m.each(x, m.cols, -1)
	}
}

// outer calls visit where every combination of indices begins, but for those of
// two dimensions.
func (m *move) outer(x *boxed, but, and int, visit func(dst, src unsafe.Pointer)) {
	var index [maxRank]int64
	dst, src := x.dst, x.src
	for {
		visit(dst, src)
		k := len(m.dims) - 1
		for ; k >= 0; k-- {
			if k == but || k == and {
				continue
			}
			to, from := m.dims[k].to*m.width, m.dims[k].from*m.width
			if index[k]++; index[k] < x.size[k] {
				dst, src = unsafe.Add(dst, to), unsafe.Add(src, from)
				break
			}
			dst, src = unsafe.Add(dst, -(index[k]-1)*to), unsafe.Add(src, -(index[k]-1)*from)
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// copies copies rows.
func (m *move) copies(w *worker, x *boxed) {
	rows := rowsArgs{n: 1, bytes: x.size[m.cols] * m.width}
	if m.next >= 0 {
		rows.n, rows.toStep, rows.fromStep = x.size[m.next], m.dims[m.next].to*m.width, m.dims[m.next].from*m.width
	}
	if rows.ahead = copyAhead; rows.bytes < copyAhead {
		rows.ahead = copyAhead / rows.bytes * rows.fromStep
	}
	m.outer(x, m.cols, m.next, func(dst, src unsafe.Pointer) {
		rows.to, rows.from = dst, src
		w.copyRows(rows, m.stream)
	})
}

const (
	copyAhead    = 1024 // bytes that are fetched before they are copied
	shortestFill = 64   // bytes
)

// fills writes rows of copies of one element.
func (m *move) fills(w *worker, x *boxed) {
	bytes := x.size[m.cols] * m.width
	m.outer(x, m.cols, -1, func(dst, src unsafe.Pointer) {
		pattern := w.pattern[:min(int64(len(w.pattern)), bytes)]
		n := copy(pattern, unsafe.Slice((*byte)(src), m.width))
		for ; n < len(pattern); n *= 2 {
			copy(pattern[n:], pattern[:n])
		}
		rows := rowsArgs{n: bytes / int64(len(pattern)), bytes: int64(len(pattern)), from: unsafe.Pointer(&pattern[0]), to: dst, toStep: int64(len(pattern))}
		w.copyRows(rows, m.stream)
		if left := bytes % int64(len(pattern)); left > 0 {
			rows.to, rows.n, rows.bytes = unsafe.Add(dst, bytes-left), 1, left
			w.copyRows(rows, m.stream)
		}
	})
}

// each moves element by element, along a dimension inside of the others.
func (m *move) each(x *boxed, along, but int) {
	n, to, from := int64(1), int64(0), int64(0)
	if along >= 0 {
		n, to, from = x.size[along], m.dims[along].to, m.dims[along].from
	}
	m.outer(x, along, but, func(dst, src unsafe.Pointer) {
		m.strides(dst, src, n, to, from)
	})
}

// strides moves n elements that are apart.
func (m *move) strides(dst, src unsafe.Pointer, n, to, from int64) {
	switch m.width {
	case 1:
		stride[uint8](dst, src, n, to, from)
	case 2:
		stride[uint16](dst, src, n, to, from)
	case 4:
		stride[uint32](dst, src, n, to, from)
	case 8:
		stride[uint64](dst, src, n, to, from)
	}
}

// stride moves n elements that are apart.
func stride[T uint8 | uint16 | uint32 | uint64](dst, src unsafe.Pointer, n, to, from int64) {
	size := int64(unsafe.Sizeof(T(0)))
	for k := range n {
		*(*T)(unsafe.Add(dst, k*to*size)) = *(*T)(unsafe.Add(src, k*from*size))
	}
}
