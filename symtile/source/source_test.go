package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/source"
)

func TestErrorAt(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		text string
		at   int
		want string
	}{
		{"ab\ncd", 4, "f:2:2: no\n  cd\n   ^"},
		{"\tab\r\n", 2, "f:1:3: no\n  \tab\n  \t ^"},
		{"−x", 3, "f:1:4: no\n  −x\n   ^"},
		{"\xff\xfex", 2, "f:1:3: no\n  ?x\n   ^"},
		{"ab", 9, "f:1:3: no\n  ab\n    ^"},
		{" \n", 0, "f:1:1: no"},
		{long, 150, "f:1:151: no\n  " + long[:180] + "\n  " + strings.Repeat(" ", 90) + "^"},
	} {
		place := source.Find(c.text, c.at)
		if got := source.ErrorAt("f", c.text, place, "no").Error(); got != c.want {
			t.Errorf("%q at %d:\n%s\nwant\n%s", c.text, c.at, got, c.want)
		}
		if got := source.ErrorAt(
			"f", []byte(c.text), place, "no",
		).Error(); got != c.want {
			t.Errorf("%q at %d, as bytes:\n%s\nwant\n%s", c.text, c.at, got, c.want)
		}
	}
}

func TestSkip(t *testing.T) {
	s := source.NewScanner("", "a\n/* b\n */c")
	s.SkipLine()
	s.Newline()
	if !s.Has("/*") {
		t.Fatalf("at %d", s.At)
	}
	s.SkipTo("*/")
	if got := s.Position().String(); got != "3:4" || !s.Has("c") {
		t.Errorf("at %s", got)
	}
	s.SkipTo("*/")
	if s.At != len(s.Src) {
		t.Errorf("at %d", s.At)
	}
}

// A reader embeds a Scanner and reports what it did not expect.
func ExampleScanner() {
	s := source.NewScanner("list.txt", "one\ntwo;")
	for s.Src[s.At] != ';' {
		if s.Has("\n") {
			s.Newline()
			continue
		}
		s.At++
	}
	fmt.Println(s.Fail(s.Here(), "expected a letter, found %q", s.Src[s.At]))
	// Output:
	// list.txt:2:4: expected a letter, found ';'
	//   two;
	//      ^
}

// TestControlCharacters: nothing of a text makes a terminal do anything.
func TestControlCharacters(t *testing.T) {
	text := "a\x1b]0;title\a\tb\x7f\u009bc"
	err := source.ErrorAt("f", text, source.Find(text, len(text)-1), "no")
	want := "f:1:" + fmt.Sprint(len(text)) + ": no\n  a␛]0;title␇\tb␡␦c\n             \t   ^"
	if err.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", err, want)
	}
}
