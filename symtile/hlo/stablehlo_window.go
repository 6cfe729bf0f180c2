package hlo

import (
	"fmt"
	"strings"
)

// Operations with windows. StableHLO lists strides, padding and dilations one by
// one, each optional; HLO joins them as window={size=3x3 stride=2x2 pad=1_1x1_1}.

// A window holds the lists of an operation with a window, one number for each
// dimension; nil lists stand for the default.
type window struct {
	size, stride []int64
	// pad has two numbers for each dimension, low and high.
	pad                  []int64
	lhsDilate, rhsDilate []int64
	reverse              []int64
}

// text prints the parts that are not the default.
func (w window) text() string {
	if len(w.size) == 0 {
		return ""
	}
	parts := []string{"size=" + windowSizes(w.size)}
	put := func(
		name string, v []int64, absent int64, text string,
	) {
		for _, x := range v {
			if x != absent {
				parts = append(parts, name+"="+text)
				return
			}
		}
	}
	put("stride", w.stride, 1, windowSizes(w.stride))
	put("pad", w.pad, 0, windowPads(w.pad))
	put("lhs_dilate", w.lhsDilate, 1, windowSizes(w.lhsDilate))
	put("rhs_dilate", w.rhsDilate, 1, windowSizes(w.rhsDilate))
	put("rhs_reversal", w.reverse, 0, windowSizes(w.reverse))
	return "{" + strings.Join(parts, " ") + "}"
}

// windowPads prints 1_1x0_2: the low and high padding of each dimension.
func windowPads(v []int64) string {
	words := make([]string, len(v)/2)
	for k := range words {
		words[k] = fmt.Sprintf(
			"%d_%d", v[2*k], v[2*k+1],
		)
	}
	return strings.Join(words, "x")
}

// windowOf reads the lists of a window from attrs, each under one of two names.
func (m *mlir) windowOf(
	o *mlirOp, attrs mlirAttrs, size []int64,
) (w window, err error) {
	w.size = size
	for _, f := range []struct {
		to    *[]int64
		times int
		names []string
	}{
		{&w.stride, 1, []string{"stride", "window_strides"}},
		{&w.pad, 2, []string{"pad", "padding"}},
		{&w.lhsDilate, 1, []string{"lhs_dilate", "lhs_dilation", "base_dilations"}},
		{&w.rhsDilate, 1, []string{"rhs_dilate", "rhs_dilation", "window_dilations"}},
		{&w.reverse, 1, []string{"reverse", "window_reversal"}},
	} {
		if *f.to, err = m.someInts(attrs, f.names...); err != nil {
			return w, err
		}
		n := len(*f.to)
		if n != 0 && n != f.times*len(size) {
			return w, m.Fail(
				o.at, "%s of %s lists %d numbers for a window of %d dimensions",
				f.names[0], o.name,
				n, len(size),
			)
		}
	}
	return w, nil
}

// lowerReduceWindow reads the window; the region is the computation that
// combines.
func lowerReduceWindow(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpReduceWindow, o.operands...)
	if err := m.windowFrom(i, o); err != nil {
		return nil, err
	}
	return m.apply(i, o, 0)
}

// windowFrom sets the window of i from window_dimensions and the lists beside
// it.
func (m *mlir) windowFrom(i *Instr, o *mlirOp) error {
	size, err := m.needInts(o, "window_dimensions")
	if err != nil {
		return err
	}
	w, err := m.windowOf(o, o.attrs, size)
	if err != nil {
		return err
	}
	return m.set(i, o, "window", w.text())
}

// lowerSelectAndScatter reads the window; the first region selects, the second
// combines.
func lowerSelectAndScatter(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	i := m.result(b, o, OpSelectAndScatter, o.operands...)
	if err := m.windowFrom(i, o); err != nil {
		return nil, err
	}
	if err := m.checkCaptures(o, o.regions[0]); err != nil {
		return nil, err
	}
	i.Attrs.Select = o.regions[0].comp
	return m.apply(i, o, 1)
}

// lowerConvolution reads dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
// window = {…}; the sizes of the window are the kernel's spatial extents.
func lowerConvolution(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	s, ok := o.attrs.find("dim_numbers", "dimension_numbers")
	if !ok {
		return nil, m.Fail(o.at, "convolution needs dim_numbers =")
	}
	labels, size, err := m.convLabels(o, m.text(s))
	if err != nil {
		return nil, err
	}
	attrs := o.attrs
	if s, ok := attrs.find("window"); ok {
		if attrs, err = m.sub(s); err != nil {
			return nil, err
		}
	}
	w, err := m.windowOf(o, attrs, size)
	if err != nil {
		return nil, err
	}
	i := m.result(b, o, OpConvolution, o.operands...)
	if _, err := m.setAll(
		i, o, "window", w.text(), "dim_labels", labels,
	); err != nil {
		return nil, err
	}
	for _, name := range []string{"feature_group_count", "batch_group_count"} {
		n, err := m.needInt(o, 1, name)
		if err != nil {
			return nil, err
		}
		if n != 1 {
			err := m.set(i, o, name, fmt.Sprint(n))
			if err != nil {
				return nil, err
			}
		}
	}
	return i, m.precision(i, o)
}

// lowerDynamicConvolution is a convolution whose padding is an operand, which refinement
// makes an attribute.
func lowerDynamicConvolution(m *mlir, b *block, o *mlirOp) (*Instr, error) {
	padding := o.operands[2]
	o.operands = o.operands[:2]
	i, err := lowerConvolution(m, b, o)
	if err == nil {
		m.numbers[i] = []*Instr{padding}
	}
	return i, err
}

// convLabels turns [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] into
// b01f_01io->b01f and finds the extents of the kernel's spatial dimensions.
func (m *mlir) convLabels(o *mlirOp, text string) (labels string, size []int64, err error) {
	var parts []string
	for _, piece := range strings.Split(text, "[")[1:] {
		inside, _, _ := strings.Cut(piece, "]")
		parts = append(
			parts,
			strings.ReplaceAll(strings.Join(strings.Fields(inside), ""), ",", ""),
		)
	}
	if len(parts) != 3 {
		return "", nil, m.Fail(o.at, "the dimension numbers of convolution are [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], found %q", text)
	}
	kernel := o.operands[1].Shape
	if len(parts[1]) != kernel.Rank() ||
		kernel.Rank() < 2 {
		return "", nil, m.Fail(
			o.at, "the dimension numbers of convolution name %d dimensions of a kernel %s",
			len(parts[1]), kernel,
		)
	}
	size = make([]int64, kernel.Rank()-2)
	for p, c := range parts[1] {
		d := int(c - '0')
		if d >= 0 && d < len(size) {
			size[d] = max(kernel.Dims[p], 0) // refinement sets an open one
		}
	}
	return parts[0] + "_" + parts[1] + "->" + parts[2], size, nil
}
