package cpu

import (
	"cmp"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A deviceSpec is the part of a device's description that prices, offers and the
// blocking of dots depend on.
type deviceSpec struct {
	gemm.Caches // the share of a lane in each cache, bytes
	// Last is the bytes of the last cache, shared by all lanes, as far as they are
	// believed.
	last int64
	// Outputs of so many bytes are best written past the caches; 0: of half the last one. It
	// was measured of what moves and computes rows, not of dots.
	past int64
	// Vector is the bits of a vector.
	vector int64
	// Rows may have vectors of 64 bytes.
	wide bool
	// Vectors of f32 are rounded to bf16 by an instruction.
	rounds bool
	// Rows are fetched so many bytes ahead; 0 where it was not measured.
	fetch int64
	// The same beyond a row that is passed over several times; 0: as many.
	fetchPastRow int64
	// The same to the second cache beyond what is fetched to the first; 0: none.
	fetchSecond int64
	// The pass, of three, that fetches them, from 1; 0 where it was not measured.
	fetchPass int64
	// Rows of several arrays are read at so many places in turn; 0 where it was not measured.
	places int64
	// Stores of transposes past the caches are spread.
	spread bool
	// Rows of transposes past the caches are read together and fetched so many bytes ahead; 0:
	// one after another.
	bandFetch int64
	// Long rows that are copied past the caches are read at so many places in turn; 0: at one.
	copyPlaces int64
	// Rows that are only reduced are; 0 where it was not measured.
	sumPlaces int64
	// They are best read in vectors of so many bits; 0: of the most.
	sumBits int64
	// Results too small for a denormal number take the processor long.
	vanishes bool
	// What assembling code uses again, nil for memory of each lowering. It is one lowering's
	// at a time.
	memory *rowkernel.Memory
}

// defaultVectorBits is the width of vectors where the device does not list it.
const defaultVectorBits = 256

// deviceSpecOf reads the description of a device. Values that it does not list are
// those of typical x86 cores of the last ten years.
func deviceSpecOf(d kernels.Device) deviceSpec {
	c := deviceSpec{
		vector: cmp.Or(int64(d.VectorBits), defaultVectorBits),
	}
	var shares []int
	for _, l := range believed(d) {
		if l.Bytes == 0 {
			break
		}
		c.last = l.Bytes
		shares = append(
			shares, int(l.Bytes)/l.SharedBy(d.Lanes),
		)
	}
	for k, to := range []*int{&c.First, &c.Second, &c.Third} {
		if k < len(shares) {
			*to = shares[k]
		}
	}
	c.Caches = c.Caches.Filled()
	c.last = cmp.Or(c.last, int64(c.Second))
	return c
}

// pastFrom is the bytes from which on an output of a program, with products or without, is
// written past the caches where the plan does not say (stream).
func (c deviceSpec) pastFrom(dot bool) int64 {
	half := (c.last + 1) / 2
	if c.past == 0 || dot {
		return half
	}
	return min(c.past, half)
}

// mostScratch is the bytes of scratch of plans that are offered.
func (c deviceSpec) mostScratch() float64 { return float64(c.Third / 4) }

// hasDot reports whether a program has a product.
func hasDot(p *symtile.Program) bool {
	return slices.ContainsFunc(p.Ops, func(op symtile.Op) bool {
		return op.Code == hlo.OpDot || op.Code == hlo.OpScaledDot
	})
}

// What is believed of a cache that lanes share and nobody measured: 16 MiB a lane, and
// 32 MiB, the third caches of a core and of a group of cores of the last ten years. A
// hypervisor may list 480 MiB, of which 80 are kept.
const (
	believedShare = 16 << 20
	believedLeast = 32 << 20
)

// believed are the levels of a device, with the bytes of its last cache that were
// measured, or no more than a lane's share can be.
func believed(d kernels.Device) []kernels.Level {
	levels := slices.Clone(d.Levels)
	last := lastShared(levels)
	if last < 0 {
		return levels
	}
	l := &levels[last]
	most := believedShare * int64(l.SharedBy(d.Lanes))
	most = max(believedLeast, most)
	l.Bytes = cmp.Or(
		l.Kept, min(l.Bytes, most),
	)
	return levels
}

// lastShared is the last cache that lanes share; −1 where there is none.
func lastShared(levels []kernels.Level) int {
	last := -1
	for k, l := range levels {
		if l.Bytes > 0 && l.Shared {
			last = k
		}
	}
	return last
}

// A prior is what is believed of a core before anything is measured: its data sheet, or
// that of the typical core.
type prior struct {
	sheet sheet.Sheet
	known bool // it is the sheet of the processor, not the typical core
}

// Rates of a lane that this backend's code reaches on the typical core (sheets/typical.json),
// from the timings of the corpus (cost.TestCorpus -timings): flop/s of dots with vectors
// of 256 bits and bytes/s of copying in each level. On another core they are as many times
// higher as its sheet's numbers are.
const typicalFLOPS = 64e9

var typicalBandwidth = map[string]float64{
	"L1": 100e9, "L2": 60e9, "L3": 25e9,
	"memory": 8e9,
}

// priorHere is the prior of this machine.
func priorHere() prior {
	if s, known := sheet.Of(sheet.Here()); known {
		return prior{s, true}
	}
	return unknownPrior()
}

// unknownPrior is that of a processor whose family is not known.
func unknownPrior() prior { return prior{sheet: sheet.Typical()} }

// flops is the flop/s of a lane in dots with vectors of some bits.
func (p prior) flops(bits int64) float64 {
	t := sheet.Typical()
	share := p.sheet.Macs(int(bits)) * p.sheet.Hz() / (t.Macs(256) * t.Hz())
	return typicalFLOPS * share
}

// bandwidth is the bytes/s of a lane in each level of a device.
func (p prior) bandwidth(levels []kernels.Level) (all []float64) {
	for k, l := range levels {
		name := l.Name
		if l.Bytes == 0 && k == len(levels)-1 {
			name = "memory"
		}
		rate := typicalBandwidth[name]
		if rate == 0 { // a cache of another name
			rate = typicalBandwidth["L3"]
		}
		all = append(all, rate*p.share(name))
	}
	return all
}

// share is how many times faster a level is than the typical core's, which lists no third
// cache but has its rate.
func (p prior) share(level string) float64 {
	t := sheet.Typical()
	t.L3Bytes = believedShare
	rate := func(s *sheet.Sheet) float64 {
		for _, l := range s.Levels() {
			if l.Name == level {
				return l.Rate
			}
		}
		return 0
	}
	own, typical := rate(&p.sheet), rate(&t)
	if own == 0 || typical == 0 {
		return 1
	}
	return own / typical
}

// panel is the bytes of panels of dots that come from the second cache; 0: they stay in the
// first. A kernel reads two lines for six rows of multiply-adds of 512 bits, which take twelve
// cycles where a core has one such unit, and six, in which second caches give no more than
// that, where it has two.
func (p prior) panel(c deviceSpec) int {
	const oneUnit = 16 // multiply-adds of f32 a cycle
	if !p.known || c.vector < wide ||
		p.sheet.Macs(wide) > oneUnit {
		return 0
	}
	return c.Second / 8
}

// wide is the bits of the widest vectors.
const wide = 512

// pairedPanel is panel of kernels that multiply by two at once, where the sheet may say what
// was measured.
func (p prior) pairedPanel(c deviceSpec) int {
	if n := p.sheet.PanelBytes; n > 0 && c.vector >= wide {
		return int(n)
	}
	return p.panel(c)
}

// slowness is how many times longer a cycle is than one of the typical core.
func (p prior) slowness() float64 {
	t := sheet.Typical()
	return t.Hz() / p.sheet.Hz()
}

// Spreads of a prior: the share by which a rate may be higher; by the same factor it may
// be lower. What share of a published
// rate the code reaches differs by family, and what is borrowed differs as published rates
// do: a second-level cache gives 32 or 64 bytes a cycle. Both are conventions, not fits.
const (
	publishedSpread = 0.5
	borrowedSpread  = 2.0
)

// spread is the error bar of a rate.
func spread(borrowed bool) float64 {
	if borrowed {
		return borrowedSpread
	}
	return publishedSpread
}

// rates are the rates of all lanes of a device.
func (p prior) rates(d kernels.Device) (r kernels.Rates) {
	lanes := float64(max(1, d.Lanes))
	r.FLOPS = kernels.Rate{
		Value:  p.flops(deviceSpecOf(d).vector) * lanes,
		Spread: spread(!p.known || p.sheet.Borrowed("f32_macs_per_cycle")),
	}
	borrowed := map[string]bool{}
	for _, l := range p.sheet.Levels() {
		borrowed[l.Name] = l.Borrowed || !p.known
	}
	rates := p.bandwidth(d.Levels)
	for k, l := range d.Levels {
		own, there := borrowed[l.Name]
		r.Levels = append(r.Levels, kernels.Rate{
			Value: rates[k] * lanes, Spread: spread(own || !there),
		})
	}
	return r
}

// halfRates are how many times faster dots are by the knobs bf16 and f16 than multiply-adds of
// f32 where a sheet does not say: pairs as fast, which are half as fast on a Granite Rapids
// (213 GFLOP/s of f32 in vectors of 512 bits) and 1.8 times on a Zen 5, and tiles by what
// they do on a Granite Rapids, whose sheet has 3.1 TFLOP/s in registers, of f16 as of bf16.
var halfRates = [...]struct {
	isa   string
	times float64
	macs  float64 // by a sheet, for each of f32, with which they are that
	as    string  // the instructions whose macs of a sheet they have
}{
	{"", 1, 1, ""},
	{"avx512_bf16", 1, 1, "avx512_bf16"},
	{"amx_bf16", 14, 512.0 / 32, "amx_bf16"},
	{"amx_fp16", 14, 512.0 / 32, "amx_bf16"},
}

// half is how many times faster dots of bf16 or f16 are by a way than by multiply-adds.
func (p prior) half(how gemm.Halves, bits int64) float64 {
	w := halfRates[how]
	macs := p.sheet.BF16[w.as]
	if macs == 0 {
		return w.times
	}
	return w.times * macs / p.sheet.Macs(int(bits)) / w.macs
}

// bytes is how many times faster dots of bytes are than multiply-adds of f32: on AMX of a sheet
// as fast as those of bf16, by the time they take in caches, since tiles of twice the terms are
// loaded as often (1024 cubed in 2.14 and 1.90 ms, 512 cubed in 0.15 and 0.19, Emerald Rapids,
// -bench Tiles ./internal/gemm). The sheets of others do not say.
func (p prior) bytes(bits int64) float64 {
	const tiles = gemm.Tiles
	macs := p.sheet.S8["amx_int8"] / 2
	if macs == 0 {
		return 1
	}
	w := halfRates[tiles]
	return w.times * macs / p.sheet.Macs(int(bits)) / w.macs
}

// bounded are levels of memory with no more than a core can use by the sheet: a
// hypervisor may list the caches of all of a socket, or others.
func (p prior) bounded(levels []kernels.Level) []kernels.Level {
	most := map[string]int64{
		"L1": p.sheet.L1Bytes, "L2": p.sheet.L2Bytes, "L3": p.sheet.L3Bytes,
	}
	levels = slices.Clone(levels)
	for k := range levels {
		l := &levels[k]
		stacked := l.Name == "L3" && l.Bytes == p.sheet.L3Stacked
		if m := most[l.Name]; p.known && m > 0 && l.Bytes > m && !stacked {
			l.Bytes = m
		}
	}
	return levels
}
