package ptx

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// FuzzParse: no text makes Parse or Check panic; what is read prints as text
// that reads and prints as itself, and that Check says the same of.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/good.txt", "testdata/bad.txt", "testdata/modules.txt"} {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range bytes.Split(src, []byte("----\n")) {
			_, body, _ := bytes.Cut(part, []byte("\n\n"))
			_, body, _ = bytes.Cut(bytes.TrimSpace(body), []byte("\n"))
			f.Add(body)
			f.Add([]byte(".version 8.0\n.target sm_90a\n.shared .align 16 .b8 smem[64];\n.entry k(.param .u64 a) {\n" + prologue + string(body) + "\nret;\n}\n"))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := Parse("fuzz", src)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 {
				t.Fatalf("an error without place: %v", err)
			}
			return
		}
		first := m.Check()
		text := m.Text()
		again, err := Parse("again", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !bytes.Equal(again.Text(), text) {
			t.Fatalf("printed\n%s\nread and printed\n%s", text, again.Text())
		}
		if second := again.Check(); (first == nil) != (second == nil) {
			t.Fatalf("first %v\nthen %v\n%s", first, second, text)
		}
	})
}
