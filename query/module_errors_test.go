package query

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Of a file of many modules that cannot be read the error names the first ones.
func TestModulesErrorIsShort(t *testing.T) {
	const bad = "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n ROOT r = f32[4] negate(b)\n}\n"
	text := strings.Repeat(bad+"// -----\n", 3000) + strings.Replace(bad, "(b)", "(a)", 1)
	all, err := Modules("many.hlo", []byte(text), 0, hlo.Extents{})
	if len(all) != 1 || err == nil || len(err.Error()) > 8<<10 ||
		!strings.Contains(err.Error(), "many.hlo: 2992 more of its 3001 modules cannot be read") {
		t.Errorf("%d modules, %d bytes of error: %.3000v", len(all), len(err.Error()), err)
	}
}

// A byte order mark is no part of the text.
func TestByteOrderMark(t *testing.T) {
	const text = "\ufeffHloModule m\nENTRY e {\n a = f32[4] parameter(0)\n ROOT r = f32[4] negate(a)\n}\n"
	if all, err := Modules("m.hlo", []byte(text), 0, nil); len(all) != 1 || err != nil {
		t.Errorf("%d modules, %v", len(all), err)
	}
}
