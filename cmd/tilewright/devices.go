package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/tuner"
)

// devicesCommand lists the backends and their devices.
var devicesCommand = command{
	name: "devices", short: "what each backend sees, and why one is missing",
	long: `Lists every backend of this build: the device it drives with its lanes, peak rate and memory
levels, or the reason it is not there. Rates are those that are stored in -db, with their spread and date;
where none are (calibrate stores them) they are measured quickly, and not kept. Prices of plans for the
CPU are those of the sheet of its family, or of a typical core, with the factor by which a rate may be off.
With -json, -sheet NAME prints one of the sheets that are listed last, or that of this processor (cpu), which
-device-sheet and rank -problems read (docs/formats.md), with the source of its numbers.`,
	run: runDevices,
}

// deviceJSON is one backend of devices -json.
type deviceJSON struct {
	// Name is what -device takes: "cpu".
	Name string `json:"name"`
	// About is one line for people.
	About string `json:"about"`
	// Device is the stable name of the device, a part of the cache key.
	Device string `json:"device,omitempty"`
	// Revision of the code generator: the exact context.
	Revision string `json:"revision,omitempty"`
	// Safe context of the device, such as the version of its driver.
	Safe map[string]string `json:"safe,omitempty"`
	// Unread says which entries of Safe could not be read, and why.
	Unread string `json:"unread,omitempty"`
	// Lanes are cores, or multiprocessors of a GPU.
	Lanes int `json:"lanes,omitempty"`
	// FLOPS is the peak rate of f32 in flop/s.
	FLOPS float64 `json:"flops,omitempty"`
	// Vectors describes the vector registers of a core, where they are known.
	Vectors *vectorsJSON `json:"vectors,omitempty"`
	// Levels of memory, the innermost first.
	Levels []levelJSON `json:"levels,omitempty"`
	// Prior is what prices are made of; absent where that is the device's own sheet.
	Prior *priorJSON `json:"prior,omitempty"`
	// Calibration says where the rates come from; absent where they were measured just
	// now, or are those of a data sheet.
	Calibration *calibrationJSON `json:"calibration,omitempty"`
	// Missing is the reason why the backend is not available.
	Missing string `json:"missing,omitempty"`
}

// vectorsJSON are the vector registers of a core.
type vectorsJSON struct {
	// Bits of one register.
	Bits int `json:"bits"`
	// Number of registers.
	Registers int `json:"registers"`
}

// priorJSON is what is believed of a processor before anything is measured.
type priorJSON struct {
	// Sheet is the name of the data sheet.
	Sheet string `json:"sheet"`
	// Unknown is set where the family of the processor has no sheet.
	Unknown bool `json:"unknown,omitempty"`
	// Spread is the share by which a rate may be higher: of f32, then of each level. By
	// the same factor it may be lower.
	Spread []float64 `json:"spread"`
}

// levelJSON is one level of memory.
type levelJSON struct {
	// Name of the level: "L1".
	Name string `json:"name"`
	// Bytes is its capacity; 0 is unbounded.
	Bytes int64 `json:"bytes"`
	// Shared levels serve several lanes.
	Shared bool `json:"shared"`
	// Lanes that share one of a shared level; 0 is all of them.
	Lanes int `json:"lanes,omitempty"`
	// Kept is the measured bytes of arrays that stay in the last cache.
	Kept int64 `json:"kept,omitempty"`
	// Bandwidth of all lanes together, in bytes/s.
	Bandwidth float64 `json:"bandwidth"`
}

// calibrationJSON is the history of stored rates.
type calibrationJSON struct {
	// When and By say when and by which tool the rates were measured.
	When string `json:"when"`
	By   string `json:"by"`
	// Quick rates were measured on the way to something else, in half a second.
	Quick bool `json:"quick,omitempty"`
	// Busy rates are of a machine that others used.
	Busy bool `json:"busy,omitempty"`
	// Spread of the flop/s, and of each level: interquartile range over median.
	Spread []float64 `json:"spread"`
	// Mismeasured are the reasons why rates are typical ones.
	Mismeasured []string `json:"mismeasured,omitempty"`
}

// runDevices describes every backend of this build.
func runDevices(c *call) error {
	c.jsonFlag()
	db := c.dbFlag()
	name := c.String("sheet", "", "print the device sheet of this `device`: a GPU such as A100, a family of processors such as 'Zen 2', or cpu, this one")
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	if *name != "" {
		return c.printSheet(*name)
	}
	gpus, cpus := knownSheets()
	var all []deviceJSON
	for _, d := range drivers() {
		all = append(all, d.describe(cache.Open(*db)))
	}
	if c.json {
		sheets := map[string][]string{"gpu": gpus, "cpu": cpus}
		return c.printJSON(map[string]any{"devices": all, "sheets": sheets})
	}
	for _, d := range all {
		d.print(c)
	}
	fmt.Fprintf(c.out, "sheets, which -json -sheet NAME prints:\n")
	fmt.Fprintf(c.out, "  GPUs: %s\n", strings.Join(gpus, ", "))
	fmt.Fprintf(c.out, "  CPUs: %s, and cpu for this one\n", strings.Join(cpus, ", "))
	return nil
}

// knownSheets are the names of the built-in sheets.
func knownSheets() (gpus, cpus []string) {
	for _, s := range device.Priced() {
		gpus = append(gpus, s.Name)
	}
	for _, s := range sheet.Known() {
		cpus = append(cpus, s.Name)
	}
	return gpus, cpus
}

// printSheet prints the sheet of a built-in GPU, also of one that code is not generated
// for, of a built-in processor, or of this one: it is a beginning for the sheet of a device
// that is not built in.
func (c *call) printSheet(name string) error {
	if !c.json {
		return usagef("-sheet stands with -json")
	}
	if name == "cpu" {
		return c.printJSON(cpu.SheetHere())
	}
	if s, err := sheet.Find(name); err == nil {
		return c.printJSON(s)
	}
	s, err := device.ParsePriced(name)
	if err != nil {
		_, cpus := knownSheets()
		return usagef("-sheet: %v, and of CPUs %s, and cpu for this one", err, strings.Join(cpus, ", "))
	}
	return c.printJSON(device.SheetOf(s))
}

// describe opens the backend, if that needs no name, and describes its device.
func (d driver) describe(db *cache.DB) deviceJSON {
	j := deviceJSON{
		Name:    d.name,
		About:   d.about,
		Missing: d.absent,
	}
	if d.open == nil {
		return j // missing, or there when it is named
	}
	b, err := d.open()
	if err != nil {
		j.Missing = err.Error()
		return j
	}
	stored, found, err := tuner.StoredRates(db, b)
	switch {
	case err != nil:
		j.Missing = err.Error()
		return j
	case found:
		j.Calibration = newCalibrationJSON(stored)
	}
	dev := b.Device()
	j.Device = dev.Name
	j.Revision = dev.Revision
	j.Safe = dev.Safe
	j.Unread = dev.Unread
	j.Lanes = dev.Lanes
	j.FLOPS = dev.FLOPS
	if dev.VectorBits > 0 {
		j.Vectors = &vectorsJSON{dev.VectorBits, dev.VectorRegisters}
	}
	if b, ok := b.(*cpu.Backend); ok {
		j.Prior = newPriorJSON(b)
	}
	for _, l := range dev.Levels {
		j.Levels = append(j.Levels, levelJSON{
			l.Name, l.Bytes, l.Shared,
			l.Lanes, l.Kept, l.Bandwidth,
		})
	}
	return j
}

// print describes a backend for people.
func (d deviceJSON) print(c *call) {
	fmt.Fprintf(c.out, "%s: %s\n", d.Name, d.About)
	if d.Missing != "" {
		fmt.Fprintf(c.out, "  not available: %s\n", d.Missing)
		return
	}
	if d.Device == "" {
		return
	}
	fmt.Fprintf(
		c.out, "  %s, %d lanes, %.1f Gflop/s f32, code generation %s\n",
		d.Device, d.Lanes,
		d.FLOPS/1e9, d.Revision,
	)
	for _, key := range slices.Sorted(maps.Keys(d.Safe)) {
		fmt.Fprintf(c.out, "  %s %s\n", key, d.Safe[key])
	}
	if d.Unread != "" {
		fmt.Fprintf(c.out, "  not known: %s\n", d.Unread)
	}
	if v := d.Vectors; v != nil {
		fmt.Fprintf(c.out, "  %d vector registers of %d bits\n", v.Registers, v.Bits)
	}
	t := c.table()
	for _, l := range d.Levels {
		fmt.Fprintf(t, "  %s\t%s\t%.1f GB/s\n", l.Name, l.capacity(), l.Bandwidth/1e9)
	}
	t.Flush()
	if d.Prior != nil {
		d.Prior.print(c, d.Levels)
	}
	if d.Calibration != nil {
		d.Calibration.print(c)
	}
}

// newPriorJSON is the prior of this machine.
func newPriorJSON(b *cpu.Backend) *priorJSON {
	s, known := b.Prior()
	r := b.TypicalRates()
	j := &priorJSON{Sheet: s.Name, Unknown: !known, Spread: []float64{r.FLOPS.Spread}}
	for _, l := range r.Levels {
		j.Spread = append(j.Spread, l.Spread)
	}
	return j
}

// print says what prices are made of, and how sure that is.
func (j *priorJSON) print(c *call, levels []levelJSON) {
	if j.Unknown {
		fmt.Fprintf(c.out, "  no sheet for this processor: prices are those of a %s, whose rates may be off by a factor of %.2g\n", j.Sheet, 1+slices.Max(j.Spread))
		return
	}
	names := []string{"f32"}
	for _, l := range levels {
		names = append(names, l.Name)
	}
	for k, s := range j.Spread {
		names[k] += fmt.Sprintf(" within %.2g×", 1+s)
	}
	fmt.Fprintf(c.out, "  prices by the sheet of %s: %s\n", j.Sheet, strings.Join(names, ", "))
}

// newCalibrationJSON is the history of rates.
func newCalibrationJSON(r tuner.Calibration) *calibrationJSON {
	j := &calibrationJSON{
		When:        r.When.Format(time.RFC3339),
		By:          r.By,
		Quick:       r.Quick,
		Busy:        r.Busy,
		Spread:      []float64{r.FLOPS.Spread},
		Mismeasured: r.Mismeasured(),
	}
	for _, l := range r.Levels {
		j.Spread = append(j.Spread, l.Spread)
	}
	return j
}

// print says where rates come from and how sure they are.
func (j *calibrationJSON) print(c *call) {
	how := ""
	switch {
	case j.Busy:
		how = ", while others used the machine: calibrate again when it is quiet"
	case j.Quick:
		how = ", quickly: calibrate takes longer"
	}
	fmt.Fprintf(c.out, "  rates of %s by %s, spread at most %.0f %%%s\n", j.When, j.By, 100*slices.Max(j.Spread), how)
	for _, why := range j.Mismeasured {
		fmt.Fprintf(c.out, "  mismeasured, a typical rate is used: %s\n", why)
	}
}

// calibrateCommand measures the rates of a device and stores them.
var calibrateCommand = command{
	name: "calibrate", short: "measure the rates of the device once, for all commands",
	long: `Measures the peak rate of the device's arithmetic and the bandwidth of each level of its memory, and stores
them in -db with their spread and date. Lower bounds of times and the roofs in records are made of them; the
order of plans is not. No other command measures them then; without stored ones tune takes half a second to,
and stores that.

Rounds during which something else ran are left out; where few are left the rates are marked. An inner level that is
slower than the one around it was mismeasured, and a typical rate is used in its place; so it is when a
winner turns out to be faster than the rates allow. Rates of a GPU are those of its data sheet.`,
	run: runCalibrate,
}

// runCalibrate measures and stores the rates of the device.
func runCalibrate(c *call) error {
	c.jsonFlag()
	db := c.dbFlag()
	device := c.deviceFlag()
	span := c.Duration("for", 10*time.Second, "`time` to measure for, at most 1m")
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	if *span <= 0 || *span > time.Minute {
		return usagef("-for %v: more than nothing, at most 1m", *span)
	}
	if err := output.Writable(*db); err != nil {
		return err
	}
	b, err := backend(device)
	if err != nil {
		return err
	}
	if _, can := b.(kernels.Calibrated); !can {
		return fmt.Errorf("%s: its rates are not measured", b.Identity().Name)
	}
	if _, err := tuner.Calibrate(c.ctx, cache.Open(*db), b, *span); err != nil {
		return err
	}
	j := driver{name: *device.name, about: b.Identity().Name, open: func() (kernels.Backend, error) { return b, nil }}.describe(cache.Open(*db))
	if c.json {
		return c.printJSON(j)
	}
	j.print(c)
	return nil
}

// capacity formats the size of a level and who shares it.
func (l levelJSON) capacity() string {
	switch {
	case l.Bytes == 0:
		return "unbounded"
	case l.Shared && l.Lanes > 0:
		return fmt.Sprintf("%s shared by %d cores%s", byteSize(l.Bytes), l.Lanes, l.kept())
	case l.Shared:
		return byteSize(l.Bytes) + " shared" + l.kept()
	}
	return byteSize(l.Bytes) + " a lane"
}

// kept is what was measured of the last cache.
func (l levelJSON) kept() string {
	if l.Kept == 0 {
		return ""
	}
	return ", " + byteSize(l.Kept) + " kept"
}

// byteSize formats a number of bytes in binary units.
func byteSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
