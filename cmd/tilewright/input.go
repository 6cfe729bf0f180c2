package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// readModule parses a file of HLO or StableHLO; "-" is the standard input. A
// module that no compiler has fused is split into fusions; the second result is
// what stays outside of them.
func (c *call) readModule(file string) (*hlo.Module, []symtile.Unfused, error) {
	src, err := c.readFile(file)
	if err != nil {
		return nil, nil, err
	}
	m, err := hlo.Parse(file, src)
	if err != nil {
		return nil, nil, err
	}
	m, outside := symtile.Partition(m)
	return m, outside, nil
}

// untileable leaves out instructions that do no work, such as constants and
// tuples.
func untileable(all []symtile.Unfused) []symtile.Unfused {
	return slices.DeleteFunc(slices.Clone(all), func(o symtile.Unfused) bool {
		switch o.Instr.Op {
		case hlo.OpConstant, hlo.OpIota, hlo.OpTuple, hlo.OpGetTupleElement:
			return true
		}
		return false
	})
}

// readFile reads a file, or the standard input for "-".
func (c *call) readFile(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.in)
	}
	return os.ReadFile(file)
}

// fusions selects the fusions of a module by name; "" selects all.
func fusions(
	file string, m *hlo.Module, name string,
) ([]*hlo.Computation, error) {
	all := m.Fusions()
	if name == "" {
		return all, nil
	}
	var names []string
	for _, f := range all {
		if f.Name == name {
			return []*hlo.Computation{f}, nil
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf(
		"%s has no fusion %q; it has %s", file, name, strings.Join(names, ", "),
	)
}

// oneFusion selects the fusion of a command that works on one.
func oneFusion(file string, m *hlo.Module, name string) (*hlo.Computation, error) {
	fs, err := fusions(file, m, name)
	if err != nil {
		return nil, err
	}
	if len(fs) == 1 {
		return fs[0], nil
	}
	var names []string
	for _, f := range fs {
		names = append(names, f.Name)
	}
	return nil, usagef(
		"%s has %d fusions; choose one with -fusion: %s",
		file, len(fs), strings.Join(names, ", "),
	)
}

// readFor reads a fusion and opens the backend it is meant for.
func (c *call) readFor(file, name string, d availableDevice) (*hlo.Computation, kernels.Backend, error) {
	fusion, err := c.readFusion(file, name)
	if err != nil {
		return nil, nil, err
	}
	b, err := backend(d)
	return fusion, b, err
}
