package tilewright_test

import (
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
	for _, name := range strings.Fields("s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f4e2m1fn f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu bf16 f16 f32 f64 c64 c128") {
		if d, _ := hlo.ParseDType(name); op.NotOf(target, d) {
			types = append(types, name)
		}
	}
	if types == nil {
		return ""
	}
	return ", not of " + strings.Join(types, ", ")
}

// samplesOfOperations are the modules of testdata/operations.hlo, one of each operation.
func samplesOfOperations(t *testing.T) map[hlo.Opcode]string {
	text, err := os.ReadFile("testdata/operations.hlo")
	if err != nil {
		t.Fatal(err)
	}
	all := map[hlo.Opcode]string{}
	for module := range strings.SplitSeq(string(text), "// -----\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(module, "// "), "\n")
		all[hlo.Opcode(name)] = module
	}
	return all
}

// Every operation that is not opaque has indexing maps, or a reason of its own
// that it has none; and its text is canonical: it reads back as the same fusion.
func TestEveryOperationIsIndexedAndPrinted(t *testing.T) {
	samples := samplesOfOperations(t)
	for _, op := range hlo.Opcodes() {
		m, err := hlo.Parse("sample", []byte(samples[op]))
		if err != nil {
			t.Errorf("%s: symtile/hlo does not read its module: %v", op, err)
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
