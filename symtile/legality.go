package symtile

import (
	"fmt"
	"sync"

	"github.com/tilewright/tilewright/symtile/index"
)

// A compiledConstraints is the constraints of a space, compiled once for many readers.
type compiledConstraints struct {
	vars       []index.Expr // the tile sizes
	where      index.Constraint
	boxes      index.Constraint // the Space.Boxes among where; nil without
	check      *index.Predicate
	maxEntries int // entries of a table of choices
	once       sync.Once
	plan       *buckets // made when tilings are asked for
}

// Illegal says which constraint a tiling breaks.
type Illegal struct {
	Tiling Tiling
	Clause index.Clause
}

func (e *Illegal) Error() string {
	return fmt.Sprintf(
		"tiling %v breaks the constraint %s", []int64(e.Tiling), e.Clause,
	)
}

// compile makes what Check and Tilings read. A constraint over anything but
// tile sizes is an error.
func (s *Space) compile() (err error) {
	s.legal, err = s.compileConstraints(s.Where)
	if err == nil && len(s.Boxes) > 0 {
		if s.boxed, err = s.compileConstraints(s.boxes()); err == nil {
			s.boxed.boxes = s.Boxes
		}
	}
	return err
}

func (s *Space) compileConstraints(where index.Constraint) (*compiledConstraints, error) {
	l := &compiledConstraints{where: where, maxEntries: maxChoices}
	for _, d := range s.Dims {
		l.vars = append(l.vars, d.Size)
	}
	var err error
	if l.check, err = index.CompileConstraint(l.vars, where); err != nil {
		return nil, fmt.Errorf("symtile: %w in %s; this is a bug", err, where)
	}
	return l, nil
}

// compiled is s.legal, made now for a space that no analysis compiled: a
// concrete one, or a copy with constraints of its own.
func (s *Space) compiled() *compiledConstraints {
	if s.legal != nil &&
		sameSlice(s.legal.where, s.Where) {
		return s.legal
	}
	l, err := s.compileConstraints(s.Where)
	if err != nil {
		panic(err)
	}
	return l
}

// sameSlice reports whether c and d share their first element and their length.
func sameSlice(c, d index.Constraint) bool {
	return len(c) == len(d) &&
		(len(c) == 0 || &c[0] == &d[0])
}

// buckets plans the enumeration of the space's tilings when first asked.
func (s *Space) buckets() *buckets {
	l := s.compiled()
	l.once.Do(func() {
		l.plan = newBuckets(s.Dims, l)
	})
	return l.plan
}

// checkTiling says which clause t breaks.
func (l *compiledConstraints) checkTiling(t Tiling) error {
	if len(l.where) == 0 {
		return nil
	}
	var room [128]int64
	scratch := room[:]
	if n := l.check.ScratchLen(); n > len(room) {
		scratch = make([]int64, n)
	}
	if at := l.check.FirstViolated(t, scratch); at >= 0 {
		return &Illegal{
			append(Tiling(nil), t...), l.where[at],
		}
	}
	return nil
}
