package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// OpUnfold is an operation that HLO does not have. Instead of operand dimension
// Attrs.Dimensions[k] its result has two: the positions of window
// Attrs.Window[k] and the elements within it. Position x and window element w
// are index x·Stride + w·Dilation of the operand. It is the im2col of
// convolutions, without a buffer of its own.
const OpUnfold hlo.Opcode = "unfold"

// A rewrite replaces an instruction by others before tiles are propagated, so
// that tiles, loops and backends know few operations.
type rewrite struct {
	// doc is what the table in doc.go says.
	doc string
	// apply appends the instructions to the rewriter's computation and returns
	// what has the value; nil leaves the instruction as it is.
	apply func(*rewriter, *hlo.Instr, []*hlo.Instr) *hlo.Instr
}

// rewrites is the table of rewrites, by operation.
var rewrites = map[hlo.Opcode]rewrite{
	hlo.OpReduceWindow:       {"reduce of an unfold of a pad", (*rewriter).reduceWindow},
	hlo.OpConvolution:        {"dot of an unfold of a pad; groups become batch dimensions", (*rewriter).convolution},
	hlo.OpDot:                {"itself, contracted first along what a mask of the operand alone depends on", (*rewriter).groupsFirst},
	hlo.OpScaledDot:          {"dot of the operands multiplied by their scales, repeated over blocks", (*rewriter).scaledDot},
	hlo.OpDynamicSlice:       {"slice, where all starts are constants", (*rewriter).dynamicSlice},
	hlo.OpDynamicUpdateSlice: {"itself with scalar starts, where HLO gives them as one array", (*rewriter).dynamicUpdateSlice},
	hlo.OpBitcast:            {"reshape, where both layouts are row-major", (*rewriter).bitcast},
	hlo.OpBitcastConvert:     {"shifts of bits, between types of different width", (*rewriter).bitcastConvert},
	hlo.OpStochasticConvert:  {"a comparison of the fraction with the random bits", (*rewriter).stochasticConvert},
	hlo.OpImag:               {"0, of real numbers", (*rewriter).imaginary},
	hlo.OpReshape:            {"one reshape of what its operand reshapes, or nothing where the two cancel", (*rewriter).reshape},
}

// A rewriter copies a computation with its instructions rewritten.
type rewriter struct {
	out *hlo.Computation
	// from is the instruction that is being rewritten; new ones are named after
	// it.
	from *hlo.Instr
	// uses counts, for every instruction of out, its users among those that
	// have been rewritten so far and will be.
	uses map[*hlo.Instr]int
	// roles are those of the dimensions of products that were convolutions.
	roles map[*hlo.Instr]productRoles
}

// rewriteOps returns c with its operations rewritten; c itself when there is
// nothing to do. Instructions that no rewrite touches, and whose operands stay,
// are shared with c. The roles are those of the products of convolutions.
func rewriteOps(c *hlo.Computation) (*hlo.Computation, map[*hlo.Instr]productRoles) {
	if !slices.ContainsFunc(c.Instrs, func(i *hlo.Instr) bool {
		return rewrites[i.Op].apply != nil
	}) {
		return c, nil
	}
	r := &rewriter{
		out:   &hlo.Computation{Name: c.Name, Params: c.Params},
		uses:  map[*hlo.Instr]int{},
		roles: map[*hlo.Instr]productRoles{},
	}
	users := map[*hlo.Instr]int{c.Root: 1}
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			users[o]++
		}
	}
	value := make(
		map[*hlo.Instr]*hlo.Instr,
		len(c.Instrs),
	)
	for _, i := range c.Instrs {
		operands := make([]*hlo.Instr, len(i.Operands))
		for k, o := range i.Operands {
			operands[k] = value[o]
		}
		value[i] = r.instr(i, operands)
		r.uses[value[i]] += users[i]
	}
	r.out.Root = value[c.Root]
	return r.out, r.roles
}

// instr rewrites or copies one instruction with its new operands.
func (r *rewriter) instr(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	r.from = i
	if f := rewrites[i.Op].apply; f != nil {
		if rewritten := f(r, i, operands); rewritten != nil {
			return rewritten
		}
	}
	if !slices.Equal(i.Operands, operands) {
		copied := *i
		copied.Operands = operands
		i = &copied
	}
	r.out.Instrs = append(r.out.Instrs, i)
	return i
}

// add appends an operation named after what is being rewritten. Its element
// type is that of its first operand, and its layout is the default one.
func (r *rewriter) add(
	op hlo.Opcode, dims []int64,
	a hlo.Attrs, operands ...*hlo.Instr,
) *hlo.Instr {
	i := &hlo.Instr{
		Name:     r.from.Name + "/" + string(op),
		Op:       op,
		Attrs:    a,
		Operands: operands,
		Pos:      r.from.Pos,
		Shape:    hlo.Shape{DType: r.from.Shape.DType, Dims: dims},
	}
	if len(operands) > 0 {
		i.Shape.DType = operands[0].Shape.DType
	}
	r.out.Instrs = append(r.out.Instrs, i)
	return i
}

// renamed gives i, the last operation of a rewrite, the name and shape of the
// instruction that it replaces.
func (r *rewriter) renamed(i *hlo.Instr) *hlo.Instr {
	i.Name = r.from.Name
	i.Shape = r.from.Shape
	return i
}

// reshaped is x with other extents; x itself if it has them.
func (r *rewriter) reshaped(x *hlo.Instr, dims []int64) *hlo.Instr {
	if slices.Equal(x.Shape.Dims, dims) {
		return x
	}
	return r.add(hlo.OpReshape, dims, hlo.Attrs{}, x)
}

// padded is x padded as the windows of the dimensions say, base dilation as
// interior padding; x itself where they pad nothing.
func (r *rewriter) padded(
	x, value *hlo.Instr,
	dims []int64, window []hlo.WindowDim,
) *hlo.Instr {
	pads := make([]hlo.PadDim, x.Shape.Rank())
	extents := slices.Clone(x.Shape.Dims)
	anyPadding := false
	for k, w := range window {
		d := dims[k]
		pads[d] = hlo.PadDim{
			Low:      w.PadLow,
			High:     w.PadHigh,
			Interior: w.BaseDilation - 1,
		}
		extents[d] = max(0, w.Padded(extents[d]))
		anyPadding = anyPadding || pads[d] != hlo.PadDim{}
	}
	if !anyPadding {
		return x
	}
	return r.add(
		hlo.OpPad, extents,
		hlo.Attrs{Padding: pads}, x, value,
	)
}

// unfolded adds the window dimensions to x. A window of one element is a slice
// where it has a stride, and adds none. The second result is, for each window,
// the result's dimension that holds its elements, −1 where there is none.
func (r *rewriter) unfolded(
	x *hlo.Instr, dims []int64, window []hlo.WindowDim,
) (
	*hlo.Instr, []int64,
) {
	x = r.strided(x, dims, window)
	var a hlo.Attrs
	var extents []int64
	places := make([]int64, len(window))
	for d, n := range x.Shape.Dims {
		k := slices.Index(dims, int64(d))
		if k < 0 || window[k].Size == 1 {
			if extents = append(extents, n); k >= 0 {
				places[k] = -1
			}
			continue
		}
		w := window[k]
		w.PadLow = 0
		w.PadHigh = 0
		w.BaseDilation = 1
		a.Dimensions = append(a.Dimensions, int64(d))
		a.Window = append(a.Window, w)
		places[k] = int64(len(extents)) + 1
		extents = append(extents, w.Positions(n), w.Size)
	}
	if a.Dimensions == nil {
		return x, places
	}
	return r.add(OpUnfold, extents, a, x), places
}

// strided slices the dimensions whose window has one element and a stride.
func (r *rewriter) strided(
	x *hlo.Instr, dims []int64, window []hlo.WindowDim,
) *hlo.Instr {
	ranges := make([]hlo.SliceDim, x.Shape.Rank())
	extents := slices.Clone(x.Shape.Dims)
	anyStride := false
	for d, n := range extents {
		ranges[d] = hlo.SliceDim{Limit: n, Stride: 1}
		k := slices.Index(dims, int64(d))
		if k >= 0 && window[k].Size == 1 &&
			window[k].Stride > 1 && n > 0 {
			ranges[d].Stride, anyStride = window[k].Stride, true
			extents[d] = (n + window[k].Stride - 1) /
				window[k].Stride
		}
	}
	if !anyStride {
		return x
	}
	return r.add(
		hlo.OpSlice, extents, hlo.Attrs{Slice: ranges}, x,
	)
}

// reduceWindow is the reduce, over the window dimensions, of an unfold of a
// pad. A window of one element everywhere reduces a new dimension of extent 1,
// so that initial values are folded in.
func (r *rewriter) reduceWindow(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	n := len(operands) / 2
	rank := operands[0].Shape.Rank()
	dims := ascending(rank)
	window := i.Attrs.Window
	if rank == 0 ||
		slices.ContainsFunc(window, func(w hlo.WindowDim) bool { return w.Size == 0 }) {
		return nil
	}
	args := slices.Clone(operands)
	var reduced []int64
	for k := range n {
		x, places := r.unfolded(
			r.padded(operands[k], operands[n+k], dims, window),
			dims, window,
		)
		reduced = slices.DeleteFunc(places, func(d int64) bool {
			return d < 0
		})
		if len(reduced) == 0 {
			x = r.add(
				hlo.OpReshape,
				append([]int64{1}, x.Shape.Dims...),
				hlo.Attrs{}, x,
			)
			reduced = []int64{0}
		}
		args[k] = x
	}
	return r.renamed(r.add(
		hlo.OpReduce, nil,
		hlo.Attrs{Dimensions: reduced, ToApply: i.Attrs.ToApply},
		args...,
	))
}

// ascending is 0, 1, …, n−1.
func ascending(n int) []int64 {
	s := make([]int64, n)
	for k := range s {
		s[k] = int64(k)
	}
	return s
}

// convolution is a dot of an unfold of a padded input, [batch, spatial…,
// feature] in any order, with the kernel. Groups are split off in front of the
// dimension that they divide, and become batch dimensions of the dot. Windows
// without elements and empty arrays stay convolutions, which no propagator
// takes.
func (r *rewriter) convolution(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	c := i.Attrs.Conv
	window := i.Attrs.Window
	if slices.ContainsFunc(window, func(w hlo.WindowDim) bool { return w.Size == 0 }) ||
		slices.Contains(operands[0].Shape.Dims, 0) ||
		slices.Contains(operands[1].Shape.Dims, 0) {
		return nil
	}
	x := r.padded(
		operands[0],
		r.zero(operands[0].Shape.DType),
		c.InSpatial, window,
	)
	k := operands[1]
	if reversedDims := reversed(c, window); reversedDims != nil {
		k = r.add(
			hlo.OpReverse, k.Shape.Dims,
			hlo.Attrs{Dimensions: reversedDims}, k,
		)
	}
	in := dimNames(
		x.Shape.Rank(),
		map[int64]string{c.InBatch: "batch", c.InFeature: "in"},
		c.InSpatial, "x",
	)
	kernel := dimNames(
		k.Shape.Rank(),
		map[int64]string{c.KernelIn: "in", c.KernelOut: "out"},
		c.KernelSpatial, "w",
	)
	feature, batch := i.Attrs.Groups()
	if groups := feature * batch; groups > 1 {
		divides := "in"
		if batch > 1 {
			divides = "batch"
		}
		x, in = r.grouped(x, in, divides, groups)
		k, kernel = r.grouped(k, kernel, "out", groups)
	}
	var spatial []int64
	for n := range window {
		spatial = append(
			spatial,
			int64(slices.Index(in, axisName("x", n))),
		)
	}
	x, places := r.unfolded(x, spatial, window)
	in = withWindowDims(in, places, spatial)
	k, kernel = r.dropUnitDims(k, kernel, window)
	return r.contracted(i, x, k, in, kernel)
}

// zero is a scalar constant 0.
func (r *rewriter) zero(t hlo.DType) *hlo.Instr {
	z := r.add(hlo.OpConstant, nil, hlo.Attrs{})
	z.Shape.DType = t
	z.Literal = &hlo.Literal{Shape: z.Shape}
	if t.IsFloat() {
		z.Literal.Floats = []float64{0}
	} else {
		z.Literal.Ints = []int64{0}
	}
	return z
}

// reversed are the kernel's dimensions whose window is reversed.
func reversed(c *hlo.ConvDims, window []hlo.WindowDim) (dims []int64) {
	for n, w := range window {
		if w.Reversed {
			dims = append(dims, c.KernelSpatial[n])
		}
	}
	return dims
}

// dimNames lists names of dimensions, those of spatial ones as stem0, stem1, ….
func dimNames(rank int, names map[int64]string, spatial []int64, stem string) []string {
	out := make([]string, rank)
	for d, name := range names {
		out[d] = name
	}
	for n, d := range spatial {
		out[d] = axisName(stem, n)
	}
	return out
}

// axisName is the name of a spatial dimension: "x0" of the input, "w0" of the
// kernel.
func axisName(stem string, n int) string {
	return stem + string(rune('0'+n))
}

// grouped splits groups off in front of a dimension.
func (r *rewriter) grouped(
	x *hlo.Instr, names []string, divided string, groups int64,
) (
	*hlo.Instr, []string,
) {
	at := slices.Index(names, divided)
	dims := slices.Clone(x.Shape.Dims)
	dims[at] /= groups
	return r.reshaped(
			x, slices.Insert(dims, at, groups),
		),
		slices.Insert(slices.Clone(names), at, "group")
}

// withWindowDims inserts the names of the window dimensions that unfolding
// adds: those of the kernel.
func withWindowDims(names []string, places, spatial []int64) []string {
	var out []string
	for d, name := range names {
		out = append(out, name)
		n := slices.Index(spatial, int64(d))
		if n >= 0 && places[n] >= 0 {
			out = append(out, axisName("w", n))
		}
	}
	return out
}

// dropUnitDims drops the kernel's spatial dimensions of extent 1, for which the
// input has no window dimension.
func (r *rewriter) dropUnitDims(
	k *hlo.Instr, names []string, window []hlo.WindowDim,
) (
	*hlo.Instr, []string,
) {
	var dims []int64
	var kept []string
	for d, name := range names {
		if name[0] == 'w' &&
			window[name[1]-'0'].Size == 1 {
			continue
		}
		dims = append(dims, k.Shape.Dims[d])
		kept = append(kept, name)
	}
	return r.reshaped(k, dims), kept
}

// contracted is the dot of x and k over the names that they share, groups as
// batch dimensions, transposed and reshaped to the convolution's result.
func (r *rewriter) contracted(
	i *hlo.Instr,
	x, k *hlo.Instr,
	in, kernel []string,
) *hlo.Instr {
	var a hlo.Attrs
	var names, contracted []string
	var dims []int64
	if g := slices.Index(in, "group"); g >= 0 {
		a.LHSBatch = []int64{int64(g)}
		a.RHSBatch = []int64{int64(slices.Index(kernel, "group"))}
		names = append(names, "group")
		dims = append(dims, x.Shape.Dims[g])
	}
	for d, name := range kernel {
		l := slices.Index(in, name)
		if l >= 0 && name != "group" {
			a.LHSContract = append(a.LHSContract, int64(l))
			a.RHSContract = append(a.RHSContract, int64(d))
			contracted = append(contracted, name)
		}
	}
	for d, name := range in {
		if !slices.Contains(kernel, name) {
			names = append(names, name)
			dims = append(dims, x.Shape.Dims[d])
		}
	}
	names = append(names, "out")
	dims = append(
		dims, k.Shape.Dims[slices.Index(kernel, "out")],
	)
	product := r.add(hlo.OpDot, dims, a, x, k)
	product.Shape.DType = i.Shape.DType
	r.roles[product] = convolutionRoles(names, contracted, len(i.Attrs.Window))
	c := i.Attrs.Conv
	want := dimNames(
		i.Shape.Rank(),
		map[int64]string{c.OutBatch: "batch", c.OutFeature: "out"},
		c.OutSpatial, "x",
	)
	if names[0] == "group" {
		want = slices.Insert(
			want, slices.Index(want, "out"), "group",
		)
	}
	if !slices.Equal(names, want) {
		product = r.transposed(product, names, want)
	}
	if product.Shape.Rank() != i.Shape.Rank() {
		product = r.add(
			hlo.OpReshape, i.Shape.Dims, hlo.Attrs{}, product,
		)
	}
	return r.renamed(product)
}

// transposed brings dimensions from the order in which they are to the one that
// is wanted.
func (r *rewriter) transposed(x *hlo.Instr, have, want []string) *hlo.Instr {
	perm := make([]int64, len(want))
	dims := make([]int64, len(want))
	for k, name := range want {
		perm[k] = int64(slices.Index(have, name))
		dims[k] = x.Shape.Dims[perm[k]]
	}
	return r.add(
		hlo.OpTranspose, dims, hlo.Attrs{Dimensions: perm}, x,
	)
}

// scaledDot multiplies each side by its scale, in f32 unless it is f64, and
// contracts the products.
func (r *rewriter) scaledDot(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	var sides [2]*hlo.Instr
	for n := range sides {
		x := operands[n]
		scale := operands[n+2]
		t := hlo.F32
		if x.Shape.DType == hlo.F64 {
			t = hlo.F64
		}
		sides[n] = r.add(
			hlo.OpMultiply, x.Shape.Dims, hlo.Attrs{},
			r.converted(x, t),
			r.broadcastScale(r.converted(scale, t), x.Shape.Dims),
		)
	}
	a := hlo.Attrs{
		LHSBatch:    i.Attrs.LHSBatch,
		RHSBatch:    i.Attrs.RHSBatch,
		LHSContract: i.Attrs.LHSContract,
		RHSContract: i.Attrs.RHSContract,
	}
	return r.renamed(r.add(
		hlo.OpDot, i.Shape.Dims, a,
		sides[0], sides[1],
	))
}

// groupsFirst contracts a product of groups of rows first along the groups: what a select
// takes of the operand is a broadcast along that dimension, and only the predicate says of
// which group a row is. Loops that come to the tiles of one group in a row can leave them out.
func (r *rewriter) groupsFirst(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	for k, x := range operands {
		contracted := [][]int64{i.Attrs.LHSContract, i.Attrs.RHSContract}[k]
		if x.Op != hlo.OpSelect ||
			x.Operands[1].Op != hlo.OpBroadcast {
			continue
		}
		at := slices.IndexFunc(contracted, func(d int64) bool {
			return !slices.Contains(x.Operands[1].Attrs.Dimensions, d)
		})
		if at <= 0 {
			continue
		}
		a := i.Attrs
		a.LHSContract = movedFirst(a.LHSContract, at)
		a.RHSContract = movedFirst(a.RHSContract, at)
		return r.renamed(r.add(
			hlo.OpDot, i.Shape.Dims, a, operands...,
		))
	}
	return nil
}

// movedFirst is a list with element k before the others.
func movedFirst(list []int64, k int) []int64 {
	return slices.Concat(list[k:k+1], list[:k], list[k+1:])
}

// converted is x as elements of type t; x itself if they are.
func (r *rewriter) converted(x *hlo.Instr, t hlo.DType) *hlo.Instr {
	if x.Shape.DType == t {
		return x
	}
	c := r.add(
		hlo.OpConvert, x.Shape.Dims, hlo.Attrs{}, x,
	)
	c.Shape.DType = t
	return c
}

// broadcastScale repeats every element of a scale over its block of dims: a
// broadcast that adds a dimension for each block, and a reshape that merges it.
func (r *rewriter) broadcastScale(scale *hlo.Instr, dims []int64) *hlo.Instr {
	if scale.Shape.Rank() == 0 {
		return r.add(
			hlo.OpBroadcast, dims,
			hlo.Attrs{Dimensions: []int64{}},
			scale,
		)
	}
	var from, to, blocks []int64
	for d, n := range scale.Shape.Dims {
		from = append(from, int64(len(blocks)))
		blocks = append(blocks, n)
		if block := dims[d] / n; block > 1 {
			blocks = append(blocks, block)
		}
		to = append(to, dims[d])
	}
	if slices.Equal(scale.Shape.Dims, dims) {
		return scale
	}
	return r.reshaped(
		r.add(hlo.OpBroadcast, blocks, hlo.Attrs{Dimensions: from}, scale),
		to,
	)
}

// dynamicSlice is a slice when all its starts are constants.
func (r *rewriter) dynamicSlice(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	x := operands[0]
	starts := r.scalarStarts(operands[1:])
	ranges := make([]hlo.SliceDim, len(starts))
	for k, s := range starts {
		at, isConstant := constantStart(
			s,
			x.Shape.Dims[k]-i.Attrs.SliceSizes[k],
		)
		if !isConstant {
			return r.withStarts(i, operands[:1], starts)
		}
		ranges[k] = hlo.SliceDim{
			Start:  at,
			Limit:  at + i.Attrs.SliceSizes[k],
			Stride: 1,
		}
	}
	return r.renamed(r.add(
		hlo.OpSlice, i.Shape.Dims,
		hlo.Attrs{Slice: ranges}, x,
	))
}

// constantStart is the value of a start index, clamped to [0, maxStart], when
// it is a constant.
func constantStart(s *hlo.Instr, maxStart int64) (int64, bool) {
	if maxStart == 0 {
		return 0, true
	}
	if s.Op != hlo.OpConstant || s.Literal == nil ||
		len(s.Literal.Ints) != 1 {
		return 0, false
	}
	return max(0, min(s.Literal.Ints[0], maxStart)), true
}

// dynamicUpdateSlice is itself with one scalar start a dimension.
func (r *rewriter) dynamicUpdateSlice(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	return r.withStarts(
		i, operands[:2], r.scalarStarts(operands[2:]),
	)
}

// scalarStarts are the start indices as scalars, one a dimension, also where
// HLO gives them as one array.
func (r *rewriter) scalarStarts(given []*hlo.Instr) []*hlo.Instr {
	if len(given) != 1 || given[0].Shape.Rank() != 1 {
		return given
	}
	out := make([]*hlo.Instr, given[0].Shape.Dims[0])
	for k := range out {
		one := r.add(
			hlo.OpSlice, []int64{1},
			hlo.Attrs{Slice: []hlo.SliceDim{{
				Start:  int64(k),
				Limit:  int64(k) + 1,
				Stride: 1,
			}}},
			given[0],
		)
		out[k] = r.add(
			hlo.OpReshape, nil, hlo.Attrs{}, one,
		)
	}
	return out
}

// withStarts is i with other start operands after its arrays.
func (r *rewriter) withStarts(i *hlo.Instr, arrays, starts []*hlo.Instr) *hlo.Instr {
	copied := *i
	copied.Operands = slices.Concat(arrays, starts)
	r.out.Instrs = append(r.out.Instrs, &copied)
	return &copied
}

// bitcast is a reshape when both layouts are row-major.
func (r *rewriter) bitcast(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	from := operands[0].Shape
	to := i.Shape
	if from.DType != to.DType ||
		len(from.Layout.Tiles)+len(to.Layout.Tiles) > 0 ||
		!slices.IsSorted(from.MajorToMinor()) ||
		!slices.IsSorted(to.MajorToMinor()) {
		return nil
	}
	return r.reshape(i, operands)
}

// reshape of a reshape is one reshape of what that reshapes; of an elementwise
// operation between reshapes that cancel, that operation without them; or
// nothing, where extents and layout stay.
func (r *rewriter) reshape(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	x := operands[0]
	for x.Op == hlo.OpReshape {
		x = x.Operands[0]
	}
	if slices.Equal(x.Shape.Dims, i.Shape.Dims) &&
		slices.Equal(x.Shape.MinorToMajor(), i.Shape.MinorToMajor()) {
		return x
	}
	if inner := r.cancelReshapes(x, i.Shape.Dims); inner != nil {
		return r.renamed(inner)
	}
	return r.renamed(r.add(
		hlo.OpReshape, i.Shape.Dims, hlo.Attrs{}, x,
	))
}

// cancelReshapes is the elementwise operation x, between reshapes that cancel,
// without them: x has one user, and its operands are reshapes of what has the
// extents dims, or scalars. It is nil for other operations.
func (r *rewriter) cancelReshapes(x *hlo.Instr, dims []int64) *hlo.Instr {
	if !x.Op.Elementwise() ||
		x.Op == hlo.OpBitcastConvert || r.uses[x] > 1 {
		return nil
	}
	operands := make([]*hlo.Instr, len(x.Operands))
	cancels := false
	for k, o := range x.Operands {
		switch {
		case o.Shape.Rank() == 0:
			operands[k] = o
		case o.Op == hlo.OpReshape &&
			slices.Equal(o.Operands[0].Shape.Dims, dims):
			operands[k], cancels = o.Operands[0], true
		case o.Op == hlo.OpBroadcast &&
			o.Operands[0].Shape.Rank() == 0:
			operands[k] = r.add(
				hlo.OpBroadcast, dims,
				hlo.Attrs{Dimensions: []int64{}},
				o.Operands[0],
			)
		default:
			return nil
		}
	}
	if !cancels {
		return nil
	}
	op := r.add(x.Op, dims, x.Attrs, operands...)
	op.Shape.DType = x.Shape.DType
	return op
}
