package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/updates"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/scattering"
)

// A scatter accumulates, too: its prologue takes over the tile of the operand, and each
// iteration goes through a tile of updates in row-major order. Every tile reads all index
// vectors and takes what falls into it, so that lanes never write the same element and the
// bits are those of one lane. Splitting windows among lanes divides the work, splitting the
// dimensions that index vectors address only the sums.

// The prologue of an accumulator sets its results to the initial values, and the
// epilogue rounds them to their element type, once. In between they have the class of
// the scratch, so that a sum of bf16 accumulates in f32.

// An accumulator is a reduce or dot in three parts: a prologue before its loop,
// an accumulation at the end of every iteration, and an epilogue after the
// loop. Without a loop, the three follow each other.
type accumulator struct {
	name               string
	outs               []*value      // The values that it accumulates into.
	temporaries        []*value      // Its own values while it accumulates.
	args               []*value      // The values that it accumulates.
	inits              []*value      // The values it begins with.
	prologue, epilogue []step        // What runs before the loop, and after it.
	accumulate         step          // What runs at the end of an iteration.
	reduction          *rowReduction // The reduction, where row kernels can do it.
	overwrites         bool          // Accumulating begins with the initial values itself.
	// empty reports whether nothing was accumulated and outs hold arbitrary
	// elements. It is nil where outs hold the values to begin with.
	empty func(w *worker) bool
}

// lowerAccumulator lowers op n. Masks of what it accumulates are evaluated
// where b begins.
func (b *block) lowerAccumulator(n int) *accumulator {
	return b.lowerAccumulatorAs(n, b.l.p.Ops[n])
}

// lowerAccumulatorAs is lowerAccumulator of op n with other arguments.
func (b *block) lowerAccumulatorAs(n int, op symtile.Op) *accumulator {
	c := &accumulator{name: string(op.Code)}
	shapes := []hlo.Shape{op.Instr.Shape}
	if op.Instr.Shape.DType == hlo.Tuple {
		shapes = op.Instr.Shape.Tuple
	}
	for k, s := range shapes {
		name := fmt.Sprintf("%%%d", n)
		if len(shapes) > 1 {
			name = fmt.Sprintf("%%%d.%d", n, k)
		}
		c.outs = append(
			c.outs,
			b.l.value(
				name, portable.ClassOf(s.DType), n,
				op.Tile.Elements(),
			),
		)
	}
	b.l.results[n] = c.outs
	switch r := b.l.running[n]; {
	case op.Code == hlo.OpDot:
		b.dot(op, c)
	case op.Code == hlo.OpScatter:
		// Its initial values are the tile of its operand.
		b.scatter(op, c)
	case r != nil:
		b.runningReduce(r, n, op, c)
	default:
		b.reduce(op, c)
	}
	for k, s := range shapes {
		if roundedByStore(b.l.p, op) {
			break
		}
		c.addBounds(op, k, s.DType)
	}
	// The parts of a divided reduction are combined in its epilogue. Those of a dot
	// are in dot.go.
	s := b.l.split
	if s != nil && slices.Contains(s.ops, n) && c.reduction != nil {
		c.splitReduction(s, c.outs[0], c.reduction.monoid)
	}
	return c
}

// addBounds adds the prologue and epilogue of result k: the initial value, and
// the narrowing to its element type.
func (c *accumulator) addBounds(op symtile.Op, k int, d hlo.DType) {
	// Dots have no initial value; they know that they are empty.
	var start *value
	if op.Code == hlo.OpReduce && !c.overwrites {
		start = c.inits[k]
	}
	switch c.outs[k].class {
	case portable.Float32:
		addBoundsAs[float32](c, c.outs[k], start, d)
	case portable.Float64:
		addBoundsAs[float64](c, c.outs[k], start, d)
	case portable.Int32:
		addBoundsAs[int32](c, c.outs[k], start, d)
	case portable.Int64:
		addBoundsAs[int64](c, c.outs[k], start, d)
	}
}

// addBoundsAs is addBounds for values of one class.
func addBoundsAs[T portable.Number](c *accumulator, v, start *value, d hlo.DType) {
	if start != nil {
		c.prologue = append(c.prologue, func(w *worker) {
			portable.Fill(whole[T](w, v), first[T](w, start))
		})
	}
	if fit := portable.Narrowing[T](d); fit != nil {
		c.epilogue = append(c.epilogue, func(w *worker) {
			x := whole[T](w, v)
			fit(x, x)
		})
	}
}

// accumulateAtOnce lowers an accumulator without a loop.
func (b *block) accumulateAtOnce(n int) *accumulator {
	c := b.lowerAccumulator(n)
	all := append(
		append(c.prologue, c.accumulate), c.epilogue...,
	)
	// A row kernel that takes the reduction over begins with the initial value itself.
	if c.reduction != nil {
		c.reduction.init = c.inits[0]
		c.reduction.initSteps = c.prologue
	}
	b.add(&instr{
		name:      c.name,
		reduction: c.reduction,
		outs:      append(c.temporaries, c.outs...),
		tileArgs:  append(c.args, c.inits...),
		run: func(w *worker) {
			for _, f := range all {
				f(w)
			}
		},
	})
	return c
}

// accumulateInLoop lowers an accumulator of a loop, whose body is b.
func (b *block) accumulateInLoop(n int, in *instr) *accumulator {
	return b.accumulateInLoopAs(n, b.l.p.Ops[n], in)
}

// accumulateInLoopAs is accumulateInLoop of op n with other arguments.
func (b *block) accumulateInLoopAs(n int, op symtile.Op, in *instr) *accumulator {
	c := b.lowerAccumulatorAs(n, op)
	if b.l.err != nil {
		return c
	}
	// The loop makes the results, which live through all iterations, and an
	// instruction at the end of its body accumulates into them.
	in.outs = append(in.outs, c.outs...)
	in.tileArgs = append(in.tileArgs, c.inits...)
	in.loop.prologue = append(
		in.loop.prologue, c.prologue...,
	)
	in.loop.epilogue = append(
		in.loop.epilogue, c.epilogue...,
	)
	b.add(&instr{
		name:      "accumulate " + c.name,
		outs:      c.temporaries,
		tileArgs:  append(c.args, c.outs...),
		reduction: c.reduction,
		run:       c.accumulate,
	})
	return c
}

// scatter lowers a scatter into the parts of an accumulator.
func (b *block) scatter(op symtile.Op, c *accumulator) {
	switch c.outs[0].class {
	case portable.Float32:
		lowerScatter[float32](b, op, c)
	case portable.Float64:
		lowerScatter[float64](b, op, c)
	case portable.Int32:
		lowerScatter[int32](b, op, c)
	case portable.Int64:
		lowerScatter[int64](b, op, c)
	}
}

// lowerScatter is scatter for elements of one class: the prologue takes over the tile of
// the operand, and each iteration goes through a tile of updates.
func lowerScatter[T portable.Number](b *block, op symtile.Op, c *accumulator) {
	// Bits of the result do not depend on the combination's code.
	combine := updates.CombinationOf[T](op.Instr, b.l.jit)
	if combine == nil {
		b.l.refuse(
			op, "the CPU backend does not scatter %s by this computation",
			op.Instr.Shape.DType,
		)
		return
	}
	out := c.outs[0]
	to := scatterResult(b.l, op, out)
	inPlace := readByScattersOnly(b.l.p, op.Args[2])
	x := newScatterAccess(b, op, to, inPlace)
	indices := materialized(b, op, 1)
	c.args = []*value{indices}
	var from *value
	var memory *updatesInMemory[T]
	if inPlace {
		memory = newUpdatesInMemory[T](b, op, &x.Access, c)
	} else {
		from = x.updates(b, op)
		c.args = append(c.args, from)
	}
	c.prologue = append(
		c.prologue, scatterStart[T](b, op, c, to),
	)
	code, list := x.compile(b.l, out, indices, memory != nil && memory.read != nil)
	if code != nil {
		c.temporaries = append(c.temporaries, list)
	}
	c.accumulate = func(w *worker) {
		r := updates.Run[T]{
			Access:  &x.Access,
			Combine: combine,
			Args:    &w.reduceArgs,
			Dst:     whole[T](w, out),

			CodeArgs: &w.scatterArgs,
			Code:     code,
		}
		if code != nil {
			w.scatterArgs.List = w.addresses[list.id]
		}
		if memory != nil {
			memory.bind(w, &r)
		} else {
			r.Src = whole[T](w, from)
		}
		x.evaluate(w, &r.Bounds)
		// Indices are of either class of integers.
		if indices.class == portable.Int32 {
			updates.Apply(
				&r, whole[int32](w, indices),
			)
		} else {
			updates.Apply(
				&r, whole[int64](w, indices),
			)
		}
	}
}

// updates is the value of the updates of a scatter. Copies of one number, as where members
// of segments are counted, are read from the copies that there are.
func (x *scatterAccess) updates(b *block, op symtile.Op) *value {
	from := b.l.arg(op, 2)
	if from.where != inSplat || x.WindowSize() != 1 {
		return materialized(b, op, 2)
	}
	for k := range x.Batch {
		x.Batch[k].From = 0 // all are the same
	}
	return from
}

// compile makes the machine code of a scatter whose updates are not converted, where there is
// some, and the list of places for it.
func (x *scatterAccess) compile(
	l *lowering, out, indices *value, converted bool,
) (func(*vector.ScatterArgs), *value) {
	code, ok := x.Code(out.class, indices.class.Bytes())
	if !ok || !l.jit || converted {
		return nil, nil
	}
	a := l.assembler()
	if code.Emit(a) != nil {
		return nil, nil
	}
	f, ok := l.addRoutine(a)
	if !ok {
		return nil, nil
	}
	const words = int64(unsafe.Sizeof(vector.ScatterList{})) / 8
	call := func(args *vector.ScatterArgs) {
		f.Call(unsafe.Pointer(args))
	}
	return call, l.value("places", portable.Int64, noTile, words)
}

// A scatterAccess is the addressing of a scatter, with the masks of its dimensions.
type scatterAccess struct {
	updates.Access           // The dimensions, which have the numbers of their masks.
	masks          []dimMask // The masks of masked dimensions.
	inPlace        bool      // The updates are read in their array.
}

// newScatterAccess describes a scatter, whose masks are evaluated where b begins. The
// elements of the result are the strides to apart.
func newScatterAccess(
	b *block, op symtile.Op, to []int64, inPlace bool,
) *scatterAccess {
	i := op.Instr
	s := i.Attrs.Scatter
	x := &scatterAccess{inPlace: inPlace}
	monoid, ok := i.Attrs.ToApply.Monoid()
	x.Replaces = !ok
	// Sums of single elements have a loop of their own.
	x.Sums = monoid == hlo.OpAdd &&
		i.Shape.DType != hlo.Pred
	// Tiles are dense in scratch. Index vectors of a batch are where its updates are, those
	// of dimensions in common beside elements of the result.
	tile := b.l.p.Ops[op.Args[2]].Tile
	vectors := b.l.p.Ops[op.Args[1]].Tile
	from := hlo.RowMajor(tile.Sizes())
	if inPlace {
		from = memoryStrides(b.l.p.Ops[op.Args[2]])
	}
	at := hlo.RowMajor(vectors.Sizes())
	for u, d := range scattering.BatchDims(i) {
		if d < 0 {
			continue
		}
		next := updates.Batch{
			Size:  sizeOf(tile[u]), // of this iteration's tile
			Index: at[d],
			From:  from[u],
			Mask:  x.mask(b, tile[u]),
		}
		// A dimension that indices and operand have in common moves both.
		k := slices.Index(s.IndicesBatching, int64(d))
		if k >= 0 {
			next.To = to[s.InputBatching[k]]
		}
		x.Batch = append(x.Batch, next)
	}
	x.windows(b, op, at, from, to)
	x.InnermostLast()
	return x
}

// windows adds the sides of windows, in the order of the operand's dimensions. The steps are
// those of the tiles of index vectors, updates and the result.
//
// A dimension of the operand that the updates lack, and one along which index vectors say
// where a window begins, has its elements at a place that is read for each update.
func (x *scatterAccess) windows(
	b *block, op symtile.Op, at, from, to []int64,
) {
	i := op.Instr
	s := i.Attrs.Scatter
	tile := b.l.p.Ops[op.Args[2]].Tile
	// The components of an index vector are a step apart.
	component := int64(0)
	if int(s.IndexVectorDim) < len(at) {
		component = at[s.IndexVectorDim]
	}
	// Where windows have no dimension, or begin where an index vector says, elements are
	// placed; else their tile is beside that of the result.
	sizes := scattering.Window(i)
	dims := scattering.WindowDims(i)
	for d, t := range op.Tile {
		if slices.Contains(s.InputBatching, int64(d)) {
			continue
		}
		side := updates.Side{
			Size:   1, // where windows have no dimension
			To:     to[d],
			Mask:   -1,
			Start:  -1, // no component of an index vector
			Placed: true,
			Tile:   sizeOf(t),
			Offset: b.slot(t.Offset),
			Last:   i.Shape.Dims[d] - sizes[d],
		}
		// Component k of index vectors is the start along dimension d.
		k := slices.Index(s.ToOperand, int64(d))
		if k >= 0 {
			side.Start = int64(k) * component
		}
		u := slices.Index(dims, d)
		if u >= 0 {
			x.alongWindow(b, &side, tile[u], sizes[d])
			side.From = from[u]
		}
		x.Window = append(x.Window, side)
	}
}

// alongWindow is a side along which updates have windows of a size: they are whole where
// their starts are read, and else a tile beside that of the result.
//
// A tile beside that of the result has its elements, one for one: they may be strided, or
// several digits.
func (x *scatterAccess) alongWindow(
	b *block, side *updates.Side,
	t symtile.DimTile, window int64,
) {
	side.Placed = side.Start >= 0
	if side.Placed {
		side.Size = window
		return
	}
	side.Size = sizeOf(t)
	// A window that is shorter than the dimension ends somewhere in a tile, and an array
	// where the last tile does.
	if side.Last > 0 || x.inPlace {
		side.Mask = x.mask(b, t)
	}
}

// sizeOf is the size of a dimension of a tile.
func sizeOf(d symtile.DimTile) int64 {
	v, _ := d.Size.Value()
	return v
}

// mask adds the mask of a dimension of a tile, and is its number; −1 where nothing is
// masked.
func (x *scatterAccess) mask(
	b *block, t symtile.DimTile,
) int {
	if !t.Masked() {
		return -1
	}
	x.masks = append(x.masks, newDimMask(b, t))
	return len(x.masks) - 1
}

// evaluate finds what of the tiles is valid, and where that of the result is.
//
// Index vectors that an iteration lacks, behind the last one, are masked.
func (x *scatterAccess) evaluate(
	w *worker, to *updates.Bounds,
) {
	valid := func(size int64, mask int) (
		r updates.Range,
	) {
		if mask < 0 {
			return updates.Range{Hi: size}
		}
		r.Lo, r.Hi = x.masks[mask].valid(w)
		return r
	}
	for k, d := range x.Batch {
		to.Batch[k] = valid(d.Size, d.Mask)
	}
	for k, d := range x.Window {
		to.Window[k] = valid(d.Size, d.Mask)
		to.Offsets[k] = w.slots[d.Offset]
	}
}

// turnedProducts is a program in which a dot that only a transpose of its rows and columns
// reads makes the transposed matrix itself, of the transposed operands: (A·B)ᵀ = Bᵀ·Aᵀ. The
// transpose is another name of it then. Sums have the same terms in the same order.
func turnedProducts(p *symtile.Program) *symtile.Program {
	q := p
	for n, op := range p.Ops {
		if op.Code != hlo.OpTranspose ||
			!turnsProduct(p, op) {
			continue
		}
		if q == p {
			clone := *p
			clone.Ops = slices.Clone(p.Ops)
			q = &clone
		}
		at := op.Args[0]
		q.Ops[at] = turnedProduct(p.Ops[at], op)
		q.Ops[n].Code = hlo.OpCopy
		q.Ops[n].Perm = nil
	}
	return q
}

// turnsProduct reports whether a transpose exchanges the rows and columns of a dot that
// nothing else reads, no online loop either, whose rows are rescaled.
func turnsProduct(p *symtile.Program, op symtile.Op) bool {
	n := op.Args[0]
	dot := p.Ops[n]
	if !isDot(dot) || len(readersOf(p, dot.Instr)) != 1 ||
		rescales(p.Body, n) {
		return false
	}
	for _, r := range p.Roots {
		if r.Op == n {
			return false
		}
	}
	a := dot.Instr.Attrs
	batch := len(a.LHSBatch)
	left := p.Ops[dot.Args[0]].Tile
	columns := len(left) - len(a.LHSContract) // where they begin
	var order []int
	for k := range op.Perm {
		order = append(order, k)
	}
	// batch, rows, columns to batch, columns, rows
	return slices.Equal(op.Perm, slices.Concat(
		order[:batch],
		order[columns:],
		order[batch:columns],
	))
}

// rescales reports whether op n is a sum that an online loop among steps, or inside of one,
// rescales.
func rescales(body []symtile.Step, n int) bool {
	return slices.ContainsFunc(body, func(s symtile.Step) bool {
		switch {
		case s.Loop == nil:
			return false
		case s.Loop.Online != nil && slices.ContainsFunc(
			s.Loop.Online.Rescaled,
			func(r symtile.Rescaled) bool { return r.Op == n },
		):
			return true
		}
		return rescales(s.Loop.Body, n)
	})
}

// readersOf are the ops that read an instruction, as often as they do.
func readersOf(p *symtile.Program, i *hlo.Instr) (list []int) {
	for n, user := range p.Ops {
		for _, arg := range user.Args {
			if p.Ops[arg].Instr == i {
				list = append(list, n)
			}
		}
	}
	return list
}

// turnedProduct is a dot with its operands exchanged, which makes the tile of a transpose.
func turnedProduct(dot, transpose symtile.Op) symtile.Op {
	i := *dot.Instr
	a := dot.Instr.Attrs
	i.Shape = transpose.Instr.Shape
	i.Operands = exchanged(i.Operands)
	i.Attrs.LHSBatch = a.RHSBatch
	i.Attrs.RHSBatch = a.LHSBatch
	i.Attrs.LHSContract = a.RHSContract
	i.Attrs.RHSContract = a.LHSContract
	dot.Instr = &i
	dot.Tile = transpose.Tile
	dot.Args = exchanged(dot.Args)
	return dot
}

// exchanged is two elements in the other order.
func exchanged[T any](x []T) []T {
	return []T{x[1], x[0]}
}

// A scatter reads and writes arrays where they are. Updates that are a parameter are read
// there, those only that fall into a tile; an operand that is one is copied straight to the
// tile of the result, which lies in an output that nothing else reads.

// readByScattersOnly reports whether scatters are the only readers of a parameter, as
// operands or as updates, so that no tile of it is loaded.
func readByScattersOnly(p *symtile.Program, n int) bool {
	op := p.Ops[n]
	reads := 0
	for _, user := range p.Ops {
		for k, a := range user.Args {
			if a != n {
				continue
			}
			if reads++; user.Code != hlo.OpScatter ||
				!scattersInPlace(p, user, k) {
				return false
			}
		}
	}
	return reads > 0 && op.Code == hlo.OpParameter &&
		!slices.ContainsFunc(p.Roots, func(r symtile.Root) bool {
			return r.Op == n
		})
}

// scattersInPlace reports whether a scatter can read its operand (k is 0) or its updates
// (2) in an array: one step leads to the next element along each dimension. Updates of a
// tile that can begin in front of the array, as that of a pad or the second operand of a
// concatenate, have no first element to count from. Short elements of windows are converted
// as rows of these; single ones would be one by one.
func scattersInPlace(p *symtile.Program, scatter symtile.Op, k int) bool {
	source := p.Ops[scatter.Args[k]]
	for _, d := range source.Tile {
		stride, known := d.Stride.Value()
		if d.Digits != nil || !known || stride < 1 ||
			k == 2 && d.MaskedBelow() {
			return false
		}
		for _, r := range p.Runtime {
			if slices.Contains(d.Offset.Vars(), r.Var) {
				return false
			}
		}
	}
	if k == 2 {
		return portable.IsNative(source.Instr.Shape.DType) ||
			windowsElements(scatter.Instr) > 1
	}
	return k == 0
}

// windowsElements is the elements of a window of a scatter.
func windowsElements(i *hlo.Instr) int64 {
	return hlo.Elements(scattering.Window(i))
}

// memoryStrides is the strides in its array of a tile that scattersInPlace accepts.
func memoryStrides(op symtile.Op) (strides []int64) {
	memory := op.Instr.Shape.Strides()
	for k, d := range op.Tile {
		stride, _ := d.Stride.Value()
		strides = append(strides, stride*memory[k])
	}
	return strides
}

// updatesInMemory is where the updates of a scatter are that it reads in their array.
type updatesInMemory[T portable.Number] struct {
	param int
	base  int // The slot of the place of element 0 of the tile.
	// How elements are converted, and the row for them; nil where they are of type T.
	read portable.Transfer[T]
	row  *value
}

// newUpdatesInMemory is where b finds the updates of a scatter.
func newUpdatesInMemory[T portable.Number](
	b *block, op symtile.Op, x *updates.Access, c *accumulator,
) *updatesInMemory[T] {
	source := b.l.p.Ops[op.Args[2]]
	shape := source.Instr.Shape
	base := b.l.p.Space.Ring.Const(0)
	memory := shape.Strides()
	for k, d := range source.Tile {
		base = base.Add(d.Offset.Scale(memory[k]))
	}
	u := &updatesInMemory[T]{
		param: source.Instr.Attrs.Param,
		base:  b.slot(base),
	}
	if portable.IsNative(shape.DType) {
		return u
	}
	row := int64(1)
	if n := len(x.Window); n > 0 {
		row = x.Window[n-1].Size
	}
	u.read = reader[T](shape.DType)
	u.row = b.l.value("updates", portable.ClassFor[T](), noTile, row)
	c.temporaries = append(c.temporaries, u.row)
	return u
}

// bind lets a run read the updates.
func (u *updatesInMemory[T]) bind(w *worker, r *updates.Run[T]) {
	data := w.in[u.param].Data
	base := w.slots[u.base]
	if u.read != nil {
		r.Read, r.Data, r.Base = u.read, data, base
		r.Row = whole[T](w, u.row)
		return
	}
	n := int64(len(data)) / portable.ClassFor[T]().Bytes()
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
	r.Src = all[min(base, n):]
}

// scatterResult lays out the tile of a scatter's result, in its output where nothing else
// reads it, and is the strides of its dimensions.
func scatterResult(l *lowering, op symtile.Op, v *value) []int64 {
	sizes := op.Tile.Sizes()
	dense := hlo.RowMajor(sizes)
	strides := l.outputStrides(op)
	if strides == nil || slices.Equal(strides, dense) {
		return dense
	}
	v.strides = strides
	v.n = spanOf(sizes, strides)
	return strides
}

// scatterStart is what sets the tile of a scatter's result to that of its operand.
func scatterStart[T portable.Number](
	b *block, op symtile.Op, c *accumulator, to []int64,
) step {
	out := c.outs[0]
	rows := newResultRows(op.Tile.Sizes(), to)
	n := op.Args[0]
	if readByScattersOnly(b.l.p, n) {
		source := b.l.p.Ops[n]
		shape := source.Instr.Shape
		param := source.Instr.Attrs.Param
		a := newTileAccess(b, source.Tile, shape, reader[T](shape.DType))
		return func(w *worker) {
			data := w.in[param].Data
			dst := whole[T](w, out)
			rows.each(func(at, from int64) {
				a.read(w, data, dst[at:][:rows.length], from)
			})
		}
	}
	base := b.l.arg(op, 0)
	c.inits = []*value{base}
	return func(w *worker) {
		dst := whole[T](w, out)
		if base.where == inSplat {
			x := first[T](w, base)
			rows.each(func(at, _ int64) {
				portable.Fill(dst[at:][:rows.length], x)
			})
			return
		}
		src := whole[T](w, base)
		rows.each(func(at, from int64) {
			copy(dst[at:][:rows.length], src[from:])
		})
	}
}

// roundedByStore reports whether a scatter's result of bf16 or f16 is only stored, which
// rounds it. Most of it is the operand, which is rounded already.
func roundedByStore(p *symtile.Program, op symtile.Op) bool {
	d := op.Instr.Shape.DType
	return op.Code == hlo.OpScatter &&
		(d == hlo.BF16 || d == hlo.F16) &&
		len(readersOf(p, op.Instr)) == 0
}

// resultRows is the runs of neighbours that a tile consists of.
type resultRows struct {
	length  int64   // Of a run.
	sizes   []int64 // Of the dimensions around it.
	strides []int64 // Of these.
}

// newResultRows divides a tile of the sizes, whose elements are the strides apart.
func newResultRows(sizes, strides []int64) *resultRows {
	r := &resultRows{length: 1}
	n := len(sizes)
	for n > 0 && (sizes[n-1] == 1 ||
		strides[n-1] == r.length) {
		r.length *= sizes[n-1]
		n--
	}
	r.sizes, r.strides = sizes[:n], strides[:n]
	return r
}

// each goes through the runs, in row-major order: where each begins in the strides, and its
// number of elements before it.
func (r *resultRows) each(f func(at, from int64)) {
	var index [maxRank]int64
	at := int64(0)
	for n := range hlo.Elements(r.sizes) {
		f(at, n*r.length)
		for d := len(r.sizes) - 1; d >= 0; d-- {
			at += r.strides[d]
			if index[d]++; index[d] < r.sizes[d] {
				break
			}
			at -= index[d] * r.strides[d]
			index[d] = 0
		}
	}
}
