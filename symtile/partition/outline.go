package partition

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

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
func (p *partitioner) rewrite(
	flat *hlo.Computation, s *clustering,
) *hlo.Computation {
	r := &outliner{
		p, s, &hlo.Computation{Name: flat.Name},
		make(map[*hlo.Instr]*hlo.Instr, len(s.order)),
		map[string]int{},
	}
	for _, i := range s.order {
		if i.Op == hlo.OpParameter {
			param := *i
			r.put(i, &param)
			r.out.Params = append(r.out.Params, &param)
		} else if s.clusterRootedAt[i] != nil ||
			len(s.clustersOf(i)) == 0 &&
				s.classes[i] != classDuplicated {
			r.use(i)
		}
	}
	r.out.Root = r.use(flat.Root)
	return r.out
}

// put appends the instruction that has the value of i.
func (r *outliner) put(
	i, made *hlo.Instr,
) {
	made.Name = hlo.UniqueName(r.names, made.Name)
	r.value[i] = made
	r.out.Instrs = append(r.out.Instrs, made)
}

// use is the value of i in the new computation, which is made when it is first
// used: a fusion with several results stands before what reads the first of them.
// Constants and views that are copied into fusions are made when something
// outside uses them.
func (r *outliner) use(
	i *hlo.Instr,
) *hlo.Instr {
	if part := r.partOf(i); part != nil {
		r.value[i] = part
	}
	if r.value[i] == nil {
		if c := r.clusterRootedAt[i]; c != nil {
			if c.outlined {
				panic("partition: the fusion of " + i.Name + " needs its own result")
			}
			c.outlined = true
			r.fusion(c)
		} else {
			r.keepUnfused(i)
		}
	}
	return r.value[i]
}

// partOf is the array that i takes from several results of one root of a fusion; nil if
// i does not.
func (r *outliner) partOf(i *hlo.Instr) *hlo.Instr {
	if i.Op != hlo.OpGetTupleElement || r.clusterRootedAt[i] != nil || r.clusterRootedAt[i.Operands[0]] == nil {
		return nil
	}
	if t := r.use(i.Operands[0]); t.Op == hlo.OpTuple {
		return t.Operands[i.Attrs.Index]
	}
	return nil
}

// keepUnfused copies i, and partitions the computations of control flow.
func (r *outliner) keepUnfused(i *hlo.Instr) {
	clone := *i
	clone.Operands = make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		clone.Operands[k] = r.use(o)
	}
	if i.Op == hlo.OpWhile ||
		i.Op == hlo.OpConditional {
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

// fusion makes the computation of a cluster and the instruction that calls it,
// and takes its results apart where there are several.
func (r *outliner) fusion(c *cluster) {
	comp, reads := r.build(c, hlo.UniqueName(
		r.usedNames, "fused."+truncatedName(c.root.Name),
	))
	call := &hlo.Instr{
		Name:  c.root.Name,
		Op:    hlo.OpFusion,
		Shape: comp.Root.Shape,
		Pos:   c.root.Pos,
	}
	for _, o := range reads {
		call.Operands = append(call.Operands, r.use(o))
	}
	call.Attrs.Calls, call.Attrs.Kind = comp, c.kind()
	if metadata := c.root.Text("metadata"); metadata != "" {
		call.Attrs.Other = []hlo.Attr{{Name: "metadata", Value: metadata}}
	}
	price := r.pricer.fusion(comp).price
	r.fusions[comp] = &Fusion{
		Apart:   r.pricer.apart(comp),
		Price:   price,
		Reasons: c.reasons,
	}
	if len(c.roots) == 1 {
		r.put(c.root, call)
		return
	}
	call.Name = hlo.UniqueName(r.names, call.Name+".all")
	r.out.Instrs = append(r.out.Instrs, call)
	k := 0
	for _, root := range c.roots {
		r.put(root, r.result(call, root, &k))
	}
}

// result is the value of a root of the fusion that call is, whose results from k on are its arrays.
func (r *outliner) result(call, root *hlo.Instr, k *int) *hlo.Instr {
	if root.Shape.DType != hlo.Tuple {
		*k++
		return element(call, *k-1, root)
	}
	t := &hlo.Instr{Name: root.Name, Op: hlo.OpTuple, Shape: root.Shape, Pos: root.Pos}
	for range root.Shape.Tuple {
		e := element(call, *k, root)
		e.Name = hlo.UniqueName(r.names, e.Name+".part")
		r.out.Instrs = append(r.out.Instrs, e)
		t.Operands = append(t.Operands, e)
		*k++
	}
	return t
}

// element takes element k of a tuple, for the value of i or a part of it.
func element(of *hlo.Instr, k int, i *hlo.Instr) *hlo.Instr {
	return &hlo.Instr{
		Name:     i.Name,
		Op:       hlo.OpGetTupleElement,
		Shape:    of.Shape.Tuple[k],
		Operands: []*hlo.Instr{of},
		Attrs:    hlo.Attrs{Index: k},
		Pos:      i.Pos,
	}
}

// computationOf is a cluster as the computation that it becomes.
func (s *clustering) computationOf(
	c *cluster,
) *hlo.Computation {
	comp, _ := s.build(c, "fused."+truncatedName(c.root.Name))
	return comp
}

// build makes the computation of a cluster. The second result is what it reads,
// by parameter number.
func (s *clustering) build(
	c *cluster, name string) (*hlo.Computation, []*hlo.Instr,
) {
	f := &fusionBuilder{
		comp:  &hlo.Computation{Name: name},
		inner: make(map[*hlo.Instr]*hlo.Instr, len(c.members)),
		names: map[string]int{},
	}
	for _, i := range slices.Backward(c.members) {
		f.copy(i)
	}
	f.comp.Root = f.inner[c.root]
	if len(c.roots) > 1 {
		f.comp.Root = f.tuple(c.roots)
	}
	return f.comp, f.reads
}

// tuple puts several results together; of a root with several arrays each is one.
func (f *fusionBuilder) tuple(
	roots []*hlo.Instr,
) *hlo.Instr {
	t := &hlo.Instr{Name: "results", Op: hlo.OpTuple, Pos: roots[0].Pos}
	t.Shape.DType = hlo.Tuple
	for _, r := range roots {
		inner := f.inner[r]
		if r.Shape.DType != hlo.Tuple {
			t.Operands = append(t.Operands, inner)
			continue
		}
		for k := range r.Shape.Tuple {
			part := element(inner, k, r)
			f.add(part, part)
			t.Operands = append(t.Operands, part)
		}
	}
	for _, o := range t.Operands {
		t.Shape.Tuple = append(t.Shape.Tuple, o.Shape)
	}
	f.add(t, t)
	return t
}

// A fusionBuilder copies the members of a cluster into a computation of their
// own.
type fusionBuilder struct {
	comp *hlo.Computation
	// inner is the copy of each member, and the parameter for each value from
	// outside.
	inner map[*hlo.Instr]*hlo.Instr
	names map[string]int
	// reads are what its parameters stand for.
	reads []*hlo.Instr
}

// copy copies one member, after its operands.
func (f *fusionBuilder) copy(i *hlo.Instr) {
	if i.Op == hlo.OpGetTupleElement && f.inner[i.Operands[0]] == nil {
		f.operand(i) // of a reduction in another fusion
		return
	}
	clone := *i
	clone.Operands = make([]*hlo.Instr, len(i.Operands))
	for k, o := range i.Operands {
		clone.Operands[k] = f.operand(o)
	}
	f.add(i, &clone)
}

// add appends an instruction that has the value of i.
func (f *fusionBuilder) add(
	i, made *hlo.Instr,
) {
	made.Name = hlo.UniqueName(f.names, made.Name)
	f.inner[i] = made
	f.comp.Instrs = append(f.comp.Instrs, made)
}

// operand is a member that has been copied, or a parameter for what comes from
// outside.
func (f *fusionBuilder) operand(
	o *hlo.Instr,
) *hlo.Instr {
	if member := f.inner[o]; member != nil {
		return member
	}
	param := &hlo.Instr{
		Name:  o.Name,
		Op:    hlo.OpParameter,
		Shape: o.Shape,
		Pos:   o.Pos,
		Attrs: hlo.Attrs{Param: len(f.reads)},
	}
	f.reads = append(f.reads, o)
	f.add(o, param)
	f.comp.Params = append(f.comp.Params, param)
	return param
}

// reason is why i is in no fusion.
func (s *clustering) reason(i *hlo.Instr) string {
	reason := s.outside(i)
	if reason != "" && i.Op != hlo.OpTuple &&
		i.Op != hlo.OpGetTupleElement {
		return reason
	}
	switch {
	case i.Op == hlo.OpConstant ||
		i.Op == hlo.OpIota:
		return "a value, used outside of fusions"
	case i.Op == hlo.OpTuple ||
		i.Op == hlo.OpGetTupleElement:
		return "it puts a tuple together or takes one apart"
	case i.Op == hlo.OpOptimizationBarrier:
		return "nothing is fused across a barrier"
	case i.Op == hlo.OpCall:
		return fmt.Sprintf("inlined, there would be more than %d instructions", maxInlined)
	case i.Shape.DType.IsArray() && i.Shape.Elements() == 0:
		return "it has no elements: there is nothing to tile"
	case i.Shape.DType.IsArray() &&
		i.Shape.Elements() == 1:
		return "a scalar: there is nothing to tile"
	}
	return "it moves no data"
}
