package gpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// Neighbouring rows have each unit in different banks, whatever their length.
func TestSwizzle(t *testing.T) {
	for _, unit := range []int64{16, 32} {
		for n := int64(1); n <= 24; n++ {
			s := newSwizzle(unit, n*unit)
			line := lineBytes / unit
			for u := range n {
				for first := int64(0); first < 2*line; first += line {
					met := map[int64]bool{}
					for r := first; r < first+line; r++ {
						met[(r*n+u-u%s.group+u%s.group^r/s.span%s.group)%line] =
							true
					}
					if int64(len(met)) != line {
						t.Errorf("unit %d of %d of %d bytes: %d rows lie in %d places", u, n, unit, line, len(met))
					}
				}
			}
		}
	}
}

// compiled runs text with a plan on a simulator, checked against the reference.
func simulate(t *testing.T, target, text, plan string) *simulator {
	t.Helper()
	p := kerneltest.Program(t, text)
	v := kerneltest.Verifier(t, p, 3)
	dev := newSimulator(target)
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	b.AllowTF32()
	parsed, err := kernels.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	if !verify(t, b, v, p, parsed) {
		t.Fatalf("%s does not run\n%s", plan, text)
	}
	return dev
}

// matmul is C[m,n] = A·B of a type: layout "nt" has B as [n,k].
func matmul(from, to, layout string, m, n, k int64) string {
	lhs := fmt.Sprintf("%d,%d", m, k)
	rhs := fmt.Sprintf("%d,%d", k, n)
	l := 1
	r := 0
	if layout[0] == 't' {
		lhs, l = fmt.Sprintf("%d,%d", k, m), 0
	}
	if layout[1] == 't' {
		rhs, r = fmt.Sprintf("%d,%d", n, k), 1
	}
	right, _, _ := strings.Cut(from, "*")
	left := right
	if _, x, mixed := strings.Cut(from, "*"); mixed {
		left = x
	}
	return fmt.Sprintf("a = %s[%s] parameter(0)\nb = %s[%s] parameter(1)\nc = %s[%d,%d] dot(a, b), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\n", left, lhs, right, rhs, to, m, n, l, r)
}

// Fragments are read without bank conflicts, for all types, layouts and lengths
// of rows, and copies to shared memory write without.
func TestTensorDotBanks(t *testing.T) {
	for _, d := range [][3]string{
		{"sm_80", "f16", "f32"}, {"sm_80", "bf16", "bf16"},
		{"sm_80", "f32", "f32"}, {"sm_80", "s8", "s32"},
		{"sm_89", "f8e4m3fn", "f32"}, {"sm_89", "f8e5m2*f8e4m3fn", "f32"},
	} {
		for _, layout := range []string{"nn", "nt", "tn", "tt"} {
			for _, tiles := range []string{"32,32,32", "64,32,64", "64,64,16", "32,96,128"} {
				text := matmul(d[1], d[2], layout, 64, 96, 128)
				device := simulate(t, d[0], text, tiles+" stages=3 tf32=1")
				c := device.last
				if c.MMA == 0 {
					t.Errorf("%s %s: no tensor cores", d[1], layout)
				}
				if x := c.SharedLoad; x.Units != x.Ideal {
					t.Errorf("%s %s %s: %d wavefronts of shared loads, %d would do", d[1], layout, tiles, x.Units, x.Ideal)
				}
				if x := c.SharedStore; x.Units != x.Ideal {
					t.Errorf("%s %s %s: %d wavefronts of shared stores, %d would do", d[1], layout, tiles, x.Units, x.Ideal)
				}
			}
		}
	}
}

// Products without tensor cores read fragments and write tiles without bank
// conflicts, and do little but multiply and add.
func TestScalarDotBanks(t *testing.T) {
	for _, d := range [][2]string{
		{"f32", "f32"}, {"f64", "f64"}, {"s32", "s32"},
	} {
		for _, layout := range []string{"nn", "nt", "tn", "tt"} {
			for _, plan := range []string{"64,64,16 warps=2", "64,32,32 warps=4 stages=3", "32,32,8 warps=1", "64,96,64 warps=4", "16,16,64 warps=1"} {
				c := simulate(t, "sm_80", matmul(
					d[0], d[1], layout, 64, 96, 128,
				), plan).last
				load, store := c.SharedLoad, c.SharedStore
				if c.MMA > 0 || load.Units != load.Ideal || store.Units != store.Ideal {
					t.Errorf(
						"%s %s %s: %d wavefronts of shared loads, %d would do; of stores %d, %d",
						d[0], layout, plan, load.Units,
						load.Ideal, store.Units, store.Ideal,
					)
				}
			}
		}
	}
}

// An f32 product without tensor cores spends a fifth of an instruction at most
// beside each multiply-add of a warp, all there is around its loop included.
func TestScalarDotInstructions(t *testing.T) {
	for _, layout := range []string{"nn", "nt", "tn", "tt"} {
		c := simulate(t, "sm_80", matmul("f32", "f32", layout, 64, 64, 1024), "64,64,16 warps=2 stages=3").last
		fma := int64(64 * 64 * 1024 / 32)
		rest := float64(c.WarpInstructions-fma) / float64(fma)
		t.Logf("%s: %.3f instructions beside a multiply-add", layout, rest)
		if rest > 0.2 {
			t.Errorf("%s: %.3f instructions beside a multiply-add", layout, rest)
		}
	}
}

// Transposes go through shared memory without bank conflicts, and touch no more
// sectors of memory than there are; through registers only where a warp can have
// whole sectors of both sides.
func TestTransposeBanks(t *testing.T) {
	for _, d := range []string{"f32", "bf16", "f64", "u8", "s32", "s16"} {
		for _, c := range []struct{ shape, out, perm, plan, direct string }{
			{"64,64", "64,64", "1,0", "32,32 warps=4", ""},
			{"64,64", "64,64", "1,0", "64,64 warps=8", ""},
			{"64,128", "128,64", "1,0", "128,32 warps=4", ""},
			{"64,128", "128,64", "1,0", "64,64 warps=2", ""},
			{"128,128", "128,128", "1,0", "128,128 warps=2", ""},
			{"64,64", "64,64", "1,0", "64,64 warps=1", ""},
			{"128,64", "64,128", "1,0", "16,128 warps=1", "shared"},
			{"2,64,96", "2,96,64", "0,2,1", "1,32,64 warps=4", ""},
			{"32,2,64", "64,2,32", "2,1,0", "64,1,32 warps=2", ""},
		} {
			if d == "u8" && strings.HasPrefix(c.plan, "16,") {
				continue // rows of half a sector
			}
			if strings.HasPrefix(c.plan, "128,128") && slices.Contains([]string{"f32", "s32", "f64"}, d) {
				continue // more than a quarter of shared memory
			}
			text := fmt.Sprintf("a = %s[%s] parameter(0)\nb = %s[%s] transpose(a), dimensions={%s}\n", d, c.shape, d, c.out, c.perm)
			x := simulate(t, "sm_80", text, c.plan).last
			for _, y := range []struct {
				name string
				sim.Traffic
			}{{"global loads", x.GlobalLoad}, {
				"global stores", x.GlobalStore,
			}, {"shared loads", x.SharedLoad}, {"shared stores", x.SharedStore}} {
				direct := c.direct != "" && strings.HasPrefix(y.name, c.direct)
				if (y.Requests == 0) != direct || y.Units != y.Ideal {
					t.Errorf("%s %s %s: %s: %d, %d would do", d, c.shape, c.plan, y.name, y.Units, y.Ideal)
				}
			}
		}
	}
}

// Elements of 8 and 16 bits are loaded from shared memory in words of several, and put
// together by their bytes: neither loads nor bytes that are moved are more than an
// instruction for two elements. Both sides in memory have 16 bytes a thread.
func TestTransposeInstructions(t *testing.T) {
	for _, c := range []struct {
		plan  string
		loads int64 // of shared memory, of a thread, for its elements
		each  int64 // elements of a thread
		d     string
		most  float64 // instructions an element
	}{
		{"64,64 warps=4", 8, 32, "bf16", 3}, {"64,64 warps=2", 8, 64, "f16", 3},
		{"64,64 warps=8", 8, 16, "u16", 5},
		{"64,64 warps=4", 16, 32, "s8", 5}, {"64,64 warps=2", 16, 64, "u8", 5},
		{"128,128 warps=2", 32, 256, "bf16", 3},
		{"128,64 warps=1", 16, 256, "s8", 3},
	} {
		text := fmt.Sprintf("a = %[1]s[256,128] parameter(0)\nb = %[1]s[128,256] transpose(a), dimensions={1,0}\n", c.d)
		x := simulate(t, "sm_80", text, c.plan).last
		threads := 256 * 128 / c.each
		if n := x.SharedLoad.Requests; n*32 != threads*c.loads {
			t.Errorf("%s %s: %d loads of a thread, not %d", c.d, c.plan, n*32/threads, c.loads)
		}
		if y := x.GlobalLoad; y.Bytes != y.Requests*512 {
			t.Errorf("%s %s: %d bytes in %d loads", c.d, c.plan, y.Bytes, y.Requests)
		}
		if y := x.GlobalStore; y.Bytes != y.Requests*512 {
			t.Errorf("%s %s: %d bytes in %d stores", c.d, c.plan, y.Bytes, y.Requests)
		}
		n := float64(x.WarpInstructions*32) / (256 * 128)
		t.Logf("%s %s: %.2f instructions an element", c.d, c.plan, n)
		if n > c.most {
			t.Errorf("%s %s: %.2f instructions an element", c.d, c.plan, n)
		}
	}
}

// Words of several elements are right whatever else is done with them: types, masks of
// tiles that the array does not fill, other dimensions, arithmetic on the way.
func TestTransposedWords(t *testing.T) {
	for _, d := range []string{"bf16", "f16", "s8", "u8", "s16", "u16", "pred"} {
		for _, c := range []struct{ shape, out, perm, plan string }{
			{"96,96", "96,96", "1,0", "64,64 warps=2"},
			{"64,80", "80,64", "1,0", "64,64 warps=1"},
			{"80,64", "64,80", "1,0", "64,64 warps=1"},
			{"3,64,64", "64,64,3", "1,2,0", "64,64,3 warps=4"},
			{"3,64,64", "64,3,64", "2,0,1", "32,2,64 warps=2"},
			{"33,70", "70,33", "1,0", "64,32 warps=2"},
		} {
			text := fmt.Sprintf("a = %[1]s[%[2]s] parameter(0)\nb = %[1]s[%[3]s] transpose(a), dimensions={%[4]s}\n", d, c.shape, c.out, c.perm)
			simulate(t, "sm_80", text, c.plan)
			if d == "pred" {
				continue
			}
			text += fmt.Sprintf("y = %[1]s[%[2]s] parameter(1)\nr = %[1]s[%[2]s] add(b, y)\n", d, c.out)
			simulate(t, "sm_80", text, c.plan)
		}
	}
}
