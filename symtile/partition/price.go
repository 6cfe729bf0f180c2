package partition

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Machine is what prices are for. A field that is 0 stands for that of
// Nominal.
type Machine struct {
	// MemoryBandwidth and CacheBandwidth are bytes per second: of arrays that a
	// fusion reads and writes, and of the tiles that it loads again and again.
	MemoryBandwidth, CacheBandwidth float64
	// FLOPs is operations per second, as hlo.Opcode.FLOPs counts them.
	FLOPs float64
	// Launch is the seconds that a kernel costs before it does anything.
	Launch float64
	// Cores share the work of a kernel, a tile at a time: fewer tiles leave some
	// idle.
	Cores float64
	// Scratch is the bytes of a tile that stays close to a core; what does not
	// fit is written to memory and read again.
	Scratch float64
}

// Nominal is a processor of eight cores with vector units: 16 GB/s of memory, 64
// GB/s of second-level cache, 64 Gflop/s, 2 µs for waking the workers, and half
// of a second-level cache of 512 KiB. Decisions depend on the ratios only: 4
// flop a byte of memory. GPUs have higher ones, so that they gain by what is
// joined here, too.
var Nominal = Machine{
	MemoryBandwidth: 16e9,
	CacheBandwidth:  64e9,
	FLOPs:           64e9,
	Launch:          2e-6,
	Cores:           8,
	Scratch:         256 << 10,
}

// orNominal replaces the fields that are 0.
func (m Machine) orNominal() Machine {
	for _, f := range []struct{ to, nominal *float64 }{
		{&m.MemoryBandwidth, &Nominal.MemoryBandwidth},
		{&m.CacheBandwidth, &Nominal.CacheBandwidth},
		{&m.FLOPs, &Nominal.FLOPs},
		{&m.Launch, &Nominal.Launch},
		{&m.Cores, &Nominal.Cores},
		{&m.Scratch, &Nominal.Scratch},
	} {
		if *f.to == 0 {
			*f.to = *f.nominal
		}
	}
	return m
}

// A Price is what running something once costs.
type Price struct {
	// Bytes are read from and written to memory: every array once.
	Bytes float64
	// Loads are bytes that tiles load, at the best tiling: an array counts as
	// often as tiles read it. Where there are fewer tiles than cores, these and
	// Work count what the others could have done.
	Loads float64
	// Work is operations in flop, those that tiles repeat included.
	Work float64
	// Launches are kernels.
	Launches float64
}

// plus is the price of both, one after the other.
func (a Price) plus(b Price) Price {
	return Price{a.Bytes + b.Bytes, a.Loads + b.Loads, a.Work + b.Work, a.Launches + b.Launches}
}

// A pricer prices fusions, each distinct one once, until its context ends: then
// every fusion has an error.
type pricer struct {
	Machine
	ctx   context.Context
	known map[[32]byte]pricedFusion
}

// A pricedFusion is a price, or why there is none.
type pricedFusion struct {
	price Price
	shape programShape
	err   error
}

// A programShape is what the second pass looks at besides the price.
type programShape struct {
	// dims are the dimensions of the tilings.
	dims int
	// online reports that symtile.Program.Online joins loops of it.
	online bool
}

// newPricer makes a pricer that knows nothing yet.
func newPricer(ctx context.Context, m Machine) *pricer {
	return &pricer{m, ctx, map[[32]byte]pricedFusion{}}
}

// seconds is the time that a price stands for: nothing overlaps.
func (p *pricer) seconds(x Price) float64 {
	return x.Bytes/p.MemoryBandwidth + x.Loads/p.CacheBandwidth +
		x.Work/p.FLOPs + x.Launches*p.Launch
}

// fusion is the price of a computation as one kernel. The error is that of
// symtile.Analyze, or of a tile program that is too large to price.
func (p *pricer) fusion(c *hlo.Computation) pricedFusion {
	if p.ctx.Err() != nil {
		return pricedFusion{err: context.Cause(p.ctx)}
	}
	key := c.Fingerprint()
	known, ok := p.known[key]
	if !ok {
		known = p.analyzed(c)
		p.known[key] = known
	}
	return known
}

// analyzed prices a computation by its tile program, with and without online
// loops.
func (p *pricer) analyzed(c *hlo.Computation) pricedFusion {
	prog, err := symtile.Analyze(p.ctx, c)
	if err != nil {
		return pricedFusion{err: err}
	}
	best := p.program(prog)
	if online := prog.Online(); online != prog {
		joined := p.program(online)
		if joined.err == nil &&
			p.seconds(joined.price) < p.seconds(best.price) {
			best = joined
		}
		best.shape.online = joined.err == nil
	}
	best.price.Bytes += traffic(c)
	best.price.Launches = 1
	return best
}

// sampledTilings are the tilings of which the search for the best one starts at the
// best, and searchRounds how often it goes through all dimensions.
const (
	sampledTilings = 12
	searchRounds   = 2
)

// program is the price of a tile program without its compulsory traffic, at the
// best tiling that descents along one dimension after another find: from the best of
// some tilings, and from whole rows.
func (p *pricer) program(prog *symtile.Program) pricedFusion {
	x, err := symtile.NewExtents(prog)
	if err != nil {
		return pricedFusion{err: err}
	}
	s := &tilingSearch{
		pricer: p, prog: prog, x: x,
		inPlace: readInPlace(prog), seconds: math.Inf(1),
	}
	for t := range prog.Space.Sample(sampledTilings) {
		s.try(t)
	}
	if s.tiling == nil {
		return pricedFusion{err: fmt.Errorf("%s has no legal tiling", prog.Fusion.Name)}
	}
	s.descendAll()
	sampled := *s
	if s.seconds = math.Inf(1); s.startAtRows() {
		s.descendAll()
	}
	if sampled.seconds < s.seconds {
		s = &sampled
	}
	return pricedFusion{price: s.best, shape: programShape{dims: len(prog.Space.Dims)}}
}

// A tilingSearch keeps the best tiling that it has met.
type tilingSearch struct {
	*pricer
	prog *symtile.Program
	x    *symtile.Extents
	// inPlace are the ops that are tables of gathers.
	inPlace map[int]bool
	seconds float64
	best    Price
	tiling  symtile.Tiling
}

// descendAll goes through the dimensions a few times.
func (s *tilingSearch) descendAll() {
	for range searchRounds {
		for k := range s.prog.Space.Dims {
			s.descend(k)
		}
	}
}

// startAtRows starts with one tile of everything, and makes single elements of those
// parallel dimensions that save the most by it, one after another: whole rows and
// columns of as many heads and batches as fit. It reports whether that is legal.
func (s *tilingSearch) startAtRows() bool {
	t := make(symtile.Tiling, len(s.prog.Space.Dims))
	for k, d := range s.prog.Space.Dims {
		t[k] = max(1, d.Extent)
	}
	if s.prog.Check(t) != nil {
		return false
	}
	s.try(t)
	for before := math.Inf(1); s.seconds < before; {
		before = s.seconds
		from := slices.Clone(s.tiling)
		for k, d := range s.prog.Space.Dims {
			t := slices.Clone(from)
			t[k] = 1
			if d.Kind == symtile.Parallel && s.prog.Check(t) == nil {
				s.try(t)
			}
		}
	}
	return true
}

// descend tries every size of a dimension, with the others as they are.
func (s *tilingSearch) descend(dim int) {
	t := slices.Clone(s.tiling)
	for _, size := range s.prog.Space.Sizes(dim) {
		t[dim] = size
		if s.prog.Check(t) == nil {
			s.try(t)
		}
	}
}

// try prices a legal tiling.
func (s *tilingSearch) try(t symtile.Tiling) {
	s.x.Set(t)
	var sum Price
	for n := range s.prog.Ops {
		if !s.x.Duplicate(n) {
			sum = sum.plus(s.op(n))
		}
	}
	if idle := s.Cores / s.x.Programs(); idle > 1 {
		sum.Loads *= idle
		sum.Work *= idle
	}
	if seconds := s.pricer.seconds(sum); seconds < s.seconds {
		s.seconds, s.best, s.tiling = seconds, sum, slices.Clone(t)
	}
}

// minOpWork is the element operations that an operation of a tile program costs at
// least, however few elements its tile has.
const minOpWork = 64

// op is the price of all runs of one op of the program.
func (s *tilingSearch) op(n int) Price {
	op := &s.prog.Ops[n]
	runs := s.x.Runs(n) * s.x.Programs()
	elements := s.x.Elements(n) * runs
	width := float64(op.Instr.Shape.DType.Size())
	switch {
	case op.Code == hlo.OpParameter && s.inPlace[n]:
		return Price{}
	case op.Code == hlo.OpParameter:
		return Price{Loads: elements * width}
	case op.Code == hlo.OpConstant ||
		op.Code == hlo.OpIota ||
		op.Code == hlo.OpBroadcast:
		return Price{}
	case op.Code == hlo.OpDot:
		elements *= 2 * s.contracted(op)
	case op.Code == hlo.OpReduce:
		elements = s.x.Elements(op.Args[0]) * runs
	case op.Code == hlo.OpScatter:
		elements = s.scattered(n) * runs
	case op.Code == hlo.OpGather:
		return Price{Loads: elements * width, Work: elements}
	}
	price := Price{Work: max(elements*max(1, op.Code.FLOPs()), minOpWork*runs)}
	if tile := s.x.Elements(n) * width; tile > s.Scratch {
		price.Bytes = 2 * (tile - s.Scratch) * runs
	}
	return price
}

// scattered is the elements that a run of a scatter looks at: all index vectors, and the
// share of the updates that falls into its tile, as if they were spread evenly.
func (s *tilingSearch) scattered(n int) float64 {
	op := &s.prog.Ops[n]
	share := s.x.Elements(op.Args[2])
	for _, d := range op.Instr.Attrs.Scatter.ToOperand {
		share *= float64(s.x.Sizes(n)[d]) / float64(max(1, op.Instr.Shape.Dims[d]))
	}
	return s.x.Elements(op.Args[1]) + share
}

// readInPlace lists the ops that are the table of a gather, of which no more than
// the gathered elements are read.
func readInPlace(prog *symtile.Program) map[int]bool {
	tables := map[int]bool{}
	for _, op := range prog.Ops {
		if op.Code == hlo.OpGather {
			tables[op.Args[0]] = true
		}
	}
	return tables
}

// contracted is the elements of a tile's contracting dimensions.
func (s *tilingSearch) contracted(dot *symtile.Op) float64 {
	n := 1.0
	sizes := s.x.Sizes(dot.Args[0])
	for _, d := range dot.Instr.Attrs.LHSContract {
		n *= float64(sizes[d])
	}
	return n
}

// traffic is the bytes that a fusion reads and writes when it reads every
// parameter once, of those that are only sliced or gathered from what is taken.
func traffic(c *hlo.Computation) float64 {
	users := c.Users()
	sum := 0.0
	for _, p := range c.Params {
		sum += bytesRead(p, users)
	}
	return sum + float64(c.Root.Shape.Bytes())
}

// bytesRead is the bytes of an array that its users read.
func bytesRead(
	i *hlo.Instr, users map[*hlo.Instr][]*hlo.Instr,
) float64 {
	all := float64(i.Shape.Bytes())
	sum := 0.0
	for _, u := range users[i] {
		switch {
		case u.Operands[0] == i &&
			(u.Op == hlo.OpSlice ||
				u.Op == hlo.OpDynamicSlice ||
				u.Op == hlo.OpGather):
			sum += float64(u.Shape.Bytes())
		case u.Op == hlo.OpReshape ||
			u.Op == hlo.OpBitcast:
			sum += bytesRead(u, users)
		default:
			return all
		}
	}
	return min(all, sum)
}

// apart is the price of the operations of a fusion, each launched alone. Views,
// constants and iotas are no kernels, unless they are results.
func (p *pricer) apart(c *hlo.Computation) Price {
	results := []*hlo.Instr{c.Root}
	if c.Root.Op == hlo.OpTuple {
		results = c.Root.Operands
	}
	var sum Price
	for _, i := range c.Instrs {
		x := alone(i)
		if x.Launches == 0 && slices.Contains(results, i) {
			x = Price{Bytes: float64(i.Shape.Bytes()), Launches: 1}
			for k, o := range i.Operands {
				x.Bytes += bytesOfOperand(i, k, o)
			}
		}
		sum = sum.plus(x)
	}
	return sum
}

// alone is the price of an operation as a kernel of its own.
func alone(i *hlo.Instr) Price {
	switch {
	case i.Op == hlo.OpParameter ||
		i.Op == hlo.OpConstant ||
		i.Op == hlo.OpIota ||
		i.Op == hlo.OpTuple || i.Op == hlo.OpGetTupleElement ||
		i.Op.Has(hlo.View):
		return Price{}
	}
	x := Price{
		Bytes:    float64(i.Shape.Bytes()),
		Work:     workAlone(i),
		Launches: 1,
	}
	for k, o := range i.Operands {
		x.Bytes += bytesOfOperand(i, k, o)
	}
	return x
}

// workAlone is the flop of an operation that computes every element once.
func workAlone(i *hlo.Instr) float64 {
	elements := float64(i.Shape.Elements())
	switch {
	case i.Op == hlo.OpDot:
		elements *= 2
		for _, d := range i.Attrs.LHSContract {
			elements *= float64(i.Operands[0].Shape.Dims[d])
		}
	case i.Op == hlo.OpConvolution:
		elements *= 2 * float64(i.Operands[1].Shape.Elements()) /
			float64(max(1, i.Operands[1].Shape.Dims[i.Attrs.Conv.KernelOut]))
	case i.Op == hlo.OpReduce:
		elements = float64(i.Operands[0].Shape.Elements())
	case i.Op == hlo.OpScatter:
		elements = float64(i.Operands[1].Shape.Elements() + i.Operands[len(i.Operands)-1].Shape.Elements())
	case i.Op == hlo.OpReduceWindow:
		for _, w := range i.Attrs.Window {
			elements *= float64(w.Size)
		}
	}
	return elements * max(1, i.Op.FLOPs())
}

// bytesOfOperand is what an operation reads of operand k, o.
func bytesOfOperand(
	i *hlo.Instr, k int, o *hlo.Instr,
) float64 {
	bytes := float64(o.Shape.Bytes())
	for o.Op.Has(hlo.View) {
		o = o.Operands[0]
		bytes = min(bytes, float64(o.Shape.Bytes()))
	}
	switch {
	case o.Op == hlo.OpConstant ||
		o.Op == hlo.OpIota:
		return 0
	case k == 0 &&
		(i.Op == hlo.OpSlice ||
			i.Op == hlo.OpDynamicSlice ||
			i.Op == hlo.OpGather):
		return min(bytes, float64(i.Shape.Bytes()))
	}
	return bytes
}
