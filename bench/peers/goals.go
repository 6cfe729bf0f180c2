package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A target is a number to reach by some families, as a geometric mean and in every
// case. It is about the speed over the fastest of some peers, or, without peers, about
// the share of the roof.
type target struct {
	what     string
	families []string
	peers    []string
	mean     float64
	least    float64 // 0: no case is too slow
	// Why it is missed, as far as it is known; it is printed where some processor misses it.
	cause string
}

// The peers by what they are.
var (
	libraries = []string{"openblas", "mkl", "onednn"}
	blas      = []string{"openblas", "mkl"}
	pytorch   = []string{"torch", "inductor"}
)

// targets are the goals of the backend that peers tell.
var targets = []target{
	{
		what: "sgemm over the best of OpenBLAS, MKL, oneDNN", families: []string{"sgemm"}, peers: libraries,
		mean: 1, least: 0.92, cause: "copies of operands take a few percent of large squares, while the kernel is near its peak; before go27 blocks of few terms read and wrote the result again, and before go28 rows that are read in place were not fetched ahead; before go30 kernels took 20 instructions for 12 multiply-adds on an Emerald Rapids, too many for half of a core while its other thread is busy, and fetched operands that its hardware fetches better; on a Zen 4 the left operand of a narrow product (64 columns) is read once from memory, by oneDNN a tenth faster (not found why)",
	},
	{
		what: "bf16 products over oneDNN", families: []string{"bf16gemm"}, peers: []string{"onednn"},
		mean: 0.9, cause: "each tile program packs its part of the right operand again (two threads pack all of it twice where tiles have a part of the rows); without AVX512_BF16 multiply-adds of f32; on AMX before go30 results waited for memory, since they were stored after every 16 steps and not fetched ahead",
	},
	{
		what: "int8 products over oneDNN", families: []string{"s8gemm"}, peers: []string{"onednn"},
		mean: 0.9, cause: "each tile program packs its part of the right operand again; pairs of 16 bits without VNNI; on AMX as bf16",
	},
	{
		what: "row fusions, share of the roof", mean: 0.95,
		families: []string{"layernorm", "rmsnorm", "gelu", "bias_gelu", "chain", "add"},
		cause:    "stores past the caches alone take most of the time of the copy, so that sweeps that do not store delay it; on two threads their rate changes from run to run, as the hypervisor places the cores (BenchmarkLanes); on an Emerald Rapids what has functions computes for as long as the copy takes (BenchmarkHot), and the two overlap in part only; on a Zen 4 times of one plan of an rmsnorm differ from round to round by more than those of the copy (not found why)",
	},
	{
		what: "softmax, share of the roof", families: []string{"softmax"}, mean: 0.9,
		cause: "the maximum and the quotients wait for memory while no exponentials are computed; on an Emerald Rapids the code from the caches takes 0.8 of the copy (BenchmarkHot), and the last pass stores a row at once, which the exponentials of the next one could hide if both were one loop; two threads as for rows",
	},
	{
		what: "row fusions over XLA:CPU", peers: []string{"xla"}, mean: 1.5,
		families: []string{"layernorm", "rmsnorm", "softmax", "gelu", "bias_gelu", "chain", "add"},
	},
	{
		what: "transposes, share of the copy", families: []string{"transpose", "swap"}, mean: 0.75,
		cause: "the work in registers and the first cache adds to the time of the memory; a row of the source that is read alone waits before the hardware fetches ahead in it (inferred)",
	},
	{
		what: "gemv, share of a read", mean: 0.97,
		families: []string{"gemv", "gemv_columns", "gevm", "gevm_rows"},
		cause:    "the other operand, or the sums, come from the second cache again for every four or eight rows",
	},
	{
		what: "convolutions over oneDNN", families: []string{"conv", "s8conv"}, peers: []string{"onednn"},
		mean: 1, cause: "weights are packed in the run, oneDNN's before it; 147 terms of a window of 7×7 are few for the stores of each block; before go27 windows were copied to a matrix; bytes are multiplied as 16 bits without VNNI; on AMX weights are still packed in the run, which is most of the time where rows are few",
	},
	{
		what: "attention over the unfused sequence of BLAS", families: []string{"attention"}, peers: blas,
		mean: 2, cause: "bound by multiply-adds, which a BLAS does as fast: on a Zen 4 products alone take three quarters of the time of 8×1024×64 at the peak of 118 Gflop/s that -bench Peaks shows",
	},
	{
		what: "attention over torch", families: []string{"attention"}, peers: pytorch, mean: 1,
	},
	{
		what: "attention of bf16 over torch", families: []string{"bf16attention"}, peers: pytorch, mean: 1,
		cause: "on AMX at go30 exponentials and their rounding took about half of the time, tiles a quarter, and packing a fifth, since rounded weights lay in scratch as f32; go31 rounds by an instruction and stores what tiles read, which was not measured there",
	},
	{
		what: "fusions of models over XLA:CPU", families: []string{"model"}, peers: []string{"xla"},
		mean: 1.3, least: 0.9, cause: "products of f32 that both do near the peak of the multiply-adds; stores of blocks of 32 terms (05) wait for lines of the result from memory",
	},
	{
		what: "fusions of models over torch.compile", families: []string{"model"}, peers: []string{"inductor"},
		mean: 1.2, least: 0.9, cause: "products of f32 that both do near the peak of the multiply-adds; weights of bf16 (10) are packed in the run, and of its 128 rows 20 take kernels of five",
	},
	{
		what: "over TVM MetaSchedule, tuned as long", peers: []string{"tvm"}, mean: 1.2,
	},
}

// A score is what a case has of a target.
type score struct {
	of    *caseResult
	ratio float64
}

// scores are those of the cases with some number of threads, the least first.
func (t target) scores(r *results, threads int) (all []score) {
	for _, c := range r.cases {
		if c.threads != threads || t.families != nil && !slices.Contains(t.families, c.family) {
			continue
		}
		if ratio, ok := t.score(c); ok {
			all = append(all, score{c, ratio})
		}
	}
	slices.SortStableFunc(all, func(x, y score) int { return cmp.Compare(x.ratio, y.ratio) })
	return all
}

// score is the share of the roof, or the speed over the fastest peer.
func (t target) score(c *caseResult) (float64, bool) {
	if t.peers == nil {
		share, ok := c.roof()
		return share.Median, ok
	}
	p, ok := c.over(c.fastest(t.peers))
	return p.Median, ok
}

// cell says how the cases with some number of threads stand.
func (t target) cell(r *results, threads int) (text string, met bool) {
	all := t.scores(r, threads)
	if len(all) == 0 {
		return "–", true
	}
	var ratios []float64
	for _, s := range all {
		ratios = append(ratios, s.ratio)
	}
	mean := geomean(ratios)
	met = mean >= t.mean && all[0].ratio >= t.least
	text = digits(mean)
	if len(all) > 1 {
		text += fmt.Sprintf(" of %d, least %s (%s)", len(all), digits(all[0].ratio), all[0].of)
	}
	return text, met
}

// goal is the goal in words.
func (t target) goal() string {
	if t.least == 0 {
		return fmt.Sprint(t.mean)
	}
	return fmt.Sprintf("%v, none under %v", t.mean, t.least)
}

// goals is the table of all targets on one processor.
func (r *results) goals() string {
	p := &page{}
	threads := r.threads()
	head := []string{"times as fast, or share of the roof", "goal"}
	for _, n := range threads {
		head = append(head, fmt.Sprintf("threads=%d", n))
	}
	p.columns(head...)
	for _, t := range targets {
		cells := []string{t.what, t.goal()}
		for _, n := range threads {
			text, met := t.cell(r, n)
			if !met {
				text += ": **missed**"
			}
			cells = append(cells, text)
		}
		p.row(cells...)
	}
	return p.String()
}

// fastest is the name of the peer whose median ratio to the tuned plan is the least, ""
// when none was measured.
func (c *caseResult) fastest(peers []string) (name string) {
	least := 0.0
	for _, p := range peers {
		if o, ok := c.over(p); ok && (name == "" || o.Median < least) {
			name, least = p, o.Median
		}
	}
	return name
}

// titles joins the titles of drivers.
func titles(names []string) string {
	var all []string
	for _, d := range drivers {
		if slices.Contains(names, d.name) {
			all = append(all, d.title)
		}
	}
	return strings.Join(all, ", ")
}
