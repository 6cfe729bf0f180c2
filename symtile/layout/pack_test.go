package layout

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/index"
)

// TestPacks: testdata/pack.txt, one pack or unpack a case.
func TestPacks(t *testing.T) {
	datadriven.RunTest(t, "testdata/pack.txt", func(t *testing.T, d *datadriven.TestData) string {
		p, err := ParsePack(d.Input)
		if err != nil {
			return err.Error() + "\n"
		}
		r := index.NewRing()
		round, proved := p.RoundTrip(r)
		return fmt.Sprintf(
			"%s\npacked %s\nsteps %s\nto packed %s\nto source %s\nround trip %s, proved %v\n",
			p, ExtentsText(p.Packed()), p.Steps(),
			p.ToPacked(r), p.ToSource(r), round, proved,
		)
	})
}

func randomPack(rnd *rand.Rand) Pack {
	var p Pack
	for range rnd.Intn(4) + 1 {
		p.Source = append(p.Source, int64(1+rnd.Intn(7)))
	}
	p.InnerDimsPos = rnd.Perm(
		len(p.Source),
	)[:rnd.Intn(len(p.Source)+1)]
	for range p.InnerDimsPos {
		p.InnerTiles = append(p.InnerTiles, int64(1+rnd.Intn(4)))
	}
	switch rnd.Intn(3) {
	case 0:
		p.OuterDimsPerm = rnd.Perm(len(p.Source))
	case 1: // over the packed shape
		p.OuterDimsPerm = rnd.Perm(len(p.Source) + len(p.InnerTiles))
	}
	p.Padding = new(float64)
	return p
}

// TestPackAgrees: the maps both ways, the lowered steps and packing by the
// definition agree on every element, unpacking gives the source back, and the
// simplifier proves it.
func TestPackAgrees(t *testing.T) {
	rnd := rand.New(rand.NewSource(2))
	for range 1500 {
		p := randomPack(rnd)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		want := packLoops(p)
		r := index.NewRing()
		if got := gatherBy(
			t, p.ToSource(r), p.Packed(), p.Source,
		); !slices.Equal(got, want) {
			t.Fatalf("%s: %s reads\n%v, want\n%v", p, p.ToSource(r), got, want)
		}
		if got := doSteps(p.Steps(), logical(p.Source)); !slices.Equal(got, want) {
			t.Fatalf("%s: %s gives\n%v, want\n%v", p, p.Steps(), got, want)
		}
		if got := moved(p.Steps(), logical(p.Source)); !slices.Equal(got, want) {
			t.Fatalf("%s: %s moves\n%v, want\n%v", p, p.Steps(), got, want)
		}
		if got := moved(p.Steps().Inverse(), want); !slices.Equal(got, logical(p.Source)) {
			t.Fatalf("%s: %s moves\n%v", p, p.Steps().Inverse(), got)
		}
		u := p
		u.Unpack = true
		if got := doSteps(u.Steps(), want); !slices.Equal(got, logical(p.Source)) {
			t.Fatalf("%s: %s gives\n%v", u, u.Steps(), got)
		}
		each(p.Source, func(index []int64) {
			to := p.ToPacked(r).Eval(index)
			if want[at(to, p.Packed())] != at(index, p.Source) {
				t.Fatalf("%s: %v is not at %v", p, index, to)
			}
		})
		if m, proved := p.RoundTrip(r); !proved {
			t.Fatalf("%s: unpack(pack x) is %s", p, m)
		}
		if q, err := ParsePack(p.String()); err != nil || q.String() != p.String() {
			t.Fatalf("%s reads as %s, %v", p, q, err)
		}
	}
}

// moved does steps to the bytes of numbers; padding is none.
func moved(ss Steps, in []int64) (out []int64) {
	var data, padding []byte
	for _, x := range in {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	empty := int64(none)
	padding = binary.LittleEndian.AppendUint64(padding, uint64(empty))
	data = ss.Move(data, 8, padding)
	for ; len(data) > 0; data = data[8:] {
		out = append(out, int64(binary.LittleEndian.Uint64(data)))
	}
	return out
}

// packLoops packs the numbered source: for each tile in outer order, each
// position in it; a permutation of the packed shape then moves whole dimensions.
func packLoops(p Pack) (out []int64) {
	perm := p.OuterDimsPerm
	whole := len(perm) > len(p.Source)
	if whole || perm == nil {
		perm = nil
		for d := range p.Source {
			perm = append(perm, d)
		}
	}
	counts := make([]int64, len(p.Source))
	for i, d := range perm {
		counts[i] = (p.Source[d] + p.tile(d) - 1) / p.tile(d)
	}
	each(counts, func(tileAt []int64) {
		each(p.InnerTiles, func(within []int64) {
			index := make([]int64, len(p.Source))
			for i, d := range perm {
				index[d] = tileAt[i] * p.tile(d)
			}
			for i, d := range p.InnerDimsPos {
				index[d] += within[i]
			}
			out = append(out, at(index, p.Source))
		})
	})
	if whole {
		_, out = moveDims(slices.Concat(counts, p.InnerTiles), out, p.OuterDimsPerm)
	}
	return out
}

// moveDims makes dimension perm[i] of an array dimension i, element by element.
func moveDims(dims, data []int64, perm []int) (to, out []int64) {
	for _, d := range perm {
		to = append(to, dims[d])
	}
	each(to, func(index []int64) {
		from := make([]int64, len(dims))
		for i, d := range perm {
			from[d] = index[i]
		}
		out = append(out, data[at(from, dims)])
	})
	return to, out
}

// gatherBy reads the numbered source through an indexing map.
func gatherBy(t *testing.T, m index.Map, to, from []int64) (out []int64) {
	each(to, func(index []int64) {
		p := int64(none)
		if m.Has(index) {
			p = at(m.Eval(index), from)
		}
		out = append(out, p)
	})
	return out
}

// FuzzParsePack: what is read prints as text that reads the same.
func FuzzParsePack(f *testing.F) {
	f.Add("pack 128x256 inner_dims_pos=[0, 1] inner_tiles=[8, 32]")
	f.Add("pack 129x47 inner_dims_pos=[1, 0] inner_tiles=[16, 16] outer_dims_perm=[1, 0] padding_value=0.5")
	f.Add("unpack 17x2x32x8 inner_dims_pos=[1, 0] inner_tiles=[32, 8] to 129x47")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePack(text)
		if err != nil {
			return
		}
		q, err := ParsePack(p.String())
		if err != nil || q.String() != p.String() {
			t.Fatalf("%q reads as %s, then %s %v", text, p, q, err)
		}
		r := index.NewRing()
		if m, proved := p.RoundTrip(r); !proved && r.Err() == nil {
			t.Fatalf("%s: unpack(pack x) is %s", p, strings.TrimSpace(m.String()))
		}
	})
}
