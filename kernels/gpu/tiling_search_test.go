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
