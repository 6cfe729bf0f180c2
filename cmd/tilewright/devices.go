package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/device"
)

// devicesCommand lists the backends and their devices.
var devicesCommand = command{
	name: "devices", short: "what each backend sees, and why one is missing",
	long: "Lists every backend of this build: the device it drives with its lanes, peak rate and memory\nlevels, as measured or reported, or the reason it is not there. With -json, -sheet NAME prints the sheet of one of the built-in GPUs,\nwhich -device-sheet and rank -problems read (docs/formats.md), with the source of its numbers.",
	run:  runDevices,
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
	// Lanes are cores, or multiprocessors of a GPU.
	Lanes int `json:"lanes,omitempty"`
	// FLOPS is the peak rate of f32 in flop/s.
	FLOPS float64 `json:"flops,omitempty"`
	// Vectors describes the vector registers of a core, where they are known.
	Vectors *vectorsJSON `json:"vectors,omitempty"`
	// Levels of memory, the innermost first.
	Levels []levelJSON `json:"levels,omitempty"`
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

// runDevices describes every backend of this build.
func runDevices(c *call) error {
	c.jsonFlag()
	name := c.String("sheet", "", "print the device sheet of this `GPU`, such as A100")
	if _, err := c.parse(0, 0); err != nil {
		return err
	}
	if *name != "" {
		return c.printSheet(*name)
	}
	var all []deviceJSON
	for _, d := range drivers() {
		all = append(all, d.describe())
	}
	if c.json {
		return c.printJSON(map[string]any{"devices": all})
	}
	for _, d := range all {
		d.print(c)
	}
	return nil
}

// printSheet prints the sheet of a built-in GPU, also of one that code is not generated
// for: it is a beginning for the sheet of a device that is not built in.
func (c *call) printSheet(name string) error {
	if !c.json {
		return usagef("-sheet stands with -json")
	}
	s, err := device.ParsePriced(name)
	if err != nil {
		return usagef("-sheet: %v", err)
	}
	return c.printJSON(device.SheetOf(s))
}

// describe opens the backend, if that needs no name, and describes its device.
func (d driver) describe() deviceJSON {
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
	dev := b.Device()
	j.Device = dev.Name
	j.Revision = dev.Revision
	j.Safe = dev.Safe
	j.Lanes = dev.Lanes
	j.FLOPS = dev.FLOPS
	if dev.VectorBits > 0 {
		j.Vectors = &vectorsJSON{dev.VectorBits, dev.VectorRegisters}
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
	if v := d.Vectors; v != nil {
		fmt.Fprintf(c.out, "  %d vector registers of %d bits\n", v.Registers, v.Bits)
	}
	t := c.table()
	for _, l := range d.Levels {
		fmt.Fprintf(t, "  %s\t%s\t%.1f GB/s\n", l.Name, l.capacity(), l.Bandwidth/1e9)
	}
	t.Flush()
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
