package tilewright_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ptxText is a string that has an instruction, a register or a directive of PTX.
var ptxText = regexp.MustCompile(
	`^(abs|add|and|atom|bar|bra|cp|cvt|cvta|div|elect|ex2|fence|fma|griddepcontrol|ld|ldmatrix|lg2|mad|mapa|max|mbarrier|min|mma|mov|mul|neg|nanosleep|or|prmt|rcp|red|rem|rsqrt|selp|set|setmaxnreg|setp|shf|shfl|shl|shr|sin|cos|sqrt|st|stmatrix|sub|tanh|vote|wgmma|xor)\.[a-z]|^%(tid|ctaid|nctaid|laneid|clusterid|cluster_|globaltimer|clock)|^\.(reg|shared|entry|maxn|pragma)`,
)

// warpNames are the constants that are those of NVIDIA's multiprocessors.
var warpNames = []string{"WarpThreads", "WarpgroupThreads", "SubPartitions", "warpThreads", "nvidiaSector"}

// seamOf says what a file of the GPU backend knows of one vendor: "PTX", "warps", or "", and
// adds its identifiers to names.
func seamOf(t *testing.T, file string, names map[string]bool) (class string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(x.Value)
			if x.Kind == token.STRING && (ptxText.MatchString(text) || text == module+"kernels/ptx") {
				class = "PTX"
			}
		case *ast.Ident:
			names[x.Name] = true
			if class == "" && slices.Contains(warpNames, x.Name) {
				class = "warps"
			}
		}
		return true
	})
	return class
}

// citedName is a name of Go in backquotes.
var citedName = regexp.MustCompile("`([A-Za-z]+)`")

// TestSeamOfSecondVendor: docs/gpu.md says of each file of the GPU backend what a backend
// for another vendor would do with it, and the lists are those of what is in the files.
func TestSeamOfSecondVendor(t *testing.T) {
	text, err := os.ReadFile("docs/gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Another vendor's GPUs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed, names := map[string]string{}, map[string]bool{}
	var cited []string
	for line := range strings.Lines(section) {
		row := strings.Split(line, " | ")
		if len(row) < 4 || !strings.HasPrefix(line, "| **") {
			continue
		}
		class := map[string]string{"| **PTX**": "PTX", "| **warps**": "warps", "| **neither**": ""}[row[0]]
		folder := strings.Trim(row[1], "`")
		for _, name := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(row[2], -1) {
			listed[filepath.Join(folder, name[1]+".go")] = class
		}
		for _, name := range citedName.FindAllStringSubmatch(row[3], -1) {
			cited = append(cited, name[1])
		}
	}
	for _, folder := range []string{"kernels/gpu", "kernels/gpu/internal/functions", "kernels/gpu/coalesce", "kernels/gpu/device"} {
		files, _ := filepath.Glob(folder + "/*.go")
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			is := seamOf(t, file, names)
			if class, ok := listed[file]; !ok || class != is {
				t.Errorf("docs/gpu.md lists %s (%t) as %q, it is %q", file, ok, class, is)
			}
			delete(listed, file)
		}
	}
	for file := range listed {
		t.Errorf("docs/gpu.md lists %s, which is not there", file)
	}
	for _, name := range cited {
		if _, err := os.Stat(filepath.Join("kernels/gpu/device", name+".go")); !names[name] && err != nil {
			t.Errorf("docs/gpu.md names %s, which no file of the backend has", name)
		}
	}
}
