package symtile

import (
	"errors"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A joiner makes the program with joined loops.
type joiner struct {
	from    *Program
	to      *Program
	first   int  // step of the first loop
	max     int  // the maximum, or sum
	sums    bool // it is a sum
	loop    *Loop
	outer   []Step // before the loop, then after it
	at      []int  // the new op of each old one, −1 without
	early   map[int]bool
	factors map[int][]rowFactor // by old op
	late    map[int][]rowFactor // by closer: what its sum is multiplied by
	twins   map[twinKey][]int
	joined  map[*Loop]bool
	sub     *Substitution // of tile ids of the loop at hand
}

// A twinKey finds ops that may be the same: inner ones are inside of a loop in
// the joined ones.
type twinKey struct {
	instr *hlo.Instr
	inner bool
}

var errNotOnline = errors.New("the terms are neither homogeneous in exp(-max) nor squares of x less a number")

func newJoiner(p *Program, first int) *joiner {
	l, to := p.Body[first].Loop, *p
	to.Ops = nil
	j := &joiner{
		from: p, to: &to, first: first, max: l.Closers[0], at: make([]int, len(p.Ops)), early: map[int]bool{},
		factors: map[int][]rowFactor{}, late: map[int][]rowFactor{}, twins: map[twinKey][]int{}, joined: map[*Loop]bool{l: true}, sub: &Substitution{},
		loop: &Loop{Dims: l.Dims, Online: &Online{Less: -1, Joined: [][]int{l.Dims}}}, sums: summing(p, l),
	}
	for n := range j.at {
		j.at[n] = -1
	}
	return j
}

// join is the new program, nil where no sums follow that are what they have to be.
func (j *joiner) join() *Program {
	for _, s := range j.from.Body[:j.first] {
		j.keep(s)
	}
	if j.body(j.from.Body[j.first].Loop.Body, &j.loop.Body, false) != nil || j.ready(j.from.Ops[j.max].Args) != nil {
		return nil
	}
	o := j.loop.Online
	o.Of, o.Before = j.emit(j.max, j.loop), len(j.loop.Body)
	j.loop.Closers = []int{o.Of}
	j.factors[j.max] = j.row(j.max)
	rest := j.from.Body[j.first+1:]
	for _, s := range rest {
		if s.Loop != nil && j.alongside(s.Loop) {
			j.try(s.Loop)
		}
	}
	if len(o.Scaled)+len(o.Squares) == 0 {
		return nil
	}
	j.outer = append(j.outer, Step{Loop: j.loop})
	for _, s := range rest {
		j.rest(s)
	}
	return j.program()
}

// program puts the parts together.
func (j *joiner) program() *Program {
	j.to.Body, j.to.Roots, j.to.Runtime = j.outer, slices.Clone(j.from.Roots), slices.Clone(j.from.Runtime)
	for k := range j.to.Roots {
		j.to.Roots[k].Op = j.at[j.to.Roots[k].Op]
	}
	for k := range j.to.Runtime {
		j.to.Runtime[k].Op = j.at[j.to.Runtime[k].Op]
	}
	return j.to
}

// emit adds old op n, whose arguments are there.
func (j *joiner) emit(n int, around *Loop) int {
	op := j.image(n)
	op.Loop = around
	j.at[n] = j.add(op)
	return j.at[n]
}

func (j *joiner) add(op Op) int {
	j.to.Ops = append(j.to.Ops, op)
	return len(j.to.Ops) - 1
}

// image is old op n with the arguments and tile ids of the new program.
func (j *joiner) image(n int) Op {
	op := j.from.Ops[n]
	op.Args, op.Needs = j.images(op.Args), j.images(op.Needs)
	op.Tile = j.dims(op.Tile)
	return op
}

func (j *joiner) dims(t Tile) Tile {
	if len(j.sub.With) == 0 {
		return t
	}
	t = slices.Clone(t)
	for k, d := range t {
		t[k] = j.dim(d)
	}
	return t
}

func (j *joiner) images(ops []int) []int {
	if ops == nil {
		return nil
	}
	list := make([]int, len(ops))
	for k, n := range ops {
		list[k] = j.at[n]
	}
	return list
}

func (j *joiner) dim(d DimTile) DimTile {
	s := j.sub
	e := DimTile{Offset: s.Apply(d.Offset), Size: s.Apply(d.Size), Stride: s.Apply(d.Stride), Lower: s.Apply(d.Lower), Bound: s.Apply(d.Bound)}
	for _, x := range d.Digits {
		e.Digits = append(e.Digits, j.dim(x))
	}
	return e
}

// keep copies a step as it is to the end of what there is.
func (j *joiner) keep(s Step) { j.outer = append(j.outer, j.copied(s)) }

func (j *joiner) copied(s Step) Step {
	if s.Loop == nil {
		return Step{Op: j.emit(s.Op, nil)}
	}
	l := &Loop{Dims: s.Loop.Dims}
	for _, x := range s.Loop.Body {
		l.Body = append(l.Body, j.copied(x))
	}
	for _, c := range s.Loop.Closers {
		l.Closers = append(l.Closers, j.emit(c, l))
	}
	return Step{Loop: l}
}

// alongside says whether a loop walks as many tiles of the same sizes as the
// first, and has ids and sizes replaced by those of the first.
func (j *joiner) alongside(l *Loop) bool {
	if len(l.Dims) != len(j.loop.Dims) {
		return false
	}
	j.sub = &Substitution{With: map[Expr]Expr{}}
	for k, d := range l.Dims {
		x, y := j.from.Space.Dims[d], j.from.Space.Dims[j.loop.Dims[k]]
		size, known := x.Size.Value()
		if other, _ := y.Size.Value(); x.Extent != y.Extent || known && size != other {
			return false
		}
		if !known {
			j.sub.With[x.Size] = y.Size
		}
		if _, one := x.Tid.Value(); !one && x.Tid != y.Tid {
			j.sub.With[x.Tid] = y.Tid
		}
	}
	return true
}

// try joins a loop, or leaves all as it was.
func (j *joiner) try(l *Loop) {
	saved := *j
	ops, loop, online := len(j.to.Ops), *j.loop, *j.loop.Online
	j.at, j.early, j.factors, j.late, j.twins = slices.Clone(j.at), maps.Clone(j.early), maps.Clone(j.factors), maps.Clone(j.late), maps.Clone(j.twins)
	err := j.body(l.Body, &j.loop.Body, false)
	for _, c := range l.Closers {
		if err == nil {
			err = j.closer(c)
		}
	}
	if err != nil || j.sums && len(j.loop.Online.Squares) == len(online.Squares) {
		j.to.Ops, *j.loop, *saved.loop.Online = j.to.Ops[:ops], loop, online
		*j = saved
	} else {
		j.joined[l] = true
		j.loop.Online.Joined = append(slices.Clip(j.loop.Online.Joined), l.Dims)
	}
	j.sub = &Substitution{}
}

// body adds the body of a loop, whose steps may be in a loop inside of the
// joined ones.
func (j *joiner) body(steps []Step, into *[]Step, inner bool) error {
	for _, s := range steps {
		if s.Loop == nil {
			if err := j.term(s.Op, nil, into, inner); err != nil {
				return err
			}
			continue
		}
		l := &Loop{Dims: s.Loop.Dims}
		if err := j.body(s.Loop.Body, &l.Body, true); err != nil {
			return err
		}
		for _, c := range s.Loop.Closers {
			if err := j.term(c, l, into, inner); err != nil {
				return err
			}
		}
		switch {
		case len(l.Closers) == 0: // all of them were there
		case len(l.Closers) < len(s.Loop.Closers) || len(l.Body) < len(s.Loop.Body):
			return errNotOnline // it would need what only the other loop has
		default:
			*into = append(*into, Step{Loop: l})
		}
	}
	return nil
}

// term adds an op of a body, or finds the one that computes the same; around is
// the loop whose closer it is.
func (j *joiner) term(n int, around *Loop, into *[]Step, inner bool) error {
	op := &j.from.Ops[n]
	if err := j.ready(slices.Concat(op.Args, op.Needs)); err != nil {
		return err
	}
	f, made, err := j.factorsOf(op)
	if err != nil {
		return err
	}
	if j.factors[n] = f; made >= 0 { // nothing to compute but factors
		j.at[n] = made
		return nil
	}
	if len(f) > 0 && f[0].spread && f[0].op != j.max {
		return nil
	}
	less := len(f) == 1 && f[0].less
	if less {
		*into = append(*into, Step{Op: j.near(op)})
	}
	if twin := j.twin(n, around, inner); twin >= 0 {
		j.at[n] = twin
		return nil
	}
	at := j.emit(n, around)
	if less {
		j.ordered(at)
	}
	key := twinKey{op.Instr, inner}
	j.twins[key] = append(slices.Clip(j.twins[key]), at)
	if around != nil {
		around.Closers = append(around.Closers, at)
	} else {
		*into = append(*into, Step{Op: at})
	}
	return nil
}

// twin is the op of the joined loops that computes the same as old op n, or −1.
func (j *joiner) twin(n int, around *Loop, inner bool) int {
	x := j.image(n)
	for _, k := range j.twins[twinKey{x.Instr, inner}] {
		y := &j.to.Ops[k]
		if x.Code == y.Code && slices.Equal(x.Args, y.Args) && slices.Equal(x.Perm, y.Perm) && slices.EqualFunc(x.Tile, y.Tile, DimTile.Equal) &&
			(around == nil) == (y.Loop == nil) && (around == nil || slices.Equal(around.Dims, y.Loop.Dims)) {
			return k
		}
	}
	return -1
}

// ready has ops that are read in the loop made before it, or says that they are
// numbers of rows.
func (j *joiner) ready(ops []int) error {
	for _, n := range ops {
		if j.at[n] >= 0 || len(j.factors[n]) > 0 {
			continue
		}
		op := &j.from.Ops[n]
		if op.Loop != nil { // of a loop that follows
			j.factors[n] = j.row(n)
			continue
		}
		if err := j.ready(slices.Concat(op.Args, op.Needs)); err != nil {
			return err
		}
		switch f := j.repeats(op); {
		case !slices.ContainsFunc(op.Args, func(a int) bool { return len(j.factors[a]) > 0 }):
			sub := j.sub
			j.sub = &Substitution{}
			j.outer = append(j.outer, Step{Op: j.emit(n, nil)})
			j.sub, j.early[n] = sub, true
		case f != nil:
			j.factors[n] = f
			j.loop.Body = append(j.loop.Body, Step{Op: j.emit(n, nil)})
		default:
			j.factors[n] = j.row(n)
		}
	}
	return nil
}

// repeats is the factor of an op outside of loops that only arranges the
// maximum anew; nil for others.
func (j *joiner) repeats(op *Op) []rowFactor {
	if len(op.Args) != 1 || j.sums {
		return nil
	}
	switch f := j.factors[op.Args[0]]; {
	case len(f) != 1 || !f[0].spread || f[0].op != j.max:
	case op.Code == hlo.OpReshape || op.Code == hlo.OpCopy || op.Code == hlo.OpBroadcast:
		if f, err := moved(op, f); err == nil {
			return f
		}
	}
	return nil
}

// row is the factor of a value that is numbers of rows.
func (j *joiner) row(n int) []rowFactor {
	dims := make([]int, len(j.from.Ops[n].Tile))
	for k := range dims {
		dims[k] = k
	}
	return []rowFactor{{op: n, dims: dims, spread: true}}
}

// closer adds a closer of a joined loop.
func (j *joiner) closer(n int) error {
	op := &j.from.Ops[n]
	if err := j.ready(op.Args); err != nil {
		return err
	}
	list, err := j.summed(op)
	if err != nil {
		return err
	}
	scaled := false
	for _, f := range list {
		row := &j.from.Ops[f.op]
		for k, d := range f.dims {
			if d < 0 && f.op != j.max || d >= 0 && !row.Tile[k].Equal(op.Tile[d]) {
				return errNotOnline
			}
		}
		switch {
		case f.square:
			j.late[n] = append(j.late[n], f)
			j.loop.Online.Squares = append(slices.Clip(j.loop.Online.Squares), len(j.to.Ops))
		case f.op != j.max:
			j.late[n] = append(j.late[n], f)
		case scaled:
			return errNotOnline
		default:
			scaled = true
			j.loop.Online.Scaled = append(j.loop.Online.Scaled, Scaled{len(j.to.Ops), f.dims})
		}
	}
	j.loop.Closers = append(j.loop.Closers, j.emit(n, j.loop))
	j.factors[n] = j.row(n)
	return nil
}

// rest does a step after the joined loop.
func (j *joiner) rest(s Step) {
	switch {
	case s.Loop == nil && j.early[s.Op]:
	case s.Loop == nil || !j.joined[s.Loop]:
		j.keep(s)
	default:
		for _, c := range s.Loop.Closers {
			for _, f := range j.late[c] {
				if f.square {
					j.recenter(c, f)
				} else {
					j.apply(c, f)
				}
			}
		}
	}
}

// apply multiplies a sum by a number of each row.
func (j *joiner) apply(n int, f rowFactor) {
	code := hlo.OpMultiply
	if f.divides {
		code = hlo.OpDivide
	}
	x := j.correction(n)
	j.at[n] = x.add(code, x.of.Shape.DType, j.at[n], x.spread(j.at[f.op], f.dims))
}

// A correction is ops on the tile of a sum, after its loop.
type correction struct {
	j    *joiner
	tile Tile
	of   *hlo.Instr
}

func (j *joiner) correction(n int) *correction {
	sum := j.to.Ops[j.at[n]]
	return &correction{j, sum.Tile, sum.Instr}
}

// add adds an op whose shape is the sum's, but for the type.
func (x *correction) add(code hlo.Opcode, d hlo.DType, args ...int) int {
	i := &hlo.Instr{Shape: hlo.Shape{DType: d}}
	for _, a := range args {
		i.Operands = append(i.Operands, x.j.to.Ops[a].Instr)
	}
	return x.put(code, i, args...)
}

func (x *correction) put(code hlo.Opcode, i *hlo.Instr, args ...int) int {
	i.Name, i.Op, i.Shape.Dims = x.of.Name+"."+string(code), code, x.of.Shape.Dims
	at := x.j.add(Op{Instr: i, Code: code, Tile: x.tile, Args: args})
	x.j.outer = append(x.j.outer, Step{Op: at})
	return at
}

// spread is a number of rows, whose dimensions are those of the sum, for every
// element and in the sum's type.
func (x *correction) spread(at int, along []int) int {
	by := x.j.to.Ops[at].Instr
	var dims []int64
	for _, d := range along {
		dims = append(dims, int64(d))
	}
	at = x.put(hlo.OpBroadcast, &hlo.Instr{Shape: hlo.Shape{DType: by.Shape.DType}, Operands: []*hlo.Instr{by}, Attrs: hlo.Attrs{Dimensions: dims}}, at)
	if by.Shape.DType != x.of.Shape.DType {
		at = x.add(hlo.OpConvert, x.of.Shape.DType, at)
	}
	return at
}
