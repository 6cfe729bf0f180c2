package index

import (
	"bufio"
	"encoding/json"
	"math/rand"
	"os"
	"testing"
)

// A workChain is a line of testdata/bench/symbolic.jsonl, or of a file of the
// same make that TILEWRIGHT_CHAINS names.
type workChain struct {
	ID    string
	Chain []struct {
		Dims, Syms []struct {
			Name   string
			Lo, Hi int64
		}
		Exprs       []string
		Constraints []struct {
			Expr   string
			Lo, Hi int64
		}
	}
	IdealOps int `json:"ideal_op_count"`
}

func (w *workChain) drafts() (out []MapSource) {
	for _, m := range w.Chain {
		d := MapSource{Results: m.Exprs}
		for _, v := range m.Dims {
			d.Dims = append(d.Dims, Variable{
				Name: v.Name,
				Lo:   v.Lo,
				Hi:   v.Hi,
			})
		}
		for _, v := range m.Syms {
			d.Ranges = append(d.Ranges, Variable{
				Name: v.Name,
				Lo:   v.Lo,
				Hi:   v.Hi,
			})
		}
		for _, c := range m.Constraints {
			d.Where = append(d.Where, BoundSource{c.Expr, Interval{c.Lo, c.Hi}})
		}
		out = append(out, d)
	}
	return out
}

func loadChains(t testing.TB) (work []workChain, chains []*Composition) {
	path := os.Getenv("TILEWRIGHT_CHAINS")
	if path == "" {
		path = "../../testdata/bench/symbolic.jsonl"
	}
	return readChains(t, path)
}

func readChains(t testing.TB, path string) (work []workChain, chains []*Composition) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<26)
	for sc.Scan() {
		var w workChain
		if err := json.Unmarshal(sc.Bytes(), &w); err != nil {
			t.Fatal(err)
		}
		c, err := NewComposition(w.drafts()...)
		if err != nil {
			t.Fatal(err)
		}
		work, chains = append(work, w), append(chains, c)
	}
	return work, chains
}

// TestChainForms solves the smallest chains of forms that were missed once, and
// the workload of benchmarks: none takes more operations than its line says, and
// all are what they were written as.
func TestChainForms(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, path := range []string{"testdata/chains/best.jsonl", "../../testdata/bench/symbolic.jsonl"} {
		work, chains := readChains(t, path)
		for i, c := range chains {
			ops := c.Solve()
			if ops > work[i].IdealOps {
				const format = "%s: %d operations, want %d: %v"
				w := &work[i]
				t.Errorf(format, w.ID, ops, w.IdealOps, c.Texts())
			}
			if _, diff := c.compare(rnd); diff != "" {
				t.Errorf("%s: %s", work[i].ID, diff)
			}
		}
	}
}

// BenchmarkWorkload solves every chain of the workload, one after the other.
func BenchmarkWorkload(b *testing.B) {
	_, chains := loadChains(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range chains {
			c.Solve()
		}
	}
}

// BenchmarkWorkloadSimplify leaves out the choice of how results are written.
func BenchmarkWorkloadSimplify(b *testing.B) {
	_, chains := loadChains(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range chains {
			c.Simplify()
		}
	}
}

// TestAtomBounds evaluates every atom that solving a chain made, for results or for a
// moment, at the points of the domain: the value is in its bounds.
func TestAtomBounds(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	work, chains := readChains(t, "testdata/chains/best.jsonl")
	for i, c := range chains {
		c.Solve()
		r := c.domain.r
		for range 200 {
			v := make([]int64, len(c.vars))
			for k, in := range c.vars {
				v[k] = in.Lo + rnd.Int63n(in.Hi-in.Lo+1)
			}
			if _, inside := c.naively(v); !inside {
				continue
			}
			for id := range r.atoms {
				x, ok := r.valueOf(int32(id), v)
				if a := &r.atoms[id]; ok && !a.in.Contains(x) {
					t.Fatalf("%s: an atom of kind %d is %d at %v, not in %v", work[i].ID, a.kind, x, v, a.in)
				}
			}
		}
	}
}

// valueOf is the value of an atom made of quotients and remainders by numbers.
func (r *Ring) valueOf(id int32, v []int64) (x int64, ok bool) {
	a := &r.atoms[id]
	switch {
	case a.kind == atomVar && int(id) < len(v):
		return v[id], true
	case a.kind != atomDiv && a.kind != atomFloorDiv && a.kind != atomMod || a.z >= 0:
		return 0, false
	}
	y := r.lin(a.y)
	sum := y.c
	for _, u := range y.t {
		part, ok := r.valueOf(u.a, v)
		if !ok {
			return 0, false
		}
		sum += u.k * part
	}
	if a.kind == atomMod {
		return floorMod(sum, a.d), true
	}
	return FloorDiv(sum, a.d), true
}

// TestManyBlocks solves chains as one that has compared four thousand million blocks of
// points before: what it remembers of a block is of no other one.
func TestManyBlocks(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	work, _ := readChains(t, "testdata/chains/best.jsonl")
	for before := range uint64(40) {
		_, chains := readChains(t, "testdata/chains/best.jsonl")
		for i, c := range chains {
			if int(before)%8 != i%8 {
				continue
			}
			c.fitting.epoch = 1<<32 - before
			if _, diff := c.compare(rnd); diff != "" {
				t.Errorf("%s, %d blocks before: %s", work[i].ID, before, diff)
			}
		}
	}
}
