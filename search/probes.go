package search

// Probes are the directions that the observations have taken: for each parameter values
// below and above that of the first point, or, where there is no order, each value.
type probes struct {
	space *Space
	first []int
	taken [][]bool // of each parameter: its directions
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
