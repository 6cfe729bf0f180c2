package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// TestForeign runs testdata/foreign.txt: the smallest bodies of what compilers write and
// the simulator once refused or took for an error. A body has the parameters out, an
// address, and map, a tensor map of an array of 8 by 32 words; the answer is the first
// words of out, or the first finding.
func TestForeign(t *testing.T) {
	datadriven.RunTest(t, "testdata/foreign.txt", func(t *testing.T, d *datadriven.TestData) string {
		threads, words := 32, 1
		d.MaybeScanArgs(t, "threads", &threads)
		d.MaybeScanArgs(t, "words", &words)
		b := newBench(t)
		out := b.alloc(4 * 64)
		table := make([]uint32, 8*32)
		for i := range table {
			table[i] = uint32(i)
		}
		p := mustLoad(t, ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])\n{\n"+
			"\t.reg .pred %p<4>;\n\t.reg .b16 %h<8>;\n\t.reg .b32 %r<16>;\n\t.reg .b64 %rd<8>;\n\t.shared .align 1024 .b8 smem[4096];\n"+
			"\tld.param.u64 %rd0, [out];\n\tmov.u32 %r0, %tid.x;\n"+d.Input+"\n\tret;\n}\n")
		at := b.put(intBytes(table))
		tensor := TensorMap{
			Type: ptx.U32, Address: at,
			Dims: []uint64{32, 8}, Strides: []uint64{128},
			Box: []uint32{32, 4},
		}
		encoded, err := tensor.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r := b.launch(p, Launch{Entry: "k", Block: [3]int{threads, 1, 1}, Args: [][]byte{Value(out), encoded}}, everything)
		if len(r.Findings) > 0 {
			return strings.ReplaceAll(r.Findings[0].String(), "; ", ";\n  ") + "\n"
		}
		return fmt.Sprintln(b.words(out, words))
	})
}

// TestDescriptorVectors compares the addresses of wgmma operands with those of a reader
// of descriptors that was written from the ISA's text and figures alone
// (bench/foreign/layouts.py).
func TestDescriptorVectors(t *testing.T) {
	for line := range strings.Lines(readText(t, "layouts.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var descriptor, want uint64
		var major string
		var size int
		var mn, k int64
		_, err := fmt.Sscan(line, &descriptor, &major, &size, &mn, &k, &want)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		o, ok := decodeDescriptor(descriptor, 8*size, major == "mn")
		if got := o.address(mn, k); !ok || uint64(got) != want {
			t.Errorf("%s: %#x", strings.TrimSpace(line), got)
		}
	}
}
