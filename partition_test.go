package tilewright_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"pgregory.net/rapid"
)

// Modules as frameworks print them: nothing is lost, every fusion can be tiled,
// and running the fusions one after another gives what the module gives.
func TestPartitionOfModules(t *testing.T) {
	want := map[string]string{ // the fusions, and what is left
		"attention.mlir":  "fused.transpose.10",
		"conv_block.mlir": "fused.reduce-window.4",
		"layernorm.mlir":  "fused.add.16",
		"mlp.mlir":        "fused.relu.maximum.1 fused.add.8",
		"softmax.mlir":    "fused.divide.10",
		"while_loop.mlir": "fused.add.1 fused.multiply.9 fused.negate.3 | compare add while",
	}
	for _, text := range []string{"mlir", "hlo"} {
		files, err := filepath.Glob("testdata/stablehlo/*." + text)
		if err != nil || len(files) < len(want) {
			t.Fatalf("%d modules, %v", len(files), err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			m, err := hlo.Parse(f, src)
			if err != nil {
				t.Fatal(err)
			}
			got := checkPartition(t, m)
			if want, ok := want[filepath.Base(f)]; ok && want != "" && got != want {
				t.Errorf("%s: %s\nwant %s", f, got, want)
			}
		}
	}
}

// Whole models, forward and backward, as TestPartitionOfModules: those of small
// widths that the reference runs in about a second.
func TestPartitionOfModels(t *testing.T) {
	for _, name := range []string{
		"llama_block.forward", "bert.forward", "dlrm.train", "gnn.train",
		"lstm.forward", "mixtral.forward", "resnet50.forward",
	} {
		t.Run(name, func(t *testing.T) {
			f := "bench/models/small/" + name + ".mlir.gz"
			m, err := hlo.Parse(f, uncompressed(t, f))
			if err != nil {
				t.Fatal(err)
			}
			checkPartition(t, m)
		})
	}
}

// uncompressed reads a file that gzip has compressed.
func uncompressed(t *testing.T, file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	src, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// checkPartition splits m, checks what must hold, and returns the names of the
// fusions and the operations outside.
func checkPartition(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, m *hlo.Module) string {
	split, err := partition.Module(context.Background(), m, partition.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	fused, outside := split.Module, split.Outside
	if again, err := hlo.Parse("fused", []byte(fused.String())); err != nil ||
		again.Entry.Fingerprint() != fused.Entry.Fingerprint() {
		t.Fatalf("the partition prints as something else: %v\n%s", err, fused)
	}
	before, after := map[hlo.Opcode]int{}, map[hlo.Opcode]int{}
	count(m.Entry, before)
	count(fused.Entry, after)
	repeated := map[hlo.Opcode]int{} // of what nothing needs, too
	for _, i := range split.Repeated {
		repeated[i.Op]++
	}
	for op, n := range before {
		if after[op] > n || after[op] < n-repeated[op] {
			t.Errorf("%d %s before, %d after, of which %d are repeated\n%s", n, op, after[op], repeated[op], fused)
		}
	}
	var names []string
	for _, c := range fused.Fusions() {
		names = append(names, c.Name)
		if _, err := symtile.Analyze(context.Background(), c); err != nil && c != fused.Entry {
			t.Errorf("%s: %v\n%s", c.Name, err, c)
		}
	}
	for c, f := range split.Fusions {
		if f.Price.Bytes > f.Apart.Bytes {
			t.Errorf("%s moves %g bytes, its operations one by one %g\n%s", c.Name, f.Price.Bytes, f.Apart.Bytes, c)
		}
	}
	sameResults(t, m.Entry, fused.Entry)
	var left []string
	for _, o := range outside {
		if o.Reason == "" {
			t.Errorf("%s is outside for no reason", o.Instr)
		}
		if o.Instr.Op != hlo.OpConstant &&
			o.Instr.Op != hlo.OpTuple &&
			o.Instr.Op != hlo.OpGetTupleElement {
			left = append(left, string(o.Instr.Op))
		}
	}
	if len(left) > 0 {
		names = append(append(names, "|"), left...)
	}
	return strings.Join(names, " ")
}

// count counts the operations that no partition may copy or drop, in c and what it
// calls: all but sources, views and elementwise operations.
func count(c *hlo.Computation, n map[hlo.Opcode]int) {
	needed := map[*hlo.Instr]bool{c.Root: true}
	for k := len(c.Instrs) - 1; k >= 0; k-- {
		i := c.Instrs[k]
		if !needed[i] {
			continue
		}
		for _, o := range i.Operands {
			needed[o] = true
		}
		switch i.Op {
		case hlo.OpParameter, hlo.OpConstant, hlo.OpIota, hlo.OpBroadcast,
			hlo.OpReshape, hlo.OpBitcast, hlo.OpTuple, hlo.OpGetTupleElement,
			hlo.OpTranspose:
		case hlo.OpCall, hlo.OpFusion:
			count(i.Attrs.Calls, n)
		default:
			if i.Op.Elementwise() {
				continue
			}
			n[i.Op]++
			for _, b := range i.Attrs.Branches {
				count(b, n)
			}
		}
	}
}

// sameResults runs both where the reference can: bit for bit the same.
func sameResults(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, a, b *hlo.Computation) {
	in, err := check.Inputs(a, check.Normals, 1)
	if err != nil {
		t.Fatalf("%v", err)
	}
	want, err := reference.Interpret(a, in)
	if err != nil {
		return // convolution and control flow: the reference says so
	}
	got, err := reference.Interpret(b, in)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for k := range want {
		if !bytes.Equal(want[k].Data, got[k].Data) {
			t.Errorf("output %d of %s differs", k, a.Name)
		}
	}
}

// Random modules of every kind of operation the partition knows.
func TestPartitionOfRandomModules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := randomModule(t)
		m, err := hlo.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		checkPartition(t, m)
	})
}

type randomValue struct{ name, shape string }

// randomModule draws an entry of arrays [4,6], [6,4], [4], [6] and scalars.
func randomModule(t *rapid.T) string {
	b := &strings.Builder{}
	b.WriteString("HloModule random\n%sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n" +
		"%twice {\n  a = f32[4,6] parameter(0)\n  ROOT s = f32[4,6] add(a, a)\n}\nENTRY %main {\n")
	var values []randomValue
	put := func(shape, text string) {
		name := fmt.Sprintf("v%d", len(values))
		fmt.Fprintf(b, "  %s = %s %s\n", name, shape, text)
		values = append(values, randomValue{name, shape})
	}
	for k, shape := range []string{"f32[4,6]", "f32[6,4]", "f32[4]", "f32[6]", "f32[]"} {
		put(shape, fmt.Sprintf("parameter(%d)", k))
		put(shape, constantOf(shape))
	}
	for range rapid.IntRange(1, 20).Draw(t, "operations") {
		step := rapid.SampledFrom(randomSteps).Draw(t, "step")
		args := make([]any, len(step.takes))
		for k, shape := range step.takes {
			args[k] = pick(t, values, shape)
		}
		put(step.gives, fmt.Sprintf(step.text, args...))
	}
	results := rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, "results")
	names, shapes := make([]string, len(results)), make([]string, len(results))
	for k, v := range results {
		names[k], shapes[k] = v.name, v.shape
	}
	fmt.Fprintf(b, "  ROOT out = (%s) tuple(%s)\n}\n", strings.Join(shapes, ", "), strings.Join(names, ", "))
	return b.String()
}

func constantOf(shape string) string {
	switch shape {
	case "f32[]":
		return "constant(0.5)"
	case "f32[4]":
		return "constant({1, 2, 3, 4})"
	case "f32[6]":
		return "constant({1, 2, 3, 4, 5, 6})"
	case "f32[4,6]":
		return "iota(), iota_dimension=1"
	}
	return "iota(), iota_dimension=0"
}

// pick draws a value of a shape; the parameters come first, so there is one.
func pick(t *rapid.T, values []randomValue, shape string) string {
	var fit []randomValue
	for _, v := range values {
		if v.shape == shape {
			fit = append(fit, v)
		}
	}
	return rapid.SampledFrom(fit).Draw(t, shape).name
}

var randomSteps = []struct {
	gives string
	takes []string
	text  string
}{
	{"f32[4,6]", []string{"f32[4,6]", "f32[4,6]"}, "add(%s, %s)"},
	{"f32[4,6]", []string{"f32[4,6]"}, "tanh(%s)"},
	{"f32[6,4]", []string{"f32[6,4]", "f32[6,4]"}, "multiply(%s, %s)"},
	{"f32[4]", []string{"f32[4]", "f32[4]"}, "subtract(%s, %s)"},
	{"f32[6]", []string{"f32[6]"}, "negate(%s)"},
	{"f32[]", []string{"f32[]", "f32[]"}, "maximum(%s, %s)"},
	{"f32[4,6]", []string{"f32[4]"}, "broadcast(%s), dimensions={0}"},
	{"f32[4,6]", []string{"f32[6]"}, "broadcast(%s), dimensions={1}"},
	{"f32[4,6]", []string{"f32[]"}, "broadcast(%s), dimensions={}"},
	{"f32[4]", []string{"f32[]"}, "broadcast(%s), dimensions={}"},
	{"f32[6,4]", []string{"f32[4,6]"}, "transpose(%s), dimensions={1,0}"},
	{"f32[4,6]", []string{"f32[6,4]"}, "reshape(%s)"},
	{"f32[4]", []string{"f32[4,6]", "f32[]"}, "reduce(%s, %s), dimensions={1}, to_apply=%%sum"},
	{"f32[6]", []string{"f32[4,6]", "f32[]"}, "reduce(%s, %s), dimensions={0}, to_apply=%%sum"},
	{"f32[]", []string{"f32[6]", "f32[]"}, "reduce(%s, %s), dimensions={0}, to_apply=%%sum"},
	{"f32[4]", []string{"f32[4,6]", "f32[6]"}, "dot(%s, %s), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
	{"f32[6,4]", []string{"f32[4,6]", "f32[]"}, "pad(%s, %s), padding=1_1x-1_-1"},
	{"f32[4]", []string{"f32[6]"}, "slice(%s), slice={[1:5]}"},
	{"f32[4,6]", []string{"f32[4,6]"}, "reverse(%s), dimensions={0}"},
	{"f32[4,6]", []string{"f32[4,6]"}, "call(%s), to_apply=%%twice"},
	{"f32[4,6]", []string{"f32[4,6]"}, "optimization-barrier(%s)"},
}

// A computation that is a branch here and a map's there is split for the one
// and kept for the other.
func TestPartitionKeepsWhatIsShared(t *testing.T) {
	m, err := hlo.Parse("shared", []byte(`HloModule shared
%f {
  a = f32[] parameter(0)
  ROOT n = f32[] negate(a)
}
ENTRY %main {
  p = pred[] parameter(0)
  x = f32[] parameter(1)
  y = f32[8] parameter(2)
  m = f32[8] map(y), dimensions={0}, to_apply=%f
  c = f32[] conditional(p, x, x), true_computation=%f, false_computation=%f
  b = f32[8] broadcast(c), dimensions={}
  ROOT r = f32[8] add(m, b)
}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := checkPartition(t, m); got != "fused.r | negate conditional" {
		t.Error(got)
	}
}
