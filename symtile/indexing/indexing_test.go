package indexing

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// TestIndexingIsWhatIsRead compares the maps of random instructions with what
// their definitions read, element by element: both directions, as they come and
// composed and simplified.
func TestIndexingIsWhatIsRead(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 60
	}
	for _, name := range slices.Sorted(maps.Keys(sampled)) {
		t.Run(name, func(t *testing.T) {
			c := comparison{tight: name == "scan"} // of a computation that uses everything
			for seed := range n {
				s := sampler{rand.New(rand.NewPCG(uint64(seed), 7))}
				c.instruction(t, s, sampled[name](s))
				if t.Failed() {
					return
				}
			}
			t.Logf("%d relations: %d equal, %d within a bound, %d unknown", c.equal+c.over+c.unknown, c.equal, c.over, c.unknown)
		})
	}
}

// A comparison counts relations by how well they are known. Bounds are not
// compared unless they should be tight.
type comparison struct {
	equal, over, unknown int
	tight                bool
}

func (c *comparison) instruction(t *testing.T, s sampler, text string) {
	m, err := hlo.Parse("sample", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	root := m.Entry.Root
	data := map[*hlo.Instr][]int64{}
	for _, p := range m.Entry.Params {
		if p.Shape.DType == hlo.S32 {
			for range p.Shape.Elements() {
				data[p] = append(data[p], int64(s.IntN(9)-2))
			}
		}
	}
	read, ok := newTrace(root, data)
	if !ok {
		t.Fatalf("%s is not traced", root.Op)
	}
	r := index.NewRing()
	backward, forward := OperandMaps(r, root, 0), UserMaps(r, root, 0)
	params, err := ParamMaps(r, m.Entry, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	e := evaluator{root: root, data: data}
	for k, o := range root.Operands {
		if read.pairs[k] == nil {
			continue
		}
		c.relation(
			t, text, "OperandMaps", k, read.pairs[k],
			backward[k], e.backward(backward[k]),
		)
		c.relation(
			t, text, "UserMaps", k, read.pairs[k], forward[k],
			e.forward(forward[k], o.Shape.Dims),
		)
		if usedOnce(root, o) {
			at := slices.Index(m.Entry.Params, o)
			c.relation(
				t, text, "ParamMaps", k, read.pairs[k],
				params[at], e.backward(params[at]),
			)
			out, err := OutputMaps(r, m.Entry, at)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			c.relation(
				t, text, "OutputMaps", k, read.pairs[k], out[0],
				e.forward(out[0], o.Shape.Dims),
			)
		}
	}
}

// usedOnce reports whether o is an operand of in once.
func usedOnce(in, o *hlo.Instr) bool {
	n := 0
	for _, other := range in.Operands {
		if other == o {
			n++
		}
	}
	return n == 1
}

func (c *comparison) relation(
	t *testing.T, text, what string, operand int,
	want map[[2]string]bool, ms []index.Map,
	got map[[2]string]bool,
) {
	t.Helper()
	over := false
	for _, m := range ms {
		if m.State == index.StateUndefined {
			if m.Why == "" {
				t.Errorf("%s of operand %d are undefined without a reason\n%s", what, operand, text)
			}
			c.unknown++
			return
		}
		over = over || m.Approximate
	}
	for pair := range want {
		if !got[pair] {
			t.Errorf("%s of operand %d: result %v is made from %v, which is not in\n%v\n%s", what, operand, keyPoint(pair[0]), keyPoint(pair[1]), ms, text)
			return
		}
	}
	if over && !c.tight {
		c.over++
		return
	}
	c.equal++
	for pair := range got {
		if !want[pair] {
			t.Errorf("%s of operand %d: result %v is not made from %v, as say\n%v\n%s", what, operand, keyPoint(pair[0]), keyPoint(pair[1]), ms, text)
			return
		}
	}
}

// An evaluator evaluates maps with the values of run-time variables.
type evaluator struct {
	root *hlo.Instr
	data map[*hlo.Instr][]int64
}

// positions are those of the replica that asks; just one without collectives.
func (e evaluator) positions() int64 {
	if g := e.root.Attrs.ReplicaGroups; len(g) > 0 {
		return int64(len(g[0]))
	}
	n := int64(0)
	for _, pair := range e.root.Attrs.SourceTargets {
		n = max(n, pair[0]+1, pair[1]+1)
	}
	return max(n, 1)
}

func (e evaluator) collective() bool {
	return len(e.root.Attrs.ReplicaGroups)+len(e.root.Attrs.SourceTargets) > 0
}

func (e evaluator) backward(ms []index.Map) map[[2]string]bool {
	pairs := map[[2]string]bool{}
	for asking := range e.positions() {
		eachIndex(arrayOf(e.root.Shape, 0).Dims, func(out []int64) {
			for _, m := range ms {
				e.results(m, out, asking, func(at []int64) {
					pairs[[2]string{pointKey(e.place(out, asking)), pointKey(at)}] = true
				})
			}
		})
	}
	return pairs
}

func (e evaluator) forward(ms []index.Map, dims []int64) map[[2]string]bool {
	pairs := map[[2]string]bool{}
	for asking := range e.positions() {
		eachIndex(dims, func(in []int64) {
			for _, m := range ms {
				e.results(m, in, asking, func(at []int64) {
					pairs[[2]string{pointKey(at), pointKey(e.place(in, asking))}] = true
				})
			}
		})
	}
	return pairs
}

func (e evaluator) place(at []int64, position int64) []int64 {
	if e.collective() {
		return onReplica(at, position)
	}
	return at
}

// results calls f for every result of m at dimensions at.
func (e evaluator) results(m index.Map, at []int64, asking int64, f func([]int64)) {
	if m.State != index.StateKnown {
		return
	}
	env := map[index.Expr]int64{}
	for k, d := range m.Dims {
		if !d.Range().Contains(at[k]) {
			return
		}
		env[d] = at[k]
	}
	sizes := make([]int64, len(m.Ranges))
	for k, s := range m.Ranges {
		sizes[k] = s.Range().Len()
	}
	eachIndex(sizes, func(s []int64) {
		for k, v := range m.Ranges {
			env[v] = v.Range().Lo + s[k]
		}
		if e.runtime(m, asking, env) && m.Where.Holds(env) {
			out := []int64{}
			results := m.Results
			if m.Replicated() {
				results = append(slices.Clone(results), m.Replica)
			}
			for _, x := range results {
				out = append(out, x.Eval(env))
			}
			if e.collective() && !m.Replicated() {
				out = append(out, asking)
			}
			f(out)
		}
	})
}

// runtime enters the values of the run-time variables; false when one is outside
// its range.
func (e evaluator) runtime(m index.Map, asking int64, env map[index.Expr]int64) bool {
	for _, x := range m.Runtime {
		delete(env, x)
	}
	for _, x := range m.Runtime {
		v, ok := x.Variable()
		if !ok {
			continue
		}
		if value, ok := e.value(x, asking, env); !ok ||
			value < v.Lo || value > v.Hi {
			return false
		}
	}
	return true
}

// value enters the value of run-time variable x, after those its place needs.
func (e evaluator) value(
	x index.Expr, asking int64, env map[index.Expr]int64,
) (n int64, ok bool) {
	if n, ok := env[x]; ok {
		return n, true
	}
	v, _ := x.Variable()
	defer func() { env[x] = n }()
	if role := sourceOf(v.Origin).Replica; role != NoReplica {
		for _, pair := range e.root.Attrs.SourceTargets {
			if role == PermuteSource && pair[1] == asking {
				return pair[0], true
			}
			if role == PermuteTarget && pair[0] == asking {
				return pair[1], true
			}
		}
		return asking, role == GroupPosition
	}
	at := make([]int64, len(v.Origin.At))
	for k, a := range v.Origin.At {
		for _, u := range a.Vars() {
			if w, _ := u.Variable(); w.Origin != nil {
				e.value(u, asking, env)
			}
		}
		at[k] = a.Eval(env)
	}
	from := sourceOf(v.Origin).Instr
	for k, d := range from.Shape.Dims {
		if at[k] < 0 || at[k] >= d {
			return 0, false
		}
	}
	n = e.data[from][rowMajorOf(at, from.Shape.Dims)]
	if c := v.Origin.Clamp; c != (index.Interval{}) {
		n = clampTo(n, c.Hi)
	}
	return n, true
}
