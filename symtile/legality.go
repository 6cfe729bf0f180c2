package symtile

import (
	"fmt"
	"sync"

	"github.com/tilewright/tilewright/symtile/index"
)

// compiledConstraints is a constraint of a space compiled for evaluation. It is
// safe for concurrent use; the plan of the enumeration is made on first use.
type compiledConstraints struct {
	// vars are the tile sizes, in the order of Space.Dims.
	vars  []index.Expr
	where index.Constraint
	// boxes is the part of where that Space.Boxes contributed; nil without.
	boxes index.Constraint
	check *index.Predicate
	// maxEntries bounds a table of the enumeration; tests make it small.
	maxEntries int
	once       sync.Once
	// plan is made when tilings are first enumerated.
	plan *buckets
}

// Illegal is the error of a tiling that breaks a constraint, and says which.
type Illegal struct {
	// Tiling is a copy of the tiling that was checked.
	Tiling Tiling
	// Clause is the first clause that the tiling breaks.
	Clause index.Clause
}

// Error prints the tiling and the clause.
func (e *Illegal) Error() string {
	return fmt.Sprintf(
		"tiling %v breaks the constraint %s", []int64(e.Tiling), e.Clause,
	)
}

// compile compiles what Check and Tilings evaluate. A constraint over anything
// but tile sizes is an error, and a bug of a propagator.
func (s *Space) compile() (err error) {
	s.legal, err = s.compileConstraints(s.Where)
	if err == nil && len(s.Boxes) > 0 {
		if s.boxed, err = s.compileConstraints(s.boxes()); err == nil {
			s.boxed.boxes = s.Boxes
		}
	}
	return err
}

// compileConstraints compiles one constraint of the space.
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

// compiled is the compiled Where: s.legal, or one made now for a space that
// Analyze has not compiled, such as a concrete one or a copy with other
// constraints.
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

// buckets plans the enumeration of the space's tilings on first use.
func (s *Space) buckets() *buckets {
	l := s.compiled()
	l.once.Do(func() {
		l.plan = newBuckets(s.Dims, l)
	})
	return l.plan
}

// checkTiling returns an *Illegal where t breaks a clause, else nil. Scratch of
// up to 128 values stays on the stack.
func (l *compiledConstraints) checkTiling(t Tiling) error {
	if len(l.where) == 0 {
		return nil
	}
	var buffer [128]int64
	scratch := buffer[:]
	if n := l.check.ScratchLen(); n > len(buffer) {
		scratch = make([]int64, n)
	}
	if violated := l.check.FirstViolated(t, scratch); violated >= 0 {
		return &Illegal{
			append(Tiling(nil), t...), l.where[violated],
		}
	}
	return nil
}
