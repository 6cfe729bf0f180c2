package hloproto

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Modules that JAX made, before and after XLA's optimisation, as a message and as
// the text that the same XLA prints of it: both are one module. The text form of
// the message, and a snapshot around it, too.
func TestEqualsText(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pb")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d messages, %v", len(files), err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(strings.TrimSuffix(file, ".pb") + ".hlo")
		if err != nil {
			t.Fatal(err)
		}
		want, err := hlo.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, file, want, src)
		module := dynamicpb.NewMessage(messages().ByName("HloModuleProto"))
		if err := proto.Unmarshal(src, module); err != nil {
			t.Fatal(err)
		}
		printed, err := prototext.Marshal(module)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, file+" as text", want, printed)
		compare(t, file+" in a snapshot", want, snapshot(src))
	}
}

// snapshot puts a module into the HloProto of an HloSnapshot: each is field 1.
func snapshot(module []byte) []byte {
	inner := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), module)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
}

// compare reads a message and reports where its computations differ from those of
// the text.
func compare(t *testing.T, name string, want *hlo.Module, src []byte) {
	t.Helper()
	if !Detected(src) {
		t.Errorf("%s is not taken for a message", name)
	}
	text, err := Text(name, src)
	if err != nil {
		t.Error(err)
		return
	}
	got, err := hlo.Parse(name, text)
	if err != nil {
		t.Error(err)
		return
	}
	if got.Entry.Name != want.Entry.Name || len(got.Computations) != len(want.Computations) {
		t.Errorf("%s: %d computations, entry %s; the text has %d, %s", name, len(got.Computations), got.Entry.Name, len(want.Computations), want.Entry.Name)
		return
	}
	byName := map[string]*hlo.Computation{}
	for _, c := range got.Computations {
		byName[c.Name] = c
	}
	for _, c := range want.Computations {
		if byName[c.Name] == nil {
			t.Errorf("%s: there is no %s", name, c.Name)
			continue
		}
		a, b := c.Canonical(), byName[c.Name].Canonical()
		if a != b {
			t.Errorf("%s: %s differs:\n%s", name, c.Name, firstDifference(a, b))
		}
		if s := byName[c.Name].Source(); c.Source().String() != "" && s != c.Source() {
			t.Errorf("%s: %s comes from %v, in the text from %v", name, c.Name, s, c.Source())
		}
	}
}

// firstDifference is the first line in which two texts differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for k := range min(len(x), len(y)) {
		if x[k] != y[k] {
			return "text    " + x[k] + "\nmessage " + y[k]
		}
	}
	return "one is longer"
}

// What is no module is refused by what it is.
func TestRefused(t *testing.T) {
	for src, want := range map[string]string{
		"ML\xefR\x0dMLIR21.0.0git\x00\x03builtin\x00tosa\x00":    "f is MLIR bytecode, which is not read; `mlir-opt f -o f.mlir` makes text of it",
		"ML\xefR\x0dMLIR21.0.0git\x00\x03func\x00stablehlo\x00":  "f is StableHLO as MLIR bytecode, which is not read; `stablehlo-opt f -o f.mlir` makes text of it",
		"ML\xefR\x03StableHLO_v1.9.3\x00\x03builtin\x00vhlo\x00": "f is a portable artifact of StableHLO (MLIR bytecode), which is not read; `stablehlo-translate --deserialize f -o f.mlir` makes text of it",
		"ML\xefR\x01MLIRgoogle-trunk\x00\x03builtin\x00vhlo\x00": "`stablehlo-translate --deserialize f -o f.mlir`",
		"ML\xefR":                    "`mlir-opt f -o f.mlir`",
		"\x00\x00\x00":               "f is neither text nor an HloModuleProto",
		"\x89PNG\r\n\x1a\n":          "f is neither text nor an HloModuleProto",
		"name: \"m\"":                "with computations",
		"name: \"m\" computations {": "f is neither text nor an HloModuleProto",
		"name: \"m\"\ncomputations { name: \"c\" id: 1 instructions { name: \"a\" opcode: \"add\" shape { element_type: F32 } operand_ids: 7 } }": "f: a: operand 7 is not in the computation",
		"name: \"m\"\ncomputations { instructions { name: \"a\" opcode: \"tuple\" } }":                                                            "f: a: it has no shape",
		// Misspelt fields, in each form of a message in a text, and in a list of them.
		"name: \"m\"\ncomputations {\n name: \"c\" instructions { name: \"p\" opcode: \"parameter\" parameter_nmber: 3 } }":        "f:3: HloInstructionProto has no field \"parameter_nmber\" (did you mean \"parameter_number\"?)",
		"hlo_module { # opcod: {\n computations: < instructions: [{ name: 'a: {' sharding { opcod: 1 } }, { opcod: \"add\" }] > }": "f:2: HloInstructionProto has no field \"opcod\" (did you mean \"opcode\"?)",
		"hlo { hlo_module { computations { instructions { shape { element_type: F32 dimension: [8, 16] } } } } }":                  "f:1: ShapeProto has no field \"dimension\" (did you mean \"dimensions\"?)",
	} {
		if !Detected([]byte(src)) {
			t.Errorf("%q is taken for text", src)
		}
		if _, err := Text("f", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
	for _, text := range []string{"HloModule m", "name = f32[] parameter(0)", "module {", "// x\nfunc.func"} {
		if Detected([]byte(text)) {
			t.Errorf("%q is taken for a message", text)
		}
	}
}

// FuzzText: nothing panics, whatever the bytes are.
func FuzzText(f *testing.F) {
	files, _ := filepath.Glob("testdata/softmax*.pb")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("name: \"m\" computations { name: \"c\" instructions { name: \"a\" opcode: \"constant\" shape { element_type: S4 dimensions: 3 } literal { s4s: \"ab\" } } }"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if text, err := Text("f", src); err == nil {
			_, _ = hlo.Parse("f", text)
		}
	})
}
