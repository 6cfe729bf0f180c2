package hlo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// What is read is printed as a module, what is not as its error.
func TestParsed(t *testing.T) {
	for _, file := range []string{"testdata/errors.txt", "testdata/forms.txt", "testdata/windows.txt"} {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			m, err := Parse("f.hlo", []byte(d.Input))
			if err != nil {
				return err.Error()
			}
			return m.String()
		})
	}
}

// Extents that a text leaves open, with those of the arguments.
func TestOpenExtents(t *testing.T) {
	datadriven.RunTest(t, "testdata/open_extents.txt", func(t *testing.T, d *datadriven.TestData) string {
		given := Extents{}
		for _, arg := range d.CmdArgs {
			dims, err := parseExtents(arg.Vals)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			given[arg.Key] = dims
		}
		m, err := ParseFor("f", []byte(d.Input), given)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(strings.Join(m.Open, " ") + "\n" + m.String())
	})
}

// parseExtents parses the numbers of x=(8,128).
func parseExtents(words []string) (dims []int64, err error) {
	for _, word := range words {
		d, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, err
		}
		dims = append(dims, d)
	}
	return dims, nil
}

// corpus parses every file of the shared corpus.
func corpus(t testing.TB) map[string]*Module {
	files, err := filepath.Glob("../../testdata/hlo/*.hlo")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d files in the corpus, %v", len(files), err)
	}
	all := map[string]*Module{}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(f, src)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(f)] = m
	}
	return all
}

func TestPrintParsesBack(t *testing.T) {
	for name, m := range corpus(t) {
		text := m.String()
		again, err := Parse(name, []byte(text))
		if err != nil {
			t.Errorf("%s printed: %v", name, err)
			continue
		}
		if again.String() != text {
			t.Errorf("%s prints differently the second time", name)
		}
		for k, c := range m.Fusions() {
			if again.Fusions()[k].Fingerprint() != c.Fingerprint() {
				t.Errorf("%s: printing changes the fingerprint of %s", name, c.Name)
			}
			canonical, err := Parse(name, []byte(c.Canonical()))
			if err != nil {
				t.Errorf("%s: canonical text: %v\n%s", name, err, c.Canonical())
			} else if canonical.Entry.Canonical() != c.Canonical() {
				t.Errorf("%s: canonical text is not canonical:\n%s\n%s", name, c.Canonical(), canonical.Entry.Canonical())
			}
		}
	}
}

// Renaming everything and moving independent instructions changes nothing.
func TestFingerprintIgnoresNamesAndOrder(t *testing.T) {
	all := corpus(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"softmax.hlo", "layernorm.hlo", "argmax.hlo", "gemm_bias_gelu.hlo", "mlp_block.hlo"}).Draw(t, "file")
		c := all[name].Fusions()[0]
		shuffled := *c
		shuffled.Name = "renamed"
		shuffled.Instrs = shuffle(t, c.Instrs)
		for _, i := range c.Instrs {
			old := i.Name
			i.Name = rapid.StringMatching(`[a-z]{1,8}\.[0-9]{1,3}`).Draw(t, "name")
			defer func() { i.Name = old }()
		}
		if shuffled.Fingerprint() != c.Fingerprint() {
			t.Fatalf("%s: fingerprint depends on order or names:\n%s", name, shuffled.Canonical())
		}
	})
}

// shuffle draws a random order in which operands still come first.
func shuffle(t *rapid.T, instrs []*Instr) []*Instr {
	var out []*Instr
	placed := map[*Instr]bool{}
	for len(out) < len(instrs) {
		var ready []*Instr
		for _, i := range instrs {
			ok := !placed[i]
			for _, o := range i.Operands {
				ok = ok && placed[o]
			}
			if ok {
				ready = append(ready, i)
			}
		}
		i := rapid.SampledFrom(ready).Draw(t, "next")
		placed[i] = true
		out = append(out, i)
	}
	return out
}

func TestFingerprintSeesWhatCounts(t *testing.T) {
	const base = `x = f32[4,6] parameter(0); y = f32[4,6] parameter(1); a = f32[4,6] add(x, y); z = f32[] constant(0);
r = f32[4] reduce(a, z), dimensions={1}, to_apply=add; dead = f32[4,6] negate(x); ROOT c = pred[4] compare(r, r), direction=LT, metadata={op_name="here"}`
	same := map[string][2]string{
		"metadata":       {`, metadata={op_name="here"}`, `, metadata={op_name="there" source_line=3}`},
		"dead code":      {"dead = f32[4,6] negate(x); ", ""},
		"default layout": {"x = f32[4,6] parameter(0)", "x = f32[4,6]{1,0} parameter(0)"},
	}
	different := map[string][2]string{
		"type":      {"f32", "f64"},
		"layout":    {"x = f32[4,6] parameter(0)", "x = f32[4,6]{0,1} parameter(0)"},
		"attribute": {"direction=LT", "direction=GT"},
		"operation": {"add(x, y)", "multiply(x, y)"},
		"operands":  {"add(x, y)", "add(y, x)"},
		"literal":   {"constant(0)", "constant(1)"},
		"reducer":   {"to_apply=add", "to_apply=max"},
		"extent":    {"4,6]", "4,7]"},
	}
	want := fingerprint(t, base)
	for what, edit := range same {
		if fingerprint(t, strings.ReplaceAll(base, edit[0], edit[1])) != want {
			t.Errorf("%s changes the fingerprint", what)
		}
	}
	for what, edit := range different {
		if fingerprint(t, strings.ReplaceAll(base, edit[0], edit[1])) == want {
			t.Errorf("another %s has the same fingerprint", what)
		}
	}
}

func fingerprint(t *testing.T, text string) [32]byte {
	t.Helper()
	m, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m.Entry.Fingerprint()
}

func TestForms(t *testing.T) {
	for what, text := range map[string]string{
		"shapes in operands": `ENTRY e { p = f32[2,3]{1,0} parameter(0); ROOT n = f32[2,3]{1,0} negate(f32[2,3]{1,0} p) }`,
		"tiled layout":       `ROOT p = bf16[16,256]{1,0:T(8,128)(2,1)S(1)} parameter(0)`,
		"index comments":     `a = f32[] parameter(0); ROOT t = (f32[], f32[], /*index=2*/f32[]) tuple(a, a, /*index=2*/a)`,
		"nested tuple":       `a = f32[] parameter(0); t = (f32[]) tuple(a); ROOT u = ((f32[]), f32[]) tuple(t, a)`,
		"zero extent":        `x = f32[0,4] parameter(0); ROOT n = f32[0,4] negate(x)`,
		"special numbers":    `ROOT c = f32[5] constant({inf, -inf, nan, -0, 0x1p-3})`,
		"complex":            `ROOT c = c64[2] constant({(1, -2), (0.5, 3)})`,
		"small types":        `a = s4[8] parameter(0); b = f8e4m3fn[8] parameter(1); c = pred[8] parameter(2); ROOT t = (s4[8], f8e4m3fn[8], pred[8]) tuple(a, b, c)`,
		"elided constant":    `ROOT c = f32[1000] constant({...})`,
		"unknown attributes": `x = f32[4] parameter(0), sharding={devices=[2,2]<=[4]}, frontend_attributes={a="b,c"}; ROOT n = f32[4] negate(x), backend_config={"a":[1,{"b":"}"}]}`,
		"no name":            `{ ROOT p = f32[] parameter(0) }`,
		"custom call":        `x = f32[4] parameter(0); ROOT n = f32[4] custom-call(x), custom_call_target="foo", operand_layout_constraints={f32[4]{0}}`,
	} {
		m, err := Parse(what, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		again, err := Parse(what, []byte(m.String()))
		if err != nil || again.String() != m.String() {
			t.Errorf("%s: prints as\n%s\n%v", what, m, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range corpus(f) {
		f.Add(m.String())
	}
	f.Add(`x = f32[4] parameter(0); ROOT y = f32[2,2] reshape(x)`)
	for _, pair := range pairs(f) {
		f.Add(pair[1])
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse("fuzz", []byte(text))
		if err != nil {
			holdPlace(t, text, err)
			return
		}
		if m.Name == "" {
			m.Name = "named"
		}
		again, err := Parse("again", []byte(m.String()))
		if err != nil || again.String() != m.String() {
			t.Fatalf("%v\n%s", err, m)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var all strings.Builder
	body := corpus(b)["layernorm.hlo"].Fusions()[0].String()
	for n := 0; all.Len() < 1<<20; n++ {
		all.WriteString(strings.Replace(
			body, "fused_computation",
			"f"+strings.Repeat("x", n%50)+strings.Repeat("y", n/50),
			1,
		))
	}
	text := []byte("%region_add (x: f32[], y: f32[]) -> f32[] {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT a = f32[] add(x, y)\n}\n" + all.String())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("big", text); err != nil {
			b.Fatal(err)
		}
	}
}

// What is looked at to size tables is in proportion to the text, whatever the
// computations look like.
func TestLookahead(t *testing.T) {
	for _, ending := range []string{"\n}\n", " }\n"} {
		var b strings.Builder
		b.WriteString("HloModule m\nc0 { p = f32[4] parameter(0)" + ending)
		for k := 1; k <= 5000; k++ {
			fmt.Fprintf(&b, "c%d { p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=c%d%s", k, k-1, ending)
		}
		b.WriteString("ENTRY e { ROOT p = f32[4] parameter(0)" + ending)
		p := newParser("m", []byte(b.String()))
		if err := p.file(); err != nil {
			t.Fatal(err)
		}
		if limit := 6 * b.Len(); p.looked > limit {
			t.Errorf("%q: %d bytes are looked at, of %d", ending, p.looked, b.Len())
		}
	}
}

// What XLA is given has reasons as frontend attributes, and of an operation that is not known no attributes
// that a custom-call does not have; String keeps them.
func TestForXLA(t *testing.T) {
	m, err := Parse("m", []byte("ENTRY e { x = f32[4] parameter(0)\nROOT y = f32[4] hadamard(x), dimensions={0}, shiny=true, window={size=1} }"))
	if err != nil {
		t.Fatal(err)
	}
	if s := m.String(); !strings.Contains(s, "unread=") || !strings.Contains(s, "dimensions={0}") {
		t.Errorf("String: %s", s)
	}
	const want = `custom-call(%x), custom_call_target="hadamard", window={size=1}, ` +
		`frontend_attributes={tilewright_unread="\"hadamard\" is not an HLO operation that is known here"}` + "\n"
	if s := m.ForXLA(); !strings.Contains(s, want) {
		t.Errorf("ForXLA: %s", s)
	}
}

// TestReasonsSurvive: a text for XLA keeps why an operation is not read, beside the frontend
// attributes that it had, and reading it again gives both.
func TestReasonsSurvive(t *testing.T) {
	for _, frontend := range []string{"", `, frontend_attributes={a="b,c"}`, `, frontend_attributes={a="b",z="}\""}`} {
		m, err := Parse("text", []byte("x = f32[4] parameter(0)\nROOT n = f32[4] not-an-operation(x)"+frontend))
		if err != nil {
			t.Fatal(err)
		}
		want, kept := m.Entry.Root.Unknown(), m.Entry.Root.Text("frontend_attributes")
		text := m.ForXLA()
		again, err := Parse("again", []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		root := again.Entry.Root
		if got := root.Unknown(); got != want || want == "" {
			t.Errorf("%s: %q became %q", frontend, want, got)
		}
		if got := root.Text("frontend_attributes"); got != kept {
			t.Errorf("frontend attributes %q became %q", kept, got)
		}
		if got := again.ForXLA(); got != text {
			t.Errorf("%s\nbecame\n%s", text, got)
		}
	}
	for _, text := range []string{
		`{tilewright_unread="why",a="b"}`, `{a="b", tilewright_unread="why", c="d"}`, `{a="b",tilewright_unread="why"}`, `{tilewright_unread="why"}`,
	} {
		attrs := frontendAttrs(text)
		if attrs[0] != (Attr{unreadReason, `"why"`}) || len(attrs) > 1 && strings.Contains(attrs[1].Value, "why") {
			t.Errorf("%s: %v", text, attrs)
		}
	}
	if got := frontendAttrs(`{a="b", tilewright_unread="why", c="d"}`)[1].Value; got != `{a="b", c="d"}` {
		t.Errorf("what is left is %s", got)
	}
	if got := frontendAttrs(`{tilewright_unread=broken}`); len(got) != 1 || got[0].Value != `{tilewright_unread=broken}` {
		t.Errorf("%v", got)
	}
}
