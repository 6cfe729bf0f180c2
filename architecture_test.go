// Package tilewright_test holds what is true of the tree as a whole: who may
// import whom, how files are named, and that the corridor works end to end.
package tilewright_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tilewright/tilewright/"

// mayImport is the corridor: the packages of this module that each package
// imports, exactly; data flows from the imports to the package.
var mayImport = map[string][]string{
	"bench/attack":      {"cache", "cost", "kernels", "kernels/cpu", "symtile", "symtile/hlo", "symtile/partition", "tuner"},
	"bench/foreign":     {"kernels/ptx", "kernels/ptx/mutate", "kernels/ptx/sim"},
	"bench/gpu":         {"kernels", "kernels/gpu", "kernels/gpu/device", "kernels/gpu/golden", "kernels/gpu/simulated", "kernels/ptx/sim", "symtile", "symtile/hlo", "testdata/hlo"},
	"bench/judge":       {"cost", "cost/problem"},
	"bench/lookup":      {"cache", "kernels", "kernels/cpu", "query", "serve", "symtile/hlo", "tuner"},
	"bench/models":      {"cache", "kernels", "kernels/cpu", "kernels/executable", "symtile", "symtile/hlo", "symtile/partition", "tuner"},
	"bench/oracle":      {"cache", "cost", "kernels", "kernels/check", "kernels/cpu", "symtile", "symtile/hlo", "testdata/hlo", "tuner"},
	"bench/peers":       {"cache", "kernels", "kernels/check", "kernels/cpu", "kernels/cpu/sheet", "symtile", "symtile/hlo", "symtile/partition", "tuner"},
	"bench/symbolic":    {"symtile/index"},
	"cache":             {},
	"cmd/libtilewright": {"kernels", "kernels/cpu", "query", "serve", "tuner"},
	"cmd/tilewright": {
		"cache", "cmd/tilewright/internal/assembler", "cmd/tilewright/internal/filter", "cmd/tilewright/internal/line", "cmd/tilewright/internal/manual", "cmd/tilewright/internal/output", "cmd/tilewright/internal/packtiming", "cmd/tilewright/internal/threads", "cost", "cost/problem", "kernels", "kernels/check", "kernels/cpu", "kernels/cpu/sheet", "kernels/cuda", "kernels/cuda/cudasim", "kernels/executable", "kernels/gpu", "kernels/gpu/coalesce",
		"kernels/gpu/device", "kernels/gpu/golden", "kernels/gpu/simulated", "kernels/npy", "kernels/ptx/sim", "kernels/replay", "query", "search/contest", "search/table", "serve", "symtile", "symtile/hlo", "symtile/hlo/origin", "symtile/index",
		"symtile/layout", "symtile/layout/draw", "symtile/partition", "testdata/hlo", "tuner", "tuner/report",
	},
	"cmd/tilewright/internal/assembler":   {"kernels/gpu", "kernels/gpu/device", "kernels/gpu/golden"},
	"cmd/tilewright/internal/filter":      {"cache"},
	"cmd/tilewright/internal/line":        {},
	"cmd/tilewright/internal/manual":      {},
	"cmd/tilewright/internal/output":      {},
	"cmd/tilewright/internal/packtiming":  {"cache", "kernels", "kernels/check", "symtile", "symtile/hlo", "symtile/layout"},
	"cmd/tilewright/internal/threads":     {"kernels/gpu", "kernels/gpu/coalesce", "symtile/layout", "symtile/layout/draw"},
	"cost":                                {"kernels", "symtile", "symtile/hlo"},
	"cost/problem":                        {"cost", "kernels", "kernels/cpu", "kernels/cpu/sheet", "kernels/gpu", "kernels/gpu/device", "symtile", "symtile/hlo"},
	"kernels":                             {"symtile", "symtile/hlo", "symtile/hlo/packing"},
	"kernels/check":                       {"kernels", "kernels/check/internal/aliased", "kernels/reference", "symtile/hlo"},
	"kernels/check/internal/aliased":      {},
	"kernels/cpu":                         {"kernels", "kernels/cpu/internal/amd64", "kernels/cpu/internal/dilation", "kernels/cpu/internal/gemm", "kernels/cpu/internal/narrowing", "kernels/cpu/internal/portable", "kernels/cpu/internal/rates", "kernels/cpu/internal/rowkernel", "kernels/cpu/internal/running", "kernels/cpu/internal/selection", "kernels/cpu/internal/updates", "kernels/cpu/internal/vector", "kernels/cpu/internal/workers", "kernels/cpu/sheet", "symtile", "symtile/hlo", "symtile/hlo/packing", "symtile/index", "symtile/mask", "symtile/scattering"},
	"kernels/cpu/internal/amd64":          {},
	"kernels/cpu/internal/dilation":       {},
	"kernels/cpu/internal/gemm":           {},
	"kernels/cpu/internal/narrowing":      {"symtile", "symtile/hlo", "symtile/index"},
	"kernels/cpu/internal/portable":       {"kernels", "kernels/reference", "symtile/hlo"},
	"kernels/cpu/internal/rates":          {"kernels", "kernels/cpu/internal/gemm", "kernels/cpu/internal/vector"},
	"kernels/cpu/internal/rowkernel":      {"kernels/cpu/internal/amd64", "kernels/cpu/internal/vector", "symtile/hlo"},
	"kernels/cpu/internal/running":        {"kernels", "kernels/cpu/internal/portable", "symtile", "symtile/hlo"},
	"kernels/cpu/internal/selection":      {"symtile", "symtile/hlo"},
	"kernels/cpu/internal/updates":        {"kernels/cpu/internal/portable", "kernels/cpu/internal/rowkernel", "kernels/cpu/internal/vector", "symtile/hlo"},
	"kernels/cpu/internal/vector":         {"kernels/cpu/internal/amd64", "kernels/cpu/internal/portable", "symtile/hlo"},
	"kernels/cpu/internal/workers":        {},
	"kernels/cpu/sheet":                   {},
	"kernels/cuda":                        {"kernels/cuda/nvml", "kernels/gpu/device", "symtile/hlo"},
	"kernels/cuda/cudasim":                {"kernels/gpu/device", "kernels/ptx", "symtile/hlo"},
	"kernels/cuda/gen":                    {},
	"kernels/cuda/nvml":                   {},
	"kernels/executable":                  {"kernels", "kernels/reference", "symtile", "symtile/hlo", "symtile/hlo/inplace"},
	"kernels/gpu":                         {"kernels", "kernels/gpu/coalesce", "kernels/gpu/device", "kernels/gpu/internal/functions", "kernels/ptx", "symtile", "symtile/hlo", "symtile/index", "symtile/layout", "symtile/mask"},
	"kernels/gpu/coalesce":                {"symtile/hlo", "symtile/index", "symtile/layout"},
	"kernels/gpu/device":                  {"kernels", "kernels/ptx", "symtile/hlo"},
	"kernels/gpu/golden":                  {"kernels", "symtile", "symtile/hlo"},
	"kernels/gpu/internal/functions":      {"symtile/hlo"},
	"kernels/gpu/simulated":               {"kernels", "kernels/gpu/device", "kernels/ptx", "kernels/ptx/sim", "symtile/hlo"},
	"kernels/kerneltest":                  {"kernels/check", "symtile", "symtile/hlo", "testdata/hlo"},
	"kernels/npy":                         {"kernels", "symtile/hlo"},
	"kernels/ptx":                         {"symtile/source"},
	"kernels/ptx/mutate":                  {},
	"kernels/ptx/sim":                     {"kernels/ptx", "kernels/ptx/sim/internal/m16n8k16"},
	"kernels/ptx/sim/internal/m16n8k16":   {},
	"kernels/reference":                   {"kernels", "kernels/reference/internal/products", "symtile/hlo"},
	"kernels/reference/internal/products": {},
	"kernels/replay":                      {"kernels", "kernels/reference", "symtile", "symtile/hlo"},
	"query":                               {"cache", "cost", "kernels", "kernels/cpu", "symtile", "symtile/hlo", "symtile/hlo/origin", "symtile/hloproto", "symtile/index", "symtile/indexing", "symtile/partition", "tuner"},
	"search":                              {},
	"search/contest":                      {"cost/problem", "search", "search/table"},
	"search/table":                        {"search"},
	"serve":                               {"query", "symtile", "symtile/hlo", "tuner"},
	"symtile":                             {"symtile/hlo", "symtile/hlo/parts", "symtile/index", "symtile/indexing", "symtile/layout", "symtile/scattering"},
	"symtile/scattering":                  {"symtile/hlo"},
	"symtile/hlo":                         {"symtile/hlo/origin", "symtile/hlo/packing", "symtile/hlo/replicas", "symtile/source"},
	"symtile/hlo/origin":                  {},
	"symtile/hlo/packing":                 {},
	"symtile/hloproto":                    {"symtile/hlo"},
	"symtile/hlo/inplace":                 {"symtile/hlo"},
	"symtile/hlo/parts":                   {"symtile/hlo"},
	"symtile/hlo/replicas":                {},
	"symtile/index":                       {"symtile/source"},
	"symtile/indexing":                    {"symtile/hlo", "symtile/index"},
	"symtile/mask":                        {"symtile", "symtile/hlo", "symtile/index"},
	"symtile/partition":                   {"symtile", "symtile/hlo", "symtile/hlo/origin"},
	"symtile/source":                      {},
	"symtile/layout":                      {"symtile/hlo", "symtile/hlo/packing", "symtile/index"},
	"symtile/layout/draw":                 {"symtile/layout"},
	"tuner":                               {"cache", "cost", "kernels", "kernels/check", "search", "symtile", "symtile/hlo", "symtile/hlo/inplace", "symtile/hlo/origin", "symtile/partition"},
	"tuner/report":                        {"cache", "kernels", "symtile/hlo"},
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
		var imports []string
		for _, i := range p.Imports {
			if from, ours := strings.CutPrefix(i, module); ours {
				imports = append(imports, from)
			}
		}
		slices.Sort(imports)
		if !slices.Equal(imports, allowed) {
			t.Errorf("%s imports %q, the table says %q", room, imports, allowed)
		}
	}
}

var forbiddenNames = []string{"util", "utils", "common", "base", "core", "types", "helpers", "helper", "misc", "manager"}

func TestNames(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == ".git" || path == "out" { // out is what make installs
			return filepath.SkipDir
		}
		name := strings.TrimSuffix(strings.TrimSuffix(d.Name(), ".go"), "_test")
		if (d.IsDir() || strings.HasSuffix(d.Name(), ".go")) &&
			slices.Contains(forbiddenNames, name) {
			t.Errorf("%s: a name that says nothing", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
