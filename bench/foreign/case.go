package main

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// A foreignCase is a kernel that was not written here, its launch, its arrays, and
// what NumPy computed: a zip file that case.py writes.
type foreignCase struct {
	// Name is that of the file.
	Name string `json:"-"`
	// PTX is the module.
	PTX   []byte `json:"-"`
	Entry string
	// Grid, Block and Cluster are counted as in a launch.
	Grid, Block, Cluster [3]int
	// Shared is the bytes of dynamic shared memory.
	Shared int
	Arrays []array
	Args   []argument
	files  map[string][]byte
}

// An array is an allocation of global memory.
type array struct {
	Name string
	// Type is that of the elements, by its name in PTX.
	Type  string
	Bytes int64
	// Input names the file of what the kernel is given, if any.
	Input string
	// Addresses names other arrays whose addresses the array holds.
	Addresses []string
	// Want names the file of what NumPy computed, if any. The kernel must give that
	// within Tolerance of 1 + |element|, exactly if it is 0.
	Want      string
	Tolerance float64
	// Zeroed is set for results that kernels add to.
	Zeroed bool
}

// An argument is one parameter of the entry: the address of an array, bytes, or a
// tensor map.
type argument struct {
	Array, Hex string
	Map        *tensorMap
}

// A tensorMap has the arguments of cuTensorMapEncodeTiled, innermost dimension first.
type tensorMap struct {
	Array, Type string
	Dims        []uint64
	// Strides are in bytes, from dimension 1 on.
	Strides []uint64
	Box     []uint32
	// Swizzle is 0 to 3 for none, 32, 64 and 128 bytes.
	Swizzle int
	NaN     bool
}

// readCase reads a case from its zip file.
func readCase(path string) (*foreignCase, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	c := &foreignCase{
		Name:  strings.TrimSuffix(filepath.Base(path), ".zip"),
		files: map[string][]byte{},
	}
	// Cases are small: all files of the archive are read at once.
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		c.files[f.Name] = text
	}
	c.PTX = c.files["kernel.ptx"]
	if err := json.Unmarshal(c.files["case.json"], c); err != nil {
		return nil, fmt.Errorf("%s: case.json: %w", path, err)
	}
	return c, nil
}

// tensorTypes are the element types of tensor maps by their names in PTX; those of
// one byte are all alike.
var tensorTypes = map[string]ptx.Type{
	"f32": ptx.F32, "f16": ptx.F16, "bf16": ptx.BF16, "s32": ptx.S32, "u32": ptx.U32,
	"s8": ptx.U8, "u8": ptx.U8, "e4m3": ptx.U8, "e5m2": ptx.U8,
}

// An outcome is what a run of a case gave.
type outcome struct {
	// Findings are what the checks of the simulator found.
	Findings []sim.Finding
	// Wrong counts elements that are not NumPy's, and First says where the first is.
	Wrong int
	First string
	// Executed counts instructions of warps.
	Executed int64
}

// options look for everything.
var options = sim.Options{Races: true, Uninitialised: true, Budget: 1 << 22}

// run launches a decoded module on a machine of its own, and compares the results.
func (c *foreignCase) run(p *sim.Program) (*outcome, error) {
	m := sim.New(sim.Sheet{})
	at := map[string]uint64{}
	l := sim.Launch{
		Entry: c.Entry, Grid: c.Grid,
		Block: c.Block, Cluster: c.Cluster,
		Shared: c.Shared,
	}
	// All arrays have their places before any is filled, since some hold addresses
	// of others.
	for _, a := range c.Arrays {
		addr, err := m.Alloc(a.Bytes)
		if err != nil {
			return nil, err
		}
		at[a.Name] = addr
	}
	for _, a := range c.Arrays {
		if err := c.fill(m, a, at); err != nil {
			return nil, err
		}
		if a.Want != "" {
			l.Outputs = append(l.Outputs, at[a.Name])
		}
	}
	for _, a := range c.Args {
		b, err := a.bytes(at)
		if err != nil {
			return nil, err
		}
		l.Args = append(l.Args, b)
	}
	rep, err := m.Launch(
		context.Background(), p, l, options,
	)
	if err != nil {
		return nil, err
	}
	o := &outcome{
		Findings: rep.Findings,
		Executed: rep.Counters.WarpInstructions,
	}
	// Results are compared even where the checks found something: both are reported.
	for _, a := range c.Arrays {
		if a.Want == "" {
			continue
		}
		got := make([]byte, a.Bytes)
		if err := m.Read(at[a.Name], got); err != nil {
			return nil, err
		}
		if err := o.compare(a, got, c.files[a.Want]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// fill gives an array its contents; results start as bytes that look like NaNs and
// count as never written.
func (c *foreignCase) fill(m *sim.Machine, a array, at map[string]uint64) error {
	// An array without any of these is scratch memory.
	addr := at[a.Name]
	switch {
	case a.Input != "":
		return m.Write(addr, c.files[a.Input])
	case a.Addresses != nil:
		var b []byte
		for _, name := range a.Addresses {
			b = binary.LittleEndian.AppendUint64(b, at[name])
		}
		return m.Write(addr, b)
	case a.Zeroed:
		return m.Set(addr, 0, a.Bytes)
	}
	return m.Poison(addr, 0xff, a.Bytes)
}

// bytes are those of a parameter.
func (a argument) bytes(at map[string]uint64) ([]byte, error) {
	switch {
	case a.Array != "":
		return sim.Value(at[a.Array]), nil
	// Numbers come packed, as the parameter block holds them.
	case a.Map == nil:
		return hex.DecodeString(a.Hex)
	}
	// The swizzles of the simulator are numbered as those of CUDA.
	t := sim.TensorMap{
		Type:    tensorTypes[a.Map.Type],
		Address: at[a.Map.Array],
		Dims:    a.Map.Dims,
		Strides: a.Map.Strides,
		Box:     a.Map.Box,
		Swizzle: sim.Swizzle(a.Map.Swizzle),
		NaNFill: a.Map.NaN,
	}
	return t.Encode()
}

// compare counts the elements of a result that are not NumPy's.
func (o *outcome) compare(a array, got, want []byte) error {
	size, decode := element(a.Type)
	if size == 0 || len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes of type %q, want %d", a.Name, len(got), a.Type, len(want))
	}
	for i := 0; i < len(got); i += size {
		g, w := decode(got[i:]), decode(want[i:])
		// Infinities and NaNs are equal to themselves.
		if g == w || g != g && w != w ||
			math.Abs(g-w) <= a.Tolerance*(1+math.Abs(w)) {
			continue
		}
		if o.Wrong == 0 {
			o.First = fmt.Sprintf("%s[%d] is %v, NumPy has %v", a.Name, i/size, g, w)
		}
		o.Wrong++
	}
	return nil
}

// element is the size of an element of a type, and its value; 0 if there is no such
// type.
func element(name string) (int, func(b []byte) float64) {
	le := binary.LittleEndian
	switch name {
	case "f64":
		return 8, func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }
	case "f32":
		return 4, func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case "bf16":
		return 2, func(b []byte) float64 {
			return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16))
		}
	case "f16":
		return 2, func(b []byte) float64 { return half(le.Uint16(b)) }
	case "s64", "u64":
		return 8, func(b []byte) float64 { return float64(int64(le.Uint64(b))) }
	case "s32", "u32":
		return 4, func(b []byte) float64 { return float64(int32(le.Uint32(b))) }
	case "s16", "u16":
		return 2, func(b []byte) float64 { return float64(int16(le.Uint16(b))) }
	// Narrow floats are compared by their bits.
	case "s8", "u8", "e4m3", "e5m2":
		return 1, func(b []byte) float64 { return float64(b[0]) }
	}
	return 0, nil
}

// half is the value of an IEEE half.
func half(h uint16) float64 {
	// Normal numbers have a hidden bit, and the bias of the exponent is 15.
	exponent, fraction := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 31 && fraction == 0:
		v = math.Inf(1)
	case exponent == 31:
		return math.NaN()
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	}
	if h>>15 == 1 {
		return -v
	}
	return v
}
