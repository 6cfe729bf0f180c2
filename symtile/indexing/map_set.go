package indexing

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/symtile/index"
)

// A mapSet holds distinct maps in the order of insertion. Maps that print alike
// and whose run-time variables have the same origins are one. A map without
// points is only in a set by itself. The nil mapSet is the empty set.
type mapSet struct {
	// all is the maps in the order in which they were added.
	all []index.Map
	// at finds a map by its text and origins.
	at map[string]int
	// overflowed reports that there were too many maps: all is then a single
	// undefined one.
	overflowed bool
}

// maxMaps bounds a set; where an array is read in more ways the map is
// undefined.
const maxMaps = 2048

// setOf is the set of one map.
func setOf(m index.Map) *mapSet {
	return (*mapSet)(nil).add(m)
}

// maps are the maps of the set.
func (s *mapSet) maps() []index.Map {
	if s == nil {
		return nil
	}
	return s.all
}

// add adds m and returns the set. The map is simplified first, so that maps
// that differ only in how they were composed are one; the approximate flags of
// equal maps are combined, since an exact map says all that an approximate one
// does.
func (s *mapSet) add(m index.Map) *mapSet {
	if s == nil {
		s = &mapSet{at: map[string]int{}}
	}
	if s.overflowed {
		return s
	}
	m = foldRuntime(m).Simplify()
	m, _ = m.DropUnusedRanges()
	if m.State == index.StateEmpty &&
		len(s.all) > 0 {
		return s
	}
	if len(s.all) == 1 &&
		s.all[0].State == index.StateEmpty {
		s.all = nil
		s.at = map[string]int{}
	}
	key := mapKey(m)
	if k, ok := s.at[key]; ok {
		// Equal maps describe one set: if either is exact, so is the set.
		s.all[k].Approximate = s.all[k].Approximate &&
			m.Approximate
		return s
	}
	s.at[key] = len(s.all)
	if s.all = append(s.all, m); len(s.all) > maxMaps {
		s.overflowed = true
		s.all = []index.Map{
			{State: index.StateUndefined, Why: fmt.Sprintf("it is reached in more than %d ways", maxMaps)},
		}
	}
	return s
}

// compose adds every composition of a first map with a second.
func (s *mapSet) compose(firsts, seconds []index.Map) *mapSet {
	for _, first := range firsts {
		for _, second := range seconds {
			s = s.add(index.Compose(first, second))
		}
	}
	return s
}

// mapKey identifies a map by its text and the origins of its run-time
// variables.
func mapKey(m index.Map) string {
	var b strings.Builder
	b.WriteString(m.String())
	for _, o := range m.Origins() {
		fmt.Fprintf(&b, " %p", o)
	}
	return b.String()
}
