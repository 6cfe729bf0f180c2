package ptx

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// prologue declares what the snippets of testdata/*.txt use.
const prologue = `	.reg .pred %p<4>;
	.reg .b16 %h<8>;
	.reg .b32 %r<16>;
	.reg .b64 %rd<8>;
	.reg .f32 %f<136>;
	.reg .f64 %fd<4>;
	.reg .f16 %hf<2>;
	.reg .u32 %u<2>;
`

// TestText runs testdata/*.txt. The input of the command body is statements of
// an entry, for target= and version=, that of module a whole module; both answer
// with the first error or ok, print with the module as it is printed.
func TestText(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".txt") {
			continue
		}
		t.Run(f.Name(), func(t *testing.T) {
			datadriven.RunTest(t, "testdata/"+f.Name(), func(t *testing.T, d *datadriven.TestData) string {
				return textCase(t, d)
			})
		})
	}
}

func textCase(t *testing.T, d *datadriven.TestData) string {
	input := d.Input + "\n"
	if d.Cmd == "body" {
		target, version := "sm_90a", "8.0"
		d.MaybeScanArgs(t, "target", &target)
		d.MaybeScanArgs(t, "version", &version)
		input = ".version " + version + "\n.target " + target + "\n.address_size 64\n.shared .align 128 .b8 smem[1024];\n" +
			".visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])\n.maxntid 256\n{\n" + prologue + input
		if !d.HasArg("open") {
			input += "\tret;\n"
		}
		input += "}\n"
	}
	m, err := Parse("", []byte(input))
	if err == nil {
		reprint(t, m)
		err = m.Check()
	}
	switch {
	case err != nil:
		return err.Error() + "\n"
	case d.Cmd == "print":
		return string(m.Text())
	}
	return "ok\n"
}

// What clang prints reads back, and prints as itself from then on.
func TestClang(t *testing.T) {
	src, err := os.ReadFile("testdata/clang/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse("kernels.ptx", src)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	if len(m.Entries) != 5 {
		t.Errorf("%d entries, expected 5", len(m.Entries))
	}
	reprint(t, m)
}
