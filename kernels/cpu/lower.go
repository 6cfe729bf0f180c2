package cpu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/narrowing"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/internal/running"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Lowering replaces the ops of a program, which are about tiles of arrays, by
// instructions on values, which are about places in memory. Three kinds of numbers
// remain that only a tile program or an iteration knows: tile ids, run-time
// variables, and what depends on them, the offsets and bounds of tiles. The latter
// become slots, which are computed at the beginning of the outermost block in which
// their tile ids are fixed, or by the instruction that reads the run-time variables.
//
// All else is decided here, once: which values exist and where, how long they live,
// which instructions move, convert or compute, and by which code. An op whose
// operation cannot be lowered rejects the plan with a reason.

// A lowering turns a concrete program into tile instructions. It is the state
// of one lowering: values and slots get their numbers here, and machine code is
// collected here.
type lowering struct {
	p *symtile.Program
	// Where tiles begin that are narrower than what joins them.
	first narrowing.First
	plan  kernels.Plan // The plan, which is read by knob only.
	// The elements that elementwise instructions compute at a time.
	strip  int64
	values []*value // All values, by id.
	// The values of each op. A variadic reduce has several.
	results [][]*value
	// The slots that are the same in every tile program.
	constantSlots []constantSlot
	// The number of slots, which hold offsets and bounds of tiles.
	slotCount int
	// The int64s of scratch that compiled expressions need.
	evalLength      int
	scalarRegisters int // The registers that scalar programs need.
	// What fills the copies of constants when a worker is made.
	constantFills []func(w *worker)
	bytes         int64 // The size of the arena.
	packingBytes  int64 // The bytes in which dots pack their operands.
	spec          deviceSpec
	// Groups of instructions over rows become row kernels.
	fusesRows bool
	// Runs of elementwise instructions become machine code.
	jit bool
	// The reductions of windows that are computed one from the other, by op.
	running map[int]*running.Reduce
	// What writes places that only a selection reads.
	places map[*value]strip
	// The operations that are copies only, see view_composition.go.
	copies copyPlan
	// The distance in elements to the next tile of a load in a loop, where the
	// loop asks for its prefetch.
	nextTile map[*value]int64
	// The exponentials whose operand an online loop bounds, see boundExponents.
	below map[int]bool
	// The split of contractions, nil where they are whole.
	split *splitK
	// The parameters that are steady, and what is kept of them; see keptOperand.
	steady   []int
	kept     map[panelKey]*keptOperand
	text     []byte    // The machine code of the plan.
	routines []routine // The functions in text.
	err      error     // The reason why the program cannot run.
	// The reason why a row kernel cannot be compiled. Lowering without row
	// kernels may work.
	codeErr error
}

// A constantSlot is an offset or bound that is the same in every tile program.
type constantSlot struct {
	slot  int
	value int64
}

// knob is the value of a knob of the plan, or def.
func (l *lowering) knob(name string, def int64) int64 {
	return l.plan.Knob(name, def)
}

// lower makes the instructions that run for every combination of parallel tile
// ids.
func lower(p *symtile.Program, plan kernels.Plan, c deviceSpec) (*lowering, *schedule) {
	return lowerWith(
		p, plan, c,
		plan.Knob("rows", 1) == 1,
		nil,
	)
}

// lowerWith is lower with or without row kernels, for runs between which some parameters
// are steady.
func lowerWith(
	p *symtile.Program, plan kernels.Plan,
	c deviceSpec, fuseRows bool,
	steady []int,
) (*lowering, *schedule) {
	// Online joins loops that compute a maximum and sums that depend on it.
	if plan.Knob("online", 1) == 1 {
		p = p.Online()
	}
	p, first := narrowing.Program(turnedProducts(p))
	l := &lowering{
		p:        p,
		first:    first,
		plan:     plan,
		spec:     c,
		nextTile: map[*value]int64{},
		below:    map[int]bool{},
		places:   map[*value]strip{},
		results:  make([][]*value, len(p.Ops)),
		jit:      vector.Supported(),
		strip:    plan.Knob("strip", stripLength),
		steady:   steady,
	}
	l.fusesRows = fuseRows && l.jit
	if l.spec.memory == nil {
		l.spec.memory = new(rowkernel.Memory)
	}
	var parallel []int
	for k, d := range p.Space.Dims {
		if d.Kind == symtile.Parallel {
			parallel = append(parallel, k)
		}
	}
	// What is moved straight to outputs, and what is divided among tile programs,
	// is known before any op is lowered.
	l.planRunning()
	l.planCopies()
	l.planSplit()
	l.planKept()
	b := l.block(nil, parallel)
	b.steps(p.Body)
	for k, r := range p.Roots {
		if l.err == nil && !b.copyToOutput(k, r) {
			b.lowerStore(r)
		}
	}
	if l.err != nil {
		return l, nil
	}
	// All slots and readers are known here. The order of instructions decides where
	// values are, their live ranges decide the layout of the scratch.
	b.compileRuntimeOffsets()
	s := b.schedule()
	s.numberPositions(1)
	l.bytes = assignScratchOffsets(l.values)
	return l, s
}

// reject ends the lowering with a reason.
func (l *lowering) reject(op symtile.Op, format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(
			"%s (%s): %s",
			op.Instr.Name, op.Code,
			fmt.Sprintf(format, args...),
		)
	}
}

// refuse notes that there is no code for an op, whatever the plan; it goes before what
// was rejected.
func (l *lowering) refuse(op symtile.Op, format string, args ...any) {
	var already *kernels.Uncomputed
	if !errors.As(l.err, &already) {
		l.err = &kernels.Uncomputed{Instr: op.Instr, Reason: fmt.Sprintf(format, args...)}
	}
}

// value makes a value of n elements, those of the tile of op tile.
func (l *lowering) value(name string, c portable.Class, tile int, n int64) *value {
	v := &value{
		id:       len(l.values),
		name:     name,
		class:    c,
		tile:     tile,
		n:        n,
		liveFrom: lastPosition,
		liveTo:   -1,
	}
	l.values = append(l.values, v)
	return v
}

// result makes the value of an op with one result.
func (l *lowering) result(n int) *value {
	op := l.p.Ops[n]
	v := l.value(
		fmt.Sprintf("%%%d", n),
		portable.ClassOf(op.Instr.Shape.DType), n,
		op.Tile.Elements(),
	)
	l.results[n] = []*value{v}
	return v
}

// elements is the number of elements of the tile of an op.
func (l *lowering) elements(n int) int64 {
	return l.p.Ops[n].Tile.Elements()
}

// arg is the value of an argument, of a variadic reduce the first.
func (l *lowering) arg(op symtile.Op, k int) *value {
	return l.results[op.Args[k]][0]
}

// steps lowers steps of the program into the block.
func (b *block) steps(body []symtile.Step) {
	for _, s := range body {
		switch {
		case b.l.err != nil:
			return
		case s.Loop != nil:
			b.loop(s.Loop)
		default:
			b.op(s.Op)
		}
	}
}

// maxRank bounds the rank of tiles, so that indices of loops over them need no
// allocation.
const maxRank = rowkernel.MaxRank

// op lowers one op.
func (b *block) op(n int) {
	op := b.l.p.Ops[n]
	// Gathers and scatters read their parameters directly, and ops whose elements are moved
	// by a composed copy are not lowered themselves.
	if readByGathersOnly(b.l.p, n) ||
		readByScattersOnly(b.l.p, n) ||
		!b.l.copies.lowered[n] ||
		b.keeps == nil && b.l.isKept(n) {
		return
	}
	if why := unsupported(op); why != "" {
		b.l.refuse(op, "%s", why)
		return
	}
	if strides := b.l.joinedStrides(n); strides != nil {
		b.bindJoined(n, strides)
		return
	}
	if b.l.copies.ops[n] != nil {
		b.copyToScratch(n)
		return
	}
	switch op.Code {
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice,
		hlo.OpCopy, hlo.OpOptimizationBarrier:
		b.alias(n)
	case hlo.OpGetTupleElement:
		all := b.l.results[op.Args[0]]
		b.l.results[n] = all[op.Instr.Attrs.Index : op.Instr.Attrs.Index+1]
	case hlo.OpReduce, hlo.OpDot, hlo.OpScatter:
		b.accumulateAtOnce(n)
	case hlo.OpConvert:
		// For example, bf16 is held as f32: converting it changes nothing.
		if sameInScratch(op.Instr.Operands[0].Shape.DType, op.Instr.Shape.DType) {
			b.alias(n)
			return
		}
		b.value(n)
	case hlo.OpBroadcast,
		hlo.OpTranspose,
		hlo.OpReverse,
		symtile.OpUnfold:
		// All elements of a splat are equal, in any order.
		if v := b.l.arg(op, 0); v.where == inSplat {
			b.l.results[n] = []*value{v}
			return
		}
		b.value(n)
	default:
		b.value(n)
	}
}

// unsupported is the reason why an op cannot be lowered, or "".
func unsupported(op symtile.Op) string {
	if len(op.Tile) > maxRank {
		return fmt.Sprintf("its rank is %d; at most %d is supported", len(op.Tile), maxRank)
	}
	s := op.Instr.Shape
	if s.DType != hlo.Tuple {
		return uncomputed(s)
	}
	for _, s := range s.Arrays() {
		if why := uncomputed(s); why != "" {
			return why
		}
	}
	return ""
}

// uncomputed is the reason why no array of a shape is made, or "".
func uncomputed(s hlo.Shape) string {
	if s.DType.IsComplex() || !s.DType.IsArray() {
		return fmt.Sprintf("%s is not computed on the CPU", s)
	}
	return ""
}

// alias makes the op the value of its argument, whose elements are the same in
// the same order, as of a reshape. Tiles of an empty array may have other numbers of elements,
// none of which is computed.
func (b *block) alias(n int) {
	op := b.l.p.Ops[n]
	have := b.l.elements(op.Args[0])
	want := b.l.elements(n)
	if have != want && op.Instr.Shape.Elements() != 0 {
		b.l.reject(op, "its tile has %d elements, that of its operand %d", want, have)
		return
	}
	b.l.results[n] = b.l.results[op.Args[0]]
}

// sameInScratch reports whether scratch holds an element of type from and the
// element of type to that it converts to in the same way, so that the
// conversion needs no instruction.
func sameInScratch(from, to hlo.DType) bool {
	switch {
	case from == to:
		return true
	case from.IsFloat() != to.IsFloat() ||
		portable.ClassOf(from) != portable.ClassOf(to):
		return false
	}
	// The widest type of a class holds all values of the others. A u64 of more than
	// 63 bits is no s64.
	return to == hlo.F32 || to == hlo.S32 ||
		to == hlo.S64 && from != hlo.U64
}

// value lowers an op that makes one new value, by the class of its elements.
func (b *block) value(n int) {
	op := b.l.p.Ops[n]
	switch portable.ClassOf(op.Instr.Shape.DType) {
	case portable.Float32:
		lowerValue[float32](b, n, op)
	case portable.Float64:
		lowerValue[float64](b, n, op)
	case portable.Int32:
		lowerValue[int32](b, n, op)
	case portable.Int64:
		lowerValue[int64](b, n, op)
	}
}

// lowerValue lowers an op that makes one new value.
func lowerValue[T portable.Number](b *block, n int, op symtile.Op) {
	switch op.Code {
	case hlo.OpParameter:
		lowerLoad[T](b, n, op)
	case hlo.OpConstant:
		lowerConstant[T](b, n, op)
	case hlo.OpIota:
		lowerIota[T](b, n, op)
	case hlo.OpBroadcast,
		hlo.OpTranspose,
		hlo.OpReverse,
		symtile.OpUnfold:
		lowerRearrangement[T](b, n, op)
	case hlo.OpDynamicUpdateSlice:
		lowerUpdate[T](b, n, op)
	case hlo.OpGather:
		lowerGather[T](b, n, op)
	case hlo.OpConcatenate:
		lowerConcatenate[T](b, n, op)
	case hlo.OpPad:
		lowerPad[T](b, n, op)
	default:
		lowerElementwise[T](b, n, op)
	}
}

// operand is argument k of an elementwise op with n elements: its value, or
// copies of its only element.
func operand[T portable.Number](b *block, op symtile.Op, k int, n int64) *value {
	v := b.l.arg(op, k)
	if v.where == inSplat ||
		b.l.elements(op.Args[k]) == n {
		return v
	}
	return splat[T](b, v)
}

// splat makes a strip of copies of the only element of v. Elementwise
// instructions read it like any strip; the copies are shared by all that need
// them in the block and inside of it.
func splat[T portable.Number](b *block, v *value) *value {
	key := splatKey{v, b.l.strip}
	if s := b.findSplat(key); s != nil {
		return s
	}
	s := b.l.value(
		v.name+"*", v.class, noTile, b.l.strip,
	)
	s.where = inSplat
	b.splats[key] = s
	b.add(&instr{
		name:     "copies",
		outs:     []*value{s},
		tileArgs: []*value{v},
		copied:   v,
		run: func(w *worker) {
			portable.Fill(whole[T](w, s), first[T](w, v))
		},
	})
	return s
}

// materialized is argument k as a value of which any element can be read: a
// splat, which has a strip of copies only, is filled to the size of the tile.
func materialized(b *block, op symtile.Op, k int) *value {
	v := b.l.arg(op, k)
	if v.where != inSplat {
		return v
	}
	key := splatKey{v, b.l.elements(op.Args[k])}
	if t := b.findSplat(key); t != nil {
		return t
	}
	var t *value
	switch v.class {
	case portable.Float32:
		t = fillTile[float32](b, v, op.Args[k])
	case portable.Float64:
		t = fillTile[float64](b, v, op.Args[k])
	case portable.Int32:
		t = fillTile[int32](b, v, op.Args[k])
	case portable.Int64:
		t = fillTile[int64](b, v, op.Args[k])
	}
	b.splats[key] = t
	return t
}

// findSplat is the value that holds copies, from this block or one around it.
func (b *block) findSplat(key splatKey) *value {
	for ; b != nil; b = b.outer {
		if v := b.splats[key]; v != nil {
			return v
		}
	}
	return nil
}

// fillTile makes as many copies of the element of a splat as the tile of an op
// has elements.
func fillTile[T portable.Number](b *block, v *value, op int) *value {
	t := b.l.value(
		v.name+"#", v.class, op,
		b.l.elements(op),
	)
	b.add(&instr{
		name:     "fill",
		outs:     []*value{t},
		tileArgs: []*value{v},
		run: func(w *worker) {
			portable.Fill(whole[T](w, t), first[T](w, v))
		},
	})
	return t
}

// lowerConstant lowers a constant. If all its elements are equal, it is a splat
// that is filled when a worker is made. Otherwise it is copied from the
// literal.
func lowerConstant[T portable.Number](b *block, n int, op symtile.Op) {
	lit := op.Instr.Literal
	if lit == nil || lit.Elided {
		b.l.reject(op, "its value was left out of the text ({...})")
		return
	}
	values := literalValues[T](lit)
	v := b.l.result(n)
	// The copies live as long as the worker, and are filled once.
	if uniform(lit) {
		v.where, v.tile, v.n, v.liveFrom, v.liveTo, v.constant = inSplat,
			noTile, b.l.strip, 0, lastPosition,
			bitsOf(values[0])
		v.number = patternOf(values[0])
		b.l.constantFills = append(b.l.constantFills, func(w *worker) {
			portable.Fill(whole[T](w, v), values[0])
		})
		return
	}
	shape := hlo.Shape{
		DType: op.Instr.Shape.DType,
		Dims:  op.Instr.Shape.Dims,
	}
	a := newTileAccess(b, op.Tile, shape, func(
		scratch []T, _ []byte, at, stride int64,
	) {
		for k := range scratch {
			scratch[k] = values[at]
			at += stride
		}
	})
	b.add(&instr{
		name: "constant",
		outs: []*value{v},
		n:    v.n,
		strip: func(w *worker, lo, hi int64) {
			a.read(w, nil, part[T](w, v, lo, hi), lo)
		},
	})
}

// bitsOf is the bits of an f32, nil for other types.
func bitsOf[T portable.Number](x T) *uint32 {
	if f, ok := any(x).(float32); ok {
		bits := math.Float32bits(f)
		return &bits
	}
	return nil
}

// patternOf is the bits of an element of scratch.
func patternOf[T portable.Number](x T) *uint64 {
	var bits uint64
	switch x := any(x).(type) {
	case float32:
		bits = uint64(math.Float32bits(x))
	case float64:
		bits = math.Float64bits(x)
	case int32:
		bits = uint64(uint32(x))
	case int64:
		bits = uint64(x)
	}
	return &bits
}

// uniform reports whether all elements of a literal are the same, to the bit.
func uniform(l *hlo.Literal) bool {
	for _, x := range l.Ints {
		if x != l.Ints[0] {
			return false
		}
	}
	for _, x := range l.Floats {
		if math.Float64bits(x) != math.Float64bits(l.Floats[0]) {
			return false
		}
	}
	return len(l.Ints)+len(l.Floats) > 0
}

// literalValues are the elements of a literal, rounded to its type.
func literalValues[T portable.Number](l *hlo.Literal) []T {
	out := make([]T, 0, len(l.Ints)+len(l.Floats))
	for _, x := range l.Ints {
		out = append(out, T(x))
	}
	for _, x := range l.Floats {
		out = append(
			out, T(kernels.RoundFloat(l.Shape.DType, x)),
		)
	}
	return out
}

// loop lowers a loop. Its body is a block of its own, which accumulates at its
// end.
func (b *block) loop(source *symtile.Loop) {
	lp := &loop{dims: source.Dims}
	// The outermost loop over the divided contraction is shared by the parts.
	s := b.l.split
	if s != nil && s.trips && b.outer == nil &&
		slices.Equal(source.Accumulators, s.ops) {
		lp.split = s
	}
	for _, d := range source.Dims {
		trips, _ := b.l.p.Space.Dims[d].Tiles.Value()
		lp.trips = append(lp.trips, trips)
	}
	in := &instr{name: "loop", loop: lp}
	body := b.l.block(b, source.Dims)
	if source.Online != nil {
		body.lowerOnline(source, in)
	} else {
		body.steps(source.Body)
		body.accumulators(source.Accumulators, in)
	}
	if b.l.err != nil {
		return
	}
	// What the body reads from outside is live until the loop ends.
	lp.body = body.schedule()
	in.tileArgs = append(in.tileArgs, body.externalValues()...)
	b.add(in)
}

// accumulators lowers the accumulators of the loop whose body is b.
func (b *block) accumulators(list []int, in *instr) {
	for _, n := range list {
		if b.l.err == nil {
			b.accumulateInLoop(n, in)
		}
	}
}

// externalValues lists the values that the block reads but does not make.
func (b *block) externalValues() []*value {
	made := map[*value]bool{}
	seen := map[*value]bool{}
	var out []*value
	for _, i := range b.list {
		for _, v := range i.outs {
			made[v] = true
		}
	}
	for _, x := range b.binds {
		made[x.v] = true
	}
	for _, i := range b.list {
		for v := range i.args {
			if !made[v] && !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	return out
}

// worker allocates the state of a worker, its scratch from a pool unless it is lent.
func (l *lowering) worker(from *scratchPool) *worker {
	w := &worker{
		workerScratch: workerScratch{
			// A cache line more gives values of no bytes an address, too.
			arenaBytes:   l.bytes + cacheLine,
			packingBytes: l.packingBytes,
		},

		addresses:       make([]unsafe.Pointer, len(l.values)),
		scalarRegisters: make([]portable.Scalar, l.scalarRegisters),
	}
	// The numbers of a worker lie in one array.
	tids := len(l.p.Space.Dims) + len(l.p.Runtime)
	numbers := make([]int64, tids+l.slotCount+l.evalLength)
	w.tids, numbers = numbers[:tids:tids], numbers[tids:]
	w.slots, w.evalScratch = numbers[:l.slotCount:l.slotCount], numbers[l.slotCount:]
	for _, f := range l.constantSlots {
		w.slots[f.slot] = f.value
	}
	w.bind = func(arena []byte) { l.bind(w, arena) }
	if !w.lent() {
		w.packing = from.get(w.packingBytes)
		w.bind(from.get(w.arenaBytes))
	}
	return w
}

// bind lets a worker have its values in an arena.
func (l *lowering) bind(w *worker, arena []byte) {
	w.arena = arena
	// Values in arrays of the caller get their addresses at the beginning of their
	// block, in each tile program.
	for _, v := range l.values {
		if v.where != inMemory && v.liveTo >= v.liveFrom {
			w.addresses[v.id] = unsafe.Pointer(&w.arena[v.at])
		}
	}
	for _, f := range l.constantFills {
		f(w)
	}
}
