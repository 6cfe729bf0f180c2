// Package cpu runs tile programs on the cores of this machine.
//
// A plan is compiled once to a list of tile instructions over scratch that is laid
// out in advance. Running it evaluates no expressions but the compiled offsets of
// tiles, and allocates nothing. The way of a plan through the package:
//
//	plans.go, price.go   choose and price plans
//	lower.go             lowers a program to instructions over values (block.go),
//	                     op by op: tile_access.go loads and stores tiles,
//	                     rearrange.go, tile_copy.go, view_composition.go and
//	                     gather.go move elements, strips.go computes elementwise,
//	                     reduce.go, dot.go and online.go accumulate (accumulator.go)
//	schedule.go          orders instructions and groups elementwise ones
//	row_fusion.go        groups instructions over rows to row kernels
//	scratch.go           finds live ranges and lays out the scratch
//	program_loop.go      runs the tile programs on workers, in the order of a raster
//
// Packages below this one do the work of instructions: portable by loops in Go,
// vector and rowkernel by machine code that package amd64 assembles, gemm by
// kernels of assembly. Machine code needs amd64 with AVX2 and FMA. Elsewhere, and
// in tests for comparison, the loops in Go compute the same.
package cpu

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rates"
	"github.com/tilewright/tilewright/kernels/cpu/internal/rowkernel"
	"github.com/tilewright/tilewright/kernels/cpu/internal/workers"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Revision names how code is generated. It is part of every cache key and
// changes whenever lowering changes what a plan does or how fast it is.
const Revision = "go31"

// Backend is the CPU backend of this machine. Its device is measured once, when
// it is first asked for, unless it was told. Its worker pool and scratch are shared by all of its
// kernels.
type Backend struct {
	identity, device func() kernels.Device // The device without and with its rates.
	workers          workers.Pool          // The goroutines of all kernels.
	scratch          scratchPool           // The scratch of closed kernels.
	lender           lender                // The large scratch of all kernels.
	probe            rates.Probe           // Finds out whether something else runs.
	pages            *amd64.Pages          // The pages of machine code of closed kernels.
	memories         sync.Pool             // What assembling code uses again, *rowkernel.Memory.

	prior  prior              // What is believed of the processor.
	halves func(half) []int64 // The ways to multiply bf16 or f16 that it has; nil: none.
	wide   bool               // Row kernels may have vectors of 512 bits.
	rounds bool               // These may be rounded to bf16 by an instruction.
}

// New returns the backend of this machine.
func New() *Backend {
	return &Backend{
		identity: sync.OnceValue(identify),
		device:   sync.OnceValue(measureDevice),
		prior:    priorHere(),
		halves:   halfKernels,
		wide:     amd64.RunsWide(),
		rounds:   amd64.RoundsHalves(),
		pages:    amd64.NewPages(),
	}
}

// PriceOnly says, before anything else is asked of this package, that no kernel will run in
// this process. A library in a compiler calls it: so the process is not given the permission to
// use AMX, after which Linux refuses signal stacks of less than 12 KiB to all of its threads.
func PriceOnly() { gemm.PriceOnly() }

// spec is what lowering needs to know of the machine.
func (b *Backend) spec() deviceSpec {
	spec := deviceSpecOf(b.Identity())
	spec.wide = b.wide
	spec.rounds = b.rounds
	spec.fetch = b.prior.sheet.FetchBytes
	spec.fetchPastRow = b.prior.sheet.FetchPastRow
	spec.fetchSecond = b.prior.sheet.FetchSecond
	spec.fetchPass = b.prior.sheet.FetchPass
	spec.past = b.prior.sheet.PastBytes
	spec.places = b.prior.sheet.ReadPlaces
	spec.spread = b.prior.sheet.SpreadStores == 1
	spec.bandFetch = b.prior.sheet.BandFetch
	spec.copyPlaces = b.prior.sheet.CopyPlaces
	spec.sumBits = b.prior.sheet.SumBits
	spec.sumPlaces = b.prior.sheet.SumPlaces
	spec.vanishes = b.prior.sheet.UnderflowCycles > 0
	spec.Single = b.prior.panel(spec)
	spec.Panel = b.prior.pairedPanel(spec)
	spec.Pairs = b.prior.sheet.PanelsAtOnce == 2
	spec.Fetched = b.prior.sheet.FetchesOperands == 1
	return spec
}

// Identity names this machine and its caches. It measures nothing.
func (b *Backend) Identity() kernels.Device { return b.identity() }

// Device describes this machine. Unless SetRates has said what its rates are, the first
// call measures them, which takes half a second.
func (b *Backend) Device() kernels.Device { return b.device() }

// A kernel is a compiled plan.
type kernel struct {
	programs *programLoop  // The loop over tile programs.
	in, out  []hlo.Shape   // The shapes of the parameters and results.
	source   func() string // The listing.
	code     *amd64.Code   // The machine code of the plan, or nil.
	// The pool that the scratch of the workers returns to.
	scratch *scratchPool
	// What lends them scratch, where it is large, and to whom.
	lender   *lender
	borrower *borrower
	running  sync.Mutex     // Held by a run, which may outlast its caller (check.Hung).
	kept     []*keptOperand // What is kept from run to run.
	// One more worker for a run among other kernels; nil where it cannot be one of a group.
	another func() *worker
}

// Compile lowers the program at the plan. Plans that cannot run are
// *kernels.Rejected.
func (b *Backend) Compile(
	ctx context.Context, p *symtile.Program, plan kernels.Plan,
) (kernels.Kernel, error) {
	k, err := b.compile(p, plan, nil)
	if err != nil {
		return nil, &kernels.Rejected{
			Plan:   plan,
			Reason: err.Error(),
		}
	}
	return k, nil
}

// CompileKeeping is Compile for runs between which some parameters are steady. The panels
// of right operands of dots that are made of these alone are kept. It is nil where there
// are none.
func (b *Backend) CompileKeeping(
	ctx context.Context, p *symtile.Program,
	plan kernels.Plan, steady []int,
) kernels.KeepingKernel {
	k, err := b.compile(p, plan, steady)
	if err != nil {
		return nil
	}
	if len(k.kept) == 0 {
		k.Close()
		return nil
	}
	k.another = nil // A group has no first run of its own.
	return k
}

// compile lowers the program and makes its kernel.
func (b *Backend) compile(
	p *symtile.Program,
	plan kernels.Plan, steady []int,
) (*kernel, error) {
	if err := CheckKnobs(plan); err != nil {
		return nil, err
	}
	q, err := p.At(plan.Tiles)
	if err != nil {
		return nil, err
	}
	spec := b.spec()
	spec.memory, _ = b.memories.Get().(*rowkernel.Memory)
	if spec.memory == nil {
		spec.memory = new(rowkernel.Memory)
	}
	defer b.memories.Put(spec.memory)
	x, err := lowerAndCompile(q, plan, spec, steady)
	if err != nil {
		return nil, err
	}
	return b.kernel(x.lowering, x.body, x.steps)
}

// A compiledBody is the body of a tile program as steps.
type compiledBody struct {
	*lowering
	body  *schedule
	steps []step
}

// lowerAndCompile lowers and compiles a program, without row kernels where the code of
// one of them does not fit in the registers.
func lowerAndCompile(
	q *symtile.Program, plan kernels.Plan,
	spec deviceSpec, steady []int,
) (compiledBody, error) {
	l, body := lowerWith(
		q, plan, spec,
		plan.Knob("rows", 1) == 1,
		steady,
	)
	if err := l.check(); err != nil {
		return compiledBody{}, err
	}
	steps := body.compile()
	if l.codeErr != nil {
		l, body = lowerWith(
			q, plan, spec,
			false, steady,
		)
		steps = body.compile()
	}
	return compiledBody{l, body, steps}, l.check()
}

// check is the reason why a lowered program cannot run, or nil.
func (l *lowering) check() error {
	if l.err != nil {
		return l.err
	}
	if l.bytes > maxScratch {
		return fmt.Errorf("a tile program needs %d bytes of scratch; at most %d are used", l.bytes, int64(maxScratch))
	}
	s := l.split
	if s != nil &&
		s.bytes*s.parts*l.p.Programs() > maxScratch {
		return fmt.Errorf(
			"the partial sums of splitk=%d take %d bytes; at most %d are used",
			s.parts,
			s.bytes*s.parts*l.p.Programs(),
			int64(maxScratch),
		)
	}
	return nil
}

// kernel loads the code of a lowered program and makes its workers.
func (b *Backend) kernel(
	l *lowering, body *schedule, steps []step,
) (*kernel, error) {
	code, err := l.loadCode(b.pages)
	if err != nil {
		return nil, err
	}
	programs := l.p.Programs()
	threads := min(
		l.knob("threads", int64(lanes())),
		max(1, programs*l.split.count()),
	)
	states := make([]*worker, threads)
	for n := range states {
		states[n] = l.worker(&b.scratch)
	}
	order := newRaster(l.p.Grid(), l.knob("group", 1))
	l.split.allocate(programs)
	fusion := l.p.Physical
	k := &kernel{
		programs: newProgramLoop(states, steps, order, l.split, &b.workers),
		in:       fusion.ParamShapes(),
		out:      kernels.OutputShapes(fusion),
		source:   func() string { return body.describe(l.plan, len(states)) },
		code:     code,
		scratch:  &b.scratch,
		lender:   &b.lender,
	}
	for _, x := range l.kept {
		k.kept = append(k.kept, x)
	}
	k.borrower = &borrower{running: &k.running}
	if l.split == nil && l.knob("threads", int64(lanes())) == int64(lanes()) && !states[0].lent() {
		k.another = func() *worker { return l.worker(&b.scratch) }
	}
	for _, w := range states {
		k.borrower.workers = append(k.borrower.workers, &w.workerScratch)
	}
	return k, nil
}

// maxScratch bounds the scratch of a worker, in bytes. A tile program that
// needs more is not blocked for any cache.
const maxScratch = 256 << 20

// Source lists the tile program as it runs.
func (k *kernel) Source() string { return k.source() }

// Run executes the plan once.
func (k *kernel) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if err := checkBuffers("input", in, k.in); err != nil {
		return 0, err
	}
	if err := checkBuffers("output", out, k.out); err != nil {
		return 0, err
	}
	k.running.Lock()
	defer k.running.Unlock()
	for _, x := range k.kept {
		if err := x.reserve(); err != nil {
			return 0, err
		}
	}
	k.lender.lend(k.borrower)
	return k.programs.run(ctx, in, out)
}

// Forget says that the steady parameters have other elements from now on.
func (k *kernel) Forget() {
	for _, x := range k.kept {
		x.forget()
	}
}

// Kept is the bytes of what is kept.
func (k *kernel) Kept() (bytes int64) {
	for _, x := range k.kept {
		bytes += x.bytes
	}
	return bytes
}

// Deterministic is true: the order of a sum depends on the plan, not on which worker
// is first.
func (k *kernel) Deterministic() bool { return true }

// Close releases the workers, their scratch and the pages of machine code. A run that
// was abandoned keeps them.
func (k *kernel) Close() error {
	if !k.running.TryLock() {
		return nil
	}
	defer k.running.Unlock()
	if !k.programs.region.Close() {
		return nil
	}
	k.lender.forget(k.borrower)
	for _, w := range k.programs.workers {
		k.scratch.put(w.arena)
		k.scratch.put(w.packing)
	}
	if k.code == nil {
		return nil
	}
	err := k.code.Close()
	k.code = nil
	return err
}

// checkBuffers compares buffers with the shapes that a program was compiled
// for.
func checkBuffers(what string, have []kernels.Buffer, want []hlo.Shape) error {
	if len(have) != len(want) {
		return fmt.Errorf(
			"%d %ss given, %d needed", len(have), what, len(want),
		)
	}
	for n, b := range have {
		if !b.Shape.Equal(want[n]) ||
			int64(len(b.Data)) != want[n].Bytes() {
			return fmt.Errorf(
				"%s %d is %s in %d bytes; %s is needed",
				what, n, b.Shape,
				len(b.Data), want[n],
			)
		}
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Data)))
		if at%uintptr(max(1, want[n].DType.Size())) != 0 {
			return fmt.Errorf("%s %d (%s) is not aligned to its elements", what, n, want[n])
		}
	}
	return nil
}

// A group runs several kernels as one parallel region: small ones, each of which takes no
// longer than starting its workers, or has one tile program. Each tile program computes
// what it does in a run of its kernel alone.
type group struct {
	members []*groupMember
	in, out int       // The numbers of arrays of all.
	kernels []*kernel // Each once.
	region  *workers.Region
	source  string
}

// A groupMember is one run of a kernel in a group, which may have others.
type groupMember struct {
	loop    programLoop // The kernel's, with the region of the group and the member's arrays.
	kernel  *kernel
	first   int64 // The number of its first tile program among those of all.
	in, out int   // The numbers of its first arrays among those of all.
}

// Group is a kernel of several: one region over the tile programs of all, in the order of
// the kernels, so that a worker that is done with one goes on with the next. They need not
// differ, and read nothing that another one of them writes. It is nil where one of them
// shares scratch with other kernels, splits contractions or has another number of threads.
func (b *Backend) Group(all []kernels.Kernel) kernels.Kernel {
	g := &group{}
	programs := int64(0)
	for _, x := range all {
		k, ours := x.(*kernel)
		if !ours || k.another == nil {
			return nil
		}
		g.members = append(g.members, &groupMember{
			loop:   *k.programs,
			kernel: k,
			first:  programs,
			in:     g.in,
			out:    g.out,
		})
		programs += hlo.Elements(k.programs.order.grid)
		g.in += len(k.in)
		g.out += len(k.out)
		if !slices.Contains(g.kernels, k) {
			g.kernels = append(g.kernels, k)
		}
		g.source += k.Source()
	}
	threads := int(min(int64(lanes()), max(1, programs)))
	for _, k := range g.kernels {
		k.addWorkers(threads)
	}
	g.region = b.workers.NewRegion(threads, programs, g.runPrograms)
	for _, m := range g.members {
		m.loop.workers = m.kernel.programs.workers
		m.loop.region = g.region
	}
	return g
}

// addWorkers makes workers until there are n. A kernel of one tile program has one worker
// for itself, but in a group any worker may take that program, and two at once where the
// kernel is there twice.
func (k *kernel) addWorkers(n int) {
	for len(k.programs.workers) < n {
		w := k.another()
		k.programs.workers = append(k.programs.workers, w)
		k.borrower.workers = append(k.borrower.workers, &w.workerScratch)
	}
}

// runPrograms runs tile programs begin … end−1 of all as one worker. A chunk may begin in
// one kernel and end in another: each of them sees the part that is its own, under the
// numbers that its programs have in a run alone.
func (g *group) runPrograms(number int, begin, end int64) {
	n := sort.Search(len(g.members), func(n int) bool {
		return g.members[n].first > begin
	}) - 1
	for ; begin < end; n++ {
		m, upto := g.members[n], end
		if n+1 < len(g.members) {
			upto = min(end, g.members[n+1].first)
		}
		m.loop.runPrograms(number, begin-m.first, upto-m.first)
		begin = upto
	}
}

// Source lists the tile programs of all kernels.
func (g *group) Source() string { return g.source }

// Run runs all kernels once. in and out are those of all, one kernel after the other.
func (g *group) Run(
	ctx context.Context, in, out []kernels.Buffer,
) (time.Duration, error) {
	if g.region.Closed() {
		return 0, workers.ErrClosed
	}
	if len(in) != g.in || len(out) != g.out {
		return 0, fmt.Errorf("%d inputs and %d outputs given, %d and %d needed", len(in), len(out), g.in, g.out)
	}
	for _, k := range g.kernels {
		k.running.Lock()
		defer k.running.Unlock()
	}
	for _, m := range g.members {
		m.loop.ctx = ctx
		m.loop.in = in[m.in:][:len(m.kernel.in)]
		m.loop.out = out[m.out:][:len(m.kernel.out)]
		if err := m.check(); err != nil {
			return 0, err
		}
	}
	elapsed, err := g.region.Run()
	if err != nil {
		return 0, err
	}
	return elapsed, ctx.Err()
}

// check is what is wrong with the arrays of a member, or nil.
func (m *groupMember) check() error {
	err := checkBuffers("input", m.loop.in, m.kernel.in)
	if err != nil {
		return err
	}
	return checkBuffers("output", m.loop.out, m.kernel.out)
}

// Close gives the workers of the group back. Its kernels are closed by themselves.
func (g *group) Close() error {
	g.region.Close()
	return nil
}
