package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeIsReal runs every `$ tilewright show`, `simplify` and `layout` in
// the README and in docs; each prints what stands below it. Sessions that
// measure time are of one afternoon and are not run.
func TestReadmeIsReal(t *testing.T) {
	t.Chdir("../..")
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range append(files, "README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "```console\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			for _, session := range strings.Split("\n"+block, "\n$ tilewright ")[1:] {
				checked += checkSession(t, file, session)
			}
		}
	}
	if checked < 3 {
		t.Errorf("%d sessions found", checked)
	}
}

// checkSession runs a command line and compares its output with the lines that
// follow it; commands that measure are left out.
func checkSession(t *testing.T, file, session string) int {
	line, want, _ := strings.Cut(session, "\n")
	args := shellWords(line)
	if args[0] != "show" && args[0] != "simplify" && args[0] != "layout" {
		return 0
	}
	var out, errs strings.Builder
	status := run(args, strings.NewReader(""), &out, &errs)
	if status != 0 {
		t.Errorf("%s: %s: status %d\n%s", file, line, status, errs.String())
	} else if strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
		t.Errorf("%s prints\n%s\n%s says\n%s", line, out.String(), file, want)
	}
	return 1
}

// shellWords splits at blanks outside single quotes.
func shellWords(line string) []string {
	var words []string
	for k, part := range strings.Split(line, "'") {
		if k%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
