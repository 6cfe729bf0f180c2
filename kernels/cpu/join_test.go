package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
)

// joinForms are programs that join parts of A and B columns, of three rows each, with C = A + B.
// D is a type.
var joinForms = map[string]string{
	"columns": `
		x = D[3,A] parameter(0)
		y = D[3,B] parameter(1)
		u = D[3,A] negate(x)
		v = D[3,B] multiply(y, y)
		ROOT r = D[3,C] concatenate(u, v), dimensions={1}`,
	"rows": `
		x = D[A,3] parameter(0)
		y = D[B,3] parameter(1)
		u = D[A,3] negate(x)
		v = D[B,3] multiply(y, y)
		ROOT r = D[C,3] concatenate(u, v), dimensions={0}`,
	"one is moved": `
		x = D[3,A] parameter(0)
		y = D[3,B] parameter(1)
		v = D[3,B] multiply(y, y)
		ROOT r = D[3,C] concatenate(x, v), dimensions={1}`,
	"rotary": `
		x = D[3,C] parameter(0)
		c = D[C] parameter(1)
		s = D[C] parameter(2)
		cs = D[3,C] broadcast(c), dimensions={1}
		ss = D[3,C] broadcast(s), dimensions={1}
		left = D[3,B] slice(x), slice={[0:3], [0:B]}
		right = D[3,A] slice(x), slice={[0:3], [B:C]}
		other = D[3,A] negate(right)
		turned = D[3,C] concatenate(other, left), dimensions={1}
		u = D[3,C] multiply(x, cs)
		v = D[3,C] multiply(turned, ss)
		ROOT r = D[3,C] add(u, v)`,
	"rotary, stored and reduced": `
		x = D[3,C] parameter(0)
		s = D[C] parameter(1)
		ss = D[3,C] broadcast(s), dimensions={1}
		left = D[3,B] slice(x), slice={[0:3], [0:B]}
		right = D[3,A] slice(x), slice={[0:3], [B:C]}
		other = D[3,A] negate(right)
		turned = D[3,C] concatenate(other, left), dimensions={1}
		v = D[3,C] multiply(turned, ss)
		low = D[] constant(0)
		m = D[3] reduce(v, low), dimensions={1}, to_apply=larger
		ROOT r = (D[3,C], D[3,C], D[3]) tuple(v, turned, m)`,
	"twice": `
		x = D[3,A] parameter(0)
		u = D[3,A] multiply(x, x)
		j = D[3,E] concatenate(u, u), dimensions={1}
		ROOT r = D[3,E] negate(j)`,
	"sums of rows": `
		x = D[3,A] parameter(0)
		y = D[3,B] parameter(1)
		zero = D[] constant(0)
		m = D[3] reduce(x, zero), dimensions={1}, to_apply=larger
		ms = D[3,B] broadcast(m), dimensions={0}
		u = D[3,A] negate(x)
		v = D[3,B] multiply(y, ms)
		j = D[3,C] concatenate(u, v), dimensions={1}
		ROOT r = D[3,C] add(j, j)`,
	"pad": `
		x = D[3,A] parameter(0)
		y = D[B] parameter(1)
		u = D[3,A] multiply(x, x)
		nine = D[] constant(9)
		ROOT r = D[5,C] pad(u, nine), padding=1_1x0_B`,
	"pad, then add": `
		x = D[3,A] parameter(0)
		y = D[3,C] parameter(1)
		u = D[3,A] multiply(x, x)
		nine = D[] constant(9)
		p = D[3,C] pad(u, nine), padding=0_0xB_0
		ROOT r = D[3,C] add(p, y)`,
	"crop": `
		x = D[3,C] parameter(0)
		u = D[3,C] multiply(x, x)
		nine = D[] constant(9)
		ROOT r = D[4,C] pad(u, nine), padding=0_1x-1_1`,
	"gaps": `
		x = D[3,A] parameter(0)
		u = D[3,A] multiply(x, x)
		nine = D[] constant(9)
		p = D[5,A] pad(u, nine), padding=0_0_1x0_0
		y = D[5,B] parameter(1)
		v = D[5,B] negate(y)
		ROOT r = D[5,C] concatenate(p, v), dimensions={1}`,
	"turned": `
		x = D[A,3] parameter(0)
		y = D[B,3] parameter(1)
		u = D[A,3] negate(x)
		t = D[3,A] transpose(u), dimensions={1,0}
		v = D[3,B] transpose(y), dimensions={1,0}
		w = D[3,B] multiply(v, v)
		b = D[3,B] reverse(w), dimensions={1}
		ROOT r = D[3,C] concatenate(t, b), dimensions={1}`,
	"nested": `
		x = D[3,A] parameter(0)
		y = D[3,B] parameter(1)
		z = D[3,C] parameter(2)
		u = D[3,A] negate(x)
		v = D[3,B] multiply(y, y)
		j = D[3,C] concatenate(u, v), dimensions={1}
		k = D[3,C] add(j, z)
		n = D[3,C] negate(z)
		l = D[6,C] concatenate(k, n), dimensions={0}
		ROOT r = D[6,C] add(l, l)`,
	"joined again": `
		x = D[3,A] parameter(0)
		y = D[3,B] parameter(1)
		j = D[3,C] concatenate(x, y), dimensions={1}
		u = D[3,C] negate(j)
		k = D[3,H] concatenate(u, u), dimensions={1}
		ROOT r = D[3,H] add(k, k)`,
	"rows of a join": `
		x = D[C,3] parameter(0)
		y = D[C,3] parameter(1)
		v = D[C,3] multiply(y, y)
		j = D[C,6] concatenate(x, v), dimensions={1}
		n = D[C,6] negate(j)
		i = s32[C,6] iota(), iota_dimension=0
		a = s32[] constant(A)
		as = s32[C,6] broadcast(a), dimensions={}
		m = pred[C,6] compare(i, as), direction=LT
		s = D[C,6] select(m, j, n)
		ROOT r = D[C,6] add(s, s)`,
	"empty": `
		x = D[3,A] parameter(0)
		y = D[3,B] parameter(1)
		e = D[3,0] parameter(2)
		u = D[3,A] negate(x)
		f = D[3,0] negate(e)
		v = D[3,B] multiply(y, y)
		j = D[3,C] concatenate(u, f, v), dimensions={1}
		ROOT r = D[3,C] add(j, j)`,
	"interleaved": `
		x = D[3,A] parameter(0)
		y = D[3,A] parameter(1)
		u = D[3,A] negate(x)
		v = D[3,A] multiply(y, y)
		p = D[3,A,1] reshape(u)
		q = D[3,A,1] reshape(v)
		j = D[3,A,2] concatenate(p, q), dimensions={2}
		ROOT r = D[3,E] reshape(j)`,
	"pairs": `
		x = D[3,E] parameter(0)
		c = D[A] parameter(1)
		cs = D[3,A] broadcast(c), dimensions={1}
		even = D[3,A] slice(x), slice={[0:3], [0:E:2]}
		odd = D[3,A] slice(x), slice={[0:3], [1:E:2]}
		u = D[3,A] multiply(even, cs)
		v = D[3,A] multiply(odd, cs)
		w = D[3,A] add(u, odd)
		p = D[3,A,1] reshape(w)
		q = D[3,A,1] reshape(v)
		j = D[3,A,2] concatenate(p, q), dimensions={2}
		ROOT r = D[3,E] reshape(j)`,
	"pairs, one stored twice": `
		x = D[3,E] parameter(0)
		even = D[3,A] slice(x), slice={[0:3], [0:E:2]}
		odd = D[3,A] slice(x), slice={[0:3], [1:E:2]}
		u = D[3,A] multiply(even, odd)
		v = D[3,A] negate(odd)
		p = D[3,A,1] reshape(u)
		q = D[3,A,1] reshape(v)
		j = D[3,A,2] concatenate(p, q), dimensions={2}
		ROOT r = (D[3,A,2], D[3,A]) tuple(j, u)`,
	"every second": `
		x = D[3,E] parameter(0)
		odd = D[3,A] slice(x), slice={[0:3], [1:E:2]}
		ROOT r = D[3,A] multiply(odd, odd)`,
	"sums of neighbours": `
		x = D[3,E] parameter(0)
		even = D[3,A] slice(x), slice={[0:3], [0:E:2]}
		odd = D[3,A] slice(x), slice={[0:3], [1:E:2]}
		ROOT r = D[3,A] add(even, odd)`,
	"mask": `
		x = D[3,C] parameter(0)
		y = D[3,C] parameter(1)
		i = s32[3,C] iota(), iota_dimension=1
		a = s32[] constant(A)
		as = s32[3,C] broadcast(a), dimensions={}
		m = pred[3,C] compare(i, as), direction=LT
		u = D[3,C] multiply(x, x)
		v = D[3,C] negate(y)
		s = D[3,C] select(m, u, v)
		ROOT r = D[3,C] add(s, y)`,
	"mask of rows": `
		x = D[C,3] parameter(0)
		y = D[3] parameter(1)
		i = s32[C,3] iota(), iota_dimension=0
		a = s32[] constant(A)
		as = s32[C,3] broadcast(a), dimensions={}
		m = pred[C,3] compare(i, as), direction=GT
		u = D[C,3] multiply(x, x)
		v = D[C,3] broadcast(y), dimensions={1}
		ROOT r = D[C,3] select(m, u, v)`,
	"mask of pairs": `
		x = D[3,A,2] parameter(0)
		even = D[3,A,1] slice(x), slice={[0:3], [0:A], [0:1]}
		odd = D[3,A,1] slice(x), slice={[0:3], [0:A], [1:2]}
		e = D[3,A] reshape(even)
		o = D[3,A] reshape(odd)
		u = D[3,A] multiply(e, o)
		v = D[3,A] add(e, o)
		us = D[3,A,2] broadcast(u), dimensions={0,1}
		vs = D[3,A,2] broadcast(v), dimensions={0,1}
		i = s32[3,A,2] iota(), iota_dimension=2
		a = s32[] constant(0)
		as = s32[3,A,2] broadcast(a), dimensions={}
		m = pred[3,A,2] compare(i, as), direction=GT
		ROOT r = D[3,A,2] select(m, us, vs)`,
	"shared": `
		x = D[3,A] parameter(0)
		y = D[A] parameter(1)
		ys = D[3,A] broadcast(y), dimensions={1}
		u = D[3,A] multiply(x, ys)
		v = D[3,A] negate(u)
		j = D[3,E] concatenate(u, v), dimensions={1}
		ROOT r = (D[3,E], D[3,A]) tuple(j, u)`,
}

// joinText is a form with its numbers put in.
func joinText(form, d string, a, b int) string {
	words := strings.NewReplacer(
		"D[", d+"[", "A", fmt.Sprint(a), "B", fmt.Sprint(b), "C", fmt.Sprint(a+b), "E", fmt.Sprint(2*a), "H", fmt.Sprint(2*(a+b)),
	)
	return fmt.Sprintf(`larger {
		p = %[1]s[] parameter(0)
		q = %[1]s[] parameter(1)
		ROOT m = %[1]s[] maximum(p, q)
	}
	ENTRY e {`, d) + "\n" + words.Replace(strings.ReplaceAll(form, "ROOT", "root")) + "\n}"
}

// Joins of computed parts have the bits of the reference wherever tiles and vectors begin
// and end: at every tiling of rows shorter and longer than vectors.
func TestJoinedParts(t *testing.T) {
	lengths := [][2]int{{1, 1}, {5, 3}, {8, 8}, {16, 17}, {7, 26}, {40, 24}}
	if testing.Short() {
		lengths = lengths[1:5]
	}
	floats, integers := hardFloats(), hardIntegers()
	for name, form := range joinForms {
		t.Run(name, func(t *testing.T) {
			for _, d := range []string{"f32", "bf16", "f64", "s32", "s8"} {
				for _, n := range lengths {
					text := strings.ReplaceAll(joinText(form, d, n[0], n[1]), "root", "ROOT")
					compareTilings(t, text, floats, integers)
				}
			}
		})
	}
}

// compareTilings compares all outputs of a program by many tilings with the reference.
func compareTilings(t *testing.T, text string, floats []float64, integers []int64) {
	t.Helper()
	p := kerneltest.Program(t, text)
	random := rand.New(rand.NewPCG(7, 8))
	var in []kernels.Buffer
	for _, param := range p.Fusion.Params {
		b := arrayOf(t, param.Shape)
		fillHard(b, random, floats, integers)
		in = append(in, b)
	}
	want, err := reference.Interpret(p.Fusion, in)
	if err != nil {
		t.Fatal(err)
	}
	backend := New()
	compiled := 0
	for tiling := range p.Space.Sample(60) {
		for _, rows := range []int64{0, 1} {
			plan := kernels.Plan{Tiles: tiling}.With("rows", rows)
			k, err := backend.Compile(t.Context(), p, plan)
			if err != nil {
				continue
			}
			compiled++
			got := make([]kernels.Buffer, len(want))
			for n := range want {
				got[n] = arrayOf(t, want[n].Shape)
			}
			if _, err := k.Run(context.Background(), in, got); err != nil {
				t.Fatal(err)
			}
			k.Close()
			for n := range want {
				for at := range want[n].Shape.Elements() {
					if !sameBits(got[n], want[n], at) {
						t.Fatalf("%s\nby %v: output %d, element %d is %s, want %s",
							text, plan, n, at, element(got[n], at), element(want[n], at))
					}
				}
			}
		}
	}
	if compiled == 0 {
		t.Errorf("%s\nhas no plan", text)
	}
}

// TestJoinedWeights: a tile of weights that a concatenate joins is multiplied where it lies where
// one operand has all of it, and copied otherwise.
func TestJoinedWeights(t *testing.T) {
	const columns = `
		x = f32[12,40] parameter(0)
		y = f32[40,32] parameter(1)
		z = f32[40,32] parameter(2)
		w = f32[40,96] concatenate(y, z, y), dimensions={1}
		ROOT d = f32[12,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`
	const terms = `
		x = f32[12,80] parameter(0)
		y = f32[40,32] parameter(1)
		z = f32[40,32] parameter(2)
		w = f32[80,32] concatenate(z, y), dimensions={0}
		ROOT d = f32[12,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`
	const batch = `
		x = f64[4,12,40] parameter(0)
		y = f64[2,32,40] parameter(1)
		z = f64[2,32,40] parameter(2)
		w = f64[4,32,40] concatenate(z, y), dimensions={0}
		ROOT d = f64[4,12,32] dot(x, w), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}`
	const shapes = `
		x = f32[12,40] parameter(0)
		y = f32[40,32] parameter(1)
		z = f32[40,64] parameter(2)
		w = f32[40,96] concatenate(y, z), dimensions={1}
		ROOT d = f32[12,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`
	for _, x := range []struct {
		text    string
		tiles   []int64
		inPlace bool
	}{
		{columns, []int64{12, 32, 40}, true},
		{columns, []int64{12, 16, 8}, true},
		{columns, []int64{5, 32, 40}, true},
		{columns, []int64{12, 24, 40}, false}, // a tile of two operands
		{columns, []int64{12, 96, 40}, false},
		{terms, []int64{12, 32, 40}, true},
		{terms, []int64{6, 16, 20}, true},
		{terms, []int64{12, 32, 80}, false},
		{batch, []int64{1, 12, 32, 40}, true},
		{batch, []int64{2, 12, 32, 40}, true},
		{batch, []int64{4, 12, 32, 40}, false},
		{shapes, []int64{12, 32, 40}, false},
	} {
		p := kerneltest.Program(t, x.text)
		v, err := check.NewVerifier(t.Context(), p.Physical, 3)
		if err != nil {
			t.Fatal(err)
		}
		k, err := New().Compile(t.Context(), p, kernels.Plan{Tiles: x.tiles})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if got := strings.Contains(k.Source(), "is part of an operand of w"); got != x.inPlace {
			t.Errorf("%v: in place is %v:\n%s", x.tiles, got, k.Source())
		}
		if err := v.Verify(t.Context(), k); err != nil {
			t.Errorf("%v: %v", x.tiles, err)
		}
	}
}

// TestReshapedWeights: weights of a convolution of 1×1 are multiplied where they lie, of all
// columns and of some.
func TestReshapedWeights(t *testing.T) {
	const text = `
		x = f32[1,6,8,40] parameter(0)
		w = f32[1,1,40,96] parameter(1)
		ROOT c = f32[1,3,4,96] convolution(x, w), window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f`
	for _, tiles := range [][]int64{
		{1, 3, 4, 96, 40},
		{1, 3, 4, 32, 40},
		{1, 3, 4, 24, 8},
		{1, 2, 4, 40, 40},
		{1, 1, 4, 96, 20},
	} {
		p := kerneltest.Program(t, text)
		v, err := check.NewVerifier(t.Context(), p.Physical, 3)
		if err != nil {
			t.Fatal(err)
		}
		k, err := New().Compile(t.Context(), p, kernels.Plan{Tiles: tiles})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		isRagged := tiles[3] == 40
		if strings.Contains(k.Source(), "load w") != isRagged {
			t.Errorf("%v: weights are copied, or columns that are not there read:\n%s", tiles, k.Source())
		}
		if err := v.Verify(t.Context(), k); err != nil {
			t.Errorf("%v: %v", tiles, err)
		}
	}
}
