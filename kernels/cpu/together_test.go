package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/workers"
)

// A sharedKernel is a kernel that several goroutines run, and what it computes when it runs
// alone.
type sharedKernel struct {
	kernels.Kernel
	about    string
	source   string // when it was compiled
	c        *graphCase
	in, want []kernels.Buffer
}

// sharedKernels are kernels of random graphs by several plans each.
func sharedKernels(t *testing.T, b *Backend, n int) (all []*sharedKernel) {
	t.Helper()
	for seed := uint64(1); len(all) < n; seed++ {
		c := newGraphCase(t, seed, randomGraph)
		if c == nil {
			continue
		}
		in, err := check.Inputs(c.p.Fusion, check.Normals, int64(seed))
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range graphPlans(t, b, c.rng, c.p)[:3] {
			k, err := b.Compile(t.Context(), c.p, plan)
			if err != nil {
				continue
			}
			want, err := c.run(k, in)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &sharedKernel{k, fmt.Sprintf("graph %d, %s", seed, plan), k.Source(), c, in, want})
		}
	}
	for _, k := range all {
		if k.Source() != k.source {
			t.Errorf("%s: other kernels change its listing:\n%s\n%s", k.about, k.source, k.Source())
		}
	}
	return all
}

// again runs a kernel, which may be closed, and compares the bits.
func (k *sharedKernel) again() error {
	out, err := k.c.run(k, k.in)
	if errors.Is(err, workers.ErrClosed) {
		return nil
	}
	for n := range out {
		if err == nil && !bytes.Equal(out[n].Data, k.want[n].Data) {
			err = fmt.Errorf("output %d has other bits than of a run alone", n)
		}
	}
	return err
}

// TestKernelsTogether runs kernels from several goroutines at once, the same ones, too, and
// closes some of them meanwhile: what a run gives that is not refused has the bits of a run
// alone.
func TestKernelsTogether(t *testing.T) {
	b := New()
	all := sharedKernels(t, b, 24)
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	var group sync.WaitGroup
	for lane := range uint64(6) {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(lane, 3))
			for n := range rounds {
				k := all[rng.IntN(len(all))]
				if n > rounds/2 && rng.IntN(40) == 0 {
					if err := k.Close(); err != nil {
						t.Errorf("%s: closed: %v", k.about, err)
					}
				}
				if err := k.again(); err != nil {
					t.Errorf("%s: %v\n%s", k.about, err, k.c.text)
					return
				}
			}
		})
	}
	group.Wait()
	for _, k := range all {
		k.Close()
	}
}

// TestGroupsOfGraphs runs kernels as one, which other groups have, too.
func TestGroupsOfGraphs(t *testing.T) {
	b := New()
	all := sharedKernels(t, b, 24)
	rng := rand.New(rand.NewPCG(4, 5))
	ran := 0
	for range 200 {
		some := rng.Perm(len(all))[:2+rng.IntN(3)]
		some = append(some, some[0])
		if is, err := runGroup(b, all, some); err != nil {
			t.Fatal(err)
		} else if is {
			ran++
		}
	}
	t.Logf("%d groups", ran)
	if ran < 20 {
		t.Errorf("only %d groups", ran)
	}
	for _, k := range all {
		k.Close()
	}
}

// runGroup runs some of the kernels as one and compares the bits. It says whether they can be.
func runGroup(b *Backend, all []*sharedKernel, some []int) (bool, error) {
	var members []kernels.Kernel
	var in, out, want []kernels.Buffer
	about := ""
	for _, n := range some {
		k := all[n]
		members = append(members, k.Kernel)
		in, want = append(in, k.in...), append(want, k.want...)
		about += k.about + "; "
	}
	for _, w := range want {
		o, err := kernels.NewBuffer(w.Shape)
		if err != nil {
			return false, err
		}
		out = append(out, o)
	}
	g := b.Group(members)
	if g == nil {
		return false, nil
	}
	defer g.Close()
	if _, err := g.Run(context.Background(), in, out); err != nil {
		return true, fmt.Errorf("%s%w", about, err)
	}
	for n := range out {
		if !bytes.Equal(out[n].Data, want[n].Data) {
			return true, fmt.Errorf("%soutput %d has other bits than of a run alone", about, n)
		}
	}
	return true, nil
}
