package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/symtile/hlo"
)

func TestSheet(t *testing.T) {
	datadriven.RunTest(t, "testdata/sheet.txt", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			fmt.Fprintln(&b, sheetLine(t, d.Cmd, strings.TrimSpace(line)))
		}
		return b.String()
	})
}

func sheetLine(t *testing.T, cmd, line string) string {
	switch cmd {
	case "parse":
		s, err := ParseSpec(line)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf(
			"%s %s: %d SMs, %d KiB shared a block, L2 %d MiB, wgmma %t",
			s.Name, s.Target, s.SMs,
			s.BlockShared>>10, s.L2>>20, s.Warpgroups(),
		)
	case "target":
		var major, minor int
		fmt.Sscanf(line, "%d.%d", &major, &minor)
		name, err := Target(major, minor)
		if err != nil {
			return err.Error()
		}
		return line + " " + name
	case "rates":
		s, err := ParseSpec(line)
		if err != nil {
			return err.Error()
		}
		peak := func(rate float64) float64 { return 2 * rate * float64(s.SMs) * s.Clock / 1e12 }
		r := s.Rates
		return fmt.Sprintf(
			"%s: f32 %.1f, tf32 %.1f, f16 %.1f, bf16 %.1f, f8 %.1f, s8 %.1f",
			line, peak(r.F32), peak(r.TF32),
			peak(r.F16), peak(r.BF16), peak(r.F8),
			peak(r.S8),
		)
	case "occupancy":
		var name string
		var registers, shared, threads int
		if _, err := fmt.Sscan(line, &name, &registers, &shared, &threads); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s, err := ParseSpec(name)
		if err != nil {
			return err.Error()
		}
		o := s.Occupancy(registers, shared, threads)
		return fmt.Sprintf("%-35s %2d blocks %2d warps %3.0f%%, limited by %s", line, o.Blocks, o.Warps, 100*o.Share, o.Limit)
	}
	t.Fatalf("no command %s", cmd)
	return ""
}

// TestArgBytes: what a kernel parameter's bytes are.
func TestArgBytes(t *testing.T) {
	for _, c := range []struct {
		arg  Arg
		want string
		name string
	}{
		{AddressArg(0x1122334455667788), "8877665544332211", "0x1122334455667788"},
		{U32Arg(0xAABBCCDD), "ddccbbaa", "2864434397"},
		{U64Arg(1), "0100000000000000", "1"},
		{F32Arg(1), "0000803f", "1"},
	} {
		got := fmt.Sprintf("%x", c.arg.AppendTo(nil))
		if got != c.want ||
			c.arg.Size() != len(c.want)/2 ||
			c.arg.String() != c.name {
			t.Errorf("%v: %s, %d bytes; want %s", c.arg, got, c.arg.Size(), c.want)
		}
	}
	m := TensorMapArg(TensorMap{127: 9})
	b := m.AppendTo([]byte{1})
	if len(b) != 129 || b[128] != 9 || m.Align() != 64 {
		t.Errorf("tensor map: %d bytes, alignment %d", len(b), m.Align())
	}
}

type fixedFunction Resources

func (f fixedFunction) Resources() Resources { return Resources(f) }

// TestRefusals: what is refused before a driver sees it, and why.
func TestRefusals(t *testing.T) {
	h, _ := ParseSpec("H200")
	a, _ := ParseSpec("A100")
	f := fixedFunction{Registers: 168, SharedBytes: 1024}
	good := TensorMapSpec{
		DType:   hlo.BF16,
		Base:    256,
		Dims:    []uint64{512, 300},
		Strides: []uint64{1024},
		Box:     []uint32{64, 128},
		Swizzle: Swizzle128,
	}
	spec := func(change func(*TensorMapSpec)) error { s := good; change(&s); return s.Check() }
	for want, err := range map[string]error{
		"": h.Check(Launch{
			Function:    f,
			Grid:        Dim3{X: 4},
			Block:       Dim3{X: 384},
			Cluster:     Dim3{X: 2},
			SharedBytes: 200 << 10,
		}),
		"no function":                   h.Check(Launch{}),
		"1025x1x1 threads":              h.Check(Launch{Function: f, Block: Dim3{X: 1025}}),
		"512 threads of 168 registers":  h.Check(Launch{Function: f, Block: Dim3{X: 512}}),
		"233472 bytes of shared memory": h.Check(Launch{Function: f, SharedBytes: 227 << 10}),
		"no programmatic dependent":     a.Check(Launch{Function: f, Dependent: true}),
		"sm_80 has no clusters":         a.Check(Launch{Function: f, Cluster: Dim3{X: 2}}),
		"a cluster of 16 blocks; there may be 8": h.Check(Launch{
			Function: f,
			Cluster:  Dim3{X: 16},
			Grid:     Dim3{X: 16},
		}),
		"2x1x1 do not divide a grid of 3x1x1": h.Check(Launch{
			Function: f,
			Cluster:  Dim3{X: 2},
			Grid:     Dim3{X: 3},
		}),
		"65536":                  h.Check(Launch{Function: f, Grid: Dim3{Y: 65536}}),
		"the function allows 64": h.Check(Launch{Function: fixedFunction{MaxThreads: 64}, Block: Dim3{X: 128}}),

		"6 dimensions":      spec(func(s *TensorMapSpec) { s.Dims = make([]uint64, 6) }),
		"2 strides":         spec(func(s *TensorMapSpec) { s.Strides = []uint64{16, 16} }),
		"base 0x8":          spec(func(s *TensorMapSpec) { s.Base = 8 }),
		"stride 1000":       spec(func(s *TensorMapSpec) { s.Strides = []uint64{1000} }),
		"257 elements":      spec(func(s *TensorMapSpec) { s.Box = []uint32{64, 257} }),
		"10 bytes wide":     spec(func(s *TensorMapSpec) { s.Box = []uint32{5, 1} }),
		"wider than":        spec(func(s *TensorMapSpec) { s.Box = []uint32{128, 1} }),
		"swizzle of 48":     spec(func(s *TensorMapSpec) { s.Swizzle = 48 }),
		"0 elements":        spec(func(s *TensorMapSpec) { s.Dims = []uint64{512, 0} }),
		"box of 1 dimen":    spec(func(s *TensorMapSpec) { s.Box = []uint32{64} }),
		"elements of type ": spec(func(s *TensorMapSpec) { s.DType = hlo.C128 }),
	} {
		if (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, err := range []error{
		good.Check(),
		h.Check(Launch{Function: fixedFunction{}, SharedBytes: 227 << 10}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// An H20 has the architecture of an H100 and a quarter of its tensor cores' rates.
func TestCutProducts(t *testing.T) {
	whole := ProductRates("sm_90a", "NVIDIA H200")
	cut := ProductRates("sm_90a", "NVIDIA H20")
	if cut.BF16*4 != whole.BF16 || cut.F8*4 != whole.F8 || cut.S8*4 != whole.S8 || cut.F32 != whole.F32 {
		t.Errorf("%+v of %+v", cut, whole)
	}
}

// A MIG slice has its share of the memory's bandwidth, whatever the width of the bus.
func TestSliceBandwidth(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		target, name string
		bytes        int64
		read, want   float64
	}{
		{"sm_90a", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * gib, 3352e9, 419e9},
		{"sm_90a", "NVIDIA H100 PCIe MIG 2g.20gb", 20 * gib, 2039e9, 509.75e9},
		{"sm_80", "NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40 * gib, 2039e9, 1019.5e9},
		{"sm_80", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 * gib, 1555e9, 194.375e9},
		// The bus that was read is the slice's own.
		{"sm_90a", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * gib, 400e9, 400e9},
		{"sm_90a", "NVIDIA of next year", 10 * gib, 3e12, 3e12},
	} {
		if got := SliceBandwidth(c.target, c.name, c.bytes, c.read); got != c.want {
			t.Errorf("%s: %g bytes a second, not %g", c.name, got, c.want)
		}
	}
}

// The bytes that the system takes of each block on sm_90 are no kernel's own.
func TestOwnShared(t *testing.T) {
	h, _ := ParseSpec("H200")
	a, _ := ParseSpec("A100")
	for _, c := range []struct {
		s              Spec
		reported, want int
	}{{h, 1024, 0}, {h, 0, 0}, {h, 4096, 4096}, {a, 1024, 1024}} {
		if got := c.s.OwnShared(c.reported); got != c.want {
			t.Errorf("%d bytes on %s: %d", c.reported, c.s.Target, got)
		}
	}
}
