package main

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// A target is a device that code is generated for, and the architecture that it is
// assembled for.
type target struct {
	// Device is the name of a specification (device.ParseSpec).
	device string
	// The architecture, as ptxas and nvdisasm know it.
	arch string
}

var targets = []target{
	{"sm_80", "sm_80"},
	{"sm_86", "sm_86"},
	{"sm_89", "sm_89"},
	{"H100", "sm_90a"},
	{"sm_89", "sm_120"},
}

// A kernel is a plan of a program, as it is emitted for a target.
type kernel struct {
	program program
	target  target
	spec    device.Spec
	plan    kernels.Plan

	// isDefault is set for the program's default plan.
	isDefault bool
	gpu.Footprint
}

// name is the program, the target and the plan.
func (k *kernel) name() string {
	name := k.program.name + " " + k.target.arch
	return name + " " + k.plan.String()
}

// knobValues are the values of knobs that are tried beside those of the default.
var knobValues = []struct {
	name   string
	values []int64
}{
	{"cluster", []int64{2, 4}},
	{"epilogue", []int64{0, 1, 2}},
	{"group", []int64{4}},
	{"l2", []int64{1}},
	{"online", []int64{0, 1, 2}},
	{"pdl", []int64{0, 1}},
	{"persistent", []int64{0, 1, 2}},
	{"precise", []int64{0, 1}},
	{"producer", []int64{0, 1, 2, 4}},
	{"promote", []int64{0, 1}},
	{"splitk", []int64{4}},
	{"streamk", []int64{100}},
	{"stages", []int64{1, 2, 3, 5, 7}},
	{"tf32", []int64{0, 1, 2}},
	{"vector", []int64{4, 8}},
	{"warps", []int64{1, 2, 4, 8, 16}},
}

// random counts the plans that are drawn of those that are offered, and cheapest those
// that are taken from their head.
const random, cheapest = 8, 8

// plans are the plans of a program that are judged, the default first.
func plans(p program, spec device.Spec, rng *rand.Rand) ([]kernels.Plan, error) {
	b, err := openSimulated(spec)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if p.tf32 {
		b.AllowTF32()
	}
	standard, err := b.Default(context.Background(), p.Program)
	if err != nil {
		return nil, err
	}
	offered := slices.Collect(b.Plans(context.Background(), p.Program))
	all := []kernels.Plan{standard}
	head := min(cheapest, len(offered))
	all = append(all, offered[:head]...)
	// Values that a plan cannot have are refused when it is emitted.
	for _, knob := range knobValues {
		for _, v := range knob.values {
			all = append(all, standard.With(knob.name, v))
		}
	}
	for range min(random, len(offered)) {
		all = append(all, offered[rng.IntN(len(offered))])
	}
	return all, nil
}

// openSimulated is the backend on a simulated device.
func openSimulated(spec device.Spec) (*gpu.Backend, error) {
	open := func(context.Context) (device.Driver, error) {
		return simulated.Open(spec, sim.Options{})
	}
	s, err := device.NewSession(context.Background(), open)
	if err != nil {
		return nil, err
	}
	return gpu.New(s), nil
}

// distinct emits the plans of a program for a target, each text once; share is the
// part of them that is kept, by a hash of the seed and the plan.
func distinct(p program, t target, share float64, seed uint64) ([]*kernel, error) {
	spec, err := device.ParseSpec(t.device)
	if err != nil {
		return nil, err
	}
	all, err := plans(p, spec, rand.New(rand.NewPCG(seed, 1)))
	// A program that the backend has no code for has no kernels to judge.
	var no *kernels.Uncomputed
	if errors.As(err, &no) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*kernel
	// Plans that differ in a knob that nothing reads have the same text.
	seen := map[string]bool{}
	for n, plan := range all {
		k := &kernel{
			program:   p,
			target:    t,
			spec:      spec,
			plan:      plan,
			isDefault: n == 0,
		}
		if !drawn(k.name(), share, seed) {
			continue
		}
		k.Footprint, err = gpu.FootprintOf(p.Program, plan, spec)
		var illegal *kernels.Rejected
		switch {
		case errors.As(err, &illegal):
			continue
		case err != nil:
			return nil, err
		}
		if len(k.Launched) > 0 && !seen[k.PTX] {
			seen[k.PTX] = true
			list = append(list, k)
		}
	}
	return list, nil
}

// drawn reports whether a name belongs to a share of all names.
func drawn(name string, share float64, seed uint64) bool {
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(h.Sum64(), seed))
	return rng.Float64() < share
}
