package main

import (
	"fmt"
	"math"
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
}

func (c testCase) String() string {
	return c.family + " " + c.shape()
}

// shape formats the dimensions: "256×1024".
func (c testCase) shape() string {
	text := make([]string, len(c.dims))
	for k, d := range c.dims {
		text[k] = strconv.FormatInt(d, 10)
	}
	return strings.Join(text, "×")
}

// A family is a fusion of any shape, and what it is measured against.
type family struct {
	// The driver that has the operation; "" for none.
	peer string
	// The fusion is measured against the roof, which is the rate of copying.
	memory bool
	// The fusion writes little: its roof is the rate of reading.
	reads bool
	// Fewer rows are the same code, so that the code can be timed in the first
	// cache.
	rows bool
	// Floating-point operations of a shape.
	flops func(d []int64) int64
	// HLO text of a shape.
	text func(d []int64) string
	goal goal
}

// A goal is what a family should reach. A zero field is no goal.
type goal struct {
	// Speed over the peer's, in every case.
	minRatio float64
	// Geometric mean of the speeds over the peer's in the family.
	minMeanRatio float64
	// Share of the roof.
	minRoofShare float64
}

// multiplyAdds counts the operations of a matrix product m×n×k.
func multiplyAdds(d []int64) int64 {
	return 2 * d[0] * d[1] * d[2]
}

// attentionFLOPs counts the operations of the two products of attention, in heads ×
// sequence × width.
func attentionFLOPs(d []int64) int64 { return 4 * d[0] * d[1] * d[1] * d[2] }

// families are the fusions of the benchmark. gelu is the approximation by tanh,
// which oneDNN has too.
var families = map[string]family{
	// Products of matrices: bound by arithmetic, except where one side is flat.
	"sgemm": {peer: "openblas", flops: multiplyAdds, text: sgemmText, goal: goal{minRatio: 0.95, minMeanRatio: 1.05}},
	// Products of a matrix and a vector: bound by reading the matrix, which a copy of
	// as many bytes does not have to do as fast.
	"gemv":         {peer: "openblas", memory: true, reads: true, text: gemvText, goal: goal{minRatio: 0.95, minRoofShare: 0.97}},
	"gemv_columns": {peer: "openblas", memory: true, reads: true, text: gemvColumnsText, goal: goal{minRatio: 0.95, minRoofShare: 0.97}},
	"gevm":         {peer: "openblas", memory: true, reads: true, text: gevmText, goal: goal{minRatio: 0.95, minRoofShare: 0.97}},
	"gevm_rows":    {peer: "openblas", memory: true, reads: true, text: gevmRowsText, goal: goal{minRatio: 0.95, minRoofShare: 0.97}},
	// Two products with a softmax between them, as one fusion.
	"attention": {peer: "openblas", flops: attentionFLOPs, text: attentionText, goal: goal{minRatio: 2}},
	// Normalisations of rows: two passes over rows that stay in a cache.
	"layernorm": {
		peer:   "onednn",
		memory: true,
		rows:   true,
		text:   layernormText,
		goal:   goal{minRatio: 2, minRoofShare: 0.95},
	},
	"rmsnorm": {memory: true, rows: true, text: rmsnormText, goal: goal{minRoofShare: 0.95}},
	"softmax": {
		peer:   "onednn",
		memory: true,
		rows:   true,
		text:   softmaxText,
		goal:   goal{minRatio: 2, minRoofShare: 0.9},
	},
	// Elementwise fusions: one pass, with more or less arithmetic.
	"gelu":      {peer: "onednn", memory: true, rows: true, text: geluText, goal: goal{minRatio: 8}},
	"bias_gelu": {peer: "onednn", memory: true, rows: true, text: biasGeluText, goal: goal{minRoofShare: 0.95}},
	"chain":     {memory: true, rows: true, text: chainText, goal: goal{minRoofShare: 0.95}},
	"add":       {peer: "onednn", memory: true, rows: true, text: addText, goal: goal{minRoofShare: 0.95}},
	// Sums: reading alone.
	"row_sum": {
		peer:   "onednn",
		memory: true,
		reads:  true,
		rows:   true,
		text:   rowSumText,
		goal:   goal{minRoofShare: 0.95},
	},
	"column_sum": {
		peer:   "onednn",
		memory: true,
		reads:  true,
		rows:   true,
		text:   columnSumText,
		goal:   goal{minRoofShare: 0.95},
	},
	// Transposes: reading and writing in different orders.
	"transpose":      {peer: "onednn", memory: true, text: transposeText, goal: goal{minRatio: 3, minRoofShare: 0.6}},
	"gemm_bias_gelu": {flops: multiplyAdds, text: gemmBiasGeluText},
	"swap":           {peer: "onednn", memory: true, text: swapText, goal: goal{minRoofShare: 0.6}},
}

// allCases are the shapes of the full benchmark.
func allCases() []testCase {
	return []testCase{
		// Matrix products: squares that fit the caches and squares that do not,
		// flat and tall ones, a long contraction, and one row.
		{"sgemm", []int64{256, 256, 256}},
		{"sgemm", []int64{512, 512, 512}},
		{"sgemm", []int64{1024, 1024, 1024}},
		{"sgemm", []int64{2048, 2048, 2048}},
		{"sgemm", []int64{64, 4096, 1024}},
		{"sgemm", []int64{4096, 64, 4096}},
		{"sgemm", []int64{4096, 4096, 64}},
		{"sgemm", []int64{128, 128, 8192}},
		{"sgemm", []int64{1, 4096, 4096}},
		// A matrix of 64 MiB by a vector, with the matrix lying either way.
		{"gemv", []int64{4096, 4096}},
		{"gemv_columns", []int64{4096, 4096}},
		{"gevm", []int64{4096, 4096}},
		{"gevm_rows", []int64{4096, 4096}},
		// Rows of a transformer: normalisations, activations and sums.
		{"layernorm", []int64{4096, 1024}},
		{"rmsnorm", []int64{4096, 1024}},
		{"softmax", []int64{4096, 1024}},
		{"gelu", []int64{4096, 1024}},
		{"bias_gelu", []int64{4096, 1024}},
		{"chain", []int64{4096, 1024}},
		{"add", []int64{4096, 1024}},
		{"row_sum", []int64{8192, 1024}},
		{"column_sum", []int64{8192, 1024}},
		// Transposes: of a power of two, whose columns collide in caches, of
		// another size, and the exchange of sequence and heads.
		{"transpose", []int64{4096, 4096}},
		{"transpose", []int64{3000, 2000}},
		{"swap", []int64{8, 1024, 16, 64}},
		// Four heads of attention.
		// Four heads of attention.
		{"attention", []int64{4, 1024, 64}},
	}
}

// quickCases have every family in small shapes, for a run of a minute.
func quickCases() []testCase {
	return []testCase{
		// The families in the order of allCases, in shapes that fit the caches.
		{"sgemm", []int64{256, 256, 256}},
		{"sgemm", []int64{1, 1024, 2048}},
		{"gemv", []int64{1024, 2048}},
		{"gemv_columns", []int64{1024, 2048}},
		{"gevm", []int64{1024, 2048}},
		{"gevm_rows", []int64{1024, 2048}},
		{"layernorm", []int64{256, 1024}},
		{"rmsnorm", []int64{256, 1024}},
		{"softmax", []int64{256, 1024}},
		{"gelu", []int64{256, 1024}},
		{"bias_gelu", []int64{256, 1024}},
		{"chain", []int64{256, 1024}},
		{"add", []int64{512, 1024}},
		{"row_sum", []int64{512, 1024}},
		{"column_sum", []int64{512, 1024}},
		{"transpose", []int64{512, 512}},
		{"swap", []int64{2, 128, 16, 64}},
		{"attention", []int64{1, 256, 64}},
	}
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
	return fillDims(fmt.Sprintf(`q = f32[$0,$1,$2] parameter(0)
k = f32[$0,$1,$2] parameter(1)
v = f32[$0,$1,$2] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
scale = f32[] constant(%v)
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
attention = f32[$0,$1,$2] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}`,
		rootReciprocal(d[2])), d)
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
