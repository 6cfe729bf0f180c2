package symtile

import (
	"errors"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A loopFuser makes the program with fused loops. It copies the ops of the
// original program one by one, those of later loops into the body of the first,
// as far as factorsOf allows.
type loopFuser struct {
	// from is the original program, to the one under construction.
	from *Program
	to   *Program
	// first is the step of the first loop.
	first int
	// statistic is the maximum or sum that the first loop computes, an op of
	// from.
	statistic int
	// isSum reports that the statistic is a sum.
	isSum bool
	// loop is the fused loop.
	loop *Loop
	// outer is the steps outside of loops: those before the fused loop, then
	// those after it.
	outer []Step
	// newOps is the new op of each old one, −1 where there is none.
	newOps []int
	// hoisted are the old ops from after the first loop that have been moved
	// before it.
	hoisted map[int]bool
	// factors is, by old op, the row factors of its value.
	factors map[int][]rowFactor
	// deferred is, by old accumulator, the factors that are multiplied in after
	// the loop.
	deferred map[int][]rowFactor
	// duplicates finds new ops that may compute the same as one that is to be
	// added.
	duplicates map[duplicateKey][]int
	// fused are the old loops that have become part of the new one.
	fused map[*Loop]bool
	// sub replaces the tile ids and sizes of the loop at hand by those of the
	// first.
	sub *index.Substitution
}

// A duplicateKey finds ops that may compute the same: of the same instruction,
// both inside of a loop within the fused one or both not.
type duplicateKey struct {
	instr *hlo.Instr
	inner bool
}

// errNotOnline says that a value depends on the statistic in a way that cannot
// be corrected afterwards. Fusion of the loop is given up; it is never
// reported.
var errNotOnline = errors.New("the terms are neither homogeneous in exp(-max) nor squares of x less a number")

// newLoopFuser prepares to fuse loops into step first of p's body.
func newLoopFuser(p *Program, first int) *loopFuser {
	l := p.Body[first].Loop
	to := *p
	to.Ops = nil
	j := &loopFuser{
		from: p, to: &to, first: first,
		statistic:  l.Accumulators[0],
		newOps:     make([]int, len(p.Ops)),
		hoisted:    map[int]bool{},
		factors:    map[int][]rowFactor{},
		deferred:   map[int][]rowFactor{},
		duplicates: map[duplicateKey][]int{},
		fused:      map[*Loop]bool{l: true},
		sub:        &index.Substitution{},
		loop: &Loop{Dims: l.Dims, Online: &Online{
			Deviation: -1,
			FusedDims: [][]int{l.Dims},
		}},
		isSum: sumsFloats(p, l),
	}
	for n := range j.newOps {
		j.newOps[n] = -1
	}
	return j
}

// fuse is the new program; nil where no later loop can be fused.
func (j *loopFuser) fuse() *Program {
	for _, s := range j.from.Body[:j.first] {
		j.copyStep(s)
	}
	if j.body(
		j.from.Body[j.first].Loop.Body,
		&j.loop.Body,
		false,
	) != nil ||
		j.hoistOperands(j.from.Ops[j.statistic].Args) != nil {
		return nil
	}
	o := j.loop.Online
	o.Statistic = j.emit(j.statistic, j.loop)
	o.Prefix = len(j.loop.Body)
	j.loop.Accumulators = []int{o.Statistic}
	j.factors[j.statistic] = j.rowFactors(j.statistic)
	rest := j.from.Body[j.first+1:]
	for _, s := range rest {
		if s.Loop != nil && s.Loop.Online == nil && j.matchIterations(s.Loop) {
			j.tryFuse(s.Loop)
		}
	}
	if len(o.Rescaled)+len(o.SquaredDeviations) == 0 {
		return nil
	}
	j.outer = append(j.outer, Step{Loop: j.loop})
	for _, s := range rest {
		j.addRemaining(s)
	}
	return j.program()
}

// program puts the new program together.
func (j *loopFuser) program() *Program {
	j.to.Body = j.outer
	j.to.Roots = slices.Clone(j.from.Roots)
	j.to.Runtime = slices.Clone(j.from.Runtime)
	for k := range j.to.Roots {
		j.to.Roots[k].Op = j.newOps[j.to.Roots[k].Op]
	}
	for k := range j.to.Runtime {
		j.to.Runtime[k].Op = j.newOps[j.to.Runtime[k].Op]
	}
	return j.to
}

// emit adds old op n, whose arguments exist, as an accumulator of a loop where
// one is given.
func (j *loopFuser) emit(n int, around *Loop) int {
	op := j.translatedOp(n)
	op.Loop = around
	j.newOps[n] = j.add(op)
	return j.newOps[n]
}

// add appends an op to the new program and returns its index.
func (j *loopFuser) add(op Op) int {
	j.to.Ops = append(j.to.Ops, op)
	return len(j.to.Ops) - 1
}

// translatedOp is old op n with the arguments and tile ids of the new program.
func (j *loopFuser) translatedOp(n int) Op {
	op := j.from.Ops[n]
	op.Args = j.translatedIndices(op.Args)
	op.RuntimeArgs = j.translatedIndices(op.RuntimeArgs)
	op.Tile = j.translatedTile(op.Tile)
	return op
}

// translatedTile is a tile with the tile ids of the first loop.
func (j *loopFuser) translatedTile(t Tile) Tile {
	if len(j.sub.With) == 0 {
		return t
	}
	t = slices.Clone(t)
	for k, d := range t {
		t[k] = j.translatedDim(d)
	}
	return t
}

// translatedIndices are the new ops of old ones.
func (j *loopFuser) translatedIndices(ops []int) []int {
	if ops == nil {
		return nil
	}
	list := make([]int, len(ops))
	for k, n := range ops {
		list[k] = j.newOps[n]
	}
	return list
}

// translatedDim is one dimension of a tile with the tile ids of the first loop.
func (j *loopFuser) translatedDim(d DimTile) DimTile {
	s := j.sub
	e := DimTile{
		Offset: s.Apply(d.Offset),
		Size:   s.Apply(d.Size),
		Stride: s.Apply(d.Stride),
		Lower:  s.Apply(d.Lower),
		Bound:  s.Apply(d.Bound),
	}
	for _, x := range d.Digits {
		e.Digits = append(e.Digits, j.translatedDim(x))
	}
	return e
}

// copyStep copies a step as it is to the end of the new program.
func (j *loopFuser) copyStep(s Step) {
	j.outer = append(j.outer, j.copiedStep(s))
}

// copiedStep copies a step, a loop with its body.
func (j *loopFuser) copiedStep(s Step) Step {
	if s.Loop == nil {
		return Step{Op: j.emit(s.Op, nil)}
	}
	l := &Loop{Dims: s.Loop.Dims}
	body, accumulators := s.Loop.Body, s.Loop.Accumulators
	prefix, statistics := len(body), 0
	if o := s.Loop.Online; o != nil { // what comes after the statistic reads it
		prefix, statistics = o.Prefix, 1
	}
	for _, x := range body[:prefix] {
		l.Body = append(l.Body, j.copiedStep(x))
	}
	for k, c := range accumulators {
		l.Accumulators = append(
			l.Accumulators, j.emit(c, l),
		)
		if k+1 == statistics {
			for _, x := range body[prefix:] {
				l.Body = append(l.Body, j.copiedStep(x))
			}
		}
	}
	l.Online = j.copiedOnline(s.Loop.Online)
	return Step{Loop: l}
}

// copiedOnline is what a loop that was fused before does, of which all ops exist; nil for
// another loop.
func (j *loopFuser) copiedOnline(o *Online) *Online {
	if o == nil {
		return nil
	}
	to := *o
	to.Statistic = j.newOps[o.Statistic]
	if o.Deviation >= 0 {
		to.Deviation = j.newOps[o.Deviation]
	}
	to.Rescaled = slices.Clone(o.Rescaled)
	for k := range to.Rescaled {
		to.Rescaled[k].Op = j.newOps[o.Rescaled[k].Op]
	}
	to.SquaredDeviations = j.translatedIndices(o.SquaredDeviations)
	return &to
}

// matchIterations reports whether a loop iterates over as many tiles of the
// same sizes as the first, and prepares sub to replace its tile ids and sizes.
func (j *loopFuser) matchIterations(l *Loop) bool {
	if len(l.Dims) != len(j.loop.Dims) {
		return false
	}
	j.sub = &index.Substitution{
		With: map[index.Expr]index.Expr{},
	}
	for k, d := range l.Dims {
		x := j.from.Space.Dims[d]
		y := j.from.Space.Dims[j.loop.Dims[k]]
		size, known := x.Size.Value()
		other, _ := y.Size.Value()
		if x.Extent != y.Extent || known && size != other {
			return false
		}
		if !known {
			j.sub.With[x.Size] = y.Size
		}
		_, one := x.Tid.Value()
		if !one && x.Tid != y.Tid {
			j.sub.With[x.Tid] = y.Tid
		}
	}
	return true
}

// tryFuse fuses a loop, or leaves everything as it was.
func (j *loopFuser) tryFuse(l *Loop) {
	saved := *j
	ops := len(j.to.Ops)
	loop := *j.loop
	online := *j.loop.Online
	j.newOps = slices.Clone(j.newOps)
	j.hoisted = maps.Clone(j.hoisted)
	j.factors = maps.Clone(j.factors)
	j.deferred = maps.Clone(j.deferred)
	j.duplicates = maps.Clone(j.duplicates)
	err := j.body(l.Body, &j.loop.Body, false)
	for _, c := range l.Accumulators {
		if err == nil {
			err = j.accumulator(c)
		}
	}
	if err != nil ||
		j.isSum && len(j.loop.Online.SquaredDeviations) == len(online.SquaredDeviations) {
		j.to.Ops = j.to.Ops[:ops]
		*j.loop = loop
		*saved.loop.Online = online
		*j = saved
	} else {
		j.fused[l] = true
		j.loop.Online.FusedDims = append(
			slices.Clip(j.loop.Online.FusedDims), l.Dims,
		)
	}
	j.sub = &index.Substitution{}
}

// body copies the steps of a loop's body; inner reports that they are inside of
// a loop within the fused ones. An inner loop all of whose accumulators already
// exist is dropped; one that exists in part cannot be copied, for the rest of
// it would need what only the other copy has.
func (j *loopFuser) body(steps []Step, into *[]Step, inner bool) error {
	for _, s := range steps {
		if s.Loop == nil {
			if err := j.addTerm(s.Op, nil, into, inner); err != nil {
				return err
			}
			continue
		}
		// A loop within one over the same tiles would move them on: a softmax of each row in a
		// sum over as many rows as it has columns.
		if slices.ContainsFunc(s.Loop.Dims, func(d int) bool {
			return slices.Contains(j.loop.Dims, d)
		}) {
			return errNotOnline
		}
		l := &Loop{Dims: s.Loop.Dims}
		if err := j.body(s.Loop.Body, &l.Body, true); err != nil {
			return err
		}
		for _, c := range s.Loop.Accumulators {
			if err := j.addTerm(c, l, into, inner); err != nil {
				return err
			}
		}
		switch {
		case len(l.Accumulators) == 0: // all of them existed
		case len(l.Accumulators) < len(s.Loop.Accumulators) ||
			len(l.Body) < len(s.Loop.Body):
			return errNotOnline // the rest would need what only the other copy has
		default:
			*into = append(*into, Step{Loop: l})
		}
	}
	return nil
}

// addTerm adds an op of a body, or finds the one that computes the same. around
// is the loop whose accumulator it is.
func (j *loopFuser) addTerm(
	n int, around *Loop, into *[]Step, inner bool,
) error {
	op := &j.from.Ops[n]
	if err := j.hoistOperands(slices.Concat(op.Args, op.RuntimeArgs)); err != nil {
		return err
	}
	if slices.ContainsFunc(op.RuntimeArgs, j.hasFactors) {
		return errNotOnline // a place cannot be corrected afterwards
	}
	f, newOp, err := j.factorsOf(op)
	if err != nil {
		return err
	}
	if j.factors[n] = f; newOp >= 0 { // nothing to compute but factors
		j.newOps[n] = newOp
		return nil
	}
	if len(f) > 0 && f[0].plain &&
		f[0].op != j.statistic {
		return nil
	}
	isDeviation := len(f) == 1 && f[0].deviation
	if isDeviation {
		*into = append(*into, Step{
			Op: j.shiftedStatistic(op),
		})
	}
	if existing := j.duplicate(n, around, inner); existing >= 0 {
		j.newOps[n] = existing
		return nil
	}
	at := j.emit(n, around)
	if isDeviation {
		j.orderDeviation(at)
	}
	key := duplicateKey{op.Instr, inner}
	j.duplicates[key] = append(
		slices.Clip(j.duplicates[key]), at,
	)
	if around != nil {
		around.Accumulators = append(around.Accumulators, at)
	} else {
		*into = append(*into, Step{Op: at})
	}
	return nil
}

// duplicate is the op of the fused loops that computes the same as old op n; −1
// where there is none.
func (j *loopFuser) duplicate(n int, around *Loop, inner bool) int {
	x := j.translatedOp(n)
	for _, k := range j.duplicates[duplicateKey{x.Instr, inner}] {
		y := &j.to.Ops[k]
		if x.Code == y.Code &&
			slices.Equal(x.Args, y.Args) &&
			slices.Equal(x.Perm, y.Perm) &&
			slices.EqualFunc(x.Tile, y.Tile, DimTile.Equal) &&
			(around == nil) == (y.Loop == nil) &&
			(around == nil || slices.Equal(around.Dims, y.Loop.Dims)) {
			return k
		}
	}
	return -1
}

// hoistOperands makes the ops that the fused loop reads available before it.
// Those that depend on a loop that follows are row numbers, which become
// factors; a rearranged maximum is computed within the loop.
func (j *loopFuser) hoistOperands(ops []int) error {
	for _, n := range ops {
		if j.newOps[n] >= 0 || len(j.factors[n]) > 0 {
			continue
		}
		op := &j.from.Ops[n]
		if op.Loop != nil { // of a loop that follows
			j.factors[n] = j.rowFactors(n)
			continue
		}
		err := j.hoistOperands(slices.Concat(op.Args, op.RuntimeArgs))
		if err != nil {
			return err
		}
		switch f := j.rearrangedMaximum(op); {
		case slices.ContainsFunc(op.RuntimeArgs, j.hasFactors):
			return errNotOnline
		case !slices.ContainsFunc(op.Args, j.hasFactors):
			sub := j.sub
			j.sub = &index.Substitution{}
			j.outer = append(j.outer, Step{Op: j.emit(n, nil)})
			j.sub, j.hoisted[n] = sub, true
		case f != nil:
			j.factors[n] = f
			j.loop.Body = append(j.loop.Body, Step{
				Op: j.emit(n, nil),
			})
		default:
			j.factors[n] = j.rowFactors(n)
		}
	}
	return nil
}

// hasFactors reports whether the value of an old op is a number of each row, or has one as
// a factor.
func (j *loopFuser) hasFactors(n int) bool { return len(j.factors[n]) > 0 }

// rearrangedMaximum is the factor of an op outside of loops that only
// rearranges the maximum; nil for others.
func (j *loopFuser) rearrangedMaximum(op *Op) []rowFactor {
	if len(op.Args) != 1 || j.isSum {
		return nil
	}
	switch f := j.factors[op.Args[0]]; {
	case len(f) != 1 || !f[0].plain ||
		f[0].op != j.statistic:
	case op.Code == hlo.OpReshape ||
		op.Code == hlo.OpCopy || op.Code == hlo.OpBroadcast:
		if f, err := rearranged(op, f); err == nil {
			return f
		}
	}
	return nil
}

// rowFactors is the factor of a value that is itself a number of each row.
func (j *loopFuser) rowFactors(n int) []rowFactor {
	dims := make([]int, len(j.from.Ops[n].Tile))
	for k := range dims {
		dims[k] = k
	}
	return []rowFactor{
		{op: n, dims: dims, plain: true},
	}
}

// accumulator adds an accumulator of a fused loop. Its factors have to run
// along dimensions that its tile shares with them; at most one of them is
// exp(−m).
func (j *loopFuser) accumulator(n int) error {
	op := &j.from.Ops[n]
	if err := j.hoistOperands(op.Args); err != nil {
		return err
	}
	list, err := j.reducedFactors(op)
	if err != nil {
		return err
	}
	scaled := false
	for _, f := range list {
		row := &j.from.Ops[f.op]
		for k, d := range f.dims {
			if d < 0 && f.op != j.statistic ||
				d >= 0 && !row.Tile[k].Equal(op.Tile[d]) {
				return errNotOnline
			}
		}
		switch {
		case f.squaredDeviation:
			j.deferred[n] = append(j.deferred[n], f)
			j.loop.Online.SquaredDeviations = append(
				slices.Clip(j.loop.Online.SquaredDeviations),
				len(j.to.Ops),
			)
		case f.op != j.statistic:
			j.deferred[n] = append(j.deferred[n], f)
		case scaled:
			return errNotOnline
		default:
			scaled = true
			j.loop.Online.Rescaled = append(j.loop.Online.Rescaled, Rescaled{
				len(j.to.Ops), f.dims,
			})
		}
	}
	j.loop.Accumulators = append(
		j.loop.Accumulators, j.emit(n, j.loop),
	)
	j.factors[n] = j.rowFactors(n)
	return nil
}

// addRemaining adds a step that comes after the fused loop: nothing but the
// deferred factors for a loop that was fused.
func (j *loopFuser) addRemaining(s Step) {
	switch {
	case s.Loop == nil && j.hoisted[s.Op]:
	case s.Loop == nil || !j.fused[s.Loop]:
		j.copyStep(s)
	default:
		for _, c := range s.Loop.Accumulators {
			for _, f := range j.deferred[c] {
				if f.squaredDeviation {
					j.recenter(c, f)
				} else {
					j.applyFactor(c, f)
				}
			}
		}
	}
}

// applyFactor multiplies an accumulator by a number of each row, or divides it.
func (j *loopFuser) applyFactor(n int, f rowFactor) {
	code := hlo.OpMultiply
	if f.divides {
		code = hlo.OpDivide
	}
	x := j.epilogueOf(n)
	j.newOps[n] = x.add(
		code, x.of.Shape.DType,
		j.newOps[n],
		x.broadcastRow(j.newOps[f.op], f.dims),
	)
}

// An epilogue adds ops on the tile of an accumulator after its loop.
type epilogue struct {
	j    *loopFuser
	tile Tile
	// of is the accumulator's instruction, whose shape the ops have.
	of *hlo.Instr
}

// epilogueOf is the epilogue of old accumulator n.
func (j *loopFuser) epilogueOf(n int) *epilogue {
	sum := j.to.Ops[j.newOps[n]]
	return &epilogue{j, sum.Tile, sum.Instr}
}

// add adds an op of element type d, whose other properties are the
// accumulator's.
func (x *epilogue) add(code hlo.Opcode, d hlo.DType, args ...int) int {
	i := &hlo.Instr{Shape: hlo.Shape{DType: d}}
	for _, a := range args {
		i.Operands = append(
			i.Operands, x.j.to.Ops[a].Instr,
		)
	}
	return x.put(code, i, args...)
}

// put adds an op with instruction i, which gets its name, code and extents.
func (x *epilogue) put(code hlo.Opcode, i *hlo.Instr, args ...int) int {
	i.Name = x.of.Name + "." + string(code)
	i.Op = code
	i.Shape.Dims = x.of.Shape.Dims
	at := x.j.add(Op{
		Instr: i,
		Code:  code,
		Tile:  x.tile,
		Args:  args,
	})
	x.j.outer = append(x.j.outer, Step{Op: at})
	return at
}

// broadcastRow is a number of each row, along the dimensions of the accumulator
// given, for every element and in the accumulator's type.
func (x *epilogue) broadcastRow(at int, along []int) int {
	by := x.j.to.Ops[at].Instr
	var dims []int64
	for _, d := range along {
		dims = append(dims, int64(d))
	}
	at = x.put(
		hlo.OpBroadcast,
		&hlo.Instr{
			Shape:    hlo.Shape{DType: by.Shape.DType},
			Operands: []*hlo.Instr{by},
			Attrs:    hlo.Attrs{Dimensions: dims},
		},
		at,
	)
	if by.Shape.DType != x.of.Shape.DType {
		at = x.add(hlo.OpConvert, x.of.Shape.DType, at)
	}
	return at
}
