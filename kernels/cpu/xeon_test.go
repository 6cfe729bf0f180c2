package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// xeon is the machine of a review (docs/cpu.md, What a review on a Xeon found): two
// cores of a Granite Rapids, of whose last cache a hypervisor lists some bytes.
func xeon(t *testing.T, listed int64) *Priced {
	t.Helper()
	s, err := sheet.Find("Granite Rapids")
	if err != nil {
		t.Fatal(err)
	}
	s.Cores, s.L3Bytes, s.L3Cores = 2, listed, 2
	s.Device = "cpu:GenuineIntel-6-173-1 v512 2c"
	return NewPriced(s)
}

// listedByHypervisor is what that machine lists.
const listedByHypervisor = 480 << 20

// rowFusions write 16 MiB each; %d rows.
var rowFusions = map[string]string{
	"exponential": "x = f32[%[1]d,1024] parameter(0)\nr = f32[%[1]d,1024] exponential(x)",
	"add":         "x = f32[%[1]d,1024] parameter(0)\ny = f32[%[1]d,1024] parameter(1)\nr = f32[%[1]d,1024] add(x, y)",
	"softmax": `x = f32[%[1]d,1024] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
max = f32[%[1]d] reduce(x, low), dimensions={1}, to_apply=maximum
maxes = f32[%[1]d,1024] broadcast(max), dimensions={0}
less = f32[%[1]d,1024] subtract(x, maxes)
e = f32[%[1]d,1024] exponential(less)
sum = f32[%[1]d] reduce(e, zero), dimensions={1}, to_apply=add
sums = f32[%[1]d,1024] broadcast(sum), dimensions={0}
r = f32[%[1]d,1024] divide(e, sums)`,
}

// offeredKnobs are the values of each knob among the plans that are offered, and −1 where a
// plan does not say.
func offeredKnobs(t *testing.T, x *Priced, p *symtile.Program) map[string][]int64 {
	t.Helper()
	values := map[string][]int64{}
	for plan := range x.Plans(t.Context(), p) {
		for _, row := range knobs {
			v := plan.Knob(row.Name, -1)
			if !slices.Contains(values[row.Name], v) {
				values[row.Name] = append(values[row.Name], v)
			}
		}
	}
	for _, v := range values {
		slices.Sort(v)
	}
	return values
}

// storesPast reports whether a plan of a processor writes an output past the caches.
func storesPast(t *testing.T, x *Priced, p *symtile.Program, plan kernels.Plan) bool {
	t.Helper()
	l := &lowering{p: p, plan: plan, spec: x.backend.spec()}
	return l.storesNonTemporal(kernels.OutputShapes(p.Physical)[0])
}

// C1, C2: rows that leave the second cache twice over are written past the caches, both ways
// are tried, and distances of prefetches are bytes; rows within it are written through it.
func TestXeonRows(t *testing.T) {
	x := xeon(t, listedByHypervisor)
	for name, text := range rowFusions {
		p := kerneltest.Program(t, fmt.Sprintf(text, 4096))
		knobs := offeredKnobs(t, x, p)
		if got := knobs["stream"]; !slices.Equal(got, []int64{-1, 0}) {
			t.Errorf("%s: stream %v", name, got)
		}
		if got := knobs["ahead"]; !slices.Equal(got, append([]int64{-1}, fetchedBytes...)) {
			t.Errorf("%s: ahead %v", name, got)
		}
		plan, err := x.Default(t.Context(), p)
		if err != nil || !storesPast(t, x, p, plan) {
			t.Errorf("%s: %s writes through the caches (%v)", name, plan, err)
		}
		p = kerneltest.Program(t, fmt.Sprintf(text, 1024)) // twice the second cache
		if got := offeredKnobs(t, x, p)["stream"]; !slices.Equal(got, []int64{-1}) {
			t.Errorf("%s of 4 MiB: stream %v", name, got)
		}
	}
}

// turned is the transpose of a matrix.
func turned(shape string) string {
	kind, sizes, _ := strings.Cut(strings.TrimSuffix(shape, "]"), "[")
	rows, columns, _ := strings.Cut(sizes, ",")
	return fmt.Sprintf("x = %s parameter(0)\nr = %s[%s,%s] transpose(x), dimensions={1,0}", shape, kind, columns, rows)
}

// C1, C3: transposes of all sizes that leave the caches are written past them, in tiles of
// which a lane has several.
func TestXeonTransposes(t *testing.T) {
	x := xeon(t, listedByHypervisor)
	for _, shape := range []string{"f32[4096,4096]", "f32[3000,2000]", "bf16[4096,4096]"} {
		p := kerneltest.Program(t, turned(shape))
		if got := offeredKnobs(t, x, p)["stream"]; !slices.Equal(got, []int64{-1, 0}) {
			t.Errorf("%s: stream %v", shape, got)
		}
		plan, err := x.Default(t.Context(), p)
		if err != nil || !storesPast(t, x, p, plan) {
			t.Errorf("%s: %s writes through the caches (%v)", shape, plan, err)
		}
		q, err := p.At(plan.Tiles)
		if err != nil || q.Programs() < 2 {
			t.Errorf("%s: %s leaves a lane idle (%v)", shape, plan, err)
		}
	}
}

// C5, C6: products of bf16 and f16 are offered AMX and what else the cores have, and made by
// it unless a plan says otherwise; a panel of f32 leaves a third of the first cache.
func TestXeonProducts(t *testing.T) {
	x := xeon(t, listedByHypervisor)
	const text = `a = %[1]s[1024,1024] parameter(0)
b = %[1]s[1024,1024] parameter(1)
ROOT p = %[1]s[1024,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`
	for _, c := range []struct {
		kind string
		want []int64
		def  int64
	}{
		{"bf16", []int64{-1, 1, 2}, 2},
		{"f16", []int64{-1, 1}, 1},
	} {
		p := kerneltest.Program(t, fmt.Sprintf(text, c.kind))
		if got := offeredKnobs(t, x, p)[c.kind]; !slices.Equal(got, c.want) {
			t.Errorf("%s: values %v, not %v", c.kind, got, c.want)
		}
		plan, err := x.Default(t.Context(), p)
		if got := plan.Knob(c.kind, 0); err != nil || got != c.def {
			t.Errorf("%s: %s (%v)", c.kind, plan, err)
		}
	}
	caches := x.backend.spec().Caches
	if caches != (gemm.Caches{First: 48 << 10, Second: 2 << 20, Third: 16 << 20}) {
		t.Errorf("%+v is not what TestBlocking has", caches)
	}
}

// Products of bytes are priced by AMX where a sheet has it: within a factor of three of the 1.4
// ms that a core of an Emerald Rapids takes for 1024 cubed, not at the 17 ms of multiply-adds of
// f32; on an AMD Zen, of whose sheets no number says how fast they are, at these. Of a
// convolution of few rows the rows are divided, not the terms, whose partial sums would take
// longer than packing weights twice.
func TestXeonBytes(t *testing.T) {
	p := kerneltest.Program(t, `a = s8[1024,1024] parameter(0)
b = s8[1024,1024] parameter(1)
ROOT p = s32[1024,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`)
	for name, ms := range map[string][2]float64{
		"Emerald Rapids": {0.5, 4.2}, "Zen 4": {8, 80}, "Zen 5": {4, 80},
	} {
		s, err := sheet.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Cores = 1
		seconds := secondsOf(t, NewPriced(s), p, kernels.Plan{Tiles: symtile.Tiling{512, 512, 1024}})
		if seconds < 1e-3*ms[0] || seconds > 1e-3*ms[1] {
			t.Errorf("%s: %.2f ms, not %v", name, 1e3*seconds, ms)
		}
	}
	s, err := sheet.Find("Emerald Rapids")
	if err != nil {
		t.Fatal(err)
	}
	s.Cores, s.L3Cores = 2, 2
	conv := kerneltest.Program(t, `x = s8[1,14,14,256] parameter(0)
w = s8[3,3,256,256] parameter(1)
ROOT c = s32[1,14,14,256] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
`)
	plan, err := NewPriced(s).Default(t.Context(), conv)
	if err != nil || plan.Knob("splitk", 1) != 1 || plan.Tiles[1]*plan.Tiles[2] >= 14*14 {
		t.Errorf("%s (%v)", plan, err)
	}
}

// secondsOf is the price of a plan on a processor.
func secondsOf(t *testing.T, x *Priced, p *symtile.Program, plan kernels.Plan) float64 {
	t.Helper()
	pricer, err := x.Pricer(p)
	if err != nil {
		t.Fatal(err)
	}
	terms := pricer.Terms()
	price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
	if err := pricer.Price(plan, &price); err != nil {
		t.Fatal(err)
	}
	return price.Total(&terms)
}

// What a hypervisor lists of a cache changes no plan, and every plan that is offered for the
// processor has code.
func TestXeonPlans(t *testing.T) {
	believed := xeon(t, 64<<20)
	x := xeon(t, listedByHypervisor)
	programs := map[string]*symtile.Program{}
	for name, text := range rowFusions {
		programs[name] = kerneltest.Program(t, fmt.Sprintf(text, 4096))
	}
	programs["transpose"] = kerneltest.Program(t, turned("f32[3000,2000]"))
	programs["product"] = programOf(t, bf16Product)
	for name, p := range programs {
		want := slices.Collect(believed.Plans(t.Context(), p))
		all := slices.Collect(x.Plans(t.Context(), p))
		if !slices.EqualFunc(all, want, func(x, y kernels.Plan) bool { return x.String() == y.String() }) {
			t.Errorf("%s: plans depend on what is listed: %d, %d", name, len(all), len(want))
		}
		for n := 0; n < len(all); n += 1 + len(all)/60 {
			k, err := x.backend.compile(p, all[n], nil)
			if err != nil {
				t.Errorf("%s %s: %v", name, all[n], err)
				continue
			}
			k.Close()
		}
	}
}

// C8: rows have vectors of 64 bytes on that processor, unless a plan says otherwise.
func TestXeonWidths(t *testing.T) {
	x := xeon(t, listedByHypervisor)
	p := kerneltest.Program(t, fmt.Sprintf(rowFusions["softmax"], 4096))
	if got := offeredKnobs(t, x, p)["width"]; !slices.Equal(got, []int64{-1, 256}) {
		t.Errorf("width %v", got)
	}
	if spec := x.backend.spec(); !spec.wide || spec.vector != 512 {
		t.Errorf("%+v", spec)
	}
}
