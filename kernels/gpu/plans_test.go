package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// testdata/defaults has the default plans of fusions on devices, with the blocks
// they have and the seconds they are estimated to take, to be read.
func TestDefaults(t *testing.T) {
	datadriven.Walk(t, "testdata/defaults", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var devices []string
			d.ScanArgs(t, "device", &devices)
			m, err := hlo.Parse(path, []byte(d.Input+"\n"))
			if err != nil {
				return err.Error() + "\n"
			}
			p, err := symtile.Analyze(t.Context(), m.Entry)
			if err != nil {
				return err.Error() + "\n"
			}
			var b strings.Builder
			for _, name := range devices {
				fmt.Fprintf(&b, "%s: %s\n", name, defaultOn(p, name))
			}
			return b.String()
		})
	})
}

// defaultOn is the default plan on a device, and what it is estimated to take.
func defaultOn(p *symtile.Program, dev string) string {
	s, err := device.ParseSpec(dev)
	if err != nil {
		return err.Error()
	}
	plan, err := DefaultPlan(context.Background(), p, s)
	if err != nil {
		return err.Error()
	}
	m, err := newEstimate(p, s)
	if err != nil {
		return err.Error()
	}
	set := m.Terms()
	price := kernels.Price{Seconds: make([]float64, len(set.Names))}
	if err := m.Price(plan, &price); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %.0f blocks, %.4g µs", plan, m.set(plan.Tiles), price.Total(&set)*1e6)
}

// Of more tilings than are estimated, some of all sizes are: the first ones of an
// attention all have one row of q a block.
func TestTilingsOfAllSizes(t *testing.T) {
	before := maxEnumerated
	defer func() { maxEnumerated = before }()
	maxEnumerated = 1 << 11
	p := kerneltest.Program(t, `q = bf16[4,1024,64] parameter(0)
k = bf16[4,1024,64] parameter(1)
v = bf16[4,1024,64] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
s = f32[4,1024,1024] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
m = f32[4,1024] reduce(s, low), dimensions={2}, to_apply=maximum
ms = f32[4,1024,1024] broadcast(m), dimensions={0,1}
less = f32[4,1024,1024] subtract(s, ms)
e = f32[4,1024,1024] exponential(less)
sum = f32[4,1024] reduce(e, zero), dimensions={2}, to_apply=add
sums = f32[4,1024,1024] broadcast(sum), dimensions={0,1}
x = f32[4,1024,1024] divide(e, sums)
b = bf16[4,1024,1024] convert(x)
ROOT o = bf16[4,1024,64] dot(b, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
`)
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := DefaultPlan(t.Context(), p, s)
	if err != nil {
		t.Fatal(err)
	}
	if rows := plan.Tiles[1]; rows < 16 {
		t.Errorf("%s: %d rows of q a block", plan, rows)
	}
}

// What is offered of a product has deep rings and, where registers are short,
// producers that give some away; all of a sample of the best can be compiled, and there is
// neither too little nor too much of it.
func TestOffers(t *testing.T) {
	const text = "a = bf16[%[1]d,%[1]d] parameter(0)\nb = bf16[%[1]d,%[1]d] parameter(1)\np = bf16[%[1]d,%[1]d] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
	rng := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct {
		target   string
		n        int
		producer bool
	}{{"sm_80", 2048, false}, {"sm_90a", 2048, true}} {
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
			return newSimulator(c.target), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		p, b := kerneltest.Program(t, fmt.Sprintf(text, c.n)), New(s)
		all := slices.Collect(b.Plans(t.Context(), p))
		deep := slices.IndexFunc(all, func(x kernels.Plan) bool { return x.Knob("stages", 2) > maxOfferedStages })
		producer := slices.IndexFunc(all, func(x kernels.Plan) bool { return x.Knob("producer", 1) == 4 })
		t.Logf("%s %d: %d plans; the first deep ring is number %d, the first producer that gives registers away %d", c.target, c.n, len(all), deep, producer)
		if len(all) < 100 || len(all) > 10_000 || deep < 0 || (producer >= 0) != c.producer {
			t.Errorf("%s %d: %d plans, deep rings from %d on, producers from %d", c.target, c.n, len(all), deep, producer)
		}
		for range 40 {
			plan := all[rng.IntN(512)]
			if _, err := compile(p, plan, s.Spec()); err != nil {
				t.Errorf("%s: %v", c.target, err)
			}
		}
	}
}

// BenchmarkDefaultPlan is the time that the default plan of a fusion takes on an A100: the
// 90th percentile of the corpus and the longest.
func BenchmarkDefaultPlan(b *testing.B) {
	spec, err := device.ParseSpec("A100")
	if err != nil {
		b.Fatal(err)
	}
	kerneltest.BenchmarkDefaults(b, func(p *symtile.Program) error {
		_, err := DefaultPlan(b.Context(), p, spec)
		return err
	})
}

// Pricing a plan allocates nothing, whatever its product is computed on.
func TestPricingDoesNotAllocate(t *testing.T) {
	for _, dtype := range []string{"f16", "f32"} {
		p := kerneltest.Program(t, fmt.Sprintf("a = %[1]s[256,256] parameter(0)\nb = %[1]s[256,256] parameter(1)\np = %[1]s[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", dtype))
		for _, name := range []string{"V100", "A100", "H100"} {
			s, err := device.ParsePriced(name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := newEstimate(p, s)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := kernels.ParsePlan("64,128,32 stages=3 splitk=2")
			if err != nil {
				t.Fatal(err)
			}
			price := kernels.Price{Seconds: make([]float64, len(priceTerms))}
			allocs := testing.AllocsPerRun(10, func() { err = m.Price(plan, &price) })
			if err != nil || allocs > 0 {
				t.Errorf("%s on %s: %v allocations, %v", dtype, name, allocs, err)
			}
		}
	}
}

// BenchmarkPrice prices one plan of a product on an A100.
func BenchmarkPrice(b *testing.B) {
	p := kerneltest.Program(b, "a = f16[4096,4096] parameter(0)\nb = f16[4096,4096] parameter(1)\np = f16[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n")
	s, err := device.ParseSpec("A100")
	if err != nil {
		b.Fatal(err)
	}
	m, err := newEstimate(p, s)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := kernels.ParsePlan("128,128,32 stages=3 warps=4")
	if err != nil {
		b.Fatal(err)
	}
	price := kernels.Price{Seconds: make([]float64, len(priceTerms))}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Price(plan, &price); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLimits: devices of one product that a slice or a driver makes different have one
// name and say so in the safe context; a simulated device has none.
func TestLimits(t *testing.T) {
	whole, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	if d := deviceOf(whole); d.Safe != nil {
		t.Errorf("without a driver: %v", d.Safe)
	}
	whole.Driver = "575"
	slice := whole
	slice.SMs, slice.Memory, slice.Clock = 16, 10<<30, 1.5e9
	a, b := deviceOf(whole), deviceOf(slice)
	for name, want := range map[string]string{"driver": "575 575", "SMs": "132 16", "memory": "80 GiB 10 GiB", "clock": "1980 MHz 1500 MHz"} {
		if got := a.Safe[name] + " " + b.Safe[name]; got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
	if a.Name != b.Name {
		t.Errorf("%s and %s", a.Name, b.Name)
	}
}

// Loads between multiply-adds take time where the units take one of these in each cycle of
// a sub-partition, and fit between them where they take one in two.
func TestLoadsTakeSlots(t *testing.T) {
	work := blockCost{lanes: 1024, loads: 128}
	for rate, want := range map[float64]float64{128: 9, 64: 16} {
		if got := work.arithmeticCycles(device.Rates{F32: rate}); got != want {
			t.Errorf("%v multiply-adds a cycle: %v cycles; want %v", rate, got, want)
		}
	}
}
