package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// This file is the top of the code generator: the kernels of a plan, and the steps of
// a program.

// An image is the kernels of a plan as a PTX module, with the launches that run them.
type image struct {
	module  *ptx.Module
	steps   []device.Step
	scratch []int64
	// Zeroed is how many arrays of scratch, the first, are zeros before a run and after it.
	zeroed int
	// Tiles is the number of tile programs of a persistent grid; 0 where each block
	// has one.
	tiles int64
	// Traffic predicts the memory traffic of a plan that has one kernel.
	traffic func() (Traffic, error)
	// Touches are the accesses of the last kernel.
	touches func() ([]Touch, error)
}

// emit generates the kernels of a concrete program. Emission is repeated until the
// hints that it collects do not change; they only grow, so it ends. A plan that the
// code generator cannot express is an error of type unsupported, a program that it has
// no code for a *kernels.Uncomputed.
func emit(
	p *symtile.Program, sheet device.Spec, k knobs,
) (im *image, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case unsupported:
			err = x
		case *kernels.Uncomputed:
			err = x
		default:
			panic(x)
		}
	}()
	// A plan is rejected by a panic of type unsupported, see reject.
	phases, err := phasesOf(p, k)
	if err != nil {
		return nil, err
	}
	if err := dependsOnLaunch(sheet, k); err != nil {
		return nil, err
	}
	if _, err := streamOf(p, k); err != nil {
		return nil, err
	}
	h := &hints{
		sharedResults:  map[bufferKey]bool{},
		staged:         map[int]bool{},
		separateStores: map[int]bool{},
	}
	for {
		im, h.changed = &image{}, false
		builder := ptx.NewBuilder(versionOf(p, sheet.Target, h.narrowMMA))
		constants := map[string]operand{}
		builder.DynamicShared("smem", 1024)
		for _, ph := range phases {
			e := newEmitter(p, sheet, k, h)
			e.begin(ph, builder, constants)
			im.steps = append(im.steps, e.kernel())
			im.scratch = e.scratch
			im.zeroed = e.stream.zeroed()
			if k.persistent > 0 {
				im.tiles = p.Programs()
			}
			im.traffic, im.touches = e.traffic, e.touches
		}
		if !h.changed {
			im.module, err = builder.Module()
			if err != nil {
				return nil, fmt.Errorf("%s: the kernel is not valid PTX, which is a bug of this backend: %w", p.Fusion.Name, err)
			}
			// Instructions whose results are not used are dropped.
			im.module.Prune()
			im.askForBlocks(sheet)
			return im, p.Space.Ring.Err()
		}
	}
}

// begin starts a kernel of a module. Kernels of a module share its constants.
func (e *emitter) begin(ph phase, b *ptx.Builder, constants map[string]operand) {
	e.phase = ph
	e.builder = b
	e.constants = constants
	e.stream, _ = streamOf(e.p, e.knobs)
	e.name = entryName(e.p.Fusion.Name) +
		ph.suffix()
	e.asm = newAsm(b.Entry(e.name))
	// The second kernel has no products, so no blocks of it share operands.
	if ph == phaseCombine {
		e.knobs.cluster = 1
	}
	e.thread = e.ring.Var(index.Variable{
		Name: "thread",
		Lo:   0,
		Hi:   e.threads - 1,
		Role: index.RoleThread,
	})
}

// entryName turns the name of a fusion into a PTX identifier.
func entryName(s string) string {
	return "tw_" + strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' ||
			'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// kernel emits one kernel and returns its launch.
func (e *emitter) kernel() device.Step {
	a := e.asm
	e.header()
	e.declareArrays()
	e.smem = a.get(kindB32, "mov.u32", operand("smem"))
	e.tid = a.get(kindB32, "mov.u32", threadNumber)
	// With two math groups the number of a thread is that in its group.
	if own := e.tid; e.knobs.mathGroups() > 1 {
		e.bind(
			e.thread,
			a.get(kindB32, "and.b32", own, e.threads-1),
		)
	} else {
		e.bind(e.thread, own)
	}
	if e.stream != nil {
		e.stream.declare(e)
	}
	if !e.loopsOverTiles() {
		e.tileIDs(blockNumber)
	}
	for _, r := range e.p.Runtime {
		// Run-time variables that depend on accumulators are bound where their ops are
		// computed.
		if !needsAccumulator(e.p, r.Op) {
			e.bindRuntime(r.Op)
		}
	}
	if e.knobs.pdl > 0 && e.phase == phasePartials {
		// The second kernel waits for the end of this one, so that it may start now: its
		// blocks have room once all blocks of this one have theirs.
		a.do("griddepcontrol.launch_dependents")
	}
	e.steps(e.body())
	for _, r := range e.p.Roots {
		if e.phase != phasePartials {
			e.storeRoot(r)
		}
	}
	if e.knobs.l2 > 0 && !e.hintedSome && e.phase != phaseCombine {
		e.reject("l2=1: no parameter is read once, and no result is larger than the L2 cache")
	}
	e.endTiles()
	e.sizeMathGroups()
	a.note("%d bytes of shared memory", e.shared)
	// The amount of shared memory is known only now.
	a.do("ret")
	a.code.Entry.ReqNTid = [3]int{
		int(e.threads) + e.extra, 1, 1,
	}
	return e.launch()
}

// declareArrays declares the arrays among the parameters of the kernel, and the cache
// policy of those that have one.
func (e *emitter) declareArrays() {
	for k := range e.p.Physical.Params {
		e.params = append(
			e.params,
			e.pointer(fmt.Sprintf("in%d", k), device.Input(k)),
		)
	}
	for k := range kernels.OutputShapes(e.p.Physical) {
		if e.phase != phasePartials {
			e.outputs = append(
				e.outputs,
				e.pointer(fmt.Sprintf("out%d", k), device.Output(k)),
			)
		}
	}
	if e.knobs.l2 > 0 {
		e.policy = e.asm.get(kindB64, "createpolicy.fractional.L2::evict_first.b64")
	}
}

// launch is the launch of the kernel that was emitted.
func (e *emitter) launch() device.Step {
	s := device.Step{
		Entry:       e.name,
		Grid:        device.Dim3{X: int(e.blocks())},
		Block:       device.Dim3{X: int(e.threads) + e.extra},
		SharedBytes: int(e.shared),
		Args:        e.args,
	}
	if e.phase == phasePartials {
		s.Grid.Y = e.knobs.splitk
	}
	s.Dependent = e.knobs.pdl > 0 && e.phase == phaseCombine
	if e.knobs.cluster > 1 {
		s.Cluster = device.Dim3{X: e.knobs.cluster}
	}
	return s
}

// endTiles ends the loop over the tiles of a persistent block, and the cluster. Both
// are begun by a ring; a program without one is rejected.
func (e *emitter) endTiles() {
	a := e.asm
	if e.loopsOverTiles() {
		if e.tileLoop == nil && e.stream != nil {
			e.reject("streamk=%d: the product has no loop", e.knobs.streamk)
		}
		if e.tileLoop == nil {
			e.reject("persistent=1 is for products by warpgroups")
		}
		e.endTileLoop(e.tileLoop)
		if e.knobs.cluster > 1 {
			e.leaveCluster()
		}
	}
	if len(e.boxed) > 0 {
		// Memory that copies read belongs to the block as long as its threads run.
		a.do("cp.async.bulk.wait_group", 0)
	}
	if e.knobs.promote > 0 && !e.promoted {
		e.reject("promote=1 is for products of 8-bit floats by warpgroups, of %d sums a thread at most", maxPartials/2)
	}
	if e.knobs.cluster == 1 {
		return
	}
	if !e.exitArrived {
		e.reject("cluster=%d is for products by warpgroups", e.knobs.cluster)
	}
	// The text is right for clusters of this size only, and says so; the launch names
	// them too, so that a grid that they do not divide is found before.
	a.code.Entry.ReqNCTAPerCluster = [3]int{
		e.knobs.cluster, 1, 1,
	}
	a.do("barrier.cluster.wait.acquire.aligned")
}

// blocks is the number of blocks of the grid: one for each tile program or, where
// blocks are persistent, as many as the device holds at the same time.
func (e *emitter) blocks() int64 {
	n := e.p.Programs()
	switch {
	case e.stream != nil:
		return e.stream.blocks
	case !e.loopsOverTiles():
		return n
	}
	threads := int(e.threads) + e.extra
	// The number of registers is not known before the text is assembled, so it is
	// estimated.
	registers := min(
		e.spec.ThreadRegisters, baseRegisters+int(e.sums),
	)
	// The block has all registers of the SM.
	if e.asm.code.Entry.MinNCTAPerSM == 1 {
		registers = e.spec.BlockRegisters / threads
	}
	return e.spec.ResidentBlocks(
		registers, int(e.shared), threads,
		e.knobs.cluster, n,
	)
}

// header emits comments that describe the kernel.
func (e *emitter) header() {
	e.asm.note(
		"%s at %v: %d tile programs of %d threads",
		e.p.Fusion.Name,
		[]int64(e.p.Tiling()),
		e.p.Programs(), e.threads,
	)
	switch e.phase {
	case phasePartials:
		e.asm.note("in %d pieces of their loops: what each has is left in scratch", e.knobs.splitk)
	case phaseCombine:
		e.asm.note("what %d pieces have left is joined in their order, and what follows", e.knobs.splitk)
	}
}

// versionOf is the version of the PTX ISA that a program's instructions need, and the
// target. Products of f8 need 8.4 where warps multiply them, and not by warpgroups.
func versionOf(p *symtile.Program, target string, byWarps bool) (ptx.Version, ptx.Target) {
	t := ptx.Target{}
	number := strings.TrimPrefix(target, "sm_")
	if strings.HasSuffix(number, "a") {
		number = strings.TrimSuffix(number, "a")
		t.Arch = 'a'
	}
	t.SM, _ = strconv.Atoi(number)
	if (t.SM == 89 || t.SM > 89 && byWarps) &&
		slices.ContainsFunc(p.Ops, func(op symtile.Op) bool {
			return multipliesF8(p, op)
		}) {
		return ptx.Version{Major: 8, Minor: 4}, t
	}
	if t.SM >= 90 {
		return ptx.Version{Major: 8}, t
	}
	return ptx.Version{Major: 7, Minor: 8}, t
}

// body has the steps of the program that belong to this kernel: those that the loops
// need, or those that follow them.
func (e *emitter) body() []symtile.Step {
	if e.phase == phaseWhole {
		return e.p.Body
	}
	// Loops compute their accumulators; the ops between loops are needed in both
	// kernels or in one.
	var from, ends []int
	for _, l := range topLoops(e.p.Body) {
		ends = append(ends, l.Accumulators...)
	}
	if e.phase == phasePartials {
		from, ends = ends, nil
	}
	if e.phase == phaseCombine {
		for _, r := range e.p.Roots {
			from = append(from, r.Op)
		}
	}
	used := usedBy(e.p, from, ends)
	return slices.DeleteFunc(slices.Clone(e.p.Body), func(s symtile.Step) bool {
		return s.Loop == nil && !used[s.Op]
	})
}

// phasesOf has the kernels of a plan. The error says why a plan with splitk > 1 is not
// possible.
func phasesOf(p *symtile.Program, k knobs) ([]phase, error) {
	if k.splitk == 1 {
		return []phase{phaseWhole}, nil
	}
	if k.persistent > 0 {
		return nil, unsupported(fmt.Sprintf("splitk=%d and persistent=1 exclude each other: blocks share a tile, or have several", k.splitk))
	}
	loops := topLoops(p.Body)
	if len(loops) == 0 {
		return nil, unsupported(fmt.Sprintf("splitk=%d: there is nothing to share, for every reduced or contracted dimension is one tile", k.splitk))
	}
	for _, l := range loops {
		name := p.Ops[l.Accumulators[0]].Instr.Name
		total := int64(1)
		for _, d := range l.Dims {
			total *= constantOf(p.Space.Dims[d].Tiles)
		}
		if total < int64(k.splitk) {
			return nil, unsupported(fmt.Sprintf("splitk=%d is more than the %d iterations of %s", k.splitk, total, name))
		}
		if n := needsTotal(p, l, loops); n >= 0 {
			return nil, unsupported(fmt.Sprintf(
				"splitk=%d: %s needs all of %s, of which blocks have pieces",
				k.splitk, name, p.Ops[n].Instr.Name,
			))
		}
	}
	return []phase{phasePartials, phaseCombine}, nil
}

// scratchFits returns an error where the partial results take more than a quarter of
// the device's memory.
func scratchFits(scratch []int64, s device.Spec) error {
	total := int64(0)
	for _, n := range scratch {
		total += n
	}
	if s.Memory > 0 && total > s.Memory/4 {
		return fmt.Errorf("what blocks leave for each other takes %d bytes, more than a quarter of the memory of %s", total, s.Target)
	}
	return nil
}

// steps emits a body of the program: loops, accumulators without a loop, and tiles
// that are copied to shared memory. Other ops are computed where they are needed.
func (e *emitter) steps(body []symtile.Step) {
	for _, s := range body {
		if s.Loop != nil {
			e.loop(s.Loop)
			continue
		}
		op := e.p.Ops[s.Op]
		for _, v := range op.RuntimeArgs {
			e.bindRuntime(v)
		}
		switch {
		// Warpgroups compute a product without a loop as a ring of one iteration.
		case op.Code == hlo.OpDot &&
			e.grouped([]int{s.Op}, nil, nil):
		case op.Code == hlo.OpReduce || op.Code == hlo.OpDot:
			c := e.newAccumulator(s.Op)
			c.begin()
			c.accumulate()
			c.finish()
		// All other ops have no code of their own here.
		case e.hints.staged[s.Op]:
			e.stage(s.Op)
		}
	}
}

// bindRuntime gives a value to the run-time variables that stand for op n, which has
// rank 0.
func (e *emitter) bindRuntime(n int) {
	for _, r := range e.p.Runtime {
		if r.Op != n {
			continue
		}
		if _, ok := e.asm.sumOf(sumKey{r.Var, false}); ok {
			continue
		}
		v := e.elements(n, []point{{}})[0]
		x := e.runtime(
			v,
			e.p.Ops[n].Instr.Shape.DType,
			r.Var.Range().Hi,
		)
		e.bind(r.Var, e.num(x))
	}
}

// needsAccumulator reports whether op n depends on a reduce or dot.
func needsAccumulator(p *symtile.Program, n int) bool {
	for k, used := range usedBy(p, []int{n}, nil) {
		code := p.Ops[k].Code
		if used && (code == hlo.OpReduce || code == hlo.OpDot) {
			return true
		}
	}
	return false
}

// newAccumulator returns the code of a reduce or dot.
func (e *emitter) newAccumulator(n int) accumulator {
	if e.p.Ops[n].Code == hlo.OpDot {
		return e.newDot(n)
	}
	return e.newReduction(n)
}

// newDot chooses tensor cores for a product where they can compute it, and else
// multiply-adds of single threads. Products by warpgroups are rings, which are tried
// first (grouped).
func (e *emitter) newDot(n int) accumulator {
	p := e.newProduct(n)
	for _, d := range []hlo.DType{
		p.d,
		e.typeOf(p.lhs.arg, 0),
		e.typeOf(p.rhs.arg, 0),
	} {
		if d.IsComplex() {
			e.reject("%s: a dot of %s", p.op.Instr.Name, d)
		}
	}
	if t := e.newTensorDot(p); t != nil {
		return t
	}
	return e.newScalarDot(p)
}

// loop emits a loop of the program with its accumulators: as a ring of tensor copies,
// as a software pipeline, or step by step.
func (e *emitter) loop(l *symtile.Loop) {
	if e.phase == phaseCombine && e.loopDepth == 0 {
		e.addAllPartials(l)
		return
	}
	if l.Online != nil {
		e.online(l)
		return
	}
	if e.grouped(l.Accumulators, l.Dims, l.Body) {
		return
	}
	e.beginStream()
	accumulators := make([]accumulator, len(l.Accumulators))
	for k, c := range l.Accumulators {
		accumulators[k] = e.newAccumulator(c)
		accumulators[k].begin()
	}
	if e.pipelined(l, accumulators) {
		return
	}
	part := e.iterationRange(l.Dims)
	e.leaveOutGroups(&part, l.Accumulators)
	e.loopDepth++
	defer func() { e.loopDepth-- }()
	e.iterate(part, func() {
		before := e.asm.waits
		e.steps(l.Body)
		for _, c := range accumulators {
			c.accumulate()
		}
		// Without this barrier a fast warp would overwrite, in the next iteration,
		// shared memory that this one still reads.
		if e.asm.waits > before {
			e.barrier()
		}
	})
	e.conclude(part, accumulators)
}

// dependsOnLaunch refuses the knob pdl where there is no kernel of the plan to wait for,
// or no way to.
func dependsOnLaunch(s device.Spec, k knobs) error {
	switch {
	case k.pdl == 0:
		return nil
	case !s.DependentLaunches():
		return unsupported(fmt.Sprintf("pdl=1: %s has no programmatic dependent launches", s.Target))
	case k.splitk == 1:
		return unsupported("pdl=1: the plan is one kernel, and what runs before it is another fusion's")
	}
	return nil
}

// awaitPartials waits, once, for the end of the kernel before this one where this one may
// have begun earlier (knob pdl). What is read before are inputs, which that kernel does
// not write.
func (e *emitter) awaitPartials() {
	if e.knobs.pdl > 0 && !e.awaited {
		e.awaited = true
		e.asm.do("griddepcontrol.wait")
	}
}

// addAllPartials adds the partial results that the blocks of a loop have stored.
func (e *emitter) addAllPartials(l *symtile.Loop) {
	e.awaitPartials()
	var accumulators []accumulator
	r := e.ringOf(l.Accumulators, l.Dims, l.Body)
	if r != nil {
		accumulators = r.accumulators()
	} else {
		for _, n := range l.Accumulators {
			accumulators = append(accumulators, e.newAccumulator(n))
		}
	}
	for _, c := range accumulators {
		c.begin()
		c.addPartials()
		c.finish()
	}
}
