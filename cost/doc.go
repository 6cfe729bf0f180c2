// Package cost says what plans should cost, and how far to trust that.
//
// # Prices and models
//
// A backend prices a plan in named terms, in seconds (kernels.Pricer): the arithmetic
// of its tiles, the traffic of each level of memory, the overhead of each tile
// program, whatever its code spends time on. Package cost knows no backend and no
// knob. A Model is what measurements teach about these terms:
//
//	seconds = (Σ factor·term) · exp(correction)
//
// The factors scale the terms; where some of them overlap, the longest counts whole
// and the others by a share (kernels.PriceTerms). The correction is a Gaussian process over
// features of the price and the plan, for what the terms leave unexplained (residual.go).
// It has a variance, returns to the terms far from its samples, and is bounded. The zero Model is the prior: the price as the backend gives it.
//
//	Model.Rank     plans in the order of their predicted times, without allocations
//	               for each of them: a GEMM has thousands of plans
//	Model.Predict  one prediction, with the terms that add up to it
//	Model.Doubt    how far that may be off
//	FeaturesOf     the price of a plan in the form that is stored with measurements
//	Fit            a model from samples
//	Judge          how well predictions order what was measured
//	LowerBound     the time that no correct kernel can be faster than
//
// # Fitting
//
// What matters is the order of the plans of one fusion, so samples are compared within
// their groups; only a little weight is on the differences between groups, which tell
// what a term costs at all. The factors minimise the squared logarithm of measured over
// predicted time by Gauss and Newton's method, with Huber's weights, since timings have
// outliers, and with a penalty that keeps them near 1 where the samples say nothing.
// The covariance of the correction is the one with the most evidence. A few samples change little; samples of another revision of a backend, which have
// other terms, are left out.
//
// # Judging
//
// A ranking is judged by what it is used for: Kendall's τ of predicted against measured
// times, and the regret of the first one, three and eight plans, which is the best
// measured time among them over the best of all.
package cost
