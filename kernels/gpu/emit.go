package gpu

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An emitter turns a concrete program into a kernel: one block of threads runs
// one tile program.
type emitter struct {
	p       *symtile.Program
	ring    *index.Ring
	sheet   device.Spec
	knobs   knobs
	builder *ptx.Builder
	asm     *asm
	hints   *hints
	phase   phase
	name    string
	smem    operand
	tid     operand // number of the thread in the block
	shared  int64   // bytes of shared memory so far

	threads     int64
	thread      index.Expr // number of the thread in its block
	vectorBytes int64
	loops       int          // named so far
	noted       map[int]bool // ops that were commented on in this stage
	freed       memoryRange  // shared memory that is free again
	loopDepth   int          // loops around
	tileLoop    *tileLoop    // of the tiles of a block, where it has several
	sums        int64        // that a thread keeps of products
	exitArrived bool         // the block has said that it leaves the cluster
	extra       int          // threads beside those that share the work: a producer, another team
	mathGroup   *mathGroup   // of this thread, where there are several
	common      int64        // bytes of shared memory that teams share
	root        int          // the op that is being stored, −1: none
	fresh       bool         // shared memory was written since the last barrier
	async       bool         // by copies that have to be waited for

	links        map[link]int
	buffers      map[bufferKey]*buffer
	choices      map[choiceKey]chosenLayout
	folds        map[string]chosenLayout
	threadLayout *coalesce.ThreadLayout                     // over a tile, chosen for it; nil: as a product lies
	layouts      map[string]*coalesce.ThreadLayout          // of tiles of a size, where a reduction has spread them
	fragments    map[string]func(body func(points []point)) // of tiles of a size, where a product has
	params       []operand
	outputs      []operand
	maps         []tensorMap
	args         []device.Operand    // of the parameters
	scratch      []int64             // bytes of the arrays between the kernels of a plan
	block        index.Expr          // number of the block among those of the grid's x
	piece        index.Expr          // and of its y
	constants    map[string]operand  // names of what is declared, by its bytes
	pairs        map[pair]index.Expr // variables that are an exclusive or
	xors         map[index.Expr]pair // and what of

	watch // over accesses of global memory
}

// hints are what was found out by emitting: which values are asked for by other
// threads than those that have them. The kernel is emitted again with them.
type hints struct {
	sharedResults  map[bufferKey]bool // results of closers that have to be in shared memory
	staged         map[int]bool       // ops that are brought to shared memory
	separateStores map[int]bool       // roots that are not stored as the product before them is spread
	groupBytes     int64              // bytes of shared memory that each team has for itself
	changed        bool               // this time something was found out
}

func (h *hints) shareResult(k bufferKey) {
	h.changed, h.sharedResults[k] = h.changed ||
		!h.sharedResults[k], true
}
func (h *hints) stage(n int) {
	h.changed, h.staged[n] = h.changed ||
		!h.staged[n], true
}

// A unsupported ends the emission of a plan that cannot run.
type unsupported string

func (r unsupported) Error() string { return string(r) }

func (e *emitter) reject(format string, args ...any) {
	panic(unsupported(fmt.Sprintf(format, args...)))
}

// An image is the kernels of a plan as text, with what their launches need to know.
type image struct {
	module  *ptx.Module
	steps   []device.Step
	scratch []int64
	tiles   int64                   // tile programs that blocks go through; 0: each has one
	traffic func() (Traffic, error) // of a plan of one kernel
}

// emit makes the kernels of a concrete program.
func emit(
	p *symtile.Program, sheet device.Spec, k knobs,
) (im *image, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case unsupported:
			err = x
		default:
			panic(x)
		}
	}()
	phases, err := phasesOf(p, k)
	if err != nil {
		return nil, err
	}
	h := &hints{
		sharedResults:  map[bufferKey]bool{},
		staged:         map[int]bool{},
		separateStores: map[int]bool{},
	}
	for {
		im, h.changed = &image{}, false
		builder := ptx.NewBuilder(versionOf(p, sheet.Target))
		constants := map[string]operand{}
		builder.DynamicShared("smem", 1024)
		for _, ph := range phases {
			e := newEmitter(p, sheet, k, h)
			e.begin(ph, builder, constants)
			im.steps = append(im.steps, e.kernel())
			im.scratch = e.scratch
			if e.loopsOverTiles() {
				im.tiles = p.Programs()
			}
			im.traffic = e.traffic
		}
		if !h.changed {
			im.module, err = builder.Module()
			if err != nil {
				return nil, fmt.Errorf("%s: the kernel is not valid PTX, which is a bug of this backend: %w", p.Fusion.Name, err)
			}
			im.module.Prune()
			return im, p.Space.Ring.Err()
		}
	}
}

func newEmitter(p *symtile.Program, sheet device.Spec, k knobs, h *hints) *emitter {
	return &emitter{
		p: p, ring: p.Space.Ring, sheet: sheet,
		knobs: k, hints: h,
		threads:     int64(k.warps) * device.WarpThreads,
		vectorBytes: int64(k.vector),
		root:        -1, links: map[link]int{},
		buffers:   map[bufferKey]*buffer{},
		folds:     map[string]chosenLayout{},
		layouts:   map[string]*coalesce.ThreadLayout{},
		choices:   map[choiceKey]chosenLayout{},
		noted:     map[int]bool{},
		fragments: map[string]func(body func(points []point)){},
		pairs:     map[pair]index.Expr{},
		xors:      map[index.Expr]pair{},
	}
}

// begin starts a kernel of a module, whose constants it shares.
func (e *emitter) begin(ph phase, b *ptx.Builder, constants map[string]operand) {
	e.phase = ph
	e.builder = b
	e.constants = constants
	e.name = entryName(e.p.Fusion.Name) + ph.suffix()
	e.asm = newAsm(b.Entry(e.name))
	if ph == phaseCombine {
		e.knobs.cluster = 1 // nothing is brought to others
	}
	e.thread = e.ring.Var(index.Variable{
		Name: "thread",
		Lo:   0,
		Hi:   e.threads - 1,
		Role: index.RoleThread,
	})
}

// entryName makes a PTX identifier of the name of a fusion.
func entryName(s string) string {
	return "tw_" + strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' ||
			'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// kernel emits the whole of it and says how it is launched.
func (e *emitter) kernel() device.Step {
	a := e.asm
	e.header()
	for k := range e.p.Fusion.Params {
		e.params = append(
			e.params,
			e.pointer(fmt.Sprintf("in%d", k), device.Input(k)),
		)
	}
	for k := range kernels.OutputShapes(e.p.Fusion) {
		if e.phase != phasePartials {
			e.outputs = append(
				e.outputs,
				e.pointer(fmt.Sprintf("out%d", k), device.Output(k)),
			)
		}
	}
	e.smem = a.get(kindB32, "mov.u32", operand("smem"))
	e.tid = a.get(kindB32, "mov.u32", threadNumber)
	if own := e.tid; e.knobs.mathGroups() > 1 {
		e.bind(
			e.thread,
			a.get(kindB32, "and.b32", own, e.threads-1),
		)
	} else {
		e.bind(e.thread, own)
	}
	if !e.loopsOverTiles() {
		e.tileIDs(blockNumber)
	}
	for _, r := range e.p.Runtime {
		if !needsAccumulator(e.p, r.Op) { // else it is known where it is needed
			e.bindRuntime(r.Op)
		}
	}
	e.steps(e.body())
	for _, r := range e.p.Roots {
		if e.phase != phasePartials {
			e.storeRoot(r)
		}
	}
	e.endTiles()
	e.sizeMathGroups()
	a.note("%d bytes of shared memory", e.shared)
	a.do("ret")
	a.code.Entry.ReqNTid = [3]int{
		int(e.threads) + e.extra, 1, 1,
	}
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
	if e.knobs.cluster > 1 {
		s.Cluster = device.Dim3{X: e.knobs.cluster}
	}
	return s
}

// endTiles ends what a ring has begun: the walk over tiles, and the cluster.
func (e *emitter) endTiles() {
	a := e.asm
	if e.loopsOverTiles() {
		if e.tileLoop == nil {
			e.reject("persistent=1 is for products by warpgroups")
		}
		e.endTileLoop(e.tileLoop)
		if e.knobs.cluster > 1 {
			e.leaveCluster()
		}
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

// blocks is how many are launched: one a tile program, or as many whole clusters
// as run at once.
func (e *emitter) blocks() int64 {
	n := e.p.Programs()
	if !e.loopsOverTiles() {
		return n
	}
	threads := int(e.threads) + e.extra
	registers := min(
		e.sheet.ThreadRegisters, baseRegisters+int(e.sums),
	)
	if e.asm.code.Entry.MinNCTAPerSM == 1 { // all of an SM's are shared out
		registers = e.sheet.BlockRegisters / threads
	}
	return e.sheet.ResidentBlocks(
		registers, int(e.shared), threads,
		e.knobs.cluster, n,
	)
}

// pointer declares a parameter that is the address of an array.
func (e *emitter) pointer(name string, o device.Operand) operand {
	a := e.asm
	e.args = append(e.args, o)
	a.code.Param(ptx.U64, name)
	p := a.get(
		kindB64, "ld.param.u64", address{base: operand(name)},
	)
	return a.get(kindB64, "cvta.to.global.u64", p)
}

func (e *emitter) parameter(n int) operand { return e.params[n] }
func (e *emitter) output(n int) operand    { return e.outputs[n] }

// header says what the kernel is.
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

// versionOf is the PTX ISA that a program's instructions need, and the target.
func versionOf(p *symtile.Program, target string) (ptx.Version, ptx.Target) {
	t := ptx.Target{}
	number := strings.TrimPrefix(target, "sm_")
	if strings.HasSuffix(number, "a") {
		number = strings.TrimSuffix(number, "a")
		t.Arch = 'a'
	}
	t.SM, _ = strconv.Atoi(number)
	if t.SM >= 89 &&
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

// constant declares bytes in global memory and is their address.
func (e *emitter) constant(data []byte) operand {
	name, ok := e.constants[string(data)]
	if !ok {
		name = operand(fmt.Sprintf("constant_%d", len(e.constants)))
		e.constants[string(data)] = name
		e.builder.Global(string(name), maxVectorBytes, data)
	}
	return e.asm.get(
		kindB64, "cvta.to.global.u64", e.asm.get(kindB64, "mov.u64", name),
	)
}

// uniform is the one number all elements of a literal are.
func uniform(l *hlo.Literal) (operand, bool) {
	for k := range l.Ints {
		if l.Ints[k] != l.Ints[0] {
			return "", false
		}
	}
	for k := range l.Floats {
		if math.Float64bits(l.Floats[k]) != math.Float64bits(l.Floats[0]) {
			return "", false
		}
	}
	switch {
	case len(l.Ints) > 0:
		return immediate(
			l.Shape.DType,
			l.Ints[0],
			float64(l.Ints[0]),
		), true
	case len(l.Floats) > 0:
		return immediate(
			l.Shape.DType, 0, l.Floats[0],
		), true
	}
	return "", false
}

// literalBytes is a literal in row-major order as an array in memory.
func literalBytes(l *hlo.Literal) []byte {
	d := l.Shape.DType
	n := int64(max(len(l.Ints), len(l.Floats)))
	b := kernels.Buffer{
		Shape: hlo.Shape{DType: d, Dims: []int64{n}},
		Data:  make([]byte, n*d.Size()),
	}
	for k, v := range l.Ints {
		b.SetInt(int64(k), v)
	}
	for k, v := range l.Floats {
		b.SetFloat(int64(k), v)
	}
	return b.Data
}

// tileIDs computes the parallel tile ids of the tile program with a number, and
// which piece of it this is.
func (e *emitter) tileIDs(number operand) {
	if e.phase == phasePartials {
		e.piece = e.ring.Var(index.Variable{
			Name: "piece",
			Lo:   0,
			Hi:   int64(e.knobs.splitk) - 1,
			Role: index.RoleBlock,
		})
		e.bind(
			e.piece, e.asm.get(kindB32, "mov.u32", pieceNumber),
		)
	}
	e.block = e.ring.Var(index.Variable{
		Name: "block",
		Lo:   0,
		Hi:   max(0, e.p.Programs()-1),
		Role: index.RoleBlock,
	})
	if _, ok := e.block.Value(); ok {
		return
	}
	if number == blockNumber {
		number = e.asm.get(kindB32, "mov.u32", number)
	}
	e.bind(e.block, number)
	dims, ids := e.raster(e.block)
	known := map[index.Expr]index.Expr{}
	for k, d := range dims {
		e.bind(
			e.p.Space.Dims[d].Tid,
			e.num(ids[k]),
		)
		known[e.p.Space.Dims[d].Tid] = ids[k]
	}
	e.decided(known)
}

// missing notes that a result of a closer is asked for by threads that do not
// have it.
func (e *emitter) missing(n, part int, points []point) []operand {
	e.hints.shareResult(bufferKey{n, part})
	if e.root >= 0 {
		e.hints.separateStores[e.root] = true
	}
	all := make([]operand, len(points))
	k := kindFor(e.typeOf(n, part))
	for i := range all {
		all[i] = e.asm.in(k, zero(k))
	}
	return all
}

func (e *emitter) typeOf(n, part int) hlo.DType {
	s := e.p.Ops[n].Instr.Shape
	if s.DType == hlo.Tuple {
		s = s.Tuple[part]
	}
	return s.DType
}
