package index

import "slices"

// What the points of a small domain tell. Rules see how a sum is written, and the
// ranges of its parts; a domain of few points may leave less of it than rules can
// show. So a result that stays long is compared with shorter sums at every point of
// the domain, which proves them equal: those of shapes.go.
//
// Finding such a sum is cheap and may go wrong, as nothing rests on it: it is solved
// in floating point from a few points, or read off the slopes. Only the comparison
// at every point decides. Points that are far from each other come first, so that a
// sum that is not equal is found out after a few of them.
//
// A point is in the domain when the variables are in their ranges and satisfy their
// congruences, and when the constraints hold; of the terms of a constraint that have
// other variables than those of the box only the range is taken. Knowing less makes
// the domain larger: what is equal there is equal on the domain. Variables that an
// equation of the domain has eliminated are in no form.
//
// Nothing of this is a rule of the normal form: it serves a Composition, whose
// results are written, not compared.

// maxFitPoints bounds the points of a box that are compared, maxFitVars its
// dimensions.
const (
	maxFitPoints = 4096
	maxFitVars   = 6
)

// maxFitSteps bounds the atoms evaluated for all results of one domain; a domain with
// constraints, of which more is to be hoped, has eight times as many.
const maxFitSteps = 10000

// A column has the values of a sum, or of an atom, at the points of a block.
type column [blockPoints]int64

// blockPoints is the number of points that are evaluated together.
const blockPoints = 64

// samplePoints is the least number of points of the first block, unless the domain has
// fewer: what is wrong at one of them is not looked at elsewhere.
const samplePoints = 20

// A fitting compares sums at the points of a domain. It keeps its memory between
// results and between runs of a composition.
type fitting struct {
	// The domain, in whose ring the sums are.
	d *domain
	// The variables of the box.
	vars []int32
	// A point, by variable of the domain, for valueAt. Values of variables that are
	// not in the box mean nothing.
	at []int64
	// Atoms that may still be evaluated. Below 0 the values that were found are not
	// to be trusted, and neither is what was concluded from them.
	steps int
	// What the constraints say about the variables of the box.
	conds []fitCondition

	// Number of the points of the block. Of the box, visited points have been looked
	// at, and number next is where the walk goes on.
	n             int
	visited, next int64
	// Points of the box, and from one point of the walk to the next.
	total  int64
	stride uint32
	// Values at the points of the block: of vars, and of atoms by number, where epochs
	// has the number of the block.
	cols   *[maxFitVars]column
	atoms  []*column
	epochs []uint64
	epoch  uint64
	// The points of the next block that are in the domain.
	kept *[maxFitVars]column
	// Values of the sum at the first block, and scratch.
	target, other, check column

	// Quotients that occur in the sum, and divisors to try.
	pool     []int32
	spare    []int32
	divisors []int64

	// Points of the only variable, in order.
	points []fitPoint
	// The slopes between them, perhaps the same. Three slopes are too many for a sum
	// with one quotient.
	slopes [2]int64
	// The equations that the points give for the coefficients: the constant's, then
	// those of the variables and of the quotients, then the value. As many as are
	// independent.
	rows [maxUnknowns][maxUnknowns + 1]float64
	// What is looked at is a result, or a part of one, and no dividend in it.
	outermost bool
	// The quotients of the sum that is solved for, as far as there are any.
	chosen [maxChosen]int32
}

// maxUnknowns bounds the coefficients of a sum that is solved for: of the constant, of
// the variables, of the quotients.
const (
	maxChosen   = 3
	maxUnknowns = 1 + maxFitVars + maxChosen
)

// A fitCondition says that a sum is in an interval, or, for m > 0, ≡ r (mod m).
type fitCondition struct {
	sum  lin
	in   Interval
	m, r int64
}

// holds reports whether the sum may have the value x.
func (c *fitCondition) holds(x int64) bool {
	if c.m > 0 {
		return floorMod(x-c.r, c.m) == 0
	}
	return c.in.Contains(x)
}

// A fitPoint is a value of the only variable with the value of the sum there, and how
// much it is more than at the point before.
type fitPoint struct{ at, value, slope int64 }

// use makes f compare sums of the ring of d.
func (f *fitting) use(d *domain) {
	f.d = d
	f.epoch++
	if f.cols == nil {
		f.cols = new([maxFitVars]column)
		f.kept = new([maxFitVars]column)
	}
}

// valueAt is the value of x at f.at.
func (f *fitting) valueAt(x lin) int64 {
	v := x.c
	for _, t := range x.t {
		v += t.k * f.atomAt(t.a)
	}
	return v
}

// atomAt is the value of one atom at f.at.
func (f *fitting) atomAt(id int32) int64 {
	f.steps--
	if f.steps < 0 {
		return 0
	}
	a := &f.d.r.atoms[id]
	switch a.kind {
	case atomVar:
		return f.at[id]
	case atomDiv, atomFloorDiv:
		return FloorDiv(
			f.valueAt(f.d.r.lin(a.y)),
			a.d,
		)
	case atomMod:
		return floorMod(
			f.valueAt(f.d.r.lin(a.y)),
			a.d,
		)
	}
	f.steps = -1 // what the sums are not made of
	return 0
}

// maxFitDepth bounds the dividends inside dividends that are looked at.
const maxFitDepth = 3

// shorter is a sum that equals x on the domain, where one is found that is written
// with fewer operations: for x as a whole, for the parts of x that have no variable
// in common, or for dividends in it.
func (f *fitting) shorter(x lin, depth int) (lin, bool) {
	r := f.d.r
	cost := r.minCost(x)
	if f.steps < 0 || !r.divides(x) || cost < f.least() {
		return x, false
	}
	f.outermost = depth == maxFitDepth
	if y, ok := f.whole(x, cost); ok {
		return y, true
	}
	out := constForm(x.c)
	for rest := x.t; len(rest) > 0; {
		part, others, ok := f.part(rest)
		if !ok {
			return x, false
		}
		rest = others
		y := part
		if len(part.t) < len(x.t) {
			f.outermost = depth == maxFitDepth
			if z, ok := f.whole(part, r.minCost(part)); ok {
				y = z
			}
		}
		if y.equal(part) && depth > 0 {
			y = f.inside(part, depth-1)
		}
		out = r.addmul(out, 1, y)
	}
	return out, r.minCost(out) < cost
}

// least is the cost from which sums are compared: without constraints little of three
// operations is to be saved.
func (f *fitting) least() int32 {
	facts := &f.d.r.facts
	if len(facts.sums)+len(facts.congr) > 0 {
		return opCost
	}
	return 3*opCost - 2
}

// divides reports whether x has a quotient.
func (r *Ring) divides(x lin) bool {
	for _, t := range x.t {
		switch r.atoms[t.a].kind {
		case atomDiv, atomFloorDiv, atomMod:
			return true
		}
	}
	return false
}

// part is those of the terms that have variables in common with the first one,
// directly or through others.
func (f *fitting) part(ts []term) (part lin, others []term, ok bool) {
	f.vars = f.vars[:0]
	both := f.d.r.alloc(2 * len(ts))
	for n := -1; len(part.t) > n; {
		n = len(part.t)
		part.t, others = both[:0:len(ts)], both[len(ts):len(ts)]
		for i, t := range ts {
			one := lin{t: ts[i : i+1 : i+1]}
			if i > 0 && !f.meets(one) {
				others = append(others, t)
				continue
			}
			if !f.collect(one) {
				return part, others, false
			}
			part.t = append(part.t, t)
		}
	}
	return part, others, true
}

// meets reports whether x has a variable of the box.
func (f *fitting) meets(x lin) bool {
	for _, t := range x.t {
		a := &f.d.r.atoms[t.a]
		switch a.kind {
		case atomVar:
			if slices.Contains(f.vars, t.a) {
				return true
			}
		case atomDiv, atomFloorDiv, atomMod:
			if f.meets(f.d.r.lin(a.y)) {
				return true
			}
		}
	}
	return false
}

// inside is x with shorter quotients: those that are something shorter themselves, and
// those of shorter dividends, which are divided again, so that the rules see them.
func (f *fitting) inside(x lin, depth int) lin {
	r := f.d.r
	out := constForm(x.c)
	for _, t := range x.t {
		y := f.shorterAtom(
			t.a,
			depth,
			len(x.t) == 1,
		)
		out = r.addmul(out, t.k, y)
	}
	return out
}

// shorterAtom is inside for one atom, which has been tried itself where it is alone.
func (f *fitting) shorterAtom(id int32, depth int, alone bool) lin {
	r := f.d.r
	a := r.atoms[id]
	one := r.atomForm(id)
	switch a.kind {
	case atomDiv, atomFloorDiv, atomMod:
	default:
		return one
	}
	// The quotient may be constant where its dividend is not.
	if !alone && !r.settled(one) && !f.reaches(&a) {
		f.outermost = false
		x, ok := f.whole(one, r.minCost(one))
		if ok {
			return x
		}
	}
	y, ok := f.shorter(r.lin(a.y), depth)
	switch {
	case !ok:
		return one
	case a.kind == atomMod:
		return r.mod(y, a.d)
	}
	return r.div(y, a.d)
}

// reaches reports whether the quotient a is of a variable alone over three periods or
// more, which sums that bound it leave as they are: it is no line then.
func (f *fitting) reaches(a *atom) bool {
	y := f.d.r.lin(a.y)
	if len(y.t) > 1 || a.kind == atomMod || len(f.d.r.facts.congr) > 0 {
		return false
	}
	b := &f.d.r.atoms[y.t[0].a]
	return b.kind == atomVar && width(b.in)/a.d >= 3
}

// quotients counts the quotients in x, those inside of others too, up to 2.
func (r *Ring) quotients(x lin) (n int) {
	for _, t := range x.t {
		if n >= 2 {
			break
		}
		a := &r.atoms[t.a]
		switch a.kind {
		case atomDiv, atomFloorDiv, atomMod:
			n += 1 + r.quotients(r.lin(a.y))
		}
	}
	return n
}

// A shape is a kind of sum: it finds one that has the values f.target at the points of
// the block, x there, and that equals x at all points and costs less than x does.
type shape func(f *fitting, x lin, cost int32) (lin, bool)

// shapes are tried in order, those that cost less first.
var shapes = [...]shape{
	(*fitting).affine,
	(*fitting).quotient,
	(*fitting).stepped,
	(*fitting).withQuotient,
	(*fitting).residue,
	(*fitting).withQuotients,
}

// whole is a sum that equals x at every point and costs less than x does, if one of the
// shapes has one.
func (f *fitting) whole(x lin, cost int32) (y lin, ok bool) {
	f.vars = f.vars[:0]
	if !f.collect(x) || !f.box() {
		return lin{}, false
	}
	// One quotient on a box is as short as it can be, nearly always.
	if len(f.conds) == 0 && f.d.r.quotients(x) < 2 &&
		f.count() > blockPoints {
		return lin{}, false
	}
	f.start()
	if !f.block(samplePoints) {
		return lin{}, false
	}
	f.evaluate(x, &f.target)
	for _, fit := range shapes {
		if f.steps < 0 {
			break
		}
		y, ok := fit(f, x, cost)
		if ok && f.steps >= 0 {
			return y, true
		}
	}
	return lin{}, false
}

// start begins a walk over the box.
func (f *fitting) start() {
	if n := f.count(); n != f.total {
		f.total = n
		f.stride = uint32(coprimeStride(n))
	}
	// The first point is a corner of the box.
	f.visited = 0
	f.next = 0
}

// block goes on with the walk until the block has at least so many points of the
// domain, or the box has no more; ok is false where it has none. Points that follow
// each other are far from each other, so that the first block says much.
func (f *fitting) block(least int) (ok bool) {
	total := f.total
	n := 0 // of kept
	for n < least && f.visited < total && f.steps >= 0 {
		// Without conditions every point is kept.
		f.n = blockPoints - n
		if len(f.conds) == 0 && least == samplePoints {
			f.n = samplePoints
		}
		f.n = int(min(int64(f.n), total-f.visited))
		f.place(uint32(total))
		f.visited += int64(f.n)
		f.epoch++
		n = f.keep(n)
	}
	f.cols, f.kept = f.kept, f.cols
	f.n = n
	f.epoch++
	return n > 0
}

// place enters the next points of the walk as those of the block.
func (f *fitting) place(total uint32) {
	var at [blockPoints]uint32
	next := uint32(f.next)
	for i := range at[:f.n] {
		at[i] = next
		if next += f.stride; next >= total {
			next -= total
		}
	}
	f.next = int64(next)
	for j, v := range f.vars {
		x := &f.d.vars[v]
		n := uint32(f.values(v))
		for i := range at[:f.n] {
			rest := at[i] / n
			f.cols[j][i] = x.in.Lo + int64(at[i]-rest*n)*x.m
			at[i] = rest
		}
	}
}

// keep appends the points of the block that are in the domain to the n kept ones, and
// returns how many there are then.
func (f *fitting) keep(n int) int {
	if len(f.conds) == 0 {
		for j := range f.vars {
			copy(f.kept[j][n:], f.cols[j][:f.n])
		}
		return n + f.n
	}
	// Which points satisfy the conditions so far.
	var in [blockPoints]bool
	for i := range f.n {
		in[i] = true
	}
	for i := range f.conds {
		c := &f.conds[i]
		f.evaluate(c.sum, &f.check)
		for j, x := range f.check[:f.n] {
			in[j] = in[j] && c.holds(x)
		}
	}
	for i := range f.n {
		if !in[i] {
			continue
		}
		for j := range f.vars {
			f.kept[j][n] = f.cols[j][i]
		}
		n++
	}
	return n
}

// evaluate has the values of x at the points of the block.
func (f *fitting) evaluate(x lin, to *column) {
	for i := range f.n {
		to[i] = x.c
	}
	for _, t := range x.t {
		col := f.column(t.a)
		for i, v := range col[:f.n] {
			to[i] += t.k * v
		}
	}
}

// column has the values of an atom at the points of the block.
func (f *fitting) column(id int32) *column {
	a := &f.d.r.atoms[id]
	if a.kind == atomVar {
		return &f.cols[slices.Index(f.vars, id)]
	}
	for int(id) >= len(f.atoms) {
		f.atoms = append(f.atoms, nil)
		f.epochs = append(f.epochs, 0)
	}
	if f.atoms[id] == nil {
		f.atoms[id] = new(column)
	}
	to := f.atoms[id]
	if f.epochs[id] == f.epoch {
		return to // evaluated for this block
	}
	f.epochs[id] = f.epoch
	f.steps -= f.n
	if f.steps < 0 {
		return to
	}
	f.evaluate(f.d.r.lin(a.y), to)
	for i, x := range to[:f.n] {
		if a.kind == atomMod {
			to[i] = floorMod(x, a.d)
		} else {
			to[i] = FloorDiv(x, a.d)
		}
	}
	return to
}

// equal reports whether x and y are equal at every point.
func (f *fitting) equal(x, y lin) bool {
	for f.start(); f.block(1); {
		f.evaluate(x, &f.other)
		f.evaluate(y, &f.check)
		if f.steps < 0 ||
			!slices.Equal(f.other[:f.n], f.check[:f.n]) {
			return false
		}
	}
	return f.steps >= 0
}

// sample goes back to the first block.
func (f *fitting) sample() {
	f.start()
	f.block(samplePoints)
}

// collect enters the variables under x; ok is false when there are too many.
func (f *fitting) collect(x lin) (ok bool) {
	for _, t := range x.t {
		a := &f.d.r.atoms[t.a]
		switch a.kind {
		case atomVar:
			if !f.enter(t.a) {
				return false
			}
		case atomDiv, atomFloorDiv, atomMod:
			if !f.collect(f.d.r.lin(a.y)) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// enter enters one variable; ok is false when there are too many, or when its range
// has no end.
func (f *fitting) enter(v int32) (ok bool) {
	if slices.Contains(f.vars, v) {
		return true
	}
	if len(f.vars) == maxFitVars ||
		!f.d.vars[v].in.Bounded() {
		return false
	}
	f.vars = append(f.vars, v)
	return true
}

// box adds the variables of the constraints on variables of the box, as far as its
// points stay few, and selects the constraints that are about its variables only.
func (f *fitting) box() bool {
	if len(f.vars) == 0 ||
		f.count() > maxFitPoints {
		return false
	}
	facts := &f.d.r.facts
	for n := 0; n < len(f.vars); {
		n = len(f.vars)
		for _, g := range facts.sums {
			f.widen(g.sum)
		}
		for _, g := range facts.congr {
			f.widen(g.sum)
		}
	}
	f.conds = f.conds[:0]
	for i, g := range facts.sums {
		f.condition(g.sum, f.d.stated[i])
	}
	for _, g := range facts.congr {
		if f.within(g.sum) {
			f.conds = append(f.conds, fitCondition{sum: g.sum, m: g.m, r: g.r})
		}
	}
	return true
}

// condition enters that sum is in in. Of terms with other variables than those of the
// box only their range is known, which widens in.
func (f *fitting) condition(sum lin, in Interval) {
	r := f.d.r
	// sum = own + rest
	own := constForm(sum.c)
	rest := lin{}
	for i, t := range sum.t {
		if f.within(lin{t: sum.t[i : i+1 : i+1]}) {
			own = r.addAtom(own, t.k, t.a)
		} else {
			rest = r.addAtom(rest, t.k, t.a)
		}
	}
	if len(own.t) == 0 {
		return
	}
	if len(rest.t) > 0 {
		others := r.sharpRange(rest)
		if !others.Bounded() {
			return
		}
		in = in.Add(others.Neg())
	}
	f.conds = append(f.conds, fitCondition{sum: own, in: in})
}

// widen adds the variables of a constraint that has some in common with the box, unless
// there would be too many points. The constraint may then say which of the points are
// in the domain.
func (f *fitting) widen(sum lin) {
	n := len(f.vars)
	if f.meets(sum) && f.collect(sum) &&
		f.count() <= maxFitPoints {
		return
	}
	f.vars = f.vars[:n]
}

// within reports whether all variables of sum are in the box.
func (f *fitting) within(sum lin) bool {
	n := len(f.vars)
	ok := f.collect(sum)
	ok = ok && len(f.vars) == n
	f.vars = f.vars[:n]
	return ok
}

// values is the number of values of variable v.
func (f *fitting) values(v int32) int64 {
	x := &f.d.vars[v]
	return (x.in.Hi-x.in.Lo)/x.m + 1
}

// count is the number of points of the box, or more than maxFitPoints.
func (f *fitting) count() int64 {
	n := int64(1)
	for _, v := range f.vars {
		if n *= f.values(v); n <= 0 ||
			n > maxFitPoints {
			return maxFitPoints + 1
		}
	}
	return n
}

// moveTo moves to point i of the box; ok tells that it is in the domain.
func (f *fitting) moveTo(i int64) (ok bool) {
	for len(f.at) < len(f.d.vars) {
		f.at = append(f.at, 0)
	}
	for _, v := range f.vars {
		x := &f.d.vars[v]
		n := f.values(v)
		f.at[v] = x.in.Lo + i%n*x.m
		i /= n
	}
	for j := range f.conds {
		c := &f.conds[j]
		if !c.holds(f.valueAt(c.sum)) {
			return false
		}
	}
	return true
}
