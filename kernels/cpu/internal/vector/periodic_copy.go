package vector

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// A CopyPart is a copy of a box of elements from an array to a part of a destination.
type CopyPart struct {
	Start int64     // The place of its first element in the destination, in elements.
	Dims  []CopyDim // Those with the largest strides in the destination first.
}

// A CopyDim is a dimension of a part, with its strides in elements. Of a masked one there
// may be fewer elements than its size when the copy runs.
type CopyDim struct {
	Size, To, From int64
	Masked         bool
}

// A PeriodicCopy is a copy of parts whose destination is periodic along a dimension: the
// elements of all parts that lie inside of it are a period. For example, arrays a and b of
// n elements each that are interleaved are two parts with a dimension of size n and stride 2
// in the destination; a period is an element of each.
type PeriodicCopy struct {
	Code Periodic    // What is emitted.
	F    *amd64.Func // Its function, which the caller sets.
	dims []outerDim  // The dimensions around a period, that of periods last.
	rows int         // The dimension of rows, or −1.
}

// An outerDim is a dimension around a period, with its strides in bytes.
type outerDim struct {
	size, to int64
	from     [MaxStreams]int64
}

const (
	maxPeriodBytes = 512     // Bytes of a period: rows of a concatenate that are longer are copied as rows.
	enoughBytes    = 512     // Bytes of a row of periods that are worth a row.
	maxDims        = 16      // Dimensions around a period.
	nearBytes      = 8 << 10 // Bytes of lines that rows read together, a quarter of the smallest first cache.
)

// NewPeriodicCopy finds the period of a copy of parts, nil where there is none.
func NewPeriodicCopy(width int64, parts []CopyPart) *PeriodicCopy {
	if len(parts) > MaxStreams {
		return nil
	}
	// A period is as long as the stride of the dimension along which there are several. The
	// shortest is tried first, whose code is the shortest.
	var strides []int64
	for _, d := range parts[0].Dims {
		strides = append(strides, d.To)
	}
	slices.Sort(strides)
	var best *PeriodicCopy
	for _, period := range slices.Compact(strides) {
		if period < 1 || period*width > maxPeriodBytes {
			continue
		}
		p := periodicOf(width, parts, period)
		if p == nil || best != nil && p.RowBytes() <= best.RowBytes() {
			continue
		}
		if best = p; p.RowBytes() >= enoughBytes {
			break
		}
	}
	return best
}

// RowBytes is the bytes of a row of periods.
func (p *PeriodicCopy) RowBytes() int64 {
	return p.dims[len(p.dims)-1].size * p.Code.Bytes()
}

// periodicOf is the copy with a period of so many elements, nil where parts do not fill it
// or lie otherwise around it, or a row is no iteration.
func periodicOf(width int64, parts []CopyPart, period int64) *PeriodicCopy {
	p := &PeriodicCopy{}
	p.Code.Width = width
	p.Code.Period = make([]PeriodElement, period)
	filled := make([]bool, period)
	free := true
	for stream, part := range parts {
		n := slices.IndexFunc(part.Dims, func(d CopyDim) bool {
			return d.To < period
		})
		if n < 0 {
			n = len(part.Dims)
		}
		if !p.addAround(stream, part.Dims[:n], width) ||
			!p.fill(int64(stream), part.Start, part.Dims[n:], filled) {
			return nil
		}
		free = free && !slices.ContainsFunc(part.Dims[:n], isMasked)
	}
	if slices.Contains(filled, false) {
		return nil
	}
	if len(parts) > 1 {
		if !free {
			return nil
		}
		p.merge()
	}
	// Periods have to follow each other, and to be as many as one iteration makes.
	loop := p.dims[len(p.dims)-1]
	if loop.to != p.Code.Bytes() {
		return nil
	}
	p.Code.Steps = loop.from[:len(parts)]
	if loop.size < p.Code.Turn() {
		return nil
	}
	p.rows = p.rowDim()
	return p
}

// isMasked reports whether a dimension may have fewer elements than its size.
func isMasked(d CopyDim) bool { return d.Masked }

// addAround checks and adds the dimensions around a period of a stream, which are those of the streams
// before; it reports false where they are others.
func (p *PeriodicCopy) addAround(stream int, dims []CopyDim, width int64) bool {
	for k, d := range dims {
		if stream == 0 {
			p.dims = append(p.dims, outerDim{
				size: d.Size,
				to:   d.To * width,
			})
		}
		if k >= len(p.dims) ||
			p.dims[k].size != d.Size ||
			p.dims[k].to != d.To*width {
			return false
		}
		p.dims[k].from[stream] = d.From * width
	}
	n := len(dims)
	return n > 0 && n <= maxDims && n == len(p.dims)
}

// fill says which elements of the period are those of a part, in dimensions inside; it
// reports false where some are masked, outside of the period or there already.
func (p *PeriodicCopy) fill(stream, to int64, dims []CopyDim, filled []bool) bool {
	type element struct{ to, from int64 }
	all := []element{{to, 0}}
	most := int64(len(filled))
	for _, d := range dims {
		if d.Masked || d.Size*int64(len(all)) > most {
			return false
		}
		// Each step along the dimension repeats the elements of those before.
		first := all
		for i := int64(1); i < d.Size; i++ {
			for _, x := range first {
				all = append(all, element{
					x.to + i*d.To,
					x.from + i*d.From,
				})
			}
		}
	}
	for _, x := range all {
		if x.to < 0 || x.to >= most || filled[x.to] {
			return false
		}
		filled[x.to] = true
		p.Code.Period[x.to] = PeriodElement{
			Stream: stream,
			At:     x.from * p.Code.Width,
		}
	}
	return true
}

// merge joins dimensions that are one in the destination and in all streams, so that rows
// of periods are as long as can be. Those of a single part have been merged before, where
// masks allow it, and keep their numbers, which the sizes of a run go by.
func (p *PeriodicCopy) merge() {
	for k := len(p.dims) - 2; k >= 0; k-- {
		x, y := p.dims[k], p.dims[k+1]
		one := x.to == y.to*y.size
		for n := range x.from {
			one = one && x.from[n] == y.from[n]*y.size
		}
		if one {
			y.size *= x.size
			p.dims[k] = y
			p.dims = slices.Delete(p.dims, k+1, k+2)
		}
	}
}

// rowDim is the dimension around periods along which streams move least, so that rows find
// the lines of those before; −1 where there is none.
func (p *PeriodicCopy) rowDim() int {
	rows := -1
	for k := range len(p.dims) - 1 {
		if rows < 0 ||
			p.dims[k].reach() < p.dims[rows].reach() {
			rows = k
		}
	}
	return rows
}

// reach is how far the first stream moves in a step.
func (d *outerDim) reach() int64 { return max(d.from[0], -d.from[0]) }

// Sizes are those of the dimensions around periods, if none is masked.
func (p *PeriodicCopy) Sizes() (sizes [maxDims]int64) {
	for k, d := range p.dims {
		sizes[k] = d.size
	}
	return sizes
}

// A PeriodicRun is where a copy takes place.
type PeriodicRun struct {
	Args  *PeriodicArgs
	Sizes [maxDims]int64 // Of the dimensions around periods.
	To    unsafe.Pointer
	From  [MaxStreams]unsafe.Pointer
	// Where pieces are gathered that are copied past the caches then, of PeriodicScratch
	// bytes or more; nil where stores are ordinary.
	Scratch []byte
	Copy    *CopyArgs
}

// PeriodicScratch is the bytes of scratch for copies past the caches: a quarter of the
// smallest first cache.
const PeriodicScratch = 8 << 10

// Run copies, or reports false where there are fewer periods than an iteration makes, which
// masks can leave at the end of an array. The caller has checked that all places are inside
// of the arrays.
func (p *PeriodicCopy) Run(r *PeriodicRun) bool {
	loop := len(p.dims) - 1
	if r.Sizes[loop] < p.Code.Turn() {
		return false
	}
	rows := PeriodicRows{N: 1, To: r.To, From: r.From}
	if p.rows >= 0 {
		rows.N = r.Sizes[p.rows]
		rows.ToStep = p.dims[p.rows].to
		rows.FromStep = p.dims[p.rows].from
	}
	// The dimensions around rows are walked as an odometer.
	var index [maxDims]int64
	for {
		p.copyRows(r, rows)
		k := loop - 1
		for ; k >= 0; k-- {
			if k == p.rows {
				continue
			}
			if index[k]++; index[k] < r.Sizes[k] {
				rows.move(&p.dims[k], 1)
				break
			}
			rows.move(&p.dims[k], 1-r.Sizes[k])
			index[k] = 0
		}
		if k < 0 {
			return true
		}
	}
}

// move moves rows by steps of a dimension.
func (rows *PeriodicRows) move(d *outerDim, steps int64) {
	rows.To = unsafe.Add(rows.To, steps*d.to)
	for k := range rows.From {
		if rows.From[k] != nil {
			rows.From[k] = unsafe.Add(
				rows.From[k], steps*d.from[k],
			)
		}
	}
}

// copyRows copies rows of periods, some at a time: as many as read the same lines of
// streams soon enough, or as a call may take.
func (p *PeriodicCopy) copyRows(r *PeriodicRun, rows PeriodicRows) {
	last := len(p.dims) - 1
	loop := &p.dims[last]
	turn := p.Code.Turn()
	all := r.Sizes[last]
	few := p.few(rows.N, r.Scratch != nil)
	for at := int64(0); at < all; at += few {
		n := min(few, all-at)
		if n < turn {
			at, n = all-turn, turn
		}
		some := rows
		some.move(loop, at)
		some.Periods = n
		if r.Scratch != nil {
			p.copyPast(r, some)
		} else {
			p.copySome(r, some)
		}
	}
}

// few is the periods of so many rows that are copied at a time, whole iterations, and at
// least one.
func (p *PeriodicCopy) few(rows int64, past bool) int64 {
	// Rows that are next to each other in the source, as the channels of an image are, take
	// their elements from the same lines, which should still be there for the last row.
	bytes := int64(maxCopyBytes)
	if past {
		bytes = PeriodicScratch
	}
	n := bytes / p.Code.Bytes()
	loop := &p.dims[len(p.dims)-1]
	line := min(LineBytes, loop.reach())
	if rows > 1 && p.dims[p.rows].reach() < line {
		n = min(n, nearBytes/line)
	}
	turn := p.Code.Turn()
	return max(1, n/turn) * turn
}

// copySome copies some periods of rows, of so many rows in a call as it may take: the
// garbage collector waits for calls to return.
func (p *PeriodicCopy) copySome(r *PeriodicRun, rows PeriodicRows) {
	row := rows.Periods * p.Code.Bytes()
	most := max(1, maxCopyBytes/row)
	for left := rows.N; left > 0; left -= most {
		rows.N = min(left, most)
		r.Args.Run(p.F, &p.Code, &rows)
		if left > most {
			rows.move(&p.dims[p.rows], rows.N)
		}
	}
}

// copyPast copies some periods of rows past the caches: they are gathered in scratch, from
// where whole lines are written, however periods lie to lines.
func (p *PeriodicCopy) copyPast(r *PeriodicRun, rows PeriodicRows) {
	bytes := rows.Periods * p.Code.Bytes()
	one := rows
	one.N = 1
	for k := range rows.N {
		to := one.To
		one.To = unsafe.Pointer(&r.Scratch[0])
		r.Args.Run(p.F, &p.Code, &one)
		r.Copy.CopyRows(CopyArgs{
			N:     1,
			Bytes: bytes,
			From:  one.To,
			To:    to,
		}, true)
		if one.To = to; k+1 < rows.N {
			one.move(&p.dims[p.rows], 1)
		}
	}
}
