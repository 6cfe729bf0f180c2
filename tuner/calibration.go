package tuner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A Calibration is the rates of a device with their history.
type Calibration struct {
	kernels.Rates
	// When they were measured, by which tool, and whether in little time, on the way to
	// something else.
	When  time.Time
	By    string
	Quick bool
}

// StoredRates tells a backend the stored rates of its device, and reports whether there
// are any. Rates that the device cannot have are an error.
func StoredRates(db *cache.DB, b kernels.Backend) (c Calibration, found bool, err error) {
	device, can := b.(kernels.Calibrated)
	if !can {
		return c, false, nil
	}
	id := b.Identity()
	stored, found, err := db.Calibration(id.Name, id.Backend)
	if !found || err != nil {
		return c, false, err
	}
	c = Calibration{When: stored.When, By: stored.By, Quick: stored.Quick}
	if err := json.Unmarshal(stored.Rates, &c.Rates); err != nil {
		return c, false, fmt.Errorf("the stored rates of %s: %w", id.Name, err)
	}
	if err := device.SetRates(c.Rates); err != nil {
		return c, false, fmt.Errorf("the stored rates: %w", err)
	}
	return c, true, nil
}

// quickCalibration is the time in which rates are measured on the way to something else.
const quickCalibration = 500 * time.Millisecond

// UseRates tells a backend the rates of its device: what is stored, or, where that is
// nothing or cannot be read, what it measures quickly and stores. The error is one of
// storing, or the cause of a context that ended before. It does nothing for a backend that
// cannot be told.
func UseRates(ctx context.Context, db *cache.DB, b kernels.Backend) error {
	if _, found, err := StoredRates(db, b); found && err == nil {
		return nil
	}
	_, err := Calibrate(ctx, db, b, quickCalibration)
	return err
}

// Calibrate measures the rates of a device for a time, tells its backend and stores them.
func Calibrate(
	ctx context.Context, db *cache.DB, b kernels.Backend, span time.Duration,
) (c Calibration, err error) {
	device, can := b.(kernels.Calibrated)
	if !can {
		return c, nil
	}
	c = Calibration{
		When:  time.Now().UTC().Truncate(time.Second),
		By:    Version(),
		Quick: span <= quickCalibration,
	}
	if c.Rates, err = device.Calibrate(ctx, span); err != nil {
		return c, err
	}
	if err := device.SetRates(c.Rates); err != nil {
		return c, err
	}
	return c, c.store(db, b.Identity())
}

// store stores the rates of a device.
func (c *Calibration) store(db *cache.DB, d kernels.Device) error {
	text, err := json.Marshal(c.Rates)
	if err != nil {
		return err
	}
	return db.PutCalibration(cache.Calibration{
		Device:  d.Name,
		Backend: d.Backend,
		Rates:   text,
		When:    c.When,
		By:      c.By,
		Quick:   c.Quick,
	})
}

// roofOf is the roof of a program whose runs go through resident bytes of arrays, beside
// the time of its winner; nil where no rate is known. A winner that is faster than its
// roof contradicts the rate, which is not used again.
func roofOf(
	db *cache.DB, b kernels.Backend, p *symtile.Program, resident int64, seconds float64,
) *cache.Roof {
	device := b.Device()
	roof, err := cost.RoofOf(p, device, resident)
	if err != nil || roof.Seconds <= 0 {
		return nil
	}
	out := &cache.Roof{
		Seconds:     roof.Seconds,
		By:          "products",
		Mismeasured: seconds < roof.Seconds,
	}
	if roof.Level >= 0 {
		out.By = device.Levels[roof.Level].Name
	}
	if x, can := b.(kernels.Calibrated); can && out.Mismeasured {
		shown := roof.Work / seconds
		contradict(db, x, roof.Level, shown, fmt.Sprintf(
			"the winner of %s has %.3g G/s of %s", p.Fusion.Name, shown/1e9, out.By,
		))
	}
	return out
}

// contradict replaces the stored rate of a level, of products where that is −1, by the
// typical one, or by what a winner has shown where that is more. What cannot be stored is
// contradicted again by the next winner.
func contradict(db *cache.DB, b kernels.Calibrated, level int, shown float64, by string) {
	c, found, err := StoredRates(db, b)
	if !found || err != nil {
		return
	}
	rate, typical := &c.FLOPS, b.TypicalRates().FLOPS
	if level >= 0 {
		rate, typical = &c.Levels[level], b.TypicalRates().Levels[level]
	}
	rate.Mismeasured = fmt.Sprintf("%.3g G/s were measured, %s", rate.Value/1e9, by)
	rate.Value = max(typical.Value, shown)
	c.Rates = c.Plausible(b.Identity(), b.TypicalRates())
	if b.SetRates(c.Rates) == nil {
		_ = c.store(db, b.Identity())
	}
}
