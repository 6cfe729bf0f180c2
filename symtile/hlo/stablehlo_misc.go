package hlo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo/packing"
)

// Lowerings of operations that HLO keeps as text, of collectives, of the chlo
// dialect, of which each operation is one of HLO's or a few of them, and of packs.

// apiVersions are HLO's names for api_version of custom_call; 1 is the default.
var apiVersions = map[int64]string{
	2: "API_VERSION_STATUS_RETURNING", 3: "API_VERSION_STATUS_RETURNING_UNIFIED", 4: "API_VERSION_TYPED_FFI",
}

// lowerCustomCall reads @target, api_version, backend_config and
// called_computations. The configuration is part of what the call computes, so
// it stays in the canonical form.
func lowerCustomCall(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	target := o.symbol
	if s, ok := o.attrs.find("call_target_name"); ok {
		target = m.unquoted(s)
	}
	if target == "" {
		return nil, m.Fail(o.at, "custom_call needs @target")
	}
	version, err := m.needInt(o, 1, "api_version")
	if err != nil {
		return nil, err
	}
	config := ""
	if s, ok := o.attrs.find("backend_config", "mhlo.backend_config"); ok &&
		m.text(s) != `""` {
		config = strings.Join(
			strings.Fields(m.text(s)), " ",
		)
	}
	i := m.result(b, o, OpCustomCall, o.operands...)
	if s, ok := o.attrs.find("called_computations"); ok {
		for _, name := range splitList(strings.Trim(m.text(s), "[]")) {
			m.calls = append(m.calls, mlirCall{
				i, "called_computations", strings.TrimPrefix(name, "@"), s.position,
			})
		}
	}
	return m.setAll(i, o, "custom_call_target", strconv.Quote(target),
		"custom_call_has_side_effect", trueText(m.flag(o.attrs, "has_side_effect")),
		"api_version", apiVersions[version], "backend_config", config)
}

// lowerRng drops the operand that says the shape: the type says it too.
func lowerRng(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	s, ok := o.attrs.find("distribution", "rng_distribution")
	if !ok {
		return nil, m.Fail(o.at, "rng needs distribution =")
	}
	i := m.result(b, o, OpRng, o.operands[:2]...)
	return m.setAll(
		i, o, "distribution",
		"rng_"+strings.ToLower(lastEnumWord(m.text(s))),
	)
}

// lowerRngBitGenerator reads algorithm = THREE_FRY and the like.
func lowerRngBitGenerator(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	s, ok := o.attrs.find("algorithm", "rng_algorithm")
	if !ok {
		return nil, m.Fail(o.at, "rng_bit_generator needs algorithm =")
	}
	name := strings.ToLower(lastEnumWord(m.text(s)))
	i := m.result(b, o, OpRngBitGenerator, o.operands...)
	return m.setAll(i, o, "algorithm", "rng_"+name)
}

// lowerFft reads type = RFFT and the like, and length = [16].
func lowerFft(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	kind, ok := o.attrs.find("type", "fft_type")
	if !ok {
		return nil, m.Fail(o.at, "fft needs type =")
	}
	length, err := m.needInts(o, "length", "fft_length")
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpFft, o.operands...)
	return m.setAll(
		i, o, "fft_type",
		lastEnumWord(m.text(kind)), "fft_length",
		braces(length),
	)
}

// lowerCholesky reads lower = true.
func lowerCholesky(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpCholesky, o.operands...)
	return m.setAll(
		i, o, "lower",
		trueText(m.flag(o.attrs, "lower")),
	)
}

// lowerTriangularSolve reads left_side, lower, unit_diagonal and transpose_a.
func lowerTriangularSolve(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	transpose := "NO_TRANSPOSE"
	if s, ok := o.attrs.find("transpose_a"); ok {
		transpose = lastEnumWord(m.text(s))
	}
	i := m.result(b, o, OpTriangularSolve, o.operands...)
	return m.setAll(
		i, o, "left_side",
		trueText(m.flag(o.attrs, "left_side")), "lower",
		trueText(m.flag(o.attrs, "lower")),
		"unit_diagonal", trueText(m.flag(o.attrs, "unit_diagonal")),
		"transpose_a", transpose,
	)
}

// lowerReducePrecision reads format = e8m10, or exponent_bits and mantissa_bits.
func lowerReducePrecision(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	var exponent, mantissa int64
	var err error
	if s, ok := o.attrs.find("format"); ok {
		n, _ := fmt.Sscanf(
			m.text(s), "e%dm%d", &exponent, &mantissa,
		)
		if n != 2 {
			return nil, m.Fail(
				s.position, "expected a format like e8m10, found %q", m.text(s),
			)
		}
	} else if exponent, err = m.needInt(o, 0, "exponent_bits"); err != nil {
		return nil, err
	} else if mantissa, err = m.needInt(o, 0, "mantissa_bits"); err != nil {
		return nil, err
	}
	i := m.result(b, o, OpReducePrecision, o.operands...)
	return m.setAll(
		i, o, "exponent_bits", fmt.Sprint(exponent),
		"mantissa_bits", fmt.Sprint(mantissa),
	)
}

// lowerBatchNorm reads epsilon and feature_index of the three batch_norm
// operations, whose HLO names differ by underscores only.
func lowerBatchNorm(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	s, ok := o.attrs.find("epsilon")
	if !ok {
		return nil, m.Fail(o.at, "%s needs epsilon =", o.name)
	}
	number, _, _ := strings.Cut(m.text(s), ":")
	epsilon, err := mlirFloat(strings.TrimSpace(number), F32)
	if err != nil {
		return nil, m.Fail(s.position, "epsilon is not a number")
	}
	feature, err := m.needInt(o, 0, "feature_index")
	if err != nil {
		return nil, err
	}
	i := m.result(
		b, o,
		Opcode(strings.ReplaceAll(o.name, "_", "-")),
		o.operands...,
	)
	return m.setAll(
		i, o, "epsilon",
		string(appendFloat(nil, epsilon, F32)), "feature_index",
		fmt.Sprint(feature),
	)
}

// lowerCollective writes the groups and dimensions of all-reduce and its like.
func lowerCollective(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(
		b, o,
		Opcode(strings.ReplaceAll(o.name, "_", "-")),
		o.operands...,
	)
	for from, to := range map[string]string{"replica_groups": "replica_groups", "source_target_pairs": "source_target_pairs"} {
		s, ok := o.attrs.find(from)
		if !ok {
			continue
		}
		groups, err := m.groups(s)
		if err != nil {
			return nil, err
		}
		if err := m.set(i, o, to, groups); err != nil {
			return nil, err
		}
	}
	dims, err := m.someInts(o.attrs, "all_gather_dim", "scatter_dimension", "split_dimension")
	if err != nil {
		return nil, err
	}
	i.Attrs.Dimensions = dims
	if s, ok := o.attrs.find("channel_handle"); ok {
		if err := m.channel(i, o, s); err != nil {
			return nil, err
		}
	}
	if err := m.set(
		i, o, "use_global_device_ids",
		trueText(m.flag(o.attrs, "use_global_device_ids")),
	); err != nil {
		return nil, err
	}
	if len(o.regions) > 0 {
		return m.apply(i, o, 0)
	}
	return i, nil
}

// channel reads the handle of channel_handle =
// #stablehlo.channel_handle<handle = 1, type = 0>.
func (m *mlir) channel(i *Instr, o *mlirOp, s span) error {
	parts, err := m.sub(s)
	if err != nil {
		return err
	}
	handle, _ := parts.find("handle")
	return m.set(i, o, "channel_id", m.text(handle))
}

// groups prints dense<[[0, 1], [2, -1]]> as {{0,1},{2}}: −1 fills up rows.
func (m *mlir) groups(s span) (string, error) {
	var l *Literal
	var splat bool
	err := m.within(s, func() (err error) {
		if err = m.expect("dense<"); err == nil {
			l, splat, err = m.dense()
		}
		return err
	})
	if err != nil {
		return "", err
	}
	n := l.Shape.Elements()
	if l.Shape.Rank() != 2 || n > maxAttrInts ||
		n > 0 && l.Ints == nil {
		return "", m.Fail(s.position, "groups are a list of lists of integers")
	}
	rows := make([]string, min(l.Shape.Dims[0], n))
	for r := range rows {
		var row []int64
		for c := range l.Shape.Dims[1] {
			v := l.Ints[0]
			if !splat {
				v = l.Ints[int64(r)*l.Shape.Dims[1]+c]
			}
			row = append(row, v)
		}
		rows[r] = braces(
			slices.DeleteFunc(row, func(v int64) bool { return v < 0 }),
		)
	}
	return "{" + strings.Join(rows, ",") + "}", nil
}

// chloDecomposed are operations of the chlo dialect that XLA takes apart.
var chloDecomposed = map[string]bool{
	"_asin_acos_kernel": true, "bessel_i1e": true, "conj": true, "constant_like": true, "digamma": true,
	"lgamma": true, "mulhi": true, "next_after": true, "polygamma": true, "ragged_dot": true, "scan": true, "zeta": true,
	"broadcast_select": true, "broadcast_next_after": true, "broadcast_polygamma": true, "broadcast_zeta": true,
}

// chloLowerings are the operations of the chlo dialect that HLO has, or that
// are a few of HLO's.
var chloLowerings = merge(chloBroadcasts(), merge(plainLowerings("chlo"), map[string]lowering{
	"constant": {0, 0, lowerConstant}, "top_k": {1, 0, lowerTopK},
	"atan": {1, 0, lowerAtan}, "square": {1, 0, lowerSquare},
	"erfc":   {1, 0, lowerErfc},
	"is_inf": {1, 0, lowerIsInf}, "is_pos_inf": {1, 0, lowerIsInf},
	"is_neg_inf": {1, 0, lowerIsInf},
}))

// chloBroadcasts are broadcast_add and so on: NumPy's broadcasting, then the operation.
func chloBroadcasts() map[string]lowering {
	all := map[string]lowering{}
	for _, op := range Opcodes() {
		_, operands := op.Arity()
		if operands == 2 && op.Has(plain) && op.Elementwise() {
			all["broadcast_"+mlirSpelling(op)] = lowering{
				2, 0, lowerBroadcasting(op),
			}
		}
	}
	all["broadcast_compare"] = lowering{2, 0, lowerBroadcasting(OpCompare)}
	return all
}

// lowerBroadcasting lowers chlo.broadcast_…: operands are broadcast to the
// result's extents, then op is applied.
func lowerBroadcasting(op Opcode) func(*mlir, *block, *mlirOp) (*Instr, error) {
	return func(
		m *mlir, b *block, o *mlirOp,
	) (*Instr, error) {
		if len(o.types) != 1 {
			return nil, m.Fail(o.at, "%s has one result", o.name)
		}
		for k, x := range o.operands {
			to := o.types[0]
			to.DType = x.Shape.DType
			if x.Shape.SameDims(to) {
				continue
			}
			dims, err := m.trailing(o, x, to)
			if err != nil {
				return nil, err
			}
			o.operands[k], err = m.broadcast(b, o, x, to, dims)
			if err != nil {
				return nil, err
			}
		}
		if op == OpCompare {
			return lowerCompare(m, b, o)
		}
		return m.result(b, o, op, o.operands...), nil
	}
}

// trailing are the dimensions a smaller operand has in a larger shape:
// broadcast_dimensions, or the last ones.
func (m *mlir) trailing(
	o *mlirOp, x *Instr, to Shape,
) ([]int64, error) {
	dims, err := m.someInts(o.attrs, "broadcast_dimensions")
	if err != nil ||
		len(dims) == x.Shape.Rank() && dims != nil {
		return dims, err
	}
	dims = []int64{}
	for k := range x.Shape.Dims {
		dims = append(
			dims,
			int64(to.Rank()-x.Shape.Rank()+k),
		)
	}
	return dims, nil
}

// lowerSquare is x·x.
func lowerSquare(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	return m.result(
		b, o, OpMultiply, o.operands[0], o.operands[0],
	), nil
}

// lowerAtan is atan2(x, 1).
func lowerAtan(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	x := o.operands[0]
	one := &Literal{
		Shape:  Shape{DType: x.Shape.DType, Dims: x.Shape.Dims},
		Floats: []float64{1},
	}
	if !x.Shape.DType.IsFloat() {
		return nil, m.Fail(o.at, "atan of %s", x.Shape)
	}
	return m.result(
		b, o, OpAtan2, x,
		m.constantOf(b, o.at, o.instrName("one")+".one", one, true),
	), nil
}

// lowerIsInf compares x, or |x|, with an infinity.
func lowerIsInf(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	x, sign := o.operands[0], 1
	if !x.Shape.DType.IsFloat() {
		return nil, m.Fail(
			o.at, "%s of %s", o.name, x.Shape,
		)
	}
	switch o.name {
	case "is_inf":
		x = m.add(
			b, o.at,
			o.instrName(OpAbs)+".abs", OpAbs,
			x.Shape, x,
		)
	case "is_neg_inf":
		sign = -1
	}
	infinity := &Literal{
		Shape:  Shape{DType: x.Shape.DType, Dims: x.Shape.Dims},
		Floats: []float64{math.Inf(sign)},
	}
	i := m.result(
		b, o, OpCompare, x,
		m.constantOf(b, o.at, o.instrName("inf")+".inf", infinity, true),
	)
	i.Attrs.Direction = "EQ"
	return i, nil
}

// lowerTopK reads top_k(%x, k = 4) : type -> (values, indices).
func lowerTopK(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	k, err := m.needInt(o, 1, "k")
	i := m.result(b, o, OpTopK, o.operands...)
	if err != nil {
		return nil, err
	}
	return m.setAll(
		i, o, "k", fmt.Sprint(k), "largest", "true",
	)
}

// An expansion appends the instructions that a StableHLO operation without an HLO
// opcode is taken apart into. All results have one shape.
type expansion struct {
	m     *mlir
	b     *block
	at    position
	name  string
	shape Shape
}

// op appends an elementwise operation.
func (e expansion) op(op Opcode, operands ...*Instr) *Instr {
	return e.m.add(e.b, e.at, e.name+"."+string(op), op, e.shape, operands...)
}

// constant is a number as an array.
func (e expansion) constant(x float64) *Instr {
	l := &Literal{Shape: e.shape, Floats: []float64{x}}
	return e.m.constantOf(e.b, e.at, e.name+".constant", l, true)
}

// greater compares two arrays.
func (e expansion) greater(x, y *Instr) *Instr {
	e.shape.DType = Pred
	i := e.op(OpCompare, x, y)
	i.Attrs.Direction = "GT"
	return i
}

// polynomial evaluates one by Horner's rule, the highest coefficient first.
func (e expansion) polynomial(x *Instr, coefficients []float64) *Instr {
	sum := e.constant(coefficients[0])
	for _, c := range coefficients[1:] {
		sum = e.op(OpAdd, e.op(OpMultiply, sum, x), e.constant(c))
	}
	return sum
}

// Coefficients of x·exp(x²)·erfc(x) as a polynomial in 1/x², for x from 1 to 2 and
// from 2 on: those of erfcf in Cephes (Moshier), which XLA uses.
var (
	erfcNear = []float64{
		2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1, 6.210004621745983e-1,
		-4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1,
	}
	erfcFar = []float64{
		-1.047766399936249e+1, 1.297719955372516e+1, -7.495518717768503, 2.921019019210786,
		-1.015265279202700, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1,
	}
)

// lowerErfc expands the complementary error function as XLA does: 1 − erf(x) for
// |x| ≤ 1, and beyond a polynomial, of which small results keep their digits.
// Types narrower than f32 are computed in f32.
func lowerErfc(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	x := o.operands[0]
	shape := Shape{DType: F32, Dims: x.Shape.Dims}
	e := expansion{m, b, o.at, o.instrName("erfc"), shape}
	switch x.Shape.DType {
	case F32:
		return e.erfc(x), nil
	case BF16, F16:
		return m.result(b, o, OpConvert, e.erfc(e.op(OpConvert, x))), nil
	}
	return nil, m.Fail(o.at, "erfc of %s is not read", x.Shape)
}

// erfc appends the expansion for f32.
func (e expansion) erfc(x *Instr) *Instr {
	one, zero, two := e.constant(1), e.constant(0), e.constant(2)
	size := e.op(OpAbs, x)
	inverse := e.op(OpDivide, one, size)
	square := e.op(OpMultiply, inverse, inverse)
	bell := e.op(OpExponential, e.op(OpNegate, e.op(OpMultiply, x, x)))
	series := e.op(
		OpSelect, e.greater(two, size),
		e.polynomial(square, erfcNear), e.polynomial(square, erfcFar),
	)
	tail := e.op(OpMultiply, e.op(OpMultiply, bell, inverse), series)
	tail = e.op(OpSelect, e.greater(zero, x), e.op(OpSubtract, two, tail), tail)
	near := e.op(OpSubtract, one, e.op(OpErf, x))
	return e.op(OpSelect, e.greater(size, one), tail, near)
}

// packLowerings are tensor.pack and tensor.unpack, which LLVM 20 renamed
// linalg.pack and linalg.unpack.
var packLowerings = map[string]lowering{
	"pack":   {-1, 0, lowerPack},
	"unpack": {-1, 0, lowerPack},
}

// lowerEmpty makes tensor.empty zeros. Its values are undefined; what takes it
// as the destination of a pack does not read it.
func lowerEmpty(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	if len(o.operands) > 0 || len(o.types) != 1 || !o.types[0].DType.IsArray() {
		return nil, m.Fail(o.at, "tensor.empty with extents that are known at run time is not supported")
	}
	zero := &Literal{Shape: o.types[0]}
	zero.fill(make([]byte, o.types[0].DType.Size()), 1)
	return m.constantOf(
		b, o.at, o.instrName(OpConstant), zero, true,
	), nil
}

// lowerPack lowers a pack to pad, reshape and transpose, and an unpack to
// transpose, reshape and slice, so that tiles and constraints propagate through
// them. Steps that change nothing are left out.
func lowerPack(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	p, x, padding, err := m.packing(o)
	if err != nil {
		return nil, err
	}
	split, perm := p.Split()
	s := packSteps{m, b, o}
	if p.Unpack {
		inverse := make([]int, len(perm))
		for i, d := range perm {
			inverse[d] = i
		}
		x = s.transpose(x, inverse)
		x = s.to(OpReshape, x, p.Padded())
		if x = s.to(OpSlice, x, p.Source); x.Op == OpSlice {
			for _, d := range p.Source {
				x.Attrs.Slice = append(x.Attrs.Slice, SliceDim{0, d, 1})
			}
		}
		return x, nil
	}
	if padded := p.Padded(); padding != nil && !slices.Equal(padded, p.Source) {
		x = s.to(OpPad, x, padded, padding)
		for k, d := range padded {
			x.Attrs.Padding = append(
				x.Attrs.Padding, PadDim{High: d - p.Source[k]},
			)
		}
	}
	return s.transpose(s.to(OpReshape, x, split), perm), nil
}

// packing reads the operands and attributes of a pack or unpack. Its pretty form
// has the padding value before the destination, its generic form after it;
// padding is nil where there is none.
func (m *mlir) packing(o *mlirOp) (p packing.Pack, source, padding *Instr, err error) {
	var dest *Instr
	for k, x := range o.operands {
		switch {
		case k == 0:
			source = x
		case x.Shape.Rank() == 0 && padding == nil && o.name == "pack":
			padding = x
			p.Padding = new(float64)
		case dest == nil:
			dest = x
		default:
			return p, nil, nil, m.Fail(o.at, "inner_tiles of %s are known at run time; only constant ones are supported", o.name)
		}
	}
	if dest == nil || len(o.types) != 1 {
		return p, nil, nil, m.Fail(o.at, "%s takes a source and a destination and has one result", o.name)
	}
	if err = m.packTypes(o, source, dest, padding); err != nil {
		return p, nil, nil, err
	}
	p.Source, p.To = source.Shape.Dims, dest.Shape.Dims
	if p.Unpack = o.name == "unpack"; p.Unpack {
		p.Source, p.To = p.To, p.Source
	}
	if err = m.packDims(o, &p); err == nil {
		if err = p.Check(); err != nil {
			err = m.Fail(o.at, "%s: %v", o.name, err)
		}
	}
	return p, source, padding, err
}

// packTypes checks that source, destination, padding value and result have one
// element type, and the result the extents of the destination.
func (m *mlir) packTypes(o *mlirOp, source, dest, padding *Instr) error {
	if !o.types[0].Compatible(dest.Shape) {
		return m.Fail(o.at, "%s has the result %s and the destination %s", o.name, o.types[0], dest.Shape)
	}
	if source.Shape.DType != dest.Shape.DType {
		return m.Fail(o.at, "%s of %s has the destination %s", o.name, source.Shape, dest.Shape)
	}
	if padding != nil && padding.Shape.DType != source.Shape.DType {
		return m.Fail(o.at, "the padding value is %s; it must be %s[]", padding.Shape, source.Shape.DType)
	}
	return nil
}

// packDims reads inner_tiles, inner_dims_pos and outer_dims_perm.
func (m *mlir) packDims(o *mlirOp, p *packing.Pack) (err error) {
	if s, ok := o.attrs.find("inner_tiles"); ok && strings.Contains(m.text(s), "%") {
		return m.Fail(o.at, "inner_tiles of %s are known at run time; only constant ones are supported", o.name)
	}
	if p.InnerTiles, err = m.needInts(o, "inner_tiles", "static_inner_tiles"); err != nil {
		return err
	}
	dims, err := m.needInts(o, "inner_dims_pos")
	if err != nil {
		return err
	}
	perm, err := m.someInts(o.attrs, "outer_dims_perm")
	if err != nil {
		return err
	}
	p.InnerDimsPos = dimNumbers(dims)
	if len(perm) > 0 { // the generic form has an empty list for none
		p.OuterDimsPerm = dimNumbers(perm)
	}
	return nil
}

// dimNumbers converts numbers of dimensions; one that no array has stays out of
// range.
func dimNumbers(xs []int64) []int {
	out := make([]int, len(xs))
	for k, x := range xs {
		out[k] = int(max(-1, min(x, maxRank+1)))
	}
	return out
}

// packSteps appends the steps of a pack, operation o.
type packSteps struct {
	m *mlir
	b *block
	o *mlirOp
}

// to appends an operation with a result of extents dims, unless x has them.
func (s packSteps) to(op Opcode, x *Instr, dims []int64, more ...*Instr) *Instr {
	if slices.Equal(x.Shape.Dims, dims) {
		return x
	}
	name := s.o.instrName(op)
	if !strings.HasPrefix(name, string(op)) {
		name += "." + string(op)
	}
	return s.m.add(
		s.b, s.o.at, name, op,
		Shape{DType: x.Shape.DType, Dims: dims},
		append([]*Instr{x}, more...)...,
	)
}

// transpose appends a transpose, unless it keeps the order.
func (s packSteps) transpose(x *Instr, perm []int) *Instr {
	if slices.IsSorted(perm) {
		return x
	}
	shape := Shape{DType: x.Shape.DType}
	var dims []int64
	for _, d := range perm {
		shape.Dims = append(shape.Dims, x.Shape.Dims[d])
		dims = append(dims, int64(d))
	}
	t := s.m.add(
		s.b, s.o.at, s.o.instrName(OpTranspose), OpTranspose, shape, x,
	)
	t.Attrs.Dimensions = dims
	return t
}
