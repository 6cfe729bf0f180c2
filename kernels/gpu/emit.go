package gpu

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// An emitter turns a concrete program into a kernel: one block of threads runs
// one tile program.
type emitter struct {
	p      *symtile.Program
	ring   *symtile.Ring
	sheet  Sheet
	knobs  knobs
	asm    *asm
	hints  *hints
	name   string
	smem   operand
	shared int64 // bytes of shared memory so far

	threads     int64
	thread      symtile.Expr // number of the thread in its block
	vectorBytes int64
	loops       int  // named so far
	root        int  // the op that is being stored, −1: none
	fresh       bool // shared memory was written since the last barrier
	async       bool // by copies that have to be waited for

	links     map[link]int
	buffers   map[bufferKey]*buffer
	folds     map[string]foldedSpread
	spreads   map[string]*spread                         // of tiles of a size, where a reduction has spread them
	fragments map[string]func(body func(points []point)) // of tiles of a size, where a product has
	params    []operand
	outputs   []operand
	constants []string // declarations
	constName map[string]operand
}

// hints are what was found out by emitting: which values are asked for by other
// threads than those that have them. The kernel is emitted again with them.
type hints struct {
	wanted map[bufferKey]bool // results of closers that have to be in shared memory
	staged map[int]bool       // ops that are brought to shared memory
	apart  map[int]bool       // roots that are not stored as the product before them is spread
	more   bool               // this time something was found out
}

func (h *hints) want(k bufferKey) { h.more, h.wanted[k] = h.more || !h.wanted[k], true }
func (h *hints) stage(n int)      { h.more, h.staged[n] = h.more || !h.staged[n], true }

// A refusal ends the emission of a plan that cannot run.
type refusal string

func (e *emitter) refuse(format string, args ...any) { panic(refusal(fmt.Sprintf(format, args...))) }

// An image is a kernel as text, with what a launch needs to know.
type image struct {
	name    string // of the entry
	text    string
	threads int
	shared  int64 // bytes of dynamic shared memory
	blocks  int64
}

// emit makes the kernel of a concrete program.
func emit(p *symtile.Program, sheet Sheet, k knobs) (im *image, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case refusal:
			err = errors.New(string(x))
		default:
			panic(x)
		}
	}()
	h := &hints{wanted: map[bufferKey]bool{}, staged: map[int]bool{}, apart: map[int]bool{}}
	for {
		e := newEmitter(p, sheet, k, h)
		h.more = false
		im = e.kernel()
		if !h.more {
			return im, p.Space.Ring.Err()
		}
	}
}

func newEmitter(p *symtile.Program, sheet Sheet, k knobs, h *hints) *emitter {
	e := &emitter{
		p: p, ring: p.Space.Ring, sheet: sheet, knobs: k, hints: h, name: entryName(p.Fusion.Name),
		asm: &asm{scope: newScope(nil)}, threads: int64(k.warps) * WarpThreads, vectorBytes: int64(k.vector),
		root: -1, links: map[link]int{}, buffers: map[bufferKey]*buffer{}, folds: map[string]foldedSpread{}, spreads: map[string]*spread{},
		fragments: map[string]func(body func(points []point)){}, constName: map[string]operand{},
	}
	e.thread = e.ring.Var(symtile.Variable{Name: "thread", Lo: 0, Hi: e.threads - 1, Role: symtile.RoleThread})
	return e
}

// entryName makes a PTX identifier of the name of a fusion.
func entryName(s string) string {
	return "tw_" + strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// kernel emits the whole.
func (e *emitter) kernel() *image {
	a := e.asm
	for k := range e.p.Fusion.Params {
		e.params = append(e.params, e.pointer(fmt.Sprintf("in%d", k)))
	}
	for k := range kernels.OutputShapes(e.p.Fusion) {
		e.outputs = append(e.outputs, e.pointer(fmt.Sprintf("out%d", k)))
	}
	e.smem = a.get(kindB32, "mov.u32", "smem")
	e.bind(e.thread, a.get(kindB32, "mov.u32", "%tid.x"))
	e.tileIDs()
	for _, r := range e.p.Runtime {
		e.needed(r.Op)
	}
	e.steps(e.p.Body)
	for _, r := range e.p.Roots {
		e.storeRoot(r)
	}
	a.do("ret")
	return &image{name: e.name, text: e.module(), threads: int(e.threads), shared: e.shared, blocks: e.p.Programs()}
}

func (e *emitter) pointer(name string) operand {
	a := e.asm
	p := a.get(kindB64, "ld.param.u64", address{base: operand(name)})
	return a.get(kindB64, "cvta.to.global.u64", p)
}

func (e *emitter) parameter(n int) operand { return e.params[n] }
func (e *emitter) output(n int) operand    { return e.outputs[n] }

// module is the text: header, constants, entry.
func (e *emitter) module() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s at %v: %d tile programs of %d threads, %d bytes of shared memory each\n", e.p.Fusion.Name, []int64(e.p.Tiling()), e.p.Programs(), e.threads, e.shared)
	fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n", versionOf(e.sheet.Target), e.sheet.Target)
	fmt.Fprintf(&b, ".extern .shared .align 1024 .b8 smem[];\n")
	for _, c := range e.constants {
		b.WriteString(c)
	}
	var params []string
	for k := range e.params {
		params = append(params, fmt.Sprintf("\t.param .u64 in%d", k))
	}
	for k := range e.outputs {
		params = append(params, fmt.Sprintf("\t.param .u64 out%d", k))
	}
	fmt.Fprintf(&b, ".visible .entry %s(\n%s\n)\n.reqntid %d, 1, 1\n{\n", e.name, strings.Join(params, ",\n"), e.threads)
	for k, row := range kindTable {
		if e.asm.used[k] > 0 {
			fmt.Fprintf(&b, "\t.reg %s %s<%d>;\n", row.declared, row.prefix, e.asm.used[k])
		}
	}
	b.WriteString(e.asm.text.String())
	b.WriteString("}\n")
	return b.String()
}

// versionOf is the PTX ISA that a target's instructions need.
func versionOf(target string) string {
	if target == "sm_90a" {
		return "8.0"
	}
	return "7.8"
}

// constant declares bytes in global memory and is their address.
func (e *emitter) constant(data []byte) operand {
	name, ok := e.constName[string(data)]
	if !ok {
		name = operand(fmt.Sprintf("constant_%d", len(e.constants)))
		e.constName[string(data)] = name
		words := make([]string, len(data))
		for k, b := range data {
			words[k] = fmt.Sprint(b)
		}
		e.constants = append(e.constants, fmt.Sprintf(".global .align %d .b8 %s[%d] = {%s};\n", most, name, len(data), strings.Join(words, ", ")))
	}
	return e.asm.get(kindB64, "cvta.to.global.u64", e.asm.get(kindB64, "mov.u64", name))
}

// uniform is the one number all elements of a literal are.
func uniform(l *hlo.Literal) (operand, bool) {
	for k := range l.Ints {
		if l.Ints[k] != l.Ints[0] {
			return "", false
		}
	}
	for k := range l.Floats {
		if math.Float64bits(l.Floats[k]) != math.Float64bits(l.Floats[0]) {
			return "", false
		}
	}
	switch {
	case len(l.Ints) > 0:
		return immediate(l.Shape.DType, l.Ints[0], float64(l.Ints[0])), true
	case len(l.Floats) > 0:
		return immediate(l.Shape.DType, 0, l.Floats[0]), true
	}
	return "", false
}

// literalBytes is a literal in row-major order as an array in memory.
func literalBytes(l *hlo.Literal) []byte {
	d := l.Shape.DType
	n := int64(max(len(l.Ints), len(l.Floats)))
	b := kernels.Buffer{Shape: hlo.Shape{DType: d, Dims: []int64{n}}, Data: make([]byte, n*d.Size())}
	for k, v := range l.Ints {
		b.SetInt(int64(k), v)
	}
	for k, v := range l.Floats {
		b.SetFloat(int64(k), v)
	}
	return b.Data
}

// tileIDs computes the parallel tile ids of this block.
func (e *emitter) tileIDs() {
	block := e.ring.Var(symtile.Variable{Name: "block", Lo: 0, Hi: max(0, e.p.Programs()-1), Role: symtile.RoleBlock})
	if _, ok := block.Value(); ok {
		return
	}
	e.bind(block, e.asm.get(kindB32, "mov.u32", "%ctaid.x"))
	dims, ids := e.raster(block)
	for k, d := range dims {
		e.bind(e.p.Space.Dims[d].Tid, e.num(ids[k]))
	}
}

// missing notes that a result of a closer is asked for by threads that do not
// have it.
func (e *emitter) missing(n, part int, points []point) []operand {
	e.hints.want(bufferKey{n, part})
	if e.root >= 0 {
		e.hints.apart[e.root] = true
	}
	all := make([]operand, len(points))
	k := kindFor(e.typeOf(n, part))
	for i := range all {
		all[i] = e.asm.in(k, zero(k))
	}
	return all
}

func (e *emitter) typeOf(n, part int) hlo.DType {
	s := e.p.Ops[n].Instr.Shape
	if s.DType == hlo.Tuple {
		s = s.Tuple[part]
	}
	return s.DType
}
