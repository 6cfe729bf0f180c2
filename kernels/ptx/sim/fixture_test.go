package sim

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// everything is what a checked launch looks for.
var everything = Options{Counters: true, Races: true, Uninitialised: true, Workers: 1, Budget: 1 << 20}

func mustLoad(t testing.TB, text string) *Program {
	t.Helper()
	m, err := ptx.Parse("test.ptx", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func readText(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// bench is a machine with the buffers of one test.
type bench struct {
	t testing.TB
	m *Machine
}

func newBench(t testing.TB) *bench { return &bench{t, New(Sheet{})} }

func (b *bench) alloc(n int64) uint64 {
	b.t.Helper()
	a, err := b.m.Alloc(n)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bench) put(data []byte) uint64 {
	b.t.Helper()
	a := b.alloc(int64(len(data)))
	if err := b.m.Write(a, data); err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bench) floats(addr uint64, n int) []float32 {
	b.t.Helper()
	raw := make([]byte, 4*n)
	if err := b.m.Read(addr, raw); err != nil {
		b.t.Fatal(err)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

func (b *bench) words(addr uint64, n int) []uint32 {
	out := make([]uint32, n)
	for i, f := range b.floats(addr, n) {
		out[i] = math.Float32bits(f)
	}
	return out
}

func (b *bench) launch(p *Program, l Launch, opt Options) *Report {
	b.t.Helper()
	r, err := b.m.Launch(context.Background(), p, l, opt)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func floatBytes(v []float32) []byte {
	var out []byte
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

func halfBytes(v []float32) []byte {
	var out []byte
	for _, f := range v {
		out = binary.LittleEndian.AppendUint16(out, floatToHalf(f))
	}
	return out
}

// eighths are n multiples of 1/8 from −1 to 1: their products and short sums
// are exact in float32.
func eighths(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.IntN(17)-8) / 8
	}
	return out
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// sameFloats counts where two slices differ.
func wrong(got, want []float32) int {
	n := 0
	for i := range want {
		if got[i] != want[i] {
			n++
		}
	}
	return n
}
