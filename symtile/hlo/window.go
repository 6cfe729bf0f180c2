package hlo

import (
	"fmt"
	"strconv"
	"strings"
)

// WindowDim is one dimension of the window of a reduce-window, select-and-scatter
// or convolution. Position x of the result and w of the window meet at index
// x·Stride + w·Dilation − PadLow of the operand with BaseDilation−1 zeros (or
// initial values) put between its elements.
type WindowDim struct {
	Size, Stride    int64
	PadLow, PadHigh int64 // may be negative
	BaseDilation    int64 // lhs_dilate
	Dilation        int64 // rhs_dilate
	Reversed        bool  // rhs_reversal: the kernel is read backwards
}

// Span is the number of indices from the first to the last element of the
// window, 0 for an empty one.
func (w WindowDim) Span() int64 {
	if w.Size == 0 {
		return 0
	}
	return (w.Size-1)*w.Dilation + 1
}

// Padded is the extent an operand of extent n has after dilation and padding.
func (w WindowDim) Padded(n int64) int64 {
	return w.PadLow + w.PadHigh + n +
		max(0, n-1)*(w.BaseDilation-1)
}

// Positions is the number of places the window has over an operand of extent n.
func (w WindowDim) Positions(n int64) int64 {
	room := w.Padded(n)
	if w.Span() == 0 || room < w.Span() {
		return 0
	}
	return (room-w.Span())/w.Stride + 1
}

// windowFields are the words of window={…} in the order they are printed.
var windowFields = []struct {
	name  string
	set   func(w *WindowDim, text string) error
	print func(w WindowDim) string // "" for the value that is left out
}{
	{"size", func(w *WindowDim, t string) error {
		return setInt(&w.Size, t)
	}, func(w WindowDim) string { return fmt.Sprint(w.Size) }},
	{"stride", func(w *WindowDim, t string) error {
		return setInt(&w.Stride, t)
	}, func(w WindowDim) string { return omitOne(w.Stride) }},
	{"pad", setWindowPad, func(w WindowDim) string {
		if w.PadLow == 0 && w.PadHigh == 0 {
			return ""
		}
		return fmt.Sprintf("%d_%d", w.PadLow, w.PadHigh)
	}},
	{"lhs_dilate", func(w *WindowDim, t string) error {
		return setInt(&w.BaseDilation, t)
	}, func(w WindowDim) string { return omitOne(w.BaseDilation) }},
	{"rhs_dilate", func(w *WindowDim, t string) error {
		return setInt(&w.Dilation, t)
	}, func(w WindowDim) string { return omitOne(w.Dilation) }},
	{"rhs_reversal", func(w *WindowDim, t string) error {
		w.Reversed = t == "1" || t == "true"
		return nil
	}, func(w WindowDim) string {
		if w.Reversed {
			return "1"
		}
		return ""
	}},
}

// windowDefaults are the words for fields that are left out in one dimension only.
var windowDefaults = map[string]string{
	"stride":       "1",
	"pad":          "0_0",
	"lhs_dilate":   "1",
	"rhs_dilate":   "1",
	"rhs_reversal": "0",
}

func omitOne(v int64) string {
	if v == 1 {
		return ""
	}
	return fmt.Sprint(v)
}

func setInt(to *int64, text string) (err error) {
	if *to, err = strconv.ParseInt(text, 10, 32); err != nil {
		return fmt.Errorf("%q is not an integer", text)
	}
	return nil
}

func setWindowPad(w *WindowDim, text string) error {
	low, high, ok := strings.Cut(text, "_")
	if !ok {
		return fmt.Errorf("%q is not low_high", text)
	}
	if err := setInt(&w.PadLow, low); err != nil {
		return err
	}
	return setInt(&w.PadHigh, high)
}

// parseWindow reads {size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=… rhs_dilate=… rhs_reversal=1x0}.
func parseWindow(a *Attrs, text string) error {
	inner, ok := unbrace(text)
	if !ok {
		return fmt.Errorf("expected {size=…}, found %q", text)
	}
	a.Window = []WindowDim{}
	for n, word := range strings.Fields(inner) {
		name, list, _ := strings.Cut(word, "=")
		dims := strings.Split(list, "x")
		if n == 0 {
			for range dims {
				a.Window = append(a.Window, WindowDim{
					Stride:       1,
					BaseDilation: 1,
					Dilation:     1,
				})
			}
		}
		if len(dims) != len(a.Window) {
			return fmt.Errorf(
				"%s has %d dimensions, the window has %d", name, len(dims), len(a.Window),
			)
		}
		if err := setWindowField(a.Window, name, dims); err != nil {
			return err
		}
	}
	return nil
}

func setWindowField(window []WindowDim, name string, dims []string) error {
	for _, f := range windowFields {
		if f.name != name {
			continue
		}
		for k, text := range dims {
			if err := f.set(&window[k], text); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a window has no %q", name)
}

func printWindow(a *Attrs) string {
	if a.Window == nil {
		return ""
	}
	var words []string
	for _, f := range windowFields {
		said := false
		dims := make([]string, len(a.Window))
		for k, w := range a.Window {
			if dims[k] = f.print(w); dims[k] == "" {
				dims[k] = windowDefaults[f.name]
			} else {
				said = true
			}
		}
		if said {
			words = append(
				words, f.name+"="+strings.Join(dims, "x"),
			)
		}
	}
	return "{" + strings.Join(words, " ") + "}"
}

// ConvDims names the dimensions of a convolution: dim_labels=b01f_01io->b01f.
type ConvDims struct {
	InBatch, InFeature   int64
	InSpatial            []int64
	KernelIn, KernelOut  int64
	KernelSpatial        []int64
	OutBatch, OutFeature int64
	OutSpatial           []int64
}

// parseDimLabels reads input_kernel->output; b batch, f feature, i and o the
// kernel's input and output feature, digits the spatial dimensions in order.
func parseDimLabels(a *Attrs, text string) error {
	sides, out, ok := strings.Cut(text, "->")
	in, kernel, ok2 := strings.Cut(sides, "_")
	if !ok || !ok2 {
		return fmt.Errorf("%q is not like b01f_01io->b01f", text)
	}
	c := &ConvDims{}
	var err error
	c.InBatch, c.InFeature, c.InSpatial, err = labels(in, 'b', 'f')
	if err != nil {
		return err
	}
	c.KernelIn, c.KernelOut, c.KernelSpatial, err = labels(kernel, 'i', 'o')
	if err != nil {
		return err
	}
	c.OutBatch, c.OutFeature, c.OutSpatial, err = labels(out, 'b', 'f')
	if err != nil {
		return err
	}
	if len(c.InSpatial) != len(c.KernelSpatial) ||
		len(c.InSpatial) != len(c.OutSpatial) {
		return fmt.Errorf("%q has different numbers of spatial dimensions", text)
	}
	a.Conv = c
	return nil
}

func labels(text string, first, second byte) (x, y int64, spatial []int64, err error) {
	x, y = -1, -1
	spatial = make([]int64, max(0, len(text)-2))
	seen := 0
	for k := range len(text) {
		switch c := text[k]; {
		case c == first && x < 0:
			x = int64(k)
		case c == second && y < 0:
			y = int64(k)
		case '0' <= c &&
			int(c-'0') < len(spatial) &&
			seen&(1<<(c-'0')) == 0:
			spatial[c-'0'] = int64(k)
			seen |= 1 << (c - '0')
		default:
			return 0, 0, nil, fmt.Errorf("dim_labels has %q; each of %c, %c and the spatial digits stands in it once", text, first, second)
		}
	}
	if x < 0 || y < 0 {
		return 0, 0, nil, fmt.Errorf("dim_labels has %q; each of %c, %c and the spatial digits stands in it once", text, first, second)
	}
	return x, y, spatial, nil
}

func printDimLabels(a *Attrs) string {
	c := a.Conv
	if c == nil {
		return ""
	}
	return label(c.InBatch, c.InFeature, c.InSpatial, 'b', 'f') + "_" +
		label(c.KernelIn, c.KernelOut, c.KernelSpatial, 'i', 'o') + "->" +
		label(c.OutBatch, c.OutFeature, c.OutSpatial, 'b', 'f')
}

func label(x, y int64, spatial []int64, first, second byte) string {
	text := make([]byte, len(spatial)+2)
	text[x], text[y] = first, second
	for k, d := range spatial {
		text[d] = byte('0' + k)
	}
	return string(text)
}
