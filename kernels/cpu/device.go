package cpu

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rates"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/symtile"
)

// The description of this machine has two parts. Its identity is what the operating
// system and the processor list: caches, cores and vectors. It costs nothing, and prices
// and the offers of knobs depend on nothing else, so that they are the same in every
// process. The rates are measured (package rates) or told; the lower bound of the time of a
// kernel and the roof in its record need them.

// lanes is the number of workers of a plan without the knob threads=.
func lanes() int { return runtime.GOMAXPROCS(0) }

// identify reads the caches and vectors that the system lists.
func identify() kernels.Device {
	n := lanes()
	bits, registers := gemm.Vectors()
	info, levels := readCPUInfo(), cacheLevels()
	prior := priorHere()
	return kernels.Device{
		Name:     "cpu:" + deviceName(info, bits, levels, n),
		Backend:  "cpu",
		Revision: Revision,
		Safe: map[string]string{
			"go":        runtime.Version(),
			"os":        runtime.GOOS + "/" + runtime.GOARCH,
			"processor": cmp.Or(info["model name"], runtime.GOARCH),
		},
		Lanes:  n,
		Levels: prior.bounded(levels), // its name has what is listed

		VectorBits: bits, VectorRegisters: registers,
	}
}

const (
	quickSpan = 500 * time.Millisecond // of Device, where nobody said what the rates are

	// Bytes that all lanes move at most in Device, and in a longer Calibrate, where memory
	// is measured beyond the last cache.
	quickBytes    = 24 << 20
	thoroughBytes = 256 << 20
)

// measureDevice is this machine with rates that are measured quickly.
func measureDevice() kernels.Device {
	d := identify()
	r, _ := rates.Measure(context.Background(), d, settings(d, quickSpan)) // nothing ends its context
	d, _ = rated(d, r)                                                     // it has as many levels
	return d
}

// rated is a device with its rates, and that of the products of its fastest type.
func rated(d kernels.Device, r kernels.Rates) (kernels.Device, error) {
	d, err := r.Apply(d)
	d.Matrix = d.FLOPS * gemm.FastestTerms()
	return d, err
}

// Calibrate measures the rates of this machine for a time, at least one round.
func (b *Backend) Calibrate(ctx context.Context, span time.Duration) (kernels.Rates, error) {
	d := b.Identity()
	return rates.Measure(ctx, d, settings(d, span))
}

// settings are those of measuring a device for a time.
func settings(d kernels.Device, span time.Duration) rates.Settings {
	s := rates.Settings{
		Span:    span,
		Limit:   quickBytes,
		Last:    lastShared(d.Levels),
		Typical: priorHere().rates(d),
	}
	if span > quickSpan {
		s.Limit = thoroughBytes
	}
	return s
}

// SetRates says what the rates of this machine are, so that Device measures nothing.
func (b *Backend) SetRates(r kernels.Rates) error {
	d, err := rated(b.Identity(), r)
	if err == nil {
		b.device = func() kernels.Device { return d }
	}
	return err
}

// TypicalRates are the rates that prices are made of: those of the data sheet of the
// processor's family, or of the typical core, with the share by which they may be off.
func (b *Backend) TypicalRates() kernels.Rates { return b.prior.rates(b.Identity()) }

// Quiet is the share of its own rate that the slowest lane keeps while all lanes spin, for
// about a millisecond: what of the machine is there for a kernel on all lanes.
func (b *Backend) Quiet() float64 { return b.probe.Share(b.Identity().Lanes) }

// handoverSeconds is Handover. A number takes 0.12 µs from one core to another and back
// where both have one last cache, and 0.4 µs where they have two (BenchmarkLanes of package
// rates; Zen 4), and a run hands over some six. A hypervisor moves the cores of a virtual
// machine from the one to the other and back within minutes.
const handoverSeconds = 1e-6

// Handover is what a run on several lanes takes longer where their cores are far from each
// other.
func (b *Backend) Handover() float64 { return handoverSeconds }

// Disturbance is what Linux has counted of other work on the processors.
func (b *Backend) Disturbance() kernels.Disturbance { return rates.Disturbance() }

// deviceName is the part of the key of winners that says what processor they were
// measured on: vendor, family, model and stepping, the widest vectors, the caches and
// the lanes, "AuthenticAMD-25-17-1 avx2 32K+512K+16M 2c". What a hypervisor calls the
// processor is not part of it: two different ones can have one such name. Elsewhere
// than on Linux on amd64 the architecture stands for the first word.
func deviceName(info cpuInfo, vectorBits int, levels []kernels.Level, lanes int) string {
	name := info.join(
		"vendor_id",
		"cpu family",
		"model",
		"stepping",
	)
	if name == "" {
		name = runtime.GOARCH + info.join(
			"",
			"CPU implementer",
			"CPU part",
			"CPU variant",
			"CPU revision",
		)
	}
	var caches []string
	inner := levels[:len(levels)-1]
	for _, l := range inner {
		caches = append(caches, sizeName(l.Bytes))
	}
	return fmt.Sprintf(
		"%s v%d %s %dc",
		name,
		vectorBits,
		strings.Join(caches, "+"),
		lanes,
	)
}

// join is the values of some names with dashes between them; it is empty where Linux
// says none of them.
func (info cpuInfo) join(names ...string) string {
	var values []string
	for _, name := range names {
		values = append(values, info[name])
	}
	text := strings.Join(values, "-")
	if strings.Trim(text, "-") == "" {
		return ""
	}
	return text
}

// sizeName is a size in KiB, or in MiB where it is a whole number of them.
func sizeName(bytes int64) string {
	const mega = 1 << 20
	if bytes >= mega && bytes%mega == 0 {
		return fmt.Sprintf("%dM", bytes/mega)
	}
	return fmt.Sprintf("%dK", bytes>>10)
}

// cpuInfo is what Linux says of the first processor, by name.
type cpuInfo map[string]string

// readCPUInfo reads the lines up to the first blank one; it is empty elsewhere.
func readCPUInfo() cpuInfo {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	return parseCPUInfo(string(text))
}

// parseCPUInfo reads the description of the first processor.
func parseCPUInfo(text string) cpuInfo {
	info := cpuInfo{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok && len(info) > 0 {
			break
		}
		name = strings.TrimSpace(name)
		info[name] = strings.TrimSpace(value)
	}
	return info
}

// cacheLevels reads the data caches Linux lists, innermost first, then memory.
// Elsewhere: 32 KiB and 512 KiB a core, typical of the last ten years.
func cacheLevels() []kernels.Level {
	var levels []kernels.Level
	dirs, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*")
	slices.Sort(dirs)
	for _, dir := range dirs {
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			return strings.TrimSpace(string(text))
		}
		kib, err := strconv.ParseInt(
			strings.TrimSuffix(read("size"), "K"), 10, 64,
		)
		if kind := read("type"); err != nil || kind == "Instruction" {
			continue
		}
		level := kernels.Level{
			Name:  "L" + read("level"),
			Bytes: kib << 10,
		}
		n := lengthOf(read("shared_cpu_list"))
		if n > 1 && level.Name != "L1" {
			level.Shared, level.Lanes = true, n
		}
		levels = append(levels, level)
	}
	if levels == nil {
		levels = []kernels.Level{
			{Name: "L1", Bytes: 32 << 10},
			{Name: "L2", Bytes: 512 << 10},
		}
	}
	return append(levels, kernels.Level{Name: "memory", Shared: true})
}

// lengthOf is how many CPUs a list of Linux has: 0-3,8 are five.
func lengthOf(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		if !isRange {
			high = low
		}
		to, err2 := strconv.Atoi(high)
		if err != nil || err2 != nil || to < from {
			return 0
		}
		n += to - from + 1
	}
	return n
}

// Priced is the processor of a data sheet, which need not be this one: its plans are
// chosen and priced as there, nothing is measured, and nothing runs.
type Priced struct{ backend *Backend }

// NewPriced is the processor of a sheet.
func NewPriced(s sheet.Sheet) *Priced {
	p := prior{s, true}
	d := deviceOf(s)
	b := &Backend{
		prior:    p,
		identity: func() kernels.Device { return d },
		halves: func(h half) []int64 {
			return halvesOf(s, h)
		},
		wide: s.Has("avx512f") && s.Has("avx512dq") && s.Has("avx512bw"),
	}
	b.device = func() kernels.Device {
		rated, _ := p.rates(d).Apply(d) // as many rates as levels
		return rated
	}
	return &Priced{b}
}

// Sheet is the sheet of the processor.
func (p *Priced) Sheet() sheet.Sheet { return p.backend.prior.sheet }

// Identity is the processor with its caches.
func (p *Priced) Identity() kernels.Device { return p.backend.Identity() }

// Device is Identity with the rates of the sheet.
func (p *Priced) Device() kernels.Device { return p.backend.Device() }

// Plans yields the plans that are worth a try there, the first by price first.
func (p *Priced) Plans(ctx context.Context, q *symtile.Program) iter.Seq[kernels.Plan] {
	return p.backend.Plans(ctx, q)
}

// Offer is what Plans yields, with what is known of the other plans.
func (p *Priced) Offer(ctx context.Context, q *symtile.Program) (kernels.Offer, error) {
	return p.backend.Offer(ctx, q)
}

// Default is the first plan by price.
func (p *Priced) Default(ctx context.Context, q *symtile.Program) (kernels.Plan, error) {
	return p.backend.Default(ctx, q)
}

// Pricer prices the plans of a program there.
func (p *Priced) Pricer(q *symtile.Program) (kernels.Pricer, error) {
	return p.backend.Pricer(q)
}

// Compile is always an error: there is no such processor here.
func (p *Priced) Compile(
	_ context.Context, _ *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	return nil, &kernels.Rejected{
		Plan:   plan,
		Reason: p.Sheet().Name + " is a data sheet, whose plans are priced only",
	}
}

// deviceOf is the description of a sheet's processor.
func deviceOf(s sheet.Sheet) kernels.Device {
	d := kernels.Device{
		Name:       s.Device,
		Backend:    "cpu",
		Revision:   Revision,
		Lanes:      max(1, s.Cores),
		VectorBits: s.VectorBits(),
		Safe:       map[string]string{"processor": s.Name},
	}
	for _, l := range s.Levels() {
		level := kernels.Level{Name: l.Name, Bytes: l.Bytes}
		if l.Name == "L3" && l.Cores != 1 || l.Cores > 1 || l.Bytes == 0 {
			level.Shared = true
			level.Lanes = l.Cores
		}
		d.Levels = append(d.Levels, level)
	}
	if d.Name == "" {
		name := strings.ReplaceAll(s.Name, " ", "-")
		d.Name = fmt.Sprintf("cpu:sheet-%s v%d %dc", name, d.VectorBits, d.Lanes)
	}
	return d
}

// halvesOf are the values of the knob of a half that the cores of a sheet have.
func halvesOf(s sheet.Sheet, h half) []int64 {
	return h.ways(func(how gemm.Halves) bool {
		isa := halfRates[how].isa
		return s.Has(isa)
	})
}

// SheetHere is the sheet of this machine: that of its family, or else what the processor
// and the system list, with the name under which its winners are stored.
func SheetHere() sheet.Sheet {
	p := priorHere()
	return sheetOf(p, sheet.Here(), New().Identity())
}

// asListed is the source of numbers that the processor and the system list.
const asListed = "listed by the processor or the system"

// sheetOf is the sheet of a device whose processor has a prior.
func sheetOf(p prior, is sheet.Processor, d kernels.Device) sheet.Sheet {
	s := p.sheet
	s.Aliases, s.Steppings, s.Brands = nil, nil, nil
	s.Sources = maps.Clone(s.Sources)
	if !p.known {
		s.Name = "this processor"
	}
	s.Device = d.Name
	s.Cores = d.Lanes
	s.Sources["cores"] = asListed
	if is.Vendor != "" {
		s.Vendor, s.Family, s.Models = is.Vendor, is.Family, []int{is.Model}
		for _, field := range []string{"family", "models", "steppings"} {
			s.Sources[field] = asListed
		}
		if runtime.GOARCH == "amd64" {
			s.Steppings = []int{is.Stepping}
		}
	}
	setCaches(&s, d)
	s.ISA = isaHere(s.ISA)
	s.F32 = usable(p.sheet, d.VectorBits)
	return s
}

// setCaches replaces the caches of a sheet by those of a device.
func setCaches(s *sheet.Sheet, d kernels.Device) {
	s.L2Bytes, s.L3Bytes, s.L2Cores, s.L3Cores = 0, 0, 0, 0
	var one int
	to := map[string]struct {
		bytes        *int64
		cores        *int
		field, among string
	}{
		"L1": {&s.L1Bytes, &one, "l1d_bytes", ""},
		"L2": {&s.L2Bytes, &s.L2Cores, "l2_bytes", "l2_cores"},
		"L3": {&s.L3Bytes, &s.L3Cores, "l3_bytes", "l3_cores"},
	}
	for _, l := range d.Levels {
		cache, known := to[l.Name]
		if !known {
			continue
		}
		*cache.bytes = l.Bytes
		s.Sources[cache.field] = asListed
		*cache.cores = 1
		if l.Shared {
			*cache.cores = l.Lanes // 0 is all
		}
		if cache.among != "" {
			s.Sources[cache.among] = asListed
		}
	}
}

// usable are the rates of a sheet for vectors of at most some bits, and of these; none
// where no vectors are used.
func usable(s sheet.Sheet, bits int) map[string]float64 {
	rates := map[string]float64{}
	for b := 128; b <= bits; b *= 2 {
		rates[strconv.Itoa(b)] = s.Macs(b)
	}
	return rates
}

// IsHere reports whether a sheet is of this machine, or of its processor's family where
// it names no machine.
func IsHere(s sheet.Sheet) bool {
	if s.Device != "" {
		return s.Device == identify().Name
	}
	return s.Describes(sheet.Here())
}

// SetSheet makes a sheet the prior of this machine, instead of that of its family.
func (b *Backend) SetSheet(s sheet.Sheet) { b.prior = prior{s, true} }

// Prior is the sheet that prices are made of, and whether it is one of the processor's
// family and not of the typical core.
func (b *Backend) Prior() (s sheet.Sheet, known bool) { return b.prior.sheet, b.prior.known }

// SheetJSON implements [kernels.SheetBackend]: it is the sheet of Prior.
func (b *Backend) SheetJSON() json.RawMessage {
	s := b.prior.sheet
	s.Sources = nil
	text, err := json.Marshal(s)
	if err != nil {
		return nil // numbers of a sheet are finite
	}
	return text
}

// isaHere drops instruction sets of a sheet that this machine does not let be used.
func isaHere(isa []string) []string {
	drop := func(name string) bool {
		switch name {
		case "avx512_bf16":
			return !gemm.HasHalves(gemm.Pairs)
		case "amx_bf16", "amx_tile", "amx_int8":
			return !gemm.HasHalves(gemm.Tiles)
		case "amx_fp16":
			return !gemm.HasHalves(gemm.F16Tiles)
		}
		return strings.HasPrefix(name, "avx512") && widest() < 512
	}
	return slices.DeleteFunc(slices.Clone(isa), drop)
}

// widest are the bits of the widest vectors of this machine.
func widest() int {
	bits, _ := gemm.Vectors()
	return bits
}
