package gpu

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A stage is work that all threads of a block share: it stores a result, or
// brings a value to shared memory, where others read it after a barrier.

// A bufferKey names a result of an op.
type bufferKey struct{ op, part int }

// A buffer is a tile in shared memory.
type buffer struct {
	d       hlo.DType
	sizes   []int64
	strides []int64 // in elements
	at      int64   // bytes from the base
	base    operand // of a slot; "": the start of shared memory
	// crossing is how two dimensions lie, whose strides are 0; nil: by strides
	transposed *transposedTile
}

// elements of the buffer's extent, gaps included.
func span(sizes, strides []int64) int64 {
	n := int64(1)
	for k, s := range sizes {
		n += (s - 1) * strides[k]
	}
	return n
}

func dense(sizes []int64) []int64 {
	strides := make([]int64, len(sizes))
	n := int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		strides[d] = n
		n *= sizes[d]
	}
	return strides
}

// allocateShared reserves shared memory and returns where it begins.
func (e *emitter) allocateShared(bytes int64) int64 {
	at := (e.shared + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
	e.shared = at + bytes
	return at
}

// allocateFreed reserves shared memory from what a loop before needed only while it ran,
// if there is enough left of it.
func (e *emitter) allocateFreed(bytes int64) int64 {
	at := (e.freed.at + maxVectorBytes - 1) / maxVectorBytes * maxVectorBytes
	if at+bytes > e.freed.end {
		return e.allocateShared(bytes)
	}
	e.freed.at = at + bytes
	return at
}

// A memoryRange is shared memory from at to end.
type memoryRange struct{ at, end int64 }

// release makes the memory of a loop that is not inside another free for what
// comes after it.
func (e *emitter) release(at, bytes int64) {
	if e.loopDepth == 0 {
		e.freed = memoryRange{at, at + bytes}
	}
}

func (e *emitter) newBuffer(d hlo.DType, sizes, strides []int64) *buffer {
	return &buffer{
		d:       d,
		sizes:   sizes,
		strides: strides,
		at:      e.allocateShared(span(sizes, strides) * d.Size()),
	}
}

// memory is where elements are loaded from and stored to.
type memory struct {
	space space
	base  operand
	first int64 // bytes from the base
}

func (b *buffer) memory(e *emitter) memory {
	if b.base != "" {
		return memory{shared, b.base, b.at}
	}
	return memory{shared, e.smem, b.at}
}

// place is where an element of the buffer is.
func (b *buffer) place(e *emitter, p point) place {
	at := e.dotted(p.at, b.strides)
	if b.transposed != nil {
		at = at.Add(b.transposed.position(
			e, p.at, b.d.Size(),
		))
	}
	return place{at, p.when}
}

func (e *emitter) places(b *buffer, points []point) []place {
	all := make([]place, len(points))
	for k, p := range points {
		all[k] = b.place(e, p)
	}
	return all
}

func (e *emitter) fetch(b *buffer, points []point) []operand {
	return e.gatherPlaces(
		b.memory(e), b.d, e.places(b, points),
	)
}

func (e *emitter) put(b *buffer, points []point, vals []operand) {
	e.scatterPlaces(
		b.memory(e), b.d,
		e.places(b, points), vals,
	)
}

// barrier waits until all threads of the block have come here; what they wrote
// to shared memory is seen after it.
func (e *emitter) barrier() {
	if e.mathGroup != nil {
		e.asm.do("bar.sync", e.mathGroup.barrier, e.threads)
		return
	}
	if e.extra > 0 { // not the producer, which is gone
		e.asm.do("bar.sync", 0, e.threads)
		return
	}
	e.asm.do("bar.sync", 0)
}

// waitForWrites waits for what was written to shared memory since the last barrier.
func (e *emitter) waitForWrites() {
	if e.async {
		e.asm.do("cp.async.wait_all")
	}
	if e.fresh {
		e.barrier()
	}
	e.fresh, e.async = false, false
}

// stage brings an op's tile to shared memory, its elements in the order in which
// they are loaded. A tile that is read crosswise is swizzled; rows of others are
// an odd number of words apart, so that columns are in different banks.
func (e *emitter) stage(n int) {
	op := e.p.Ops[n]
	d := registerType(op.Instr.Shape.DType)
	going := e.flat(n, d.Size()).Layout
	sizes := op.Tile.Sizes()
	order := going.Order()
	key := bufferKey{n, 0}
	delete(e.buffers, key)
	var b *buffer
	if c := e.transposedTileOf(n, order, d.Size()); c != nil {
		b = e.transposedBuffer(
			&buffer{d: d, sizes: sizes}, c, order,
		)
	} else {
		b = e.newBuffer(
			d, sizes, e.bankStrides(sizes, order, d.Size()),
		)
	}
	e.asm.note("%s to shared memory", e.describe(n))
	e.asm.enter()
	e.each(going, func(points []point) {
		vals := e.elements(n, points)
		e.put(b, points, vals)
	})
	e.asm.leave()
	e.barrier()
	e.buffers[key] = b
}

// bankStrides are strides in the order of dims, the rows of the fastest dimension
// that has more than one element padded to an odd number of words.
func (e *emitter) bankStrides(sizes []int64, order []int, size int64) []int64 {
	strides := make([]int64, len(sizes))
	n, padded := int64(1), false
	for _, d := range slices.Backward(order) {
		strides[d] = n
		n *= sizes[d]
		if !padded && sizes[d] > 1 {
			words := index.CeilDiv(n*size, 4)
			n = max(1, (words|1)*4/size)
			padded = true
		}
	}
	return strides
}

func identity(n int) []int {
	all := make([]int, n)
	for k := range all {
		all[k] = k
	}
	return all
}

// majorToMinor is the dimensions of an array, the slowest in memory first: a fact
// of the array, as rows and tensor copies have it. In which order threads go over
// a tile is chosen: see chosenFor.
func majorToMinor(s hlo.Shape) []int {
	order := identity(s.Rank())
	strides := s.Strides()
	slices.SortStableFunc(order, func(x, y int) int {
		return int(min(1, max(-1, strides[y]-strides[x])))
	})
	return order
}

// describe names an op and its tile.
func (e *emitter) describe(n int) string {
	op := e.p.Ops[n]
	return fmt.Sprintf(
		"%%%d = %s (%s) %s", n, op.Code, op.Instr.Name, op.Tile,
	)
}

// comment comments on an op where the first of its elements in a stage is computed.
func (e *emitter) comment(n int) {
	if !e.noted[n] {
		e.noted[n] = true
		e.asm.note("%s", e.describe(n))
	}
}

// storeRoot writes a result to its output.
func (e *emitter) storeRoot(r symtile.Root) {
	op := e.p.Ops[r.Op]
	shape := op.Instr.Shape
	e.asm.note(
		"output %d from %s", r.Output, e.describe(r.Op),
	)
	e.root = r.Op
	clear(e.noted)
	e.asm.enter()
	defer e.asm.leave()
	out := memory{global, e.output(r.Output), 0}
	var once conditions
	for _, d := range r.Once {
		once = once.and(e.p.Space.Dims[d].Tid.Neg())
	}
	e.distribute(r.Op, shape, func(points []point) {
		places := make([]place, len(points))
		for k := range points {
			points[k].when = points[k].when.all(once)
			index, there := e.tensor(op.Tile, points[k].at)
			points[k].when = points[k].when.all(there)
			places[k] = place{
				e.dotted(index, shape.Strides()),
				points[k].when,
			}
		}
		e.scatterPlaces(
			out, shape.DType, places,
			e.elements(r.Op, points),
		)
	})
}

// distribute emits body for all elements of a root: as a reduction or a product
// before it has spread a tile of these sizes, so that values stay in registers,
// else as was chosen for it.
func (e *emitter) distribute(
	n int, shape hlo.Shape, body func(points []point),
) {
	sizes := e.p.Ops[n].Tile.Sizes()
	f := e.fragments[fmt.Sprint(sizes)]
	if f != nil &&
		!e.hints.separateStores[n] &&
		e.knobs.epilogue == 0 {
		f(body)
		return
	}
	if s := e.layouts[fmt.Sprint(sizes)]; s != nil {
		e.vectors(s, body)
		return
	}
	if s := e.transposedLayout(n, shape.DType.Size()); s != nil {
		e.each(s, body)
		return
	}
	c := e.stored(n)
	e.share(c)
	e.each(c.Layout, body)
}

// steps emits a body of the program.
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
		case op.Code == hlo.OpDot &&
			e.grouped([]int{s.Op}, nil, nil):
		case op.Code == hlo.OpReduce || op.Code == hlo.OpDot:
			c := e.newAccumulator(s.Op)
			c.begin()
			c.accumulate()
			c.finish()
		case e.hints.staged[s.Op]:
			e.stage(s.Op)
		}
	}
}

// bindRuntime binds the run-time variables that op n, of rank 0, is the value of.
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

// needsAccumulator says whether op n needs the result of a reduce or dot.
func needsAccumulator(p *symtile.Program, n int) bool {
	for k, used := range usedBy(p, []int{n}, nil) {
		code := p.Ops[k].Code
		if used && (code == hlo.OpReduce || code == hlo.OpDot) {
			return true
		}
	}
	return false
}

// A accumulator is a reduce or dot: what comes before its loop, at the end of every
// iteration, and after it. Where blocks share the loop, leave stores what one of
// them has accumulated, and gather accumulates what all have left.
type accumulator interface {
	begin()
	accumulate()
	finish()
	storePartial()
	addPartials()
}

func (e *emitter) newAccumulator(n int) accumulator {
	if e.p.Ops[n].Code == hlo.OpDot {
		return e.newDot(n)
	}
	return e.newReduction(n)
}

// loop emits a loop of the program around its body and the closers.
func (e *emitter) loop(l *symtile.Loop) {
	if e.phase == phaseCombine && e.loopDepth == 0 {
		e.addAllPartials(l)
		return
	}
	if e.grouped(l.Accumulators, l.Dims, l.Body) {
		return
	}
	closers := make([]accumulator, len(l.Accumulators))
	for k, c := range l.Accumulators {
		closers[k] = e.newAccumulator(c)
		closers[k].begin()
	}
	if e.pipelined(l, closers) {
		return
	}
	part := e.iterationRange(l.Dims)
	e.loopDepth++
	defer func() { e.loopDepth-- }()
	e.iterate(part, func() {
		before := e.asm.waits
		e.steps(l.Body)
		for _, c := range closers {
			c.accumulate()
		}
		if e.asm.waits > before {
			e.barrier() // the next iteration writes what this one reads
		}
	})
	part.conclude(closers)
}

// nest emits loops over the tile ids of dims, the last fastest.
func (e *emitter) nest(dims []int, body func()) {
	if len(dims) == 0 {
		body()
		return
	}
	d := e.p.Space.Dims[dims[0]]
	e.asm.note("for %s < %s", d.Name, d.Tiles)
	e.repeatAs(d.Tid, constantOf(d.Tiles), func() {
		e.nest(dims[1:], body)
	})
}
