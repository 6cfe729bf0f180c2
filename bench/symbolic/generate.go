package main

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// A maker makes chains; shape is what the last map of the chain indexes into.
type maker struct {
	// Every choice comes from it, so that a seed makes the same chains everywhere.
	*rand.Rand
	// Sizes of the dimensions that the next map starts from.
	shape []int64
	// The maps so far.
	maps []chainMap
}

// elementCounts are the sizes of the tensors that chains start with.
var elementCounts = []int64{24, 48, 60, 64, 90, 96, 105, 120, 128, 144, 192, 240, 256, 336, 360, 384, 512, 720, 768, 1024, 1260, 2048}

// Chains longer than maxWritten operations as they are written, which substitution
// makes, are not used: evaluating them would take most of the time.
const maxWritten = 20000

// makeChain makes chain number n: one in four of unrelated quotients, unless only
// one kind is asked for.
func makeChain(rnd *rand.Rand, n int, kind string) (chain, *composed) {
	for {
		m := &maker{Rand: rnd}
		name := "tensor"
		if kind == "nested" || kind == "" && n%4 == 3 {
			name = "nested"
			m.nested()
		} else {
			m.tensor()
		}
		c := chain{ID: fmt.Sprintf("%s%d", name, n), Maps: m.maps}
		if len(m.maps) == 0 {
			continue
		}
		what, err := c.compose()
		if err != nil {
			panic(err) // the texts are our own
		}
		if what.written() > 0 && what.written() < maxWritten &&
			len(what.points(2000, newRand(1))) > 0 {
			return c, what
		}
	}
}

// written counts the operations of the results as they are composed.
func (c *composed) written() (n int) {
	for _, x := range c.results {
		n += x.written()
	}
	return n
}

// tensor makes a chain as tensor programs do.
func (m *maker) tensor() {
	m.shape = m.factored(elementCounts[m.Intn(len(elementCounts))])
	switch m.Intn(4) {
	case 0:
		m.threads()
	case 1:
		m.tiles()
	}
	for range 1 + m.Intn(5) {
		if elements(m.shape) <= 20000 {
			m.step()
		}
	}
	if m.Intn(2) == 0 {
		m.add(nil, []string{linear(m.shape, m.names())})
	}
}

// factored is a random shape with n elements.
func (m *maker) factored(n int64) []int64 {
	shape := []int64{1, 1, 1, 1}[:1+m.Intn(4)]
	// Every prime factor goes to one of the dimensions.
	for p := int64(2); n > 1; p++ {
		for ; n%p == 0; n /= p {
			shape[m.Intn(len(shape))] *= p
		}
	}
	return slices.Clone(shape)
}

// names are those of the dimensions.
func (m *maker) names() (out []string) {
	for i := range m.shape {
		out = append(out, fmt.Sprint("d", i))
	}
	return out
}

// add appends a map from the shape, which becomes next.
func (m *maker) add(next []int64, results []string) *chainMap {
	d := chainMap{Results: results, Ranges: []variable{}, Where: []bound{}}
	for i, n := range m.shape {
		d.Dims = append(d.Dims, variable{fmt.Sprint("d", i), 0, n - 1})
	}
	m.maps = append(m.maps, d)
	m.shape = next
	return &m.maps[len(m.maps)-1]
}

// elements is the number of elements of a shape.
func elements(shape []int64) int64 {
	n := int64(1)
	for _, x := range shape {
		n *= x
	}
	return n
}

// linear is the row-major index of an element.
func linear(shape []int64, at []string) string {
	var terms []string
	stride := elements(shape)
	for i, n := range shape {
		stride /= n
		terms = append(terms, fmt.Sprintf("(%s) * %d", at[i], stride))
	}
	return strings.Join(terms, " + ")
}

// split is the inverse of linear.
func split(shape []int64, at string) (out []string) {
	stride := elements(shape)
	for i, n := range shape {
		stride /= n
		text := fmt.Sprintf("(%s) floordiv %d", at, stride)
		if i > 0 {
			text = fmt.Sprintf("(%s) mod %d", text, n)
		}
		out = append(out, text)
	}
	return out
}

// threads maps a thread and a block to an element.
func (m *maker) threads() {
	n := elements(m.shape)
	// Small and odd blocks leave threads without an element.
	block := []int64{128, 32, 16, 8, 5, 4, 3}[m.Intn(7)]
	if n <= block {
		return
	}
	shape := m.shape
	// The last block may be cut, which is a constraint.
	m.shape = []int64{block, (n + block - 1) / block}
	at := fmt.Sprintf("d1 * %d + d0", block)
	d := m.add(shape, split(shape, at))
	if n%block != 0 {
		d.Where = []bound{{at, 0, n - 1}}
	}
}

// tiles makes tiles of a dimension.
func (m *maker) tiles() {
	k := m.Intn(len(m.shape))
	shape := m.shape
	for _, size := range []int64{16, 8, 4, 6, 3, 2} {
		if shape[k]%size == 0 &&
			shape[k] > size {
			m.shape = slices.Clone(shape)
			m.shape[k] /= size
			names := m.names()
			names[k] = fmt.Sprintf("d%d * %d + s0", k, size)
			m.add(shape, names).Ranges = []variable{{"s0", 0, size - 1}}
			return
		}
	}
}

// step adds the map of a random operation.
func (m *maker) step() {
	names, k := m.names(), m.Intn(len(m.shape))
	next := slices.Clone(m.shape)
	switch m.Intn(10) {
	case 0, 1, 2, 3: // reshape
		next = m.factored(elements(next))
		m.add(
			next,
			split(next, linear(m.shape, names)),
		)
	case 4, 5: // transpose
		out := make([]string, len(names))
		for i, p := range m.Perm(len(names)) {
			next[p], out[p] = m.shape[i], names[i]
		}
		m.add(next, out)
	case 6: // reverse
		names[k] = fmt.Sprintf("%d - d%d", next[k]-1, k)
		m.add(next, names)
	case 7: // slice, from the operand's side
		start, stride := int64(m.Intn(4)), int64(1+m.Intn(3))
		names[k] = fmt.Sprintf("d%d * %d + %d", k, stride, start)
		next[k] = (next[k]-1)*stride + start + 1 + int64(m.Intn(3))
		m.add(next, names)
	case 8: // pad, from the padded side
		m.pad(k, names, next)
	case 9: // broadcast or reduce
		m.resize(k, names, next)
	}
}

// pad reads a dimension padded at the front, sometimes also between elements.
func (m *maker) pad(k int, names []string, next []int64) {
	low, gap := int64(1+m.Intn(3)), int64(1+m.Intn(3))
	if next[k] <= low {
		return
	}
	n := (next[k]-1-low)/gap + 1
	next[k] = n
	from := fmt.Sprintf("d%d - %d", k, low)
	names[k] = fmt.Sprintf("(%s) floordiv %d", from, gap)
	d := m.add(next, names)
	d.Dims[k].Lo, d.Dims[k].Hi = low, low+(n-1)*gap
	if gap > 1 {
		d.Where = []bound{{fmt.Sprintf("(%s) mod %d", from, gap), 0, 0}}
	}
}

// resize drops a dimension, as a broadcast does, or adds one that is reduced.
func (m *maker) resize(k int, names []string, next []int64) {
	if m.Intn(2) == 0 &&
		len(next) > 1 {
		m.add(
			slices.Delete(next, k, k+1),
			slices.Delete(names, k, k+1),
		)
		return
	}
	n := int64(2 + m.Intn(6))
	d := m.add(slices.Insert(next, k, n), slices.Insert(names, k, "s0"))
	d.Ranges = []variable{{"s0", 0, n - 1}}
}

// nested makes one to three maps of quotients and remainders of each other by
// unrelated divisors; constraints bound some of the very expressions.
func (m *maker) nested() {
	dims := 1 + m.Intn(3)
	for range 1 + m.Intn(3) {
		d := chainMap{Ranges: []variable{}, Where: []bound{}}
		for i := range dims {
			lo := int64(m.Intn(9) - 4)
			d.Dims = append(d.Dims, variable{fmt.Sprint("d", i), lo, lo + int64(m.Intn(60))})
		}
		for range 1 + m.Intn(3) {
			d.Results = append(
				d.Results,
				m.quotients(dims, 1+m.Intn(4)),
			)
		}
		// One map in three has a constraint on one of its results.
		if m.Intn(3) == 0 {
			x := d.Results[m.Intn(len(d.Results))]
			d.Where = []bound{{fmt.Sprintf("%s - %d", x, m.Intn(3)), 0, int64(m.Intn(4))}}
		}
		m.maps = append(m.maps, d)
		dims = len(d.Results)
	}
}

// quotients is an expression of some depth.
func (m *maker) quotients(dims, depth int) string {
	if depth == 0 {
		return fmt.Sprint("d", m.Intn(dims))
	}
	// Remainders and quotients in three of eight cases each, then a sign, then a sum.
	x := m.quotients(dims, depth-1)
	n := 2 + m.Intn(30)
	switch m.Intn(8) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s) mod %d", x, n)
	case 3, 4, 5:
		return fmt.Sprintf("(%s) floordiv %d", x, n)
	case 6:
		return fmt.Sprintf("%d - (%s)", n, x)
	}
	y := m.quotients(dims, depth-1)
	return fmt.Sprintf("(%s) * %d + (%s)", x, n, y)
}
