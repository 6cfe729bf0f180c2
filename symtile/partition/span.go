package partition

import (
	"cmp"
	"slices"
)

// A span is the positions from the first root to the last member of clusters of several
// roots, which a path of reads can enter at one and leave at the other.
type span struct{ first, last int }

// merged joins spans that touch, in the order of their positions.
func merged(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	n := 0
	for _, x := range all {
		if n > 0 && x.first <= all[n-1].last {
			all[n-1].last = max(all[n-1].last, x.last)
			continue
		}
		all[n] = x
		n++
	}
	return all[:n]
}

// lastFrom is the last position of the span that p is in, and p where it is in none of
// merged spans.
func lastFrom(spans []span, p int) int {
	at, found := slices.BinarySearchFunc(spans, p, func(x span, p int) int { return cmp.Compare(x.first, p) })
	if !found {
		at-- // the span that begins before p
	}
	if at < 0 {
		return p
	}
	return max(p, spans[at].last)
}
