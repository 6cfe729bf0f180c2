package gpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// simulator is a driver over the interpreter that makes an error of everything
// it finds wrong with a kernel.
type simulator struct {
	spec    device.Spec
	machine *sim.Machine
	options sim.Options
	last    sim.Counters
	ran     []sim.Counters // of every launch
	found   []sim.Finding  // by the last launch
}

// everything is looked for.
var everything = sim.Options{Counters: true, Races: true, Uninitialised: true}

func newSimulator(name string) *simulator {
	s, err := device.ParseSpec(name)
	if err != nil {
		panic(err)
	}
	s.Simulated = true
	return &simulator{spec: s, machine: sim.New(sim.Sheet{}), options: everything}
}

func (d *simulator) Spec() device.Spec { return d.spec }

// simulatedSession is a session on a simulator.
func simulatedSession(t *testing.T, name string) *device.Session {
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return newSimulator(name), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type simModule struct{ program *sim.Program }
type simFunction struct {
	simModule
	name string
}

func (m simModule) Function(name string) (device.Function, error) { return simFunction{m, name}, nil }
func (simModule) Close() error                                    { return nil }
func (simFunction) Resources() device.Resources                   { return device.Resources{} }

func (d *simulator) Load(_ context.Context, text string, _ device.LoadOptions) (device.Module, error) {
	m, err := ptx.Parse("kernel.ptx", []byte(text))
	if err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	if again := string(m.Text()); again != text {
		return nil, fmt.Errorf("printed again it is another text")
	}
	p, err := sim.Load(m)
	return simModule{p}, err
}

func (d *simulator) Alloc(n int64) (device.Address, error) {
	a, err := d.machine.Alloc(n)
	return device.Address(a), err
}
func (d *simulator) Free(a device.Address) error { return d.machine.Free(uint64(a)) }
func (d *simulator) CopyIn(a device.Address, b []byte) error {
	return d.machine.Write(uint64(a), b)
}
func (d *simulator) CopyOut(b []byte, a device.Address) error {
	return d.machine.Read(uint64(a), b)
}
func (d *simulator) Fill(a device.Address, v byte, n int64) error {
	return d.machine.Set(uint64(a), v, n)
}
func (*simulator) EncodeTensorMap(s device.TensorMapSpec) (m device.TensorMap, err error) {
	if err := s.Check(); err != nil {
		return m, err
	}
	t := sim.TensorMap{
		Type: map[int64]ptx.Type{
			1: ptx.U8,
			2: ptx.F16,
			4: ptx.F32,
		}[s.DType.Size()],
		Address: uint64(s.Base),
		Dims:    s.Dims,
		Strides: s.Strides,
		Box:     s.Box,
		Swizzle: map[device.Swizzle]sim.Swizzle{
			device.Swizzle32:  sim.Swizzle32,
			device.Swizzle64:  sim.Swizzle64,
			device.Swizzle128: sim.Swizzle128,
		}[s.Swizzle],
	}
	if s.TF32 {
		t.Type = ptx.TF32
	}
	b, err := t.Encode()
	copy(m[:], b)
	return m, err
}

// Clusters is one at least: tests have few SMs, so that blocks have several tiles.
func (d *simulator) Clusters(l device.Launch) (int, error) {
	return max(1, d.spec.Clusters(l)), d.spec.Check(l)
}
func (*simulator) Sync(context.Context) error { return nil }
func (*simulator) Time(context.Context, device.Burst, int) ([]float64, error) {
	return nil, device.ErrUntimed
}
func (*simulator) Close() error { return nil }

func (d *simulator) Launch(ctx context.Context, l device.Launch) error {
	if err := d.spec.Check(l); err != nil {
		return err
	}
	f := l.Function.(simFunction)
	s := sim.Launch{
		Entry:  f.name,
		Grid:   [3]int{l.Grid.X, l.Grid.Full().Y, 1},
		Block:  [3]int{l.Block.X, 1, 1},
		Shared: l.SharedBytes,

		Dependent: l.Dependent,
	}
	if l.Cluster.X > 1 {
		s.Cluster = [3]int{l.Cluster.X, 1, 1}
	}
	for _, a := range l.Args {
		s.Args = append(s.Args, a.AppendTo(nil))
	}
	r, err := d.machine.Launch(ctx, f.program, s, d.options)
	if err != nil {
		return err
	}
	d.last, d.ran, d.found = r.Counters, append(d.ran, r.Counters), r.Findings
	return r.Err()
}
