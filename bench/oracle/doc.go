// Command oracle measures how far the plans that the CPU backend prefers are from the best
// ones that there are: `make oracle` runs it. Of each fusion of testdata/hlo it times the
// default plan, the first ones by price and others at equal distances in the order of the
// prices, together at least 150 where there are so many, in shuffled blocks of samples of a
// millisecond, and with -tune also what a tuner finds in its normal time.
//
// The best plan is chosen by the even blocks and compared by the odd ones, so that it is not
// the luckiest. A ratio is the median of ratios within blocks. "default", "tuned" and "@k",
// the best of the first k by price as the even blocks have it, are such ratios to the best;
// ρ is Spearman's of price and median; "price" the median of price over time; "bound" the
// least time over the lower bound of any kernel's.
//
// It wants a quiet machine: the share of it that a probe finds before and after is printed
// beside each fusion, and what is measured on a busy one says little about two threads. On
// Linux a sample of which other work took a twentieth is taken again, four times at most.
// With -processor one lane is timed by what the process uses of the processor, which other
// programs disturb through caches and memory only.
//
// With -o each fusion is kept when it is measured, and the same command goes on with the next
// one; -for ends it after a time, and -render prints what is there.
//
// With -twice the corpus is tuned twice into empty databases, with the same seed and rates
// (`make flips`). It prints which fusions have another winner, whether a record declares the
// two tied, and both winners' times over the default's in three sessions of their own: their
// medians, and the least and the largest.
package main
