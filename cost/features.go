package cost

import (
	"math"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Features of one plan on one device. The cost model and every report read
// them from here and nowhere else.
type Features struct {
	FLOPs       float64   `json:"flops"`       // useful arithmetic, flop: each element of each instruction once
	PaddedFLOPs float64   `json:"paddedFlops"` // arithmetic the tiles really do: masked lanes and recomputation included
	Traffic     []float64 `json:"traffic"`     // bytes moved from each Device.Level to the one inside it, innermost first
	Tiles       float64   `json:"tiles"`       // tile programs
	Steps       float64   `json:"steps"`       // tile ops run, iterations of loops included
	Lanes       float64   `json:"lanes"`       // lanes the plan uses
	Waves       float64   `json:"waves"`       // ⌈Tiles/Lanes⌉·Lanes/Tiles ≥ 1: what the last, partly filled wave costs
	InnerRun    float64   `json:"innerRun"`    // bytes contiguous in memory per access, harmonic mean weighted by bytes
	Scratch     float64   `json:"scratch"`     // bytes of scratch a tile program touches
}

// flopWeight is the cost of an element of an operation in flop. One for
// arithmetic; for functions, the length of their usual polynomial
// implementations (Cephes: exp 15, log 20, tanh and erf 25, sin 20, pow 40),
// divisions and roots by their throughput on current cores (about 8).
var flopWeight = map[hlo.Opcode]float64{
	"parameter": 0, "constant": 0, "broadcast": 0, "transpose": 0, "reshape": 0, "slice": 0, "copy": 0, "reverse": 0,
	"concatenate": 0, "pad": 0, "get-tuple-element": 0, "bitcast": 0, "tuple": 0,
	"divide": 8, "remainder": 20, "sqrt": 8, "rsqrt": 8, "cbrt": 25, "exponential": 15, "exponential-minus-one": 20, "log": 20,
	"log-plus-one": 22, "logistic": 24, "tanh": 25, "erf": 25, "sine": 20, "cosine": 20, "tan": 25, "power": 40, "atan2": 30,
}

func weight(op hlo.Opcode) float64 {
	if w, ok := flopWeight[op]; ok {
		return w
	}
	return 1
}

// usefulFLOPs counts every element of every instruction once.
func usefulFLOPs(c *hlo.Computation) float64 {
	sum := 0.0
	for _, i := range c.Instrs {
		n := elements(i.Shape)
		switch i.Op {
		case "dot":
			for _, d := range i.Attrs.LHSContract {
				n *= float64(i.Operands[0].Shape.Dims[d])
			}
			sum += 2 * n
		case "reduce":
			sum += elements(i.Operands[0].Shape) * reducerWeight(i)
		case "fusion", "call":
			sum += usefulFLOPs(i.Attrs.Calls)
		default:
			sum += n * weight(i.Op)
		}
	}
	return sum
}

func elements(s hlo.Shape) float64 {
	if s.DType == hlo.Tuple {
		if len(s.Tuple) == 0 {
			return 0
		}
		return elements(s.Tuple[0])
	}
	return float64(s.Elements())
}

// reducerWeight is the flop of combining two elements.
func reducerWeight(i *hlo.Instr) float64 {
	sum := 0.0
	for _, x := range i.Attrs.ToApply.Instrs {
		sum += weight(x.Op)
	}
	return sum
}

// Measure computes the features of a concrete program.
//
// Traffic of a level is what its inner neighbour cannot hold: an array that
// fits inside is moved once, a larger one every time a tile of it is asked for
// (the reuse argument of Wolf and Lam, PLDI 1991, with whole arrays for working
// sets). Scratch that outgrows a level moves through the next.
func Measure(p *symtile.Program, plan kernels.Plan, d kernels.Device) Features {
	m := &meter{p: p, d: d}
	m.steps(p.Body, float64(p.Programs()))
	lanes := math.Min(float64(plan.Knob("threads", int64(d.Lanes))), float64(d.Lanes))
	tiles := float64(p.Programs())
	f := Features{
		FLOPs:       usefulFLOPs(p.Fusion),
		PaddedFLOPs: m.flops,
		Tiles:       tiles,
		Steps:       m.opsRun,
		Lanes:       lanes,
		Waves:       math.Ceil(tiles/lanes) * lanes / math.Max(tiles, 1),
		Scratch:     m.scratch,
	}
	for _, r := range p.Roots {
		m.access(p.Ops[r.Op].Instr.Shape, p.Ops[r.Op].Tile, once(p, r))
	}
	f.Traffic = m.traffic(lanes)
	if f.InnerRun = 64; m.runs > 0 {
		f.InnerRun = m.runBytes / m.runs
	}
	return f
}

// once is the number of tile programs that store a root.
func once(p *symtile.Program, r symtile.Root) float64 {
	n := float64(p.Programs())
	for _, d := range r.Once {
		if tiles, ok := p.Space.Dims[d].Tiles.Value(); ok {
			n /= float64(tiles)
		}
	}
	return n
}

// A meter adds up what the ops of a program do.
type meter struct {
	p                      *symtile.Program
	d                      kernels.Device
	flops, opsRun, scratch float64
	runs, runBytes         float64
	touched                float64 // scratch bytes read and written by all ops run
	accesses               []access
}

// An access is a tile of an array that is loaded or stored.
type access struct {
	bytes    float64 // of the array
	tile     float64 // bytes of a tile
	count    float64 // times a tile is moved
	distinct float64 // bytes that differ, of all tiles together
}

func (m *meter) steps(steps []symtile.Step, times float64) {
	for _, s := range steps {
		if s.Loop == nil {
			m.op(s.Op, times)
			continue
		}
		trips := float64(m.p.Trips(s.Loop))
		m.steps(s.Loop.Body, times*trips)
		for _, c := range s.Loop.Closers {
			m.op(c, times*trips)
		}
	}
}

// op counts one op that runs times times in all.
func (m *meter) op(n int, times float64) {
	op := m.p.Ops[n]
	size := elementsOf(op.Tile)
	m.opsRun += times
	bytes := size * float64(max(1, widthOf(op.Instr.Shape)))
	switch op.Code {
	case "dot":
		m.flops += times * 2 * size * contracted(op.Instr, m.p.Ops[op.Args[0]].Tile)
	case "reduce":
		m.flops += times * elementsOf(m.p.Ops[op.Args[0]].Tile) * reducerWeight(op.Instr)
	default:
		m.flops += times * size * weight(op.Code)
	}
	switch op.Code {
	case "reshape", "slice", "copy", "get-tuple-element":
		return // aliases
	case "parameter":
		m.access(op.Instr.Shape, op.Tile, times)
	}
	m.scratch += bytes
	m.touched += times * 2 * bytes
}

func contracted(i *hlo.Instr, left symtile.Tile) float64 {
	n := 1.0
	for _, d := range i.Attrs.LHSContract {
		size, _ := left[d].Size.Value()
		n *= float64(size)
	}
	return n
}

func elementsOf(t symtile.Tile) float64 {
	n := 1.0
	for _, d := range t {
		size, _ := d.Size.Value()
		n *= float64(size)
	}
	return n
}

func widthOf(s hlo.Shape) int64 {
	if s.DType == hlo.Tuple {
		return 8
	}
	return s.DType.Size()
}

// access records a load or store of a tile of an array.
func (m *meter) access(shape hlo.Shape, t symtile.Tile, times float64) {
	width := float64(shape.DType.Size())
	tile := elementsOf(t) * width
	total := float64(shape.Bytes())
	m.accesses = append(m.accesses, access{bytes: total, tile: tile, count: times, distinct: math.Min(total, tile*times)})
	run := contiguous(shape, t) * width
	m.runBytes += tile * times
	m.runs += tile * times / math.Max(run, 1)
}

// contiguous is how many elements of a tile follow each other in memory.
func contiguous(shape hlo.Shape, t symtile.Tile) float64 {
	run := 1.0
	for _, d := range shape.MinorToMajor() {
		size, _ := t[d].Size.Value()
		if stride, _ := t[d].Stride.Value(); stride != 1 && size > 1 {
			break
		}
		run *= float64(size)
		if size < shape.Dims[d] {
			break
		}
	}
	return run
}

// traffic is the bytes that cross each level's outer edge inwards: level k
// moves what level k−1 cannot keep.
func (m *meter) traffic(lanes float64) []float64 {
	out := make([]float64, len(m.d.Levels))
	for k := range m.d.Levels {
		inner := 0.0
		if k > 0 {
			inner = capacity(m.d.Levels[k-1], lanes)
		}
		if k == 0 || m.scratch > inner {
			out[k] += m.touched
		}
		for _, a := range m.accesses {
			out[k] += a.through(inner)
		}
	}
	return out
}

// capacity is what one lane has of a level.
func capacity(l kernels.Level, lanes float64) float64 {
	switch {
	case l.Bytes == 0:
		return math.Inf(1)
	case l.Shared:
		return float64(l.Bytes) / lanes
	}
	return float64(l.Bytes)
}

// through is what an access moves past a level of the given capacity: each
// tile it asks for, unless the whole array stays inside.
func (a access) through(inner float64) float64 {
	moved := a.tile * a.count
	if a.bytes <= inner {
		return a.distinct
	}
	return moved
}
