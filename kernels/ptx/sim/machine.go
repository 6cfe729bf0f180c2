// Package sim runs PTX kernels without a GPU: a functional interpreter that
// executes exactly the modules that a device would be given, finds what is
// wrong with them (out-of-bounds and uninitialised accesses, data races,
// missing waits and fences, deadlocks) and counts what they do to memory.
//
// It is not a timing simulator. Asynchronous operations (cp.async, bulk and
// tensor copies, wgmma) read and write as late as the program's waits allow, so
// that a missing wait shows. try_wait says no once before it waits, as a device
// may. mma and wgmma add in float32 in order of k, which differs from a device
// in the last bits; the .approx functions are computed in float64 and rounded
// once, so they are closer than a device's. Clocks count instructions. Data
// races are looked for at warps, and between lanes of a warp where nothing
// synchronises them; where bookkeeping is coarser than the memory model, it
// errs towards silence.
//
// Load refuses, by name, what is not modelled: 128-bit values, fns, lop3 with a
// predicate, im2col, st.async and red.async, reductions into shared memory,
// mma.m8n8k16 of integers, and what needs sm_100.
package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// Sheet is what a device can do. Zero fields take those of an H100.
type Sheet struct {
	Target             ptx.Target // most a module may ask for
	SMs                int
	SharedPerBlock     int   // bytes, with opt-in
	RegistersPerSM     int   // of 32 bits
	RegistersPerThread int   // most
	ThreadsPerBlock    int   // most
	ThreadsPerSM       int   // most
	BlocksPerCluster   int   // most
	Memory             int64 // bytes of global memory
}

func (s Sheet) withDefaults() Sheet {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if s.Target == (ptx.Target{}) {
		s.Target = ptx.Target{SM: 90, Arch: 'a'}
	}
	def(&s.SMs, 132)
	def(&s.SharedPerBlock, 227<<10)
	def(&s.RegistersPerSM, 64<<10)
	def(&s.RegistersPerThread, 255)
	def(&s.ThreadsPerBlock, 1024)
	def(&s.ThreadsPerSM, 2048)
	def(&s.BlocksPerCluster, 16)
	if s.Memory == 0 {
		s.Memory = 4 << 30
	}
	return s
}

// Options say what a launch looks for. The zero value only executes. What must be
// found in one launch, or one CTA, if it is found in another is looked for once:
// where neither branches nor addresses depend on data, a launch that repeats one
// in which nothing was found only executes, and where those in shared memory do
// not depend on the CTA either, only the first has its shared memory checked.
type Options struct {
	Counters      bool
	Races         bool    // data races, missing waits and fences
	Uninitialised bool    // reads of registers, shared and global memory
	Workers       int     // goroutines; 0: GOMAXPROCS
	Budget        int64   // warp instructions a CTA may execute; 0: 1<<28
	Hertz         float64 // at which %clock64 counts, against the nanoseconds of %globaltimer; 0: 1e9
}

// Machine is a simulated device. Its methods may be called by one goroutine at
// a time.
type Machine struct {
	sheet   Sheet
	mem     memory
	clock   clock
	globals map[*Program]map[string]uint64
	clean   checkedLaunches
}

// New returns a machine with empty memory.
func New(s Sheet) *Machine {
	s = s.withDefaults()
	return &Machine{
		sheet:   s,
		mem:     memory{limit: s.Memory},
		globals: map[*Program]map[string]uint64{},
		clean:   checkedLaunches{},
	}
}

// Sheet is what the machine can do.
func (m *Machine) Sheet() Sheet { return m.sheet }

// Alloc returns the address of n new bytes, aligned to 256.
func (m *Machine) Alloc(n int64) (uint64, error) {
	a, err := m.mem.alloc(n, "")
	if err != nil {
		return 0, err
	}
	return a.start, nil
}

// Free ends an allocation; kernels that touch it later are found out.
func (m *Machine) Free(addr uint64) error {
	a := m.mem.owner(addr)
	if a == nil || a.start != addr || a.freed {
		return fmt.Errorf("sim: Free(%#x): not the start of a live allocation", addr)
	}
	m.mem.used -= a.size
	a.freed = true
	a.data = nil
	a.written = nil
	a.shadow = nil
	return nil
}

// Write copies host bytes to the device.
func (m *Machine) Write(addr uint64, b []byte) error {
	a, off, err := m.mem.host(addr, int64(len(b)))
	if err != nil {
		return err
	}
	copy(a.data[off:], b)
	markWritten(a, off, int64(len(b)))
	return nil
}

// Read copies device bytes to the host.
func (m *Machine) Read(addr uint64, b []byte) error {
	a, off, err := m.mem.host(addr, int64(len(b)))
	if err != nil {
		return err
	}
	copy(b, a.data[off:])
	return nil
}

// Set fills n bytes of the device with v.
func (m *Machine) Set(addr uint64, v byte, n int64) error {
	a, off, err := m.mem.host(addr, n)
	if err != nil {
		return err
	}
	for i := range n {
		a.data[off+i] = v
	}
	markWritten(a, off, n)
	return nil
}

// Poison fills n bytes of the device with v as Set does, but they still count as
// never written: a kernel that reads them is found out.
func (m *Machine) Poison(addr uint64, v byte, n int64) error {
	if err := m.Set(addr, v, n); err != nil {
		return err
	}
	a, off, err := m.mem.host(addr, n)
	if err == nil {
		clear(a.written[off : off+n])
	}
	return err
}

// Launch is one kernel launch. Zero dimensions mean 1.
type Launch struct {
	Entry   string
	Grid    [3]int // CTAs
	Block   [3]int // threads of a CTA
	Cluster [3]int // CTAs of a cluster; zero: what the entry says, or 1
	Shared  int    // bytes of dynamic shared memory
	Args    [][]byte
	Outputs []uint64 // allocations that the kernel must write completely
}

// Report is what a launch did.
type Report struct {
	Findings []Finding // in program order
	Counters Counters
}

// Err is an error that holds the first finding, or nil.
func (r *Report) Err() error {
	if len(r.Findings) == 0 {
		return nil
	}
	more := ""
	if n := len(r.Findings) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return errors.New(r.Findings[0].String() + more)
}

// grid is one launch in execution, read by all workers.
type grid struct {
	entry   *entry
	mem     *memory
	sheet   Sheet
	opt     Options
	clock   clock  // when it began
	size    [3]int // CTAs
	block   [3]int
	cluster [3]int
	units   [3]int // clusters
	threads int
	shared  int64
	dynamic int64
	param   []byte
	globals map[string]uint64
	watch   bool // registers that instructions read and write
	next    atomic.Int64
	stopped atomic.Bool
	done    <-chan struct{}
	locks   [64]sync.Mutex // of atomic operations, by address
	sync    syncVariables
}

// Launch runs a kernel to its end. An error means that it did not run, or was
// cancelled; what is wrong with the kernel is in the report.
func (m *Machine) Launch(
	ctx context.Context, p *Program, l Launch, opt Options,
) (*Report, error) {
	g, err := m.prepare(p, l, opt)
	if err != nil {
		return nil, err
	}
	g.done = ctx.Done()
	key, steady := m.launchKey(g, &l)
	if steady && m.clean[p][key] {
		g.opt.Races = false
		g.opt.Uninitialised = false
		g.watch = false
	}
	if g.opt.Races {
		for _, a := range m.mem.allocs {
			if !a.freed {
				a.shadow = newGlobalShadow(a.size)
			}
		}
	}
	workers := opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, product3(g.units))
	all := make([]*worker, workers)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = newWorker(g)
		if i > 0 {
			wg.Go(all[i].run)
		}
	}
	all[0].run()
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := g.collect(all, l.Outputs)
	m.clock = g.clock.after(r.Counters.WarpInstructions)
	if steady && len(r.Findings) == 0 {
		m.clean.add(p, key)
	}
	return r, nil
}

func product3(v [3]int) int {
	return v[0] * v[1] * v[2]
}

// collect joins what the workers found and counted.
func (g *grid) collect(all []*worker, outputs []uint64) *Report {
	r := &Report{}
	found := findings{}
	for _, w := range all {
		for _, f := range w.found {
			found.add(*f)
		}
		r.Counters.Add(&w.counters)
		for pc, n := range w.executed {
			r.Counters.Instructions[g.entry.code[pc].class] += n
		}
	}
	r.Findings = found.sorted()
	for _, addr := range outputs {
		a := g.mem.owner(addr)
		if a == nil || a.freed {
			continue
		}
		if first, n := a.unwritten(); n > 0 {
			r.Findings = append(r.Findings, Finding{
				Kind:   Unwritten,
				At:     Site{Text: g.entry.name, Lane: -1},
				Space:  "global",
				Addr:   a.start + uint64(first),
				Detail: fmt.Sprintf("%d bytes of %v were never written, the first at offset %d", n, a, first),
				Count:  1,
			})
		}
	}
	for _, a := range g.mem.allocs {
		a.shadow = nil
	}
	return r
}

// prepare checks a launch against the entry and the device.
func (m *Machine) prepare(p *Program, l Launch, opt Options) (*grid, error) {
	e := p.entries[l.Entry]
	if e == nil {
		return nil, fmt.Errorf("sim: no entry %q in the module", l.Entry)
	}
	if p.target.SM > m.sheet.Target.SM ||
		p.target.Arch != 0 && p.target != m.sheet.Target {
		return nil, fmt.Errorf(
			"sim: a module for %v does not run on %v", p.target, m.sheet.Target,
		)
	}
	g := &grid{
		entry:   e,
		mem:     &m.mem,
		sheet:   m.sheet,
		opt:     opt,
		clock:   m.clock,
		size:    atLeastOne(l.Grid),
		block:   atLeastOne(l.Block),
		cluster: l.Cluster,
		dynamic: int64(l.Shared),
	}
	g.clock.hertz = opt.hertz()
	g.watch = opt.Uninitialised && e.tracked ||
		opt.Races && e.usesTensor()
	if g.opt.Budget == 0 {
		g.opt.Budget = 1 << 28
	}
	if g.cluster == [3]int{} {
		g.cluster = e.source.ReqNCTAPerCluster
	}
	g.cluster = atLeastOne(g.cluster)
	g.threads = product3(g.block)
	g.shared = e.statics
	if l.Shared > 0 || e.dynamic > e.statics {
		g.shared = e.dynamic + int64(l.Shared)
	}
	if err := g.check(); err != nil {
		return nil, fmt.Errorf("sim: launch of %s: %w", l.Entry, err)
	}
	var err error
	if g.param, err = e.arguments(l.Args); err != nil {
		return nil, fmt.Errorf("sim: launch of %s: %w", l.Entry, err)
	}
	if g.globals, err = m.load(p); err != nil {
		return nil, err
	}
	return g, nil
}

func atLeastOne(v [3]int) [3]int {
	for i := range v {
		if v[i] == 0 {
			v[i] = 1
		}
	}
	return v
}

// check compares the launch with the limits of the device and the entry.
func (g *grid) check() error {
	e := g.entry.source
	s := g.sheet
	for i, axis := range []string{"x", "y", "z"} {
		switch {
		case g.size[i] < 1 ||
			g.block[i] < 1 ||
			g.cluster[i] < 1:
			return fmt.Errorf(
				"grid %v, block %v, cluster %v: a dimension is negative",
				g.size, g.block, g.cluster,
			)
		case g.size[i]%g.cluster[i] != 0:
			return fmt.Errorf("grid %v is no multiple of the cluster %v in %s", g.size, g.cluster, axis)
		case i > 0 && g.size[i] > 65535:
			return fmt.Errorf("grid %v: at most 65535 CTAs in %s", g.size, axis)
		case e.ReqNTid[i] > 0 &&
			e.ReqNTid[i] != g.block[i]:
			return fmt.Errorf("block %v, but the entry is .reqntid %v", g.block, e.ReqNTid)
		case e.ReqNCTAPerCluster[i] > 0 &&
			e.ReqNCTAPerCluster[i] != g.cluster[i]:
			return fmt.Errorf("cluster %v, but the entry is .reqnctapercluster %v", g.cluster, e.ReqNCTAPerCluster)
		}
		g.units[i] = g.size[i] / g.cluster[i]
	}
	limit := s.ThreadsPerBlock
	if e.MaxNTid[0] > 0 {
		limit = min(limit, product3(atLeastOne(e.MaxNTid)))
	}
	switch {
	case g.threads > limit:
		return fmt.Errorf("block %v has %d threads, at most %d", g.block, g.threads, limit)
	case g.shared > int64(s.SharedPerBlock):
		return fmt.Errorf("%d bytes of shared memory a CTA, at most %d", g.shared, s.SharedPerBlock)
	case product3(g.cluster) > s.BlocksPerCluster:
		return fmt.Errorf(
			"cluster %v has %d CTAs, at most %d",
			g.cluster, product3(g.cluster), s.BlocksPerCluster,
		)
	case g.entry.statics > 48<<10:
		return fmt.Errorf("%d bytes of static shared memory, at most %d", g.entry.statics, 48<<10)
	}
	return nil
}

// arguments packs the parameter block.
func (e *entry) arguments(args [][]byte) ([]byte, error) {
	if len(args) != len(e.params) {
		return nil, fmt.Errorf(
			"%d arguments, the entry has %d parameters", len(args), len(e.params),
		)
	}
	block := alignedBytes(int64(e.block))
	for i, a := range args {
		p := &e.source.Params[i]
		if len(a) != p.Bytes() {
			return nil, fmt.Errorf(
				"argument %d is %d bytes, parameter %s is %d",
				i, len(a), p.Name, p.Bytes(),
			)
		}
		copy(block[e.params[i]:], a)
	}
	return block, nil
}

// load puts the variables of the module into memory, once.
func (m *Machine) load(p *Program) (map[string]uint64, error) {
	if g := m.globals[p]; g != nil || len(p.globals) == 0 {
		return g, nil
	}
	g := map[string]uint64{}
	for i := range p.globals {
		v := &p.globals[i]
		a, err := m.mem.alloc(int64(v.Bytes()), v.Name)
		if err != nil {
			return nil, err
		}
		n := v.Type.Bytes()
		for j, x := range v.Init {
			copy(
				a.data[j*n:(j+1)*n],
				binary.LittleEndian.AppendUint64(nil, uint64(x)),
			)
		}
		markWritten(a, 0, a.size) // variables without a value are zero
		g[v.Name] = a.start
	}
	m.globals[p] = g
	return g, nil
}

// Value is a launch argument: the bytes of v.
func Value[T uint8 | int8 | uint16 | int16 | uint32 |
	int32 | uint64 | int64 | float32 | float64](v T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err) // every T has a fixed size
	}
	return slices.Clip(b)
}
