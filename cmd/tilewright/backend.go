package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/assembler"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/kernels/replay"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/tuner"
)

// A driver is a way to open a backend, or the reason why there is none.
type driver struct {
	// What -device begins with.
	name string
	// One line for `tilewright devices`.
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
		// The CPU is always there; the others need a name, or a build tag.
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
const deviceUsage = "the `device`, e.g. cpu, sim:H100, replay:FILE; see `tilewright devices`"

// deviceFlags are the flags that choose a device.
type deviceFlags struct {
	// Name of the device, as in "cpu" or "sim:H100".
	name *string
	// File of a device sheet, of which a GPU is simulated; "" is none.
	sheet *string
	// Plans may round operands of f32 products to tf32.
	tf32 *bool
	// The command prices plans and runs none: the sheet may be of another processor.
	prices bool
	// The assembler that plans of a simulated GPU are priced by (assembler.Find); nil, or
	// "", is that on the PATH.
	ptxas *string
}

// deviceFlag defines -device and -tf32.
func (c *call) deviceFlag() deviceFlags {
	return deviceFlags{
		name:  c.String("device", "cpu", deviceUsage),
		sheet: c.String("device-sheet", "", "simulate the GPU that this `file` describes, or price plans for its processor, instead of -device; see docs/formats.md"),
		tf32:  c.Bool("tf32", false, tf32Usage),
	}
}

// pricedDeviceFlag defines -device and -tf32 of a command that runs no plan.
func (c *call) pricedDeviceFlag() deviceFlags {
	d := c.deviceFlag()
	d.prices = true
	return d
}

// tf32Usage is the help of -tf32.
const tf32Usage = "let products of f32 round their operands to tf32 on a GPU's tensor cores: plans with tf32=1, whose results are within 2⁻¹⁰ an operation, and winners of their own"

// backend opens the device that the flags choose.
func backend(d deviceFlags) (kernels.Backend, error) {
	b, err := d.open()
	if err != nil {
		return nil, err
	}
	if p, ok := b.(*cpu.Priced); ok && !d.prices {
		return nil, fmt.Errorf("%s: a sheet of %s, which this machine is not (%s): it is for rank, lookup and report, which run no plan", *d.sheet, p.Sheet().Name, cpu.New().Identity().Name)
	}
	if !*d.tf32 {
		return b, nil
	}
	gpu, ok := b.(kernels.TF32Backend)
	if !ok {
		return nil, usagef("-tf32: %s has no tensor cores", *d.name)
	}
	gpu.AllowTF32()
	return b, nil
}

// open opens the device that the flags choose, for which modules are split from now on.
func (c *call) open(d deviceFlags) (kernels.Backend, error) {
	b, err := backend(d)
	if err != nil {
		return nil, err
	}
	named := ""
	if d.ptxas != nil {
		named = *d.ptxas
	}
	if err := priceByAssembler(c.ctx, named, b); err != nil {
		return nil, err
	}
	c.target = query.TargetOf(b.Identity().Identity())
	return b, nil
}

// priceByAssembler has the plans of a simulated GPU priced by what the assembler of -ptxas
// says of their kernels, or by that on the PATH. Nothing changes where there is none, and
// on other devices.
func priceByAssembler(ctx context.Context, named string, b kernels.Backend) error {
	s, ok := b.(simulator)
	if !ok && named != "" && named != assembler.None {
		return usagef("-ptxas: only kernels of simulated GPUs are priced by it, such as sim:H100")
	}
	if !ok {
		return nil
	}
	a, err := assembler.Find(ctx, named)
	if err != nil {
		return usagef("-ptxas %v", err)
	}
	if a.Path != "" {
		s.AssembleBy(a.Version, a.Text)
	}
	return nil
}

// splitFlag defines -device of a command that opens none, and splits modules for it.
func (c *call) splitFlag() *string {
	return c.String("device", "cpu", "split a module without fusions for this `device`, e.g. cpu, sim:H100: what it does not compute is left outside")
}

// splitFor is what modules are split for from now on: the kind of a device.
func (c *call) splitFor(device string) error {
	if device == "cpu" {
		return nil // the default, which nothing has to be opened for
	}
	_, err := c.open(deviceFlags{name: &device, sheet: new(string), tf32: new(bool)})
	return err
}

// open opens the device of -device-sheet or -device. The GPU of a sheet is simulated:
// its kernels are computed and checked, and have no times. A sheet of an architecture
// that code is not generated for is an error, since there is nothing to compute. The
// processor of a sheet is this one, with the sheet's rates as its prior, or one whose plans
// are priced.
func (d deviceFlags) open() (kernels.Backend, error) {
	if *d.sheet == "" {
		return backendNamed(*d.name)
	}
	f, err := openInput(*d.sheet)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSheetBytes))
	if err != nil {
		return nil, err
	}
	if sheet.IsCPU(text) {
		return processorOf(*d.sheet, text)
	}
	s, err := device.ReadSheet(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", *d.sheet, err)
	}
	if !s.Generated() {
		return nil, fmt.Errorf("%s: code is not generated for %s; rank -problems prices plans for it", *d.sheet, s.Target)
	}
	return simulateSpec(s)
}

// maxSheetBytes is more than any sheet has.
const maxSheetBytes = 2 << 20

// processorOf opens the processor of a sheet in a file.
func processorOf(file string, text []byte) (kernels.Backend, error) {
	s, err := sheet.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !cpu.IsHere(s) {
		return cpu.NewPriced(s), nil
	}
	b := cpu.New()
	b.SetSheet(s)
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
	return simulateSpec(sheet)
}

// simulateSpec opens a simulated GPU.
func simulateSpec(sheet device.Spec) (kernels.Backend, error) {
	dev, err := simulated.Open(sheet, sim.Options{Races: true, Uninitialised: true})
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

// count makes the next runs count.
func (s simulator) count() { s.device.Count() }

// counters are those of the last run.
func (s simulator) counters() sim.Counters { return s.device.Counters() }

// replayed opens the device of a recording.
func replayed(file string) (kernels.Backend, error) {
	if file == "" {
		return nil, usagef("device replay: it needs a recording, as replay:FILE; `tilewright cache export` and `tilewright doctor` write such files")
	}
	f, err := openInput(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := replay.Read(file, f)
	if err != nil {
		return nil, err
	}
	b.PriceBy(cpu.Roofline)
	return b, nil
}

// legality holds records against their fusions and the knobs of this program's code
// generators.
func legality() *tuner.Legality {
	return &tuner.Legality{Knobs: map[[2]string]tuner.KnobCheck{
		{"cpu", cpu.Revision}:                    cpu.CheckKnobs,
		{"gpu", gpu.Revision}:                    gpu.CheckKnobs,
		{"gpu", gpu.Revision + kernels.TF32Mark}: gpu.CheckKnobs,
	}}
}
