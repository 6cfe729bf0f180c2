package gpu

import (
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
)

// Resources are what a thread and a block of a kernel take.
type Resources struct {
	// Registers of a thread, and bytes of shared memory and threads of a block.
	Registers, Shared, Threads int
	// Spills is set where a thread is short of registers by the estimate.
	Spills bool
}

// A registerFit says how many registers ptxas gives a thread for the pressure of a text:
// base + ordered·(pressure in the order of the text) + hoisted·(what loads that are moved
// to the front add) + large·(what the pressure is beyond largePressure). The numbers are
// least absolute deviations over 276 kernels of bench/gpu with ptxas 12.9 and 13.5.
type registerFit struct{ base, ordered, hoisted, large float64 }

// largePressure is that from which on a thread has the registers of two blocks an SM, of
// which ptxas uses more.
const largePressure = 128

var (
	// fitGroups is for products of wgmma, whose sums stay where they are.
	fitGroups = registerFit{base: 6, ordered: 1}
	// fitMMA is for products of mma.sync: fragments are loaded just before they are
	// multiplied.
	fitMMA = registerFit{base: 6, ordered: 0.85, hoisted: 0.1, large: 0.35}
	// fitNarrowMMA is for products of f8 where f16 is multiplied in their place.
	fitNarrowMMA = registerFit{ordered: 1.25}
	// fitOther is for all other code, of which ptxas loads some ahead.
	fitOther = registerFit{base: 7, ordered: 1.02, hoisted: 0.21, large: 0.7}
)

// registers is the fit for a pressure.
func (f registerFit) registers(p ptx.Pressure) float64 {
	ordered := float64(p.Ordered)
	return f.base + f.ordered*ordered +
		f.hoisted*float64(p.Hoisted-p.Ordered) +
		f.large*max(0, ordered-largePressure)
}

// squeezed is the share that ptxas saves of a thread's registers where one more block
// fits an SM then.
const squeezed = 0.1

// assigned is the registers of a thread that needs some by the fit: fewer where a block
// of so many threads more fits an SM.
func assigned(need float64, threads int, s device.Spec) int {
	n := int(need)
	blocks := s.Occupancy(n, 0, threads).Blocks
	for fewer := n - 1; float64(fewer)*(1+squeezed) >= need; fewer-- {
		if s.Occupancy(fewer, 0, threads).Blocks > blocks {
			return fewer
		}
	}
	return n
}

// fitOf is how registers follow from the pressure of an entry.
func fitOf(e *ptx.Entry, s device.Spec) registerFit {
	multiplies, narrow := false, false
	for i := range e.Body {
		in := &e.Body[i].Instr
		switch in.Opcode.Op {
		case ptx.OpWgmmaMMAAsync:
			return fitGroups
		case ptx.OpMMA:
			multiplies = true
			narrow = narrow || in.Opcode.Type(1).Bytes() == 1
		}
	}
	switch {
	case multiplies && narrow && s.Warpgroups():
		return fitNarrowMMA
	case multiplies:
		return fitMMA
	}
	return fitOther
}

// resourcesOf is what a launch of an entry takes, by its text: registers as ptxas is
// likely to assign them, and shared memory as it is.
func resourcesOf(m *ptx.Module, e *ptx.Entry, step *device.Step, s device.Spec) Resources {
	r := Resources{Shared: step.SharedBytes, Threads: step.Block.Count()}
	for _, all := range [][]ptx.Var{m.Vars, e.Vars} {
		for i := range all {
			if v := &all[i]; v.Space == ptx.ModShared && v.Linkage != ptx.Extern {
				r.Shared += v.Bytes()
			}
		}
	}
	most := s.RegistersPerThread(r.Threads)
	// A producer that gives registers away has the block take all of them.
	if e.MinNCTAPerSM == 1 {
		r.Registers = most
		return r
	}
	p := e.Pressure()
	r.Spills = p.Ordered > most
	need := min(float64(most), fitOf(e, s).registers(p))
	r.Registers = assigned(need, r.Threads, s)
	return r
}

// resources are those of the image's launches.
func (im *image) resources(s device.Spec) (all []Resources) {
	for i := range im.steps {
		step := &im.steps[i]
		for k := range im.module.Entries {
			if e := &im.module.Entries[k]; e.Name == step.Entry {
				all = append(all, resourcesOf(im.module, e, step, s))
			}
		}
	}
	return all
}
