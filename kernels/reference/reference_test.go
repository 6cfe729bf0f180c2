package reference

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
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
		var in []kernels.Buffer
		for _, p := range m.Entry.Params {
			b, err := kernels.NewBuffer(p.Shape)
			if err != nil {
				t.Fatal(err)
			}
			w := NewWalk(p.Shape.Dims, p.Shape.Strides())
			for n := range p.Shape.Elements() {
				switch at := w.Next(); {
				case p.Shape.DType.IsFloat():
					b.SetFloat(at, float64(n+1))
				case p.Shape.DType.IsComplex():
					b.SetComplex(at, complex(float64(n+1), float64(-n)))
				default:
					b.SetInt(at, n+1)
				}
			}
			in = append(in, b)
		}
		out, err := Interpret(m.Entry, in)
		if err != nil {
			return err.Error()
		}
		var text strings.Builder
		for _, b := range out {
			w := NewWalk(b.Shape.Dims, b.Shape.Strides())
			fmt.Fprintf(&text, "%s", b.Shape)
			for range b.Shape.Elements() {
				if at := w.Next(); b.Shape.DType.IsComplex() {
					fmt.Fprintf(&text, " %.7g", b.Complex(at))
				} else {
					fmt.Fprintf(&text, " %v", b.Float(at))
				}
			}
			text.WriteString("\n")
		}
		return text.String()
	})
}

// A value that this machine cannot hold is refused in words.
func TestLargeValue(t *testing.T) {
	huge := hlo.Shape{DType: hlo.F32, Dims: []int64{1 << 16, 1 << 17}}
	if kernels.CheckFreeMemory(huge.Bytes()-1) == nil {
		t.Skip("this machine holds 32 GB")
	}
	_, err := newValue(huge)
	if err == nil || !strings.Contains(err.Error(), "f32[65536,131072]") ||
		!strings.Contains(err.Error(), "GB left") {
		t.Errorf("%v", err)
	}
}
