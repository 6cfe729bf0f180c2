package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A copy moves elements between two strided layouts in the best of five ways, by how
// its dimensions lie in the two arrays:
//
//   - rows, where elements that follow each other do so in both arrays;
//   - fills, where all elements along a row of the destination are one element;
//   - transposes, where neighbours in the source are rows of the destination, in
//     blocks that fit the vector registers;
//   - periods, where the destination is made of the same places of streams again and
//     again, as where rows are reversed or interleaved, see vector.PeriodicCopy;
//   - single elements, for everything else.
//
// Outputs that do not fit the caches are written with non-temporal stores, which
// spare the reading of lines that are overwritten.

// A tileCopy copies elements from an array or a tile in scratch to another
// without interpreting them. It is made once per view of a composition, and its
// run evaluates masks and offsets for each tile.
type tileCopy struct {
	// The dimensions, those with the largest strides in the destination first.
	dims  []copyDim
	width int64 // The bytes of an element.
	// Only elements outside of some dimension's outside are copied, see
	// composedView.
	complement  bool
	nonTemporal bool // Stores are non-temporal.
	// How far ahead the source is prefetched, in bytes.
	ahead int64
	// Stores of a transpose past the caches are spread, see vector.BandArgs.
	spread bool
	// How far ahead rows of a transpose past the caches are fetched, in bytes; 0: see
	// vector.BandArgs.
	bandFetch int64
	// At how many rows in turn long ones are read, see vector.CopyArgs.
	places int64
	// The slots of the places of element 0, or −1 for place 0.
	to, from int
	// The numbers of the first elements in the two arrays, from these places on.
	toStart, start int64
	// The dimension along which elements follow each other in the destination,
	// or −1.
	cols int
	// The dimension along which elements follow each other in the source, or
	// −1.
	rows int
	// Another dimension, along which rows of the destination or of the source lie.
	outerRow int
	dst, src func(w *worker) []byte // The bytes of the two arrays.
	// The scratch of a transpose that writes whole lines, or nil.
	block *value
	// The copy by periods, or nil, and its scratch where stores are non-temporal.
	periodic *vector.PeriodicCopy
	periods  *value
	// Some elements of the tile are in no other copy of it: masks that are the same in
	// every tile program left out some.
	clipped bool
}

// A copyDim is a dimension of a copy, with its strides in elements.
type copyDim struct {
	size, to, from int64 // The size and the two strides.
	// The masks that valid indices satisfy, and the one that they do not, in units of some
	// elements: a dimension that masks divide is merged with whole ones inside of it.
	inside, outside []dimMask
	unit            int64
}

// lowerCopies lowers a composition of views to one instruction, for the
// programs that own the result.
func (b *block) lowerCopies(r *composition, in *instr, m tileCopy, once []int) {
	var all []*tileCopy
	m.ahead = max(prefetchBytes, b.l.spec.fetch)
	m.spread = b.l.spec.spread
	m.places = b.l.spec.copyPlaces
	if m.width == followedWidth {
		m.bandFetch = b.l.spec.bandFetch
	}
	for _, t := range r.views {
		if x := b.lowerCopy(t, in, m); x != nil {
			all = append(all, x)
		}
	}
	scratch := m.to < 0
	joined := b.l.joinCopies(all, in)
	in.run = func(w *worker) {
		for _, d := range once {
			if w.tids[d] != 0 {
				return
			}
		}
		switch {
		case joined != nil && joined.run(w):
		case len(all) > 0:
			if scratch && (len(all) > 1 || all[0].partial(w)) {
				clear(m.dst(w))
			}
			for _, x := range all {
				x.run(w)
			}
		}
		if m.nonTemporal {
			vector.StoreFence(&w.copyArgs)
		}
	}
	b.add(in)
}

// lowerCopy lowers one view of a composition, nil where it has no elements.
func (b *block) lowerCopy(t composedView, in *instr, m tileCopy) *tileCopy {
	if t.complement &&
		!slices.ContainsFunc(t.dims, func(d composedDim) bool {
			return len(d.outside) > 0
		}) {
		return nil
	}
	source := b.l.p.Ops[t.source]
	m.from, m.start = -1, 0
	if source.Code == hlo.OpParameter {
		base, _ := t.toMemory(b.l)
		m.from = b.slot(base)
		param := source.Instr.Attrs.Param
		m.src = func(w *worker) []byte {
			return w.in[param].Data
		}
	} else {
		v := b.l.results[t.source][0]
		// What is read of it are elements of the result, which are valid.
		box := newTileBox(b, source.Tile)
		if v.where == inSplat {
			t.broadcastFirst()
		}
		if m.width != v.elementBytes() {
			v = b.narrowed(v, source.Instr.Shape.DType)
			v.needed = box
		} else if b.l.onlyCopied(t.source) {
			v.needed = box
		}
		in.tileArgs = append(in.tileArgs, v)
		m.src = v.data
	}
	m.toStart, m.start = t.toStart, t.start
	m.complement = t.complement
	for _, d := range t.dims {
		x := copyDim{size: d.size, to: d.to, from: d.at, unit: 1}
		if lo, hi, ok := d.fixedRange(); ok && !t.complement {
			if lo >= hi {
				return nil
			}
			m.clipped = m.clipped || hi-lo < d.size
			m.toStart += lo * d.to
			m.start += lo * d.at
			x.size, d.inside = hi-lo, nil
		}
		for _, tile := range d.inside {
			x.inside = append(x.inside, newDimMask(b, tile))
		}
		for _, tile := range d.outside {
			x.outside = append(x.outside, newDimMask(b, tile))
		}
		m.dims = append(m.dims, x)
	}
	m.normalize()
	m.block = nil
	b.l.findPeriods(&m, in)
	if m.isTranspose() {
		m.block = b.l.value(
			"block", portable.Float32, noTile,
			vector.BandBytes(m.width)/4,
		)
		in.outs = append(in.outs, m.block)
	}
	return &m
}

// onlyCopied reports whether an op is read by copies only.
func (l *lowering) onlyCopied(n int) bool {
	reader := l.onlyReader(n)
	if reader < 0 {
		return false
	}
	copied := l.copies.ops[reader] != nil
	return copied || !l.copies.lowered[reader]
}

// narrowed is a value with its elements as arrays of a type have them, of a splat one.
func (b *block) narrowed(v *value, d hlo.DType) *value {
	name := v.name + " as " + d.String()
	n := b.l.value(name, v.class, v.tile, v.n)
	n.short = d.Size()
	switch v.class {
	case portable.Float32:
		narrow[float32](b, n, v, d)
	case portable.Float64:
		narrow[float64](b, n, v, d)
	case portable.Int32:
		narrow[int32](b, n, v, d)
	case portable.Int64:
		narrow[int64](b, n, v, d)
	}
	return n
}

// narrow adds the instruction that makes a value of shorter elements. Copies move these without
// knowing what they are, so that the rest of the result, which is in arrays, is not widened to be
// narrowed again.
func narrow[T portable.Number](
	b *block, to, from *value, d hlo.DType,
) {
	write := writer[T](d)
	in := &instr{name: "narrow", outs: []*value{to}}
	if from.where == inSplat {
		to.n = 1
		in.tileArgs = []*value{from}
		in.run = func(w *worker) {
			element := whole[T](w, from)[:1]
			write(element, to.data(w), 0, 1)
		}
	} else {
		in.n = from.n
		in.stripArgs = []*value{from}
		in.strip = func(w *worker, lo, hi int64) {
			x := part[T](w, from, lo, hi)
			write(x, to.data(w), lo, 1)
		}
	}
	b.add(in)
}

// data is the bytes of a value.
func (v *value) data(w *worker) []byte {
	return unsafe.Slice(
		(*byte)(w.addresses[v.id]),
		v.bytes(),
	)
}

// normalize orders and merges dimensions, and finds those along which elements
// follow each other.
func (m *tileCopy) normalize() {
	m.dims = slices.DeleteFunc(m.dims, func(d copyDim) bool {
		return d.size == 1 &&
			len(d.inside)+len(d.outside) == 0
	})
	slices.SortStableFunc(m.dims, func(x, y copyDim) int {
		return cmp.Or(
			cmp.Compare(y.to, x.to),
			cmp.Compare(y.from, x.from),
		)
	})
	for k := len(m.dims) - 2; k >= 0; k-- {
		x := &m.dims[k]
		y := m.dims[k+1]
		free := len(y.inside)+len(y.outside) == 0
		if free && x.to == y.to*y.size &&
			x.from == y.from*y.size {
			x.size = x.size * y.size
			x.unit = x.unit * y.size
			x.to = y.to
			x.from = y.from
			m.dims = slices.Delete(m.dims, k+1, k+2)
		}
	}
	m.cols = slices.IndexFunc(m.dims, func(d copyDim) bool {
		return d.to == 1
	})
	m.rows = slices.IndexFunc(m.dims, func(d copyDim) bool {
		return d.from == 1
	})
	m.outerRow = len(m.dims) - 1
	for m.outerRow >= 0 && m.outerRow == m.cols {
		m.outerRow--
	}
	if k := m.sourceRun(); k >= 0 {
		m.outerRow = k
	}
}

// sourceRun is the dimension along which rows of elements follow each other in the source,
// where long enough pieces of it should be read one after another and their rows be written
// apart, past the caches; else −1. Rows of 256 bytes, 16 in a run, that are written 256 KiB
// apart take half of the time of those that are read 4 KiB apart and written in order; four
// in a run as long or longer (f32[8,1024,16,64], dimensions 1 and 2 swapped, on a Zen 5).
func (m *tileCopy) sourceRun() int {
	if !m.nonTemporal || m.cols < 0 {
		return -1
	}
	row := m.dims[m.cols]
	if row.from != 1 || row.size*m.width < minApartBytes {
		return -1
	}
	return slices.IndexFunc(m.dims, func(d copyDim) bool {
		return d.from == row.size && d.size*row.size*m.width >= minRunBytes
	})
}

const (
	minApartBytes = 256  // Bytes of rows that may be written apart.
	minRunBytes   = 2048 // Bytes of rows that are worth to be read in order.
)

// isTranspose reports whether neighbours in the source are not neighbours in
// the destination.
func (m *tileCopy) isTranspose() bool {
	return m.cols >= 0 && m.rows >= 0 &&
		m.rows != m.cols
}

// copyToOutput lowers what a root stores as copies. It reports false where it
// is not that.
func (b *block) copyToOutput(k int, r symtile.Root) bool {
	if b.l.copies.gathers[k] {
		b.lowerGatherToOutput(r)
		return true
	}
	views := b.l.copies.roots[k]
	if views == nil {
		return false
	}
	op := b.l.p.Ops[r.Op]
	box, axis, _ := op.Tile.Boxes()
	base := b.l.p.Space.Ring.Const(0)
	for k, d := range box {
		base = base.Add(d.Offset.Scale(
			op.Instr.Shape.Strides()[axis[k]],
		))
	}
	output := r.Output
	views = b.storeParts(r, views, base)
	if len(views.views) == 0 {
		return true
	}
	b.lowerCopies(views, &instr{name: fmt.Sprintf("move to output %d", output)}, tileCopy{
		width:       op.Instr.Shape.DType.Size(),
		to:          b.slot(base),
		nonTemporal: b.l.storesNonTemporal(op.Instr.Shape),
		dst:         func(w *worker) []byte { return w.out[output].Data },
	}, r.Once)
	return true
}

// copyToScratch lowers an op that rearranges elements of arrays.
func (b *block) copyToScratch(n int) {
	op := b.l.p.Ops[n]
	v := b.l.result(n)
	if d := op.Instr.Shape.DType; !portable.IsNative(d) {
		v.short = d.Size()
	}
	b.lowerCopies(
		b.l.copies.ops[n],
		&instr{name: string(op.Code) + " from memory", outs: []*value{v}},
		tileCopy{
			width: op.Instr.Shape.DType.Size(),
			to:    -1,
			dst:   v.data,
		},
		nil,
	)
}

// A copyBox is a part of a copy: sizes along its dimensions, and where it
// begins.
type copyBox struct {
	size     [maxRank]int64
	dst, src unsafe.Pointer
}

// valid is the range of valid indices.
func (d *copyDim) valid(w *worker) (lo, hi int64) {
	hi = d.size
	for k := range d.inside {
		l, h := d.inside[k].valid(w)
		lo = max(lo, l*d.unit)
		hi = min(hi, h*d.unit)
	}
	return lo, hi
}

// hidden is the range of indices that the mask of a complement leaves out.
func (d *copyDim) hidden(w *worker) (lo, hi int64) {
	lo, hi = d.outside[0].valid(w)
	return lo * d.unit, hi * d.unit
}

// partial reports whether some elements are not valid.
func (m *tileCopy) partial(w *worker) bool {
	if m.clipped {
		return true
	}
	for k := range m.dims {
		lo, hi := m.dims[k].valid(w)
		if lo > 0 || hi < m.dims[k].size {
			return true
		}
	}
	return false
}

// run copies all valid elements. Those of a complement are the parts below and
// above the outside range along each dimension in turn.
func (m *tileCopy) run(w *worker) {
	var r region
	for k := range m.dims {
		r.lo[k], r.hi[k] = m.dims[k].valid(w)
		if r.lo[k] >= r.hi[k] {
			return
		}
	}
	if !m.complement {
		m.copyRegion(w, &r)
		return
	}
	// The complement of a box is disjoint boxes: what is below and above it along the
	// first dimension, then within the box's range of that dimension what is below
	// and above it along the next, and so on. An empty box has everything outside.
	for k := range m.dims {
		d := &m.dims[k]
		if len(d.outside) == 0 {
			continue
		}
		lo, hi := d.hidden(w)
		lo = max(lo, r.lo[k])
		hi = min(hi, r.hi[k])
		if lo >= hi {
			m.copyRegion(w, &r)
			return
		}
		below, above := r, r
		below.hi[k], above.lo[k] = lo, hi
		m.copyRegion(w, &below)
		m.copyRegion(w, &above)
		r.lo[k], r.hi[k] = lo, hi
	}
}

// copyRegion copies the elements of a region.
func (m *tileCopy) copyRegion(w *worker, r *region) {
	x, ok := m.place(w, r)
	if ok {
		m.copyBox(w, &x)
	}
}

// place finds where the elements of a region are, and reports whether there are any.
func (m *tileCopy) place(w *worker, r *region) (x copyBox, ok bool) {
	to, from := m.toStart, m.start
	if m.to >= 0 {
		to += w.slots[m.to]
	}
	if m.from >= 0 {
		from += w.slots[m.from]
	}
	// The slices from the first to the last element that is touched check the bounds
	// of both arrays once. Strides of the source may be negative, those of the
	// destination are not.
	lastTo := int64(0)
	firstFrom := int64(0)
	lastFrom := int64(0)
	for k := range m.dims {
		d := &m.dims[k]
		x.size[k] = r.hi[k] - r.lo[k]
		if x.size[k] <= 0 {
			return x, false
		}
		to = to + r.lo[k]*d.to
		from = from + r.lo[k]*d.from
		lastTo += (x.size[k] - 1) * d.to
		firstFrom = firstFrom + min(0, (x.size[k]-1)*d.from)
		lastFrom = lastFrom + max(0, (x.size[k]-1)*d.from)
	}
	n := m.width
	dst, src := m.dst(w)[to*n:(to+lastTo+1)*n],
		m.src(w)[(from+firstFrom)*n:(from+lastFrom+1)*n]
	x.dst, x.src = unsafe.Pointer(unsafe.SliceData(dst)),
		unsafe.Add(
			unsafe.Pointer(unsafe.SliceData(src)), -firstFrom*n,
		)
	return x, true
}

// copyBox chooses how to copy a box: rows, fills, transposes, periods, or element by
// element.
func (m *tileCopy) copyBox(w *worker, x *copyBox) {
	switch {
	case m.cols < 0:
		m.copyElements(x, len(m.dims)-1, -1)
	case m.dims[m.cols].from == 1 && m.periodic != nil &&
		m.byPeriods(w, x):
	case m.dims[m.cols].from == 1:
		m.copyRuns(w, x)
	case m.dims[m.cols].from == 0 &&
		x.size[m.cols]*m.width >= minFillBytes:
		m.fillRuns(w, x)
	case m.isTranspose() && m.transposed(w, x):
	case m.periodic != nil && m.byPeriods(w, x):
	default:
		m.copyElements(x, m.cols, -1)
	}
}

// findPeriods finds the periods of a copy that is neither of long rows nor of fills, and
// emits their code. A transpose may have some, too, which are used where masks leave it
// fewer rows or columns than a block has.
func (l *lowering) findPeriods(m *tileCopy, in *instr) {
	m.periodic = nil
	if m.cols < 0 {
		return
	}
	row := m.dims[m.cols]
	long := row.size*m.width >= minFillBytes
	if long && (row.from == 0 || row.from == 1) {
		return
	}
	m.periodic = l.periodic(
		m.width,
		[]vector.CopyPart{m.part(0)},
	)
	m.periods = l.periodScratch(
		m.periodic, m.nonTemporal, in,
	)
}

// part is what a copy is for those by periods.
func (m *tileCopy) part(start int64) vector.CopyPart {
	part := vector.CopyPart{Start: start}
	for _, d := range m.dims {
		part.Dims = append(part.Dims, vector.CopyDim{
			Size:   d.size,
			To:     d.to,
			From:   d.from,
			Masked: len(d.inside)+len(d.outside) > 0,
		})
	}
	return part
}

// periodic is a copy of parts by periods with its code, nil where there is none.
func (l *lowering) periodic(
	width int64, parts []vector.CopyPart,
) *vector.PeriodicCopy {
	if !l.jit {
		return nil
	}
	p := vector.NewPeriodicCopy(width, parts)
	if p == nil {
		return nil
	}
	a := l.assembler()
	if !p.Code.Emit(a) {
		return nil
	}
	a.Emit(amd64.RET)
	f, ok := l.addRoutine(a)
	if !ok {
		return nil
	}
	p.F = f
	return p
}

// periodScratch is the scratch of a copy by periods of long rows past the caches.
func (l *lowering) periodScratch(
	p *vector.PeriodicCopy, past bool, in *instr,
) *value {
	if p == nil || !past ||
		p.RowBytes() < minApartBytes {
		return nil
	}
	v := l.value(
		"periods", portable.Float32, noTile,
		vector.PeriodicScratch/4,
	)
	in.outs = append(in.outs, v)
	return v
}

// byPeriods copies a box by periods, or reports false where it has too few of them.
func (m *tileCopy) byPeriods(w *worker, x *copyBox) bool {
	r := &w.periodicRun
	*r = vector.PeriodicRun{
		Args:  &w.periodicArgs,
		Copy:  &w.copyArgs,
		Sizes: x.size,
		To:    x.dst,
	}
	r.From[0] = x.src
	if m.periods != nil {
		r.Scratch = m.periods.data(w)
	}
	return m.periodic.Run(r)
}

// A joinedCopy is several copies to one destination that are made together, since each
// writes elements between those of the others.
type joinedCopy struct {
	copies   []*tileCopy
	periodic *vector.PeriodicCopy
	periods  *value
	sizes    [maxRank]int64
}

// joinCopies joins copies of which none depends on the tile program, nil where they are
// not periodic together. Two columns that are stacked along a new last dimension are so: on
// their own they would write every second element each.
func (l *lowering) joinCopies(all []*tileCopy, in *instr) *joinedCopy {
	n := len(all)
	if n < 2 || n > vector.MaxStreams {
		return nil
	}
	var parts []vector.CopyPart
	for _, m := range all {
		if m.complement {
			return nil
		}
		parts = append(parts, m.part(m.toStart))
	}
	j := &joinedCopy{
		copies:   all,
		periodic: l.periodic(all[0].width, parts),
	}
	if j.periodic == nil {
		return nil
	}
	j.sizes = j.periodic.Sizes()
	j.periods = l.periodScratch(
		j.periodic, all[0].nonTemporal, in,
	)
	return j
}

// run copies all elements of all parts, or reports false where there are too few: then each
// copy is made on its own.
func (j *joinedCopy) run(w *worker) bool {
	r := &w.periodicRun
	*r = vector.PeriodicRun{
		Args:  &w.periodicArgs,
		Copy:  &w.copyArgs,
		Sizes: j.sizes,
	}
	for k, m := range j.copies {
		var all region
		for n, d := range m.dims {
			all.hi[n] = d.size
		}
		x, ok := m.place(w, &all)
		if !ok {
			return false
		}
		if k == 0 {
			r.To = unsafe.Add(
				x.dst, -m.toStart*m.width,
			)
		}
		r.From[k] = x.src
	}
	if j.periods != nil {
		r.Scratch = j.periods.data(w)
	}
	return j.periodic.Run(r)
}

// eachOuter calls visit with where each combination of indices begins, but for
// those of two dimensions.
func (m *tileCopy) eachOuter(
	x *copyBox, but, and int,
	visit func(dst, src unsafe.Pointer),
) {
	var index [maxRank]int64
	dst, src := x.dst, x.src
	for {
		visit(dst, src)
		k := len(m.dims) - 1
		for ; k >= 0; k-- {
			if k == but || k == and {
				continue
			}
			to := m.dims[k].to * m.width
			from := m.dims[k].from * m.width
			if index[k]++; index[k] < x.size[k] {
				dst = unsafe.Add(dst, to)
				src = unsafe.Add(src, from)
				break
			}
			dst = unsafe.Add(dst, -(index[k]-1)*to)
			src = unsafe.Add(src, -(index[k]-1)*from)
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// copyRuns copies rows of elements that follow each other in both arrays.
func (m *tileCopy) copyRuns(w *worker, x *copyBox) {
	rows := vector.CopyArgs{
		N:      1,
		Bytes:  x.size[m.cols] * m.width,
		Places: m.places,
	}
	if m.outerRow >= 0 {
		rows.N = x.size[m.outerRow]
		rows.ToStep = m.dims[m.outerRow].to * m.width
		rows.FromStep = m.dims[m.outerRow].from * m.width
	}
	if rows.Ahead = m.ahead; rows.Bytes <= m.ahead {
		rows.Ahead = m.ahead / rows.Bytes * rows.FromStep
	}
	m.eachOuter(x, m.cols, m.outerRow, func(dst, src unsafe.Pointer) {
		rows.To, rows.From = dst, src
		w.copyArgs.CopyRows(rows, m.nonTemporal)
	})
}

const (
	// prefetchBytes is how far ahead of the copy the source is prefetched at least.
	// Within long rows it is a distance in the row, for short rows a number of
	// rows of about as many bytes.
	prefetchBytes = 1024
	// minFillBytes is the length from which rows of one element are filled from
	// a pattern.
	minFillBytes = 64
)

// fillRuns writes rows of copies of one element. A pattern of copies is made
// once per row and copied as often as it fits, or once for all rows of a dimension along
// which the element is the same: the edges of a padded matrix are two short rows a row of it.
func (m *tileCopy) fillRuns(w *worker, x *copyBox) {
	bytes := x.size[m.cols] * m.width
	if w.fillPattern == nil {
		w.fillPattern = new([4096]byte)
	}
	pattern := w.fillPattern[:min(int64(len(w.fillPattern)), bytes)]
	same := -1
	if int64(len(pattern)) == bytes {
		same = slices.IndexFunc(
			m.dims,
			func(d copyDim) bool { return d.from == 0 && d.to != 1 },
		)
	}
	m.eachOuter(x, m.cols, same, func(dst, src unsafe.Pointer) {
		n := copy(
			pattern,
			unsafe.Slice((*byte)(src), m.width),
		)
		for ; n < len(pattern); n *= 2 {
			copy(pattern[n:], pattern[:n])
		}
		rows := vector.CopyArgs{
			N:      bytes / int64(len(pattern)),
			Bytes:  int64(len(pattern)),
			From:   unsafe.Pointer(&pattern[0]),
			To:     dst,
			ToStep: int64(len(pattern)),
		}
		if same >= 0 {
			rows.N, rows.ToStep = x.size[same], m.dims[same].to*m.width
		}
		w.copyArgs.CopyRows(rows, m.nonTemporal)
		if left := bytes % int64(len(pattern)); left > 0 {
			rows.To = unsafe.Add(dst, bytes-left)
			rows.N = 1
			rows.Bytes = left
			w.copyArgs.CopyRows(rows, m.nonTemporal)
		}
	})
}

// copyElements copies element by element, along a dimension inside of the
// others.
func (m *tileCopy) copyElements(x *copyBox, along, but int) {
	n := int64(1)
	to := int64(0)
	from := int64(0)
	if along >= 0 {
		n, to, from = x.size[along],
			m.dims[along].to,
			m.dims[along].from
	}
	m.eachOuter(x, along, but, func(dst, src unsafe.Pointer) {
		m.copyStrided(dst, src, n, to, from)
	})
}

// copyStrided copies n elements that are strides apart.
func (m *tileCopy) copyStrided(dst, src unsafe.Pointer, n, to, from int64) {
	switch m.width {
	case 1:
		copyStridedAs[uint8](dst, src, n, to, from)
	case 2:
		copyStridedAs[uint16](dst, src, n, to, from)
	case 4:
		copyStridedAs[uint32](dst, src, n, to, from)
	case 8:
		copyStridedAs[uint64](dst, src, n, to, from)
	}
}

// copyStridedAs is copyStrided for one width.
func copyStridedAs[T uint8 | uint16 | uint32 | uint64](
	dst, src unsafe.Pointer, n, to, from int64,
) {
	size := int64(unsafe.Sizeof(T(0)))
	for k := range n {
		*(*T)(unsafe.Add(dst, k*
			to*size)) = *(*T)(unsafe.Add(src, k*from*size))
	}
}

// directRows is the elements of a source row at a time without scratch.
const directRows = 64

// transposed transposes the box in blocks that fit the registers, if there is a
// routine for elements of the width, and reports whether it did. Blocks at the
// ends overlap those before.
//
// Rows of the source become columns of the destination. Where stores are
// non-temporal, or blocks would write lines in parts, whole lines go by way of
// scratch, see vector.BandArgs. Elsewhere blocks are written at once.
func (m *tileCopy) transposed(w *worker, x *copyBox) bool {
	f := &vector.LoadedCopyRoutines().Transposes[m.width]
	if !vector.LoadedCopyRoutines().Ok ||
		x.size[m.cols] < f.Cols ||
		x.size[m.rows] < f.Rows {
		return false
	}
	t := transposition{
		tileCopy: m,
		f:        f,
		rows:     x.size[m.rows],
		cols:     x.size[m.cols],
		toStep:   m.dims[m.rows].to * m.width,
		fromStep: m.dims[m.cols].from * m.width,
	}
	if p := t.panelsOf(x); p.pieces > 1 {
		p.transpose(w, x)
		return true
	}
	m.eachOuter(x, m.cols, m.rows, func(dst, src unsafe.Pointer) {
		t.dst, t.src = dst, src
		if m.block != nil && (m.nonTemporal || t.linesAtOnce()) {
			t.streamed(w)
		} else {
			t.direct(w, 0, t.rows, 0, t.cols)
		}
	})
	return true
}

// A transposition is rows elements of each of cols rows of a source, which become
// the columns of rows rows of a destination. Steps are the distances of rows, in bytes.
type transposition struct {
	*tileCopy
	f          *vector.TransposeRoutine
	rows, cols int64
	dst, src   unsafe.Pointer
	toStep     int64
	fromStep   int64
}

// Columns of a few elements that another dimension continues in the destination, as of an array
// of five dimensions in another order, are put side by side in scratch: its lines are not written
// in parts, which the first cache does not keep where rows crowd few of its sets.
// [16,32,16,8,16] in the order 4, 2, 0, 3, 1 has columns of 32 elements, eight of them in a row of
// a panel, and rows 64 Ki elements apart: it takes .28 of the time of blocks that are written at
// once for bytes, .34 for bf16 and .44 for f32 (Zen 4, two threads, quiet).
//
// Of each place along the dimensions around, and of rows that scratch has room for, it does
//
//	for each piece: transpose columns of the source to their place in the rows of the panel
//	for each row of the panel: copy it to the destination, where it is one run
//
// Rows of a panel are at most eight lines, so that it stays in the first cache with what is read.
type panels struct {
	*transposition
	along  int   // The dimension that goes on where the columns end.
	pieces int64 // Columns that are put side by side, at most.
	each   int64 // Rows that scratch has room for.
}

// panelsOf is how a box is transposed by panels; with less than two pieces it is not.
func (t *transposition) panelsOf(
	x *copyBox,
) (p panels) {
	const panelBytes = 512 // of a row
	bytes := t.cols * t.width
	if t.block == nil || 2*bytes > panelBytes ||
		!t.nonTemporal && !t.crowds() {
		return p
	}
	p = panels{transposition: t}
	p.along = slices.IndexFunc(t.dims, func(d copyDim) bool { return d.to == t.cols })
	if p.along < 0 ||
		p.along == t.rowsDim() {
		return p
	}
	p.pieces = min(
		panelBytes/bytes, x.size[p.along],
	)
	room := vector.BandBytes(t.width) / (p.pieces * bytes)
	p.each = room / t.f.Rows * t.f.Rows
	if p.each == 0 {
		p.pieces = 0
	}
	return p
}

// rowsDim is the dimension of rows.
func (t *transposition) rowsDim() int { return t.tileCopy.rows }

// transpose transposes a box.
func (p *panels) transpose(
	w *worker, x *copyBox,
) {
	t := p.transposition
	step := t.dims[p.along].from * t.width
	outer := *x
	outer.size[p.along] = 1
	t.eachOuter(&outer, t.tileCopy.cols, t.rowsDim(), func(
		dst, src unsafe.Pointer,
	) {
		for k := int64(0); k < x.size[p.along]; k += p.pieces {
			t.dst = unsafe.Add(
				dst, k*t.cols*t.width,
			)
			t.src = unsafe.Add(src, k*step)
			p.panel(
				w, min(p.pieces, x.size[p.along]-k), step,
			)
		}
	})
}

// panel transposes some pieces, whose sources are a step apart, and copies the rows. Fewer rows
// than a block has are transposed with some before them, which are copied twice.
func (p *panels) panel(
	w *worker, pieces, step int64,
) {
	t := p.transposition
	scratch := w.addresses[t.block.id]
	bytes := pieces * t.cols * t.width
	for row := int64(0); row < t.rows; row += p.each {
		n := min(p.each, t.rows-row)
		if n < t.f.Rows { // the last rows overlap those before
			row, n = t.rows-t.f.Rows, t.f.Rows
		}
		for k := range pieces {
			t.transposeBlock(
				w, t.f, n, t.cols,
				unsafe.Add(
					scratch, k*t.cols*t.width,
				), bytes,
				unsafe.Add(
					t.from(row, 0), k*step,
				),
			)
		}
		w.copyArgs.CopyRows(vector.CopyArgs{
			N:        n,
			Bytes:    bytes,
			From:     scratch,
			FromStep: bytes,
			To:       t.to(row, 0),
			ToStep:   t.toStep,
		}, t.nonTemporal)
	}
}

// crowds reports whether rows of the destination share few sets of a first cache: 64 rows need
// more than 8 ways of 64 sets.
func (t *transposition) crowds() bool {
	const crowdBytes = 1 << 10
	return t.toStep&-t.toStep >= crowdBytes
}

// linesAtOnce reports whether whole lines are written by way of scratch to the caches:
// where source and destination do not fit the smallest first cache together, and either rows
// of the destination crowd few of its sets, so that a line is not there any more when its next
// part comes, or blocks are not of f32. On a Zen 4, two threads, quiet, blocks that are written
// at once take 2.3 to 4.4 times as long where rows lie 1 KiB or a greater power of two apart
// (1024² and 4096×256, f32 and bf16), 1.4 for f64 1000² and 1.3 for bf16 1023×1025, but 0.8
// for f32 1023×1025 and 4096×192.
func (t *transposition) linesAtOnce() bool {
	const firstCache = 32 << 10
	large := 2*t.rows*t.cols*t.width > firstCache
	return large && (t.crowds() || t.width != 4)
}

// to is the address of an element of the destination, from of that of the source.
func (t *transposition) to(row, col int64) unsafe.Pointer {
	return unsafe.Add(t.dst, row*t.toStep+col*t.width)
}

func (t *transposition) from(row, col int64) unsafe.Pointer {
	return unsafe.Add(t.src, col*t.fromStep+row*t.width)
}

// direct transposes what begins at a row and a column, and more where that is less than
// the registers take.
func (t *transposition) direct(w *worker, row, rows, col, cols int64) {
	row = min(row, t.rows-t.f.Rows)
	col = min(col, t.cols-t.f.Cols)
	cols = max(cols, t.f.Cols)
	end := row + max(rows, t.f.Rows)
	for ; row < end; row += directRows {
		row = min(row, end-t.f.Rows)
		t.transposeBlock(
			w, t.f,
			min(directRows, end-row), cols,
			t.to(row, col), t.toStep,
			t.from(row, col),
		)
	}
}

const (
	// pieceBytes is the bytes of a row of the destination that are written at once. On a
	// Zen 5 pieces of 64, 128, 256 and 512 bytes take 7, 3.6, 1.8 and 1 times the time of
	// linear stores, but as many more rows of the source are then read in turn.
	pieceBytes = 256
	// partBytes is the bytes of a row of the source that are read before the next row.
	// Rows are read line by line at half the rate at which they are read one by one.
	partBytes = 2048
	// wayBytes is the distance at which lines share a set of the second-level cache,
	// and fewWays half of the ways it has on most processors.
	wayBytes, fewWays = 64 << 10, 8
	// followedBytes is partBytes where rows are fetched ahead as they are read: a band is fewer
	// than 50 µs then.
	followedBytes = 16 << 10
	// followedWidth is the bytes of the elements for which that gains.
	followedWidth = 4
)

// piece is the bytes of a row of the destination that are written at once: half as many
// where the source's rows, of which two bands are in the second-level cache, would need
// most ways of few sets. For 4096 by 4096 f32 on a Zen 5 the half takes 0.8 of the time
// on one thread, for bf16 0.7; 4096 by 2048 f64, whose rows need half of the ways, 1.05.
func (t *transposition) piece() int64 {
	if t.follows() {
		return pieceBytes
	}
	apart := t.fromStep & -t.fromStep
	sets := wayBytes / max(1, min(apart, wayBytes))
	if pieceBytes/t.width > fewWays*sets {
		return pieceBytes / 2
	}
	return pieceBytes
}

// follows reports whether rows of a band are read a line of each in turn, and fetched ahead.
// Rows of the destination that begin within lines would have a line of columns read again for each
// piece, which takes longer than that gains.
func (t *transposition) follows() bool {
	return t.bandFetch > 0 && t.nonTemporal && !t.beginsWithin()
}

// beginsWithin reports whether rows of the destination begin within lines.
func (t *transposition) beginsWithin() bool {
	return (int64(uintptr(t.dst))|t.toStep)%vector.LineBytes != 0
}

// part is the bytes of a row of the source that a band has.
func (t *transposition) part() int64 {
	if t.follows() {
		return followedBytes
	}
	return partBytes
}

// streamed transposes whole lines of the destination by way of scratch, and the rest
// directly. Where rows of the destination do not begin with a line, pieces of them begin
// up to a line before the column where they do in others. The pieces of a part of the rows
// follow each other, so that what one piece and the next read is in the second-level cache:
// parts of a piece in turn take 1.05 of the time on one thread (f32 4096², 3000×2000, bf16
// 4096² on a Zen 4).
func (t *transposition) streamed(w *worker) {
	line := vector.LineBytes / t.width
	before := int64(0)
	if t.beginsWithin() {
		before = line
	}
	rows := t.rows / line * line
	end := before + (t.cols-before)/line*line
	if rows == 0 || t.cols < before+line {
		t.direct(w, 0, t.rows, 0, t.cols)
		return
	}
	if before > 0 {
		t.direct(w, 0, rows, 0, before)
	}
	piece := t.piece() / t.width
	part := t.part() / t.width
	for row := int64(0); row < rows; row += part {
		for col := before; col < end; col += piece {
			t.band(w, row, rows, col, min(piece, end-col), end, before)
		}
	}
	if end -= before; end < t.cols {
		t.direct(w, 0, rows, end, t.cols-end)
	}
	if rows < t.rows {
		t.direct(w, rows, t.rows-rows, 0, t.cols)
	}
}

// band transposes the part at a row, of rows, of piece rows of the source to pieces of the
// destination's, from a column on; before is how many columns are transposed before it, end
// where the columns of bands end. It has the next band prefetched.
func (t *transposition) band(w *worker, row, rows, col, piece, end, before int64) {
	line := vector.LineBytes / t.width
	part := min(
		t.part()/t.width,
		rows-row,
	)
	nextRow, nextCol := row, col+piece
	if nextCol >= end {
		nextCol = before
		if row+part < rows {
			nextRow = row + part
		}
	}
	next := min(
		t.part()/t.width,
		rows-nextRow,
	)
	ahead := int64(0)
	if t.follows() {
		ahead = t.bandFetch / vector.LineBytes
	}
	w.bandArgs.Transpose(t.f, t.width, vector.BandArgs{
		From:       t.from(row, col-before),
		To:         t.to(row, col),
		Scratch:    w.addresses[t.block.id],
		FromStep:   t.fromStep,
		ToStep:     t.toStep,
		Lines:      part / line,
		Piece:      piece / line,
		Before:     before > 0,
		Cached:     !t.nonTemporal,
		Spread:     t.spread,
		Ahead:      ahead,
		Fetch:      uintptr(t.from(nextRow, nextCol)),
		FetchLines: next / line,
	})
}

// transposeBlock transposes rows by cols elements into a block of the
// destination.
func (m *tileCopy) transposeBlock(
	w *worker, f *vector.TransposeRoutine, rows, cols int64,
	dst unsafe.Pointer, toStep int64, src unsafe.Pointer,
) {
	fromStep := m.dims[m.cols].from * m.width
	args := &w.transposeArgs
	args.FromStep, args.ToStep = fromStep, toStep
	for j := int64(0); j < cols; j += f.Cols {
		j = min(j, cols-f.Cols)
		args.N = rows / f.Rows
		args.From = unsafe.Add(src, j*fromStep)
		args.To = unsafe.Add(dst, j*m.width)
		f.F.Call(unsafe.Pointer(args))
		if i := rows - f.Rows; rows%f.Rows > 0 {
			args.N = 1
			args.From = unsafe.Add(
				src, j*fromStep+i*m.width,
			)
			args.To = unsafe.Add(
				dst, j*m.width+i*toStep,
			)
			f.F.Call(unsafe.Pointer(args))
		}
	}
}
