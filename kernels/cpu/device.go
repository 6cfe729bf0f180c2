package cpu

import (
	"cmp"
	"context"
	"fmt"
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
		Levels: levels,

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
		Typical: typicalRates(d),
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

// TypicalRates are the rates that prices are made of.
func (b *Backend) TypicalRates() kernels.Rates { return typicalRates(b.Identity()) }

// typicalRates are those of price.go, of all lanes.
func typicalRates(d kernels.Device) (r kernels.Rates) {
	lanes := float64(max(1, d.Lanes))
	r.FLOPS.Value = 4 * coreClock * float64(deviceSpecOf(d).vector) / 32 * lanes
	for k, l := range d.Levels {
		rate := memoryRate
		if k < len(d.Levels)-1 || l.Bytes > 0 {
			rate = cacheRates[min(k, len(cacheRates)-1)]
		}
		r.Levels = append(r.Levels, kernels.Rate{Value: rate * lanes})
	}
	return r
}

// Quiet is the share of its own rate that the slowest lane keeps while all lanes spin, for
// about a millisecond: what of the machine is there for a kernel on all lanes.
func (b *Backend) Quiet() float64 { return b.probe.Share(b.Identity().Lanes) }

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
