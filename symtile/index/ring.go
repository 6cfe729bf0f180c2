package index

import (
	"fmt"
	"slices"
	"sync"
)

// A Ring owns interned expressions. It is not safe for concurrent use while
// expressions are being built; reading them (String, Range, Eval, Compile) is.
//
// Inside, an expression is a form c + Σ k·atom, its terms sorted by atom, and an
// atom is a variable, a floor division, a minimum with 0, or a product of atoms.
// Forms and atoms are hash-consed into int32 ids, without pointers, so that
// equality is a comparison and Reset is a truncation: a ring that is reset and
// filled again with expressions of the same size allocates nothing.
//
// Constructors are total. What cannot be built sets err, and work goes on with
// a form that means nothing, so that no constructor returns an error.
type Ring struct {
	mu    sync.Mutex // held by readers; builders are alone by contract
	err   error      // the first failure
	style style

	// anyOrigin tells that some form is known as a quotient (noteOrigin).
	anyOrigin bool
	// unsettled tells that another style would have made another residue.
	unsettled bool
	fired     [numRules]uint32 // how often each rule applied

	pool       []term     // the terms of forms, shared by all
	forms      []form     // by form id
	atoms      []atom     // by atom id
	units      []term     // 1·atom, by atom
	factorPool []int32    // factors of product atoms, ascending
	vars       []Variable // by number of the variable
	memos      []memo     // quotients computed before

	formTab, atomTab, memoTab, varTab table // ids by hash

	facts facts

	// choices are the ways to write forms; choiceOf[form] is an index plus 1.
	choices  []choice
	choiceOf []int32
	selected int // forms whose choice was searched for

	origins  []*Origin
	originAt map[string]int // index of origins by key

	texts map[int32]string // of long expressions, by form

	scratch *Ring // where domains are worked out
	reading *Ring // where expressions are read
}

// A term is k·atom.
type term struct {
	k int64
	a int32
}

// A lin is a linear form c + Σ t over atoms that need not be interned. Its terms
// are sorted by atom, without zero coefficients, and are never changed: forms
// share them.
type lin struct {
	t []term
	c int64
}

// A form is an interned lin, with its sharp range once that was asked for.
type form struct {
	lin
	in     Interval // bound, once ranged
	ranged bool

	dividend int32 // a form y with ⌊y/divisor⌋ = this form
	divisor  int64 // 0: none is known
}

// An atomKind is what an atom computes.
type atomKind uint8

// The atoms of the normal form.
const (
	atomVar     atomKind = iota // y: index into vars
	atomDiv                     // ⌊y/d⌋, y a form, d > 1
	atomQuot                    // ⌊y/z⌋, y and z forms, z > 0 everywhere
	atomMinZero                 // min(y, 0), y a form
	atomProduct                 // product of factorPool[y:y+z]
)

// Atoms that only extraction makes, in rings that nobody builds in.
const (
	atomMod         atomKind = iota + atomProduct + 1 // y mod d
	atomFloorDiv                                      // y floordiv d, not in normal form
	atomModForm                                       // y mod z
	atomMin                                           // min(y, z)
	atomMax                                           // max(y, z)
	atomFormProduct                                   // y · z
	atomCeilDiv                                       // ⌈y/z⌉
)

// An atom is what a form is linear in. Atoms inside y and z have smaller ids, so
// that ids ascend from the inside out and there are no circles.
type atom struct {
	kind          atomKind
	exact         bool // atomDiv: by·atom = of − off, of a form
	nondecreasing bool // the value does not fall when a variable rises

	y, z int32 // forms, or what the kind says
	of   int32 // of an exact quotient, as are by and off
	d    int64 // divisor of atomDiv, atomMod and atomFloorDiv

	in   Interval // holds every value
	m, r int64    // value ≡ r (mod m), m ≥ 1

	by, off int64
}

// A memo keeps a quotient: ⌊y/d⌋ for z = −1, ⌊y/z⌋ otherwise. The same dividends
// come again and again, because remainders are built from quotients.
type memo struct {
	y, z int32
	d    int64
	res  lin
}

// A choice is the cheapest way found to write a form, and what it costs. A settled one
// is as cheap as can be expected.
type choice struct {
	lin
	cost    int32
	settled bool
}

// NewRing returns an empty ring.
func NewRing() *Ring {
	return &Ring{
		forms:   make([]form, 0, 32),
		formTab: newTable(128),
		atomTab: newTable(64),
		memoTab: newTable(64),
		varTab:  newTable(64),
	}
}

// Reset forgets every expression, and Err, but keeps the memory. Expressions
// built before are no longer valid.
func (r *Ring) Reset() {
	r.err, r.unsettled = nil, false
	r.anyOrigin = false
	r.pool = r.pool[:0]
	r.forms = r.forms[:0]
	r.atoms = r.atoms[:0]
	r.factorPool = r.factorPool[:0]
	r.memos = r.memos[:0]
	r.formTab.reset()
	r.atomTab.reset()
	r.memoTab.reset()
	r.varTab.reset()
	r.vars = r.vars[:0]
	r.origins = nil
	r.originAt = nil
	r.texts = nil
	r.facts.reset()
	r.forgetChoices()
}

// forgetChoices drops the choices, which are searched for again when asked.
func (r *Ring) forgetChoices() {
	r.choices = r.choices[:0]
	r.choiceOf = r.choiceOf[:0]
	r.selected = 0
}

// Err reports the first thing that could not be built in r: an int64 overflow,
// a division by what may be zero or less, a product of too many factors. From
// then on new expressions of r are worthless, though well formed.
func (r *Ring) Err() error { return r.err }

// fail records the first error; its result, the form 0, stands in for what was
// not built.
func (r *Ring) fail(format string, args ...any) lin {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	return lin{}
}

// alloc returns n fresh terms. A full pool is not copied: the forms that use it
// keep it alive, and a new one is twice as large.
func (r *Ring) alloc(n int) []term {
	l := len(r.pool)
	if l+n > cap(r.pool) {
		size := max(2*cap(r.pool), n, 64)
		r.pool = make([]term, 0, size)
		l = 0
	}
	r.pool = r.pool[:l+n]
	return r.pool[l : l+n : l+n]
}

// keep returns t[:n], giving the rest of the newest allocation back.
func (r *Ring) keep(t []term, n int) []term {
	r.pool = r.pool[:len(r.pool)-(len(t)-n)]
	return t[:n:n]
}

// mix1 and mix2 are odd multipliers that spread the bits of a hash; mix1 is 2⁶⁴
// over the golden ratio (Knuth, The Art of Computer Programming, 3, §6.4).
const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xD6E8FEB86659FD93
)

// hash depends on the terms and the constant of x.
func (x lin) hash() uint64 {
	h := uint64(x.c) * mix1
	for _, t := range x.t {
		h = (h ^ uint64(t.a)) * mix2
		h = (h ^ uint64(t.k) ^ h>>29) * mix1
	}
	return h ^ h>>32
}

// equal reports whether x and y are the same form.
func (x lin) equal(y lin) bool {
	if x.c != y.c || len(x.t) != len(y.t) {
		return false
	}
	for i := range x.t {
		if x.t[i] != y.t[i] {
			return false
		}
	}
	return true
}

// lin is form id.
func (r *Ring) lin(id int32) lin { return r.forms[id].lin }

// form interns x and returns its id: forms with equal ids are equal, and no
// others. x shares its terms with what is interned.
func (r *Ring) form(x lin) int32 {
	h := x.hash()
	for i := r.formTab.first(h); ; i = r.formTab.next(i) {
		id := r.formTab.at(i)
		if id < 0 {
			break
		}
		if r.forms[id].equal(x) {
			return id
		}
	}
	n := len(r.forms)
	r.forms = slices.Grow(r.forms, 1)[:n+1]
	f := &r.forms[n]
	f.lin, f.ranged = x, false
	f.divisor = 0
	if r.formTab.put(h, int32(n)) {
		for i := range r.forms {
			r.formTab.put(r.forms[i].hash(), int32(i))
		}
	}
	return int32(n)
}

// pairHash is the hash of an atom that has no list of factors, and of a memo.
func pairHash(kind atomKind, y, z int32, d int64) uint64 {
	h := uint64(uint32(y))<<8 ^ uint64(uint32(z))<<40
	h = (h ^ uint64(kind)) * mix1
	h = (h ^ uint64(d)) * mix2
	return h ^ h>>31
}

// atomHash is the hash of an atom of any kind. A product is known by its
// factors, because where they lie in the pool is not part of it.
func (r *Ring) atomHash(a *atom) uint64 {
	if a.kind != atomProduct {
		return pairHash(a.kind, a.y, a.z, a.d)
	}
	h := uint64(atomProduct)
	for _, f := range r.factors(a) {
		h = (h ^ uint64(f)) * mix1
	}
	return h ^ h>>32
}

// factors are the atoms whose product a is, ascending and with repetition.
func (r *Ring) factors(a *atom) []int32 {
	return r.factorPool[a.y : a.y+a.z]
}

// sameAtom reports whether a and b compute the same.
func (r *Ring) sameAtom(a, b *atom) bool {
	if a.kind == atomProduct && b.kind == atomProduct {
		return slices.Equal(r.factors(a), r.factors(b))
	}
	return a.kind == b.kind && a.y == b.y &&
		a.z == b.z && a.d == b.d
}

// atom interns the atom of a kind other than atomProduct; had tells that it was
// there already. The bounds of a new one follow from its operands; a caller that knows
// closer ones sets them. Extraction makes atoms, too, which may become operands of what
// is divided anew.
func (r *Ring) atom(
	kind atomKind, y, z int32, d int64,
) (id int32, had bool) {
	h := pairHash(kind, y, z, d)
	for i := r.atomTab.first(h); ; i = r.atomTab.next(i) {
		id := r.atomTab.at(i)
		if id < 0 {
			break
		}
		a := &r.atoms[id]
		if a.kind == kind && a.y == y &&
			a.z == z && a.d == d {
			return id, true
		}
	}
	n := len(r.atoms)
	r.atoms = slices.Grow(r.atoms, 1)[:n+1]
	a := &r.atoms[n]
	*a = atom{} // field by field: a copy of a composite literal stalls here
	a.kind = kind
	a.y = y
	a.z = z
	a.d = d
	a.m = 1
	switch kind {
	case atomMod:
		a.in = Interval{0, d - 1}
	case atomFloorDiv, atomDiv:
		a.in = r.looseRange(r.lin(y)).Div(d)
	default:
		a.in = Unbounded()
	}
	r.putAtom(h)
	return int32(n), false
}

// intern interns an atom of any kind that brings its bounds.
func (r *Ring) intern(a atom) (id int32, had bool) {
	h := r.atomHash(&a)
	for i := r.atomTab.first(h); ; i = r.atomTab.next(i) {
		id := r.atomTab.at(i)
		if id < 0 {
			break
		}
		if r.sameAtom(&r.atoms[id], &a) {
			return id, true
		}
	}
	a.m = max(a.m, 1)
	r.atoms = append(r.atoms, a)
	r.putAtom(h)
	return int32(len(r.atoms) - 1), false
}

// putAtom enters the newest atom in the table.
func (r *Ring) putAtom(h uint64) {
	if r.atomTab.put(h, int32(len(r.atoms)-1)) {
		for i := range r.atoms {
			r.atomTab.put(r.atomHash(&r.atoms[i]), int32(i))
		}
	}
}

// hash leaves the origin of v out: the name of a run-time variable follows from
// it.
func (v *Variable) hash() uint64 {
	h := uint64(v.Role)
	for i := range len(v.Name) {
		h = (h ^ uint64(v.Name[i])) * mix1
	}
	h = (h ^ uint64(v.Lo)) * mix2
	h = (h ^ uint64(v.Hi) ^ h>>29) * mix1
	return h ^ h>>32
}

// varID numbers v among the variables of r.
func (r *Ring) varID(v Variable) int32 {
	h := v.hash()
	for i := r.varTab.first(h); ; i = r.varTab.next(i) {
		id := r.varTab.at(i)
		if id < 0 {
			break
		}
		if r.vars[id] == v {
			return id
		}
	}
	r.vars = append(r.vars, v)
	if r.varTab.put(h, int32(len(r.vars)-1)) {
		for i := range r.vars {
			r.varTab.put(r.vars[i].hash(), int32(i))
		}
	}
	return int32(len(r.vars) - 1)
}

// memoKind tells memos from atoms in pairHash.
const memoKind atomKind = 255

// cachedQuotient finds a quotient computed before.
func (r *Ring) cachedQuotient(y, z int32, d int64) (lin, bool) {
	h := pairHash(memoKind, y, z, d)
	for i := r.memoTab.first(h); ; i = r.memoTab.next(i) {
		id := r.memoTab.at(i)
		if id < 0 {
			return lin{}, false
		}
		m := &r.memos[id]
		if m.y == y && m.z == z && m.d == d {
			return m.res, true
		}
	}
}

// cacheQuotient keeps res as ⌊y/d⌋, or ⌊y/z⌋ for z ≥ 0, and returns it.
func (r *Ring) cacheQuotient(y, z int32, d int64, res lin) lin {
	n := len(r.memos)
	r.memos = slices.Grow(r.memos, 1)[:n+1]
	m := &r.memos[n]
	m.y = y
	m.z = z
	m.d = d
	m.res = res
	if r.memoTab.put(pairHash(memoKind, y, z, d), int32(n)) {
		for i := range r.memos {
			m := &r.memos[i]
			h := pairHash(memoKind, m.y, m.z, m.d)
			r.memoTab.put(h, int32(i))
		}
	}
	return res
}

// facts are what a domain says beyond the ranges of its variables. A ring that
// has facts is private to one simplification: its forms equal what they stand
// for on the domain only.
type facts struct {
	sums     []fact
	congr    []congruence
	anyExact bool // some atom is exact
	version  int  // counts what changed
}

// A fact says that sum (no constant, first coefficient positive, content 1)
// lies in in.
type fact struct {
	sum lin
	in  Interval
}

// A congruence says sum ≡ r (mod m), sum without constant.
type congruence struct {
	sum  lin
	m, r int64
}

// reset forgets the facts; version goes on counting.
func (f *facts) reset() {
	f.sums = f.sums[:0]
	f.congr = f.congr[:0]
	f.anyExact = false
}

// Fired lists the names of the rules that applied while building expressions
// in r, in the order of Rules.
func (r *Ring) Fired() []string {
	var names []string
	for id, n := range r.fired {
		if n > 0 {
			names = append(names, ruleTable[id].Name)
		}
	}
	return names
}

// noteFired adds the rules that applied in another ring on behalf of r.
func (r *Ring) noteFired(other *Ring) {
	for id, n := range other.fired {
		r.fired[id] += n
	}
}

// forgetFired empties the list that Fired returns.
func (r *Ring) forgetFired() { r.fired = [numRules]uint32{} }

// A table is an open-addressing hash table of ids with linear probing, at most
// half full. It knows no keys: the caller walks the slots from first(hash) by
// next until at is negative, and compares what the ids stand for.
type table struct {
	slots []int32 // id + 1, 0 free; a power of two of them
	n     int     // ids in the table
	size  int     // of slots when empty
}

// newTable returns an empty table of size slots, a power of two.
func newTable(size int) table {
	return table{slots: make([]int32, size), size: size}
}

// reset empties the table. It shrinks to its first size, so that clearing stays
// cheap after one large expression.
func (t *table) reset() {
	if t.n == 0 {
		return
	}
	t.slots = t.slots[:t.size]
	clear(t.slots)
	t.n = 0
}

// first is the slot where the search for a hash starts.
func (t *table) first(h uint64) uint64 {
	return h & uint64(len(t.slots)-1)
}

// next is the slot after i, the first after the last.
func (t *table) next(i uint64) uint64 {
	return (i + 1) & uint64(len(t.slots)-1)
}

// at is the id in slot i, −1 for a free slot.
func (t *table) at(i uint64) (id int32) {
	return t.slots[i] - 1
}

// put stores id under h. When it returns true the table has grown and is
// empty, and everything has to be put again.
func (t *table) put(h uint64, id int32) (grown bool) {
	if 2*(t.n+1) > len(t.slots) {
		t.grow()
		return true
	}
	i := t.first(h)
	for t.slots[i] != 0 {
		i = t.next(i)
	}
	t.slots[i] = id + 1
	t.n++
	return false
}

// grow doubles the slots and empties them.
func (t *table) grow() {
	n := 2 * len(t.slots)
	if n <= cap(t.slots) {
		t.slots = t.slots[:n]
		clear(t.slots)
	} else {
		t.slots = make([]int32, n)
	}
	t.n = 0
}

// A style is what divisions may do one way or the other. A ring keeps to one, or
// equal expressions would differ; a Composition, whose forms are not compared,
// tries several for what is cheapest to write.
type style struct {
	residue residue
	// ceilings leaves ⌊(y + 1)/2⌋ as it is; otherwise it is y − ⌊y/2⌋.
	ceilings bool
	// free is the style of a Composition, whose forms are not compared: what a
	// division gives may depend on the divisions before it (noteOrigin), and a text
	// need not read back as the same form.
	free bool
	// loose rewrites, in extraction, what would not read back as the same form.
	loose bool
	// spread divides remainders coefficient by coefficient (against div-remainder).
	spread bool
	// literal makes an atom of every division that its range does not decide, and
	// of every remainder, as they are written.
	literal bool
}

// A residue says which multiple of d is taken out of a coefficient k of a
// dividend: k = q·d + rest, where rest may be positive or negative. No choice is
// the best for all expressions: small residues read well, positive ones keep
// ranges on one side of zero, and those with the sign of k keep sums monotone.
type residue uint8

// The residues.
const (
	// residueSigned truncates, so that the rest keeps the sign of k, unless the
	// other neighbour is four times closer.
	residueSigned residue = iota
	// residueNearest leaves the rest of least magnitude.
	residueNearest
	// residuePositive leaves a rest in [0, d).
	residuePositive
)
