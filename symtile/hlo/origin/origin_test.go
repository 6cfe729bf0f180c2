package origin

import "testing"

// What an instruction is made of, for people.
func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		`{op_type="dot" op_name="jit(f)/dot" source_file="a/b.py" source_line=12}`: "jit(f)/dot at a/b.py:12",
		`{op_name="a \"q\" source_line=3" source_file="b.py"}`:                     `a "q" source_line=3 at b.py`,
		`{source_line=7, source_file="c.py"}`:                                      "c.py:7",
		`{}`:                                                                       "",
		`{op_name="open`:                                                           "open",
		`{source_line=99999999999999999999}`:                                       ":9223372036854775807",
	} {
		if got := Of(text).String(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Metadata is what Of reads, whatever is in a name.
func TestMetadata(t *testing.T) {
	for _, s := range []Source{
		{}, {Op: "jit(f)/dot"}, {Op: `a "q" \ source_line=3`, File: "b c.py", Line: 7}, {File: "c.py"},
	} {
		if got := Of(s.Metadata()); got != s {
			t.Errorf("%+v: %s reads %+v", s, s.Metadata(), got)
		}
	}
	if first, others := First(Append(Append(Append(nil, Source{}), Source{Op: "a"}), Source{Op: "a"})); first != "a" || others != nil {
		t.Errorf("%q, %q", first, others)
	}
}

// The number of a frame becomes its file and line; one that the tables lack stays.
func TestResolve(t *testing.T) {
	var f Frames
	for _, e := range []struct {
		table string
		n     int64
		text  string
	}{
		{"FileNames", 2, `"m.py"`},
		{"FileLocations", 5, `{file_name_id=2 function_name_id=1 line=6 end_line=7 column=1 end_column=2}`},
		{"StackFrames", 12, `{file_location_id=5 parent_frame_id=1}`},
	} {
		f.Add(e.table, e.n, e.text)
	}
	for text, want := range map[string]string{
		`{op_name="stack_frame_id=1" stack_frame_id=12}`: `{op_name="stack_frame_id=1" source_file="m.py" source_line=6}`,
		`{stack_frame_id=1 op_name="x"}`:                 `{stack_frame_id=1 op_name="x"}`,
		`{op_name="x"}`:                                  `{op_name="x"}`,
	} {
		if got := f.Resolve(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A location of MLIR as metadata of HLO: the outermost name, the innermost line.
func TestLocations(t *testing.T) {
	var l Locations
	for _, line := range []string{
		`#loc1 = loc("m.py":3:23 to :28)`,
		`#loc2 = loc("mlp"(#loc1))`,
		`#loc3 = loc("f"("m.py":6:8))`,
		`#loc4 = loc(callsite(#loc2 at #loc3))`,
		`#round = loc("a"(#round))`,
		`#map = affine_map<(d0) -> (d0)>`,
	} {
		l.Define(line)
	}
	for text, want := range map[string]string{
		`unknown`:          ``,
		`#loc1`:            `m.py:3`,
		`"dot"(#loc4)`:     `dot at m.py:3`,
		`"dot"`:            `dot`,
		`"a \"q\""(#loc1)`: `a "q" at m.py:3`,
		`callsite("g"("x.py":1:2) at "h"("y.py":3:4))`:     `x.py:1`,
		`fused<"tag">["x.py":1:2 to 3:4, "y"("z.py":1:1)]`: `y at x.py:1`,
		`"jit(f)/mul"(fused[unknown, #loc4]`:               `jit(f)/mul at m.py:3`,
		`#round`:                                           `a`,
		`#missing`:                                         ``,
		`"open`:                                            `open`,
		``:                                                 ``,
	} {
		if got := Of(l.Metadata(text)).String(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// The name of a call stands in front of the names of what it calls, once.
func TestUnder(t *testing.T) {
	for _, c := range [][3]string{
		{"jit(f)", `{op_name="mul" source_line=3}`, `{op_name="jit(f)/mul" source_line=3}`},
		{"jit(f)", `{op_name="jit(f)/mul"}`, `{op_name="jit(f)/mul"}`},
		{"", `{op_name="mul"}`, `{op_name="mul"}`},
		{`a"b`, `{op_name="m\"ul"}`, `{op_name="a\"b/m\"ul"}`},
		{"f", `{source_line=3}`, `{source_line=3}`},
	} {
		if got := Under(c[0], c[1]); got != c[2] {
			t.Errorf("%s under %s: %s, want %s", c[1], c[0], got, c[2])
		}
	}
}
