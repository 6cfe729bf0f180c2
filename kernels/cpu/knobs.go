package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// knobs are the launch choices of this backend. Lowering reads them with
// lowering.knob, the price with Plan.Knob.
//
// rows and unroll are not offered, since no value but the default won by more than
// 2 % of any fusion of BenchmarkLandscape in its default tiling, one thread, best of
// 40 to 60 in turn (Zen 3). rows=0: softmax takes 391 µs rather than 198, layernorm
// 246 rather than 90, a chain 330 rather than 280, in bf16 561 rather than 308, the
// others the same or up to 5 % longer. unroll=1: the chain 406 rather than 362, in
// bf16 301 rather than 279, layernorm 127 rather than 124, softmax 196 rather than
// 199; 2, 3 and 4 the same within 1 %, but 4 to 7 % longer for the chain in s8. (A
// transpose took 793 rather than 840 with 2, which it does not read, and 793 without
// the next time.)
//
// width is not offered either: on one thread of a Zen 5, 512 bits take 0.5 to 1.0 of the time
// of 256 bits in every case of BenchmarkRows. Its values have the same results, to the bit.
var knobs = kernels.KnobTable[*facts]{
	{Name: "threads", Priced: true, Min: 1, Max: 1024, Absent: "one for each core", Offers: offerThreads},
	{Name: "group", Priced: true, Min: 1, Max: maxGroup, Default: 1, Absent: "one row of tiles: the last dimension fastest", Offers: offerGroups},
	{Name: "splitk", Priced: true, Min: 1, Max: 64, Default: 1, Absent: "1: a tile program does whole contractions and reductions", Offers: offerSplits},
	{Name: "pack", Min: 0, Max: 1, Absent: "operands of dots are read where they are, or packed in scratch, as their shapes suggest", Offers: offerPacks},
	{Name: "bf16", Priced: true, Min: 0, Max: 2, Absent: "0: dots of bf16 are multiply-adds of f32, the same bits on every processor; 1: pairs (AVX512_BF16), 2: tiles (AMX), where the processor has them", Offers: offerBF16},
	{Name: "f16", Priced: true, Min: 0, Max: 1, Absent: "0: dots of f16 are multiply-adds of f32, the same bits on every processor; 1: tiles (AMX-FP16), where the processor has them", Offers: offerF16},
	{Name: "online", Priced: true, Min: 0, Max: 1, Default: 1, Absent: "1: a maximum of rows and what is summed with it, or a mean and a variance, take one loop over their tiles, not one each"},
	{Name: "rows", Min: 0, Max: 1, Default: 1, Absent: "1: where machine code can, all of a row before the next, not all of a tile instruction by instruction"},
	{Name: "stream", Priced: true, Min: 0, Max: 1, Absent: "1 for arrays of at least half the last cache, or as many bytes as the sheet of the processor says: they are written past the caches", Offers: offerStreams},
	{Name: "ahead", Min: 0, Max: 1 << 16, Absent: "bytes fetched ahead: 1024, a row but at least 4096 where it takes several passes; what the sheet of the processor says, and a row more in several passes; 0 where no rows are written but columns from memory summed, 512 then, and where the sheet says at how many places several arrays are read", Offers: offerAhead},
	{Name: "prefetch", Min: 0, Max: 64, Absent: "ahead= says how far; else whole rows fetched ahead"},
	{Name: "strip", Min: 64, Max: 4096, Default: stripLength, Absent: "1024 elements computed at a time where a row is not one machine function", Offers: offerStrips},
	{Name: "width", Min: 256, Max: 512, Default: 512, Absent: "512: rows in vectors of 512 bits where the processor has AVX-512 and all their instructions such a form, else 256", Offers: offerWidths},
	{Name: "unroll", Min: 1, Max: 4, Absent: "vectors computed in turn: 4, 2 where a row takes three passes, or as many as registers hold"},
}

// CheckKnobs reports which knob of a plan this backend does not have, or which value is
// out of its range.
func CheckKnobs(plan kernels.Plan) error {
	if len(plan.Knobs) == 0 {
		return nil
	}
	return knobs.Check("CPU", plan)
}

// Facts are what the values of knobs that are worth a try depend on. The first are
// the same for every tiling of a program.
type facts struct {
	p       *symtile.Program
	spec    deviceSpec
	lanes   int64   // of a plan without threads=
	dot     bool    // there is one
	wide    bool    // row kernels may have vectors of 512 bits
	reads   float64 // bytes of the parameters
	writes  float64 // bytes of the outputs
	longest float64 // bytes of the largest of them
	math    bool    // an operation of arithmetic besides dots
	slow    int     // pointwise operations without machine code
	divided []int   // the ops that splitk= divides
	terms   int64   // of the contraction that it divides
	half    half    // of all dots
	halves  []int64 // the values of its knob that this processor has

	tiling  symtile.Tiling
	counts  *counts // of the tiling
	rows    int64   // tiles along the second last parallel dimension with several; 0 where fewer than two have
	steps   int64   // tiles along all sequential dimensions
	variant [1]kernels.Knob
}

// factsOf are the facts of a program.
func (x *pricer) facts() *facts {
	f := &facts{
		p:       x.p,
		spec:    x.spec,
		lanes:   int64(max(1, x.device.Lanes)),
		wide:    x.wide,
		divided: x.divided,
		terms:   1,
	}
	f.half = x.half
	if x.halves != nil && f.half != noHalf {
		f.halves = x.halves(f.half)
	}
	f.dot = hasDot(x.p)
	for _, op := range x.p.Ops {
		f.math = f.math || op.Code == hlo.OpReduce || op.Code.Elementwise()
		if op.Code.Elementwise() && isLoop(op.Instr) {
			f.slow++
		}
	}
	for _, s := range x.p.Physical.ParamShapes() {
		f.reads += float64(s.Bytes())
	}
	for _, s := range kernels.OutputShapes(x.p.Physical) {
		bytes := float64(s.Bytes())
		f.writes += bytes
		f.longest = max(f.longest, bytes)
	}
	if x.divided != nil {
		i := x.p.Ops[x.divided[0]].Instr
		for _, d := range i.Attrs.LHSContract {
			f.terms *= i.Operands[0].Shape.Dims[d]
		}
	}
	return f
}

// set takes over a tiling that was counted.
func (f *facts) set(t symtile.Tiling, c *counter) {
	f.tiling = t
	f.counts = &c.counts
	f.rows, f.steps = 0, 1
	last := int64(0)
	for k := range f.p.Space.Dims {
		trips := int64(c.extents.Trips(k))
		switch {
		case f.p.Space.Dims[k].Kind != symtile.Parallel:
			f.steps *= trips
		case trips > 1:
			f.rows, last = last, trips
		}
	}
}

// Values of knobs that are offered.
var (
	singleThread = []int64{1}
	bothPacks    = []int64{0, 1}
	splitParts   = []int64{2, 4, 8}
	pastCaches   = []int64{1}
	throughCache = []int64{0}
	fetchedBytes = []int64{0, 2 << 10, 6 << 10}
	longStrip    = []int64{2048}
	narrowRows   = []int64{256}
)

// beyondSecond is how many times the second cache an array takes that surely leaves it.
const beyondSecond = 2

// longWork is element operations that no thread does alone in the time that waking the
// others takes.
const longWork = 1 << 24

// offerThreads offers one where waking the others may cost more than they do.
func offerThreads(f *facts) []int64 {
	if f.lanes > 1 &&
		f.counts.programs > 1 &&
		f.counts.work < longWork {
		return singleThread
	}
	return nil
}

// maxGroup bounds the rows of tiles of a group.
const maxGroup = 1 << 20

// offerGroups offers orders for rows and columns of tiles: of dots a few group sizes,
// since programs of one row share an operand and those of one column the other; of
// anything else the columns' order, which is the sequence in memory of what is
// transposed. Where all fits the last cache the order is all the same.
func offerGroups(f *facts) []int64 {
	if f.rows == 0 ||
		f.reads+f.writes < float64(f.spec.last)/8 {
		return nil
	}
	var groups []int64
	for _, g := range []int64{2, 4, 8, f.rows} {
		if g == f.rows || f.dot && g < f.rows {
			groups = append(groups, g)
		}
	}
	return slices.DeleteFunc(slices.Compact(groups), func(g int64) bool { return g > maxGroup })
}

// offerPacks offers both for dots that take long enough for it to matter.
func offerPacks(f *facts) []int64 {
	if !f.dot || f.counts.products < longWork/4 {
		return nil
	}
	return bothPacks
}

// offerBF16 and offerF16 offer what the processor has for dots that take long enough.
func offerBF16(f *facts) []int64 {
	return f.waysOf(bfloat)
}

func offerF16(f *facts) []int64 {
	return f.waysOf(half16)
}

// waysOf are the values of the knob of a half.
func (f *facts) waysOf(h half) []int64 {
	short := f.counts.products < longWork/16
	if short || f.half != h {
		return nil
	}
	return f.halves
}

// longContraction is terms of a dot from which on a part of them is work enough;
// longReduction elements of a reduction.
const (
	longContraction = 1024
	longReduction   = 1 << 16
)

// offerSplits offers parts of long contractions, and of long reductions in several
// steps, where there are few tile programs.
func offerSplits(f *facts) []int64 {
	if f.divided == nil || f.lanes < 2 ||
		f.counts.programs > 2*float64(f.lanes) {
		return nil
	}
	if isDot(f.p.Ops[f.divided[0]]) {
		// Each part has a result in scratch.
		scratch := f.counts.scratch + f.counts.results
		if f.terms < longContraction || scratch > f.spec.mostScratch() {
			return nil
		}
		return splitParts
	}
	n := 0
	for n < len(splitParts) &&
		splitParts[n] <= min(f.steps, int64(f.counts.work)/longReduction) {
		n++
	}
	return splitParts[:n]
}

// shortTerms is the terms of a dot up to which writing its result takes a tenth of its time
// and more: a gradient of 2048 by 512 of 32 terms takes 0.76 of it past the caches of a Zen 4.
const (
	shortTerms = 128
	bytesOfF32 = 4
)

// offerStreams offers what the default is not, where the outputs together are larger than the
// second cache of two lanes keeps. What is listed of the last cache has no part in it, since a
// hypervisor may list any. Of dots only short ones are worth it: their results are written past
// the caches by the kernels of package gemm themselves, where a tile has all terms and the rows
// of the result begin with lines (gemm.Product.Past); with other tiles the knob does nothing.
func offerStreams(f *facts) []int64 {
	inside := beyondSecond * float64(f.spec.Second)
	past := f.longest >= float64(f.spec.pastFrom(f.dot))
	switch {
	case f.writes <= inside && !past ||
		f.dot && f.counts.products > shortTerms*f.writes/bytesOfF32:
		return nil
	case past:
		return throughCache
	}
	return pastCaches
}

// offerAhead offers other distances where parameters come from memory.
func offerAhead(f *facts) []int64 {
	if f.dot ||
		f.reads <= beyondSecond*float64(f.spec.Second) ||
		!f.math {
		return nil
	}
	return fetchedBytes
}

// offerWidths offers the narrower vectors to rows that compute: some processors take two
// cycles for a wide one, or lower the clock.
func offerWidths(f *facts) []int64 {
	if !f.wide || f.dot || !f.math {
		return nil
	}
	return narrowRows
}

// offerStrips offers longer strips where loops in Go do several pointwise operations on
// tiles that the first cache does not hold; that measures up to a twentieth faster, and
// shorter ones slower.
func offerStrips(f *facts) []int64 {
	const few = 3                     // operations
	held := float64(f.spec.First / 4) // elements
	if f.slow < few ||
		f.counts.elements < held*float64(len(f.p.Ops)) {
		return nil
	}
	return longStrip
}

// variants are the plans of the tiling: every combination of the values its knobs offer
// and of their absence. The first has no knobs, then come those of one knob, of two and
// so on, so that a part of them is the simplest.
func (f *facts) variants() []kernels.Plan {
	plans := []kernels.Plan{{Tiles: f.tiling}}
	for _, row := range knobs {
		if row.Offers == nil {
			continue
		}
		values := row.Offers(f)
		for _, plan := range plans[:len(plans):len(plans)] {
			for _, v := range values {
				plans = append(plans, plan.With(row.Name, v))
			}
		}
	}
	slices.SortStableFunc(plans, func(x, y kernels.Plan) int {
		return len(x.Knobs) - len(y.Knobs)
	})
	return plans
}

// note keeps the values that knobs offer to the tiling, and returns the number of its
// variants. All rows of tiles in a group are the value maxGroup.
func (f *facts) note(offered map[kernels.Knob]bool) (variants int64) {
	variants = 1
	for _, row := range knobs {
		if row.Offers == nil {
			continue
		}
		values := row.Offers(f)
		variants *= int64(1 + len(values))
		for _, v := range values {
			if row.Name == "group" && v == f.rows {
				v = maxGroup
			}
			if k := (kernels.Knob{Name: row.Name, Value: v}); !offered[k] {
				offered[k] = true
			}
		}
	}
	return variants
}
