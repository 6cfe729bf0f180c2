package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/kernels/replay"
)

// A driver is a way to open a backend, or the reason why there is none.
type driver struct {
	name  string
	about string
	// Opens the backend's only or first device.
	open func() (kernels.Backend, error)
	// Opens a device by the text behind the colon, for names of the form
	// name:what.
	named func(what string) (kernels.Backend, error)
	// The reason why this build has neither.
	absent string
}

// drivers lists the backends of this build.
func drivers() []driver {
	return []driver{
		{name: "cpu", about: "tile programs on this machine's cores, pure Go",
			open: func() (kernels.Backend, error) { return cpu.New(), nil }},
		{name: "sim", about: "PTX for a GPU that is not there, run and checked by a simulator that times nothing, as sim:sm_90, sim:A100 …", named: simulate},
		{name: "replay", about: "samples that were taken elsewhere, as replay:FILE; `tilewright cache export` writes such files", named: replayed},
		cudaDriver(),
	}
}

// aboutCUDA describes the backend of NVIDIA GPUs, whether or not this build has
// it.
const aboutCUDA = "NVIDIA GPUs"

// deviceUsage is the help of -device.
const deviceUsage = "the `device` to tune for; `tilewright devices` lists them"

// A availableDevice is what the flags say of one.
type availableDevice struct {
	name *string
	tf32 *bool
}

// deviceFlag defines -device and -tf32.
func (c *call) deviceFlag() availableDevice {
	return availableDevice{
		c.String("device", "cpu", deviceUsage),
		c.Bool("tf32", false, tf32Usage),
	}
}

// tf32Usage is the help of -tf32.
const tf32Usage = "let products of f32 round their operands to tf32 on a GPU's tensor cores: plans with tf32=1, whose results are within 2⁻¹⁰ an operation, and winners of their own"

// backend opens the device that the flags choose.
func backend(d availableDevice) (kernels.Backend, error) {
	b, err := backendNamed(*d.name)
	if err != nil || !*d.tf32 {
		return b, err
	}
	gpu, ok := b.(kernels.TF32Backend)
	if !ok {
		return nil, usagef("-tf32: %s has no tensor cores", *d.name)
	}
	gpu.AllowTF32()
	return b, nil
}

// backendNamed opens a device by name.
func backendNamed(name string) (kernels.Backend, error) {
	kind, what, more := strings.Cut(name, ":")
	var names []string
	for _, d := range drivers() {
		switch {
		case d.name != kind:
			names = append(names, d.name)
		case d.absent != "":
			return nil, fmt.Errorf("device %s: %s", name, d.absent)
		case more && d.named != nil:
			return d.named(what)
		case more:
			return nil, usagef("device %q: it is just %s", name, kind)
		case d.open == nil:
			return nil, usagef("device %q: it needs more, see `tilewright devices`: %s", name, d.about)
		default:
			return d.open()
		}
	}
	return nil, usagef("no device %q; there are %s", name, strings.Join(names, ", "))
}

// simulate opens a simulated GPU, by target or by product.
func simulate(name string) (kernels.Backend, error) {
	sheet, err := device.ParseSpec(name)
	if err != nil {
		return nil, usagef("%v", err)
	}
	dev, err := simulated.Open(
		sheet, sim.Options{Races: true, Uninitialised: true},
	)
	if err != nil {
		return nil, err
	}
	s, err := device.NewSession(context.Background(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		return nil, err
	}
	return simulator{gpu.New(s), dev}, nil
}

// A simulator is a backend on a simulated GPU, which is a counterSource.
type simulator struct {
	*gpu.Backend
	device *simulated.Driver
}

func (s simulator) count() { s.device.Count() }

func (s simulator) counters() sim.Counters { return s.device.Counters() }

// replayed opens the device of a recording.
func replayed(file string) (kernels.Backend, error) {
	if file == "" {
		return nil, usagef("device replay: it needs a recording, as replay:FILE; `tilewright cache export` and `tilewright doctor` write such files")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return replay.Read(file, f)
}

var devicesCommand = command{
	name: "devices", short: "what each backend sees, and why one is missing",
	long: "Lists every backend of this build: the device it drives with its lanes, peak rate and memory\nlevels, as measured or reported, or the reason it is not there.",
	run:  runDevices,
}

// deviceJSON is one backend of devices -json.
type deviceJSON struct {
	// Name is what -device takes: "cpu".
	Name  string `json:"name"`
	About string `json:"about"`
	// Device is the stable name of the device, a part of the cache key.
	Device string `json:"device,omitempty"`
	// Revision of the code generator, and the safe context of the device.
	Revision string            `json:"revision,omitempty"`
	Safe     map[string]string `json:"safe,omitempty"`
	Lanes    int               `json:"lanes,omitempty"`
	// FLOPS is the peak rate of f32 in flop/s.
	FLOPS   float64      `json:"flops,omitempty"`
	Vectors *vectorsJSON `json:"vectors,omitempty"`
	Levels  []levelJSON  `json:"levels,omitempty"`
	// Missing is the reason why the backend is not available.
	Missing string `json:"missing,omitempty"`
}

// vectorsJSON are the vector registers of a core.
type vectorsJSON struct {
	// Bits of one register.
	Bits      int `json:"bits"`
	Registers int `json:"registers"`
}

// levelJSON is one level of memory.
type levelJSON struct {
	Name string `json:"name"`
	// Bytes is its capacity; 0 is unbounded.
	Bytes  int64 `json:"bytes"`
	Shared bool  `json:"shared"`
	// Lanes that share one of a shared level; 0 is all of them.
	Lanes int `json:"lanes,omitempty"`
	// Bandwidth of all lanes together, in bytes/s.
	Bandwidth float64 `json:"bandwidth"`
}

// runDevices describes every backend of this build.
func runDevices(c *call) error {
	c.jsonFlag()
	if _, err := c.parse(0, 0); err != nil {
		return err
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
			l.Lanes, l.Bandwidth,
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
		fmt.Fprintf(
			t, "  %s\t%s\t%.1f GB/s\n",
			l.Name, l.capacity(), l.Bandwidth/1e9,
		)
	}
	t.Flush()
}

// capacity formats the size of a level and who shares it.
func (l levelJSON) capacity() string {
	switch {
	case l.Bytes == 0:
		return "unbounded"
	case l.Shared && l.Lanes > 0:
		return fmt.Sprintf("%s shared by %d cores", byteSize(l.Bytes), l.Lanes)
	case l.Shared:
		return byteSize(l.Bytes) + " shared"
	}
	return byteSize(l.Bytes) + " a lane"
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
