package symtile

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An Unfused is an instruction that is in no fusion of a partition, and why.
type Unfused struct {
	// Instr is an instruction of the partitioned module.
	Instr *hlo.Instr
	// Reason is a clause that continues "it is in no fusion because …".
	Reason string
}

// Partition splits a module that no compiler has fused into fusions that can be
// tiled. The module that it returns computes the same. Its entry consists of
// fusion instructions, whose computations hlo.Module.Fusions lists, and of the
// instructions in the second result, which cannot be tiled or are no work. A
// module that has fusions, or a bare computation (text without a module around
// it, which is one fusion as it stands), is returned as it is.
//
// Calls are inlined first; the bodies of while and conditional are partitioned
// as the entry is. Then, from the results to the parameters, every operation
// joins the fusion of its users when all of its users are in that one fusion:
//
//   - Elementwise operations and those that move data (broadcast, reshape,
//     transpose, slice, pad, concatenate, reverse, …) join. An operation that
//     follows a dot or a reduction, however, stays with that, where it is
//     computed once, rather than join a dot or a window that reads it.
//   - A dot or convolution, the hero of its fusion, joins operations that
//     follow it, unless one of them broadcasts, which would compute it many
//     times. A fusion has one hero, and then no reductions.
//   - A reduction joins operations on its result. It joins across a broadcast
//     only if that restores the shape that was reduced, as softmax and the
//     norms do. The reductions of one fusion reduce the same dimensions of the
//     same shape.
//   - Constants, iotas and views of an operand (broadcast, reshape, bitcast)
//     are copied into every fusion that uses them.
//
// Any other operation starts a fusion. A fusion of scalars, or of nothing but
// reshapes, is dissolved again: there is nothing to tune. The time is
// proportional to the instructions and their uses.
func Partition(m *hlo.Module) (*hlo.Module, []Unfused) {
	fusions := m.Fusions()
	if m.Name == "" || len(fusions) > 1 ||
		fusions[0] != m.Entry {
		return m, nil
	}
	p := &partitioner{
		usedNames:   map[string]int{},
		partitioned: map[*hlo.Computation]*hlo.Computation{},
		sizes:       map[*hlo.Computation]int64{},
	}
	for _, c := range m.Computations {
		p.usedNames[c.Name] = 0
	}
	out := &hlo.Module{
		Name:  m.Name,
		Attrs: m.Attrs,
		Entry: p.computation(m.Entry),
	}
	out.Computations = reachable(out.Entry)
	p.rename(out)
	return out, p.unfused
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
		stillCalled[c.Name] = stillCalled[c.Name] || !replaced[c]
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
	// usedNames are the names of computations, as hlo.UniqueName keeps them.
	usedNames map[string]int
	// partitioned is the result for each computation that has been visited.
	partitioned map[*hlo.Computation]*hlo.Computation
	// sizes are the instructions of computations with their calls inlined.
	sizes   map[*hlo.Computation]int64
	unfused []Unfused
}

// computation returns c with fusions.
func (p *partitioner) computation(c *hlo.Computation) *hlo.Computation {
	if partitioned := p.partitioned[c]; partitioned != nil {
		return partitioned
	}
	flat := p.flatten(c)
	s := newClustering(flat)
	s.cluster()
	partitioned := p.rewrite(flat, s)
	p.partitioned[c] = partitioned
	return partitioned
}

// maxInlined bounds the instructions that inlining calls may make; beyond,
// calls stay calls.
const maxInlined = 1 << 20

// size is the number of instructions of c with its calls inlined, at most
// maxInlined + 1.
func (p *partitioner) size(c *hlo.Computation) int64 {
	if n, ok := p.sizes[c]; ok {
		return n
	}
	var n int64
	for _, i := range c.Instrs {
		n++
		if i.Op == hlo.OpCall {
			n += p.size(i.Attrs.Calls)
		}
		n = min(n, maxInlined+1)
	}
	p.sizes[c] = n
	return n
}

// flatten copies c with calls inlined, and without tuples that are taken apart
// again.
func (p *partitioner) flatten(c *hlo.Computation) *hlo.Computation {
	f := &flattener{
		out:    &hlo.Computation{Name: c.Name},
		names:  map[string]int{},
		inline: p.size(c) <= maxInlined,
	}
	for _, i := range c.Params {
		param := *i
		f.names[i.Name] = 0
		f.out.Instrs = append(f.out.Instrs, &param)
		f.out.Params = append(f.out.Params, &param)
	}
	f.out.Root = f.computation(c, f.out.Params, "")
	return f.out
}

// A flattener copies instructions, under unique names, into out.
type flattener struct {
	out    *hlo.Computation
	names  map[string]int
	inline bool
}

// computation copies c with its parameters bound to args and returns its root.
func (f *flattener) computation(c *hlo.Computation, args []*hlo.Instr, prefix string) *hlo.Instr {
	value := make(
		map[*hlo.Instr]*hlo.Instr,
		len(c.Instrs),
	)
	for k, i := range c.Params {
		value[i] = args[k]
	}
	for _, i := range c.Instrs {
		if i.Op != hlo.OpParameter {
			value[i] = f.instr(i, value, prefix)
		}
	}
	return value[c.Root]
}

// instr copies one instruction, or inlines it, and returns what has its value.
func (f *flattener) instr(
	i *hlo.Instr,
	value map[*hlo.Instr]*hlo.Instr,
	prefix string,
) *hlo.Instr {
	operands := make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		operands[k] = value[o]
	}
	switch {
	case i.Op == hlo.OpCall && f.inline:
		name := prefix + i.Attrs.Calls.Name
		return f.computation(
			i.Attrs.Calls,
			operands,
			name[:min(len(name), hlo.MaxName/4)]+".",
		)
	case i.Op == hlo.OpGetTupleElement &&
		operands[0].Op == hlo.OpTuple:
		return operands[0].Operands[i.Attrs.Index]
	}
	clone := *i
	clone.Name = hlo.UniqueName(
		f.names, prefix+truncatedName(i.Name),
	)
	clone.Operands = operands
	f.out.Instrs = append(f.out.Instrs, &clone)
	return &clone
}

// An outliner makes the partitioned computation: an instruction for each
// fusion, and those that stay unfused.
type outliner struct {
	*partitioner
	*clustering
	out *hlo.Computation
	// value is, for each instruction of the flat computation, the one that has
	// its value outside of fusions.
	value map[*hlo.Instr]*hlo.Instr
	names map[string]int
}

// rewrite makes the partitioned computation from the clusters of a flat one.
func (p *partitioner) rewrite(flat *hlo.Computation, s *clustering) *hlo.Computation {
	r := &outliner{
		p, s, &hlo.Computation{Name: flat.Name},
		make(map[*hlo.Instr]*hlo.Instr, len(s.order)),
		map[string]int{},
	}
	for _, i := range s.order {
		switch c := s.clusterRootedAt[i]; {
		case i.Op == hlo.OpParameter:
			param := *i
			r.put(i, &param)
			r.out.Params = append(r.out.Params, &param)
		case c != nil:
			r.fusion(c)
		case len(s.clustersOf[i]) == 0 &&
			s.classes[i] != classDuplicated:
			r.keepUnfused(i)
		}
	}
	r.out.Root = r.use(flat.Root)
	return r.out
}

// put appends the instruction that has the value of i.
func (r *outliner) put(i, made *hlo.Instr) {
	made.Name = hlo.UniqueName(r.names, made.Name)
	r.value[i] = made
	r.out.Instrs = append(r.out.Instrs, made)
}

// use is the value of i in the new computation. Constants and views that are
// copied into fusions are made when something outside uses them.
func (r *outliner) use(i *hlo.Instr) *hlo.Instr {
	if r.value[i] == nil {
		r.keepUnfused(i)
	}
	return r.value[i]
}

// keepUnfused copies i, and partitions the computations of control flow.
func (r *outliner) keepUnfused(i *hlo.Instr) {
	clone := *i
	clone.Operands = make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		clone.Operands[k] = r.use(o)
	}
	if i.Op == hlo.OpWhile || i.Op == hlo.OpConditional {
		clone.Attrs.Branches = slices.Clone(i.Attrs.Branches)
		for k, c := range clone.Attrs.Branches {
			clone.Attrs.Branches[k] = r.computation(c)
		}
	}
	if i.Op == hlo.OpCall {
		clone.Attrs.Calls = r.computation(i.Attrs.Calls)
	}
	r.put(i, &clone)
	r.unfused = append(r.unfused, Unfused{
		&clone, r.reason(i),
	})
}

// fusion makes the computation of a cluster and the instruction that calls it.
func (r *outliner) fusion(c *cluster) {
	f := &fusionBuilder{
		outliner: r,
		cluster:  c,
		comp: &hlo.Computation{Name: hlo.UniqueName(
			r.usedNames, "fused."+truncatedName(c.root.Name),
		)},
		inner: map[*hlo.Instr]*hlo.Instr{},
		names: map[string]int{},
	}
	for _, i := range slices.Backward(c.members) {
		f.copy(i)
	}
	f.comp.Root = f.inner[c.root]
	call := &hlo.Instr{
		Name:     c.root.Name,
		Op:       hlo.OpFusion,
		Shape:    c.root.Shape,
		Operands: f.args,
		Pos:      c.root.Pos,
	}
	call.Attrs.Calls, call.Attrs.Kind = f.comp, c.kind()
	r.put(c.root, call)
}

// A fusionBuilder copies the members of a cluster into a computation of their
// own.
type fusionBuilder struct {
	*outliner
	*cluster
	comp *hlo.Computation
	// inner is the copy of each member, and the parameter for each value from
	// outside.
	inner map[*hlo.Instr]*hlo.Instr
	names map[string]int
	// args are the operands of the fusion instruction.
	args []*hlo.Instr
}

// copy copies one member, after its operands.
func (f *fusionBuilder) copy(i *hlo.Instr) {
	clone := *i
	clone.Operands = make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		clone.Operands[k] = f.operand(o)
	}
	f.add(i, &clone)
}

// add appends an instruction that has the value of i.
func (f *fusionBuilder) add(i, made *hlo.Instr) {
	made.Name = hlo.UniqueName(f.names, made.Name)
	f.inner[i] = made
	f.comp.Instrs = append(f.comp.Instrs, made)
}

// operand is a member that has been copied, or a parameter for what comes from
// outside.
func (f *fusionBuilder) operand(o *hlo.Instr) *hlo.Instr {
	if member := f.inner[o]; member != nil {
		return member
	}
	param := &hlo.Instr{
		Name:  o.Name,
		Op:    hlo.OpParameter,
		Shape: o.Shape,
		Pos:   o.Pos,
		Attrs: hlo.Attrs{Param: len(f.args)},
	}
	f.args = append(f.args, f.use(o))
	f.add(o, param)
	f.comp.Params = append(f.comp.Params, param)
	return param
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

// reason is why i is in no fusion.
func (s *clustering) reason(i *hlo.Instr) string {
	reason := untileableReason(i)
	if reason != "" && i.Op != hlo.OpTuple &&
		i.Op != hlo.OpGetTupleElement {
		return reason
	}
	switch {
	case i.Op == hlo.OpConstant || i.Op == hlo.OpIota:
		return "a value, used outside of fusions"
	case i.Op == hlo.OpTuple || i.Op == hlo.OpGetTupleElement:
		return "it puts a tuple together or takes one apart"
	case i.Op == hlo.OpOptimizationBarrier:
		return "nothing is fused across a barrier"
	case i.Op == hlo.OpCall:
		return fmt.Sprintf("inlined, there would be more than %d instructions", maxInlined)
	case i.Shape.DType.IsArray() &&
		i.Shape.Elements() <= 1:
		return "a scalar: there is nothing to tile"
	}
	return "it moves no data"
}
