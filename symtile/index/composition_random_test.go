package index

import (
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

var (
	randomChains = flag.Int("chains", 3000, "chains that TestRandomChains makes")
	randomSeed   = flag.Int64("chainseed", 1, "seed of TestRandomChains")
)

// TestRandomChains composes and simplifies chains as tensor programs make them
// (reshape, transpose, reverse, pad, slice, strides, broadcast, reduce, thread
// and tile maps) and compares with the maps as they are written, evaluated at
// points of the domain: the compiled results, the printed results, the ranges.
func TestRandomChains(t *testing.T) {
	rnd := rand.New(rand.NewSource(*randomSeed))
	checked := 0
	for n := range *randomChains {
		drafts := randomChain(rnd)
		c, err := NewComposition(drafts...)
		if err != nil {
			t.Fatalf("chain %d: %v", n, err)
		}
		points, diff := c.compare(rnd)
		if diff != "" {
			t.Errorf("chain %d of seed %d: %s\n%v", n, *randomSeed, diff, drafts)
		}
		checked += points
	}
	t.Logf("%d chains at %d points", *randomChains, checked)
}

// TestChainStaleMultiple: a bound of 3·A − 45·B, made before 3·A was known to be
// exact, is a bound of A − 15·B (chain 76754 of seed 9092026).
func TestChainStaleMultiple(t *testing.T) {
	v := func(name string, lo, hi int64) Variable { return Variable{Name: name, Lo: lo, Hi: hi} }
	c, err := NewComposition(
		MapSource{Dims: []Variable{v("d0", 0, 45)}, Results: []string{"d0 floordiv 7", "d0 mod 7"}},
		MapSource{Dims: []Variable{
			v("d1", 0, 89), v("d2", 0, 6),
		}, Results: []string{"(d1*7 + d2) floordiv 45", "((d1*7 + d2) floordiv 3) mod 15", "(d1*7 + d2) mod 3"}},
		MapSource{Dims: []Variable{
			v("d0", 0, 27),
			v("d1", 3, 14),
			v("d2", 0, 2),
		}, Results: []string{"(d1 - 3)*3", "d2"}},
		MapSource{Dims: []Variable{
			v("d1", 0, 35), v("d2", 2, 2),
		}, Results: []string{"d1", "(d2 - 2) floordiv 3"}},
		MapSource{
			Dims:    []Variable{v("d1", 0, 35), v("d2", 0, 0)},
			Results: []string{"d1 + d2"},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, diff := c.compare(rand.New(rand.NewSource(1))); diff != "" {
		t.Error(diff)
	}
}

// compare solves the composition and evaluates it at up to 200 points of its domain.
func (c *Composition) compare(rnd *rand.Rand) (points int, diff string) {
	c.Solve()
	if c.Err() != nil {
		return 0, c.Err().Error()
	}
	texts := MapSource{Dims: c.vars, Results: c.Texts()}
	printed, err := texts.parse()
	if err != nil {
		return 0, err.Error()
	}
	code := c.Compile()
	out, scratch := make([]int64, code.Results()), make([]int64, code.ScratchLen())
	for range 200 {
		v := make([]int64, len(c.vars))
		for i := range v {
			v[i] = c.vars[i].Lo +
				rnd.Int63n(c.vars[i].Hi-c.vars[i].Lo+1)
		}
		want, inside := c.naively(v)
		if holds := !c.empty() && c.domain.holds(v); holds != inside {
			return points, fmt.Sprintf("%v is in the domain: %v, was: %v", v, holds, inside)
		}
		if !inside {
			continue
		}
		points++
		code.Eval(v, out, scratch)
		written := printed.evaluate(v)
		for i, x := range want {
			if out[i] != x || written[printed.results[i]] != x {
				return points, fmt.Sprintf("result %d at %v: %d by code, %d by text %s, want %d",
					i, v, out[i], written[printed.results[i]], texts.Results[i], x)
			}
		}
	}
	return points, ""
}

// holds reports whether v satisfies what the domain states.
func (d *domain) holds(v []int64) bool {
	k := &compiler{
		r:    d.r,
		code: &Evaluator{vars: len(v), slots: len(v)},
		slot: map[int32]int32{},
	}
	for i := range v {
		k.slot[int32(i)] = int32(i)
	}
	value := func(x lin) int64 {
		if err := k.atoms(x); err != nil {
			panic(err)
		}
		k.code.outs = []span{k.sum(x)}
		out := []int64{0}
		k.code.Eval(v, out, make([]int64, k.code.slots))
		return out[0]
	}
	for i, w := range d.vars {
		if !w.in.Contains(v[i]) ||
			floorMod(v[i]-w.r, w.m) != 0 {
			return false
		}
	}
	for _, e := range d.eqs {
		if value(lin{e.terms, e.c}) != v[e.v] {
			return false
		}
	}
	for _, g := range d.r.facts.congr {
		if floorMod(value(g.sum)-g.r, g.m) != 0 {
			return false
		}
	}
	for i, f := range d.r.facts.sums {
		if !d.stated[i].Contains(value(f.sum)) {
			return false
		}
	}
	return true
}

// naively applies the maps one after the other; inside tells that v is in the
// domain of them all.
func (c *Composition) naively(v []int64) (out []int64, inside bool) {
	env := append([]int64(nil), v[:len(c.stages[0].in)]...)
	at := len(c.stages[0].in)
	for i := range c.stages {
		l := &c.stages[i]
		for j, in := range l.in {
			if !in.Contains(env[j]) {
				return nil, false
			}
		}
		env = append(env, v[at:at+l.ranges]...)
		at += l.ranges
		vals := l.evaluate(env)
		for _, b := range l.where {
			if !b.in.Contains(vals[b.x]) {
				return nil, false
			}
		}
		env = env[:0]
		for _, x := range l.results {
			env = append(env, vals[x])
		}
	}
	return env, true
}

// evaluate computes every operation as it is written.
func (s *dag) evaluate(env []int64) []int64 {
	vals := make([]int64, len(s.nodes))
	for i, op := range s.nodes {
		x, y := vals[op.x], vals[op.y]
		switch op.kind {
		case nodeConst:
			vals[i] = op.c
		case nodeVar:
			vals[i] = env[op.c]
		case nodeAdd:
			vals[i] = x + y
		case nodeSub:
			vals[i] = x - y
		case nodeMul:
			vals[i] = x * y
		case nodeDiv:
			vals[i] = FloorDiv(x, y)
		case nodeCeilDiv:
			vals[i] = -FloorDiv(-x, y)
		case nodeMod:
			vals[i] = floorMod(x, y)
		case nodeMin:
			vals[i] = min(x, y)
		case nodeMax:
			vals[i] = max(x, y)
		}
	}
	return vals
}

// A chainMaker adds maps to a chain; shape is what the last one indexes into.
type chainMaker struct {
	*rand.Rand
	shape []int64
	maps  []MapSource
}

var elementCounts = []int64{
	24, 30, 48, 60, 64, 72, 96, 105, 120,
	128, 144, 192, 240, 256, 360, 384, 512, 720,
	768, 1024, 1260, 2048, 4096,
}

func randomChain(rnd *rand.Rand) []MapSource {
	m := &chainMaker{Rand: rnd}
	if rnd.Intn(4) == 0 {
		return m.nested()
	}
	m.shape = m.factored(elementCounts[rnd.Intn(len(elementCounts))])
	switch rnd.Intn(4) {
	case 0:
		m.threads()
	case 1:
		m.tiles()
	}
	for range 1 + rnd.Intn(6) {
		m.step()
	}
	if rnd.Intn(2) == 0 || len(m.maps) == 0 {
		m.add(nil, []string{linear(m.shape, m.names())})
	}
	return m.maps
}

// nested are one to three maps of quotients and remainders of each other, by
// divisors that have nothing to do with each other; constraints bound some of the
// very expressions.
func (m *chainMaker) nested() []MapSource {
	names := numbered("d", 1+m.Intn(3))
	var maps []MapSource
	for range 1 + m.Intn(3) {
		d := MapSource{}
		for _, name := range names {
			v := Variable{Name: name, Lo: int64(m.Intn(9) - 4)}
			v.Hi = v.Lo + int64(m.Intn(60))
			d.Dims = append(d.Dims, v)
		}
		for range 1 + m.Intn(3) {
			text := m.nestedText(names, 1+m.Intn(4))
			d.Results = append(d.Results, text)
		}
		if m.Intn(3) == 0 {
			i := m.Intn(len(d.Results))
			x := d.Results[i]
			in := Interval{Hi: int64(m.Intn(4))}
			text := fmt.Sprintf("(%s) - %d", x, m.Intn(3))
			d.Where = []BoundSource{{text, in}}
		}
		maps = append(maps, d)
		names = numbered("d", len(d.Results))
	}
	return maps
}

// nestedText is an expression of some depth.
func (m *chainMaker) nestedText(names []string, depth int) string {
	if depth == 0 {
		return names[m.Intn(len(names))]
	}
	x := m.nestedText(names, depth-1)
	n := 2 + m.Intn(30)
	switch m.Intn(8) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s) mod %d", x, n)
	case 3, 4, 5:
		return fmt.Sprintf("(%s) floordiv %d", x, n)
	case 6:
		return fmt.Sprintf("%d - (%s)", n, x)
	}
	y := m.nestedText(names, depth-1)
	return fmt.Sprintf("(%s) * %d + (%s)", x, n, y)
}

// factored is a random shape with n elements.
func (m *chainMaker) factored(n int64) []int64 {
	shape := []int64{1, 1, 1, 1}[:1+m.Intn(4)]
	for p := int64(2); n > 1; p++ {
		for ; n%p == 0; n /= p {
			shape[m.Intn(len(shape))] *= p
		}
	}
	return append([]int64(nil), shape...)
}

func (m *chainMaker) names() []string { return numbered("d", len(m.shape)) }

// add appends a map from the shape as it is to what results index into.
func (m *chainMaker) add(shape []int64, results []string) *MapSource {
	d := MapSource{Results: results}
	for i, n := range m.shape {
		d.Dims = append(d.Dims, Variable{Name: fmt.Sprintf("d%d", i), Hi: n - 1})
	}
	m.maps, m.shape = append(m.maps, d), shape
	return &m.maps[len(m.maps)-1]
}

func elementCount(shape []int64) int64 {
	n := int64(1)
	for _, x := range shape {
		n *= x
	}
	return n
}

// linear is the row-major index, split its inverse.
func linear(shape []int64, index []string) string {
	var terms []string
	stride := elementCount(shape)
	for i, n := range shape {
		stride /= n
		terms = append(terms, fmt.Sprintf("(%s) * %d", index[i], stride))
	}
	return strings.Join(terms, " + ")
}

func split(shape []int64, index string) (out []string) {
	stride := elementCount(shape)
	for i, n := range shape {
		stride /= n
		text := fmt.Sprintf("(%s) floordiv %d", index, stride)
		if i > 0 {
			text = fmt.Sprintf("(%s) mod %d", text, n)
		}
		out = append(out, text)
	}
	return out
}

func (m *chainMaker) threads() {
	n := elementCount(m.shape)
	block := []int64{128, 64, 32, 8, 3}[m.Intn(5)]
	if n <= block {
		return
	}
	shape := m.shape
	m.shape = []int64{block, (n + block - 1) / block}
	index := fmt.Sprintf("d1 * %d + d0", block)
	d := m.add(shape, split(shape, index))
	if n%block != 0 {
		d.Where = []BoundSource{{index, Interval{0, n - 1}}}
	}
}

func (m *chainMaker) tiles() {
	k := m.Intn(len(m.shape))
	shape := m.shape
	for _, size := range []int64{16, 8, 6, 4, 3, 2} {
		if shape[k]%size == 0 && shape[k] > size {
			m.shape = append([]int64(nil), shape...)
			m.shape[k] /= size
			names := m.names()
			names[k] = fmt.Sprintf("%s * %d + s0", names[k], size)
			m.add(shape, names).Ranges = []Variable{{Name: "s0", Hi: size - 1}}
			return
		}
	}
}

func (m *chainMaker) step() {
	names, k := m.names(), m.Intn(len(m.shape))
	next := append([]int64(nil), m.shape...)
	if elementCount(next) > 100000 {
		return
	}
	switch m.Intn(12) {
	case 0, 1, 2, 3: // reshape
		next = m.factored(elementCount(next))
		m.add(next, split(next, linear(m.shape, names)))
	case 4, 5: // transpose
		out := make([]string, len(names))
		for i, p := range m.Perm(len(names)) {
			next[p], out[p] = m.shape[i], names[i]
		}
		m.add(next, out)
	case 6: // reverse
		names[k] = fmt.Sprintf("%d - %s", next[k]-1, names[k])
		m.add(next, names)
	case 7: // slice, from the operand's side
		start, stride := int64(m.Intn(4)), int64(1+m.Intn(3))
		names[k] = fmt.Sprintf("%s * %d + %d", names[k], stride, start)
		next[k] = (next[k]-1)*stride + start + 1 + int64(m.Intn(3))
		m.add(next, names)
	case 8, 9:
		m.pad(k, names, next)
	case 10: // broadcast
		if len(next) > 1 {
			m.add(
				append(next[:k:k], next[k+1:]...),
				append(names[:k:k], names[k+1:]...),
			)
		}
	case 11: // reduce
		n := int64(2 + m.Intn(6))
		shape := append(append(next[:k:k], n), next[k:]...)
		m.add(shape, append(
			append(names[:k:k], "s0"), names[k:]...,
		)).Ranges = []Variable{
			{Name: "s0", Hi: n - 1},
		}
	}
}

// pad reads a dimension padded at the front, sometimes also between elements.
func (m *chainMaker) pad(k int, names []string, next []int64) {
	low, gap := int64(1+m.Intn(3)), int64(1+m.Intn(3))
	n := (next[k]-1-low)/gap + 1
	if next[k] <= low {
		return
	}
	next[k] = n
	from := fmt.Sprintf("%s - %d", names[k], low)
	names[k] = fmt.Sprintf("(%s) floordiv %d", from, gap)
	d := m.add(next, names)
	d.Dims[k].Lo, d.Dims[k].Hi = low, low+(n-1)*gap
	if gap > 1 {
		d.Where = []BoundSource{{fmt.Sprintf("(%s) mod %d", from, gap), Interval{}}}
	}
}
