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

// lowerSetDimensionSize has the operand's extent as its bound. Where the text says a
// smaller extent, it is a slice.
func lowerSetDimensionSize(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	d, err := m.needInt(o, 0, "dim", "dimension")
	if err != nil {
		return nil, err
	}
	x := o.operands[0].Shape
	if d < 0 || d >= int64(x.Rank()) {
		return nil, m.Fail(o.at, "%s has no dimension %d", x, d)
	}
	s := o.types[0]
	small := s.Bounded == nil && !s.open() &&
		s.Rank() == x.Rank() && s.Dims[d] < x.Dims[d]
	if !small {
		i := m.result(b, o, OpSetDimensionSize, o.operands...)
		i.Attrs.Dimensions = []int64{d}
		return i, nil
	}
	i := m.result(b, o, OpSlice, o.operands[0])
	for k, n := range x.Dims {
		if int64(k) == d {
			n = s.Dims[d]
		}
		i.Attrs.Slice = append(i.Attrs.Slice, SliceDim{0, n, 1})
	}
	return i, nil
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
	"_asin_acos_kernel": true, "bessel_i1e": true, "conj": true, "constant_like": true,
	"mulhi": true, "polygamma": true, "ragged_dot": true, "scan": true, "zeta": true,
	"broadcast_select": true, "broadcast_next_after": true, "broadcast_polygamma": true, "broadcast_zeta": true,
}

// chloLowerings are the operations of the chlo dialect that HLO has, or that
// are a few of HLO's.
var chloLowerings = merge(chloBroadcasts(), merge(plainLowerings("chlo"), map[string]lowering{
	"constant": {0, 0, lowerConstant}, "top_k": {1, 0, lowerTopK},
	"atan": {1, 0, lowerAtan}, "square": {1, 0, lowerSquare},
	"erfc":       {1, 0, lowerFunction(expansion.erfc)},
	"lgamma":     {1, 0, lowerFunction(expansion.lgamma)},
	"digamma":    {1, 0, lowerFunction(expansion.digamma)},
	"next_after": {2, 0, lowerNextAfter},
	"is_inf":     {1, 0, lowerIsInf}, "is_pos_inf": {1, 0, lowerIsInf},
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

// notOf is an operation of chlo that is not taken apart for the type of its operand.
func (m *mlir) notOf(b *block, o *mlirOp, x *Instr) *Instr {
	return m.opaque(b, o, fmt.Sprintf("its operand is %s; %s", x.Shape, lowerChlo))
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
		return m.notOf(b, o, x), nil
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
		return m.notOf(b, o, x), nil
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
// opcode is taken apart into. All results have one shape. Its methods append an
// operation each and return its value; constants are scalars that are broadcast, as
// those of the text are.
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
	x = e.shape.DType.RoundFloat(x)
	l := &Literal{
		Shape:  e.shape,
		Floats: []float64{x},
	}
	return e.m.constantOf(e.b, e.at, e.name+".constant", l, true)
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

// Coefficients of exp(x²)·erfc(x) as quotients of polynomials in x, for x from 1 to 8 and
// from 8 on: those of erfc in Cephes (Moshier), which XLA uses for f64.
var (
	erfcNear64 = [2][]float64{
		{
			2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1, 1.96520832956077098242e2,
			5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
		},
		{
			1, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
			1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2,
		},
	}
	erfcFar64 = [2][]float64{
		{
			5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414,
			6.16021097993053585195, 7.40974269950448939160, 2.97886665372100240670,
		},
		{
			1, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1,
			1.70814450747565897222e1, 9.60896809063285878198, 3.36907645100081516050,
		},
	}
)

// erfc appends the expansion of the complementary error function for f32 or f64, which is
// XLA's: 1 − erf(x) for |x| ≤ 1, and beyond polynomials, of which small results keep their
// digits.
func (e expansion) erfc(x *Instr) *Instr {
	one, zero, two := e.constant(1), e.constant(0), e.constant(2)
	size := e.op(OpAbs, x)
	tail := e.erfcTail(x, size, one, two)
	tail = e.op(OpSelect, e.compare(zero, "GT", x), e.op(OpSubtract, two, tail), tail)
	near := e.op(OpSubtract, one, e.op(OpErf, x))
	return e.op(OpSelect, e.compare(size, "GT", one), tail, near)
}

// erfcTail appends erfc of size, which is |x|, where that is over 1.
func (e expansion) erfcTail(x, size, one, two *Instr) *Instr {
	exponent := e.op(OpNegate, e.op(OpMultiply, x, x))
	bell := e.op(OpExponential, exponent)
	if e.shape.DType == F64 {
		return e.erfcTail64(size, exponent, bell)
	}
	inverse := e.op(OpDivide, one, size)
	square := e.op(OpMultiply, inverse, inverse)
	series := e.op(
		OpSelect, e.compare(two, "GT", size),
		e.polynomial(square, erfcNear), e.polynomial(square, erfcFar),
	)
	return e.op(OpMultiply, e.op(OpMultiply, bell, inverse), series)
}

// erfcTail64 is erfcTail for f64. Where the exponential would be denormal it is 0, which
// also takes the place of the NaN that the quotient of polynomials is at infinity.
func (e expansion) erfcTail64(size, exponent, bell *Instr) *Instr {
	const lowest = -7.09782712893383996843e2 // −log of the largest f64
	quotient := func(terms [2][]float64) *Instr {
		above := e.op(OpMultiply, bell, e.polynomial(size, terms[0]))
		return e.op(OpDivide, above, e.polynomial(size, terms[1]))
	}
	tail := e.op(
		OpSelect, e.compare(size, "LT", e.constant(8)),
		quotient(erfcNear64), quotient(erfcFar64),
	)
	small := e.compare(exponent, "LT", e.constant(lowest))
	return e.op(OpSelect, small, e.constant(0), tail)
}

// gammaShift and gammaTerms are Lanczos' approximation of the gamma function, g and the
// coefficients that go with it (gammaBase + Σ gammaTerms[k]/(z + k + 1)), of which
// StableHLO's decompositions are made: P. Godfrey, "A note on the computation of the
// convergent Lanczos complex gamma approximation", 2001.
const (
	gammaShift = 7
	gammaBase  = 0.99999999999980993227684700473478
	logRootTau = 0.91893853320467274178032973640562 // log √(2π)
)

var gammaTerms = []float64{
	676.520368121885098567009190444019, -1259.13921672240287047156078755283,
	771.3234287776530788486528258894, -176.61502916214059906584551354,
	12.507343278686904814458936853, -0.13857109526572011689554707,
	9.984369578019570859563e-6, 1.50563273514931155834e-7,
}

// lowerFunction is for functions of one number that HLO has no opcode for. Types
// narrower than f32 are computed in f32.
//
// The parts are those of XLA, in its order, so that the results are its own but for the
// last digits that its logarithms and sines differ by. bench/models/numerics.py compares
// them with XLA:CPU, kernels/reference with the functions themselves.
func lowerFunction(
	expand func(e expansion, x *Instr) *Instr,
) func(*mlir, *block, *mlirOp) (*Instr, error) {
	return func(
		m *mlir, b *block, o *mlirOp,
	) (*Instr, error) {
		x := o.operands[0]
		d := x.Shape.DType
		if !d.IsFloat() {
			return m.notOf(b, o, x), nil
		}
		e := m.expansion(b, o, d)
		if d == F32 || d == F64 {
			return expand(e, x), nil
		}
		e.shape.DType = F32
		return m.result(b, o, OpConvert, expand(e, e.op(OpConvert, x))), nil
	}
}

// compare relates two arrays.
func (e expansion) compare(x *Instr, direction string, y *Instr) *Instr {
	e.shape.DType = Pred
	i := e.op(OpCompare, x, y)
	i.Attrs.Direction = direction
	return i
}

// add, sub, mul and div append the four operations.
func (e expansion) add(x, y *Instr) *Instr {
	return e.op(OpAdd, x, y)
}

func (e expansion) sub(x, y *Instr) *Instr {
	return e.op(OpSubtract, x, y)
}

func (e expansion) mul(x, y *Instr) *Instr {
	return e.op(OpMultiply, x, y)
}

func (e expansion) div(x, y *Instr) *Instr {
	return e.op(OpDivide, x, y)
}

// lanczos begins the functions of the gamma family: whether x is on the left, where the
// function is reflected, the argument z that is computed with, and log(z + g + ½).
func (e expansion) lanczos(x *Instr) (left, z, logT *Instr) {
	half := e.constant(0.5)
	left = e.compare(x, "LT", half)
	one := e.constant(1)
	mirrored := e.op(OpNegate, x)
	z = e.sub(x, one)
	z = e.op(OpSelect, left, mirrored, z)
	shift := e.constant(gammaShift + 0.5)
	part := e.div(z, shift)
	part = e.op(OpLogPlusOne, part)
	logT = e.constant(math.Log(gammaShift + 0.5))
	return left, z, e.add(logT, part)
}

// lgamma appends log |Γ(x)|. With t = z + g + ½ and A the sum of the terms it is, on
// the right of ½,
//
//	log √2π + (z + ½ − t/log t)·log t + log A
//
// and on the left the reflection of that.
func (e expansion) lgamma(x *Instr) *Instr {
	left, z, logT := e.lanczos(x)
	sum := e.constant(gammaBase)
	for k, c := range gammaTerms {
		below := e.constant(float64(k + 1))
		below = e.add(z, below)
		term := e.div(e.constant(c), below)
		sum = e.add(sum, term)
	}
	t := e.constant(gammaShift + 0.5)
	t = e.add(t, z)
	power := e.add(z, e.constant(0.5))
	ratio := e.div(t, logT)
	power = e.sub(power, ratio)
	power = e.mul(power, logT)
	logSum := e.op(OpLog, sum)
	right := e.constant(logRootTau)
	right = e.add(right, power)
	right = e.add(right, logSum)
	size := e.op(OpAbs, x)
	reflected := e.reflectedGamma(size, right)
	y := e.op(OpSelect, left, reflected, right)
	infinity := e.constant(math.Inf(1))
	ends := e.compare(size, "EQ", infinity)
	return e.op(OpSelect, ends, infinity, y)
}

// reflectedGamma appends log π − log |sin πx| − right, for x of this absolute value. The
// sine is that of the distance to the nearest whole number, which loses no digits; at a
// pole its logarithm is not finite, and the result is an infinity.
func (e expansion) reflectedGamma(size, right *Instr) *Instr {
	floor := e.op(OpFloor, size)
	rest := e.sub(size, floor)
	half := e.constant(0.5)
	far := e.compare(half, "LT", rest)
	one := e.constant(1)
	other := e.sub(one, rest)
	rest = e.op(OpSelect, far, other, rest)
	pi := e.constant(math.Pi)
	sine := e.op(OpSine, e.mul(pi, rest))
	sine = e.op(OpLog, sine)
	logPi := e.constant(math.Log(math.Pi))
	y := e.sub(logPi, sine)
	y = e.sub(y, right)
	infinity := e.constant(math.Inf(1))
	length := e.op(OpAbs, sine)
	finite := e.compare(length, "LT", infinity)
	negated := e.op(OpNegate, sine)
	return e.op(OpSelect, finite, y, negated)
}

// digamma appends the derivative of log Γ(x): log t + A′/A − g/t, on the left of ½ less
// π·cot πx, and NaN at the poles 0, −1, −2, ….
func (e expansion) digamma(x *Instr) *Instr {
	left, z, logT := e.lanczos(x)
	upper := e.constant(0)
	lower := e.constant(gammaBase)
	for k, c := range gammaTerms {
		below := e.constant(float64(k + 1))
		below = e.add(z, below)
		square := e.mul(below, below)
		term := e.constant(c)
		slope := e.div(term, square)
		upper = e.sub(upper, slope)
		term = e.div(term, below)
		lower = e.add(lower, term)
	}
	t := e.constant(gammaShift + 0.5)
	t = e.add(t, z)
	y := e.div(upper, lower)
	y = e.add(logT, y)
	shift := e.constant(gammaShift)
	shift = e.div(shift, t)
	y = e.sub(y, shift)
	reflected := e.sub(y, e.cotangent(x))
	y = e.op(OpSelect, left, reflected, y)
	zero := e.constant(0)
	positive := e.compare(x, "GT", zero)
	nan := e.constant(math.NaN())
	atPole := e.op(OpSelect, positive, y, nan)
	floor := e.op(OpFloor, x)
	pole := e.compare(x, "EQ", floor)
	return e.op(OpSelect, pole, atPole, y)
}

// cotangent appends π·cot πx for x < ½. The whole number next to x is added first: the
// cotangent has the period 1, and a small angle keeps its digits.
func (e expansion) cotangent(x *Instr) *Instr {
	pi := e.constant(math.Pi)
	whole := e.add(x, e.constant(0.5))
	whole = e.op(OpFloor, whole)
	whole = e.op(OpAbs, whole)
	angle := e.add(x, whole)
	angle = e.mul(pi, angle)
	upper := e.op(OpCosine, angle)
	upper = e.mul(pi, upper)
	return e.div(upper, e.op(OpSine, angle))
}

// bitsOf is the unsigned type as wide as a type of floating-point numbers.
var bitsOf = map[DType]DType{
	F64: U64, F32: U32, F16: U16, BF16: U16,
}

// lowerNextAfter expands the number after x in the direction of y: the bits of x, one
// more where it moves away from zero, one less where it moves to it. Where either is NaN
// the result is; where they are equal it is y, which of two zeros says the sign.
func lowerNextAfter(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	x := o.operands[0]
	y := o.operands[1]
	d := x.Shape.DType
	switch {
	case !x.Shape.Compatible(y.Shape):
		return nil, m.Fail(o.at, "next_after of %s and %s", x.Shape, y.Shape)
	case bitsOf[d] == InvalidDType:
		return m.notOf(b, o, x), nil
	}
	e := m.expansion(b, o, d)
	bits := m.expansion(b, o, bitsOf[d])
	next := bits.after(
		bits.op(OpBitcastConvert, x),
		bits.op(OpBitcastConvert, y),
	)
	same := e.compare(x, "EQ", y)
	number := e.op(OpBitcastConvert, next)
	number = e.op(OpSelect, same, y, number)
	nan := e.constant(math.NaN())
	ofX := e.compare(x, "EQ", x)
	ofY := e.compare(y, "EQ", y)
	known := e.logical(OpAnd, ofX, ofY)
	return e.op(OpSelect, known, number, nan), nil
}

// expansion begins the expansion of o, with results of a type and the extents of its
// operands.
func (m *mlir) expansion(b *block, o *mlirOp, d DType) expansion {
	shape := Shape{
		DType: d,
		Dims:  o.operands[0].Shape.Dims,
	}
	name := o.instrName(Opcode(o.name))
	return expansion{m, b, o.at, name, shape}
}

// logical combines two predicates.
func (e expansion) logical(op Opcode, x, y *Instr) *Instr {
	e.shape.DType = Pred
	return e.op(op, x, y)
}

// whole is a whole number as an array, by the bits of its type.
func (e expansion) whole(v uint64) *Instr {
	l := &Literal{
		Shape: e.shape,
		Ints:  []int64{int64(v)},
	}
	return e.m.constantOf(e.b, e.at, e.name+".constant", l, true)
}

// after is the bits of the number after x in the direction of y, another number. Zero
// moves to the least number of y's sign.
func (e expansion) after(x, y *Instr) *Instr {
	top := uint64(1) << (e.shape.DType.Bits() - 1)
	sign := e.whole(top)
	size := e.whole(top - 1)
	one := e.whole(1)
	sizeX := e.op(OpAnd, x, size)
	sizeY := e.op(OpAnd, y, size)
	signX := e.op(OpAnd, x, sign)
	signY := e.op(OpAnd, y, sign)
	turns := e.compare(signX, "NE", signY)
	smaller := e.compare(sizeX, "GT", sizeY)
	smaller = e.logical(OpOr, turns, smaller)
	next := e.add(x, one)
	before := e.sub(x, one)
	next = e.op(OpSelect, smaller, before, next)
	zero := e.whole(0)
	isZero := e.compare(sizeX, "EQ", zero)
	least := e.op(OpOr, signY, one)
	return e.op(OpSelect, isZero, least, next)
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
