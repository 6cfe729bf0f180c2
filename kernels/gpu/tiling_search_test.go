package gpu

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// allTilings compares more spaces with a list of all their tilings, for minutes.
var allTilings = flag.Bool("alltilings", false, "search spaces of any size on several devices, and compare with a list of all tilings")

// listedTilings are the most that a list is made of for a comparison by default.
const listedTilings = 1500

// bothListings are the candidates of a search and of a list of all tilings.
func bothListings(t *testing.T, p *symtile.Program, dev string) (found, all []candidate) {
	t.Helper()
	before := maxEnumerated
	defer func() { maxEnumerated = before }()
	spec, err := device.ParseSpec(dev)
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{before, math.MaxInt64} {
		found = all
		maxEnumerated = most
		if all, err = feasibleCandidates(t.Context(), p, spec, roundings(p)); err != nil {
			t.Fatal(err)
		}
	}
	return found, all
}

// compareListings reports whether a search finds the plan that comes first of all, by price
// and among those that tie with it.
func compareListings(t *testing.T, p *symtile.Program, dev string) {
	t.Helper()
	found, all := bothListings(t, p, dev)
	got, want := found[0].plan().String(), all[0].plan().String()
	if got != want {
		t.Errorf("%s: %s takes %.4f of the time of %s", dev, got, found[0].seconds/all[0].seconds, want)
	}
	if len(found) < min(len(all), 1000) {
		t.Errorf("%s: %d plans of %d", dev, len(found), len(all))
	}
}

// A search finds the plan that a list of all tilings has first.
func TestSearchFindsTheCheapest(t *testing.T) {
	devices := []string{"H100"}
	if *allTilings {
		devices = []string{"A100", "L4", "RTX 4090", "H100", "H200"}
	}
	for _, dev := range devices {
		forCorpus(t, func(t *testing.T, p *symtile.Program) {
			n := p.Space.Count()
			if n > maxEnumerated && (n <= listedTilings || *allTilings && n <= 1<<16) {
				compareListings(t, p, dev)
			}
		})
	}
}

// The same of products, on tensor cores and without, whose schedules the list of all tilings
// finds besides: few tiles, long sums, extents that are no powers of two.
func TestSearchOfProducts(t *testing.T) {
	const text = "a = %[1]s[%[3]d,%[5]d] parameter(0)\nb = %[1]s[%[4]d,%[5]d] parameter(1)\np = %[2]s[%[3]d,%[4]d] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
	sides := [][3]int{{512, 512, 512}, {4096, 4096, 4096}}
	devices, types := []string{"H100"}, [][2]string{{"bf16", "bf16"}}
	if *allTilings {
		sides = append(sides, [3]int{64, 4096, 1024}, [3]int{1000, 300, 5120}, [3]int{16, 8192, 8192})
		devices = append(devices, "A100", "RTX 4090")
		types = append(types, [2]string{"f32", "f32"}, [2]string{"s8", "s32"})
	}
	for _, dev := range devices {
		for _, x := range types {
			for _, n := range sides {
				p := kerneltest.Program(t, fmt.Sprintf(text, x[0], x[1], n[0], n[1], n[2]))
				compareListings(t, p, dev)
			}
		}
	}
}

// checkCount compares the number of legal plans that a search and a list of all tilings say of
// a program with plans: those that are offered, where all of them are, and, of a small program,
// those that can be compiled.
func checkCount(t *testing.T, p *symtile.Program, dev string) {
	t.Helper()
	spec, err := device.ParseSpec(dev)
	if err != nil {
		t.Fatal(err)
	}
	before := maxEnumerated
	defer func() { maxEnumerated = before }()
	maxEnumerated = math.MaxInt64
	all, err := listed(t.Context(), p, spec, noTF32)
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[string]bool{}
	for _, c := range all.all {
		distinct[c.plan().String()] = true
	}
	offered := int64(len(distinct))
	switch {
	case all.legal < offered,
		all.legal <= maxOffered && all.legal != offered:
		t.Errorf("%s: %d plans are said to be legal, %d are offered", dev, all.legal, offered)
	}
	maxEnumerated = 0
	some, err := listed(t.Context(), p, spec, noTF32)
	if err != nil {
		t.Fatal(err)
	}
	if !some.more || some.legal < int64(len(some.all)) || some.legal > all.legal && !all.more {
		t.Errorf("%s: %d plans are said to be legal at least (more: %t), %d are offered and %d legal", dev, some.legal, some.more, len(some.all), all.legal)
	}
	if all.legal > compiledForCount {
		return
	}
	for _, c := range all.all {
		if _, err := compile(p, c.plan(), spec); err != nil {
			t.Errorf("%s: %s is said to be legal: %v", dev, c.plan(), err)
		}
	}
}

// compiledForCount are the most plans that are compiled to count those that can be: compiling
// one takes about a millisecond.
const compiledForCount = 600

// As many plans are legal as are said to be; of a space that is searched, at least.
func TestLegalPlansAreCounted(t *testing.T) {
	for _, dev := range []string{"A100", "H100"} {
		forCorpus(t, func(t *testing.T, p *symtile.Program) {
			if p.Space.Count() <= maxEnumerated {
				checkCount(t, p, dev)
			}
		})
		for _, text := range []string{
			"x = f32[24,40] parameter(0)\ny = f32[24,40] exponential(x)\n",
			"a = bf16[16,32] parameter(0)\nb = bf16[16,32] parameter(1)\np = bf16[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
			"a = f16[64,64] parameter(0)\nb = f16[64,64] parameter(1)\np = f16[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
		} {
			checkCount(t, kerneltest.Program(t, text), dev)
		}
	}
}
