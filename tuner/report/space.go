package report

import (
	"fmt"
	"math"
	"strings"
)

// Space is the sentence on all legal plans, of which those offered are some, as the record
// counted them; "" where it did not.
func (f fusionSection) Space() string {
	// Either may be unknown: tilings were counted before plans were, and there are
	// backends that count neither.
	var counts []string
	for _, c := range []struct {
		n    int64
		more bool
		noun string
	}{{f.Tilings, false, "tilings"}, {f.Record.Plans, f.MorePlans, "plans"}} {
		if c.n > 0 {
			counts = append(counts, countOf(c.n, c.more)+" "+c.noun)
		}
	}
	if len(counts) == 0 {
		return ""
	}
	text := strings.Join(counts, " and ") + " are legal" + f.provenText() + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// countOf is a count; with more, and where it is math.MaxInt64, there are at least as many. The
// number is written in full, as the other counts of the page are.
func countOf(n int64, more bool) string {
	switch {
	case n == math.MaxInt64:
		return "more than 9e18"
	case more:
		return fmt.Sprintf("at least %d", n)
	}
	return fmt.Sprint(n)
}

// provenText says how many of the plans offered are known to be the cheapest of all: a record
// that has no number of plans is from before that was tried.
func (f fusionSection) provenText() string {
	switch {
	case f.Record.Plans == 0:
		return ""
	case f.Proven == 0:
		return "; none is proven to be the cheapest of all by price"
	case f.Proven == 1:
		return "; the first is proven to be the cheapest of all by price"
	}
	return fmt.Sprintf("; the first %d are proven to be the cheapest of all by price", f.Proven)
}
