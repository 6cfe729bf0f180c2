package main

import "math"

// A device is what the rivals know of a GPU.
type gpuSheet struct {
	name      string
	sms       float64
	clock     float64            // Hz
	macs      map[string]float64 // of an SM a clock by type, with tensor cores
	tf32      float64
	bandwidth float64 // bytes/s
}

// a100 is the device of the tables in triton_a100 (see kernels/gpu/device/sheets).
var a100 = gpuSheet{
	name:  "A100",
	sms:   108,
	clock: 1410e6,
	macs: map[string]float64{
		"float16":  1024,
		"bfloat16": 1024,
		"float32":  64,
	},
	tf32:      512,
	bandwidth: 1555e9,
}

// rate is the multiply-adds of an SM a second.
func (g gpuSheet) rate(s *shape) float64 {
	if s.tf32 {
		return g.tf32 * g.clock
	}
	return g.macs[s.a.dtype] * g.clock
}

// A rival ranks the plans of a product by a number, the smallest first.
type rival struct {
	name  string
	score func(*shape, tile) float64
}

// rivals are the other rankers, on an A100.
var rivals = []rival{
	{"largest tile", func(_ *shape, t tile) float64 {
		area := float64(t.m * t.n)
		return -area - float64(t.k)/1e4
	}},
	{"roofline", roofline},
	{"xla dot", xlaDot},
}

// bytes are those of the operands and of the result.
func (s *shape) bytes() (a, b, out float64) {
	x, y := s.sizes()
	a = x * float64(s.m*s.k)
	b = y * float64(s.k*s.n)
	out = x * float64(s.m*s.n)
	return a, b, out
}

// sizes are the bytes of an element of each operand.
func (s *shape) sizes() (a, b float64) {
	a = float64(hloTypes[s.a.dtype].bytes)
	b = float64(hloTypes[s.b.dtype].bytes)
	return a, b
}

// blocks is the number of tiles.
func (s *shape) blocks(t tile) float64 {
	return quotient(s.m, t.m) * quotient(s.n, t.n)
}

// quotient is a/b, rounded up.
func quotient(a, b int64) float64 {
	return math.Ceil(float64(a) / float64(b))
}

// tileBytes are what all tiles read.
func (s *shape) tileBytes(t tile) float64 {
	x, y := s.sizes()
	column := x*float64(t.m) + y*float64(t.n)
	return s.blocks(t) * float64(s.k) * column
}

// waveSeconds are those of all waves of tiles at the peak rate.
func (s *shape) waveSeconds(t tile) float64 {
	waves := math.Ceil(s.blocks(t) / a100.sms)
	return waves * float64(t.m*t.n*s.k) / a100.rate(s)
}

// roofline is the longer of the time of all waves of tiles at the peak rate and of what
// the tiles read and write at memory's rate.
func roofline(s *shape, t tile) float64 {
	_, _, out := s.bytes()
	moved := s.tileBytes(t) + out
	return max(s.waveSeconds(t), moved/a100.bandwidth)
}

// Constants of XLA's model: seconds of overhead of an iteration of the loop and of its
// L2 latency without tensor copies, and the L2's bytes/s (all measured on an H100).
const (
	xlaIteration = 1.8e-6
	xlaLatency   = 400e-9
	xlaL2        = 6.65e12
)

// xlaDot is XLA's cost model of a dot. Its table of memory rates by size, from 1.4 GB/s
// for 8 KiB to nearly the peak for 1 GiB, is a delay and a rate here, on this device.
func xlaDot(s *shape, t tile) float64 {
	c := s.waveSeconds(t)
	if t.m < 16 && s.a.dtype != "float32" {
		c *= 2
	}
	a, b, out := s.bytes()
	bw := xlaBandwidth(a + b + out)
	r := (a + b) / bw
	w := out / bw
	n := quotient(s.k, t.k)
	l2 := s.tileBytes(t)/xlaL2 + n*xlaLatency
	loop := xlaLoop(c/n, r/n, n, float64(t.stages))
	return max(loop+w, r+w, l2)
}

// xlaLoop is the time of a loop with a pipeline of some stages, each of whose
// iterations computes and reads for c and r seconds.
func xlaLoop(c, r, iterations, stages float64) float64 {
	if stages <= 1 || iterations <= 1 {
		return iterations * (r + xlaIteration + c)
	}
	p := min(stages-1, iterations)
	late := max(r+xlaIteration, c) / (stages - 1)
	steady := max(r, c, late)
	return xlaIteration + p*(r+c) + (iterations-p)*steady
}

// xlaBandwidth is the rate of a transfer of some bytes.
func xlaBandwidth(bytes float64) float64 {
	const delay = (8 << 10) / 1.4e9
	peak := a100.bandwidth * 3126 / 3352
	return bytes / (delay + bytes/peak)
}
