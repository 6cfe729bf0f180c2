package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/vector"
)

// Transposes: blocks that fit the registers, rows of the source becoming columns
// of the destination. They are gathered into a block of scratch of which whole
// lines are then written, where the destination is written past the caches;
// elsewhere they go where they belong at once. The sizes of the blocks of scratch
// are those that were fastest for 4096 by 4096 elements of four bytes, of 16 to
// 1024 each way: a block in half of the second cache, rows of eight lines.

const (
	blockRows  = 256                          // elements of a source row in a block of scratch
	blockCols  = 512                          // bytes of a row of it, without a line of padding
	blockStep  = blockCols + vector.LineBytes // which keeps rows apart in the first cache
	blockBytes = blockRows * blockStep        //
	directRows = 64                           // elements of a source row at a time without scratch
)

// transposed transposes, if there is a machine function that can: blocks at the
// ends overlap those before.
func (m *tileCopy) transposed(w *worker, x *copyBox) bool {
	f := &vector.CopyRoutinesLoaded().Transposes[m.width]
	if !vector.CopyRoutinesLoaded().Ok ||
		x.size[m.cols] < f.Cols ||
		x.size[m.rows] < f.Rows {
		return false
	}
	m.eachOuter(x, m.cols, m.rows, func(dst, src unsafe.Pointer) {
		if m.block != nil &&
			x.size[m.cols]*m.width >= 2*vector.LineBytes {
			m.transposeNonTemporal(
				w, f, x.size[m.rows],
				x.size[m.cols], dst, src,
			)
			return
		}
		for i := int64(0); i < x.size[m.rows]; i += directRows {
			i = max(0, min(i, x.size[m.rows]-f.Rows))
			m.transposeBlock(
				w, f,
				min(directRows, x.size[m.rows]-i),
				x.size[m.cols],
				unsafe.Add(dst, i*m.dims[m.rows].to*m.width),
				m.dims[m.rows].to*m.width,
				unsafe.Add(src, i*m.width),
			)
		}
	})
	return true
}

// transposeNonTemporal transposes rows by cols elements by way of scratch.
func (m *tileCopy) transposeNonTemporal(
	w *worker, f *vector.TransposeRoutine,
	rows, cols int64, dst, src unsafe.Pointer,
) {
	block := w.addresses[m.block.id]
	toStep := m.dims[m.rows].to * m.width
	fromStep := m.dims[m.cols].from * m.width
	wide := blockCols / m.width
	for j := int64(0); j < cols; j += wide {
		j = max(0, min(j, cols-f.Cols))
		c := min(wide, cols-j)
		for i := int64(0); i < rows; i += blockRows {
			i = max(0, min(i, rows-f.Rows))
			r := min(blockRows, rows-i)
			m.transposeBlock(
				w, f, r, c, block, blockStep,
				unsafe.Add(src, j*fromStep+i*m.width),
			)
			out := vector.CopyArgs{
				N:        r,
				Bytes:    c * m.width,
				From:     block,
				To:       unsafe.Add(dst, i*toStep+j*m.width),
				FromStep: blockStep,
				ToStep:   toStep,
			}
			out.Fetch, out.FetchStep, out.FetchRows = m.nextBlock(
				src, i+r, rows, j, cols, wide,
			)
			w.copyArgs.CopyRows(out, true)
		}
	}
}

// nextBlock is what is fetched of the block after the one that ends at row i, of
// which the source has cols rows of rows elements: 0 after the last.
func (m *tileCopy) nextBlock(
	src unsafe.Pointer, i, rows, j, cols, wide int64,
) (at uintptr, step, pairs int64) {
	if i >= rows {
		if i, j = 0, j+wide; j >= cols {
			return 0, 0, 0
		}
	}
	step = m.dims[m.cols].from * m.width
	return uintptr(src) +
		uintptr(j*step+i*m.width), step, vector.LineBytes / m.width
}

// transposeBlock transposes rows by cols elements into a block of the destination.
func (m *tileCopy) transposeBlock(
	w *worker, f *vector.TransposeRoutine, rows, cols int64,
	dst unsafe.Pointer, toStep int64, src unsafe.Pointer,
) {
	fromStep := m.dims[m.cols].from * m.width
	for j := int64(0); j < cols; j += f.Cols {
		j = min(j, cols-f.Cols)
		w.transposeArgs = vector.TransposeArgs{
			N:        rows / f.Rows,
			From:     unsafe.Add(src, j*fromStep),
			To:       unsafe.Add(dst, j*m.width),
			FromStep: fromStep,
			ToStep:   toStep,
		}
		f.F.Call(unsafe.Pointer(&w.transposeArgs))
		if i := rows - f.Rows; rows%f.Rows > 0 {
			w.transposeArgs = vector.TransposeArgs{
				N:        1,
				From:     unsafe.Add(src, j*fromStep+i*m.width),
				To:       unsafe.Add(dst, j*m.width+i*toStep),
				FromStep: fromStep,
				ToStep:   toStep,
			}
			f.F.Call(unsafe.Pointer(&w.transposeArgs))
		}
	}
}
