package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Parameter is one choice of a plan and the values that it has.
type Parameter struct {
	// Name is unique in a space.
	Name string
	// Values as text, in their order where they have one.
	Values []string
	// Numbers are the values as numbers, in the same order; nil where they are names.
	Numbers []float64
	// Unordered says that no value is nearer to one than to another.
	Unordered bool
}

// A Space is a finite set of legal points.
type Space struct {
	Parameters []Parameter
	// Points hold for each parameter the index of its value. No two are equal.
	Points [][]int

	index     map[string]int
	positions [][]float64 // of the values of each parameter, in [0, 1]
}

// NewSpace makes a space of its parameters and legal points. It refuses points that
// are equal, and indices that no value has.
func NewSpace(parameters []Parameter, points [][]int) (*Space, error) {
	s := &Space{
		Parameters: parameters,
		Points:     points,
		index:      make(map[string]int, len(points)),
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("the space has no points")
	}
	for _, p := range parameters {
		if p.Numbers != nil && len(p.Numbers) != len(p.Values) {
			return nil, fmt.Errorf(
				"parameter %s has %d values and %d numbers",
				p.Name,
				len(p.Values),
				len(p.Numbers),
			)
		}
		s.positions = append(s.positions, p.positions())
	}
	for k, x := range points {
		if err := s.checkPoint(x); err != nil {
			return nil, fmt.Errorf("point %d: %w", k+1, err)
		}
		if _, twice := s.index[key(x)]; twice {
			return nil, fmt.Errorf("point %d is there twice", k+1)
		}
		s.index[key(x)] = k
	}
	return s, nil
}

// checkPoint refuses a point that is not of the space's parameters.
func (s *Space) checkPoint(x []int) error {
	if len(x) != len(s.Parameters) {
		return fmt.Errorf(
			"%d values, of %d parameters",
			len(x),
			len(s.Parameters),
		)
	}
	for i, v := range x {
		if v < 0 || v >= len(s.Parameters[i].Values) {
			return fmt.Errorf(
				"%s has no value %d",
				s.Parameters[i].Name,
				v,
			)
		}
	}
	return nil
}

// key is a point as the key of a map: two bytes a parameter.
func key(x []int) string {
	b := make([]byte, 0, 2*len(x))
	for _, v := range x {
		b = append(
			b,
			byte(v>>8),
			byte(v),
		)
	}
	return string(b)
}

// Find is the index of the point with these values, and whether it is legal.
func (s *Space) Find(x []int) (int, bool) {
	k, legal := s.index[key(x)]
	return k, legal
}

// positions are where the values of a parameter lie between 0 and 1: positive numbers
// by their logarithm, others by their rank.
func (p Parameter) positions() []float64 {
	out := make([]float64, len(p.Values))
	last := float64(max(1, len(out)-1))
	for k := range out {
		out[k] = float64(k) / last
	}
	if p.Unordered || len(out) < 2 || p.Numbers == nil {
		return out
	}
	low := slices.Min(p.Numbers)
	high := slices.Max(p.Numbers)
	if low <= 0 {
		return out
	}
	for k, v := range p.Numbers {
		out[k] = math.Log(v/low) / math.Log(high/low)
	}
	return out
}

// neighbours are the legal points that differ from x in exactly one parameter, the
// nearest values of each parameter first.
func (s *Space) neighbours(x []int) []int {
	var out []int
	for i := range x {
		out = append(out, s.line(x, i)...)
	}
	return out
}

// line are the legal points that differ from x in parameter i alone, nearest first.
func (s *Space) line(x []int, i int) []int {
	y := slices.Clone(x)
	var out []int
	values := len(s.Parameters[i].Values)
	for d := 1; d < values; d++ {
		for _, v := range []int{x[i] - d, x[i] + d} {
			y[i] = v
			if k, legal := s.Find(y); v >= 0 && v < values && legal {
				out = append(out, k)
			}
		}
	}
	return out
}

// pairs are the legal points that differ from x in exactly two parameters, each by one
// step of its order, or by any where it has none.
func (s *Space) pairs(x []int) []int {
	var out []int
	for i := range x {
		for _, v := range s.steps(i, x[i]) {
			for j := range i {
				for _, w := range s.steps(j, x[j]) {
					y := slices.Clone(x)
					y[i], y[j] = v, w
					if k, legal := s.Find(y); legal {
						out = append(out, k)
					}
				}
			}
		}
	}
	return out
}

// steps are the values of parameter i that are next to v.
func (s *Space) steps(i, v int) []int {
	var out []int
	p := s.Parameters[i]
	for w := range p.Values {
		if w != v && (p.Unordered || max(w-v, v-w) == 1) {
			out = append(out, w)
		}
	}
	return out
}

// centre is the point to begin with where nothing is known: ordered parameters at the
// upper middle of their ranges, which is drawn, and parameters with two values at the
// second, which turns a feature on.
func (s *Space) centre(rng *rand.Rand) int {
	all := make([]int, len(s.Points))
	for k := range all {
		all[k] = k
	}
	return s.nearest(s.target(rng), all)
}

// target is where centre looks.
func (s *Space) target(rng *rand.Rand) []float64 {
	target := make([]float64, len(s.Parameters))
	for i, p := range s.Parameters {
		target[i] = middleLow + (middleHigh-middleLow)*rng.Float64()
		if len(p.Values) == 2 {
			target[i] = 1
		}
	}
	return target
}

// The upper middle of a range: people offer values around what they choose by hand, and
// larger ones do well more often than smaller ones, but the largest need more than a
// device has.
const (
	middleLow  = 0.5
	middleHigh = 0.8
)

// nearest is the point of some with the least sum of squared distances of its positions to
// the target; the first one of several.
func (s *Space) nearest(target []float64, of []int) int {
	best, least := of[0], math.Inf(1)
	for _, k := range of {
		d := 0.0
		for i, v := range s.Points[k] {
			e := s.positions[i][v] - target[i]
			d += e * e
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}
