// Package npy reads and writes arrays in NumPy's .npy format (NEP 1):
//
//	magic     "\x93NUMPY"
//	version   two bytes; 1.0 is written, 1 to 3 are read
//	length    of the header: u16 in version 1, u32 in later ones
//	header    a Python dict with descr, fortran_order and shape, padded with
//	          blanks so that the elements begin at a multiple of 64 bytes
//	elements  in C or Fortran order
//
// A file has a type and extents, but no layout: Read and Write convert between the
// order of the file and the layout of a buffer. Go's library for the format stops at
// two dimensions and has no float16, which is why this package exists.
package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// descrs are the types of elements in NumPy's notation. Types that NumPy lacks
// are stored as integers of the same width: bf16 as uint16, f8 and 4-bit types
// as one byte an element.
var descrs = map[hlo.DType]string{
	hlo.Pred:          "|b1",
	hlo.S1:            "|i1",
	hlo.S2:            "|i1",
	hlo.S4:            "|i1",
	hlo.S8:            "|i1",
	hlo.S16:           "<i2",
	hlo.S32:           "<i4",
	hlo.S64:           "<i8",
	hlo.U1:            "|u1",
	hlo.U2:            "|u1",
	hlo.U4:            "|u1",
	hlo.U8:            "|u1",
	hlo.U16:           "<u2",
	hlo.U32:           "<u4",
	hlo.U64:           "<u8",
	hlo.F4E2M1FN:      "|u1",
	hlo.F8E3M4:        "|u1",
	hlo.F8E4M3:        "|u1",
	hlo.F8E4M3FN:      "|u1",
	hlo.F8E4M3B11FNUZ: "|u1",
	hlo.F8E4M3FNUZ:    "|u1",
	hlo.F8E5M2:        "|u1",
	hlo.F8E5M2FNUZ:    "|u1",
	hlo.F8E8M0FNU:     "|u1",
	hlo.F16:           "<f2",
	hlo.BF16:          "<u2",
	hlo.F32:           "<f4",
	hlo.F64:           "<f8",
	hlo.C64:           "<c8",
	hlo.C128:          "<c16",
}

const (
	// The first bytes of a file, which no text file begins with.
	magic = "\x93NUMPY"
	// Version 1 of the format cannot have a longer header, and no real header
	// is longer.
	maxHeaderBytes = 1 << 16
)

// Read reads an array, which must have the extents of shape and the NumPy type
// that its element type is stored as. The buffer has the layout of shape.
func Read(r io.Reader, shape hlo.Shape) (kernels.Buffer, error) {
	header, err := readHeader(r)
	if err != nil {
		return kernels.Buffer{}, fmt.Errorf("npy: %w", err)
	}
	fortran, err := checkHeader(header, shape)
	if err != nil {
		return kernels.Buffer{}, fmt.Errorf("npy: %w", err)
	}
	file := shape
	file.Layout = hlo.Layout{}
	if fortran {
		file.Layout.MinorToMajor = ascending(shape.Rank())
	}
	// An allocation that fails would end the process: the machine has to have
	// memory for all elements before any is read.
	err = kernels.CheckFreeMemory(shape.Bytes())
	if err != nil {
		return kernels.Buffer{},
			fmt.Errorf("npy: %s: %w", shape, err)
	}
	data := make([]byte, shape.Bytes())
	n, err := io.ReadFull(r, data)
	if err != nil {
		return kernels.Buffer{}, fmt.Errorf(
			"npy: %d bytes of elements, %s needs %d", n, shape, len(data),
		)
	}
	return relayout(kernels.Buffer{Shape: file, Data: data}, shape), nil
}

// Write writes a buffer in C order.
func Write(w io.Writer, b kernels.Buffer) error {
	descr, ok := descrs[b.Shape.DType]
	if !ok {
		return fmt.Errorf("npy: %s has no NumPy type", b.Shape.DType)
	}
	dims := make([]string, 0, b.Shape.Rank())
	for _, d := range b.Shape.Dims {
		dims = append(dims, strconv.FormatInt(d, 10)+",")
	}
	header := fmt.Sprintf(
		"{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
		descr, strings.Join(dims, " "),
	)
	// The magic, the version and the length come first. Blanks and a newline make
	// the elements begin at a multiple of 64 bytes.
	const fixed = len(magic) + 4
	pad := 63 - (fixed+len(header))%64
	header += strings.Repeat(" ", pad) + "\n"

	out := append([]byte(magic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	out = append(out, header...)
	plain := b.Shape
	plain.Layout = hlo.Layout{}
	if _, err := w.Write(out); err != nil {
		return err
	}
	_, err := w.Write(relayout(b, plain).Data)
	return err
}

// readHeader reads the bytes in front of the elements and returns the dict
// literal.
func readHeader(r io.Reader) (string, error) {
	var fixed [12]byte
	if _, err := io.ReadFull(r, fixed[:10]); err != nil ||
		string(fixed[:6]) != magic {
		return "", fmt.Errorf("not a NumPy file (no \\x93NUMPY at its start)")
	}
	if fixed[6] < 1 || fixed[6] > 3 {
		return "", fmt.Errorf("version %d.%d of the NumPy format; 1 to 3 are read", fixed[6], fixed[7])
	}
	// Version 1 has a length of two bytes, later versions of four.
	length := int64(binary.LittleEndian.Uint16(fixed[8:10]))
	if fixed[6] >= 2 {
		if _, err := io.ReadFull(r, fixed[10:12]); err != nil {
			return "", fmt.Errorf("header cut short")
		}
		length = int64(binary.LittleEndian.Uint32(fixed[8:12]))
	}
	if length > maxHeaderBytes {
		return "", fmt.Errorf("header of %d bytes; at most %d are read", length, maxHeaderBytes)
	}
	// The length is not trusted: memory grows with what is really there.
	var header bytes.Buffer
	if n, _ := io.CopyN(&header, r, length); n < length {
		return "", fmt.Errorf("header cut short: %d of %d bytes", n, length)
	}
	return header.String(), nil
}

// The fields of a header. Other fields are ignored, and the order does not matter.
var (
	descrField   = field(`['"]descr['"]\s*:\s*['"]([^'"]*)['"]`)
	fortranField = field(`['"]fortran_order['"]\s*:\s*(True|False)`)
	shapeField   = field(`['"]shape['"]\s*:\s*\(([0-9L, ]*)\)`)
)

// field compiles the pattern of a field when it is first needed: few commands read arrays.
func field(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(pattern)
	})
}

// checkHeader compares a header with the shape that is wanted, and returns the
// order of the elements.
func checkHeader(header string, want hlo.Shape) (fortran bool, err error) {
	descr := descrField().FindStringSubmatch(header)
	order := fortranField().FindStringSubmatch(header)
	dims := shapeField().FindStringSubmatch(header)
	if descr == nil || order == nil || dims == nil {
		return false, fmt.Errorf("header has no descr, fortran_order or shape: %.80q", header)
	}
	wantDescr, ok := descrs[want.DType]
	if !ok {
		return false, fmt.Errorf("%s has no NumPy type", want.DType)
	}
	if got := descr[1]; got != wantDescr && !sameOneByte(got, wantDescr) && !opaque(got, want.DType) {
		return false, fmt.Errorf("elements are %.20q, %s needs %s", got, want, wantDescr)
	}
	got := strings.Join(
		strings.FieldsFunc(dims[1], func(c rune) bool {
			return c == ',' || c == ' ' || c == 'L'
		}),
		",",
	)
	if got != joinDims(want.Dims) {
		return false, fmt.Errorf("shape (%s), want (%s)", got, joinDims(want.Dims))
	}
	return order[1] == "True", nil
}

// sameOneByte accepts "<i1" for "|i1": one byte has no byte order.
func sameOneByte(a, b string) bool {
	return len(a) == 3 &&
		len(b) == 3 && a[2] == '1' &&
		a[1:] == b[1:]
}

// opaque accepts what numpy.save writes of the arrays of ml_dtypes, whose types
// NumPy does not know: bytes without a meaning ("<V2" of bf16, "<V1" of most types
// of 8 bits or fewer), but "<f1" of f8e5m2.
func opaque(descr string, want hlo.DType) bool {
	switch {
	case len(descr) != 3:
		return false
	case want == hlo.BF16:
		return descr[1:] == "V2"
	}
	return descrs[want] == "|u1" && want != hlo.U8 &&
		(descr[1:] == "V1" || descr[1:] == "f1")
}

// joinDims formats extents with commas between them.
func joinDims(dims []int64) string {
	s := make([]string, len(dims))
	for i, d := range dims {
		s[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(s, ",")
}

// ascending is 0 … n−1: the layout of Fortran's order.
func ascending(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// relayout copies b into a buffer with the layout of to.
func relayout(b kernels.Buffer, to hlo.Shape) kernels.Buffer {
	out := kernels.Buffer{
		Shape: to,
		Data:  make([]byte, len(b.Data)),
	}
	b.CopyTo(out)
	return out
}
