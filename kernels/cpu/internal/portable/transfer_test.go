package portable

import (
	"math"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// floatTypes are the floating types that scratch holds as f32.
var floatTypes = []hlo.DType{
	hlo.F32, hlo.BF16, hlo.F16, hlo.F8E4M3FN, hlo.F8E5M2,
}

// A transfer gives what a Buffer gives, dense and strided.
func TestTransfersAreBuffers(t *testing.T) {
	const n = 300
	for _, d := range floatTypes {
		for _, stride := range []int64{1, 3} {
			want, err := kernels.NewBuffer(hlo.Shape{DType: d, Dims: []int64{n * stride}})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := kernels.NewBuffer(want.Shape)
			values := make([]float32, n)
			for k := range values {
				values[k] = float32(math.Sin(float64(k))) * float32(k)
				want.SetFloat(int64(k)*stride, float64(values[k]))
			}
			Write[float32](d)(values, got.Data, 0, stride)
			if string(got.Data) != string(want.Data) {
				t.Errorf("%s, stride %d: what was written differs", d, stride)
			}
			Read[float32](d)(values, got.Data, 0, stride)
			for k, v := range values {
				if w := float32(want.Float(int64(k) * stride)); v != w {
					t.Fatalf("%s, stride %d: element %d is %v, not %v", d, stride, k, v, w)
				}
			}
		}
	}
}

// BenchmarkTransfer measures dense and strided reads of a type.
func BenchmarkTransfer(b *testing.B) {
	const n = 4096
	for _, d := range floatTypes {
		for _, stride := range []int64{1, 3} {
			data := make([]byte, n*stride*d.Size())
			scratch := make([]float32, n)
			read := Read[float32](d)
			b.Run(d.String()+map[int64]string{1: "/dense", 3: "/strided"}[stride], func(b *testing.B) {
				b.SetBytes(n)
				for b.Loop() {
					read(scratch, data, 0, stride)
				}
			})
		}
	}
}
