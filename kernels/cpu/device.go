package cpu

import (
	"cmp"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
)

// The description of this machine has two parts. Its identity is what the operating
// system and the processor list: caches, cores and vectors. It costs nothing, and prices
// and the offers of knobs depend on nothing else, so that they are the same in every
// process. The rates are measured; the lower bound of the time of a kernel needs them.

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

// measureDevice adds rates to the identity: those of the dot kernel on operands in the
// first cache, and of copying between arrays of half a cache. Each is the best of
// three short loops on all lanes at once, which takes a fraction of a second in all.
func measureDevice() kernels.Device {
	d := identify()
	n := d.Lanes
	d.FLOPS = onAllLanes(n, flopsOf)
	if k := lastShared(d.Levels); k >= 0 {
		d.Levels[k].Kept = keptBytes(d.Levels[k].Bytes, n)
	}
	for k, l := range d.Levels {
		span := cmp.Or(l.Kept, l.Bytes) / 2 / int64(l.SharedBy(n))
		if l.Bytes == 0 && k > 0 {
			inside := d.Levels[k-1]
			span = 4 * cmp.Or(inside.Kept, inside.Bytes) / int64(n) // what all copy is in no cache
		}
		span = min(span, maxMeasured/int64(n))
		d.Levels[k].Bandwidth = onAllLanes(n, func(int) float64 {
			return bandwidthOf(span)
		})
	}
	return d
}

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

// onAllLanes is the sum of the rates of n goroutines that measure at once, in the best of
// three rounds. A round in which something else ran on one of the lanes is lower.
func onAllLanes(n int, measure func(lane int) float64) float64 {
	best := 0.0
	for range 3 {
		rates := make([]float64, n)
		var wait sync.WaitGroup
		for k := range rates {
			wait.Go(func() { rates[k] = measure(k) })
		}
		wait.Wait()
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		best = max(best, sum)
	}
	return best
}

const (
	// Calibration is the time of each measurement.
	calibration = 4 * time.Millisecond
	// MaxMeasured bounds the bytes that all goroutines copy to measure a rate; garbage
	// of the rounds before may be as much again. Where the last cache is larger, the rate
	// of memory is that of this cache: a higher one, which lower bounds may be made of.
	maxMeasured = 24 << 20
)

// flopsOf is the rate of the dot kernel on tiles in the first cache, flop/s.
func flopsOf(int) float64 {
	const m = 32
	x := make([]float32, m*m)
	y := make([]float32, m*m)
	z := make([]float32, m*m)
	panel := make(
		[]float32, gemm.Scratch[float32](m, m, m),
	)
	return rate(2*m*m*m, func() {
		gemm.Multiply(
			gemm.Dense(z, m),
			gemm.Dense(x, m),
			gemm.Dense(y, m), m, m,
			m, panel,
		)
	})
}

// bandwidthOf is the rate of copying within span bytes, in bytes/s that are read and
// written.
func bandwidthOf(span int64) float64 {
	n := max(span/8, 256)
	x := make([]float32, n)
	y := make([]float32, n)
	for k := range x {
		x[k] = 1 // memory that was never written is one page of zeros, in the first cache
	}
	return rate(float64(8*n), func() { copy(y, x) })
}

// rate is the work per second of a function that does so much of it in each call.
func rate(work float64, f func()) float64 {
	f()
	begin, n := time.Now(), 0
	for time.Since(begin) < calibration || n == 0 {
		f()
		n++
	}
	return work * float64(n) / time.Since(begin).Seconds()
}

// How much of the last cache is there is measured by two copies of the same arrays: by
// ordinary stores, for which lines are read before they are written, and past the
// caches. Within a cache the first is as fast or faster, beyond it moves half as much
// again: 14 rather than 25 GB/s on a Xeon whose hypervisor lists 480 MiB, from 80 MiB
// of arrays on.

const (
	// largestKept bounds the bytes of arrays that are tried.
	largestKept = 128 << 20
	// smallestKept is where the search ends: that much any cache has.
	smallestKept = 2 << 20
	// keptShare is the share of the streaming rate below which arrays have left the
	// cache.
	keptShare = 0.75
)

// keptBytes is the most bytes of arrays, all lanes' together, that stay in the last
// cache while they are copied; 0 where no machine code copies. The sizes are powers of
// two and one and a half times these, from what is listed downwards.
func keptBytes(listed int64, lanes int) int64 {
	if !vector.LoadedCopyRoutines().Ok {
		return 0
	}
	arrays := make([][]float32, lanes)
	for k := range arrays {
		arrays[k] = make([]float32, largestSize(listed)/4/int64(lanes))
		for i := range arrays[k] {
			arrays[k][i] = 1
		}
	}
	return largestCached(largestSize(listed), func(size int64) float64 {
		rates := [2]float64{}
		for past := range rates {
			rates[past] = onAllLanes(lanes, func(lane int) float64 {
				return copyRate(arrays[lane], size/int64(lanes), past == 1)
			})
		}
		return rates[0] / rates[1]
	})
}

// largestSize is the size that is tried first.
func largestSize(listed int64) int64 {
	power := int64(1) << (bits.Len64(uint64(max(1, listed))) - 1)
	return max(smallestKept, min(power, largestKept))
}

// largestCached is the first of the sizes from a power of two downwards at which the
// ratio of the rates of copying is at least keptShare.
func largestCached(size int64, ratio func(size int64) float64) int64 {
	for ; size > smallestKept; size /= 2 {
		for _, x := range [...]int64{size, size / 4 * 3} {
			if ratio(x) >= keptShare {
				return x
			}
		}
	}
	return smallestKept
}

// copyRate is the rate of copying one half of some bytes of an array to the other, in
// bytes/s that are read and written.
func copyRate(array []float32, bytes int64, past bool) float64 {
	const row = 1 << 10 // longer rows of ordinary stores are left to the Go runtime
	half := bytes / 2 / row * row
	base := unsafe.Pointer(unsafe.SliceData(array))
	var args vector.CopyArgs
	return rate(2*float64(half), func() {
		args.CopyRows(vector.CopyArgs{
			N: half / row, Bytes: row, Ahead: row,
			From: base, FromStep: row,
			To: unsafe.Add(base, half), ToStep: row,
		}, past)
	})
}
