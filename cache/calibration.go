package cache

import (
	"encoding/json"
	"errors"
	"fmt"
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
