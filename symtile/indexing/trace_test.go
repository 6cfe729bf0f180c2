package indexing

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A trace is what HLO's definition says is read, by plain loops and without
// maps: pairs of a result element and an operand element, by operand. Elements
// of collectives have the position of their replica for a last index.
type trace struct {
	in    *hlo.Instr
	data  map[*hlo.Instr][]int64 // values of integer operands, row-major
	pairs []map[[2]string]bool   // by operand; nil where the definition is not traced
}

// element adds that out is made from element of operand k.
func (t *trace) element(k int, out, element []int64) {
	t.pairs[k][[2]string{pointKey(out), pointKey(element)}] = true
}

func (t *trace) from(k int) []int64 { return t.in.Operands[k].Shape.Dims }

func (t *trace) to() []int64 { return arrayOf(t.in.Shape, 0).Dims }

// read is the value of an element of operand k.
func (t *trace) read(k int, at []int64) int64 {
	o := t.in.Operands[k]
	return t.data[o][rowMajorOf(at, o.Shape.Dims)]
}

func rowMajorOf(at, dims []int64) (n int64) {
	for k, d := range dims {
		n = n*d + at[k]
	}
	return n
}

// eachIndex calls f for every index of an array, which f may not keep.
func eachIndex(dims []int64, f func(at []int64)) {
	at := make([]int64, len(dims))
	var walk func(k int)
	walk = func(k int) {
		if k == len(dims) {
			f(slices.Clone(at))
			return
		}
		for at[k] = 0; at[k] < dims[k]; at[k]++ {
			walk(k + 1)
		}
	}
	walk(0)
}

// newTrace traces output 0 of in; ok is false for operations it does not know.
func newTrace(in *hlo.Instr, data map[*hlo.Instr][]int64) (*trace, bool) {
	t := &trace{in: in, data: data}
	for range in.Operands {
		t.pairs = append(t.pairs, map[[2]string]bool{})
	}
	f, ok := traces[in.Op]
	if !ok && in.Op.Elementwise() {
		f, ok = (*trace).elementwise, true
	}
	if ok {
		f(t)
	}
	return t, ok
}

var traces = map[hlo.Opcode]func(*trace){
	hlo.OpMap: (*trace).elementwise, hlo.OpBitcastConvert: (*trace).bitcastConvert,
	hlo.OpBroadcast: (*trace).broadcast,
	hlo.OpTranspose: (*trace).transpose, hlo.OpReshape: (*trace).reshape,
	hlo.OpBitcast: (*trace).bitcast, hlo.OpSlice: (*trace).slice,
	hlo.OpReverse: (*trace).reverse, hlo.OpPad: (*trace).pad,
	hlo.OpConcatenate: (*trace).concatenate, hlo.OpReduce: (*trace).reduce,
	hlo.OpReduceWindow: (*trace).reduceWindow, hlo.OpConvolution: (*trace).convolution,
	hlo.OpDot:       (*trace).dot,
	hlo.OpScaledDot: (*trace).scaledDot, hlo.OpDynamicSlice: (*trace).dynamicSlice,
	hlo.OpDynamicUpdateSlice: (*trace).dynamicUpdateSlice, hlo.OpGather: (*trace).gather,
	hlo.OpScatter: (*trace).scatter,
	hlo.OpScan:    (*trace).scan, hlo.OpAllGather: (*trace).allGather,
	hlo.OpAllReduce: (*trace).allReduce, hlo.OpReduceScatter: (*trace).reduceScatter,
	hlo.OpAllToAll: (*trace).allToAll, hlo.OpCollectivePermute: (*trace).permute,
	hlo.OpCollectiveBroadcast: (*trace).broadcastReplica,
}

func (t *trace) elementwise() {
	eachIndex(t.to(), func(out []int64) {
		for k := range t.pairs {
			if len(t.from(k)) == 0 {
				t.element(k, out, nil)
			} else {
				t.element(k, out, out)
			}
		}
	})
}

func (t *trace) bitcastConvert() {
	wide, narrow := t.to(), t.from(0)
	swap := len(wide) > len(narrow)
	if swap {
		wide, narrow = narrow, wide
	}
	eachIndex(narrow, func(at []int64) {
		if swap {
			t.element(0, at, at[:len(wide)])
		} else {
			t.element(0, at[:len(wide)], at)
		}
	})
}

func (t *trace) broadcast() {
	eachIndex(t.to(), func(out []int64) {
		var at []int64
		for _, d := range t.in.Attrs.Dimensions {
			at = append(at, out[d])
		}
		t.element(0, out, at)
	})
}

func (t *trace) transpose() {
	eachIndex(t.from(0), func(at []int64) {
		out := make([]int64, len(at))
		for k, d := range t.in.Attrs.Dimensions {
			out[k] = at[d]
		}
		t.element(0, out, at)
	})
}

// byNumber pairs elements that f gives the same number.
func (t *trace) byNumber(ofOut, ofIn func(at []int64) []int64) {
	where := map[int64][][]int64{}
	eachIndex(t.from(0), func(at []int64) {
		for _, n := range ofIn(at) {
			where[n] = append(where[n], at)
		}
	})
	eachIndex(t.to(), func(out []int64) {
		for _, n := range ofOut(out) {
			for _, at := range where[n] {
				t.element(0, out, at)
			}
		}
	})
}

func (t *trace) reshape() {
	t.byNumber(
		func(at []int64) []int64 { return []int64{rowMajorOf(at, t.to())} },
		func(at []int64) []int64 { return []int64{rowMajorOf(at, t.from(0))} },
	)
}

// bitcast pairs elements that have a byte in common.
func (t *trace) bitcast() {
	bytes := func(s hlo.Shape) func(at []int64) []int64 {
		return func(at []int64) (all []int64) {
			place, step := int64(0), s.DType.Size()
			for _, d := range s.MinorToMajor() {
				place += at[d] * step
				step *= s.Dims[d]
			}
			for b := range s.DType.Size() {
				all = append(all, place+b)
			}
			return all
		}
	}
	t.byNumber(bytes(t.in.Shape), bytes(t.in.Operands[0].Shape))
}

// cross calls f for every choice of one entry of each list.
func cross(lists [][]int64, f func(choice []int64)) {
	sizes := make([]int64, len(lists))
	for k, l := range lists {
		sizes[k] = int64(len(l))
	}
	eachIndex(sizes, func(at []int64) {
		for k := range at {
			at[k] = lists[k][at[k]]
		}
		f(at)
	})
}

func (t *trace) slice() {
	kept := make([][]int64, len(t.to()))
	for k, s := range t.in.Attrs.Slice {
		for i := s.Start; i < s.Limit; i += s.Stride {
			kept[k] = append(kept[k], i)
		}
	}
	eachIndex(t.to(), func(out []int64) {
		at := make([]int64, len(out))
		for k, i := range out {
			at[k] = kept[k][i]
		}
		t.element(0, out, at)
	})
}

func (t *trace) reverse() {
	eachIndex(t.to(), func(out []int64) {
		at := slices.Clone(out)
		for _, d := range t.in.Attrs.Dimensions {
			at[d] = t.to()[d] - 1 - at[d]
		}
		t.element(0, out, at)
	})
}

// line is a dimension after base dilation and padding: the operand's index at
// each place, −1 for what is put between and around.
func line(n, low, high, step int64) []int64 {
	var all []int64
	for i := range n {
		if i > 0 {
			for range step - 1 {
				all = append(all, -1)
			}
		}
		all = append(all, i)
	}
	all = padded(padded(all, max(high, 0), false), max(low, 0), true)
	return padded(padded(all, min(high, 0), false), min(low, 0), true)
}

func padded(all []int64, n int64, front bool) []int64 {
	for ; n > 0; n-- {
		if front {
			all = slices.Insert(all, 0, -1)
		} else {
			all = append(all, -1)
		}
	}
	for ; n < 0 && len(all) > 0; n++ {
		if front {
			all = all[1:]
		} else {
			all = all[:len(all)-1]
		}
	}
	return all
}

func (t *trace) pad() {
	lines := make([][]int64, len(t.to()))
	for k, p := range t.in.Attrs.Padding {
		lines[k] = line(
			t.from(0)[k], p.Low, p.High, p.Interior+1,
		)
	}
	eachIndex(t.to(), func(out []int64) {
		at, inside := make([]int64, len(out)), true
		for k, i := range out {
			at[k] = lines[k][i]
			inside = inside && at[k] >= 0
		}
		if inside {
			t.element(0, out, at)
		} else {
			t.element(1, out, nil)
		}
	})
}

func (t *trace) concatenate() {
	along, place := t.in.Attrs.Dimensions[0], int64(0)
	for k := range t.pairs {
		for i := range t.from(k)[along] {
			eachIndex(t.from(k), func(at []int64) {
				if at[along] == i {
					out := slices.Clone(at)
					out[along] = place
					t.element(k, out, at)
				}
			})
			place++
		}
	}
}

func (t *trace) reduce() {
	n := len(t.pairs) / 2
	eachIndex(t.from(0), func(at []int64) {
		out := []int64{}
		for d, i := range at {
			if !slices.Contains(t.in.Attrs.Dimensions, int64(d)) {
				out = append(out, i)
			}
		}
		for k := range n {
			t.element(k, out, at)
		}
	})
	eachIndex(t.to(), func(out []int64) {
		for k := n; k < 2*n; k++ {
			t.element(k, out, nil)
		}
	})
}

// under lists, for a place of the result, what the window is over along a
// dimension: index of the operand and place in the window.
func underWindow(w hlo.WindowDim, n, out int64) (indices, place []int64) {
	places := line(n, w.PadLow, w.PadHigh, w.BaseDilation)
	for at := range w.Size {
		if i := places[out*w.Stride+at*w.Dilation]; i >= 0 {
			indices = append(indices, i)
			if w.Reversed {
				place = append(place, w.Size-1-at)
			} else {
				place = append(place, at)
			}
		}
	}
	return indices, place
}

func (t *trace) reduceWindow() {
	n := len(t.pairs) / 2
	eachIndex(t.to(), func(out []int64) {
		lists := make([][]int64, len(out))
		for k, w := range t.in.Attrs.Window {
			lists[k], _ = underWindow(w, t.from(0)[k], out[k])
		}
		cross(lists, func(at []int64) {
			for k := range n {
				t.element(k, out, at)
			}
		})
		for k := n; k < 2*n; k++ {
			t.element(k, out, nil)
		}
	})
}

func (t *trace) convolution() {
	c, window := t.in.Attrs.Conv, t.in.Attrs.Window
	feature, batch := t.in.Attrs.Groups()
	x, kernel := t.from(0), t.from(1)
	inPerGroup, outPerGroup := x[c.InFeature]/feature, kernel[c.KernelOut]/(feature*batch)
	eachIndex(t.to(), func(out []int64) {
		lists := make([][]int64, len(window))
		places := make([][]int64, len(window))
		count := make([]int64, len(window))
		for k, w := range window {
			lists[k], places[k] = underWindow(
				w, x[c.InSpatial[k]], out[c.OutSpatial[k]],
			)
			count[k] = int64(len(lists[k]))
		}
		eachIndex(count, func(which []int64) {
			for f := range inPerGroup {
				in, k := make([]int64, len(x)), make([]int64, len(kernel))
				for d, n := range which {
					in[c.InSpatial[d]], k[c.KernelSpatial[d]] = lists[d][n],
						places[d][n]
				}
				group := out[c.OutFeature] / outPerGroup
				in[c.InBatch], in[c.InFeature] = out[c.OutBatch], f
				if feature > 1 {
					in[c.InFeature] += group * inPerGroup
				}
				if batch > 1 {
					in[c.InBatch] += group * (x[c.InBatch] / batch)
				}
				k[c.KernelIn], k[c.KernelOut] = f, out[c.OutFeature]
				t.element(0, out, in)
				t.element(1, out, k)
			}
		})
	})
}

// products calls f for every product of a dot: both indices and the result's.
func (t *trace) products(f func(out, left, right []int64)) {
	a := &t.in.Attrs
	eachIndex(t.from(0), func(l []int64) {
		eachIndex(t.from(1), func(r []int64) {
			var out []int64
			for k, d := range a.LHSBatch {
				if l[d] != r[a.RHSBatch[k]] {
					return
				}
				out = append(out, l[d])
			}
			for k, d := range a.LHSContract {
				if l[d] != r[a.RHSContract[k]] {
					return
				}
			}
			out = append(out, freeOf(l, a.LHSBatch, a.LHSContract)...)
			f(append(out, freeOf(r, a.RHSBatch, a.RHSContract)...), l, r)
		})
	})
}

func freeOf(at, batch, contract []int64) (out []int64) {
	for d, i := range at {
		if !slices.Contains(batch, int64(d)) && !slices.Contains(contract, int64(d)) {
			out = append(out, i)
		}
	}
	return out
}

func (t *trace) dot() {
	t.products(func(out, l, r []int64) {
		t.element(0, out, l)
		t.element(1, out, r)
	})
}

func (t *trace) scaledDot() {
	scale := func(k int, at []int64) (s []int64) {
		for d, n := range t.from(k + 2) {
			s = append(s, at[d]/(t.from(k)[d]/n))
		}
		return s
	}
	t.products(func(out, l, r []int64) {
		t.element(0, out, l)
		t.element(1, out, r)
		t.element(2, out, scale(0, l))
		t.element(3, out, scale(1, r))
	})
}

func clampTo(v, last int64) int64 { return max(0, min(v, last)) }

// startsAt are the start indices from operand first on, clamped.
func (t *trace) startsAt(first int, array, size []int64) []int64 {
	out := make([]int64, len(array))
	for d := range out {
		var v int64
		if len(t.from(first)) == 1 {
			v = t.read(first, []int64{int64(d)})
		} else {
			v = t.read(first+d, nil)
		}
		out[d] = clampTo(v, array[d]-size[d])
	}
	return out
}

func (t *trace) startsUsed(first int, out []int64) {
	for k := first; k < len(t.pairs); k++ {
		eachIndex(t.from(k), func(at []int64) { t.element(k, out, at) })
	}
}

func plus(a, b []int64) []int64 {
	out := slices.Clone(a)
	for k := range out {
		out[k] += b[k]
	}
	return out
}

func (t *trace) dynamicSlice() {
	start := t.startsAt(1, t.from(0), t.to())
	eachIndex(t.to(), func(out []int64) {
		t.element(0, out, plus(out, start))
		t.startsUsed(1, out)
	})
}

func (t *trace) dynamicUpdateSlice() {
	start := t.startsAt(2, t.from(0), t.from(1))
	written := map[string]bool{}
	eachIndex(t.from(1), func(at []int64) {
		out := plus(at, start)
		written[pointKey(out)] = true
		t.element(1, out, at)
	})
	eachIndex(t.to(), func(out []int64) {
		if !written[pointKey(out)] {
			t.element(0, out, out)
		}
		t.startsUsed(2, out)
	})
}

// vectorAt is component k of the index vector of a batch index.
func vectorAt(batch []int64, dim, k int64, rank int) []int64 {
	if dim == int64(rank) {
		return batch
	}
	return slices.Insert(slices.Clone(batch), int(dim), k)
}

// gather follows the operation's definition: the full index is the clamped
// start plus the offset, both spread over the operand's dimensions.
func (t *trace) gather() {
	g := t.in.Attrs.Gather
	rank := len(t.from(1))
	eachIndex(t.to(), func(out []int64) {
		var batch, offset []int64
		for d, i := range out {
			if slices.Contains(g.OffsetDims, int64(d)) {
				offset = append(offset, i)
			} else {
				batch = append(batch, i)
			}
		}
		at := make([]int64, len(t.from(0)))
		for d := range at {
			if slices.Contains(g.CollapsedSliceDims, int64(d)) {
				continue
			}
			if k := slices.Index(g.OperandBatching, int64(d)); k >= 0 {
				from := g.IndicesBatching[k]
				if g.IndexVectorDim < from {
					from--
				}
				at[d] = batch[from]
				continue
			}
			at[d], offset = offset[0], offset[1:]
		}
		for k, d := range g.StartIndexMap {
			v := vectorAt(batch, g.IndexVectorDim, int64(k), rank)
			at[d] += clampTo(
				t.read(1, v),
				t.from(0)[d]-g.SliceSizes[d],
			)
			t.element(1, out, v)
		}
		t.element(0, out, at)
	})
}

// scatter traces the first operand and its updates. An update window that is
// not inside is dropped; the last of several overwrites unless they combine.
func (t *trace) scatter() {
	s, n := t.in.Attrs.Scatter, len(t.in.Operands)/2
	combines := t.in.Attrs.ToApply.Reads(0, 0)
	writer := map[string][]int64{}
	eachIndex(t.from(n+1), func(u []int64) {
		if out, ok := t.target(s, n, u); ok {
			if combines {
				t.element(n+1, out, u)
			}
			writer[pointKey(out)] = u
		}
	})
	eachIndex(t.to(), func(out []int64) {
		u, hit := writer[pointKey(out)]
		if !hit || combines {
			t.element(0, out, out)
		}
		if hit && !combines {
			t.element(n+1, out, u)
		}
	})
	for k := range t.pairs {
		if k != 0 && k != n+1 {
			t.pairs[k] = nil
		}
	}
}

// target is where update u goes, unless its window sticks out.
func (t *trace) target(s *hlo.ScatterDims, n int, u []int64) ([]int64, bool) {
	var batch, window, size []int64
	for d, i := range u {
		if slices.Contains(s.UpdateWindow, int64(d)) {
			window, size = append(window, i), append(size, t.from(n + 1)[d])
		} else {
			batch = append(batch, i)
		}
	}
	out := make([]int64, len(t.to()))
	room := make([]int64, len(out))
	for d := range out {
		room[d] = t.to()[d]
		if slices.Contains(s.InsertedWindow, int64(d)) {
			room[d]--
			continue
		}
		if k := slices.Index(s.InputBatching, int64(d)); k >= 0 {
			from := s.IndicesBatching[k]
			if s.IndexVectorDim < from {
				from--
			}
			out[d] = batch[from]
			continue
		}
		out[d], window = window[0], window[1:]
		room[d], size = room[d]-size[0], size[1:]
	}
	for k, d := range s.ToOperand {
		start := t.read(
			n,
			vectorAt(batch, s.IndexVectorDim, int64(k), len(t.from(n))),
		)
		if start < 0 || start > room[d] {
			return nil, false
		}
		out[d] += start
	}
	return out, true
}

// scan is a cumulative sum: every output uses every input up to it and the carry.
func (t *trace) scan() {
	d, reverse := t.in.Attrs.Dimensions[0], false
	for _, a := range t.in.Attrs.Other {
		reverse = reverse || a.Name == "is_reverse" && a.Value == "true"
	}
	eachIndex(t.to(), func(out []int64) {
		for i := range t.from(0)[d] {
			if !reverse && i <= out[d] || reverse && i >= out[d] {
				at := slices.Clone(out)
				at[d] = i
				t.element(0, out, at)
			}
		}
		t.element(
			1,
			out,
			slices.Delete(slices.Clone(out), int(d), int(d)+1),
		)
	})
}

// onReplica is an index with the position of its replica.
func onReplica(at []int64, position int64) []int64 { return append(slices.Clone(at), position) }

func (t *trace) members() int64 { return int64(len(t.in.Attrs.ReplicaGroups[0])) }

func (t *trace) allGather() {
	d := t.in.Attrs.Dimensions[0]
	for asking := range t.members() {
		place := int64(0)
		for p := range t.members() {
			for i := range t.from(0)[d] {
				eachIndex(t.from(0), func(at []int64) {
					if at[d] == i {
						out := slices.Clone(at)
						out[d] = place
						t.element(0, onReplica(out, asking), onReplica(at, p))
					}
				})
				place++
			}
		}
	}
}

func (t *trace) allReduce() {
	eachIndex(t.to(), func(at []int64) {
		for asking := range t.members() {
			for p := range t.members() {
				t.element(0, onReplica(at, asking), onReplica(at, p))
			}
		}
	})
}

func (t *trace) reduceScatter() {
	d := t.in.Attrs.Dimensions[0]
	eachIndex(t.from(0), func(at []int64) {
		shard := t.to()[d]
		out := slices.Clone(at)
		asking := out[d] / shard
		out[d] -= asking * shard
		for p := range t.members() {
			t.element(0, onReplica(out, asking), onReplica(at, p))
		}
	})
}

func (t *trace) allToAll() {
	d := t.in.Attrs.Dimensions[0]
	block := t.to()[d] / t.members()
	for sender := range t.members() {
		eachIndex(t.from(0), func(at []int64) {
			receiver := at[d] / block
			out := slices.Clone(at)
			out[d] = sender*block + at[d]%block
			t.element(0, onReplica(out, receiver), onReplica(at, sender))
		})
	}
}

func (t *trace) permute() {
	for _, pair := range t.in.Attrs.SourceTargets {
		eachIndex(t.to(), func(at []int64) {
			t.element(0, onReplica(at, pair[1]), onReplica(at, pair[0]))
		})
	}
}

func (t *trace) broadcastReplica() {
	eachIndex(t.to(), func(at []int64) {
		for asking := range t.members() {
			t.element(0, onReplica(at, asking), onReplica(at, 0))
		}
	})
}
