package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A reducer applies the computation of a reduce to many pairs at once: the
// scalar instructions are strips, of machine code where there is some.
//
// Along kept dimensions it folds as written, one element of every result after
// the other. A run along reduced dimensions becomes one element by joining
// neighbours again and again, so that the order stays and only the association
// changes, which a reduce leaves open; that element is then folded in.
type reducer struct {
	left, right []*value // what it joins, in scratch of its own
	results     []*value // distinct from these
	joins       []strip
	outs, args  []*value
	strip       int64 // elements that it joins at a time
}

// reducer makes one of the computation; nil where its instructions are not all
// done in strips.
func (b *block) reducer(op symtile.Op, c *closer) *reducer {
	to := op.Instr.Attrs.ToApply
	n := len(c.outs)
	if len(to.Params) != 2*n {
		return nil
	}
	r := &reducer{outs: c.outs, args: c.full, strip: b.l.strip}
	made := map[*hlo.Instr]*value{}
	for k, p := range to.Params {
		v := b.l.stripOfScalars(p)
		made[p] = v
		c.temps = append(c.temps, v)
		if k < n {
			r.left = append(r.left, v)
		} else {
			r.right = append(r.right, v)
		}
	}
	group, ok := b.reducerBody(to, made, c)
	if !ok || !r.finish(to, made) {
		return nil
	}
	r.joins = b.l.joins(group, r.results)
	return r
}

// stripOfScalars is a strip of what a scalar instruction gives.
func (l *lowering) stripOfScalars(i *hlo.Instr) *value {
	return l.value("%"+i.Name, classOf(i.Shape.DType), splats, l.strip)
}

// reducerBody makes the strips of the instructions between the parameters and
// the root.
func (b *block) reducerBody(to *hlo.Computation, made map[*hlo.Instr]*value, c *closer) (group []*instr, ok bool) {
	for _, i := range to.Instrs {
		switch {
		case i.Op == hlo.OpParameter, i.Op == hlo.OpTuple && i == to.Root:
			continue
		case i.Shape.Rank() > 0 || !i.Shape.DType.IsArray() || i.Shape.DType.IsComplex():
			return nil, false
		case i.Op == hlo.OpConstant || len(i.Operands) == 0:
			return nil, false
		}
		p := &pure{op: symtile.Op{Code: i.Op, Instr: i}, out: b.l.stripOfScalars(i)}
		for _, o := range i.Operands {
			p.args = append(p.args, made[o])
		}
		x := &instr{name: string(i.Op), outs: []*value{p.out}, same: p.args, pure: p}
		if x.strip = stripOfAny(p); x.strip == nil {
			return nil, false
		}
		made[i] = p.out
		c.temps = append(c.temps, p.out)
		group = append(group, x)
	}
	return group, true
}

func stripOfAny(p *pure) strip {
	switch p.out.class {
	case classF32:
		return stripOf[float32](p.op, p.out, p.args)
	case classF64:
		return stripOf[float64](p.op, p.out, p.args)
	case classI32:
		return stripOf[int32](p.op, p.out, p.args)
	}
	return stripOf[int64](p.op, p.out, p.args)
}

// finish finds the results: values of their own, of the classes of the outputs.
func (r *reducer) finish(to *hlo.Computation, made map[*hlo.Instr]*value) bool {
	roots := []*hlo.Instr{to.Root}
	if to.Root.Op == hlo.OpTuple {
		roots = to.Root.Operands
	}
	if len(roots) != len(r.outs) {
		return false
	}
	taken := map[*value]bool{}
	for k, i := range roots {
		v := made[i]
		if v == nil || taken[v] || i.Op == hlo.OpParameter {
			return false
		}
		for _, u := range []*value{v, r.left[k], r.right[k], r.args[k]} {
			if u.class != r.outs[k].class {
				return false
			}
		}
		taken[v] = true
		r.results = append(r.results, v)
	}
	return true
}

// joins are the strips of a reducer: one machine function, or loops in Go.
func (l *lowering) joins(group []*instr, results []*value) (list []strip) {
	run, whole := []*pure(nil), l.machine
	for _, i := range group {
		run = append(run, i.pure)
		whole = whole && inStrips(i.pure.op) && classBytes[i.outs[0].class] == classBytes[group[0].outs[0].class]
	}
	if whole {
		m := newMachine(run, nil)
		m.writes = results
		if f, ok := m.compile(l); ok {
			return []strip{m.strip(f)}
		}
	}
	for _, i := range group {
		list = append(list, i.strip)
	}
	return list
}

func (r *reducer) accumulate(f *folding) step {
	return func(w *worker) {
		f.each(w, func(from, to, n, step int64) {
			for n > 0 {
				part := min(n, r.strip)
				if step == 0 {
					r.row(w, from, to, part)
				} else {
					r.column(w, from, to, part)
				}
				from, to, n = from+part, to+part*step, n-part
			}
		})
	}
}

// column folds n elements into n.
func (r *reducer) column(w *worker, from, to, n int64) {
	for k, v := range r.outs {
		size := classBytes[v.class]
		duplicate(w.base[r.left[k].id], unsafe.Add(w.base[v.id], to*size), n*size)
		duplicate(w.base[r.right[k].id], unsafe.Add(w.base[r.args[k].id], from*size), n*size)
	}
	r.join(w, n, to)
}

// join folds the strips and stores the results at to.
func (r *reducer) join(w *worker, n, to int64) {
	r.run(w, n)
	for k, v := range r.outs {
		size := classBytes[v.class]
		duplicate(unsafe.Add(w.base[v.id], to*size), w.base[r.results[k].id], n*size)
	}
}

func (r *reducer) run(w *worker, n int64) {
	for _, f := range r.joins {
		f(w, 0, n)
	}
}

// row folds n elements, at most a strip, into one.
func (r *reducer) row(w *worker, from, to, n int64) {
	for k, v := range r.args {
		r.divide(w, k, unsafe.Add(w.base[v.id], from*classBytes[v.class]), n)
	}
	for n > 1 {
		r.run(w, n/2)
		for k, v := range r.results {
			if n%2 == 1 { // the last has no neighbour: it was left behind the others
				moveOne(w, v, n/2, r.left[k], n/2)
			}
		}
		n = n/2 + n%2
		for k, v := range r.results {
			r.divide(w, k, w.base[v.id], n)
		}
	}
	for k, v := range r.outs {
		moveOne(w, r.right[k], 0, r.left[k], 0)
		moveOne(w, r.left[k], 0, v, to)
	}
	r.join(w, 1, to)
}

// divide moves n elements to the left and right, in turns.
func (r *reducer) divide(w *worker, k int, src unsafe.Pointer, n int64) {
	left, right := w.base[r.left[k].id], w.base[r.right[k].id]
	if classBytes[r.left[k].class] == 4 {
		pairs := int64(0)
		if f := pairDivider(); f != nil && n >= 16 {
			pairs = n / 2 &^ 7
			f.Call(unsafe.Pointer(&turnsArgs{pairs, src, left, right}))
		}
		rest := n - 2*pairs
		inTurns(after[uint32](left, pairs, rest-rest/2), after[uint32](right, pairs, rest/2), after[uint32](src, 2*pairs, rest))
	} else {
		inTurns(after[uint64](left, 0, n-n/2), after[uint64](right, 0, n/2), after[uint64](src, 0, n))
	}
}

// after are n elements behind the first skip at p.
func after[T uint32 | uint64](p unsafe.Pointer, skip, n int64) []T {
	return unsafe.Slice((*T)(p), skip+n)[skip:]
}

func inTurns[T uint32 | uint64](left, right, src []T) {
	for k := range right {
		two := src[:2]
		left[k], right[k] = two[0], two[1]
		src = src[2:]
	}
	if len(src) > 0 {
		left[len(right)] = src[0]
	}
}

func duplicate(dst, src unsafe.Pointer, bytes int64) {
	copy(unsafe.Slice((*byte)(dst), bytes), unsafe.Slice((*byte)(src), bytes))
}

// moveOne copies element from of src to element at of dst.
func moveOne(w *worker, dst *value, at int64, src *value, from int64) {
	size := classBytes[dst.class]
	duplicate(unsafe.Add(w.base[dst.id], at*size), unsafe.Add(w.base[src.id], from*size), size)
}
