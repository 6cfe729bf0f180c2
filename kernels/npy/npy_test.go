package npy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A file as numpy.save(f, numpy.array([[1,2],[3,4]], dtype='<i2')) writes it.
func numpyFile(header string, data ...byte) []byte {
	header += "\n"
	return append(
		append([]byte(magic+"\x01\x00"), byte(len(header)), byte(len(header)>>8)),
		append([]byte(header), data...)...,
	)
}

func TestRoundTrip(t *testing.T) {
	for _, layout := range [][]int{
		nil, {0, 1, 2}, {1, 2, 0},
	} {
		shape := hlo.Shape{
			DType:  hlo.S16,
			Dims:   []int64{2, 3, 4},
			Layout: hlo.Layout{MinorToMajor: layout},
		}
		b := kernels.Buffer{Shape: shape, Data: make([]byte, shape.Bytes())}
		for i := range b.Data {
			b.Data[i] = byte(i * 7)
		}
		var file bytes.Buffer
		if err := Write(&file, b); err != nil {
			t.Fatal(err)
		}
		if start := file.Len() - len(b.Data); start%64 != 0 {
			t.Errorf("elements start at %d, not a multiple of 64", start)
		}
		got, err := Read(&file, shape)
		if err != nil || !bytes.Equal(got.Data, b.Data) {
			t.Errorf("layout %v: %v", layout, err)
		}
	}
}

func TestFortranOrder(t *testing.T) {
	shape := hlo.Shape{DType: hlo.U8, Dims: []int64{2, 2}}
	file := numpyFile("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", 1, 3, 2, 4)
	b, err := Read(bytes.NewReader(file), shape)
	if err != nil || !bytes.Equal(b.Data, []byte{1, 2, 3, 4}) {
		t.Errorf("got %v, %v", b.Data, err)
	}
}

// numpy.save writes arrays of ml_dtypes as bytes without a meaning.
func TestOpaque(t *testing.T) {
	for _, c := range []struct {
		descr string
		dtype hlo.DType
		reads bool
	}{
		{"<V2", hlo.BF16, true},
		{"|V2", hlo.BF16, true},
		{"<V1", hlo.F8E4M3FN, true},
		{"<f1", hlo.F8E5M2, true},
		{"<V1", hlo.U4, true},
		{"<V2", hlo.F16, false},
		{"<V1", hlo.U8, false},
		{"<V2", hlo.F8E5M2, false},
	} {
		shape := hlo.Shape{DType: c.dtype, Dims: []int64{2}}
		data := make([]byte, shape.Bytes())
		header := "{'descr': '" + c.descr + "', 'fortran_order': False, 'shape': (2,), }"
		_, err := Read(bytes.NewReader(numpyFile(header, data...)), shape)
		if (err == nil) != c.reads {
			t.Errorf("%s as %s: %v", c.descr, c.dtype, err)
		}
	}
}

func TestErrors(t *testing.T) {
	shape := hlo.Shape{DType: hlo.U8, Dims: []int64{2, 2}}
	for _, c := range []struct{ file, want string }{
		{"", "not a NumPy file"},
		{"PK\x03\x04 a zip, not an npy", "not a NumPy file"},
		{string(numpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }")), `elements are "<f4"`},
		{string(numpyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }")), "shape (4), want (2,2)"},
		{string(numpyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", 1)), "1 bytes of elements"},
		{string(numpyFile("{}")), "no descr"},
		{magic + "\x09\x00" + strings.Repeat(" ", 80), "version 9.0 of the NumPy format; 1 to 3 are read"},
		{magic + "\x00\x01" + strings.Repeat(" ", 80), "version 0.1 of the NumPy format"},
	} {
		_, err := Read(strings.NewReader(c.file), shape)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.file, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(numpyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, file []byte) {
		Read(bytes.NewReader(file), hlo.Shape{
			DType: hlo.U8,
			Dims:  []int64{2, 2},
		})
	})
}
