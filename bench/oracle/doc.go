// Command oracle measures how far the plans that the CPU backend prefers are from the best
// ones that there are: `make oracle` runs it. Of each fusion of testdata/hlo it times the
// default plan, the first ones by price and others at equal distances in the order of the
// prices, together at least 150 where there are so many, in shuffled blocks of samples of a
// millisecond, and with -tune also what a tuner finds in its normal time.
//
// The best plan is chosen by the even blocks and compared by the odd ones, so that it is not
// the luckiest. A ratio is the median of ratios within blocks. "default", "tuned" and "@k",
// the best of the first k by price as the even blocks have it, are such ratios to the best;
// ρ is Spearman's of price and median; "price" the median of price over time.
//
// It wants a quiet machine: the share of it that a probe finds before and after is printed
// beside each fusion, and what is measured on a busy one says little about two threads.
package main
