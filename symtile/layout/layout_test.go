package layout

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// TestLayouts: testdata/layout.txt, one shape with its layout a case.
func TestLayouts(t *testing.T) {
	datadriven.RunTest(t, "testdata/layout.txt", func(t *testing.T, d *datadriven.TestData) string {
		l, err := Parse(d.Input)
		if err != nil {
			return err.Error() + "\n"
		}
		r := index.NewRing()
		var b strings.Builder
		fmt.Fprintf(
			&b, "%s\nphysical %s, %d positions, %d padding, %d bytes\n",
			l, ExtentsText(l.Physical), l.Elements(),
			l.Padding(), l.Bytes(),
		)
		fmt.Fprintf(
			&b, "steps    %s\nmap      %s\ninverse  %s\n",
			l.Steps(), l.Map(r),
			l.Inverse(r).Simplify(),
		)
		if err := r.Err(); err != nil {
			fmt.Fprintf(&b, "ring: %v\n", err)
		}
		return b.String()
	})
}

// randomLayout is a small shape with up to three tiles, * among them.
func randomLayout(rnd *rand.Rand) hlo.Shape {
	s := hlo.Shape{DType: hlo.F32}
	for range rnd.Intn(5) {
		s.Dims = append(s.Dims, int64(1+rnd.Intn(6)))
	}
	s.Layout.MinorToMajor = rnd.Perm(len(s.Dims))
	rank := max(1, len(s.Dims))
	for range rnd.Intn(4) {
		tile := make([]int64, 1+rnd.Intn(rank))
		for i := range tile {
			tile[i] = int64(1 + rnd.Intn(4))
			if i < len(tile)-1 && rnd.Intn(4) == 0 {
				tile[i] = combinedDim
			}
		}
		s.Layout.Tiles = append(s.Layout.Tiles, tile)
		rank++
	}
	return s
}

// TestLayoutAgrees: the map, its inverse, Linear, Index, the steps as maps and
// the steps done on an array all say what laying out by plain loops says, for
// every element of many layouts.
func TestLayoutAgrees(t *testing.T) {
	n, padded, starred := 4000, 0, 0
	if testing.Short() {
		n = 400
	}
	rnd := rand.New(rand.NewSource(1))
	for range n {
		shape := randomLayout(rnd)
		l, err := Of(shape)
		if err != nil {
			t.Fatal(err)
		}
		if l.Elements() > 1<<14 {
			continue
		}
		if l.Padding() > 0 {
			padded++
		}
		if strings.Contains(l.String(), "*") {
			starred++
		}
		want := layOut(shape)
		checkNumbers(t, l, want)
		checkMaps(t, l, want)
		if got := doSteps(l.Steps(), logical(shape.Dims)); !slices.Equal(got, want) {
			t.Fatalf("%s: %s\n got %v\nwant %v", l, l.Steps(), got, want)
		}
		if got := moved(l.Steps(), logical(shape.Dims)); !slices.Equal(got, want) {
			t.Fatalf("%s: %s moves\n%v, want\n%v", l, l.Steps(), got, want)
		}
		if got := moved(l.Steps().Inverse(), want); !slices.Equal(got, logical(shape.Dims)) {
			t.Fatalf("%s: %s moves\n%v", l, l.Steps().Inverse(), got)
		}
	}
	t.Logf("%d layouts, %d padded, %d combine dimensions", n, padded, starred)
}

// none is what a position without an element holds.
const none = -1

// logical numbers the elements of an array, major to minor.
func logical(dims []int64) []int64 {
	n, _ := index.Product(dims)
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// each calls f for every index of an array, major to minor.
func each(dims []int64, f func(index []int64)) {
	idx := make([]int64, len(dims))
	n, _ := index.Product(dims)
	for range n {
		f(idx)
		for i := len(dims) - 1; i >= 0; i-- {
			if idx[i]++; idx[i] < dims[i] {
				break
			}
			idx[i] = 0
		}
	}
}

// at is the position of index in an array that is not tiled, none outside.
func at(index, dims []int64) int64 {
	p := int64(0)
	for i, d := range dims {
		if index[i] < 0 || index[i] >= d {
			return none
		}
		p = p*d + index[i]
	}
	return p
}

// layOut is the oracle: memory as a list of element numbers, by loops over
// tiles and then over the elements of a tile, as XLA's figures draw it.
func layOut(shape hlo.Shape) []int64 {
	var dims []int64
	order := slices.Clone(shape.MinorToMajor())
	slices.Reverse(order)
	for _, d := range order {
		dims = append(dims, shape.Dims[d])
	}
	var memory []int64
	each(dims, func(index []int64) {
		logicalIndex := make([]int64, len(dims))
		for i, d := range order {
			logicalIndex[d] = index[i]
		}
		memory = append(memory, at(logicalIndex, shape.Dims))
	})
	for _, tile := range shape.Layout.Tiles {
		dims, memory = tileLoops(dims, memory, tile)
	}
	return memory
}

func tileLoops(dims, memory, tile []int64) (newDims, out []int64) {
	for len(dims) < len(tile) {
		dims = append([]int64{1}, dims...)
	}
	lead := len(dims) - len(tile)
	dims = slices.Clone(dims)
	var sizes []int64
	for i, t := range tile { // memory stays: combining neighbours keeps the order
		if t == combinedDim {
			dims[lead+i+1] *= dims[lead+i]
			continue
		}
		sizes = append(sizes, t)
	}
	var joined []int64
	for i, d := range dims {
		if i < lead || tile[i-lead] != combinedDim {
			joined = append(joined, d)
		}
	}
	counts := slices.Clone(joined)
	for i, s := range sizes {
		counts[lead+i] = (joined[lead+i] + s - 1) / s
	}
	each(counts, func(tileAt []int64) {
		each(sizes, func(within []int64) {
			index := slices.Clone(tileAt)
			for i, s := range sizes {
				index[lead+i] = tileAt[lead+i]*s + within[i]
			}
			p := at(index, joined)
			if p != none {
				p = memory[p]
			}
			out = append(out, p)
		})
	})
	return append(counts, sizes...), out
}

// doSteps does the steps on an array.
func doSteps(ss Steps, array []int64) []int64 {
	for _, s := range ss {
		var out []int64
		each(s.To, func(index []int64) {
			from := slices.Clone(index)
			p := int64(none)
			switch s.Kind {
			case Reshape:
				p = int64(len(out))
			case Transpose:
				for i, d := range s.Perm {
					from[d] = index[i]
				}
				p = at(from, s.From)
			default:
				p = at(from, s.From)
			}
			if p != none {
				p = array[p]
			}
			out = append(out, p)
		})
		array = out
	}
	return array
}

func checkNumbers(t *testing.T, l *Layout, want []int64) {
	t.Helper()
	if int64(len(want)) != l.Elements() {
		t.Fatalf("%s: %d positions, want %d", l, l.Elements(), len(want))
	}
	each(l.Shape.Dims, func(index []int64) {
		if got, id := l.Linear(index), at(index, l.Shape.Dims); want[got] != id {
			t.Fatalf("%s: element %v at %d, where %d is", l, index, got, want[got])
		}
	})
	for p, id := range want {
		index, ok := l.Index(int64(p))
		if ok != (id != none) || ok && at(index, l.Shape.Dims) != id {
			t.Fatalf("%s: position %d holds %v %v, want %d", l, p, index, ok, id)
		}
	}
}

func checkMaps(t *testing.T, l *Layout, want []int64) {
	t.Helper()
	r := index.NewRing()
	m := l.Map(r)
	code, err := m.Compile()
	if err != nil {
		t.Fatal(err)
	}
	out, scratch := make([]int64, 1), make([]int64, code.ScratchLen())
	each(l.Shape.Dims, func(index []int64) {
		code.Eval(index, out, scratch)
		if want[out[0]] != at(index, l.Shape.Dims) {
			t.Fatalf("%s: %s says %d for %v", l, m, out[0], index)
		}
	})
	checkInverse(t, l, "inverse", l.Inverse(r), want)
	checkInverse(t, l, "inverse, simplified", l.Inverse(r).Simplify(), want)
	steps := l.Steps().Map(r, l.Shape.Dims)
	position := box(r, "d", []int64{l.Elements()})
	if len(l.Physical) > 0 {
		position.Results = index.Delinearize(position.Dims[0], l.Physical)
	}
	checkInverse(t, l, "steps", index.Compose(position, steps), want)
	if err := r.Err(); err != nil {
		t.Fatalf("%s: %v", l, err)
	}
}

func checkInverse(t *testing.T, l *Layout, what string, m index.Map, want []int64) {
	t.Helper()
	code, err := m.Compile()
	if err != nil {
		t.Fatal(err)
	}
	check, err := index.CompileConstraint(m.Vars(), m.Where)
	if err != nil {
		t.Fatal(err)
	}
	out, scratch := make([]int64, len(m.Results)),
		make([]int64, max(code.ScratchLen(), check.ScratchLen()))
	for p, id := range want {
		vals := []int64{int64(p)}
		has := m.Dims[0].Range().Contains(vals[0]) && check.Holds(vals, scratch)
		if has {
			code.Eval(vals, out, scratch)
		}
		if has != (id != none) || has && at(out, l.Shape.Dims) != id {
			t.Fatalf("%s: %s %s: position %d: %v %v, want %d", l, what, m, p, out, has, id)
		}
	}
}

// FuzzParse: whatever is read prints as text that reads the same, and small
// layouts agree with themselves.
func FuzzParse(f *testing.F) {
	f.Add("F32[3,5]{1,0:T(2,2)}")
	f.Add("bf16[32,256]{1,0:T(8,128)(2,1)}")
	f.Add("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)S(1)}")
	f.Add("s4[7,9]{0,1:T(2,4)L(16)E(4)}")
	f.Add("f32[]{:T(128)}")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(l.String())
		if err != nil || !again.Shape.Equal(l.Shape) ||
			!slices.Equal(again.Physical, l.Physical) {
			t.Fatalf("%q reads as %s, then as %v %v", text, l, again, err)
		}
		if l.Bytes() < 0 || l.Padding() < 0 {
			t.Fatalf("%s: %d bytes, %d padding", l, l.Bytes(), l.Padding())
		}
		for p := range min(l.Elements(), 64) {
			if index, ok := l.Index(p); ok && l.Linear(index) != p {
				t.Fatalf("%s: position %d is %v, which is at %d", l, p, index, l.Linear(index))
			}
		}
		r := index.NewRing()
		l.Map(r)
		l.Inverse(r)
	})
}
