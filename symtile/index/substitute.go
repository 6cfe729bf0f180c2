package index

import "slices"

// Vars lists the variables of e, each once and as an Expr, in the order in which
// the ring came to know them.
func (e Expr) Vars() []Expr {
	defer e.lock().Unlock()
	seen := e.r.atomsUnder(e.lin(), nil)
	var out []Expr
	for _, id := range seen {
		if e.r.atoms[id].kind == atomVar {
			out = append(out, e.r.wrap(e.r.atomForm(id)))
		}
	}
	return out
}

// atomsUnder adds the atoms x is made of, at any depth, to the ascending list
// seen. Ids ascend from the inside out, so that the list is in an order in which
// atoms can be computed.
func (r *Ring) atomsUnder(x lin, seen []int32) []int32 {
	for _, t := range x.t {
		seen = r.atomsOf(t.a, seen)
	}
	return seen
}

// atomsOf adds atom id and the atoms it is made of to seen.
func (r *Ring) atomsOf(id int32, seen []int32) []int32 {
	i, ok := slices.BinarySearch(seen, id)
	if ok {
		return seen
	}
	seen = slices.Insert(seen, i, id)
	a := r.atoms[id]
	switch a.kind {
	case atomDiv, atomMinZero, atomMod, atomFloorDiv:
		seen = r.atomsUnder(r.lin(a.y), seen)
	case atomQuot, atomCeilDiv, atomModForm, atomMin, atomMax, atomFormProduct:
		seen = r.atomsUnder(r.lin(a.y), seen)
		seen = r.atomsUnder(r.lin(a.z), seen)
	case atomProduct:
		for _, f := range r.factors(&a) {
			seen = r.atomsOf(f, seen)
		}
	}
	return seen
}

// Subst replaces variables simultaneously. Keys are variables of e's ring, and
// so are the variables of the values, which all belong to one ring.
func (e Expr) Subst(with map[Expr]Expr) Expr {
	s := Substitution{With: with}
	return s.Apply(e)
}

// A Substitution applies one set of replacements to several expressions of one
// ring, remembering the parts they share. Keys of With are variables; constants
// among the keys, which variables of one value are, are ignored. With must not
// change after the first Apply.
type Substitution struct {
	With map[Expr]Expr
	done map[int32]lin // by atom of the source ring
}

// Apply returns e with the variables in With replaced.
func (s *Substitution) Apply(e Expr) Expr {
	if s.done == nil {
		s.done = make(map[int32]lin, len(s.With))
		for k, v := range s.With {
			if x := k.lin(); len(x.t) == 1 {
				s.done[x.t[0].a] = e.r.of(v)
			}
		}
	}
	x := e.r.rebuild(e.r, e.lin(), s.done)
	return e.r.wrap(x)
}

// Import returns e, of any ring, as an expression of r.
func (r *Ring) Import(e Expr) Expr {
	if e.r == r {
		return e
	}
	x := r.rebuild(e.r, e.lin(), map[int32]lin{})
	return r.wrap(x)
}

// rebuild constructs x of ring from in r, by the constructors, so that the result
// is in normal form for what r knows; done maps atoms of from to forms of r and
// is extended.
func (r *Ring) rebuild(from *Ring, x lin, done map[int32]lin) lin {
	out := constForm(x.c)
	for _, t := range x.t {
		y := r.rebuildAtom(from, t.a, done)
		out = r.addmul(out, t.k, y)
	}
	return out
}

// rebuildAtom is rebuild for one atom.
func (r *Ring) rebuildAtom(from *Ring, id int32, done map[int32]lin) lin {
	if x, ok := done[id]; ok {
		return x
	}
	a := from.atoms[id]
	operand := func(id int32) lin {
		return r.rebuild(from, from.lin(id), done)
	}
	var x lin
	switch a.kind {
	case atomVar:
		x = r.variable(from.vars[a.y])
	case atomDiv:
		x = r.div(operand(a.y), a.d)
	case atomQuot:
		y := operand(a.y)
		x = r.quot(y, operand(a.z))
	case atomMinZero:
		x = r.min0(operand(a.y))
	case atomProduct:
		x = constForm(1)
		for _, f := range from.factors(&a) {
			x = r.mul(x, r.rebuildAtom(from, f, done))
		}
	}
	done[id] = x
	return x
}
