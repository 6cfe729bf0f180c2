package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/executable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// texts are those of a folder whose names match an expression.
func texts(t *testing.T, folder, only string) []model {
	all, err := readCorpus(folder, regexp.MustCompile(only))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// partitioned parses and partitions a text.
func partitioned(t *testing.T, m model) *hlo.Module {
	parsed, err := hlo.Parse(m.Name, m.Text)
	if err != nil {
		t.Fatal(err)
	}
	split := withFusions(parsed)
	return split
}

// An expectation is what JAX or PyTorch computed (oracle.py, torch_models.py -record).
type expectation struct {
	// Inputs are the ranges that elements of the arguments are drawn from.
	Inputs [][2]float64
	// Outputs have their largest magnitude and some elements, evenly spaced.
	Outputs []struct {
		Largest  float64
		Elements []float64
	}
}

// hashed is the number from 0 to 1 that oracle.py makes of element n of an argument.
func hashed(argument, n int64) float64 {
	x := uint32(n)*2654435761 + uint32(argument+1)*2246822519
	x ^= x >> 15
	x *= 2246822519
	x ^= x >> 13
	x *= 3266489917
	x ^= x >> 16
	return float64(x) / (1 << 32)
}

// arguments makes the inputs that oracle.py makes.
func arguments(t *testing.T, c *hlo.Computation, ranges [][2]float64) []kernels.Buffer {
	if len(ranges) != len(c.Params) {
		t.Fatalf("%d parameters, %d were recorded", len(c.Params), len(ranges))
	}
	var all []kernels.Buffer
	for k, p := range c.Params {
		b, err := kernels.NewBuffer(p.Shape)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := ranges[k][0], ranges[k][1]
		for n := range p.Shape.Elements() {
			if x := lo + (hi-lo)*hashed(int64(k), n); p.Shape.DType.IsFloat() {
				b.SetFloat(n, x)
			} else {
				b.SetInt(n, int64(math.Floor(x)))
			}
		}
		all = append(all, b)
	}
	return all
}

// kept is the number of elements that oracle.py keeps, and allowed the difference,
// relative to the largest element, that it allows.
const (
	kept    = 16
	allowed = 2e-4
)

// What modules compute by default plans is what jax.jit, or PyTorch, computed: StableHLO
// that is partitioned here, and what XLA has fused.
func TestOracle(t *testing.T) {
	raw, err := readCompressed("small/expected.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]expectation
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	only := `.`
	if testing.Short() {
		only = `^(llama_block|mixtral|gnn|lstm|mamba)\.`
	}
	for _, m := range texts(t, "small", only) {
		t.Run(m.Name, func(t *testing.T) {
			want, ok := expected[strings.TrimSuffix(m.Name, filepath.Ext(m.Name))]
			if !ok {
				t.Fatal("nothing to compare with: run oracle.py or torch_models.py -record")
			}
			split := partitioned(t, m)
			e, err := executable.Compile(context.Background(), split, cpu.New(), executable.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			out, err := e.Run(context.Background(), arguments(t, split.Entry, want.Inputs))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, out, want)
		})
	}
}

// compare looks at the elements of the outputs that were kept.
func compare(t *testing.T, out []kernels.Buffer, want expectation) {
	if len(out) != len(want.Outputs) {
		t.Fatalf("%d outputs, %d were recorded", len(out), len(want.Outputs))
	}
	for k, b := range out {
		n := b.Shape.Elements()
		for j, x := range want.Outputs[k].Elements {
			at := int64(j) * max(1, n/kept)
			if d := math.Abs(b.Float(at) - x); !(d <= allowed*want.Outputs[k].Largest) {
				t.Fatalf("output %d, element %d: %v, recorded is %v", k, at, b.Float(at), x)
			}
		}
	}
}

// Every text loads. Every fusion of the StableHLO, of training steps too, can be
// tiled, those of predictions have a default plan, and a partition moves no more bytes than the
// operations by themselves.
func TestCorpus(t *testing.T) {
	b := cpu.New()
	done, structures := map[[32]byte]bool{}, map[cache.Fingerprint]bool{}
	for _, m := range texts(t, "corpus", `.`) {
		parsed, err := hlo.Parse(m.Name, m.Text)
		if err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(m.Name, ".mlir") || testing.Short() {
			continue
		}
		split := withFusions(parsed)
		moved, unfused := bytesMoved(split), bytesMoved(parsed)
		t.Logf("%s: %.4g MB of %.4g", m.Name, moved/1e6, unfused/1e6)
		if moved > unfused {
			t.Errorf("%s: the partition moves %g bytes, its operations %g", m.Name, moved, unfused)
		}
		for _, d := range decisions {
			if d.model+".mlir" == m.Name && !slices.ContainsFunc(split.Fusions(), d.isOf) {
				t.Errorf("%s: no fusion is %s", m.Name, d.what)
			}
		}
		for _, c := range split.Fusions() {
			print := c.Fingerprint()
			if done[print] {
				continue
			}
			done[print] = true
			if why := unwanted(c); why != "" {
				t.Errorf("%s, %s: %s", m.Name, c.Name, why)
			}
			structures[cache.StructureOf(c.Canonical()).Print] = true
			p, err := symtile.Analyze(t.Context(), c)
			if err != nil {
				t.Errorf("%s, %s: %v", m.Name, c.Name, err)
				continue
			}
			if !strings.HasSuffix(m.Name, "forward.mlir") {
				continue // plans of the training steps would take half a minute
			}
			if _, err := b.Default(t.Context(), p); err != nil {
				t.Errorf("%s, %s: no plan: %v", m.Name, c.Name, err)
			}
		}
	}
	t.Logf("%d distinct fusions of %d structures", len(done), len(structures))
}

// A decision is a fusion that a model's partition has: so many operations of each kind, and
// no others that contract.
type decision struct {
	model, what string
	ops         map[hlo.Opcode]int
}

// isOf reports whether a fusion has at least the operations of a decision, and as many
// contractions.
func (d decision) isOf(c *hlo.Computation) bool {
	contractions := 0
	left := maps.Clone(d.ops)
	for _, i := range c.Instrs {
		left[i.Op]--
		if i.Op.Class() == hlo.ClassContraction {
			contractions++
		}
	}
	for op := range d.ops {
		if left[op] > 0 {
			return false
		}
	}
	return contractions == d.ops[hlo.OpDot]+d.ops[hlo.OpConvolution]
}

// decisions are those that a compiler would take in the models, too.
var decisions = []decision{
	{"bert.forward", "attention with its mask", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2, hlo.OpSelect, 1)},
	{"whisper.forward", "attention without a mask", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2)},
	{"llama3.forward", "grouped causal attention with rotary queries and keys", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2, hlo.OpConcatenate, 2, hlo.OpIota, 1)},
	{"llama_block.forward", "grouped causal attention with rotary queries and keys", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2, hlo.OpConcatenate, 2, hlo.OpIota, 1)},
	{"mixtral.forward", "grouped causal attention with rotary queries and keys", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2, hlo.OpConcatenate, 2, hlo.OpIota, 2)},
	{"torch_llama.forward", "grouped causal attention with rotary queries and keys", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2, hlo.OpConcatenate, 2)},
	{"gemma.forward", "causal attention of one key with rotary queries and keys", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2, hlo.OpConcatenate, 2, hlo.OpIota, 1)},
	{"vit.forward", "attention without a mask", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2)},
	{"torch_bert.forward", "attention with its mask", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2)},
	{"dit.forward", "attention without a mask", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2)},
	{"unet.forward", "attention without a mask", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpReduce, 2)},
	{"llama3.forward", "both products of SwiGLU", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpDivide, 1, hlo.OpMultiply, 2)},
	{"torch_llama.forward", "both products of SwiGLU", ops(hlo.OpDot, 2, hlo.OpExponential, 1, hlo.OpDivide, 1, hlo.OpMultiply, 2)},
	{"gemma.forward", "both products of GeGLU", ops(hlo.OpDot, 2, hlo.OpTanh, 1)},
	{"lstm.forward", "a cell: the product and its gates", ops(hlo.OpDot, 1, hlo.OpExponential, 3, hlo.OpTanh, 2)},
	{"llama3.forward", "a residual and its norm", ops(hlo.OpAdd, 2, hlo.OpReduce, 1, hlo.OpSqrt, 1)},
	{"llama3.forward", "an embedding that converts the rows it gathers", ops(hlo.OpGather, 1, hlo.OpConvert, 1, hlo.OpReduce, 1)},
	{"bert.forward", "a residual and its norm", ops(hlo.OpAdd, 2, hlo.OpReduce, 2, hlo.OpRsqrt, 1)},
	{"bert.forward", "gelu after its product", ops(hlo.OpDot, 1, hlo.OpErf, 1)},
	{"resnet50.forward", "a convolution with batch norm and relu", ops(hlo.OpConvolution, 1, hlo.OpRsqrt, 1, hlo.OpMaximum, 1)},
	{"resnet50.train", "the statistics of a batch norm", ops(hlo.OpReduce, 2, hlo.OpRsqrt, 1)},
	{"llama3.train", "the cross-entropy of the logits", ops(hlo.OpExponential, 1, hlo.OpReduce, 1, hlo.OpSubtract, 1)},
	{"llama3.train", "Adam after the gradient's product", ops(hlo.OpDot, 1, hlo.OpSqrt, 1, hlo.OpDivide, 3)},
	{"dlrm.train", "Adam of an embedding", ops(hlo.OpSqrt, 1, hlo.OpDivide, 3)},
}

// ops pairs operations with numbers.
func ops(pairs ...any) map[hlo.Opcode]int {
	m := map[hlo.Opcode]int{}
	for k := 0; k < len(pairs); k += 2 {
		m[pairs[k].(hlo.Opcode)] = pairs[k+1].(int)
	}
	return m
}

// bytesMoved adds up the operands and results of a module's operations and fusions,
// each once: what they would read and write if each were a kernel. Views, constants,
// tuples and control flow are none. Nothing of package partition is asked, whose
// prices this checks.
func bytesMoved(m *hlo.Module) float64 {
	called := map[*hlo.Computation]bool{}
	for _, c := range m.Computations {
		for _, i := range c.Instrs {
			if i.Op != hlo.OpCall && i.Op != hlo.OpWhile && i.Op != hlo.OpConditional {
				for _, f := range i.Callees() {
					called[f] = true
				}
			}
		}
	}
	sum := 0.0
	for _, c := range m.Computations {
		if called[c] {
			continue
		}
		for _, i := range c.Instrs {
			switch {
			case i.Op.Has(hlo.View) || i.Op == hlo.OpConstant || i.Op == hlo.OpIota || i.Op == hlo.OpParameter ||
				i.Op == hlo.OpTuple || i.Op == hlo.OpGetTupleElement ||
				i.Op == hlo.OpCall || i.Op == hlo.OpWhile || i.Op == hlo.OpConditional:
				continue
			}
			sum += float64(i.Shape.Bytes())
			for k := range i.Operands {
				sum += bytesTaken(i, k)
			}
		}
	}
	return sum
}

// bytesTaken is what an instruction reads of an operand: of an array that it only
// slices or gathers from, no more than the result of that.
func bytesTaken(i *hlo.Instr, k int) float64 {
	all := float64(i.Operands[k].Shape.Bytes())
	taken := func(u *hlo.Instr, k int) float64 {
		if k == 0 && (u.Op == hlo.OpGather || u.Op == hlo.OpSlice || u.Op == hlo.OpDynamicSlice) {
			return min(all, float64(u.Shape.Bytes()))
		}
		return all
	}
	if i.Op != hlo.OpFusion {
		return taken(i, k)
	}
	sum := 0.0
	f := i.Attrs.Calls
	for _, u := range f.Instrs {
		for n, o := range u.Operands {
			if o == f.Params[k] {
				sum += taken(u, n)
			}
		}
	}
	return min(all, sum)
}

// Fusions of two small models are tuned, and the models run by their winners.
func TestTuned(t *testing.T) {
	db := cache.Open(filepath.Join(t.TempDir(), "t.db"))
	b := cpu.New()
	tune := &tuner.Tuner{Backend: b, Cache: db, Options: tuner.Options{Candidates: 2, Budget: 50 * time.Millisecond}}
	for _, m := range texts(t, "small", `^(llama_block|dlrm)\.forward\.mlir$`) {
		split := partitioned(t, m)
		for _, c := range split.Fusions() {
			if _, err := tune.Tune(context.Background(), c); err != nil {
				t.Errorf("%s, %s: %v", m.Name, c.Name, err)
			}
		}
		e, err := executable.Compile(context.Background(), split, b, executable.Options{Plan: winners(db, b)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for _, u := range e.Units() {
			if u.Plan != "" && !u.Stored && strings.HasPrefix(u.Name, "fused") {
				t.Errorf("%s, %s: its winner does not run: %s", m.Name, u.Name, u.Reason)
			}
		}
	}
}

// The table is a line a model, whatever fails; a program that crashes is a note.
func TestRow(t *testing.T) {
	crash := filepath.Join(t.TempDir(), "crash")
	script := "#!/bin/sh\necho panic: of a kind >&2\nexit 2\n"
	if err := os.WriteFile(crash, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	o := options{tilewright: crash, scratch: t.TempDir(), limit: time.Minute}
	r := o.measure(context.Background(), model{"m.hlo", []byte("HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }")})
	if got := fmt.Sprint(r.notes); got != "[show: panic: of a kind]" {
		t.Errorf("notes %s", got)
	}
	if got := strings.Count(r.String(), "\t"); got != len(header)-1 || r.instructions != 1 {
		t.Errorf("%d columns, %d instructions: %s", got+1, r.instructions, r)
	}
}

// The last line is about all models.
func TestTotals(t *testing.T) {
	all := []row{
		{tileable: 3, states: map[string]int{"tuned": 2, "checked": 1}, tiled: 0.995, ours: 2, jax: 1, tune: usage{12, 3e8}},
		{tileable: 7, states: map[string]int{"known": 7}, tiled: 1, ours: 1, jax: 2, tune: usage{9, 5e8}},
	}
	const want = "# all 2: of 10 fusions that can be tiled 90.0 % are tuned, 100.0 % at least checked and timed by their default; " +
		"at least 99.50 % of a model's time is in them; at most 12.0 s and 500 MB a model; 1.00 times XLA's time, by geometric mean of 2\n"
	if got := totalsOf(all).String(); got != want || totalsOf(nil).String() != "" {
		t.Error(got)
	}
}

// A sample has distinct fusions, and for one seed the same.
func TestSample(t *testing.T) {
	models, err := readCorpus("small", regexp.MustCompile(`^(gnn|lstm|dlrm|vit)\.forward\.mlir$`))
	if err != nil {
		t.Fatal(err)
	}
	var names [3][]string
	for k, seed := range []uint64{1, 1, 2} {
		all, err := sample(models, 10, seed)
		if err != nil {
			t.Fatal(err)
		}
		distinct := map[string]bool{}
		for _, x := range all {
			names[k] = append(names[k], x.model+" "+x.c.Name)
			distinct[x.c.Canonical()] = true
		}
		if len(distinct) != 10 {
			t.Errorf("%d distinct fusions of 10", len(distinct))
		}
	}
	if !slices.Equal(names[0], names[1]) || slices.Equal(names[0], names[2]) {
		t.Errorf("samples of the seeds 1, 1 and 2: %v", names)
	}
}

// unwanted names what a fusion should not have: two reductions of whole arrays that read
// nothing in common, as those of the norm of all gradients, or a conversion in front of a
// gather, of more than what is gathered.
func unwanted(c *hlo.Computation) string {
	reads := map[*hlo.Instr]map[*hlo.Instr]bool{} // instructions and parameters in front of each
	var reductions []*hlo.Instr
	for _, i := range c.Instrs {
		reads[i] = map[*hlo.Instr]bool{i: true}
		for _, o := range i.Operands {
			maps.Copy(reads[i], reads[o])
		}
		if i.Op == hlo.OpReduce && len(i.Shape.Dims) == 0 {
			reductions = append(reductions, i)
		}
		if i.Op == hlo.OpGather && i.Operands[0].Op == hlo.OpConvert &&
			i.Operands[0].Shape.Elements() > i.Shape.Elements() {
			return i.Operands[0].Name + " converts more than is gathered"
		}
	}
	for n, a := range reductions {
		for _, b := range reductions[:n] {
			common := false
			for i := range reads[a] {
				common = common || reads[b][i] && i.Op == hlo.OpParameter
			}
			if !common {
				return a.Name + " and " + b.Name + " read nothing in common"
			}
		}
	}
	return ""
}

// What TestCorpus looks for is found.
func TestUnwanted(t *testing.T) {
	const sum = "sum { a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT s = f32[] add(a, b) }\n"
	for text, want := range map[string]string{
		sum + `ENTRY norm {
  x = f32[64] parameter(0)
  y = f32[32] parameter(1)
  z = f32[] constant(0)
  a = f32[] reduce(x, z), dimensions={0}, to_apply=sum
  b = f32[] reduce(y, z), dimensions={0}, to_apply=sum
  ROOT c = f32[] add(a, b)
}`: "b and a read nothing in common",
		sum + `ENTRY variance {
  x = f32[64] parameter(0)
  z = f32[] constant(0)
  a = f32[] reduce(x, z), dimensions={0}, to_apply=sum
  y = f32[64] multiply(x, x)
  b = f32[] reduce(y, z), dimensions={0}, to_apply=sum
  ROOT c = f32[] add(a, b)
}`: "",
		`ENTRY embedding {
  table = f32[32000,256] parameter(0)
  ids = s32[32,1] parameter(1)
  narrow = bf16[32000,256] convert(table)
  ROOT rows = bf16[32,256] gather(narrow, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}
}`: "narrow converts more than is gathered",
	} {
		m, err := hlo.Parse("m", []byte("HloModule m\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		if got := unwanted(m.Entry); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
