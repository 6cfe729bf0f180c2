package symtile

import (
	"fmt"
	"strings"
)

// A mapSet holds distinct maps in the order they came: those that are written
// the same and whose run-time variables have the same origins are one. A map
// without points is in it only alone. Nil is the empty set.
type mapSet struct {
	all  []Map
	at   map[string]int // by text and origins
	full bool           // there were too many: all is one that is not known
}

// mostMaps bounds a set; what is reached in more ways is not known.
const mostMaps = 2048

func setOf(m Map) *mapSet { return (*mapSet)(nil).add(m) }

func (s *mapSet) maps() []Map {
	if s == nil {
		return nil
	}
	return s.all
}

// add adds m, folded and simplified, and returns the set.
func (s *mapSet) add(m Map) *mapSet {
	if s == nil {
		s = &mapSet{at: map[string]int{}}
	}
	if s.full {
		return s
	}
	m = foldRuntime(m).Simplify()
	m, _ = m.DropUnusedRanges()
	if m.State == Empty && len(s.all) > 0 {
		return s
	}
	if len(s.all) == 1 && s.all[0].State == Empty {
		s.all, s.at = nil, map[string]int{}
	}
	key := mapKey(m)
	if k, ok := s.at[key]; ok {
		s.all[k].Over = s.all[k].Over && m.Over // each says where the elements are at most
		return s
	}
	s.at[key] = len(s.all)
	if s.all = append(s.all, m); len(s.all) > mostMaps {
		s.full = true
		s.all = []Map{{State: Undefined, Why: fmt.Sprintf("it is reached in more than %d ways", mostMaps)}}
	}
	return s
}

// compose adds every second after every first.
func (s *mapSet) compose(firsts, seconds []Map) *mapSet {
	for _, first := range firsts {
		for _, second := range seconds {
			s = s.add(Compose(first, second))
		}
	}
	return s
}

func mapKey(m Map) string {
	var b strings.Builder
	b.WriteString(m.String())
	for _, o := range m.Origins() {
		fmt.Fprintf(&b, " %p", o)
	}
	return b.String()
}
