package kernels

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/symtile/hlo"
)

func TestReference(t *testing.T) {
	files, err := filepath.Glob("testdata/reference*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files of known answers, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { knownAnswers(t, file) })
	}
}

func knownAnswers(t *testing.T, file string) {
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		m, err := hlo.Parse("f", []byte(d.Input))
		if err != nil {
			t.Fatal(err)
		}
		var in []Buffer
		for _, p := range m.Entry.Params {
			b, err := NewBuffer(p.Shape)
			if err != nil {
				t.Fatal(err)
			}
			w := newWalk(p.Shape.Dims, p.Shape.Strides())
			for n := range p.Shape.Elements() {
				if at := w.next(); p.Shape.DType.IsFloat() {
					b.SetFloat(at, float64(n+1))
				} else {
					b.SetInt(at, n+1)
				}
			}
			in = append(in, b)
		}
		out, err := Reference(m.Entry, in)
		if err != nil {
			return err.Error()
		}
		var text strings.Builder
		for _, b := range out {
			w := newWalk(b.Shape.Dims, b.Shape.Strides())
			fmt.Fprintf(&text, "%s", b.Shape)
			for range b.Shape.Elements() {
				fmt.Fprintf(&text, " %v", b.Float(w.next()))
			}
			text.WriteString("\n")
		}
		return text.String()
	})
}

func TestPaired(t *testing.T) {
	var x, y []float64
	for n := range 20 {
		x, y = append(x, 2+float64(n%3)/100), append(y, 1)
	}
	p := Paired(x, y, 0.95)
	if p.Median < 2 || p.Median > 2.02 || p.Lo < 2 || p.Hi > 2.02 {
		t.Errorf("got %+v", p)
	}
	// 2·P(B ≤ 0) for n = 6 is 0.031: six pairs are the fewest that say anything at 95 %.
	if k := orderStatistic(5, 0.95); k != -1 {
		t.Errorf("5 pairs give order statistic %d", k)
	}
	if k := orderStatistic(6, 0.95); k != 0 {
		t.Errorf("6 pairs give order statistic %d", k)
	}
	if k := orderStatistic(20, 0.95); k != 5 { // tables give the 6th of 20
		t.Errorf("20 pairs give order statistic %d", k)
	}
}

func TestCompareFindsTheWorst(t *testing.T) {
	shape := hlo.Shape{DType: hlo.F32, Dims: []int64{2, 2}}
	got, _ := NewBuffer(shape)
	want, _ := NewBuffer(shape)
	want.SetFloat(3, 100)
	got.SetFloat(3, 100.5)
	got.SetFloat(1, 0.001)
	if m := Compare(0, got, want, Tolerance{Relative: 0.01}); m != nil {
		t.Errorf("within tolerance, yet %v", m)
	}
	m := Compare(0, got, want, Tolerance{Relative: 0.001})
	if m == nil || m.Wrong != 1 || fmt.Sprint(m.Index) != "[1 1]" {
		t.Errorf("got %v", m)
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]bool{
		"x = f32[8,8] parameter(0); ROOT d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}":       true,
		"x = bf16[64,64] parameter(0); ROOT d = bf16[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}": false,
		"x = f32[8] parameter(0); ROOT e = f32[8] exponential(x)":                                                          false,
		"x = s32[8] parameter(0); ROOT e = s32[8] multiply(x, x)":                                                          true,
	} {
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if Exact(m.Entry) != want {
			t.Errorf("Exact is %v for %s", !want, text)
		}
	}
}
