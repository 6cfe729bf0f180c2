package tuner

import (
	"maps"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/inplace"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/partition"
)

// A Workload is the fusions of one or several modules, each distinct one once,
// with how often it is used. Its zero value is empty.
type Workload struct {
	// Items in the order in which they were met; a Schedule reorders them.
	Items []*Item
	// Outside is what the modules execute beside the fusions, by operation.
	Outside map[hlo.Opcode]Outside
	index   map[[32]byte]*Item
}

// Outside sums up the instructions of one operation that are in no fusion.
type Outside struct {
	Instrs int
	moves  []transfer
}

// A transfer is an instruction's operands and results, and its time by a profile.
type transfer struct {
	bytes float64
	uses  float64
	// What a profile may call it, and the time that one says it takes.
	names  []string
	weight float64
}

// An Item is one distinct fusion of a workload: all fusions with its fingerprint.
type Item struct {
	// Fusion is the first of them that was met, in File.
	Fusion *hlo.Computation
	File   string
	// Structure is that of the fusion: items of one structure differ in extents only.
	Structure cache.Fingerprint
	// Copies is how many fusions are alike, and Uses how often they are executed
	// together in one run of each module. Both are at least 1.
	Copies int
	Uses   float64
	// Names are what a profile may call them: the names of the fusions, of the
	// instructions that execute them and of the operations of the framework that
	// they come from, each once.
	Names []string
	// Sources are where the fusions come from, in the order in which they were met and
	// each once, maxSources at most.
	Sources []origin.Source
	// Weight is the time that a profile says they take together, in any unit; it
	// is used where the Schedule is Weighted.
	Weight float64

	Outcome
}

// Add adds fusions of a module, which come from hlo.Module.Fusions.
func (w *Workload) Add(file string, m *hlo.Module, fusions []*hlo.Computation) {
	runs := partition.Executions(m)
	callers := m.Callers()
	for _, c := range fusions {
		x := w.item(file, c)
		x.Copies++
		x.Uses += max(1, runs[c].Times)
		x.addSources(c.Sources(callers[c]))
		x.addName(c.Name)
		x.addName(c.Source().Op)
		for _, i := range callers[c] {
			x.addName(i.Name)
			x.addName(i.Source().Op)
		}
	}
}

// AddOutside notes what a module executes beside its fusions: in its entry, and in
// the computations of calls and control flow. A module that is one fusion has nothing
// outside.
func (w *Workload) AddOutside(m *hlo.Module) {
	if all := m.Fusions(); len(all) == 1 && all[0] == m.Entry {
		return
	}
	fused := m.Callers()
	if w.Outside == nil {
		w.Outside = map[hlo.Opcode]Outside{}
	}
	applied := appliedIn(m)
	for c, runs := range partition.Executions(m) {
		if len(fused[c]) > 0 || applied[c] {
			continue
		}
		made := inplace.Slices(c)
		for _, i := range c.Instrs {
			if isWork(i.Op) {
				o := w.Outside[i.Op]
				o.Instrs++
				bytes := movedBytes(i)
				if _, there := made[i]; there {
					bytes = 0 // a fusion writes the slice where it ends
				}
				o.moves = append(o.moves, transfer{bytes: bytes, uses: runs.Times, names: namesOf(i)})
				w.Outside[i.Op] = o
			}
		}
	}
}

// namesOf is what a profile may call an instruction: by its name, or that of the
// framework's operation.
func namesOf(i *hlo.Instr) []string {
	if op := i.Source().Op; op != "" && op != i.Name {
		return []string{i.Name, op}
	}
	return []string{i.Name}
}

// isWork reports whether an operation outside of fusions does work of its own.
func isWork(op hlo.Opcode) bool {
	switch op {
	case hlo.OpFusion, hlo.OpCall, hlo.OpWhile, hlo.OpConditional, hlo.OpParameter, hlo.OpConstant, hlo.OpIota,
		hlo.OpTuple, hlo.OpGetTupleElement, hlo.OpBitcast, hlo.OpOptimizationBarrier:
		return false
	}
	return true
}

// movedBytes are the bytes of the arrays that an instruction reads and writes. The slice of
// an update is written in place.
func movedBytes(i *hlo.Instr) float64 {
	if i.Op == hlo.OpDynamicUpdateSlice {
		return 2 * shapeBytes(i.Operands[1].Shape)
	}
	bytes := shapeBytes(i.Shape)
	for _, o := range i.Operands {
		bytes += shapeBytes(o.Shape)
	}
	return bytes
}

// shapeBytes are the bytes of an array, or of all arrays of a tuple.
func shapeBytes(s hlo.Shape) (bytes float64) {
	for _, a := range s.Arrays() {
		if a.DType.IsArray() {
			bytes += float64(a.Bytes())
		}
	}
	return bytes
}

// item is the item of a fusion, which is new if nothing like it was met.
func (w *Workload) item(file string, c *hlo.Computation) *Item {
	key := c.Fingerprint()
	if x := w.index[key]; x != nil {
		return x
	}
	if w.index == nil {
		w.index = map[[32]byte]*Item{}
	}
	x := &Item{Fusion: c, File: file, Structure: cache.StructureOf(c.Canonical()).Print}
	w.index[key] = x
	w.Items = append(w.Items, x)
	return x
}

// maxSources bounds the sources of an item and of a record: a layer that a model repeats
// has hundreds.
const maxSources = 8

// addSources notes sources once.
func (x *Item) addSources(all []origin.Source) {
	for _, s := range all {
		if len(x.Sources) < maxSources {
			x.Sources = origin.Append(x.Sources, s)
		}
	}
}

// addName notes a name once.
func (x *Item) addName(name string) {
	if name != "" && !slices.Contains(x.Names, name) {
		x.Names = append(x.Names, name)
	}
}

// appliedIn are the computations that instructions apply to elements, as that of a
// reduction: their work is part of the instruction's.
func appliedIn(m *hlo.Module) map[*hlo.Computation]bool {
	applied := map[*hlo.Computation]bool{}
	for _, c := range m.Computations {
		for _, i := range c.Instrs {
			switch i.Op {
			case hlo.OpFusion, hlo.OpCall, hlo.OpAsyncStart, hlo.OpWhile, hlo.OpConditional:
				continue
			}
			for _, callee := range i.Callees() {
				applied[callee] = true
			}
		}
	}
	return applied
}

// Weigh gives what is in the workload the times of a profile, by name, and returns the
// names of the profile that nothing has, sorted. What several share, as fusions of one
// operation of the framework do, is divided in proportion to the bytes that they move.
func (w *Workload) Weigh(profile map[string]float64) (unknown []string) {
	holders := map[string][]holder{}
	hold := func(names []string, bytes float64, weight *float64) {
		*weight = 0
		for _, name := range names {
			if _, ok := profile[name]; ok {
				holders[name] = append(holders[name], holder{bytes, weight})
			}
		}
	}
	for _, x := range w.Items {
		hold(x.Names, x.Uses*x.arrayBytes(), &x.Weight)
	}
	for _, o := range w.Outside {
		for k := range o.moves {
			m := &o.moves[k]
			hold(m.names, m.uses*m.bytes, &m.weight)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(profile)) {
		if len(holders[name]) == 0 {
			unknown = append(unknown, name)
		}
		share(profile[name], holders[name])
	}
	return unknown
}

// arrayBytes are the bytes of an item's parameters and outputs.
func (x *Item) arrayBytes() float64 {
	bytes := shapeBytes(x.Fusion.Root.Shape)
	for _, p := range x.Fusion.Params {
		bytes += shapeBytes(p.Shape)
	}
	return bytes
}

// A holder has a name of a profile: the bytes that it moves in a run, and its time.
type holder struct {
	bytes  float64
	weight *float64
}

// share divides a time among those that have its name.
func share(time float64, all []holder) {
	bytes := 0.0
	for _, h := range all {
		bytes += h.bytes
	}
	for _, h := range all {
		part := h.bytes / bytes
		if bytes == 0 {
			part = 1 / float64(len(all))
		}
		*h.weight += time * part
	}
}
