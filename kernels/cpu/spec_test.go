package cpu

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// made is the backend of a machine of two lanes with such caches, the last of
// which they share.
func made(t *testing.T, d *datadriven.TestData) *Backend {
	dev := kernels.Device{Name: "cpu:made up", Backend: "cpu", Lanes: 2}
	d.MaybeScanArgs(t, "vector", &dev.VectorBits)
	var caches string
	d.MaybeScanArgs(t, "kib", &caches)
	for k, text := range strings.FieldsFunc(caches, func(r rune) bool { return r == '/' }) {
		kib, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		dev.Levels = append(dev.Levels, kernels.Level{
			Name:   "L" + strconv.Itoa(k+1),
			Bytes:  kib << 10,
			Shared: k == 2,
		})
	}
	var kept int64 // KiB of the last cache
	if d.MaybeScanArgs(t, "kept", &kept); kept > 0 {
		dev.Levels[len(dev.Levels)-1].Kept = kept << 10
	}
	dev.Levels = append(dev.Levels, kernels.Level{Name: "memory", Shared: true})
	return &Backend{identity: func() kernels.Device { return dev }, prior: unknownPrior()}
}

// TestSheets goes through testdata/sheets.txt: the sheet of a made-up device, and
// the default plan for one.
//
//	sheet kib=32/512/32768 vector=256
//
//	default kib=32/512/32768
//	HLO
func TestSheets(t *testing.T) {
	datadriven.RunTest(t, "testdata/sheets.txt", func(t *testing.T, d *datadriven.TestData) string {
		b := made(t, d)
		if d.Cmd == "sheet" {
			c := b.spec()
			return strings.Join([]string{
				"first " + strconv.Itoa(c.First), "second " + strconv.Itoa(c.Second),
				"third " + strconv.Itoa(c.Third),
				"last " + strconv.FormatInt(c.last, 10),
				"vector " + strconv.FormatInt(c.vector, 10), "",
			}, "\n")
		}
		m, err := hlo.Parse("f", []byte(d.Input))
		if err != nil {
			t.Fatal(err)
		}
		p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
		if err != nil {
			t.Fatal(err)
		}
		plan, err := b.Default(t.Context(), p)
		if err != nil {
			return err.Error() + "\n"
		}
		return plan.String() + "\n"
	})
}
