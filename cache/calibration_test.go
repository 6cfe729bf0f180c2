package cache

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// A calibration is found by its device, replaced, and no record; a database of before
// there were any has none.
func TestCalibration(t *testing.T) {
	db := filled(t, 2)
	if _, found, err := db.Calibration("cpu:a", "cpu"); found || err != nil {
		t.Fatalf("found %v, %v in a database without rates", found, err)
	}
	c := Calibration{
		Device: "cpu:a", Backend: "cpu",
		Rates: json.RawMessage(`{"flops":{"value":1}}`),
		When:  time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), By: "test", Quick: true,
	}
	for _, rates := range []string{`{"flops":{"value":1}}`, `{"flops":{"value":2}}`} {
		c.Rates = json.RawMessage(rates)
		if err := db.PutCalibration(c); err != nil {
			t.Fatal(err)
		}
		got, found, err := db.Calibration("cpu:a", "cpu")
		if !found || err != nil || string(got.Rates) != rates || !got.When.Equal(c.When) || !got.Quick {
			t.Errorf("%+v, %v, %v", got, found, err)
		}
	}
	if _, found, _ := db.Calibration("cpu:b", "cpu"); found {
		t.Error("the rates of another device are found")
	}
	if n, err := db.Verify(); n != 2 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
	for _, bad := range []Calibration{{}, {Device: "a", Backend: "b"}, {Backend: "b", Rates: c.Rates}} {
		if db.PutCalibration(bad) == nil {
			t.Errorf("%+v is stored", bad)
		}
	}
}

// A damaged calibration is an error of its own, of Verify too, and can be replaced.
func TestDamagedCalibration(t *testing.T) {
	db := filled(t, 2)
	c := Calibration{Device: "cpu:a", Backend: "cpu", Rates: json.RawMessage(`1`)}
	if err := db.PutCalibration(c); err != nil {
		t.Fatal(err)
	}
	if err := db.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketRates).Put(calibrationKey("cpu:a", "cpu"), []byte("????{}"))
	}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := db.Calibration("cpu:a", "cpu"); found || !errors.Is(err, ErrDamaged) {
		t.Errorf("found %v, %v", found, err)
	}
	if n, err := db.Verify(); n != 2 || !errors.Is(err, ErrDamaged) {
		t.Errorf("%d records, %v", n, err)
	}
	if err := db.PutCalibration(c); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Verify(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(db.path), "rates")); err == nil {
		t.Error("rates are in a file of their own")
	}
}

// What was measured of packs is found by its operand, replaced by what is measured again,
// and no record; damage is an error, of Verify too.
func TestPackings(t *testing.T) {
	db := filled(t, 2)
	p := Packing{
		Device: "cpu:a", Backend: "cpu", Code: "go1", Fusion: "ab", Parameter: 1, Pack: "x",
		InPlace: 10, Packed: 8, Packing: 3, Ratio: [3]float64{0.8, 0.7, 0.9}, Pairs: 6,
	}
	if all, err := db.Packings(p); len(all) > 0 || err != nil {
		t.Fatalf("%v, %v in a database without packs", all, err)
	}
	other := p
	other.Pack = "y"
	for _, put := range []Packing{p, other, p} {
		put.Pairs++
		if err := db.PutPacking(put); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := db.Packings(p); len(all) != 2 || err != nil || all[0].Pairs != 7 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, miss := range []Packing{
		{Device: "cpu:b", Backend: "cpu", Code: "go1", Fusion: "ab", Parameter: 1},
		{Device: "cpu:a", Backend: "cpu", Code: "go2", Fusion: "ab", Parameter: 1},
		{Device: "cpu:a", Backend: "cpu", Code: "go1", Fusion: "ab"},
	} {
		if all, err := db.Packings(miss); len(all) > 0 || err != nil {
			t.Errorf("%+v finds %v, %v", miss, all, err)
		}
	}
	if n, err := db.Verify(); n != 2 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
	bad := p
	bad.InPlace = math.NaN()
	if db.PutPacking(bad) == nil || db.PutPacking(Packing{}) == nil {
		t.Error("a pack without a time is stored")
	}
	if err := db.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketPackings).Put(append(p.operandKey(), "x"...), []byte("????{}"))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Packings(p); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged pack: %v", err)
	}
	if _, err := db.Verify(); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// Packing pays from a number of runs on, or never where the interval contains 1.
func TestPackingPays(t *testing.T) {
	for _, c := range []struct {
		p    Packing
		want int64
	}{
		{Packing{InPlace: 10, Packed: 8, Packing: 3, Ratio: [3]float64{0.8, 0.7, 0.9}}, 2},
		{Packing{InPlace: 10, Packed: 9.5, Packing: 3, Ratio: [3]float64{0.95, 0.8, 1.1}}, 0},
		{Packing{InPlace: 10, Packed: 12, Packing: 3, Ratio: [3]float64{1.2, 1.1, 1.3}}, 0},
	} {
		if got := c.p.Pays(); got != c.want {
			t.Errorf("%+v pays from %d, want %d", c.p, got, c.want)
		}
	}
}

// A roof that its winner goes below cannot be stored unless it is called mismeasured.
func TestRoofBelowItsWinner(t *testing.T) {
	db := Open(filepath.Join(t.TempDir(), "t.db"))
	r := record(1)
	r.Roof = &Roof{Seconds: 2 * r.Seconds, By: "memory"}
	if _, err := db.Put(r); err == nil {
		t.Error("a winner below its roof is stored")
	}
	if h := (&Record{Seconds: 3, Roof: &Roof{Seconds: 2}}).Headroom(); h != 1.5 {
		t.Errorf("headroom %g, want 1.5", h)
	}
	r.Roof.Mismeasured = true
	if _, err := db.Put(r); err != nil || r.Headroom() != 0 {
		t.Errorf("headroom %g, %v", r.Headroom(), err)
	}
}
