package tilewright_test

import (
	"encoding/json"
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
