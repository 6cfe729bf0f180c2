package tilewright_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/gpu"
)

// pathInText is a path of the repository in backquotes: folders and perhaps a
// file. Where it begins with a folder that does not exist, it is none.
var pathInText = regexp.MustCompile("`((?:[a-z0-9_.]+/)+[a-z0-9_.*]*)`")

// TestDocumentedPaths finds every file and folder that README, CONTRIBUTING and
// docs name in backquotes.
func TestDocumentedPaths(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range append(files, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pathInText.FindAllStringSubmatch(string(text), -1) {
			root, _, _ := strings.Cut(m[1], "/")
			if _, err := os.Stat(root); err != nil {
				continue
			}
			named++
			if found, _ := filepath.Glob(m[1]); len(found) == 0 {
				t.Errorf("%s names %s, which is not there", file, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d paths found", named)
	}
}

// TestReadmeLength keeps the first page short.
func TestReadmeLength(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 120 {
		t.Errorf("README.md has %d lines, at most 120 are wanted", n)
	}
}

// TestReadmeCounts: the README names every module that is required, with those of tests, and
// its numbers of models and of lines are those of the tree.
func TestReadmeCounts(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme := read("README.md")
	// The module's name, or for go-internal the package of it that is used.
	named := map[string]string{"github.com/rogpeppe/go-internal": "testscript"}
	for line := range strings.Lines(read("go.mod")) {
		name, _, required := strings.Cut(strings.TrimSpace(line), " v")
		if !required || strings.Contains(line, "// indirect") {
			continue
		}
		word := path.Base(name)
		if other, ok := named[name]; ok {
			word = other
		}
		if !strings.Contains(readme, word) {
			t.Errorf("README.md does not say what %s is for", name)
		}
	}
	models := map[string]bool{}
	files, _ := filepath.Glob("bench/models/corpus/*")
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		models[name] = true
	}
	if want := fmt.Sprintf("%d models of other people", len(models)); !strings.Contains(readme, want) {
		t.Errorf("README.md lacks %q", want)
	}
	code := 0
	for line := range strings.Lines(read("kernels/npy/npy.go")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			code++
		}
	}
	if want := fmt.Sprintf("by %d lines of our own", (code+5)/10*10); !strings.Contains(readme, want) {
		t.Errorf("README.md lacks %q: %d lines", want, code)
	}
}

// TestDesignNamesPackages finds every package of the import table in the table
// of docs/design.md.
func TestDesignNamesPackages(t *testing.T) {
	text, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for room := range mayImport {
		if !strings.Contains(string(text), "`"+room+"`") {
			t.Errorf("docs/design.md does not say what %s is for", room)
		}
	}
}

// knobRow is a row of a table of knobs: the name, and the least and the greatest value.
var knobRow = regexp.MustCompile("(?m)^\\| `([a-z0-9]+)` \\| ([0-9]+)(?:, [0-9, ]*| to )([0-9]+)(?:, a power of two)? \\| ")

// TestKnobsAreDocumented: the tables of docs/formats.md have all knobs of both backends, from
// their least to their greatest values.
func TestKnobsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []struct {
		name  string
		check func(kernels.Plan) error
	}{{"CPU", cpu.CheckKnobs}, {"GPU", gpu.CheckKnobs}} {
		_, table, _ := strings.Cut(string(text), "\n| knob of a "+backend.name+" plan |")
		table, _, _ = strings.Cut(table, "\n\n")
		with := func(name string, value int64) error { return backend.check(kernels.Plan{}.With(name, value)) }
		_, names, _ := strings.Cut(fmt.Sprint(with("nothing", 0)), "; it has ")
		for _, name := range strings.Split(names, ", ") {
			if !strings.Contains(table, "\n| `"+name+"` | ") {
				t.Errorf("docs/formats.md has no row of the %s knob %s", backend.name, name)
			}
		}
		rows := knobRow.FindAllStringSubmatch(table, -1)
		if len(rows) != strings.Count(table, "\n| `") {
			t.Errorf("%d rows of %s knobs are understood of %d", len(rows), backend.name, strings.Count(table, "\n| `"))
		}
		for _, row := range rows {
			var lo, hi int64
			fmt.Sscan(row[2]+" "+row[3], &lo, &hi)
			if err := with(row[1], hi); err != nil {
				t.Error(err)
			}
			if with(row[1], lo-1) == nil || with(row[1], hi+1) == nil {
				t.Errorf("docs/formats.md: %s of the %s has more values than from %d to %d", row[1], backend.name, lo, hi)
			}
		}
	}
}

// TestCPUPage: every test that docs/cpu.md names is there, and it has the eight causes that a
// review found, each with a test.
func TestCPUPage(t *testing.T) {
	page, err := os.ReadFile("docs/cpu.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`(Test\\w+)`")
	tests := testsOfCPU(t)
	for _, m := range name.FindAllStringSubmatch(string(page), -1) {
		if !tests[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| (C[1-8]) \|.*$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != 8 {
		t.Errorf("%d causes are listed, not 8", len(rows))
	}
	for _, row := range rows {
		if !name.MatchString(row[0]) {
			t.Errorf("%s has no test", row[1])
		}
	}
}

// testsOfCPU are the names of the tests of the CPU backend.
func testsOfCPU(t *testing.T) map[string]bool {
	tests := map[string]bool{}
	for _, folder := range []string{"kernels/cpu", "kernels/cpu/internal/*"} {
		files, _ := filepath.Glob(folder + "/*_test.go")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = true
			}
		}
	}
	return tests
}
