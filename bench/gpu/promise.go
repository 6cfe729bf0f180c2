package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A finding is a number of a kernel that should be 0, or smaller.
type finding struct {
	Promise string
	Kernel  string
	// Value is the number, and Limit the most that it may be.
	Value, Limit float64
	// Said is what the assembler printed.
	Said string `json:",omitempty"`
}

// A verdict is what is known of one kernel.
type verdict struct {
	kernel     *kernel
	Assemblies []assembly
	Loops      []loop
}

// A loopLimit bounds a number of the main loops of an architecture.
type loopLimit struct {
	promise string
	limit   float64
	applies func(k *kernel, l *loop) bool
	value   func(l *loop) float64
}

// anyGroup is for loops of wgmma.
func anyGroup(_ *kernel, l *loop) bool { return l.Group > 0 }

// loopLimits are the bounds of instructions of main loops. A loop of wgmma waits for
// nothing but its barriers, and takes descriptors from uniform registers. A loop
// of mma.sync loads fragments by ldmatrix and copies 16 bytes a thread.
var loopLimits = []loopLimit{
	{"fences", 0, anyGroup, func(l *loop) float64 { return float64(l.Fences) }},
	{"calls", 0, anyGroup, func(l *loop) float64 { return float64(l.Calls) }},
	{"uniform", 0, anyGroup, func(l *loop) float64 { return float64(l.Uniform) }},
	{"stores", 0, anyGroup, func(l *loop) float64 { return float64(l.Stores) }},
	{"local", 0, func(k *kernel, l *loop) bool { return k.isDefault || l.Group > 0 },
		func(l *loop) float64 { return float64(l.Local) }},
	{"others", 8, func(_ *kernel, l *loop) bool { return l.Wide > 0 && l.Wide == l.Tensor },
		func(l *loop) float64 { return float64(l.Instructions-l.Tensor) / float64(l.Tensor) }},
	{"emulated", 0, func(k *kernel, l *loop) bool { return l.Group == 0 && strings.Contains(k.program.name, "e4m3") },
		func(l *loop) float64 { return float64(l.Converted) }},
	{"ldmatrix", 0.4, func(k *kernel, l *loop) bool { return k.isDefault && l.Group == 0 && l.Ldsm > 0 && l.Converted == 0 },
		func(l *loop) float64 { return float64(l.Ldsm) / float64(l.Tensor) }},
}

// findings lists what of a kernel is beyond the limits.
func (v *verdict) findings() (all []finding) {
	name := v.kernel.name()
	add := func(promise string, value, limit float64, said string) {
		if value > limit {
			all = append(all, finding{promise, name, value, limit, said})
		}
	}
	for _, a := range v.Assemblies {
		if a.Failed != "" {
			add("assembles", 1, 0, a.Version+": "+a.Failed)
		}
		for _, w := range a.Warnings {
			if !strings.Contains(w, "pilled") && !strings.Contains(w, "ocal memory used") {
				add("warnings", 1, 0, a.Version+": "+w)
			}
		}
		for _, u := range a.Entries {
			if !v.kernel.Estimated.Spills {
				add("stack", float64(u.Stack), 0, a.Version)
			}
			if v.kernel.isDefault {
				add("spills", float64(u.Spilled), 0, a.Version)
			}
		}
	}
	for i := range v.Loops {
		for _, l := range loopLimits {
			if l.applies(v.kernel, &v.Loops[i]) {
				add(l.promise, l.value(&v.Loops[i]), l.limit, "")
			}
		}
	}
	return all
}

// A share is how many of all kernels have a property, and the part that should.
type share struct {
	Promise   string
	Kept, All int
	Demanded  float64
	// Under counts estimates that are too low.
	Under int
}

// part is the share in percent.
func (s share) part() float64 { return 100 * float64(s.Kept) / float64(max(1, s.All)) }

// shares compares estimates with what the last assembler gave, for plans with one
// kernel.
func shares(all []*verdict) []share {
	list := []share{
		{Promise: "registers", Demanded: 90}, {Promise: "blocks", Demanded: 95}, {Promise: "shared", Demanded: 100},
	}
	for _, v := range all {
		k := v.kernel
		last := v.Assemblies[len(v.Assemblies)-1]
		if len(k.Launched) != 1 || len(last.Entries) != 1 {
			continue
		}
		u, e, real := last.Entries[0], k.Estimated, k.Launched[0]
		off := u.Registers - e.Registers
		list[0].add(off >= -16 && off <= 16, off > 16)
		here := k.spec.Occupancy(u.Registers, real.Shared+u.Smem, real.Threads).Blocks
		there := k.spec.Occupancy(e.Registers, e.Shared, e.Threads).Blocks
		list[1].add(here == there, there > here)
		list[2].add(e.Shared == real.Shared+u.Smem, e.Shared < real.Shared+u.Smem)
	}
	return list
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
	kernels *regexp.Regexp
	// Bound is the number that is tolerated: the most of a kernel, the least percentage
	// of all.
	bound float64
	cause string
	used  int
}

// shortfalls reads known.txt: promise, regular expression, bound, cause.
func shortfalls(text string) (all []*shortfall, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, "|", 4)
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
		if s.promise == f.Promise && s.kernels.MatchString(f.Kernel) && f.Value <= s.bound {
			s.used++
			return s
		}
	}
	return nil
}
