package partition

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An Unfused is an instruction that is in no fusion of a partition, and why.
type Unfused struct {
	// Instr is an instruction of the partitioned module.
	Instr *hlo.Instr
	// Reason is a clause that continues "it is in no fusion because …".
	Reason string
}

// Options of Module. The zero value is a partition for the nominal machine.
type Options struct {
	// Machine is what prices are for; zero fields stand for those of Nominal.
	Machine Machine
	// Outside is the reason why an instruction must stay out of fusions, such
	// as that no backend computes it; "" where it may join one. Nil: all may.
	Outside func(*hlo.Instr) string
}

// A Result is a partitioned module.
type Result struct {
	// Module computes the same as the one that was partitioned. Its entry, and
	// the computations of its control flow, consist of fusion instructions and
	// of Outside.
	Module *hlo.Module
	// Outside are the instructions that are in no fusion: they cannot be tiled
	// or are no work.
	Outside []Unfused
	// Fusions describes those that have been made, by computation; not those that a
	// module had.
	Fusions map[*hlo.Computation]*Fusion
	// Repeated are instructions without fusions around them, calls inlined, whose work is
	// that of an earlier one on the same operands: the module does it once.
	Repeated []*hlo.Instr
}

// A Fusion is why a fusion is what it is.
type Fusion struct {
	// Apart is the price of its operations, each launched alone.
	Apart Price
	// Price is that of the fusion.
	Price Price
	// Reasons are the decisions of the second pass, in order: what joined, what
	// did not, and the prices of both ways.
	Reasons []string
}

// divides reports whether a fusion of this instruction and others is divided there: it
// exchanges data between devices, has a side effect, or is taken apart.
func divides(i *hlo.Instr) bool {
	var effects hlo.Effects
	return i.Op.Class() == hlo.ClassCollective || effects.Of(i) != nil ||
		i.Op == hlo.OpRaggedDot || isBatchNorm(i)
}

// Module partitions m. A module that has fusions keeps them, and its other
// instructions become fusions of their own where they are work and can be tiled. A bare
// computation (text without a module around it, which is one fusion as it stands) is
// returned as it is. Where text or a fusion exchanges data with other devices, has side
// effects, or normalises batches, it is divided: a fusion becomes a call of what is made
// of it. What has a side effect is kept, needed or not. m is not changed. Every fusion that is made can be tiled: symtile.Analyze has no error for it.
//
// The time is proportional to the instructions and their uses, and to the
// distinct pairs of clusters that the second pass analyses. The error is the
// cause of a ctx that ended before.
func Module(ctx context.Context, m *hlo.Module, o Options) (*Result, error) {
	if m.Name == "" && !slices.ContainsFunc(m.Entry.Instrs, divides) {
		return &Result{Module: m}, nil
	}
	p := newPartitioner(ctx, o)
	divide := p.module
	if isFused(m) {
		divide = p.fuseLoose
	}
	divided := divide(m)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &Result{divided, p.unfused, p.fusions, p.repeated}, nil
}

// newPartitioner is a partitioner that has seen nothing yet.
func newPartitioner(ctx context.Context, o Options) *partitioner {
	return &partitioner{
		options:     o,
		pricer:      newPricer(ctx, o.Machine.orNominal()),
		usedNames:   map[string]int{},
		partitioned: map[*hlo.Computation]*hlo.Computation{},
		sizes:       map[*hlo.Computation]int64{},
		refused:     map[*hlo.Instr]string{},
		separate:    map[*hlo.Instr]bool{},
		fusions:     map[*hlo.Computation]*Fusion{},
		sums:        map[hlo.DType]*hlo.Computation{},
		contents:    map[*hlo.Computation]*hlo.Computation{},
	}
}

// module partitions a module without fusions.
func (p *partitioner) module(m *hlo.Module) *hlo.Module {
	for _, c := range m.Computations {
		p.usedNames[c.Name] = 0
	}
	out := &hlo.Module{
		Name:  m.Name,
		Attrs: m.Attrs,
		Open:  m.Open,
		Entry: p.computation(m.Entry),
	}
	out.Computations = reachable(out.Entry)
	p.rename(out)
	return out
}

// rename gives partitioned computations new names where the computation that
// they are made from is still called by something else.
func (p *partitioner) rename(m *hlo.Module) {
	stillCalled := make(map[string]bool, len(m.Computations))
	replaced := make(
		map[*hlo.Computation]bool, len(p.partitioned),
	)
	for _, c := range p.partitioned {
		replaced[c] = true
	}
	for _, c := range m.Computations {
		stillCalled[c.Name] = stillCalled[c.Name] ||
			!replaced[c]
	}
	for _, c := range m.Computations {
		if replaced[c] && stillCalled[c.Name] {
			c.Name = hlo.UniqueName(
				p.usedNames, truncatedName(c.Name),
			)
		}
	}
}

// truncatedName is a name short enough for a prefix and a suffix.
func truncatedName(name string) string {
	return name[:min(len(name), hlo.MaxName/2)]
}

// A partitioner partitions the computations of one module, each once.
type partitioner struct {
	options Options
	pricer  *pricer
	// usedNames are the names of computations, as hlo.UniqueName keeps them.
	usedNames map[string]int
	// partitioned is the result for each computation that has been visited.
	partitioned map[*hlo.Computation]*hlo.Computation
	// sizes are the instructions of computations with their calls inlined.
	sizes map[*hlo.Computation]int64
	// refused are instructions with which a cluster cannot be tiled, and why.
	refused map[*hlo.Instr]string
	// sums are computations that add two numbers, by type.
	sums map[hlo.DType]*hlo.Computation
	// contents are the names of computations by what they compute; see byContent.
	contents map[*hlo.Computation]*hlo.Computation
	// separate are instructions that join no user: what reads them would compute
	// them too often.
	separate map[*hlo.Instr]bool
	unfused  []Unfused
	repeated []*hlo.Instr
	fusions  map[*hlo.Computation]*Fusion
	// effects are the instructions that stay although nothing needs their results.
	effects hlo.Effects
}

// computation returns c with fusions.
func (p *partitioner) computation(
	c *hlo.Computation,
) *hlo.Computation {
	if partitioned := p.partitioned[c]; partitioned != nil {
		return partitioned
	}
	flat := p.flatten(c)
	p.keepInPlace(flat)
	s := p.clusters(flat)
	s.joinNeighbours()
	partitioned := p.rewrite(flat, s)
	p.partitioned[c] = partitioned
	return partitioned
}

// maxRounds bounds how often a computation is divided anew because a cluster
// cannot be tiled.
const maxRounds = 8

// clusters makes the clusters of the first pass. Where one cannot be tiled, the
// instruction that is to blame stays outside, and all is done again; in the last
// round all members do. Where one costs more than its operations apart, what its
// windows and contractions read becomes a cluster of its own.
func (p *partitioner) clusters(
	flat *hlo.Computation,
) *clustering {
	for round := 1; ; round++ {
		s := p.newClustering(flat)
		s.cluster()
		n := len(p.refused) + len(p.separate)
		for _, c := range s.all {
			s.refuse(c, round >= maxRounds)
			if round < maxRounds && s.worseThanApart(c) {
				s.divide(c)
			}
		}
		if len(p.refused)+len(p.separate) == n {
			return s
		}
	}
}

// refuse notes which members of a cluster that cannot be tiled stay outside.
func (s *clustering) refuse(c *cluster, all bool) {
	var no *symtile.Untileable
	if !errors.As(s.price(c).err, &no) {
		return
	}
	blamed := c.root
	for _, i := range c.members {
		if all {
			s.refused[i] = no.Reason
		}
		if no.Instr != nil &&
			(no.Instr.Name == i.Name ||
				strings.HasPrefix(no.Instr.Name, i.Name+"/")) {
			blamed = i
		}
	}
	s.refused[blamed] = no.Reason
}

// worseThanApart reports whether a cluster costs more than its operations, each
// launched alone.
func (s *clustering) worseThanApart(c *cluster) bool {
	x := s.price(c)
	return len(c.members) > 1 && x.err == nil &&
		s.pricer.seconds(x.price) > s.pricer.seconds(s.pricer.apart(s.computationOf(c)))
}

// divide separates what the windows and contractions of a cluster read: each tile
// of theirs computes it again, in tiles that they choose.
func (s *clustering) divide(c *cluster) {
	for _, u := range c.members {
		if s.classes[u] != classHero &&
			u.Op != hlo.OpReduceWindow {
			continue
		}
		for _, o := range u.Operands {
			if c.roles[o].member && s.classes[o] == classFusible {
				s.separate[o] = true
			}
		}
	}
}

// outside is the reason why i can be in no fusion; "" where it can.
func (p *partitioner) outside(i *hlo.Instr) string {
	if reason := p.refused[i]; reason != "" {
		return reason
	}
	if reason := symtile.UntileableReason(i); reason != "" || p.options.Outside == nil {
		return reason
	}
	return p.options.Outside(i)
}

// reachable lists the computations that entry calls, callees first, and entry.
func reachable(entry *hlo.Computation) []*hlo.Computation {
	var all []*hlo.Computation
	seen := map[*hlo.Computation]bool{}
	var visit func(c *hlo.Computation)
	visit = func(c *hlo.Computation) {
		seen[c] = true
		for _, i := range c.Instrs {
			for _, callee := range i.Callees() {
				if !seen[callee] {
					visit(callee)
				}
			}
		}
		all = append(all, c)
	}
	visit(entry)
	return all
}

// ascendingDims is v in ascending order.
func ascendingDims(v []int64) []int64 {
	return slices.Sorted(slices.Values(v))
}
