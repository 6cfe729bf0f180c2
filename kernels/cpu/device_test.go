package cpu

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// defaultSeconds is the price of the first plan of a program on a sheet's processor.
func defaultSeconds(t *testing.T, s sheet.Sheet, p *symtile.Program) float64 {
	t.Helper()
	b := NewPriced(s)
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(s.Name, err)
	}
	x, err := b.Pricer(p)
	if err != nil {
		t.Fatal(s.Name, err)
	}
	terms := x.Terms()
	price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
	if err := x.Price(plan, &price); err != nil {
		t.Fatal(s.Name, err)
	}
	return price.Total(&terms)
}

// bf16Product is a product that takes long.
const bf16Product = `a = bf16[1024,1024] parameter(0)
b = bf16[1024,1024] parameter(1)
ROOT p = bf16[1024,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`

// program analyses a text.
func programOf(t *testing.T, text string) *symtile.Program {
	t.Helper()
	m, err := hlo.Parse("text", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// On every sheet a fusion has a finite price, and a core of a later family is not slower
// with products.
func TestPricesOfSheets(t *testing.T) {
	_, softmax := corpusProgram(t, "softmax")
	_, gemm := corpusProgram(t, "gemm_bias_gelu")
	bf16 := programOf(t, bf16Product)
	seconds := map[string]float64{}
	for _, s := range append(sheet.Known(), sheet.Typical()) {
		s.Cores = 1
		for _, p := range []*symtile.Program{softmax, gemm, bf16} {
			got := defaultSeconds(t, s, p)
			if math.IsNaN(got) || got < 1e-7 || got > 1 {
				t.Errorf("%s takes %g s on %s", p.Fusion.Name, got, s.Name)
			}
			seconds[s.Name] = got // the last: the product of bf16
		}
	}
	for _, c := range [][2]string{
		{"Sapphire Rapids", "Skylake-SP"},
		{"Granite Rapids", "Ice Lake-SP"},
		{"Skylake-SP", "Zen 2"},
		{"Zen 5", "Zen 4"},
	} {
		if seconds[c[0]] > seconds[c[1]] {
			t.Errorf("a product of bf16 takes %g s on %s and %g on %s", seconds[c[0]], c[0], seconds[c[1]], c[1])
		}
	}
	if f := seconds["Skylake-SP"] / seconds["Sapphire Rapids"]; f < 3 {
		t.Errorf("tiles of bf16 are %.2g times faster; they multiply 16 times as many", f)
	}
}

// The prior of Zen 4, where the rates of the typical core were found, and that of an
// unknown processor are these rates; the latter is less sure.
func TestPriors(t *testing.T) {
	zen4, err := sheet.Find("Zen 4")
	if err != nil {
		t.Fatal(err)
	}
	d := kernels.Device{Lanes: 2, VectorBits: 256, Levels: []kernels.Level{
		{Name: "L1", Bytes: 32 << 10}, {Name: "L2", Bytes: 1 << 20},
		{Name: "L3", Bytes: 32 << 20, Shared: true}, {Name: "memory", Shared: true},
	}}
	for _, p := range []prior{{zen4, true}, unknownPrior()} {
		r := p.rates(d)
		got := []float64{r.FLOPS.Value}
		for _, l := range r.Levels {
			got = append(got, l.Value)
		}
		for k, want := range []float64{128e9, 200e9, 120e9, 50e9, 16e9} {
			if got[k] != want {
				t.Errorf("%s, known %v: rate %d is %g and not %g", p.sheet.Name, p.known, k, got[k], want)
			}
		}
		sure := r.FLOPS.Spread == publishedSpread && r.Levels[0].Spread == publishedSpread
		if sure != p.known || r.Levels[3].Spread != borrowedSpread {
			t.Errorf("%s: %+v", p.sheet.Name, r)
		}
	}
}

// TestThirdCaches: the rate of a third cache is the sheet's, and instructions take as
// many times less as the clock is faster.
func TestThirdCaches(t *testing.T) {
	levels := []kernels.Level{{Name: "L3", Bytes: 32 << 20, Shared: true}, {Name: "memory"}}
	typical := unknownPrior().bandwidth(levels)
	for name, times := range map[string]float64{
		"Zen 2":      24 * 2.35 / (16 * 2.5),
		"Skylake-SP": 2.4 / 2.5,
		"Zen 5":      24 * 3.9 / (16 * 2.5),
		"Zen 4":      1, // it has neither a clock nor this rate
	} {
		s, err := sheet.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		got := prior{s, true}.bandwidth(levels)[0] / typical[0]
		if math.Abs(got-times) > 1e-9 {
			t.Errorf("%s: the third cache is %.3f times as fast as the typical one, want %.3f", name, got, times)
		}
	}
	s, err := sheet.Find("Zen 5")
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, "x = f32[64,1000] parameter(0); ROOT y = f32[1000,64] transpose(x), dimensions={1,0}")
	seconds := func(by prior) float64 {
		x, err := newPricer(p, pricedDevice, by)
		if err != nil {
			t.Fatal(err)
		}
		price := kernels.Price{Seconds: make([]float64, len(x.terms.Names))}
		if err := x.Price(kernels.Plan{Tiles: symtile.Tiling{100, 64}}, &price); err != nil {
			t.Fatal(err)
		}
		return price.Seconds[x.terms.Overlapping+termStrided]
	}
	if got := seconds(unknownPrior()) / seconds(prior{s, true}); math.Abs(got-3.9/2.5) > 1e-9 {
		t.Errorf("elements that are moved one at a time take %.3f times as long at 2.5 GHz as at 3.9", got)
	}
}

// What a hypervisor lists of a cache is not more than a core has, unless the sheet does
// not say, or says that there are products with more.
func TestBoundedCaches(t *testing.T) {
	for _, c := range []struct {
		name         string
		listed, want int64
	}{
		{"Ice Lake-SP", 480 << 20, 60 << 20},
		{"Zen 4", 320 << 20, 32 << 20},
		{"Zen 4", 96 << 20, 96 << 20},
		{"Zen 4", 16 << 20, 16 << 20},
		{"Graviton 4", 36 << 20, 36 << 20},
	} {
		s, err := sheet.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		listed := []kernels.Level{{Name: "L1", Bytes: s.L1Bytes}, {Name: "L3", Bytes: c.listed}, {Name: "memory"}}
		if got := (prior{s, true}).bounded(listed)[1].Bytes; got != c.want {
			t.Errorf("%s: %d of %d bytes, not %d", c.name, got, c.listed, c.want)
		}
		if got := unknownPrior().bounded(listed)[1].Bytes; got != c.listed {
			t.Errorf("unknown: %d of %d bytes", got, c.listed)
		}
	}
}

// The sheet of this machine is read as it is written, and describes the same device: the
// name of its winners, its caches, its lanes, and the plans that are best.
func TestSheetHere(t *testing.T) {
	_, p := corpusProgram(t, "gemm_bias_gelu")
	here := New()
	for _, s := range []sheet.Sheet{
		SheetHere(),
		sheetOf(unknownPrior(), sheet.Processor{Vendor: "CentaurHauls", Family: 7, Model: 91}, here.Identity()),
		sheetOf(unknownPrior(), sheet.Processor{}, here.Identity()),
	} {
		text, err := s.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := sheet.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got, want := NewPriced(again).Identity(), here.Identity()
		if got.Name != want.Name || got.Lanes != want.Lanes || got.Revision != want.Revision {
			t.Errorf("%+v is not %+v", got, want)
		}
		for k, l := range want.Levels {
			if got.Levels[k].Bytes != l.Bytes || got.Levels[k].SharedBy(got.Lanes) != l.SharedBy(want.Lanes) {
				t.Errorf("%+v is not %+v", got.Levels[k], l)
			}
		}
		if s.Vendor != sheet.Here().Vendor {
			continue // priced as another processor
		}
		a, err := NewPriced(again).Default(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := here.Default(t.Context(), p)
		if err != nil || a.String() != b.String() {
			t.Errorf("%s on the sheet, %s here, %v", a, b, err)
		}
	}
}

// A cache is shared on a sheet as it is on the device, also by one lane of several.
func TestSharedCaches(t *testing.T) {
	for _, l3 := range []kernels.Level{
		{Name: "L3", Bytes: 480 << 20},
		{Name: "L3", Bytes: 480 << 20, Shared: true},
		{Name: "L3", Bytes: 480 << 20, Shared: true, Lanes: 8},
		{Name: "L3", Bytes: 1 << 20},
	} {
		d := kernels.Device{Name: "cpu:x", Lanes: 1, Levels: []kernels.Level{
			{Name: "L1", Bytes: 32 << 10}, {Name: "L2", Bytes: 2 << 20}, l3,
			{Name: "memory", Shared: true},
		}}
		text, err := sheetOf(unknownPrior(), sheet.Processor{}, d).JSON()
		if err != nil {
			t.Fatal(err)
		}
		s, err := sheet.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := NewPriced(s).Identity()
		if deviceSpecOf(got) != deviceSpecOf(d) || got.Levels[2].Shared != l3.Shared {
			t.Errorf("%+v is %+v, not %+v", l3, deviceSpecOf(got), deviceSpecOf(d))
		}
	}
}

// A sheet runs nothing.
func TestPricedCompilesNothing(t *testing.T) {
	_, p := corpusProgram(t, "softmax")
	b := NewPriced(sheet.Known()[0])
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Compile(t.Context(), p, plan)
	var rejected *kernels.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "data sheet") {
		t.Error(err)
	}
	if d := b.Device(); d.FLOPS <= 0 || len(d.Levels) != 4 || d.Levels[3].Bandwidth <= 0 {
		t.Errorf("%+v", d)
	}
}
