package index

// min0 is min(x, 0), the only shape of min inside.
func (r *Ring) min0(x lin) lin {
	in := r.ranged(x)
	switch {
	case in.Hi <= 0:
		r.fired[ruleMinRange]++
		return x
	case in.Lo >= 0:
		r.fired[ruleMinRange]++
		return lin{}
	}
	if x.t[0].k < 0 {
		r.fired[ruleMinSign]++
		return r.addmul(x, 1, r.min0(r.scale(x, -1)))
	}
	if g := GCD(x.content(), x.c); g > 1 {
		r.fired[ruleMinGCD]++
		return r.scale(r.min0(r.shrink(x, g)), g)
	}
	id, had := r.atom(atomMin, r.form(x), -1, 0)
	if !had {
		r.atoms[id].in = in.Min(Interval{})
	}
	return r.one(id)
}

// min is min(x, y) = y + min(x − y, 0).
func (r *Ring) min(x, y lin) lin {
	return r.addmul(y, 1, r.min0(r.addmul(x, -1, y)))
}

// max is max(x, y) = x − min(x − y, 0).
func (r *Ring) max(x, y lin) lin {
	return r.addmul(
		x,
		-1,
		r.min0(r.addmul(x, -1, y)),
	)
}
