package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

//go:embed shapes.txt
var shapes string

// attention is softmax(q kᵀ) v of 64 heads.
const attention = `
q = bf16[64,4096,128] parameter(0)
k = bf16[64,4096,128] parameter(1)
v = bf16[64,4096,128] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
s = f32[64,4096,4096] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
m = f32[64,4096] reduce(s, low), dimensions={2}, to_apply=maximum
ms = f32[64,4096,4096] broadcast(m), dimensions={0,1}
less = f32[64,4096,4096] subtract(s, ms)
e = f32[64,4096,4096] exponential(less)
sum = f32[64,4096] reduce(e, zero), dimensions={2}, to_apply=add
sums = f32[64,4096,4096] broadcast(sum), dimensions={0,1}
p = f32[64,4096,4096] divide(e, sums)
pb = bf16[64,4096,4096] convert(p)
ROOT o = bf16[64,4096,128] dot(pb, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
`

// softmax is that of rows of bf16, in f32.
const softmax = `
x = bf16[16384,4096] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
y = f32[16384,4096] convert(x)
m = f32[16384] reduce(y, low), dimensions={1}, to_apply=maximum
ms = f32[16384,4096] broadcast(m), dimensions={0}
less = f32[16384,4096] subtract(y, ms)
e = f32[16384,4096] exponential(less)
sum = f32[16384] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[16384,4096] broadcast(sum), dimensions={0}
p = f32[16384,4096] divide(e, sums)
ROOT r = bf16[16384,4096] convert(p)
`

// A program is a fusion to be judged.
type program struct {
	// Name of the fusion, with its folder unless it is of the corpus.
	name string
	*symtile.Program
	// TF32 is set where products of f32 may be rounded to tf32.
	tf32 bool
}

// programs are the corpus, the files of the folder large, and shapes.txt.
func programs(large string) (all []program, err error) {
	fusions, err := corpus.Fusions()
	if err != nil {
		return nil, err
	}
	for _, f := range fusions {
		p, err := symtile.Analyze(context.Background(), f.Computation)
		if err != nil {
			return nil, err
		}
		all = append(all, program{name: f.Name, Program: p})
	}
	texts, err := shapeTexts()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(large, "*.hlo"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(f), ".hlo")
		texts = append(texts, [2]string{"large/" + name, string(text)})
	}
	texts = append(texts,
		[2]string{"shapes/attention", attention},
		[2]string{"shapes/softmax_bf16", softmax},
	)
	// These are computations of their own; the fusions of the corpus are in modules.
	for _, t := range texts {
		m, err := hlo.Parse(t[0], []byte(t[1]))
		if err != nil {
			return nil, err
		}
		p, err := symtile.Analyze(context.Background(), m.Entry)
		if err != nil {
			return nil, err
		}
		all = append(all, program{t[0], p, strings.HasPrefix(t[0], "shapes/tf32")})
	}
	return all, nil
}

// sums are the types of products of whole numbers and of f32.
var sums = map[string]string{"s8": "s32", "f32": "f32", "tf32": "f32"}

// shapeTexts are the products of shapes.txt, with names.
func shapeTexts() (all [][2]string, err error) {
	for line := range strings.Lines(shapes) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name, element, layouts string
		var m, n, k int
		_, err := fmt.Sscan(
			line, &name, &element,
			&m, &n, &k, &layouts,
		)
		if err != nil {
			return nil, fmt.Errorf("shapes.txt: %q: %v", line, err)
		}
		// Narrow floats give bf16.
		sum := sums[element]
		if sum == "" {
			sum = "bf16"
		}
		if text := computedText(element, sum, layouts, m, n, k); text != "" {
			all = append(all, [2]string{"shapes/" + name, text})
			continue
		}
		element = strings.Replace(element, "tf32", "f32", 1)
		x := [2]int{m, k}
		y := [2]int{k, n}
		xDim, yDim := 1, 0
		if layouts[0] == 't' {
			x, xDim = [2]int{k, m}, 0
		}
		if layouts[1] == 't' {
			y, yDim = [2]int{n, k}, 1
		}
		all = append(all, [2]string{"shapes/" + name, fmt.Sprintf(
			"x = %[1]s[%[2]d,%[3]d] parameter(0)\ny = %[1]s[%[4]d,%[5]d] parameter(1)\n"+
				"ROOT c = %[6]s[%[7]d,%[8]d] dot(x, y), lhs_contracting_dims={%[9]d}, rhs_contracting_dims={%[10]d}\n",
			element, x[0], x[1], y[0], y[1],
			sum, m, n, xDim, yDim,
		)})
	}
	return all, nil
}
