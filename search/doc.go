// Package search finds the fastest point of a finite space in few evaluations.
//
//	Space       parameters with their values, and the legal points
//	Trial       a point and the time that its evaluation took, or that it failed
//	Searcher    says what to evaluate next, and learns from trials
//	Guided      ours: a Gaussian process on the logarithm of the time, over a price
//	Methods     ours and the classic ones that it is compared with
//
// Files: space.go what is searched; search.go what a search is; guided.go which point is
// next, by surrogate.go (what is expected, of kernel.go's covariance, which fit.go fits),
// failures.go (what may fail) and probes.go (what was never tried); classic.go the others.
//
// Everything is deterministic: the same space, settings and observations give the same
// points. Times are seconds, +Inf for what failed.
//
// A search knows nothing of plans, fusions and devices. The tuner makes a space of the
// plans that a backend offers; recorded spaces are read by search/table, and
// search/contest compares methods on them.
package search
