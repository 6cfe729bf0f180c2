package query

import (
	"sync"

	"github.com/tilewright/tilewright/cache"
)

// known remembers what was answered while the file was in one state, so that a fusion
// that is asked for again costs a look at the state: a transaction of the database takes
// the locks of other processes, opens the file and maps it.
type known struct {
	mu      sync.Mutex
	state   cache.State
	answers map[asked]Winner
}

// asked is what an answer is remembered by.
type asked struct {
	print cache.Fingerprint
	// name of a fusion that has a plan in any case; empty for a question for what is
	// stored under the fingerprint.
	name string
}

// maxKnown is how many answers are remembered: about a kilobyte each.
const maxKnown = 1 << 16

// find is what is remembered from a state.
func (n *known) find(state cache.State, q asked) (w Winner, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == state {
		w, ok = n.answers[q]
	}
	return w, ok
}

// keep remembers an answer of a state.
func (n *known) keep(state cache.State, q asked, w Winner) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil || n.state != state || len(n.answers) >= maxKnown {
		n.answers = map[asked]Winner{}
		n.state = state
	}
	n.answers[q] = w
}

// state is that of the database; a snapshot has one only.
func (s *Store) state() (cache.State, error) {
	if s.db == nil {
		return cache.State{}, nil
	}
	return s.watch.State()
}

// recall replaces an answer by what is remembered of a question, if anything is.
func (s *Store) recall(q asked, w *Winner) bool {
	state, err := s.state()
	if err != nil {
		return false
	}
	known, ok := s.known.find(state, q)
	if ok {
		*w = known
	}
	return ok
}

// remembered is what is remembered of a question, or else what ask says, which is
// remembered if it may be kept and the file had the same state before and after. The
// errors of a file whose state cannot be read are those of ask.
func (s *Store) remembered(q asked, ask func() (w Winner, keep bool, err error)) (Winner, error) {
	before, unknown := s.state()
	if unknown == nil {
		if w, ok := s.known.find(before, q); ok {
			return w, nil
		}
	}
	w, keep, err := ask()
	if !keep || err != nil || unknown != nil {
		return w, err
	}
	if after, err := s.state(); err == nil && after == before {
		s.known.keep(before, q, w)
	}
	return w, nil
}
