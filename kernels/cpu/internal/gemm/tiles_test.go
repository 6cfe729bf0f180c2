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
		for trial := range 12 {
			blocks, steps, how := 1+trial%3, 1+r.IntN(3), trial%2
			crs := 128 + 4*r.IntN(40)
			a, b := randomBytes(r, blocks*steps*2048), randomBytes(r, steps*2048)
			c := randomBytes(r, (32*blocks-1)*crs+128)
			var vm machine
			config := vm.place(tileConfiguration())
			at := vm.place(c)
			vm.args = map[string]uint64{
				"config": config, "blocks": uint64(blocks), "steps": uint64(steps),
				"a": vm.place(a), "b": vm.place(b), "c": at, "crs": uint64(crs), "how": uint64(how),
			}
			want := bytes.Clone(vm.mem)
			l := all["multiplyTiles"+suffix]
			if l == nil {
				t.Fatalf("multiplyTiles%s is not there", suffix)
			}
			if err := vm.run(l); err != nil {
				t.Fatalf("multiplyTiles%s: %v", suffix, err)
			}
			multiplyTilesPlainly(blocks, steps, a, b, c, crs, how, signed)
			copy(want[at:], c)
			if !bytes.Equal(want, vm.mem) {
				t.Fatalf("multiplyTiles%s, %d blocks, %d steps, how %d: a wrong result", suffix, blocks, steps, how)
			}
		}
	}
}

// tileConfiguration is what the kernels are given.
func tileConfiguration() []byte {
	c := make([]byte, 64)
	c[0] = 1
	for k := range 8 {
		c[16+2*k], c[48+k] = 64, 16
	}
	return c
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

// multiplyTilesPlainly is what a kernel has to do, element by element.
func multiplyTilesPlainly(blocks, steps int, a, b, c []byte, crs, how int, signed [2]bool) {
	value := func(x byte, signed bool) int32 {
		if signed {
			return int32(int8(x))
		}
		return int32(x)
	}
	le := binary.LittleEndian
	for i := range 32 * blocks {
		for j := range 32 {
			sum := int32(0)
			if how&1 == 0 {
				sum = int32(le.Uint32(c[i*crs+4*j:]))
			}
			for k := range 64 * steps {
				// Tiles of a: by block of 32 rows, step, half; of b: by step, half.
				x := a[((i/32*steps+k/64)*2+i%32/16)*1024+i%16*64+k%64]
				y := b[(k/64*2+j/16)*1024+k%64/4*64+j%16*4+k%4]
				sum += value(x, signed[0]) * value(y, signed[1])
			}
			le.PutUint32(c[i*crs+4*j:], uint32(sum))
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
