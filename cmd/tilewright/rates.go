package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner/report"
)

// fusionWork is the least work of a fusion: the bytes of its arrays, each moved
// once, and the operations of its matrix products.
type fusionWork struct{ bytes, flops float64 }

// workOf counts the work of a fusion.
func workOf(f *hlo.Computation) (w fusionWork) {
	for _, s := range append(kernels.OutputShapes(f), f.ParamShapes()...) {
		w.bytes += float64(s.Bytes())
	}
	for _, i := range f.Instrs {
		if i.Op == hlo.OpDot {
			n := 2 * float64(i.Shape.Elements())
			for _, k := range i.Attrs.LHSContract {
				n *= float64(i.Operands[0].Shape.Dims[k])
			}
			w.flops += n
		}
	}
	return w
}

// A ratedJSON compares the time of a large fusion with the ceilings of the
// device.
type ratedJSON struct {
	tunedJSON
	// Bandwidth in bytes/s.
	Bandwidth float64 `json:"bandwidth,omitempty"`
	// FLOPS of the matrix products, in flop/s.
	FLOPS float64 `json:"flops,omitempty"`
	// OfCopy is the share of the bandwidth of the copy.
	OfCopy float64 `json:"of_copy,omitempty"`
	// OfMatrix is the share of the highest ceiling of the matrix units.
	OfMatrix float64 `json:"of_matrix,omitempty"`
	// Vendor is the time of the vendor's library in seconds, from -vendor.
	Vendor float64 `json:"vendor,omitempty"`
	// OfVendor is the vendor's time over this one.
	OfVendor float64 `json:"of_vendor,omitempty"`
}

// rate computes the rates of a time. The shares of the copy are known once the
// copy has been rated.
func (d *doctor) rate(f *hlo.Computation, t tunedJSON) ratedJSON {
	r := ratedJSON{tunedJSON: t}
	w := workOf(f)
	if t.Error != "" || t.Seconds <= 0 {
		return r
	}
	r.Bandwidth = w.bytes / t.Seconds
	r.FLOPS = w.flops / t.Seconds
	if f.Name == copyFusion {
		d.copied = r.Bandwidth
	}
	if d.copied > 0 {
		r.OfCopy = r.Bandwidth / d.copied
	}
	peak := highest(d.ceilings)
	if peak > 0 && w.flops > 0 {
		r.OfMatrix = r.FLOPS / peak
	}
	if v := d.vendor[f.Name]; v > 0 {
		r.Vendor = v
		r.OfVendor = v / t.Seconds
	}
	return r
}

// copyFusion is the large fusion that only copies. Its bandwidth is the ceiling
// of fusions that are bound by memory; it is tuned first.
const copyFusion = "copy"

// highest is the highest ceiling of the matrix units.
func highest(all []device.Ceiling) (flops float64) {
	for _, c := range all {
		flops = max(flops, c.FLOPS)
	}
	return flops
}

// String is the row for people.
func (r ratedJSON) String() string {
	if r.Error != "" {
		return r.Fusion + "\t" + firstLine(r.Error)
	}
	s := fmt.Sprintf(
		"%s\t%s\t%s\t%.0f GB/s, %s of the copy",
		r.Fusion, r.Plan,
		report.Seconds(r.Seconds), r.Bandwidth/1e9,
		percent(r.OfCopy),
	)
	if r.FLOPS > 0 {
		s += fmt.Sprintf(
			"\t%.1f TFLOP/s, %s of the matrix units", r.FLOPS/1e12, percent(r.OfMatrix),
		)
	}
	if r.Vendor > 0 {
		s += fmt.Sprintf("\t%s of the vendor's library", percent(r.OfVendor))
	}
	return s
}

// percent formats a share.
func percent(share float64) string {
	if share == 0 {
		return "an unknown share"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// ratedHeader is the head of the columns of row.
const ratedHeader = "fusion\tplan\tseconds\tbytes/s\tflop/s\tof the copy\tof the matrix ceiling\tvendor seconds\tof the vendor\terror"

// row is the row for a table that is separated by tabs.
func (r ratedJSON) row() string {
	return fmt.Sprintf(
		"%s\t%s\t%g\t%g\t%g\t%.4g\t%.4g\t%g\t%.4g\t%s",
		r.Fusion, r.Plan, r.Seconds, r.Bandwidth,
		r.FLOPS, r.OfCopy, r.OfMatrix, r.Vendor,
		r.OfVendor, firstLine(r.Error),
	)
}

// readVendor reads the times of a vendor's library: a fusion and seconds a
// line, separated by a tab or blanks. Lines that begin with # are left out.
func readVendor(file string) (map[string]float64, error) {
	if file == "" {
		return nil, nil
	}
	f, err := openInput(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 ||
			strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf(
				"%s:%d: %q; expected the name of a large fusion and seconds",
				file, n, lines.Text(),
			)
		}
		v, err := strconv.ParseFloat(words[1], 64)
		if err != nil || v <= 0 {
			return nil, fmt.Errorf("%s:%d: %q is no time in seconds", file, n, words[1])
		}
		all[words[0]] = v
	}
	return all, lines.Err()
}
