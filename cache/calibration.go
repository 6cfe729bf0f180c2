package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// A Calibration is what was measured of a device once, so that no process measures it
// again. It stays with the database: it is not exported, merged or published.
type Calibration struct {
	// Device and Backend name the device, as the keys of its winners do.
	Device  string `json:"device"`
	Backend string `json:"backend"`
	// Rates are in the form of the backend's package.
	Rates json.RawMessage `json:"rates"`
	// When and By are the time and the tool that made it; Quick is set where it was
	// made on the way to something else, in less time.
	When  time.Time `json:"when"`
	By    string    `json:"by"`
	Quick bool      `json:"quick,omitempty"`
}

// bucketRates has the calibrations. Databases from before there were any have no such
// bucket.
var bucketRates = []byte("rates")

// calibrationKey is the key of the calibration of a device.
func calibrationKey(device, backend string) []byte {
	return []byte(backend + "\x00" + device)
}

// Calibration finds what was measured of a device; a damaged one is an error.
func (db *DB) Calibration(device, backend string) (c Calibration, found bool, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketRates)
		if bucket == nil {
			return nil
		}
		value := bucket.Get(calibrationKey(device, backend))
		if value == nil {
			return nil
		}
		found = true
		return readCalibration(value, &c)
	})
	return c, found && err == nil, err
}

// readCalibration reads a stored calibration.
func readCalibration(value []byte, c *Calibration) error {
	err := readJSON(value, c)
	if err == nil {
		err = c.plausible()
	}
	if err != nil {
		return kindf(ErrDamaged, "the stored rates of a device are damaged: %w; `tilewright calibrate` replaces them", err)
	}
	return nil
}

// PutCalibration stores a calibration in place of the one of that device.
func (db *DB) PutCalibration(c Calibration) error {
	if err := c.plausible(); err != nil {
		return err
	}
	return db.update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(bucketRates); err != nil {
			return err
		}
		return putJSON(tx, bucketRates, calibrationKey(c.Device, c.Backend), c)
	})
}

// plausible refuses a calibration that is of no device.
func (c *Calibration) plausible() error {
	switch {
	case c.Device == "" || c.Backend == "":
		return errors.New("rates of no device")
	case len(c.Device) > maxNameBytes || len(c.Backend) > maxNameBytes:
		return fmt.Errorf("%.20q… is too long for a device", c.Device)
	case !json.Valid(c.Rates):
		return errors.New("rates that are not JSON")
	}
	return nil
}

// verifyCalibrations are the errors of the calibrations of a database.
func verifyCalibrations(tx *bbolt.Tx) (errs []error) {
	bucket := tx.Bucket(bucketRates)
	if bucket == nil {
		return nil
	}
	_ = bucket.ForEach(func(_, value []byte) error { // its function returns none
		var c Calibration
		if err := readCalibration(value, &c); err != nil {
			errs = append(errs, err)
		}
		return nil
	})
	return errs
}

// A Packing is what was measured of a fusion that reads an operand as it is, beside the
// same fusion that reads it packed. Like rates, it stays with the database.
type Packing struct {
	// Device, Backend and Code are those of the keys of winners: the device and the
	// revision of the code generator.
	Device  string `json:"device"`
	Backend string `json:"backend"`
	Code    string `json:"code"`
	// Fusion is the fingerprint of the fusion that reads the operand as it is,
	// hexadecimal, Parameter the operand, Pack the attributes of tensor.pack.
	Fusion    string `json:"fusion"`
	Parameter int    `json:"parameter"`
	Pack      string `json:"pack"`
	// InPlacePlan and PackedPlan are the plans of both.
	InPlacePlan string `json:"in_place_plan"`
	PackedPlan  string `json:"packed_plan"`
	// InPlace and Packed are the medians of both in seconds, Packing that of packing.
	InPlace float64 `json:"in_place"`
	Packed  float64 `json:"packed"`
	Packing float64 `json:"packing"`
	// Ratio is Packed over InPlace: the median of pairs of runs in turn, and the ends of
	// its 95 % interval. Pairs is their number.
	Ratio [3]float64 `json:"ratio"`
	Pairs int        `json:"pairs"`
	// When and By are the time and the tool that measured it.
	When time.Time `json:"when"`
	By   string    `json:"by"`
}

// Pays is the number of runs from which packing the operand once takes less time than
// reading it as it is; 0 where the interval of the ratio does not exclude that the packed
// operand is as slow.
func (p *Packing) Pays() int64 {
	saved := p.InPlace - p.Packed
	if p.Ratio[2] >= 1 || saved <= 0 {
		return 0
	}
	return int64(p.Packing/saved) + 1
}

// bucketPackings has what was measured of packs, by key.
var bucketPackings = []byte("packings")

// operandKey is what the keys of all packs of an operand begin with.
func (p *Packing) operandKey() []byte {
	return fmt.Appendf(
		nil, "%s\x00%s\x00%s\x00%s\x00%d\x00", p.Backend, p.Device, p.Code, p.Fusion, p.Parameter,
	)
}

// Packings are what was measured of packs of an operand: those of the device, revision,
// fusion and parameter of p. A damaged one is an error.
func (db *DB) Packings(p Packing) ([]Packing, error) {
	return db.packings(p.operandKey())
}

// packings are those whose keys begin with a prefix.
func (db *DB) packings(prefix []byte) (all []Packing, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketPackings)
		if bucket == nil {
			return nil
		}
		at := bucket.Cursor()
		for k, v := at.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = at.Next() {
			var found Packing
			if err := readPacking(k, v, &found); err != nil {
				return err
			}
			all = append(all, found)
		}
		return nil
	})
	return all, err
}

// PackingsOn are what was measured of packs of all operands on a device, in the order of
// their keys. A damaged one is an error.
func (db *DB) PackingsOn(backend, device string) ([]Packing, error) {
	return db.packings(fmt.Appendf(nil, "%s\x00%s\x00", backend, device))
}

// readPacking reads what is stored under a key.
func readPacking(key, value []byte, p *Packing) error {
	err := readJSON(value, p)
	if err == nil {
		err = p.plausible()
	}
	if err == nil && string(p.operandKey())+p.Pack != string(key) {
		err = errors.New("it is that of another key")
	}
	if err != nil {
		return kindf(ErrDamaged, "what was measured of a packed operand is damaged: %w; measuring it again replaces it", err)
	}
	return nil
}

// PutPacking stores what was measured of a pack in place of what was measured before.
func (db *DB) PutPacking(p Packing) error {
	if err := p.plausible(); err != nil {
		return err
	}
	return db.update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(bucketPackings); err != nil {
			return err
		}
		return putJSON(tx, bucketPackings, append(p.operandKey(), p.Pack...), p)
	})
}

// plausible refuses what cannot have been measured.
func (p *Packing) plausible() error {
	for _, name := range []string{p.Device, p.Backend, p.Code, p.Fusion, p.Pack} {
		switch {
		case name == "":
			return errors.New("a pack of no device, revision, fusion or attributes")
		case len(name) > maxNameBytes || strings.Contains(name, "\x00"):
			return fmt.Errorf("%.20q… is no name of a device, fusion or pack", name)
		}
	}
	for _, x := range []float64{p.InPlace, p.Packed, p.Packing, p.Ratio[0], p.Ratio[1], p.Ratio[2]} {
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("a pack with the time or ratio %g", x)
		}
	}
	if p.Parameter < 0 || p.Pairs < 1 || p.Ratio[1] > p.Ratio[2] {
		return fmt.Errorf("a pack of parameter %d with the ratio %g in %d pairs", p.Parameter, p.Ratio, p.Pairs)
	}
	return nil
}

// verifyPackings are the errors of what was measured of packs.
func verifyPackings(tx *bbolt.Tx) (errs []error) {
	bucket := tx.Bucket(bucketPackings)
	if bucket == nil {
		return nil
	}
	_ = bucket.ForEach(func(key, value []byte) error { // its function returns none
		var p Packing
		if err := readPacking(key, value, &p); err != nil {
			errs = append(errs, err)
		}
		return nil
	})
	return errs
}
