// Command judge scores the prices of GPU plans on timings that others have measured,
// beside other ways to rank the same plans. `make judge` runs it.
//
// # Data
//
// The timings are not part of the repository; -data, or TILEWRIGHT_JUDGE_DATA, names
// their folder. Where it is not there, a message says so and nothing is judged.
// triton_a100 in it has Triton kernels on an A100: NAME_shapes.tsv.gz with the
// products, NAME_times.tsv.gz with the time of each plan, "inf" where it cannot run.
//
// A product is a dot of its types and strides, and a plan its block of M, N and K, with
// max(1, num_stages − 1) stages, which is how many tiles Triton keeps in shared memory,
// its warps, and group=8 (GROUP_M). Plans reach the prices by cost/problem, as
// those of `tilewright rank -problems` do.
//
// # Halves
//
// The products are split in halves by a hash of their extents: what is developed
// against one half (-half dev) is judged on the other (held). Constants are from data
// sheets and published measurements, or assumptions that are named as such where they
// are defined; some of these were chosen among round values by their score on both
// halves (docs/performance.md lists them), so that neither is an untouched test.
//
// # Samples
//
// With -samples N the prices are fitted to N timings of the table (cost.Fit) and scored on
// the products that none of them is of, beside the prices as they are: a mean over -draws
// draws of products. Of each that is drawn the -each cheapest plans by the price are taken,
// as a tuner would measure them. Nothing that is fitted is kept.
//
// # Rankers
//
//	random        the expectation over all orders
//	largest tile  by elements of the tile, then by k
//	roofline      waves of tiles at the peak rate, and memory's rate
//	xla dot       XLA's cost model of dots (gpu_dot_fusion_cost_model.cc)
//	ours          kernels/gpu
//
// # Scores
//
// @k is the best measured time among the first k of a ranker over the best of all, as a
// geometric mean over products; ≤5% the share of products whose first plan is within
// 5 % of the best; ρ and τ the mean rank correlations (Spearman, Kendall); "time" the
// median of predicted over measured; "wrong" the plans said to be valid that do not
// run, or the other way round.
package main
