package ptx

import "testing"

// What nobody reads goes, and what it alone was computed from; effects, loops
// and reads by guards stay.
func TestPrune(t *testing.T) {
	const head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 p)\n{\n" +
		"\t.reg .b32 %r<9>;\n\t.reg .b64 %d<9>;\n\t.reg .pred %p<9>;\n"
	for _, c := range []struct{ name, body, want string }{
		{"a chain", "mov.u32 %r0, %tid.x;\nadd.u32 %r1, %r0, 1;\nshl.b32 %r2, %r1, 2;\nret;\n", "ret;\n"},
		{"a vector of which half is read", "mov.u32 %r0, 7;\nmov.b64 %d0, 5;\nmov.b64 {%r1, %r2}, %d0;\nst.shared.u32 [%r0], %r2;\nret;\n", ""},
		{"a guard", "mov.u32 %r0, 1;\nsetp.eq.u32 %p0, %r0, 1;\n@%p0 bra $L;\nbar.sync 0;\n$L:\nret;\n", ""},
		{"a counter", "mov.u32 %r0, 1;\n$L:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p0, %r0, 9;\n@%p0 bra $L;\nret;\n", ""},
		{"effects", "mov.u32 %r0, 64;\natom.shared.add.u32 %r1, [%r0], 1;\nld.volatile.shared.u32 %r2, [%r0];\nret;\n", ""},
	} {
		if c.want == "" {
			c.want = c.body
		}
		m, want := parsed(t, head+c.body+"}\n"), parsed(t, head+c.want+"}\n")
		m.Prune()
		if got := string(m.Text()); got != string(want.Text()) {
			t.Errorf("%s:\n%s", c.name, got)
		}
	}
}

func parsed(t *testing.T, text string) *Module {
	m, err := Parse("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
