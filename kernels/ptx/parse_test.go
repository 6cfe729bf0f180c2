package ptx

import (
	"bytes"
	"testing"
)

func mustParse(t testing.TB, src []byte) *Module {
	t.Helper()
	m, err := Parse("", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return m
}

// reprint checks that the printed text reads back as itself.
func reprint(t testing.TB, m *Module) {
	t.Helper()
	text := m.Text()
	if again := mustParse(t, text).Text(); !bytes.Equal(text, again) {
		t.Fatalf("printed\n%s\nread and printed\n%s", text, again)
	}
}
