package tilewright_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// A listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath string
	Dir        string
	Export     string // file of its export data
	GoFiles    []string
	CgoFiles   []string
}

// listPackages lists the packages of the module and all they import, with
// export data, for the system the test runs on.
func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles", "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listedPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listedPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// Outside symtile/hlo, operations are named by their constants: no string literal
// has the type hlo.Opcode and the name of an operation.
func TestOpcodesAreConstants(t *testing.T) {
	packages := listPackages(t)
	export := map[string]string{}
	for _, p := range packages {
		export[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(export[path])
	})
	checked := 0
	for _, p := range packages {
		room, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours || room == "symtile/hlo" || len(p.CgoFiles) > 0 {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, fset, files, info); err != nil {
			t.Fatal(err)
		}
		checked++
		for e, v := range info.Types {
			if name := opcodeLiteral(e, v); name != "" {
				t.Errorf("%s: %q is an operation; use its constant", fset.Position(e.Pos()), name)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d packages were checked", checked)
	}
}

// opcodeLiteral is the operation that a string literal of type hlo.Opcode names;
// "" for all other expressions.
func opcodeLiteral(e ast.Expr, v types.TypeAndValue) string {
	_, literal := e.(*ast.BasicLit)
	named, ok := v.Type.(*types.Named)
	if !literal || !ok || v.Value == nil || named.Obj().Name() != "Opcode" {
		return ""
	}
	if !strings.HasSuffix(named.Obj().Pkg().Path(), "/symtile/hlo") {
		return ""
	}
	name := constant.StringVal(v.Value)
	if !hlo.Opcode(name).Known() {
		return ""
	}
	return name
}

// samples are computations with one operation each, the root, by operation; T
// stands for an element type. Elementwise operations of one type need none: see
// sampleOf. Opaque, collective and control operations have no code anywhere.
var samples = map[hlo.Opcode]string{
	hlo.OpCompare:            "x = T[8] parameter(0); y = T[8] parameter(1); ROOT r = pred[8] compare(x, y), direction=LT",
	hlo.OpIsFinite:           "x = T[8] parameter(0); ROOT r = pred[8] is-finite(x)",
	hlo.OpSelect:             "p = pred[8] parameter(0); x = T[8] parameter(1); y = T[8] parameter(2); ROOT r = T[8] select(p, x, y)",
	hlo.OpComplex:            "x = f32[8] parameter(0); y = f32[8] parameter(1); ROOT r = c64[8] complex(x, y)",
	hlo.OpStochasticConvert:  "x = f32[8] parameter(0); y = u32[8] parameter(1); ROOT r = s32[8] stochastic-convert(x, y)",
	hlo.OpAbs:                "x = T[8] parameter(0); ROOT r = abs(x)",
	hlo.OpReal:               "x = T[8] parameter(0); ROOT r = real(x)",
	hlo.OpImag:               "x = T[8] parameter(0); ROOT r = imag(x)",
	hlo.OpBatchNormTraining:  "x = f32[8,4] parameter(0); s = f32[4] parameter(1); ROOT r = (f32[8,4], f32[4], f32[4]) batch-norm-training(x, s, s), epsilon=0.001, feature_index=1",
	hlo.OpBatchNormInference: "x = f32[8,4] parameter(0); s = f32[4] parameter(1); ROOT r = f32[8,4] batch-norm-inference(x, s, s, s, s), epsilon=0.001, feature_index=1",
	hlo.OpBatchNormGrad:      "x = f32[8,4] parameter(0); s = f32[4] parameter(1); ROOT r = (f32[8,4], f32[4], f32[4]) batch-norm-grad(x, s, s, s, x), epsilon=0.001, feature_index=1",
	hlo.OpSort: "lt { a = T[] parameter(0); b = T[] parameter(1); ROOT c = pred[] compare(a, b), direction=LT }\n" +
		"ENTRY e { x = T[8] parameter(0); ROOT r = T[8] sort(x), dimensions={0}, to_apply=lt }",
	hlo.OpTopK: "x = T[8] parameter(0); ROOT r = (T[2], s32[2]) topk(x), k=2, largest=true",
	hlo.OpWhile: "no { a = s32[] parameter(0); ROOT p = pred[] constant(false) }\nbody { a = s32[] parameter(0); ROOT b = s32[] negate(a) }\n" +
		"ENTRY e { x = s32[] parameter(0); ROOT r = s32[] while(x), condition=no, body=body }",
	hlo.OpConditional: "f { a = f32[8] parameter(0); ROOT b = f32[8] negate(a) }\n" +
		"ENTRY e { x = f32[8] parameter(0); p = pred[] parameter(1); ROOT r = f32[8] conditional(p, x, x), true_computation=f, false_computation=f }",
	hlo.OpReducePrecision:    "x = T[8] parameter(0); ROOT r = T[8] reduce-precision(x), exponent_bits=5, mantissa_bits=7",
	hlo.OpParameter:          "x = T[8] parameter(0); y = T[8] parameter(1); ROOT r = T[8] add(x, y)",
	hlo.OpConstant:           "x = T[] parameter(0); c = T[] constant(1); ROOT r = T[] add(x, c)",
	hlo.OpIota:               "ROOT r = T[8] iota(), iota_dimension=0",
	hlo.OpBroadcast:          "x = T[8] parameter(0); ROOT r = T[4,8] broadcast(x), dimensions={1}",
	hlo.OpReshape:            "x = T[4,8] parameter(0); ROOT r = T[32] reshape(x)",
	hlo.OpBitcast:            "x = T[4,8] parameter(0); ROOT r = T[32] bitcast(x)",
	hlo.OpTranspose:          "x = T[4,8] parameter(0); ROOT r = T[8,4] transpose(x), dimensions={1,0}",
	hlo.OpConcatenate:        "x = T[4] parameter(0); y = T[6] parameter(1); ROOT r = T[10] concatenate(x, y), dimensions={0}",
	hlo.OpSlice:              "x = T[8] parameter(0); ROOT r = T[3] slice(x), slice={[1:7:2]}",
	hlo.OpPad:                "x = T[8] parameter(0); z = T[] parameter(1); ROOT r = T[11] pad(x, z), padding=1_2",
	hlo.OpReverse:            "x = T[8] parameter(0); ROOT r = T[8] reverse(x), dimensions={0}",
	hlo.OpDynamicSlice:       "x = T[8] parameter(0); i = s32[] parameter(1); ROOT r = T[3] dynamic-slice(x, i), dynamic_slice_sizes={3}",
	hlo.OpDynamicUpdateSlice: "x = T[8] parameter(0); u = T[3] parameter(1); i = s32[] parameter(2); ROOT r = T[8] dynamic-update-slice(x, u, i)",
	hlo.OpGather: "x = T[8,4] parameter(0); i = s32[5,1] parameter(1); " +
		"ROOT r = T[5,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
	hlo.OpScatter: "x = T[8] parameter(0); i = s32[5,1] parameter(1); u = T[5] parameter(2); " +
		"ROOT r = T[8] scatter(x, i, u), inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
	hlo.OpSelectAndScatter: "ge { a = T[] parameter(0); b = T[] parameter(1); ROOT c = pred[] compare(a, b), direction=GE }\n" +
		"ENTRY e { x = T[8] parameter(0); s = T[4] parameter(1); z = T[] parameter(2); " +
		"ROOT r = T[8] select-and-scatter(x, s, z), window={size=2 stride=2}, select=ge, scatter=add }",
	hlo.OpReduce:              "x = T[4,8] parameter(0); z = T[] parameter(1); ROOT r = T[4] reduce(x, z), dimensions={1}, to_apply=add",
	hlo.OpReduceWindow:        "x = T[8] parameter(0); z = T[] parameter(1); ROOT r = T[4] reduce-window(x, z), window={size=2 stride=2}, to_apply=add",
	hlo.OpDot:                 "x = T[4,8] parameter(0); y = T[8,6] parameter(1); ROOT r = T[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
	hlo.OpRaggedDot:           "x = T[8,4] parameter(0); y = T[3,4,6] parameter(1); g = s32[3] parameter(2); ROOT r = T[8,6] ragged-dot(x, y, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
	hlo.OpScaledDot:           "x = f8e4m3fn[4,64] parameter(0); y = f8e4m3fn[64,6] parameter(1); a = f8e8m0fnu[4,2] parameter(2); b = f8e8m0fnu[2,6] parameter(3); ROOT r = T[4,6] scaled-dot(x, y, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
	hlo.OpConvolution:         "x = T[1,8,2] parameter(0); k = T[3,2,4] parameter(1); ROOT r = T[1,6,4] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f",
	hlo.OpTuple:               "x = T[8] parameter(0); y = T[8] parameter(1); ROOT r = (T[8], T[8]) tuple(x, y)",
	hlo.OpGetTupleElement:     "s { a = T[] parameter(0); b = T[] parameter(1); c = T[] parameter(2); d = T[] parameter(3); e = T[] add(a, c); f = T[] add(b, d); ROOT g = (T[], T[]) tuple(e, f) }\nENTRY e { x = T[4,8] parameter(0); z = T[] parameter(1); v = (T[4], T[4]) reduce(x, x, z, z), dimensions={1}, to_apply=s; ROOT r = T[4] get-tuple-element(v), index=1 }",
	hlo.OpOptimizationBarrier: "x = T[8] parameter(0); ROOT r = T[8] opt-barrier(x)",
	hlo.OpFusion:              "f { a = T[8] parameter(0); ROOT b = T[8] negate(a) }\nENTRY e { x = T[8] parameter(0); ROOT r = T[8] fusion(x), kind=kLoop, calls=f }",
	hlo.OpCall:                "f { a = T[8] parameter(0); ROOT b = T[8] negate(a) }\nENTRY e { x = T[8] parameter(0); ROOT r = T[8] call(x), to_apply=f }",
	hlo.OpMap:                 "f { a = T[] parameter(0); ROOT b = T[] negate(a) }\nENTRY e { x = T[8] parameter(0); ROOT r = T[8] map(x), dimensions={0}, to_apply=f }",
}

// sampleTypes are the element types that a sample is tried with.
var sampleTypes = []string{"f32", "f64", "bf16", "f16", "s32", "u8", "u64", "c64", "c128", "pred"}

// sampleOf is the text of a computation of op. Operations without a shape rule have one
// operand.
func sampleOf(op hlo.Opcode) string {
	switch text := samples[op]; {
	case text != "":
		return text
	case !op.Elementwise():
		return fmt.Sprintf("x = T[8] parameter(0); ROOT r = T[8] %s(x)", op)
	}
	var text strings.Builder
	var names []string
	operands, _ := op.Arity()
	for k := range operands {
		names = append(names, fmt.Sprintf("x%d", k))
		fmt.Fprintf(&text, "x%d = T[8] parameter(%d); ", k, k)
	}
	fmt.Fprintf(&text, "ROOT r = T[8] %s(%s)", op, strings.Join(names, ", "))
	return text.String()
}

// A tableOfCode is a table of code for operations: a backend, or the
// reference semantics.
type tableOfCode struct {
	target hlo.Target
	run    func(*hlo.Computation) error
}

func tablesOfCode(t *testing.T) []tableOfCode {
	return []tableOfCode{
		{hlo.Reference, interpret},
		{hlo.CPU, compiledBy(cpu.New())},
		{hlo.GPU, compiledBy(gpu.New(simulatedGPU(t)))},
	}
}

// interpret runs the reference on inputs of its own.
func interpret(c *hlo.Computation) error {
	in, err := check.Inputs(c, check.Normals, 1)
	if err != nil {
		return err
	}
	_, err = reference.Interpret(c, in)
	return err
}

// compiledBy compiles the default plan of a computation.
func compiledBy(b kernels.Backend) func(*hlo.Computation) error {
	return func(c *hlo.Computation) error {
		p, err := symtile.Analyze(context.Background(), c)
		if err != nil {
			return err
		}
		plan, err := b.Default(context.Background(), p)
		if err != nil {
			return err
		}
		k, err := b.Compile(context.Background(), p, plan)
		if err != nil {
			return err
		}
		return k.Close()
	}
}

func simulatedGPU(t *testing.T) *device.Session {
	t.Helper()
	spec, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return simulated.Open(spec, sim.Options{})
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The column "not" of hlo's table is true: each operation is tried on each target, of
// all types. Where the column has a reason, the target refuses it, by that reason; where
// it has none, it computes some type. An elementwise operation that the reference
// computes of a type is computed by each backend, unless the table excepts the type. A
// new row fails here until each target has code for it, or the row a reason.
func TestEveryTargetComputesOrSaysWhyNot(t *testing.T) {
	tables := tablesOfCode(t)
	for _, op := range hlo.Opcodes() {
		inReference := map[string]bool{} // types that the reference, the first table, computes
		for _, table := range tables {
			works, tried, firstError := false, 0, error(nil)
			for _, d := range sampleTypes {
				m, err := hlo.Parse("sample", []byte(strings.ReplaceAll(sampleOf(op), "T[", d+"[")))
				if err != nil {
					continue
				}
				tried++
				err = table.run(m.Entry)
				works = works || err == nil
				firstError = cmp.Or(firstError, err)
				if table.target == hlo.Reference {
					inReference[d] = err == nil
				} else if inReference[d] && op.Elementwise() && d != "pred" {
					checkType(t, op, table.target, d, err)
				}
			}
			reason := op.Not(table.target)
			switch {
			case tried == 0:
				t.Errorf("%s: its sample is read of no type", op)
			case works && reason != "":
				t.Errorf("%s: the %s computes it, and has the reason %q that it does not", op, table.target, reason)
			case !works && reason == "":
				t.Errorf("%s: the %s has neither code nor a reason: %v", op, table.target, firstError)
			case !works && !strings.Contains(firstError.Error(), reason):
				t.Errorf("%s: the %s refuses it by another reason than %q: %v", op, table.target, reason, firstError)
			}
		}
	}
}

// checkType holds what a backend did of one type against the exceptions of the table.
func checkType(t *testing.T, op hlo.Opcode, target hlo.Target, name string, err error) {
	t.Helper()
	d, _ := hlo.ParseDType(name)
	switch excepted := op.NotOf(target, d); {
	case err != nil && !excepted:
		t.Errorf("%s: the %s has no code for %s, which the reference computes: %v", op, target, name, err)
	case err == nil && excepted:
		t.Errorf("%s: the %s computes %s, which the table excepts", op, target, name)
	}
}

var rewriteOperations = flag.Bool("rewrite-operations", false, "write docs/operations.md")

// docs/operations.md is the table of operations, with what computes each; go test . -run
// OperationsPage -rewrite-operations writes it.
func TestOperationsPage(t *testing.T) {
	const page = "docs/operations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\n| operation")
	var want strings.Builder
	want.WriteString(head + "\n| operation | reference | CPU | GPU |\n| --- | --- | --- | --- |\n")
	for _, op := range hlo.Opcodes() {
		fmt.Fprintf(&want, "| `%s` |", op)
		said := "" // a reason is written once a row
		for target := range hlo.GPU + 1 {
			switch reason := op.Not(target); {
			case reason == "":
				want.WriteString(" yes" + exceptions(op, target) + " |")
			case reason == said:
				want.WriteString(" no |")
			default:
				want.WriteString(" no: " + reason + " |")
				said = reason
			}
		}
		want.WriteString("\n")
	}
	switch {
	case want.String() == string(text):
	case *rewriteOperations:
		err = os.WriteFile(page, []byte(want.String()), 0o644)
	default:
		t.Error(page + " is not the table of operations; -rewrite-operations writes it")
	}
	if err != nil {
		t.Error(err)
	}
}

// exceptions are the types that a target does not compute op of, in words.
func exceptions(op hlo.Opcode, target hlo.Target) string {
	var types []string
	for _, name := range strings.Fields("s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f4e2m1fn f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu bf16 f16 f32 f64") {
		if d, _ := hlo.ParseDType(name); op.NotOf(target, d) {
			types = append(types, name)
		}
	}
	if types == nil {
		return ""
	}
	return ", not of " + strings.Join(types, ", ")
}

// Every operation that is not opaque has indexing maps, or a reason of its own
// that it has none; and its text is canonical: it reads back as the same fusion.
func TestEveryOperationIsIndexedAndPrinted(t *testing.T) {
	for _, op := range hlo.Opcodes() {
		text := sampleOf(op)
		if text == "" {
			continue
		}
		var m *hlo.Module
		var err error
		for _, d := range sampleTypes {
			if m, err = hlo.Parse("sample", []byte(strings.ReplaceAll(text, "T[", d+"["))); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("%s: symtile/hlo does not read its sample: %v", op, err)
			continue
		}
		again, err := hlo.Parse("canonical", []byte(m.Entry.Canonical()))
		if err != nil || again.Entry.Fingerprint() != m.Entry.Fingerprint() {
			t.Errorf("%s: symtile/hlo does not read its canonical text back: %v", op, err)
		}
		for _, maps := range indexing.OperandMaps(index.NewRing(), m.Entry.Root, 0) {
			for _, x := range maps {
				if x.State == index.StateUndefined && strings.HasPrefix(x.Why, "there is no indexing map") {
					t.Errorf("%s: symtile/indexing has neither a map nor a reason", op)
				}
			}
		}
	}
}
