package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Machine is a simulated device. Its methods may be called by one goroutine at a
// time.
type Machine struct {
	sheet Sheet
	// mem is the global memory.
	mem memory
	// clock is the reading of the clocks when the next launch begins.
	clock clock
	// globals holds the addresses of the variables of each module that was
	// launched.
	globals map[*Program]map[string]uint64
	// clean holds the launches without findings, which need not be checked again.
	clean checkedLaunches
	// launches counts the launches, and chain is the number of the latest that was not
	// dependent: all from it on may run at the same time until they wait.
	launches, chain int64
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

// Free ends an allocation; later accesses by kernels are reported.
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
// never written: a kernel that reads them is reported with Options.Uninitialised.
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
	// Entry is the name of the kernel.
	Entry string
	// Grid is the number of CTAs in each dimension.
	Grid [3]int
	// Block is the number of threads of a CTA in each dimension.
	Block [3]int
	// Cluster is the number of CTAs of a cluster in each dimension; zero takes
	// what the entry requires, or 1.
	Cluster [3]int
	// Shared is the number of bytes of dynamic shared memory.
	Shared int
	// Args holds the bytes of each parameter, as Value makes them.
	Args [][]byte
	// Dependent launches may begin before the launch before them has ended (programmatic
	// dependent launch): with Options.Races, accesses before griddepcontrol.wait that
	// need its end are findings.
	Dependent bool
	// Outputs are the addresses of allocations that the kernel must write
	// completely.
	Outputs []uint64
}

// Report is the result of a launch.
type Report struct {
	// Findings are listed in program order, symptoms such as deadlocks last.
	Findings []Finding
	// Counters has the instruction counts always and the rest with
	// Options.Counters.
	Counters Counters
}

// Err is an error with the text of the first finding and the number of the
// others, or nil.
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

// Launch runs a kernel to its end. An error means that the kernel did not run, or
// was cancelled; what is wrong with the kernel itself is in the report.
func (m *Machine) Launch(
	ctx context.Context, p *Program, l Launch, opt Options,
) (*Report, error) {
	g, err := m.prepare(p, l, opt)
	if err != nil {
		return nil, err
	}
	g.done = ctx.Done()
	m.order(g, l.Dependent)
	// A launch that makes the same accesses as one without findings is executed
	// without the expensive checks.
	key, invariant := m.launchKey(g, &l)
	if invariant && m.clean[p][key] {
		g.opt.Races = false
		g.opt.Uninitialised = false
		g.watch = false
		g.dependent = false
	}
	// Shadow memory lives for one launch: launches of a stream are ordered.
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
	// The caller's goroutine is the first worker, so that small launches start
	// no goroutine.
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
	if invariant && len(r.Findings) == 0 {
		m.clean.add(p, key)
	}
	return r, nil
}

// collect merges the findings and the counters of the workers and adds findings
// for outputs that were not written.
func (g *grid) collect(all []*worker, outputs []uint64) *Report {
	r := &Report{}
	found := findings{}
	for _, w := range all {
		for _, f := range w.found {
			found.add(*f)
		}
		r.Counters.Add(&w.counters)
		// Executions are counted by instruction and summed by class only here.
		for pc, n := range w.executed {
			r.Counters.Instructions[g.entry.code[pc].class] += n
		}
	}
	r.Findings = found.sorted()
	// Outputs must be written completely; the first unwritten byte is named.
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

// prepare checks a launch against the entry and the device and lays out its
// parameters and variables.
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
	// Registers are tracked only if the entry may read one before writing it,
	// or uses wgmmas, whose registers are read late.
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
	// Dynamic shared memory follows the static variables.
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

// load puts the variables of the module into global memory at its first launch.
func (m *Machine) load(p *Program) (map[string]uint64, error) {
	if g := m.globals[p]; g != nil || len(p.globals) == 0 {
		return g, nil
	}
	g := map[string]uint64{}
	for i := range p.globals {
		v := &p.globals[i]
		// Each module variable is an allocation of its own, so that accesses
		// past its end are found.
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
		// Variables without an initialiser are zero.
		markWritten(a, 0, a.size)
		g[v.Name] = a.start
	}
	m.globals[p] = g
	return g, nil
}

// Value is a launch argument: the little-endian bytes of v.
func Value[T uint8 | int8 | uint16 | int16 | uint32 |
	int32 | uint64 | int64 | float32 | float64](v T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		// This cannot happen: every T has a fixed size.
		panic(err)
	}
	return slices.Clip(b)
}

// checkedLaunches are the launches of each program that were checked without
// findings, by their keys. If an entry is launch-invariant, another launch that
// differs in data and in the places of its arrays makes the same accesses in the
// same order: bounds are still checked, but races and uninitialised reads cannot
// differ.
type checkedLaunches map[*Program]map[string]bool

// maxCheckedPrograms is the number of programs that are remembered.
const maxCheckedPrograms = 64

// launchKey is everything that the accesses of a launch-invariant entry depend
// on; false if the entry is not.
func (m *Machine) launchKey(g *grid, l *Launch) (string, bool) {
	if !g.entry.launchInvariant ||
		!g.opt.Races && !g.opt.Uninitialised {
		return "", false
	}
	// Everything but data and addresses is part of the key.
	key := fmt.Appendf(
		nil, "%s %v %v %v %d %t %t %t",
		l.Entry, g.size, g.block, g.cluster,
		l.Shared, g.opt.Races, g.opt.Uninitialised, l.Dependent,
	)
	var arrays []*allocation
	for _, a := range l.Args {
		var ok bool
		if key, arrays, ok = m.argumentKey(key, arrays, a); !ok {
			return "", false
		}
	}
	return string(key), true
}

// argumentKey appends an argument to the key: a pointer as the number of its
// array, the array's size, whether it is written, and the offset; any other
// argument as its bytes.
func (m *Machine) argumentKey(key []byte, arrays []*allocation, arg []byte) (
	[]byte, []*allocation, bool,
) {
	at := -1
	switch {
	// Arguments of 8 bytes are looked up as addresses.
	case len(arg) == 8:
		at = 0
	case len(arg) == tensorMapBytes &&
		binary.LittleEndian.Uint32(arg) == tensorMapMagic:
		at = tensorMapAddress
	case len(arg) > 8:
		// A large argument may contain addresses.
		return nil, nil, false
	}
	if at < 0 {
		return fmt.Appendf(key, " %x", arg), arrays, true
	}
	address := binary.LittleEndian.Uint64(arg[at:])
	a := m.mem.owner(address)
	if a == nil || a.freed {
		return fmt.Appendf(key, " %x", arg), arrays, true
	}
	// Whether reads are initialised depends on what the array holds: only
	// arrays that are written completely, or not at all, have a key.
	written := bytes.IndexByte(a.written, 1) >= 0
	unwritten := bytes.IndexByte(a.written, 0) >= 0
	n := slices.Index(arrays, a)
	if n < 0 {
		n = len(arrays)
		arrays = append(arrays, a)
	}
	key = fmt.Appendf(
		key, " %x array %d of %d %t at %d %x",
		arg[:at], n, a.size, written,
		address-a.start, arg[at+8:],
	)
	return key, arrays, !written || !unwritten
}

// add remembers a launch.
func (r checkedLaunches) add(p *Program, key string) {
	if r[p] == nil {
		if len(r) >= maxCheckedPrograms {
			clear(r)
		}
		r[p] = map[string]bool{}
	}
	r[p][key] = true
}
