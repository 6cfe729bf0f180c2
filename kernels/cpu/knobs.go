package cpu

import "github.com/tilewright/tilewright/kernels"

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
	{Name: "online", Priced: true, Min: 0, Max: 1, Default: 1, Absent: "1: a maximum of rows and what is summed with it, or a mean and a variance, take one loop over their tiles, not one each"},
	{Name: "rows", Min: 0, Max: 1, Default: 1, Absent: "1: where machine code can, all of a row before the next, not all of a tile instruction by instruction"},
	{Name: "stream", Priced: true, Min: 0, Max: 1, Absent: "1 for arrays of at least half the last cache: they are written past the caches", Offers: offerStreams},
	{Name: "ahead", Min: 0, Max: 1 << 16, Absent: "bytes fetched ahead: 1024, a row but at least 4096 where it takes several passes; what the sheet of the processor says, and a row more in several passes; 0 where no rows are written", Offers: offerAhead},
	{Name: "prefetch", Min: 0, Max: 64, Absent: "ahead= says how far; else whole rows fetched ahead"},
	{Name: "strip", Min: 64, Max: 4096, Default: stripLength, Absent: "512 elements computed at a time where a row is not one machine function", Offers: offerStrips},
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
