package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A testCase is one fusion of one shape.
type testCase struct {
	// Names the fusion, its row in families and the operation of the drivers.
	family string
	// Dimensions of the fusion; the first one counts the rows in a fusion that
	// is bound by memory.
	dims []int64
	// The file of a fusion of a model, without its folder and ending; it has no dims.
	name string
}

func (c testCase) String() string {
	return c.family + " " + c.shape()
}

// shape formats the dimensions: "256×1024".
func (c testCase) shape() string {
	if c.name != "" {
		return c.name
	}
	text := make([]string, len(c.dims))
	for k, d := range c.dims {
		text[k] = strconv.FormatInt(d, 10)
	}
	return strings.Join(text, "×")
}

// A family is a fusion of any shape.
type family struct {
	// The table that the cases stand in; see sections.
	section section
	// The fusion is measured against the roof, which is the rate of copying.
	memory bool
	// The fusion writes little: its roof is the rate of reading.
	reads bool
	// Fewer rows are the same code, so that the code can be timed in the first
	// cache.
	rows bool
	// Operations of a shape.
	flops func(d []int64) int64
	// Bytes that a shape moves, where they are not those of its inputs and outputs.
	moves func(d []int64) int64
	// HLO text of a shape.
	text func(d []int64) string
}

// multiplyAdds counts the operations of a matrix product m×n×k.
func multiplyAdds(d []int64) int64 {
	return 2 * d[0] * d[1] * d[2]
}

// attentionFLOPs counts the operations of the two products of attention, in heads ×
// sequence × width.
func attentionFLOPs(d []int64) int64 { return 4 * d[0] * d[1] * d[1] * d[2] }

// convFLOPs counts the operations of a convolution of N, H, W, C, kernel, output
// channels, stride; products with the zeros at the sides count as well.
func convFLOPs(d []int64) int64 {
	return 2 * d[0] * strides(d[1], d[6]) * strides(d[2], d[6]) * d[3] * d[4] * d[4] * d[5]
}

// strides is how often a window of an odd size, with half of it as zeros at both
// sides, is laid over n elements.
func strides(n, stride int64) int64 { return (n-1)/stride + 1 }

// gathered counts the bytes of rows, table × width × tokens, that are read and
// written, and of their numbers.
func gathered(d []int64) int64 { return d[2] * (8*d[1] + 4) }

// families are the fusions of the benchmark. gelu is the approximation by tanh,
// which oneDNN has too.
var families = map[string]family{
	// Products of matrices: bound by arithmetic, except where one side is flat.
	"sgemm":    {section: products, flops: multiplyAdds, text: sgemmText},
	"bf16gemm": {section: products, flops: multiplyAdds, text: bf16gemmText},
	"s8gemm":   {section: products, flops: multiplyAdds, text: s8gemmText},
	// Products of a matrix and a vector: bound by reading the matrix, which a copy of
	// as many bytes does not have to do as fast.
	"gemv":         {section: vectors, memory: true, reads: true, text: gemvText},
	"gemv_columns": {section: vectors, memory: true, reads: true, text: gemvColumnsText},
	"gevm":         {section: vectors, memory: true, reads: true, text: gevmText},
	"gevm_rows":    {section: vectors, memory: true, reads: true, text: gevmRowsText},
	// Two products with a softmax between them, as one fusion.
	"attention":     {section: attentions, flops: attentionFLOPs, text: attentionText},
	"bf16attention": {section: attentions, flops: attentionFLOPs, text: bf16attentionText},
	// Normalisations of rows: two passes over rows that stay in a cache.
	"layernorm": {section: rowFusions, memory: true, rows: true, text: layernormText},
	"rmsnorm":   {section: rowFusions, memory: true, rows: true, text: rmsnormText},
	"softmax":   {section: rowFusions, memory: true, rows: true, text: softmaxText},
	// Elementwise fusions: one pass, with more or less arithmetic.
	"gelu":      {section: rowFusions, memory: true, rows: true, text: geluText},
	"bias_gelu": {section: rowFusions, memory: true, rows: true, text: biasGeluText},
	"chain":     {section: rowFusions, memory: true, rows: true, text: chainText},
	"add":       {section: rowFusions, memory: true, rows: true, text: addText},
	// Sums: reading alone.
	"row_sum":    {section: rowFusions, memory: true, reads: true, rows: true, text: rowSumText},
	"column_sum": {section: rowFusions, memory: true, reads: true, rows: true, text: columnSumText},
	// The place of the largest element of a row, sums of all elements up to each, and
	// rows picked from a table.
	"argmax":    {section: rowFusions, memory: true, reads: true, rows: true, text: argmaxText},
	"cumsum":    {section: rowFusions, memory: true, rows: true, text: cumsumText},
	"embedding": {section: rowFusions, memory: true, moves: gathered, text: embeddingText},
	// Transposes: reading and writing in different orders.
	"transpose":      {section: rowFusions, memory: true, text: transposeText},
	"gemm_bias_gelu": {section: products, flops: multiplyAdds, text: gemmBiasGeluText},
	"swap":           {section: rowFusions, memory: true, text: swapText},
	// Convolutions of ResNet-50.
	"conv":   {section: convolutions, flops: convFLOPs, text: convText},
	"s8conv": {section: convolutions, flops: convFLOPs, text: s8convText},
	// Fusions of bench/models, from files.
	"model": {section: models},
}

// essentialCases are those of every table, the most telling ones first: what a run
// with -essential measures.
func essentialCases() []testCase {
	return slices.Concat(
		classicCases(), attentionCases("attention")[2:5], productCases("bf16gemm")[1:3], productCases("s8gemm")[1:3],
		modelCases()[:min(12, len(modelCases()))], someOf(convCases("conv"), 4), someOf(convCases("s8conv"), 4),
		otherCases(), attentionCases("bf16attention")[2:5],
	)
}

// allCases are the cases of the full benchmark, those of a run with -essential first.
func allCases() []testCase {
	return distinct(slices.Concat(
		essentialCases(), productCases("bf16gemm"), productCases("s8gemm"), attentionCases("attention"),
		modelCases(), convCases("conv"), convCases("s8conv"), attentionCases("bf16attention"),
	))
}

// someOf is every step-th case.
func someOf(all []testCase, step int) (some []testCase) {
	for k := 0; k < len(all); k += step {
		some = append(some, all[k])
	}
	return some
}

// distinct leaves out what was there before.
func distinct(all []testCase) (once []testCase) {
	seen := map[string]bool{}
	for _, c := range all {
		if !seen[c.String()] {
			seen[c.String()] = true
			once = append(once, c)
		}
	}
	return once
}

// shapes are cases of one family, by their dimensions: "256×1024".
func shapes(family string, dims ...string) (all []testCase) {
	for _, d := range dims {
		c, err := namedCase(family, d)
		if err != nil {
			panic(err) // the text is of this file
		}
		all = append(all, c)
	}
	return all
}

// classicCases are products, norms, elementwise fusions, sums, transposes and one
// attention, of 32-bit floats.
func classicCases() []testCase {
	return slices.Concat(
		// Matrix products: squares that fit the caches and squares that do not,
		// flat and tall ones, a long contraction, and one row.
		shapes(
			"sgemm", "256×256×256", "512×512×512", "1024×1024×1024",
			"2048×2048×2048", "64×4096×1024", "4096×64×4096",
			"4096×4096×64", "128×128×8192", "1×4096×4096",
		),
		// A matrix of 64 MiB by a vector, with the matrix lying either way.
		shapes("gemv", "4096×4096"),
		shapes("gemv_columns", "4096×4096"),
		shapes("gevm", "4096×4096"),
		shapes("gevm_rows", "4096×4096"),
		// Rows of a transformer: normalisations, activations and sums.
		shapes("layernorm", "4096×1024"),
		shapes("rmsnorm", "4096×1024"),
		shapes("softmax", "4096×1024"),
		shapes("gelu", "4096×1024"),
		shapes("bias_gelu", "4096×1024"),
		shapes("chain", "4096×1024"),
		shapes("add", "4096×1024"),
		shapes("row_sum", "8192×1024"),
		shapes("column_sum", "8192×1024"),
		// Transposes: of a power of two, whose columns collide in caches, of
		// another size, and the exchange of sequence and heads.
		shapes("transpose", "4096×4096", "3000×2000"),
		shapes("swap", "8×1024×16×64"),
		// Four heads of attention.
		shapes("attention", "4×1024×64"),
	)
}

// productCases are squares of a family.
func productCases(family string) (all []testCase) {
	for n := int64(256); n <= 4096; n *= 2 {
		all = append(all, testCase{family: family, dims: []int64{n, n, n}})
	}
	return all
}

// attentionCases are eight heads of several lengths.
func attentionCases(family string) (all []testCase) {
	for n := int64(128); n <= 4096; n *= 2 {
		all = append(all, testCase{family: family, dims: []int64{8, n, 64}})
	}
	return all
}

// otherCases are the place of a maximum in the scores of a vocabulary, cumulative sums,
// and rows of a table of 32,000 words.
func otherCases() []testCase {
	return slices.Concat(
		shapes("argmax", "512×32000"),
		shapes("cumsum", "512×1024"),
		shapes("embedding", "32000×1024×4096"),
	)
}

// convCases are the 20 different convolutions of ResNet-50 with one image of 224×224:
// N, H, W, C, kernel, output channels, stride. The first of a stage has the stride.
func convCases(family string) []testCase {
	return shapes(
		family,
		"1×224×224×3×7×64×2", "1×56×56×64×1×64×1", "1×56×56×64×3×64×1", "1×56×56×64×1×256×1",
		"1×56×56×256×1×64×1",
		"1×56×56×256×1×128×2", "1×56×56×256×1×512×2", "1×28×28×128×3×128×1", "1×28×28×128×1×512×1",
		"1×28×28×512×1×128×1",
		"1×28×28×512×1×256×2", "1×28×28×512×1×1024×2", "1×14×14×256×3×256×1", "1×14×14×256×1×1024×1",
		"1×14×14×1024×1×256×1",
		"1×14×14×1024×1×512×2", "1×14×14×1024×1×2048×2", "1×7×7×512×3×512×1", "1×7×7×512×1×2048×1",
		"1×7×7×2048×1×512×1",
	)
}

// quickCases have every family in small shapes, for a run of a minute.
func quickCases() []testCase {
	return slices.Concat(
		// The families in the order of classicCases, in shapes that fit the caches.
		shapes("sgemm", "256×256×256"),
		shapes("sgemm", "1×1024×2048"),
		shapes("gemv", "1024×2048"),
		shapes("gemv_columns", "1024×2048"),
		shapes("gevm", "1024×2048"),
		shapes("gevm_rows", "1024×2048"),
		shapes("layernorm", "256×1024"),
		shapes("rmsnorm", "256×1024"),
		shapes("softmax", "256×1024"),
		shapes("gelu", "256×1024"),
		shapes("bias_gelu", "256×1024"),
		shapes("chain", "256×1024"),
		shapes("add", "512×1024"),
		shapes("row_sum", "512×1024"),
		shapes("column_sum", "512×1024"),
		shapes("transpose", "512×512"),
		shapes("swap", "2×128×16×64"),
		shapes("attention", "1×256×64"),
		shapes("bf16attention", "1×256×64"),
		shapes("bf16gemm", "256×256×256"),
		shapes("s8gemm", "256×256×256"),
		shapes("conv", "1×28×28×64×3×64×1"),
		shapes("s8conv", "1×28×28×64×3×64×1"),
		shapes("argmax", "64×1024"),
		shapes("cumsum", "64×256"),
		shapes("embedding", "1000×256×512"),
	)
}

// reciprocal and rootReciprocal are 1/d and 1/√d, rounded to f32: the constants
// of means and of attention scores.
func reciprocal(d int64) float32 { return float32(1 / float64(d)) }
func rootReciprocal(d int64) float32 {
	return float32(1 / math.Sqrt(float64(d)))
}

// fillDims replaces $0, $1, … in a text by the dimensions.
func fillDims(text string, d []int64) string {
	for k, v := range d {
		text = strings.ReplaceAll(
			text, "$"+strconv.Itoa(k), strconv.FormatInt(v, 10),
		)
	}
	return text
}

// sgemmText is x·y of m×k and k×n matrices in rows.
func sgemmText(d []int64) string {
	return fillDims(`x = f32[$0,$2] parameter(0)
y = f32[$2,$1] parameter(1)
sgemm = f32[$0,$1] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, d)
}

// bf16gemmText is the product of bfloat16 with a result of f32.
func bf16gemmText(d []int64) string {
	return fillDims(`x = bf16[$0,$2] parameter(0)
y = bf16[$2,$1] parameter(1)
bf16gemm = f32[$0,$1] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, d)
}

// s8gemmText is the product of bytes with a result of s32.
func s8gemmText(d []int64) string {
	return fillDims(`x = s8[$0,$2] parameter(0)
y = s8[$2,$1] parameter(1)
s8gemm = s32[$0,$1] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, d)
}

// convText is the convolution of images N×H×W×C with weights kernel×kernel×C×O.
func convText(d []int64) string { return convOf(d, "conv", "f32", "f32") }

// s8convText is the same of bytes with a result of s32.
func s8convText(d []int64) string { return convOf(d, "s8conv", "s8", "s32") }

// convOf is a convolution from one type to another.
func convOf(d []int64, name, from, to string) string {
	text := fillDims(`x = FROM[$0,$1,$2,$3] parameter(0)
w = FROM[$4,$4,$3,$5] parameter(1)
NAME = TO[$0,HEIGHT,WIDTH,$5] convolution(x, w), window={size=$4x$4 stride=$6x$6 pad=SIDE_SIDExSIDE_SIDE}, dim_labels=b01f_01io->b01f`, d)
	return strings.NewReplacer(
		"FROM", from, "TO", to, "NAME", name,
		"HEIGHT", fmt.Sprint(strides(d[1], d[6])), "WIDTH", fmt.Sprint(strides(d[2], d[6])), "SIDE", fmt.Sprint(d[4]/2),
	).Replace(text)
}

// argmaxText is the largest element of every row and the first place of it.
func argmaxText(d []int64) string {
	return fillDims(`HloModule argmax
larger {
  v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(v, w), direction=GT
  same = pred[] compare(v, w), direction=EQ
  first = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, first)
  keep = pred[] or(more, tie)
  value = f32[] select(keep, v, w)
  place = s32[] select(keep, i, j)
  ROOT both = (f32[], s32[]) tuple(value, place)
}
ENTRY argmax {
  x = f32[$0,$1] parameter(0)
  places = s32[$0,$1] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  last = s32[] constant(2147483647)
  ROOT argmax = (f32[$0], s32[$0]) reduce(x, places, low, last), dimensions={1}, to_apply=larger
}`, d)
}

// cumsumText is the sum of the elements of a row up to each, as jax.numpy.cumsum is
// lowered: a window that ends at the element.
func cumsumText(d []int64) string {
	return fillDims(fmt.Sprintf(`x = f32[$0,$1] parameter(0)
zero = f32[] constant(0)
cumsum = f32[$0,$1] reduce-window(x, zero), window={size=1x$1 pad=0_0x%d_0}, to_apply=add`, d[1]-1), d)
}

// embeddingText picks rows of a table by their numbers.
func embeddingText(d []int64) string {
	return fillDims(`table = f32[$0,$1] parameter(0)
tokens = s32[$2] parameter(1)
embedding = f32[$2,$1] gather(table, tokens), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,$1}`, d)
}

// gemvText is a matrix in rows times a vector.
func gemvText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
y = f32[$1,1] parameter(1)
gemv = f32[$0,1] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, d)
}

// gemvColumnsText is a matrix in columns times a vector.
func gemvColumnsText(d []int64) string {
	return fillDims(`x = f32[$1,$0] parameter(0)
y = f32[$1,1] parameter(1)
gemv_columns = f32[$0,1] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}`, d)
}

// gevmText is a vector times a matrix in rows.
func gevmText(d []int64) string {
	return fillDims(`x = f32[1,$1] parameter(0)
y = f32[$1,$0] parameter(1)
gevm = f32[1,$0] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, d)
}

// gevmRowsText is a vector times a matrix that is contracted along its rows.
func gevmRowsText(d []int64) string {
	return fillDims(`x = f32[1,$1] parameter(0)
y = f32[$0,$1] parameter(1)
gevm_rows = f32[1,$0] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}`, d)
}

// attentionText is softmax(q·kᵀ/√width)·v for every head.
func attentionText(d []int64) string {
	return weightsText(d, "f32") + fillDims(`attention = f32[$0,$1,$2] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}`, d)
}

// bf16attentionText is the same of bfloat16: softmax and both sums are of f32, weights are
// rounded before they are multiplied.
func bf16attentionText(d []int64) string {
	return weightsText(d, "bf16") + fillDims(`rounded = bf16[$0,$1,$1] convert(p)
sums_of_v = f32[$0,$1,$2] dot(rounded, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
bf16attention = bf16[$0,$1,$2] convert(sums_of_v)`, d)
}

// weightsText is p, the weights of attention, of q and k in a type, and v.
func weightsText(d []int64, kind string) string {
	return fillDims(fmt.Sprintf(`q = %[2]s[$0,$1,$2] parameter(0)
k = %[2]s[$0,$1,$2] parameter(1)
v = %[2]s[$0,$1,$2] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
scale = f32[] constant(%[1]v)
scales = f32[$0,$1,$1] broadcast(scale), dimensions={}
dot = f32[$0,$1,$1] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
scores = f32[$0,$1,$1] multiply(dot, scales)
max = f32[$0,$1] reduce(scores, low), dimensions={2}, to_apply=maximum
maxes = f32[$0,$1,$1] broadcast(max), dimensions={0,1}
less = f32[$0,$1,$1] subtract(scores, maxes)
e = f32[$0,$1,$1] exponential(less)
sum = f32[$0,$1] reduce(e, zero), dimensions={2}, to_apply=add
sums = f32[$0,$1,$1] broadcast(sum), dimensions={0,1}
p = f32[$0,$1,$1] divide(e, sums)
`, rootReciprocal(d[2]), kind), d)
}

// layernormText normalises rows: (x − mean)·rsqrt(variance + 10⁻⁵)·γ + β.
func layernormText(d []int64) string {
	return fillDims(fmt.Sprintf(`x = f32[$0,$1] parameter(0)
gamma = f32[$1] parameter(1)
beta = f32[$1] parameter(2)
zero = f32[] constant(0)
n = f32[] constant(%v)
ns = f32[$0] broadcast(n), dimensions={}
tiny = f32[] constant(1e-05)
tinies = f32[$0] broadcast(tiny), dimensions={}
sum = f32[$0] reduce(x, zero), dimensions={1}, to_apply=add
mean = f32[$0] multiply(sum, ns)
means = f32[$0,$1] broadcast(mean), dimensions={0}
centred = f32[$0,$1] subtract(x, means)
squares = f32[$0,$1] multiply(centred, centred)
sum2 = f32[$0] reduce(squares, zero), dimensions={1}, to_apply=add
variance = f32[$0] multiply(sum2, ns)
above = f32[$0] add(variance, tinies)
r = f32[$0] rsqrt(above)
rs = f32[$0,$1] broadcast(r), dimensions={0}
scaled = f32[$0,$1] multiply(centred, rs)
gammas = f32[$0,$1] broadcast(gamma), dimensions={1}
weighted = f32[$0,$1] multiply(scaled, gammas)
betas = f32[$0,$1] broadcast(beta), dimensions={1}
layernorm = f32[$0,$1] add(weighted, betas)`, reciprocal(d[1])), d)
}

// rmsnormText scales rows: x·rsqrt(mean(x²) + 10⁻⁶)·γ.
func rmsnormText(d []int64) string {
	return fillDims(fmt.Sprintf(`x = f32[$0,$1] parameter(0)
gamma = f32[$1] parameter(1)
zero = f32[] constant(0)
n = f32[] constant(%v)
ns = f32[$0] broadcast(n), dimensions={}
tiny = f32[] constant(1e-06)
tinies = f32[$0] broadcast(tiny), dimensions={}
squares = f32[$0,$1] multiply(x, x)
sum = f32[$0] reduce(squares, zero), dimensions={1}, to_apply=add
mean = f32[$0] multiply(sum, ns)
above = f32[$0] add(mean, tinies)
r = f32[$0] rsqrt(above)
rs = f32[$0,$1] broadcast(r), dimensions={0}
scaled = f32[$0,$1] multiply(x, rs)
gammas = f32[$0,$1] broadcast(gamma), dimensions={1}
rmsnorm = f32[$0,$1] multiply(scaled, gammas)`, reciprocal(d[1])), d)
}

// softmaxText is exp(x − max)/Σ exp(x − max) of every row.
func softmaxText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
max = f32[$0] reduce(x, low), dimensions={1}, to_apply=maximum
maxes = f32[$0,$1] broadcast(max), dimensions={0}
less = f32[$0,$1] subtract(x, maxes)
e = f32[$0,$1] exponential(less)
sum = f32[$0] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[$0,$1] broadcast(sum), dimensions={0}
softmax = f32[$0,$1] divide(e, sums)`, d)
}

// geluOf is x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of a value called x.
const geluOf = `half = f32[] constant(0.5)
halves = f32[$0,$1] broadcast(half), dimensions={}
one = f32[] constant(1)
ones = f32[$0,$1] broadcast(one), dimensions={}
cubic = f32[] constant(0.044715)
cubics = f32[$0,$1] broadcast(cubic), dimensions={}
root = f32[] constant(0.7978845608)
roots = f32[$0,$1] broadcast(root), dimensions={}
square = f32[$0,$1] multiply(x, x)
bent = f32[$0,$1] multiply(square, cubics)
factor = f32[$0,$1] add(bent, ones)
inner = f32[$0,$1] multiply(x, factor)
argument = f32[$0,$1] multiply(inner, roots)
t = f32[$0,$1] tanh(argument)
above = f32[$0,$1] add(t, ones)
part = f32[$0,$1] multiply(x, halves)
gelu = f32[$0,$1] multiply(part, above)`

// geluText is gelu of a parameter.
func geluText(d []int64) string { return fillDims("x = f32[$0,$1] parameter(0)\n"+geluOf, d) }

// biasGeluText is gelu of a parameter plus a row.
func biasGeluText(d []int64) string {
	return fillDims(`a = f32[$0,$1] parameter(0)
bias = f32[$1] parameter(1)
biases = f32[$0,$1] broadcast(bias), dimensions={1}
x = f32[$0,$1] add(a, biases)
`+geluOf, d)
}

// gemmBiasGeluText is gelu of a matrix product plus a row.
func gemmBiasGeluText(d []int64) string {
	return fillDims(`p = f32[$0,$2] parameter(0)
q = f32[$2,$1] parameter(1)
bias = f32[$1] parameter(2)
dot = f32[$0,$1] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
biases = f32[$0,$1] broadcast(bias), dimensions={1}
x = f32[$0,$1] add(dot, biases)
`+geluOf, d)
}

// chainText is a chain of eight elementwise operations on a matrix and a row.
func chainText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
row = f32[$1] parameter(1)
rows = f32[$0,$1] broadcast(row), dimensions={1}
zero = f32[] constant(0)
zeros = f32[$0,$1] broadcast(zero), dimensions={}
half = f32[] constant(0.5)
halves = f32[$0,$1] broadcast(half), dimensions={}
a = f32[$0,$1] add(x, rows)
b = f32[$0,$1] multiply(a, halves)
c = f32[$0,$1] maximum(b, zeros)
d = f32[$0,$1] subtract(c, x)
e = f32[$0,$1] abs(d)
f = f32[$0,$1] multiply(e, rows)
g = f32[$0,$1] minimum(f, x)
chain = f32[$0,$1] add(g, halves)`, d)
}

// addText is the sum of two matrices.
func addText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
y = f32[$0,$1] parameter(1)
add = f32[$0,$1] add(x, y)`, d)
}

// rowSumText is the sum of every row.
func rowSumText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
zero = f32[] constant(0)
row_sum = f32[$0] reduce(x, zero), dimensions={1}, to_apply=add`, d)
}

// columnSumText is the sum of every column.
func columnSumText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
zero = f32[] constant(0)
column_sum = f32[$1] reduce(x, zero), dimensions={0}, to_apply=add`, d)
}

// transposeText is the transpose of a matrix.
func transposeText(d []int64) string {
	return fillDims(`x = f32[$0,$1] parameter(0)
transpose = f32[$1,$0] transpose(x), dimensions={1,0}`, d)
}

// swapText exchanges the two middle dimensions of four.
func swapText(d []int64) string {
	return fillDims(`x = f32[$0,$1,$2,$3] parameter(0)
swap = f32[$0,$2,$1,$3] transpose(x), dimensions={0,2,1,3}`, d)
}
