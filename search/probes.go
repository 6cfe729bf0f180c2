package search

// Probes are the directions that the observations have taken: for each parameter values
// below and above that of the first point, or, where there is no order, each value.
type probes struct {
	space *Space
	first []int
	taken [][]bool // of each parameter: its directions
	there [][]bool // the same: a point takes them
}

// newProbes are no probes yet.
func newProbes(s *Space) *probes {
	p := &probes{space: s}
	for _, parameter := range s.Parameters {
		n := 2
		if parameter.Unordered {
			n = len(parameter.Values)
		}
		p.taken = append(
			p.taken,
			make([]bool, n),
		)
	}
	return p
}

// direction of parameter i that a point takes; −1 for that of the first point.
func (p *probes) direction(i int, x []int) int {
	switch v := x[i]; {
	case v == p.first[i]:
		return -1
	case p.space.Parameters[i].Unordered:
		return v
	case v > p.first[i]:
		return 1
	}
	return 0
}

// take notes the directions of a point.
func (p *probes) take(x []int) {
	if p.first == nil {
		p.first = x
	}
	for i := range x {
		if d := p.direction(i, x); d >= 0 {
			p.taken[i][d] = true
		}
	}
}

// fresh are how many directions a point takes that none has taken.
func (p *probes) fresh(x []int) int {
	n := 0
	for i := range x {
		if d := p.direction(i, x); d >= 0 && !p.taken[i][d] {
			n++
		}
	}
	return n
}

// left are how many directions none has taken that a point takes.
func (p *probes) left() int {
	if p.first == nil {
		return 0
	}
	if p.there == nil {
		p.there = p.offered()
	}
	n := 0
	for i, all := range p.there {
		for d, there := range all {
			if there && !p.taken[i][d] {
				n++
			}
		}
	}
	return n
}

// offered are the directions that the points of the space take from the first one.
func (p *probes) offered() [][]bool {
	out := newProbes(p.space).taken
	for _, x := range p.space.Points {
		for i := range x {
			if d := p.direction(i, x); d >= 0 {
				out[i][d] = true
			}
		}
	}
	return out
}
