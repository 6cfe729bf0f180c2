package main

import (
	"bufio"
	"fmt"
	"math"
	"os"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/npy"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// moveData reads the array of -in, does the steps of the pack, unpack or tiled layout
// to it, and writes the result to -out.
func (f *layoutFlags) moveData(l *layout.Layout, j *layoutJSON) error {
	if f.in == "" {
		return nil
	}
	from := hlo.Shape{DType: l.Shape.DType, Dims: l.Shape.Dims}
	to := hlo.Shape{DType: from.DType, Dims: l.Physical}
	steps, padding := l.Steps(), []byte(nil)
	if p, err := f.parsePack(l); err != nil {
		return err
	} else if p != nil {
		if to.Dims, steps = p.Packed(), p.Steps(); p.Unpack {
			to.Dims = p.Source
		}
		if padding, err = paddingBytes(from.DType, p.Padding); err != nil {
			return err
		}
	}
	file := output.File{Name: f.out, Kind: output.NumPy, Reads: []string{f.in}, Replace: *f.replace}
	if err := file.Check(); err != nil {
		return err
	}
	in, err := readArray(f.in, from)
	if err != nil {
		return err
	}
	// A step makes its result before its operand is free.
	if err := kernels.CheckFreeMemory(2 * (from.Bytes() + to.Bytes())); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	out := kernels.Buffer{Shape: to, Data: steps.Move(in.Data, from.DType.Size(), padding)}
	j.Out = f.out
	return file.Write(func(w *bufio.Writer) error { return npy.Write(w, out) })
}

// readArray reads a NumPy file.
func readArray(name string, shape hlo.Shape) (kernels.Buffer, error) {
	file, err := os.Open(name)
	if err != nil {
		return kernels.Buffer{}, err
	}
	defer file.Close()
	b, err := npy.Read(bufio.NewReader(file), shape)
	if err != nil {
		return b, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// paddingBytes is an element that holds the padding value, nil for none. The value
// has to be one of the type.
func paddingBytes(d hlo.DType, value *float64) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	b, err := kernels.NewBuffer(hlo.Shape{DType: d})
	if err != nil {
		return nil, err
	}
	switch {
	case d.IsFloat():
		b.SetFloat(0, *value)
		return b.Data, nil
	case d.IsComplex():
		return nil, fmt.Errorf("a padding_value of %s is not supported", d)
	}
	lo, hi := d.IntRange()
	if *value != math.Trunc(*value) || *value < float64(lo) || *value > float64(hi) {
		return nil, fmt.Errorf("the padding_value %g is not a value of %s", *value, d)
	}
	b.SetInt(0, int64(*value))
	return b.Data, nil
}

// inMemory is a row-major array as the physical array of a tiled layout, with zeros
// as padding; b itself where the layout is not tiled. The layout is one that
// symtile.Analyze has accepted.
func inMemory(b kernels.Buffer, s hlo.Shape) kernels.Buffer {
	l, err := layout.Of(s)
	if err != nil || len(s.Layout.Tiles) == 0 {
		return b
	}
	return kernels.Buffer{
		Shape: hlo.Shape{DType: s.DType, Dims: l.Physical},
		Data:  kernels.Aligned(l.Steps().Move(b.Data, s.DType.Size(), nil)),
	}
}

// logical is the row-major array in the physical array of a tiled layout.
func logical(b kernels.Buffer, s hlo.Shape) kernels.Buffer {
	l, err := layout.Of(s)
	if err != nil || len(s.Layout.Tiles) == 0 {
		return b
	}
	return kernels.Buffer{
		Shape: hlo.Shape{DType: s.DType, Dims: s.Dims},
		Data:  l.Steps().Inverse().Move(b.Data, s.DType.Size(), nil),
	}
}
