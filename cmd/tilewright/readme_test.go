package main

import (
	"os"
	"strings"
	"testing"
)

// Every `$ tilewright show`, `simplify` and `layout` in the README prints what
// stands below it. What measures time is real too, but of one afternoon.
func TestReadmeIsReal(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, block := range strings.Split(string(text), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, session := range strings.Split("\n"+block, "\n$ tilewright ")[1:] {
			line, want, _ := strings.Cut(session, "\n")
			args := shellWords(line)
			if args[0] != "show" && args[0] != "simplify" && args[0] != "layout" {
				continue
			}
			var out, errs strings.Builder
			if status := run(args, strings.NewReader(""), &out, &errs); status != 0 {
				t.Errorf("%s: status %d\n%s", line, status, errs.String())
			} else if strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
				t.Errorf("%s prints\n%s\nREADME says\n%s", line, out.String(), want)
			}
			checked++
		}
	}
	if checked < 2 {
		t.Errorf("%d sessions found", checked)
	}
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
