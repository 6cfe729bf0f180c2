package indexing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Computations that reduces and scans of samples apply.
const (
	argminText = "argmin { a = f32[] parameter(0); i = s32[] parameter(1); b = f32[] parameter(2); j = s32[] parameter(3); " +
		"p = pred[] compare(a, b), direction=LT; v = f32[] select(p, a, b); k = s32[] select(p, i, j); ROOT t = (f32[], s32[]) tuple(v, k) }\n"
	scanText = "scan_add { x = f32[] parameter(0); c = f32[] parameter(1); s = f32[] add(x, c); ROOT t = (f32[], f32[]) tuple(s, s) }\n"
)

// A sampler writes random small instructions as HLO text.
type sampler struct{ *rand.Rand }

func (s sampler) upTo(n int) int64 { return int64(s.IntN(n + 1)) }

// extent is 1 … 4, rarely 0.
func (s sampler) extent() int64 {
	if s.IntN(60) == 0 {
		return 0
	}
	return 1 + s.upTo(3)
}

func (s sampler) shape(rank int) []int64 {
	dims := make([]int64, rank)
	for k := range dims {
		dims[k] = s.extent()
	}
	return dims
}

func (s sampler) perm(n int) []int64 {
	out := make([]int64, n)
	for k, d := range s.Perm(n) {
		out[k] = int64(d)
	}
	return out
}

// some are k of 0 … n−1, in any order.
func (s sampler) some(n, k int) []int64 { return s.perm(n)[:k] }

func commas(v []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
}

func f32(dims []int64) string { return "f32[" + commas(dims) + "]" }

func s32(dims []int64) string { return "s32[" + commas(dims) + "]" }

// program is the parameters of the shapes given, and the root.
func program(root string, shapes ...string) string {
	var b strings.Builder
	for k, s := range shapes {
		fmt.Fprintf(&b, "p%d = %s parameter(%d)\n", k, s, k)
	}
	return b.String() + "ROOT r = " + root
}

var sampled = map[string]func(s sampler) string{
	"elementwise": func(s sampler) string {
		d := f32(s.shape(s.IntN(4)))
		return program(d+" add(p0, p1)", d, d)
	},
	"select": func(s sampler) string {
		d := s.shape(1 + s.IntN(2))
		p := "pred[]"
		if s.IntN(2) == 0 {
			p = "pred[" + commas(d) + "]"
		}
		return program(f32(d)+" select(p0, p1, p2)", p, f32(d), f32(d))
	},
	"clamp": func(s sampler) string {
		d := f32(s.shape(2))
		return program(d+" clamp(p0, p1, p2)", "f32[]", d, "f32[]")
	},
	"bitcast-convert": func(s sampler) string {
		d := s.shape(s.IntN(3))
		wide, narrow := "s32["+commas(d)+"]",
			"s8["+commas(append(slices.Clone(d), 4))+"]"
		if s.IntN(2) == 0 {
			wide, narrow = narrow, wide
		}
		return program(wide+" bitcast-convert(p0)", narrow)
	},
	"broadcast": func(s sampler) string {
		to := s.shape(1 + s.IntN(3))
		dims := s.some(len(to), s.IntN(len(to)+1))
		return program(f32(to)+" broadcast(p0), dimensions={"+commas(dims)+"}", f32(pickExtents(to, dims)))
	},
	"transpose": func(s sampler) string {
		from := s.shape(1 + s.IntN(4))
		perm := s.perm(len(from))
		return program(f32(pickExtents(from, perm))+" transpose(p0), dimensions={"+commas(perm)+"}", f32(from))
	},
	"reshape": func(s sampler) string {
		from, to := s.factored()
		return program(f32(to)+" reshape(p0)", f32(from))
	},
	"bitcast": func(s sampler) string {
		from, to := s.factored()
		types := []string{"f32", "f32", "s32", "s16", "s8", "f64"}
		a, b := types[s.IntN(len(types))], types[s.IntN(len(types))]
		width := map[string]int64{"f32": 4, "s32": 4, "s16": 2, "s8": 1, "f64": 8}
		ratio := max(width[a], width[b]) / min(width[a], width[b])
		if width[a] < width[b] {
			from = append(from, ratio)
		} else if width[a] > width[b] {
			to = append(to, ratio)
		}
		text := program(
			b+"["+commas(to)+"]{"+commas(s.perm(len(to)))+"} bitcast(p0)",
			a+"["+commas(from)+"]{"+commas(s.perm(len(from)))+"}",
		)
		return strings.ReplaceAll(text, "[]{}", "[]")
	},
	"slice": func(s sampler) string {
		from := s.shape(1 + s.IntN(3))
		to, text := s.cut(from)
		return program(f32(to)+" slice(p0), slice={"+text+"}", f32(from))
	},
	"reverse": func(s sampler) string {
		d := s.shape(1 + s.IntN(3))
		return program(
			f32(d)+" reverse(p0), dimensions={"+commas(s.some(
				len(d), s.IntN(len(d)+1),
			))+"}",
			f32(d),
		)
	},
	"pad": func(s sampler) string {
		from := s.shape(1 + s.IntN(2))
		to, words := make([]int64, len(from)), make([]string, len(from))
		for k, n := range from {
			low, high, interior := s.upTo(5)-2, s.upTo(5)-2, s.upTo(2)
			to[k] = max(0, low+high+n+max(0, n-1)*interior)
			words[k] = fmt.Sprintf("%d_%d_%d", low, high, interior)
		}
		return program(f32(to)+" pad(p0, p1), padding="+strings.Join(words, "x"), f32(from), "f32[]")
	},
	"concatenate": func(s sampler) string {
		d := s.shape(1 + s.IntN(2))
		along := s.IntN(len(d))
		var shapes, names []string
		to := slices.Clone(d)
		to[along] = 0
		for k := range 1 + s.IntN(3) {
			d[along] = s.upTo(3)
			to[along] += d[along]
			shapes, names = append(shapes, f32(d)), append(names, fmt.Sprintf("p%d", k))
		}
		return program(fmt.Sprintf("%s concatenate(%s), dimensions={%d}", f32(to), strings.Join(names, ", "), along), shapes...)
	},
	"reduce": func(s sampler) string {
		from := s.shape(1 + s.IntN(3))
		dims := s.some(len(from), s.IntN(len(from)+1))
		return program(f32(without(from, dims))+" reduce(p0, p1), dimensions={"+commas(dims)+"}, to_apply=add", f32(from), "f32[]")
	},
	"reduce-variadic": func(s sampler) string {
		from := s.shape(1 + s.IntN(3))
		dims := s.some(len(from), s.IntN(len(from)+1))
		to := without(from, dims)
		return argminText + program(fmt.Sprintf(
			"(%s, %s) reduce(p0, p1, p2, p3), dimensions={%s}, to_apply=argmin",
			f32(to), s32(to), commas(dims),
		), f32(from), s32(from), "f32[]", "s32[]")
	},
	"reduce-window": func(s sampler) string {
		from := s.shape(1 + s.IntN(2))
		to, text, _ := s.windowOver(from)
		return program(f32(to)+" reduce-window(p0, p1), window={"+text+"}, to_apply=max", f32(from), "f32[]")
	},
	"convolution":          sampler.convolution,
	"dot":                  func(s sampler) string { return s.dot(false) },
	"scaled-dot":           func(s sampler) string { return s.dot(true) },
	"dynamic-slice":        func(s sampler) string { return s.dynamic(false) },
	"dynamic-update-slice": func(s sampler) string { return s.dynamic(true) },
	"gather":               sampler.gather,
	"scatter":              sampler.scatter,
	"scan": func(s sampler) string {
		dims := s.shape(1 + s.IntN(2))
		d := s.some(len(dims), 1)
		carry := without(dims, d)
		return scanText + program(fmt.Sprintf(
			"(%s, %s) scan(p0, p1), dimensions={%s}, is_reverse=%t, num_carries=1, to_apply=scan_add",
			f32(dims), f32(carry), commas(d), s.IntN(2) == 0,
		), f32(dims), f32(carry))
	},
	"all-gather": func(s sampler) string {
		from, groups, n := s.shape(1+s.IntN(2)),
			"", int64(1+s.IntN(3))
		groups = replicas(n)
		d := s.IntN(len(from))
		to := slices.Clone(from)
		to[d] *= n
		return program(fmt.Sprintf("%s all-gather(p0), dimensions={%d}, replica_groups=%s", f32(to), d, groups), f32(from))
	},
	"reduce-scatter": func(s sampler) string {
		to, n := s.shape(1+s.IntN(2)), int64(1+s.IntN(3))
		d := s.IntN(len(to))
		from := slices.Clone(to)
		from[d] *= n
		return program(fmt.Sprintf("%s reduce-scatter(p0), dimensions={%d}, replica_groups=%s, to_apply=add", f32(to), d, replicas(n)), f32(from))
	},
	"all-reduce": func(s sampler) string {
		d := f32(s.shape(1 + s.IntN(2)))
		return program(d+" all-reduce(p0), replica_groups="+replicas(int64(1+s.IntN(3)))+", to_apply=add", d)
	},
	"all-to-all": func(s sampler) string {
		dims, n := s.shape(1+s.IntN(2)), int64(1+s.IntN(3))
		d := s.IntN(len(dims))
		dims[d] *= n
		return program(fmt.Sprintf("%s all-to-all(p0), dimensions={%d}, replica_groups=%s", f32(dims), d, replicas(n)), f32(dims))
	},
	"collective-permute": func(s sampler) string {
		d := f32(s.shape(1 + s.IntN(2)))
		n := 1 + s.IntN(3)
		var pairs []string
		for to, from := range s.Perm(n)[:1+s.IntN(n)] {
			pairs = append(pairs, fmt.Sprintf("{%d,%d}", from, to))
		}
		return program(d+" collective-permute(p0), source_target_pairs={"+strings.Join(pairs, ",")+"}", d)
	},
	"collective-broadcast": func(s sampler) string {
		d := f32(s.shape(1 + s.IntN(2)))
		return program(d+" collective-broadcast(p0), replica_groups="+replicas(int64(1+s.IntN(3))), d)
	},
}

// replicas are two groups of n.
func replicas(n int64) string {
	var a, b []int64
	for k := range n {
		a, b = append(a, 2*k), append(b, 2*k+1)
	}
	return "{{" + commas(a) + "},{" + commas(b) + "}}"
}

func without(extents, dims []int64) (out []int64) {
	for d, n := range extents {
		if !slices.Contains(dims, int64(d)) {
			out = append(out, n)
		}
	}
	return out
}

// factored are two shapes with the same number of elements.
func (s sampler) factored() (a, b []int64) {
	factors := []int64{}
	for range 1 + s.IntN(4) {
		factors = append(factors, 1+s.upTo(2))
	}
	group := func() (out []int64) {
		out = []int64{1}
		for _, f := range factors {
			if s.IntN(2) == 0 {
				out = append(out, 1)
			}
			out[len(out)-1] *= f
		}
		return out
	}
	a = group()
	s.Shuffle(len(factors), func(i, j int) {
		factors[i], factors[j] = factors[j], factors[i]
	})
	return a, group()
}

// cut slices extents.
func (s sampler) cut(from []int64) (to []int64, text string) {
	var words []string
	for _, n := range from {
		start := s.upTo(int(n))
		limit := start + s.upTo(int(n-start))
		stride := 1 + s.upTo(2)
		to = append(to, (limit-start+stride-1)/stride)
		words = append(words, fmt.Sprintf("[%d:%d:%d]", start, limit, stride))
	}
	return to, strings.Join(words, ", ")
}

// windowOver is a window over extents: the result's extents, its text, its sizes.
func (s sampler) windowOver(from []int64) (to []int64, text string, sizes []int64) {
	var size, stride, pad, base, dilate, reversed []string
	for _, n := range from {
		w := 1 + s.upTo(2)
		st := 1 + s.upTo(2)
		low := s.upTo(4) - 1
		high := s.upTo(4) - 1
		b := 1 + s.upTo(2)
		d := 1 + s.upTo(2)
		if s.IntN(40) == 0 {
			w = 0
		}
		room := low + high + n + max(0, n-1)*(b-1)
		span := (w-1)*d + 1
		m := int64(0)
		if w > 0 && room >= span {
			m = (room-span)/st + 1
		}
		to, sizes = append(to, m), append(sizes, w)
		size = append(size, fmt.Sprint(w))
		stride = append(stride, fmt.Sprint(st))
		pad = append(pad, fmt.Sprintf("%d_%d", low, high))
		base = append(base, fmt.Sprint(b))
		dilate = append(dilate, fmt.Sprint(d))
		reversed = append(reversed, fmt.Sprint(s.IntN(2)))
	}
	x := func(words []string) string { return strings.Join(words, "x") }
	return to, fmt.Sprintf(
		"size=%s stride=%s pad=%s lhs_dilate=%s rhs_dilate=%s rhs_reversal=%s",
		x(size), x(stride), x(pad),
		x(base), x(dilate), x(reversed),
	), sizes
}

// labelled places extents by label and writes the labels.
func (s sampler) labelled(
	first, second string, a, b int64, spatial []int64,
) (dims []int64, labels string) {
	dims = make([]int64, len(spatial)+2)
	text := make([]string, len(dims))
	for k, d := range s.perm(len(dims)) {
		switch k {
		case 0:
			dims[d], text[d] = a, first
		case 1:
			dims[d], text[d] = b, second
		default:
			dims[d], text[d] = spatial[k-2], fmt.Sprint(k-2)
		}
	}
	return dims, strings.Join(text, "")
}

func (s sampler) convolution() string {
	spatial := s.shape(s.IntN(3))
	to, window, kernel := s.windowOver(spatial)
	feature, batch := int64(1), int64(1)
	switch s.IntN(3) {
	case 0:
		feature = 1 + s.upTo(2)
	case 1:
		batch = 1 + s.upTo(2)
	}
	outBatch := 1 + s.upTo(1)
	in := 1 + s.upTo(1)
	out := (1 + s.upTo(1)) * feature * batch
	lhs, l := s.labelled("b", "f", outBatch*batch, in*feature, spatial)
	rhs, r := s.labelled("i", "o", in, out, kernel)
	res, o := s.labelled("b", "f", outBatch, out, to)
	text := f32(res) + " convolution(p0, p1)"
	if len(spatial) > 0 {
		text += ", window={" + window + "}"
	}
	return program(
		fmt.Sprintf("%s, dim_labels=%s_%s->%s, feature_group_count=%d, batch_group_count=%d", text, l, r, o, feature, batch),
		f32(lhs),
		f32(rhs),
	)
}

func (s sampler) dot(scaled bool) string {
	batch, contract := s.shape(s.IntN(2)), s.shape(s.IntN(3))
	left, right := s.shape(s.IntN(2)), s.shape(s.IntN(2))
	if scaled { // blocks need extents
		for _, dims := range [][]int64{batch, contract, left, right} {
			for k := range dims {
				dims[k] = max(dims[k], 1)
			}
		}
	}
	side := func(free []int64) (dims, b, c []int64) {
		all := slices.Concat(batch, contract, free)
		order := s.perm(len(all))
		dims = make([]int64, len(all))
		for k, d := range order {
			dims[d] = all[k]
		}
		return dims, order[:len(batch)], order[len(batch) : len(batch)+len(contract)]
	}
	l, lb, lc := side(left)
	r, rb, rc := side(right)
	attrs := fmt.Sprintf("lhs_batch_dims={%s}, rhs_batch_dims={%s}, lhs_contracting_dims={%s}, rhs_contracting_dims={%s}", commas(lb), commas(rb), commas(lc), commas(rc))
	to := f32(slices.Concat(batch, left, right))
	if !scaled {
		return program(to+" dot(p0, p1), "+attrs, f32(l), f32(r))
	}
	return program(
		to+" scaled-dot(p0, p1, p2, p3), "+attrs, f32(l), f32(r),
		f32(s.blocks(l)), f32(s.blocks(r)),
	)
}

// blocks are extents that divide dims, or those of a scalar.
func (s sampler) blocks(dims []int64) []int64 {
	if s.IntN(5) == 0 {
		return nil
	}
	out := slices.Clone(dims)
	for k, n := range dims {
		for d := int64(1); d <= n; d++ {
			if n%d == 0 && s.IntN(2) == 0 {
				out[k] = d
			}
		}
	}
	return out
}

func (s sampler) dynamic(update bool) string {
	from := s.shape(1 + s.IntN(3))
	size := slices.Clone(from)
	shapes := []string{f32(from)}
	names := "p0"
	for k := range size {
		size[k] = s.upTo(int(from[k]))
	}
	if update {
		shapes, names = append(shapes, f32(size)), names+", p1"
	}
	switch s.IntN(4) {
	case 0:
		names += fmt.Sprintf(", p%d", len(shapes))
		shapes = append(shapes, s32([]int64{int64(len(from))}))
	case 1: // one start for all
		for range from {
			names += fmt.Sprintf(", p%d", len(shapes))
		}
		shapes = append(shapes, "s32[]")
	default:
		for range from {
			names += fmt.Sprintf(", p%d", len(shapes))
			shapes = append(shapes, "s32[]")
		}
	}
	if update {
		return program(f32(from)+" dynamic-update-slice("+names+")", shapes...)
	}
	return program(fmt.Sprintf("%s dynamic-slice(%s), dynamic_slice_sizes={%s}", f32(size), names, commas(size)), shapes...)
}

// A lookupSample is the dimension numbers of a gather or scatter.
type lookupSample struct {
	array, size, other, indices           []int64
	missing, batching, ofIndices, started []int64
	window                                []int64
	vector                                int64
}

func (s sampler) lookup() (l lookupSample) {
	rank := 1 + s.IntN(3)
	l.array, l.size = s.shape(rank), make([]int64, rank)
	for d, n := range l.array {
		l.array[d] = max(n, 1)
	}
	batch := s.shape(s.IntN(3))
	order := s.perm(rank)
	if len(batch) > 0 && s.IntN(3) == 0 { // one batching dimension
		l.batching, order = order[:1], order[1:]
		at := s.IntN(len(batch))
		batch[at] = l.array[l.batching[0]]
		l.ofIndices = []int64{int64(at)}
	}
	l.missing = slices.Sorted(slices.Values(order[:s.IntN(len(order)+1)]))
	for d, n := range l.array {
		l.size[d] = s.upTo(int(n))
		if slices.Contains(l.missing, int64(d)) || slices.Contains(l.batching, int64(d)) {
			l.size[d] = 1
		}
	}
	s.Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	l.started = slices.Clone(order[:s.IntN(len(order)+1)])
	l.vector = s.upTo(len(batch))
	l.indices = slices.Insert(
		slices.Clone(batch), int(l.vector), int64(len(l.started)),
	)
	if len(l.started) == 1 && s.IntN(2) == 0 {
		l.indices, l.vector = batch, int64(len(batch))
	}
	for k, d := range l.ofIndices {
		if d >= l.vector && len(l.indices) > len(batch) {
			l.ofIndices[k]++
		}
	}
	var window []int64
	for d, n := range l.size {
		if !slices.Contains(l.missing, int64(d)) &&
			!slices.Contains(l.batching, int64(d)) {
			window = append(window, n)
		}
	}
	total := len(window) + len(batch)
	l.window = slices.Sorted(slices.Values(s.some(total, len(window))))
	l.other = make([]int64, total)
	for d := range l.other {
		from := &batch
		if slices.Contains(l.window, int64(d)) {
			from = &window
		}
		l.other[d], *from = (*from)[0], (*from)[1:]
	}
	return l
}

func (s sampler) gather() string {
	l := s.lookup()
	return program(
		fmt.Sprintf(
			"%s gather(p0, p1), offset_dims={%s}, collapsed_slice_dims={%s}, operand_batching_dims={%s}, start_indices_batching_dims={%s}, start_index_map={%s}, index_vector_dim=%d, slice_sizes={%s}",
			f32(l.other), commas(l.window), commas(l.missing),
			commas(l.batching), commas(l.ofIndices), commas(l.started),
			l.vector, commas(l.size),
		),
		f32(l.array), s32(l.indices),
	)
}

func (s sampler) scatter() string {
	l := s.lookup()
	combine := "add"
	text := ""
	if s.IntN(2) == 0 {
		text, combine = "last { a = f32[] parameter(0); ROOT b = f32[] parameter(1) }\n", "last"
	}
	return text + program(fmt.Sprintf(
		"%s scatter(p0, p1, p2), update_window_dims={%s}, inserted_window_dims={%s}, input_batching_dims={%s}, scatter_indices_batching_dims={%s}, scatter_dims_to_operand_dims={%s}, index_vector_dim=%d, to_apply=%s",
		f32(l.array), commas(l.window), commas(l.missing),
		commas(l.batching), commas(l.ofIndices), commas(l.started),
		l.vector, combine,
	), f32(l.array), s32(l.indices), f32(l.other))
}
