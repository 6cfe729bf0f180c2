// Package tilewright_test holds what is true of the tree as a whole: who may
// import whom, how files are named, and that the corridor works end to end.
package tilewright_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tilewright/tilewright/"

// mayImport is the corridor: data flows from the left column's imports to it.
var mayImport = map[string][]string{
	"symtile/hlo":           {},
	"symtile":               {"symtile/hlo"},
	"symtile/layout":        {"symtile", "symtile/hlo"},
	"kernels":               {"symtile", "symtile/hlo", "symtile/layout"},
	"kernels/cpu":           {"kernels/cpu/amd64", "kernels/cpu/gemm", "kernels", "symtile", "symtile/hlo", "symtile/layout"},
	"kernels/cpu/amd64":     {},
	"kernels/cpu/gemm":      {},
	"kernels/ptx":           {},
	"kernels/ptx/sim":       {"kernels/ptx"},
	"kernels/gpu/simulated": {"kernels/gpu", "kernels/ptx/sim", "kernels/ptx", "kernels", "symtile/hlo"},
	"kernels/gpu":           {"kernels/ptx", "kernels", "symtile", "symtile/hlo", "symtile/layout"},
	"kernels/cuda/gen":      {},
	"kernels/cuda":          {"kernels/cuda/cudasim", "kernels/gpu/simulated", "kernels/gpu", "kernels/ptx/sim", "kernels/ptx", "kernels", "symtile", "symtile/hlo"},
	"kernels/cuda/cudasim":  {"kernels/gpu/simulated", "kernels/gpu", "kernels/ptx/sim", "kernels/ptx", "kernels", "symtile", "symtile/hlo"},
	"kernels/replay":        {"kernels", "symtile", "symtile/hlo"},
	"cost":                  {"kernels", "symtile", "symtile/hlo", "symtile/layout"},
	"cache":                 {},
	"tuner":                 {"cost", "cache", "kernels", "symtile", "symtile/hlo"},
	"tuner/report":          {"tuner", "cost", "cache", "kernels", "symtile", "symtile/hlo"},
	"cmd/tilewright":        {"testdata/hlo", "tuner/report", "tuner", "cost", "cache", "kernels/cpu", "kernels/gpu/simulated", "kernels/gpu", "kernels/cuda", "kernels/cuda/cudasim", "kernels/replay", "kernels/ptx/sim", "kernels/ptx", "kernels", "symtile/layout", "symtile", "symtile/hlo"},
	"bench/peers":           {"tuner", "cache", "kernels/cpu", "kernels", "symtile", "symtile/hlo"},
}

func TestImportDirection(t *testing.T) {
	list := exec.Command("go", "list", "-tags=cuda,cudasim", "-json=ImportPath,Imports", "./...")
	list.Env = append(os.Environ(), "CGO_ENABLED=1") // files of the GPU's rooms are listed, not compiled
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		room := strings.TrimPrefix(p.ImportPath, module)
		if room == p.ImportPath {
			continue // the root, which has tests only
		}
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("%s is not in the import table", room)
		}
		for _, i := range p.Imports {
			if from, ours := strings.CutPrefix(i, module); ours && !slices.Contains(allowed, from) {
				t.Errorf("%s imports %s", room, from)
			}
		}
	}
}

var forbiddenNames = []string{"util", "utils", "common", "base", "core", "types", "internal", "helpers", "helper", "misc", "manager"}

func TestNames(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == ".git" {
			return filepath.SkipDir
		}
		name := strings.TrimSuffix(strings.TrimSuffix(d.Name(), ".go"), "_test")
		if (d.IsDir() || strings.HasSuffix(d.Name(), ".go")) && slices.Contains(forbiddenNames, name) {
			t.Errorf("%s: a name that says nothing", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFunctionLengths keeps functions short: median ≤ 10 lines, 90th percentile
// ≤ 35, none over 70 unless its body is one switch.
func TestFunctionLengths(t *testing.T) {
	var lines []int
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			lines = append(lines, n)
			if n > 70 && !isOneSwitch(fn) {
				t.Errorf("%s: %s has %d lines", fset.Position(fn.Pos()), fn.Name.Name, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	median, p90 := lines[len(lines)/2], lines[len(lines)*9/10]
	t.Logf("%d functions, median %d lines, 90th percentile %d", len(lines), median, p90)
	if median > 10 || p90 > 35 {
		t.Errorf("functions grow: median %d lines (want ≤ 10), 90th percentile %d (want ≤ 35)", median, p90)
	}
}

// isOneSwitch reports whether a switch makes up most of fn.
func isOneSwitch(fn *ast.FuncDecl) bool {
	whole := fn.Body.End() - fn.Body.Pos()
	for _, s := range fn.Body.List {
		switch s.(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt:
			if s.End()-s.Pos() > whole*8/10 {
				return true
			}
		}
	}
	return false
}
