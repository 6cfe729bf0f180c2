package cpu

// A gather copies elements of one tile to places of another: element index of
// the result is element start + Σ index·stride of the source.
type gather struct {
	sizes, strides []int64
	start          int64
}

func run[T number](g *gather, dst, src []T) {
	rank := len(g.sizes)
	if rank == 0 {
		dst[0] = src[g.start]
		return
	}
	var index [maxRank]int64
	inner := rank - 1
	n, stride, at, out := g.sizes[inner], g.strides[inner], g.start, int64(0)
	for {
		row := dst[out : out+n]
		switch stride {
		case 1:
			copy(row, src[at:at+n])
		case 0:
			v := src[at]
			for k := range row {
				row[k] = v
			}
		default:
			p := at
			for k := range row {
				row[k] = src[p]
				p += stride
			}
		}
		out += n
		d := inner - 1
		for ; d >= 0; d-- {
			index[d]++
			at += g.strides[d]
			if index[d] < g.sizes[d] {
				break
			}
			at -= index[d] * g.strides[d]
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// rowMajor is the strides of dense scratch.
func rowMajor(sizes []int64) []int64 {
	strides := make([]int64, len(sizes))
	step := int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		strides[d] = step
		step *= sizes[d]
	}
	return strides
}

func product(v []int64) int64 {
	n := int64(1)
	for _, x := range v {
		n *= x
	}
	return n
}

// A placement says where the unmasked elements of a source tile stand in a
// result tile: element i of dimension d is element first[d] + i·every[d].
type placement struct {
	source box
	first  func(w *worker, d int) int64
	every  []int64
	sizes  []int64 // of the result
}

// place copies the unmasked part of src into dst.
func place[T number](w *worker, p *placement, dst, src []T) {
	var r region
	p.source.region(w, &r)
	if r.empty {
		return
	}
	rank := len(p.sizes)
	if rank == 0 {
		dst[0] = src[0]
		return
	}
	var first, index [maxRank]int64
	for d := range rank {
		first[d], index[d] = p.first(w, d), r.lo[d]
	}
	inner := rank - 1
	for {
		var from, to int64
		for d := range inner {
			from = (from + index[d]) * p.source.sizes[d+1]
			to = (to + first[d] + index[d]*p.every[d]) * p.sizes[d+1]
		}
		for k := r.lo[inner]; k < r.hi[inner]; k++ {
			dst[to+first[inner]+k*p.every[inner]] = src[from+k]
		}
		d := inner - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] < r.hi[d] {
				break
			}
			index[d] = r.lo[d]
		}
		if d < 0 {
			return
		}
	}
}
