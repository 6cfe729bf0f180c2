package tilewright_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
