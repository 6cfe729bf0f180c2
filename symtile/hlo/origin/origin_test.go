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
