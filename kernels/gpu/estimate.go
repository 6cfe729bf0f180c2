package gpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An estimate says, for a tiling and launch choices, what a block needs and
// about how long the kernel takes, without generating it. The sizes of tiles are
// compiled once.
type estimate struct {
	p       *symtile.Program
	sheet   Sheet
	code    *symtile.Code
	first   []int // of each op's sizes among the results
	loops   [][]int
	vals    []int64
	out     []int64
	spare   []int64
	trips   []float64
	tensor  [2][]bool     // by tf32, of ops that are products: tensor cores have it
	groups  [2][]bool     // and warpgroups may have it
	orders  map[int]order // of the reductions that depend on it
	parted  parted
	over    [][]int   // parallel dimensions that the tiles of parameters depend on
	feeds   []int     // of parameters: the product by warpgroups that reads it, −1: none
	brought []float64 // bytes of each parameter that a block reads
	covered []float64 // tiles of a wave along each dimension
	// unique is the bytes of all arrays, which memory moves once at least.
	unique float64
}

func newEstimate(p *symtile.Program, s Sheet) (*estimate, error) {
	m := &estimate{
		p: p, sheet: s, loops: make([][]int, len(p.Ops)), trips: make([]float64, len(p.Space.Dims)),
		orders: map[int]order{},
	}
	var vars, results []symtile.Expr
	for _, d := range p.Space.Dims {
		vars = append(vars, d.Size)
	}
	for _, op := range p.Ops {
		m.first = append(m.first, len(results))
		for _, d := range op.Tile {
			results = append(results, d.Size)
		}
	}
	var err error
	if m.code, err = symtile.Compile(vars, results); err != nil {
		return nil, fmt.Errorf("the tiles of %s: %w", p.Fusion.Name, err)
	}
	m.vals, m.out, m.spare = make([]int64, len(vars)), make([]int64, len(results)), make([]int64, m.code.ScratchLen())
	m.nest(p.Body, nil)
	m.products()
	m.operands()
	m.parted = partedOf(p)
	for n, op := range p.Ops {
		if op.Code != "reduce" {
			continue
		}
		if _, any := kernels.Monoid(op.Instr.Attrs.ToApply); !any || len(op.Args) > 2 {
			m.orders[n] = orderOf(p, op)
		}
	}
	for _, x := range append(shapesOf(p.Fusion.Params), kernels.OutputShapes(p.Fusion)...) {
		m.unique += float64(x.Bytes())
	}
	return m, nil
}

// products notes which products tensor cores and warpgroups have, without and
// with tf32.
func (m *estimate) products() {
	for tf32 := range m.tensor {
		k := knobs{tf32: tf32}
		m.tensor[tf32], m.groups[tf32] = make([]bool, len(m.p.Ops)), make([]bool, len(m.p.Ops))
		for n, op := range m.p.Ops {
			m.tensor[tf32][n] = op.Code == "dot" && onTensorCores(m.p, n, m.sheet, k)
			m.groups[tf32][n] = op.Code == "dot" && groupable(m.p, n, m.sheet, k)
		}
	}
}

// nest notes the dimensions of the loops around every op.
func (m *estimate) nest(body []symtile.Step, around []int) {
	for _, s := range body {
		if s.Loop == nil {
			m.loops[s.Op] = around
			continue
		}
		inside := append(around[:len(around):len(around)], s.Loop.Dims...)
		m.nest(s.Loop.Body, inside)
		for _, c := range s.Loop.Closers {
			m.loops[c] = inside
		}
	}
}

// A candidate is a tiling and launch choices with what they cost.
type candidate struct {
	tiling   symtile.Tiling
	knobs    knobs
	shared   float64    // bytes of a block
	partials float64    // results that a thread keeps
	terms    [6]float64 // of accountTerms, seconds
	seconds  float64
}

// A load is what one block does.
type load struct {
	bytes   float64 // moved to and from memory
	copied  float64 // of them, by tensor copies
	given   float64 // of them, by other blocks of the cluster
	scratch float64 // bytes between the kernels of a plan
	flops   float64 // of the arithmetic units; a tensor core's count a sixteenth
	matrix  float64 // of them, by warpgroups
	traffic float64 // bytes read from shared memory
	exposed float64 // cycles that its warps wait for memory
}

// set evaluates the sizes of a tiling.
func (m *estimate) set(t symtile.Tiling) (programs float64) {
	programs = 1
	for k, d := range m.p.Space.Dims {
		m.trips[k] = math.Ceil(float64(max(1, d.Extent)) / float64(t[k]))
		if d.Kind == symtile.Parallel {
			programs *= m.trips[k]
		}
	}
	copy(m.vals, t)
	m.code.Eval(m.vals, m.out, m.spare)
	return programs
}

// inOrder says whether tiles of the sizes that are set go through what depends
// on it in order.
func (m *estimate) inOrder() bool {
	for n, o := range m.orders {
		if o.broken(m.sizes(m.p.Ops[n].Args[0]), func(d int) int64 { return int64(m.trips[d]) }) >= 0 {
			return false
		}
	}
	return true
}

func (m *estimate) sizes(n int) []int64 { return m.out[m.first[n] : m.first[n]+len(m.p.Ops[n].Tile)] }

func (m *estimate) elements(n int) float64 {
	product := 1.0
	for _, s := range m.sizes(n) {
		product *= float64(s)
	}
	return product
}

func (m *estimate) runs(n int) float64 {
	product := 1.0
	for _, d := range m.loops[n] {
		product *= m.trips[d]
	}
	return product
}

// candidate costs a tiling, which has been set.
func (m *estimate) candidate(t symtile.Tiling, programs float64, k knobs) candidate {
	c := candidate{tiling: t, knobs: k}
	if k.splitk > 1 {
		m.split(programs, &c)
	} else {
		l := m.work(nil, &c)
		m.store(&c, &l)
		l.exposed += m.spills(c)
		c.terms = m.terms(c, programs, l, m.unique)
	}
	for _, t := range c.terms {
		c.seconds += t
	}
	return c
}

// work is what a block does for some ops, nil for all.
func (m *estimate) work(ops []bool, c *candidate) load {
	k, l := c.knobs, load{exposed: latency}
	threads, part := float64(k.warps*WarpThreads), 1.0
	if k.splitk > 1 {
		part = m.longest(k.splitk)
	}
	clear(m.brought)
	for n, op := range m.p.Ops {
		if ops != nil && !ops[n] {
			continue
		}
		runs := m.runs(n)
		if m.parted.inside[n] {
			runs *= part
		}
		switch op.Code {
		case "parameter":
			m.bring(n, k, runs, &l)
		case "dot":
			m.dot(n, k, runs, c, &l)
		case "reduce":
			l.flops += m.elements(op.Args[0]) * runs
			c.partials += m.partials(n, threads)
			if all := m.elements(op.Args[0]); runs > 1 || all/threads > 2*unrolled { // does not stay in registers: comes again, from L2
				l.bytes += all * runs
			}
			l.exposed += latency/2*runs + latency/2
		default:
			l.flops += m.elements(n) * runs
		}
	}
	return l
}

// store adds what the results of a block cost.
func (m *estimate) store(c *candidate, l *load) {
	for _, r := range m.p.Roots {
		l.bytes += m.moved(r.Op)
		m.leave(r.Op, c.knobs, c, l)
	}
}

// leave adds what the fragments of a product cost on their way out: stored as
// they are they fill a part of each burst; in shared memory they take the place
// of operands, and time.
func (m *estimate) leave(n int, k knobs, c *candidate, l *load) {
	switch {
	case !slices.Contains(m.tensor[k.tf32], true):
	case k.epilogue > 0:
		bytes := m.elements(n) * float64(m.p.Ops[n].Instr.Shape.DType.Size()) * 1.1
		if k.persistent > 0 {
			c.shared += bytes * float64(k.teams()) // beside the operands of the next tile
		}
		c.shared = max(c.shared, bytes)
		l.exposed += latency / 2
	default:
		l.bytes += m.moved(n) / 4
	}
}

// latency is the cycles from asking memory to having the data, a barrier and
// what is around them included (Jia et al., Dissecting the NVIDIA Volta GPU
// Architecture via Microbenchmarking, 2018, §3: 400 to 600 for global memory).
const latency = 800

// perSlot is the cycles between the end of a product by warpgroups and the start
// of the next that a barrier takes (Luo et al., Dissecting the NVIDIA Hopper
// Architecture, 2025: 33 for an access to shared memory, and what follows it).
const perSlot = 40

// repeated says whether an earlier op loads the same tile.
func (m *estimate) repeated(n int) bool {
	for k, other := range m.p.Ops[:n] {
		if other.Code == "parameter" && other.Instr == m.p.Ops[n].Instr && m.runs(k) == 1 && slices.Equal(m.sizes(k), m.sizes(n)) {
			return true
		}
	}
	return false
}

// burst is the bytes memory moves at the rate it is said to have.
const burst = 128

// moved is the bytes memory moves to load or store a tile: rows of the
// dimension fastest in memory, rounded up to bursts.
func (m *estimate) moved(n int) float64 {
	shape := m.p.Ops[n].Instr.Shape
	total := m.elements(n) * float64(shape.DType.Size())
	row := int64(1)
	for _, d := range slices.Backward(majorToMinor(shape)) {
		size := m.sizes(n)[d]
		row *= size
		if size < shape.Dims[d] {
			break
		}
	}
	bytes := float64(row * shape.DType.Size())
	return total / bytes * math.Ceil(bytes/burst) * burst
}

// dot adds what a product needs. What is read from shared memory is the sides of
// a thread's, or a warp's, part of the result, taken for square.
func (m *estimate) dot(n int, k knobs, runs float64, c *candidate, l *load) {
	op := m.p.Ops[n]
	contracted := 1.0
	for _, d := range op.Instr.Attrs.LHSContract {
		contracted *= float64(m.sizes(op.Args[0])[d])
	}
	warps := float64(k.warps)
	sums := math.Ceil(m.elements(n) / (warps * WarpThreads))
	c.partials += sums
	from := m.p.Ops[op.Args[0]].Instr.Shape.DType
	if m.tensor[k.tf32][n] {
		size, readers, pitch := float64(from.Size()), warps, 1.25
		rate := tensorRate * 2 / size
		switch {
		case m.byGroups(n, k):
			readers, pitch = warps/(groupThreads/WarpThreads), 1
			l.matrix += 2 * m.padded(n) * contracted * runs / rate
			l.exposed += perSlot * runs
		case m.sheet.Warpgroups():
			rate *= mmaShare
		}
		l.flops += 2 * m.padded(n) * contracted * runs / rate
		l.traffic += 2 * math.Sqrt(m.elements(n)/readers) * size * readers * contracted * runs
		c.shared += pitch * size * float64(k.stages) * (m.elements(op.Args[0]) + m.elements(op.Args[1]))
		l.exposed += latency * runs / float64(k.stages*k.stages)
		return
	}
	size := float64(max(4, wideSum(op.Instr.Shape.DType).Size()))
	l.flops += m.elements(n) * contracted * runs // a multiply-add is one
	// Of a row of threads each reads columns of its own, and all the same rows.
	l.traffic += 1.125 * math.Sqrt(sums) * size * warps * WarpThreads * contracted * runs
	slots := 1.0
	if m.direct(n) {
		slots = float64(k.stages)
	}
	c.shared += 1.125 * size * slots * (m.elements(op.Args[0]) + m.elements(op.Args[1]))
	l.exposed += latency * runs / (slots * slots)
}

// direct says whether the operands of a product on the arithmetic units are
// copied as they are.
func (m *estimate) direct(n int) bool {
	op := m.p.Ops[n]
	for _, a := range op.Args {
		x := m.p.Ops[a].Instr.Shape.DType
		if x.Size() < 4 || x != wideSum(op.Instr.Shape.DType) || m.p.Ops[a].Code.Elementwise() {
			return false
		}
	}
	return true
}

// tensorRate is how many times the multiply-adds of an SM's arithmetic units its
// tensor cores do of 16-bit operands, counted in single operations; of 8-bit ones
// they do twice that (NVIDIA A100 and H100 whitepapers: dense f16 over f32, and
// int8 and fp8 over f16).
const tensorRate = 2 * 16

// mmaShare is how much of the tensor cores' rate mma.sync reaches where there is
// wgmma (Luo et al., Dissecting the NVIDIA Hopper Architecture, 2025: 63 %).
const mmaShare = 0.63

// byGroups says whether a product is likely to be computed by warpgroups.
func (m *estimate) byGroups(n int, k knobs) bool {
	if !m.groups[k.tf32][n] || k.warps*WarpThreads%groupThreads != 0 {
		return false
	}
	sizes, args := m.sizes(n), m.p.Ops[n].Args
	last := len(sizes) - 1
	return last >= 1 && sizes[last-1] >= groupRows && m.elements(n) == float64(sizes[last-1]*sizes[last]) &&
		m.rows(args[0]) <= mostBox && m.rows(args[1]) <= mostBox
}

// groupable says whether warpgroups can have a product of some tiling: of what
// tensor copies bring from parameters, of a type and a layout that wgmma reads.
func groupable(p *symtile.Program, n int, s Sheet, k knobs) bool {
	op := p.Ops[n]
	a, b := p.Ops[op.Args[0]].Instr.Shape, p.Ops[op.Args[1]].Instr.Shape
	inst, ok := s.groupProduct(a.DType, b.DType, k)
	if !ok || wideSum(op.Instr.Shape.DType) != inst.sum {
		return false
	}
	for k, shape := range []hlo.Shape{a, b} {
		order, contracted := majorToMinor(shape), [][]int64{op.Instr.Attrs.LHSContract, op.Instr.Attrs.RHSContract}[k]
		if p.Ops[op.Args[k]].Code != "parameter" || !turns(shape.DType) && !slices.Contains(contracted, int64(order[len(order)-1])) {
			return false
		}
		for _, stride := range shape.Strides() {
			if stride != 1 && stride*shape.DType.Size()%matrixRow != 0 {
				return false
			}
		}
	}
	return true
}

// onTensorCores says whether tensor cores have a product.
func onTensorCores(p *symtile.Program, n int, s Sheet, k knobs) bool {
	args := p.Ops[n].Args
	_, ok := s.tensorProduct(p.Ops[args[0]].Instr.Shape.DType, p.Ops[args[1]].Instr.Shape.DType, k)
	return ok
}

// padded is the elements of a product with its sides rounded up to fragments.
func (m *estimate) padded(n int) float64 {
	sizes := m.sizes(n)
	product := m.elements(n)
	if k := len(sizes); k >= 2 {
		rows, cols := float64(sizes[k-2]), float64(sizes[k-1])
		product = product / rows / cols * math.Ceil(rows/mmaM) * mmaM * math.Ceil(cols/mmaN) * mmaN
	}
	return product
}

// partials is at most how many results of a reduction a thread keeps.
func (m *estimate) partials(n int, threads float64) float64 {
	op := m.p.Ops[n]
	rows, all := m.elements(n), m.elements(op.Args[0])
	sharers := min(threads, max(1, all/rows))
	if len(op.Instr.Attrs.Dimensions) > 0 {
		last := op.Instr.Attrs.Dimensions[len(op.Instr.Attrs.Dimensions)-1]
		if int(last) == len(m.p.Ops[op.Args[0]].Tile)-1 {
			sharers = min(sharers, max(WarpThreads, threads/rows))
		}
	}
	kept := math.Ceil(rows*sharers/threads) * float64(len(op.Args)/2)
	if _, carried := m.orders[n]; carried {
		kept *= 2
	}
	return kept
}

// beside is the registers of a thread beside its results: addresses, fragments.
const beside = 40

// accountTerms name what terms gives.
var accountTerms = []string{"memory", "arithmetic", "shared memory", "L2", "waiting", "start"}

// terms are the seconds of all blocks: what memory, the arithmetic units, shared
// memory and the L2 cache take for all of them, and what one takes from start to
// end times the rounds in which they run, as many at once as fit; what comes
// again within a round is in the L2 cache. The longest counts, a sixteenth of
// the others, and the start of the first block.
//
// unique is the bytes that memory moves at least.
func (m *estimate) terms(c candidate, programs float64, l load, unique float64) [6]float64 {
	s := m.sheet
	at := s.Occupancy(m.needs(c))
	if at.Blocks == 0 {
		return [6]float64{math.Inf(1)}
	}
	sms, clock, bandwidth := float64(max(1, s.clustered(c.knobs.cluster))), s.Clock, s.Bandwidth
	if clock == 0 {
		clock = 1e9
	}
	if bandwidth == 0 {
		bandwidth = 16 * sms * clock // 16 bytes a clock
	}
	resident := min(float64(at.Blocks), math.Ceil(programs/sms))
	rounds := math.Ceil(programs / (sms * resident))
	alone := l.alone(float64(c.knobs.warps * WarpThreads))
	whole := rounds * alone
	if c.knobs.persistent > 0 { // what the next tile begins with comes while this one ends
		whole -= (rounds - 1) * latency
	}
	if c.knobs.persistent == pingpong {
		whole -= (rounds - 1) * min(l.after(float64(c.knobs.warps*WarpThreads)), l.matrix/128)
	}
	bytes := min(programs*l.bytes, max(unique, programs*l.bytes-float64(s.L2)*rounds))
	if wave := min(programs, sms*resident); c.knobs.splitk <= 1 {
		bytes = min(bytes, max(unique, programs/wave*m.waveBytes(wave, l.bytes, c.knobs.group)))
	}
	spilled := max(0, programs*l.scratch-float64(s.L2)/2) // from the L2 cache
	all := rounds * resident / clock
	t := [6]float64{
		(bytes + spilled) / bandwidth,
		all * l.flops / 128, all * l.traffic / sharedAClock, all * (l.bytes + l.scratch - l.given) / l2AClock,
		whole / clock, alone / clock / 2,
	}
	longest := 0
	for k := range t[:5] {
		if t[k] > t[longest] {
			longest = k
		}
	}
	for k := range t[:5] {
		if k != longest {
			t[k] /= 16
		}
	}
	return t
}

// alone is the cycles of a block that has an SM to itself: of threads that wait
// for each operation, but not for those of tensor copies and warpgroups.
func (l load) alone(threads float64) float64 {
	return l.exposed + l.matrix/128 + l.after(threads)
}

// after is the cycles of what the threads of a block do themselves.
func (l load) after(threads float64) float64 {
	return max((l.flops-l.matrix)/threads*8, (l.bytes+l.scratch-l.copied)/threads/most*30)
}

// needs are the registers of a thread, the bytes of shared memory and the
// threads of a block. Where a producer gives registers away all of an SM's are
// shared out.
func (m *estimate) needs(c candidate) (registers, shared, threads int) {
	registers = int(min(float64(m.sheet.ThreadRegisters), beside+c.partials))
	threads, given := m.threads(c.knobs)
	if given > 0 {
		registers = m.sheet.threadRegisters(threads)
	}
	return registers, int(c.shared), threads
}

// threads are those of a block, and what registers a producer gives threads of the
// others; 0: none.
func (m *estimate) threads(k knobs) (threads, given int) {
	threads = k.warps * WarpThreads * k.teams()
	extra := k.producer * WarpThreads
	for n := range m.p.Ops {
		if m.byGroups(n, k) && threads+extra <= m.sheet.BlockThreads {
			return threads + extra, m.sheet.handedOver(threads/groupThreads, extra)
		}
	}
	return threads, 0
}

// margin is the registers of a thread, beside its results and addresses, that what
// follows a product is happier with: operands on their way.
const margin = 16

// spills are the cycles that registers take to memory and back that a thread of a
// block has not got; none of it is measured here.
func (m *estimate) spills(c candidate) float64 {
	threads, granted := m.threads(c.knobs)
	if granted == 0 {
		granted = m.sheet.threadRegisters(threads)
	}
	short := max(0, min(float64(m.sheet.ThreadRegisters), beside+margin+c.partials)-float64(granted))
	return 2 * short * 4 * float64(threads) / sharedAClock
}

// fits says whether a block of the candidate fits the device.
func (m *estimate) fits(c candidate) bool {
	if _, given := m.threads(c.knobs); given > 0 && float64(given) < beside+c.partials {
		return false
	}
	return c.shared <= float64(m.sheet.BlockShared) && c.partials <= mostPartials && !math.IsInf(c.seconds, 1)
}

// plan is the candidate as a plan, knobs at their defaults left out.
func (c candidate) plan() kernels.Plan {
	p := kernels.Plan{Tiles: c.tiling}
	for _, row := range knobTable {
		if v := int64(*row.of(&c.knobs)); v != row.def {
			p = p.With(row.name, v)
		}
	}
	return p
}
