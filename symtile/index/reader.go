package index

// Reading an expression (its text, its sharp range) makes new forms. They go to
// a reader: a ring of its own, filled afresh with a copy of the expression, so
// that reading never changes what is built later, nor in which order. A ring has
// one reader, under the lock of Expr.lock.

// reader returns an emptied ring for reading; the readers' lock is held.
func (r *Ring) reader() *Ring {
	if r.reading == nil {
		r.reading = NewRing()
	}
	r.reading.Reset()
	r.reading.forgetFired()
	return r.reading
}

// copyInto copies x as it is, atoms in the same order, into the empty ring to.
func (r *Ring) copyInto(to *Ring, x lin) lin {
	ids := r.atomsUnder(x, nil)
	at := make(map[int32]int32, len(ids))
	for _, id := range ids {
		a := r.atoms[id]
		switch a.kind {
		case atomVar:
			to.vars = append(to.vars, r.vars[a.y])
			a.y = int32(len(to.vars) - 1)
		case atomProduct:
			fs := r.factors(&a)
			a.y = int32(len(to.factorPool))
			for _, f := range fs {
				to.factorPool = append(to.factorPool, at[f])
			}
		case atomQuot:
			a.y = to.form(mapped(to, r.lin(a.y), at))
			a.z = to.form(mapped(to, r.lin(a.z), at))
		default:
			a.y = to.form(mapped(to, r.lin(a.y), at))
		}
		at[id], _ = to.intern(a)
	}
	return mapped(to, x, at)
}

// mapped is x with atoms renumbered by at, with terms of to.
func mapped(to *Ring, x lin, at map[int32]int32) lin {
	t := to.alloc(len(x.t))
	for i := range x.t {
		t[i] = term{
			x.t[i].k,
			at[x.t[i].a],
		}
	}
	return lin{t, x.c}
}

// readRange is the sharp range of form id, kept for the next time.
func (r *Ring) readRange(id int32) Interval {
	x := r.lin(id)
	in := r.looseRange(x)
	if len(x.t) > 1 {
		to := r.reader()
		in = in.Meet(to.sharpRange(r.copyInto(to, x)))
		r.noteFired(to)
	}
	r.forms[id].in, r.forms[id].ranged = in, true
	return in
}

// Range bounds e over the ranges of its variables. It holds every value of e and
// may be wider than the truth. Ends that int64 cannot hold are its least and
// greatest value.
func (e Expr) Range() Interval {
	defer e.lock().Unlock()
	if f := &e.r.forms[e.id]; f.ranged {
		return f.in
	}
	return e.r.readRange(e.id)
}

// Congruence returns m ≥ 0 and r with e ≡ r (mod m) always; m = 0 means that e is
// the constant r, m = 1 that nothing is known.
func (e Expr) Congruence() (m, r int64) {
	defer e.lock().Unlock()
	return e.r.congruence(e.lin())
}
