package index

import "slices"

// Vars lists the variables of e in a fixed order, each as an Expr.
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
// seen. Ids ascend from the inside out.
func (r *Ring) atomsUnder(x lin, seen []int32) []int32 {
	for _, t := range x.t {
		seen = r.atomsOf(t.a, seen)
	}
	return seen
}

func (r *Ring) atomsOf(id int32, seen []int32) []int32 {
	i, ok := slices.BinarySearch(seen, id)
	if ok {
		return seen
	}
	seen = slices.Insert(seen, i, id)
	a := r.atoms[id]
	switch a.kind {
	case atomDiv, atomMinZero, atomMod, atomFloorDiv:
		seen = r.atomsUnder(r.forms[a.y].lin, seen)
	case atomQuot, atomCeilDiv, atomModForm, atomMin, atomMax, atomFormProduct:
		seen = r.atomsUnder(
			r.forms[a.z].lin,
			r.atomsUnder(r.forms[a.y].lin, seen),
		)
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

// A Substitution applies one set of replacements to several expressions,
// remembering the parts they share.
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
	return e.r.wrap(e.r.rebuild(
		e.r, e.lin(), s.done,
	))
}

// Import returns e, of any ring, as an expression of r.
func (r *Ring) Import(e Expr) Expr {
	if e.r == r {
		return e
	}
	return r.wrap(r.rebuild(
		e.r, e.lin(), map[int32]lin{},
	))
}

// rebuild constructs x of ring from in r; done maps atoms of from to forms of r.
func (r *Ring) rebuild(from *Ring, x lin, done map[int32]lin) lin {
	out := constForm(x.c)
	for _, t := range x.t {
		out = r.addmul(
			out, t.k, r.rebuildAtom(from, t.a, done),
		)
	}
	return out
}

func (r *Ring) rebuildAtom(from *Ring, id int32, done map[int32]lin) lin {
	if x, ok := done[id]; ok {
		return x
	}
	a := from.atoms[id]
	var x lin
	switch a.kind {
	case atomVar:
		x = r.variable(from.vars[a.y])
	case atomDiv:
		x = r.div(
			r.rebuild(from, from.forms[a.y].lin, done),
			a.d,
		)
	case atomQuot:
		y := r.rebuild(from, from.forms[a.y].lin, done)
		x = r.quot(
			y,
			r.rebuild(from, from.forms[a.z].lin, done),
		)
	case atomMinZero:
		x = r.min0(r.rebuild(
			from, from.forms[a.y].lin, done,
		))
	case atomProduct:
		x = constForm(1)
		for i := range a.z {
			x = r.mul(
				x,
				r.rebuildAtom(from, from.factorPool[a.y+i], done),
			)
		}
	}
	done[id] = x
	return x
}
