package gemm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// signs are those of a and b, by the suffix of a kernel's name.
var signs = map[string][2]bool{"SS": {true, true}, "SU": {true, false}, "US": {false, true}, "UU": {false, false}}

// TestTileKernels emulates the kernels of AMX, decoded from their bytes, on every
// platform, with memory that ends where the operands do.
func TestTileKernels(t *testing.T) {
	all := listings(t)
	r := rand.New(rand.NewPCG(3, 4))
	for suffix, signed := range signs {
		for trial := range 24 {
			x := plainTiles{
				rows: 32, blocks: 1 + trial%3, steps: 1 + r.IntN(3), how: trial % 2,
				ars: 4 * r.IntN(300), crs: 384 + 4*r.IntN(40), signed: signed,
			}
			panels := 1 + trial/2%3
			next := x.steps*2048 + 64*r.IntN(3)
			name := "multiplyTiles" + suffix
			if trial%4 == 3 { // one block of fewer rows
				x.blocks, x.rows = 1, 1+r.IntN(32)
			}
			if x.rows <= 16 {
				name += "Low"
			}
			last := x.blocks*x.rows - 1
			a, b := randomBytes(r, last*x.ars+64*x.steps), randomBytes(r, panels*next)
			c := randomBytes(r, last*x.crs+128*panels)
			var vm machine
			config := vm.place(tileConfiguration(x.rows))
			at := vm.place(c)
			vm.args = map[string]uint64{
				"config": config, "panels": uint64(panels), "next": uint64(next), "blocks": uint64(x.blocks), "steps": uint64(x.steps),
				"a": vm.place(a), "ars": uint64(x.ars), "b": vm.place(b), "c": at, "crs": uint64(x.crs),
				"fetch": vm.place(randomFetch(r, x.crs)), "how": uint64(x.how),
			}
			want := bytes.Clone(vm.mem)
			l := all[name]
			if l == nil {
				t.Fatalf("%s is not there", name)
			}
			if err := vm.run(l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for p := range panels {
				x.multiply(a, b[p*next:], c[p*128:])
			}
			copy(want[at:], c)
			if !bytes.Equal(want, vm.mem) {
				t.Fatalf("%s, %d blocks of %d rows, %d steps, how %d: a wrong result", name, x.blocks, x.rows, x.steps, x.how)
			}
		}
	}
}

// tileConfiguration is what the kernels are given for blocks of some rows.
func tileConfiguration(rows int) []byte {
	c := make([]byte, 64)
	c[0] = 1
	first, second := min(rows, 16), max(rows-16, 0)
	for k, n := range []int{first, first, second, second, first, second, 16, 16} {
		if n > 0 {
			c[16+2*k], c[48+k] = 64, byte(n)
		}
	}
	return c
}

// randomFetch says what a kernel prefetches, anywhere.
func randomFetch(r *rand.Rand, row int) (all []byte) {
	for _, x := range []int{r.IntN(3), r.Int(), row, r.IntN(3), r.Int(), 64, r.IntN(4096), r.IntN(4096)} {
		all = binary.LittleEndian.AppendUint64(all, uint64(x))
	}
	return all
}

func randomBytes(r *rand.Rand, n int) []byte {
	x := make([]byte, n)
	for k := range x {
		if x[k] = byte(r.Uint32()); r.IntN(8) == 0 {
			x[k] = 0x80
		}
	}
	return x
}

// plainTiles is what a kernel has to do, element by element.
type plainTiles struct {
	rows, blocks, steps int
	ars, crs, how       int
	signed              [2]bool
}

func (x plainTiles) multiply(a, b, c []byte) {
	value := func(x byte, signed bool) int32 {
		if signed {
			return int32(int8(x))
		}
		return int32(x)
	}
	le := binary.LittleEndian
	for i := range x.rows * x.blocks {
		for j := range 32 {
			sum, to := int32(0), c[i*x.crs+4*j:]
			if x.how&1 == 0 {
				sum = int32(le.Uint32(to))
			}
			for k := range 64 * x.steps {
				// A row of b is a quad of terms of 32 columns.
				u, v := a[i*x.ars+k], b[k/4*128+4*j+k%4]
				sum += value(u, x.signed[0]) * value(v, x.signed[1])
			}
			le.PutUint32(to, uint32(sum))
		}
	}
}

// TestTileEncodings holds the bytes of every instruction of the kernels that the assembler
// does not have against the disassembler of binutils.
func TestTileEncodings(t *testing.T) {
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("binutils are not installed")
	}
	src, err := os.ReadFile("kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	var code, one []byte
	var want []string
	for line := range strings.Lines(string(src)) {
		var x byte
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "BYTE $0x%x", &x); n == 0 {
			continue
		}
		if one = append(one, x); len(one) == tileLength(one) {
			code, want, one = append(code, one...), append(want, disassembly(tileInstruction(one))), nil
		}
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-D", "-b", "binary", "-mi386:x86-64", "-Mintel", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimRight(line, "\n"), "\t"); len(f) == 3 {
			got = append(got, strings.Join(strings.Fields(f[2]), " "))
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%d instructions, not %d", len(got), len(want))
	}
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("%s, not %s", got[k], want[k])
		}
	}
}

// disassembly is a decoded instruction as objdump writes it for Intel's syntax.
func disassembly(f []string) string {
	name, ops := strings.ToLower(f[0]), f[1:]
	if name == "vpdpbusd" {
		name = "{vex} " + name
	}
	place := func(op string) string {
		m := memory.FindStringSubmatch(op)
		text := "r" + strings.ToLower(m[2])
		if m[3] != "" {
			text += "+r" + strings.ToLower(m[3]) + "*" + m[4]
		}
		if m[1] != "" {
			var disp int
			fmt.Sscan(m[1], &disp)
			text += fmt.Sprintf("+0x%x", disp)
		}
		return "[" + text + "]"
	}
	var words []string
	for k := len(ops) - 1; k >= 0; k-- {
		switch {
		case ops[k] == "":
		case ops[k][0] == 'Y' || ops[k][0] == 'Z':
			words = append(words, strings.ToLower(ops[k][:1])+"mm"+ops[k][1:])
		case isMemory(ops[k]):
			words = append(words, place(ops[k]))
		default:
			words = append(words, "tmm"+ops[k])
		}
	}
	return strings.TrimSpace(name + " " + strings.Join(words, ","))
}
