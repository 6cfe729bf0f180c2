package index

// Reading back what extraction chose: a text must mean the expression it was
// made from, in the same normal form. Where the chosen form reads as another
// one, the normal form itself is written.

// readsBack reports whether the chosen way to write form y, built again, is y.
func (r *Ring) readsBack(y int32) bool {
	v := reviver{r: r, done: map[int32]lin{}}
	x, ok := v.form(y)
	return ok && x.equal(r.forms[y].lin)
}

// maxRevived bounds the forms built again for one text.
const maxRevived = 500

type reviver struct {
	r    *Ring
	done map[int32]lin // by form
}

// form builds the chosen form of y again.
func (v *reviver) form(y int32) (lin, bool) {
	if x, had := v.done[y]; had {
		return x, true
	}
	if len(v.done) > maxRevived {
		return lin{}, false
	}
	chosen, _ := v.r.cheapest(y)
	out, ok := konst(chosen.c), true
	for _, t := range chosen.t {
		x, fine := v.atom(t.a)
		out = v.r.addmul(out, t.k, x)
		ok = ok && fine
	}
	v.done[y] = out
	return out, ok
}

func (v *reviver) atom(id int32) (lin, bool) {
	r := v.r
	a := v.r.atoms[id]
	switch a.kind {
	case atomVar:
		return r.one(id), true
	case atomMul:
		return v.product(a)
	}
	x, ok := v.form(a.y)
	z, fine := lin{}, true
	switch a.kind {
	case atomQuot, atomModBy, atomLeast, atomMost, atomTimes, atomCeilBy:
		z, fine = v.form(a.z)
	}
	return v.build(a, x, z), ok && fine
}

func (v *reviver) build(a atom, x, z lin) lin {
	r := v.r
	switch a.kind {
	case atomDiv, atomRaw:
		return r.div(x, a.d)
	case atomMod:
		return r.mod(x, a.d)
	case atomQuot:
		return r.anyDiv(x, z)
	case atomCeilBy:
		return r.scale(r.anyDiv(r.scale(x, -1), z), -1)
	case atomModBy:
		return r.anyMod(x, z)
	case atomMin:
		return r.min0(x)
	case atomLeast:
		return r.min(x, z)
	case atomMost:
		return r.max(x, z)
	}
	return r.mul(x, z)
}

func (v *reviver) product(a atom) (lin, bool) {
	out, ok := konst(1), true
	for i := range a.z {
		x, fine := v.atom(v.r.facs[a.y+i])
		out = v.r.mul(out, x)
		ok = ok && fine
	}
	return out, ok
}
