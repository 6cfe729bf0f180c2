package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
)

// A finding is a number of a kernel that should be 0, or smaller.
type finding struct {
	// Promise is the name of what is not kept, and Kernel that of the kernel.
	Promise, Kernel string
	// Value is the number, and Limit the most that it may be.
	Value, Limit float64
	// Said is what the assembler printed.
	Said string `json:",omitempty"`
}

// A verdict is what is known of one kernel.
type verdict struct {
	kernel *kernel
	// Assemblies are those of each assembler that was asked.
	Assemblies []assembly
	// Loops are the main loops of the last of them, and Body is the whole of it.
	Loops []loop
	Body  body
}

// A loopLimit bounds a number of the main loops of an architecture.
type loopLimit struct {
	promise string
	// Limit is the most that the value may be where the row applies.
	limit   float64
	applies func(k *kernel, l *loop) bool
	value   func(l *loop) int
}

// anyGroup is for loops of wgmma.
func anyGroup(_ *kernel, l *loop) bool {
	return l.Group > 0
}

// loopLimits are the bounds of instructions of main loops. A loop of wgmma waits for
// nothing but its barriers, and takes descriptors from uniform registers; others are the
// further instructions for each hundred of wgmma, and ldmatrix those that load the
// fragments of a hundred mma.sync. Where a warp has 64 by 64 results of a product, two
// fifths of the instructions are mma.sync (150 others for a hundred), and copies to shared
// memory have 16 bytes.
var loopLimits = []loopLimit{
	{
		"fences", 0, anyGroup,
		func(l *loop) int { return l.Fences },
	},
	{
		"calls", 0, anyGroup,
		func(l *loop) int { return l.Calls },
	},
	{
		"uniform", 0, anyGroup,
		func(l *loop) int { return l.Uniform },
	},
	{
		"stores", 0, anyGroup,
		func(l *loop) int { return l.Stores },
	},
	{
		"local", 0, keptInRegisters,
		func(l *loop) int { return l.Local },
	},
	{"others", 800, wide, func(l *loop) int {
		return 100 * (l.Instructions - l.Tensor) / l.Tensor
	}},
	{
		"emulated", 0, f8,
		func(l *loop) int { return l.Converted },
	},
	{"ldmatrix", 40, byFragments, func(l *loop) int {
		return 100 * l.Ldsm / l.Tensor
	}},
	{"square share", 150, squareWarps, func(l *loop) int {
		return 100 * (l.Instructions - l.Tensor) / l.Tensor
	}},
	{"square ldmatrix", 30, squareWarps, func(l *loop) int {
		return 100 * l.Ldsm / l.Tensor
	}},
	{"square copies", 0, squareWarps, func(l *loop) int { return l.NarrowCopies }},
}

// bodyLimits are the bounds of default kernels of rows: softmax, norms and copies, whose
// memory is to be what they wait for. Accesses have 16 bytes, no quotient has a slow path
// that is called, and an element takes a number of instructions, of which 6 are those of
// reductions and addresses, and 12 for each function of it.
var bodyLimits = []struct {
	promise string
	limit   float64
	value   func(b *body, r rows) int
}{
	{"narrow", 0, func(b *body, _ rows) int { return b.Narrow }},
	{"slow paths", 0, func(b *body, _ rows) int { return b.Calls }},
	{"elements", 0, func(b *body, r rows) int {
		elements := b.Stored / r.size
		return b.Instructions - r.each*elements - 12*b.Special
	}},
}

// Rows is a program of rows: the bytes of an element of its result, and the instructions
// that one may take beside functions.
type rows struct{ size, each int }

var rowPrograms = map[string]rows{
	"large/softmax":       {4, 6},
	"shapes/softmax_bf16": {2, 6},
	// Two sums, of which one is of squares, two products and two sums with parameters.
	"large/layernorm": {4, 12},
	"large/copy":      {4, 6},
}

// wide is for loops whose products all have at least 128 columns.
func wide(_ *kernel, l *loop) bool {
	return l.Wide > 0 && l.Wide == l.Tensor
}

// keptInRegisters is for loops that nothing may be spilled in.
func keptInRegisters(k *kernel, l *loop) bool {
	return k.isDefault || l.Group > 0
}

// f8 is for products of f8 by mma.sync.
func f8(k *kernel, l *loop) bool {
	return l.Group == 0 && strings.Contains(k.program.name, "e4m3")
}

// byFragments is for loops of mma.sync that load fragments by ldmatrix.
func byFragments(k *kernel, l *loop) bool {
	return k.isDefault && l.Group == 0 &&
		l.Ldsm > 0 && l.Converted == 0
}

// squareWarps is for loops of mma.sync of one product in which each warp has at least 64 by
// 64 results, of default plans on sm_80.
func squareWarps(k *kernel, l *loop) bool {
	t := k.plan.Tiles
	return byFragments(k, l) && k.target.arch == "sm_80" && len(t) == 3 && min(t[0], t[1]) >= 64 &&
		t[0]*t[1] >= 64*64*k.plan.Knob("warps", 4)
}

// findings lists what of a kernel is beyond the limits.
func (v *verdict) findings() (all []finding) {
	name := v.kernel.name()
	add := func(promise string, value, limit float64, said string) {
		if value > limit {
			all = append(all, finding{
				promise, name, value, limit, said,
			})
		}
	}
	for _, a := range v.Assemblies {
		if a.Failed != "" {
			add("assembles", 1, 0, a.Version+": "+a.Failed)
		}
		for _, w := range a.Warnings {
			// Spills are counted by the promises below.
			if !strings.Contains(w, "pilled") &&
				!strings.Contains(w, "ocal memory used") {
				add("warnings", 1, 0, a.Version+": "+w)
			}
		}
		for _, u := range a.Entries {
			if !v.kernel.Estimated.Spills && !v.kernel.Priced.Spills {
				add("stack", float64(u.Stack), 0, a.Version)
			}
			if v.kernel.isDefault {
				add("spills", float64(u.Spilled), 0, a.Version)
			}
		}
	}
	r, ofRows := rowPrograms[v.kernel.program.name]
	if ofRows && v.kernel.isDefault {
		for _, l := range bodyLimits {
			value := l.value(&v.Body, r)
			add(l.promise, float64(value), l.limit, "")
		}
	}
	for i := range v.Loops {
		for _, l := range loopLimits {
			if l.applies(v.kernel, &v.Loops[i]) {
				value := l.value(&v.Loops[i])
				add(l.promise, float64(value), l.limit, "")
			}
		}
	}
	return all
}

// A share is how many of all kernels have a property, and the part that should.
type share struct {
	Promise   string
	Kept, All int
	// Demanded is in percent.
	Demanded float64
	// Under counts estimates that are too low.
	Under int
}

// part is the share in percent.
func (s share) part() float64 {
	return 100 * float64(s.Kept) / float64(max(1, s.All))
}

// shares compares estimates with what the last assembler gave, for plans with one
// kernel: those of the text, and those that plans are priced with before they have one,
// of which nothing is demanded.
func shares(all []*verdict) []share {
	list := []share{
		{Promise: "registers", Demanded: 90},
		{Promise: "blocks", Demanded: 95},
		{Promise: "shared", Demanded: 100},
		{Promise: "priced registers"},
		{Promise: "priced blocks"},
		{Promise: "priced shared"},
	}
	for _, v := range all {
		k := v.kernel
		last := v.Assemblies[len(v.Assemblies)-1]
		if len(k.Launched) != 1 || len(last.Entries) != 1 {
			continue
		}
		real := k.Launched[0]
		real.Registers = last.Entries[0].Registers
		real.Shared += last.Entries[0].Smem
		compareResources(list[:3], k.spec, real, k.Estimated)
		compareResources(list[3:], k.spec, real, k.Priced)
	}
	return list
}

// compareResources counts whether an estimate has the registers, the blocks an SM, and
// the shared memory of a kernel.
func compareResources(list []share, s device.Spec, real, e gpu.Resources) {
	off := real.Registers - e.Registers
	list[0].add(off >= -16 && off <= 16, off > 16)
	here := s.Occupancy(real.Registers, real.Shared, real.Threads)
	there := s.Occupancy(e.Registers, e.Shared, e.Threads)
	list[1].add(
		here.Blocks == there.Blocks,
		there.Blocks > here.Blocks,
	)
	list[2].add(e.Shared == real.Shared, e.Shared < real.Shared)
}

// add counts one kernel.
func (s *share) add(kept, under bool) {
	s.All++
	if kept {
		s.Kept++
	} else if under {
		s.Under++
	}
}

//go:embed known.txt
var knownText string

// A shortfall is a promise that is known not to be kept yet.
type shortfall struct {
	promise string
	// Kernels are those whose names match.
	kernels *regexp.Regexp
	// Bound is the number that is tolerated: the most of a kernel, the least percentage
	// of all.
	bound float64
	cause string
	// Used counts what was excused.
	used int
}

// shortfalls reads known.txt: promise, regular expression, bound, cause.
func shortfalls(text string) (all []*shortfall, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " | ", 4)
		if len(f) != 4 {
			return nil, fmt.Errorf("known.txt: %q: expected promise | kernels | bound | cause", line)
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		s := &shortfall{promise: f[0], cause: f[3]}
		if s.kernels, err = regexp.Compile(f[1]); err != nil {
			return nil, fmt.Errorf("known.txt: %w", err)
		}
		if s.bound, err = strconv.ParseFloat(f[2], 64); err != nil {
			return nil, fmt.Errorf("known.txt: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

// excuse is the shortfall that a finding is an instance of, nil if there is none.
func excuse(all []*shortfall, f finding) *shortfall {
	for _, s := range all {
		if s.promise == f.Promise && f.Value <= s.bound &&
			s.kernels.MatchString(f.Kernel) {
			s.used++
			return s
		}
	}
	return nil
}
