package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/cache"
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

// maxTextBytes bounds the text of a module. The largest that compilers dump have
// some tens of megabytes.
const maxTextBytes = 256 << 20

// readFile reads a file, or the standard input for "-".
func (c *call) readFile(file string) ([]byte, error) {
	if file == "-" {
		return readText(file, c.in)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxTextBytes {
		return nil, tooLong(file)
	}
	return readText(file, f)
}

// readText reads all of a text of at most maxTextBytes. A zero byte ends it: no
// text has one, so that the parser fails there, and a device or a binary file is
// not read to its end.
func readText(file string, r io.Reader) ([]byte, error) {
	var all []byte
	chunk := make([]byte, 1<<16)
	for {
		n, err := r.Read(chunk)
		all = append(all, chunk[:n]...)
		if zero := bytes.IndexByte(chunk[:n], 0); zero >= 0 {
			return all[:len(all)-n+zero+1], nil
		}
		switch {
		case len(all) > maxTextBytes:
			return nil, tooLong(file)
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}

// tooLong is the error of a text of more than maxTextBytes.
func tooLong(file string) error {
	return fmt.Errorf("%s is longer than %d MiB; a module is shorter", file, maxTextBytes>>20)
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

// readFusion reads the fusion of a command that works on one.
func (c *call) readFusion(file, name string) (*hlo.Computation, error) {
	m, _, err := c.readModule(file)
	if err != nil {
		return nil, err
	}
	return oneFusion(file, m, name)
}

// parseSizes parses "64,32,16".
func parseSizes(text string) (symtile.Tiling, error) {
	var t symtile.Tiling
	for _, word := range strings.Split(text, ",") {
		v, err := strconv.ParseInt(
			strings.TrimSpace(word), 10, 64,
		)
		if err != nil {
			return nil, usagef("%q in %q is not a whole number", word, text)
		}
		t = append(t, v)
	}
	return t, nil
}

// chosenPlan parses -plan, or makes a plan of the sizes of -tiling, or takes
// the default plan; standard returns that.
func chosenPlan(
	tiling, plan string, standard func() (kernels.Plan, error),
) (kernels.Plan, error) {
	switch {
	case plan != "" && tiling != "":
		return kernels.Plan{}, usagef("-tiling and -plan exclude each other")
	case plan != "":
		return kernels.ParsePlan(plan)
	case tiling != "":
		t, err := parseSizes(tiling)
		return kernels.Plan{Tiles: t}, err
	}
	return standard()
}

// warn says that a damaged entry of a database is left out, and how to remove it.
func (c *call) warn(d *cache.DamagedError) {
	fmt.Fprintf(
		c.err, "tilewright %s: warning: %v; it is left out (`tilewright cache rm %x` removes it)\n",
		c.command.name, d, d.Key.Fusion[:4],
	)
}

// warnOfDamage warns of every damaged record and unfinished race. Its error is that
// of a database that cannot be read at all.
func (c *call) warnOfDamage(db *cache.DB) error {
	all, err := db.Damaged()
	for _, d := range all {
		c.warn(d)
	}
	return err
}

// soundRecords reads the records of a database and warns of the damaged ones.
func (c *call) soundRecords(db *cache.DB) (sound []cache.Record, err error) {
	for r, err := range db.All() {
		var damaged *cache.DamagedError
		switch {
		case errors.As(err, &damaged):
			c.warn(damaged)
		case err != nil:
			return nil, err
		default:
			sound = append(sound, r)
		}
	}
	return sound, nil
}

// warnOfLeftOut warns of what an operation has left out; another error remains.
func (c *call) warnOfLeftOut(err error) error {
	var left *cache.LeftOutError
	if !errors.As(err, &left) {
		return err
	}
	for _, d := range left.Damaged {
		c.warn(d)
	}
	return nil
}
