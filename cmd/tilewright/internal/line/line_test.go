package line

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"fused", 5, "fused"},
		{"fused_computation", 9, "fuse…tion"},
		{"fused_computation", 8, "fuse…ion"},
		{"µµµµµµ", 3, "µ…µ"},
		{"abc", 1, "…"},
		{"abc", 0, "…"},
		{"", 3, ""},
	} {
		if got := Shorten(c.name, c.width); got != c.want {
			t.Errorf("%q in %d is %q, want %q", c.name, c.width, got, c.want)
		}
	}
}

func TestJoin(t *testing.T) {
	got := Join(30, "softmax: 24 µs", "", "plan row=8 col=512", "regret ≤ 2% of 8 tried", "from "+strings.Repeat("x", 40)+" and on")
	want := `softmax: 24 µs;
  plan row=8 col=512;
  regret ≤ 2% of 8 tried;
  from
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  and on`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// FuzzJoin demands that no line of several words is too long, and that no word is lost.
func FuzzJoin(f *testing.F) {
	f.Add(20, "a: 1", "plan m=1 n=2", "from somewhere over there")
	f.Add(9, "  x", "", "µµµµµµµµµµµµµ")
	f.Fuzz(func(t *testing.T, width int, a, b, c string) {
		if width < 8 || width > 200 || strings.ContainsAny(a+b+c, "\n") || !utf8.ValidString(a+b+c) {
			return
		}
		out := Join(width, a, b, c)
		for l := range strings.SplitSeq(out, "\n") {
			if n := utf8.RuneCountInString(l); n > width && strings.Contains(strings.TrimSpace(l), " ") {
				t.Errorf("%d characters in %q, at most %d", n, l, width)
			}
		}
		for _, word := range strings.Split(a+" "+b+" "+c, " ") {
			if !strings.Contains(out, word) {
				t.Errorf("%q is not in %q", word, out)
			}
		}
	})
}
