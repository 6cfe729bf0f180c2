package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A family is the kernels of one element type and vector width. The kernels
// differ in the three instructions below and in the registers they use; the
// loops are the same.
type family struct {
	// Suffix of the names of the kernels.
	name string
	// Bits of an element.
	bits int
	// The largest number of rows of a panel.
	rows int
	// The rows of one more kernel, of whole panels only; 0 without.
	tall int
	// Vectors have 512 bits, and masks are in mask registers.
	wide bool
	// Whole panels are written past the caches where bit 1 of how says so.
	past bool
	// Kernels of two panels at once (pair.go).
	pairs bool
	// Kernels that copy the rows of b to a panel, too (fill.go).
	fills bool
	// Loads an element to all lanes of a vector.
	broadcast func(m, v Op)
	// Adds x·y to acc. It may overwrite spare.
	mac func(x, y, acc, spare reg.Register)
	// Adds m·x to acc, with m in memory; nil where there is no such
	// instruction.
	fma func(m, x, acc Op)
	// Multiplies quads of bytes (quads.go).
	quads bool
	// Names its vector registers itself, because it has instructions that are written
	// as their bytes.
	named bool
}

// families has a row for each element type and vector width. I16 multiplies
// pairs of 16-bit integers and adds their products (VPMADDWD), so that one term
// of its loop is two terms of the product; I16VNNI adds them to the sum in the same
// instruction (VPDPWSSD, AVX512-VNNI), which wraps as VPADDD does. BF16 multiplies pairs of
// bf16 (VDPBF16PS, AVX512_BF16), two terms in turn. Quads are four terms of
// bytes (VPDPBUSD): U and S say whether those of a and of b are unsigned or signed.
var families = []family{
	{
		name: "F32", past: true, bits: 32, rows: 6,
		broadcast: broadcastSingle,
		mac:       func(x, y, acc, _ reg.Register) { VFMADD231PS(y, x, acc) },
		fma:       func(m, x, acc Op) { VFMADD231PS(m, x, acc) },
	},
	{
		name: "F64", past: true, bits: 64, rows: 6,
		broadcast: broadcastDouble,
		mac:       func(x, y, acc, _ reg.Register) { VFMADD231PD(y, x, acc) },
		fma:       func(m, x, acc Op) { VFMADD231PD(m, x, acc) },
	},
	{name: "I32", bits: 32, rows: 6, broadcast: broadcastLane, mac: multiplyLanes},
	{name: "I16", bits: 32, rows: 6, broadcast: broadcastLane, mac: multiplyPairs},
	{
		name: "F32Wide", past: true, bits: 32, rows: 6, wide: true, pairs: true, fills: true,
		broadcast: broadcastSingle,
		mac:       func(x, y, acc, _ reg.Register) { VFMADD231PS(y, x, acc) },
	},
	{
		name: "F64Wide", past: true, bits: 64, rows: 6, wide: true, pairs: true, fills: true,
		broadcast: broadcastDouble,
		mac:       func(x, y, acc, _ reg.Register) { VFMADD231PD(y, x, acc) },
	},
	{name: "I32Wide", bits: 32, rows: 6, wide: true, broadcast: broadcastLane, mac: multiplyLanes},
	{name: "I16Wide", bits: 32, rows: 6, wide: true, broadcast: broadcastLane, mac: multiplyPairs},
	{
		name: "I16VNNI", bits: 32, rows: 6, wide: true,
		broadcast: broadcastLane,
		mac:       func(x, y, acc, _ reg.Register) { VPDPWSSD(y, x, acc) },
	},
	{
		name: "BF16Pairs", bits: 32, rows: 6, tall: 12, wide: true, named: true,
		broadcast: broadcastLane,
		mac:       func(x, y, acc, _ reg.Register) { multiplyBF16(y, x, acc) },
	},
	{
		name: "QuadsUS", bits: 32, rows: 6, wide: true, quads: true,
		broadcast: broadcastLane,
		mac:       func(x, y, acc, _ reg.Register) { VPDPBUSD(y, x, acc) },
	},
	{
		name: "QuadsSU", bits: 32, rows: 6, wide: true, quads: true,
		broadcast: broadcastLane,
		mac:       func(x, y, acc, _ reg.Register) { VPDPBUSD(x, y, acc) },
	},
	{
		name: "QuadsUSNarrow", bits: 32, rows: 6, quads: true, named: true,
		broadcast: broadcastLane,
		mac:       func(x, y, acc, _ reg.Register) { vexQuads(y, x, acc) },
	},
	{
		name: "QuadsSUNarrow", bits: 32, rows: 6, quads: true, named: true,
		broadcast: broadcastLane,
		mac:       func(x, y, acc, _ reg.Register) { vexQuads(x, y, acc) },
	},
}

func broadcastSingle(m, v Op) { VBROADCASTSS(m, v) }
func broadcastDouble(m, v Op) { VBROADCASTSD(m, v) }
func broadcastLane(m, v Op)   { VPBROADCASTD(m, v) }

// multiplyLanes adds the low halves of products of 32 bits.
func multiplyLanes(x, y, acc, t reg.Register) {
	VPMULLD(y, x, t)
	VPADDD(t, acc, acc)
}

// multiplyPairs adds the sums of two products of 16 bits.
func multiplyPairs(x, y, acc, t reg.Register) {
	VPMADDWD(y, x, t)
	VPADDD(t, acc, acc)
}

// A panel is a kernel for a number of rows and of vectors of columns. A masked
// one reads and writes only the columns of its mask.
type panel struct {
	family
	// Vectors of columns.
	rows, vecs int
	// Columns that the mask lacks are neither read nor written.
	masked bool
	// Two panels of b are read, apart bytes from each other (pair.go).
	pair bool
	// Rows of b are copied to a panel (fill.go).
	fill bool
}

// vec is a vector register: the next one where the family names them.
func (g *panelCode) vec() reg.Register {
	switch {
	case g.named:
		g.taken++
		if g.wide {
			return namedWideVectors[g.taken-1]
		}
		return namedVectors[g.taken-1]
	case g.wide:
		return ZMM()
	}
	return YMM()
}

// bytes is the size of a vector.
func (p panel) bytes() int {
	if p.wide {
		return 64
	}
	return 32
}

// A panelCode is the code of a panel, with the registers that its parts share.
type panelCode struct {
	panel
	// Pointers to rows 0, 3, 6 and 9 of a, as far as there are so many, and the strides
	// of its rows and columns; the pointer to b, the stride of its rows, and the distance of
	// the second panel.
	a             []reg.Register
	ars, acs      reg.Register
	b, brs, apart reg.Register
	// Pointer to c; mask; and the address that is prefetched next, with its
	// step.
	c, mask, ahead, step reg.Register
	// Sums of the block, row by row.
	acc []reg.Register
	// A broadcast element of a, and a spare vector.
	x, t reg.Register
	// Vectors of the current row of b.
	y []reg.Register
	// The row of the panel that the current row of b is copied to.
	to reg.Register
	// How many registers of a family that names them are taken.
	taken int
}

// kind distinguishes the names of masked panels.
func (p panel) kind() string {
	switch {
	case p.masked:
		return "Masked"
	case p.pair:
		return "Pair"
	case p.fill:
		return "Fill"
	}
	return ""
}

// symbol is the name of the kernel.
func (p panel) symbol() string {
	return fmt.Sprintf("multiply%s%sRows%d", p.name, p.kind(), p.rows)
}

// signature is the type of the kernel.
func (p panel) signature() string {
	if p.pair {
		return pairSignature
	}
	if p.quads {
		return "func(blocks, k int, a *byte, ars, acs int, b *byte, brs int, start *byte, c *byte, crs int, mask *byte, ahead uintptr, step int, how int)"
	}
	return "func(blocks, k int, a *byte, ars, acs int, b *byte, brs int, c *byte, crs int, mask *byte, ahead uintptr, step int, how int)"
}

// emit emits the kernel: a loop over blocks of rows, each of which computes its
// part of c from all terms.
func (p panel) emit() {
	TEXT(p.symbol(), NOSPLIT, p.signature())
	Pragma("noescape")
	g := &panelCode{panel: p}
	if p.masked {
		g.loadMask()
	}
	g.a = []reg.Register{Load(Param("a"), GP64())}
	g.c = Load(Param("c"), GP64())
	g.ahead, g.step = Load(Param("ahead"), GP64()),
		Load(Param("step"), GP64())
	blocks := Load(Param("blocks"), GP64())
	Label("block")
	g.block()
	DECQ(blocks)
	JNZ(LabelRef("block"))
	// Stores past the caches are weakly ordered: whoever reads c later has to see them.
	if g.writesPast() {
		g.ifPast("fence")
		JMP(LabelRef("end"))
		Label("fence")
		SFENCE()
		Label("end")
	}
	VZEROUPPER()
	RET()
}

// writesPast reports whether the kernel can write past the caches.
func (p panel) writesPast() bool { return p.past && !p.masked }

// ifPast jumps where bit 1 of how says that c is written past the caches.
func (g *panelCode) ifPast(label string) {
	how := Load(Param("how"), GP64())
	ANDQ(Imm(2), how)
	JNZ(LabelRef(label))
}

// block is one block of rows. Afterwards a, b and c are those of the next.
func (g *panelCode) block() {
	crs := Load(Param("crs"), GP64())
	c := g.bases(g.c, crs)
	g.acc = nil
	for range g.rows * g.vecs {
		g.acc = append(g.acc, g.vec())
	}
	// Bit 0 of how says that c has no earlier sums: then it is not read.
	how := Load(Param("how"), GP64())
	ANDQ(Imm(1), how)
	JNZ(LabelRef("fresh"))
	g.each(c, crs, g.load)
	JMP(LabelRef("next"))
	Label("fresh")
	for _, y := range g.acc {
		g.zero(y)
	}
	if g.writesPast() {
		g.ifPast("begin")
	}
	Label("next")
	g.prefetch(c, crs)
	Label("begin")
	g.vectors()
	if g.quads {
		g.start()
	}
	if g.pair {
		g.pairLoop()
	} else {
		g.loop()
	}
	// The loop needs the registers of the stride and of other rows, so that they are
	// loaded again.
	crs = Load(Param("crs"), GP64())
	c = g.bases(g.c, crs)
	store := func(m Mem, v reg.Register) { g.store(v, m) }
	// The stores are there twice, so that a block decides once.
	if g.writesPast() {
		g.ifPast("past")
		g.each(c, crs, store)
		JMP(LabelRef("stored"))
		Label("past")
		store = func(m Mem, v reg.Register) { VMOVNTPS(v, m) }
	}
	g.each(c, crs, store)
	if g.writesPast() {
		Label("stored")
	}
	IMUL3Q(Imm(uint64(g.rows)), crs, crs)
	ADDQ(crs, g.c)
}

// each calls f for every vector of c.
func (g *panelCode) each(
	c []reg.Register, crs reg.Register, f func(m Mem, v reg.Register),
) {
	for r := range g.rows {
		for v := range g.vecs {
			f(
				rowAt(
					c, crs,
					r, v*g.bytes(),
				),
				g.acc[r*g.vecs+v],
			)
		}
	}
}

// prefetch prefetches the rows of c behind those of a whole block, which come next: sums begin
// with them, or a fresh block is stored to lines that need not come from memory then.
func (g *panelCode) prefetch(c []reg.Register, crs reg.Register) {
	// Edges of a matrix, with fewer rows or columns, have no such successor.
	if g.rows%6 != 0 || g.masked {
		return
	}
	next := c[len(c)-1]
	for r := range g.rows {
		if r%3 == 0 {
			next = third(next, crs)
		}
		for at64 := 0; at64 < g.vecs*g.bytes(); at64 += 64 {
			row := at(next, next, crs, r%3, at64)
			PREFETCHT0(row)
		}
	}
}

// zero clears a vector. Vectors of 512 bits use the instruction of the
// foundation set, which needs no further extension.
func (g *panelCode) zero(v reg.Register) {
	if g.wide {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// bases are registers with the addresses of every third row from base on.
func (p panel) bases(base, stride reg.Register) []reg.Register {
	all := []reg.Register{base}
	for 3*len(all) < p.rows {
		all = append(all, third(all[len(all)-1], stride))
	}
	return all
}

// loadMask loads the mask of the columns: a vector with the sign bits of the
// lanes, or the bits of a mask register.
func (g *panelCode) loadMask() {
	m := Load(Param("mask"), GP64())
	if !g.wide {
		y := g.vec()
		VMOVDQU(Mem{Base: m}, y)
		g.mask = y
		return
	}
	// A mask register has a bit for each lane.
	bits, k := GP32(), K()
	MOVL(Mem{Base: m}, bits)
	KMOVW(bits, k)
	g.mask = k
}

// load loads a vector, of which masked kernels read only the columns of the
// mask.
func (g *panelCode) load(m Mem, v reg.Register) {
	switch {
	case !g.masked:
		VMOVUPS(m, v)
	case !g.wide:
		VMASKMOVPS(m, g.mask, v)
	case g.bits == 64:
		VMOVUPD_Z(m, g.mask, v)
	default:
		VMOVUPS_Z(m, g.mask, v)
	}
}

// store stores a vector, of which masked kernels write only the columns of the
// mask.
func (g *panelCode) store(v reg.Register, m Mem) {
	switch {
	case !g.masked:
		VMOVUPS(v, m)
	case !g.wide:
		VMASKMOVPS(v, g.mask, m)
	case g.bits == 64:
		VMOVUPD(v, g.mask, m)
	default:
		VMOVUPS(v, g.mask, m)
	}
}

// vectors takes the registers of the loop.
func (g *panelCode) vectors() {
	g.x, g.y = g.vec(), nil
	if !g.quads {
		g.t = g.vec()
	}
	for range g.vecs {
		g.y = append(g.y, g.vec())
	}
}

// loop is the terms, one after the other, four a turn. Each turn prefetches a
// line of what is needed later.
func (g *panelCode) loop() {
	g.ars, g.acs = Load(Param("ars"), GP64()),
		Load(Param("acs"), GP64())
	g.b, g.brs = Load(Param("b"), GP64()),
		Load(Param("brs"), GP64())
	g.a = g.bases(g.a[0], g.ars)
	g.fillTo()
	k := Load(Param("k"), GP64())
	turns := GP64()
	MOVQ(k, turns)
	SHRQ(Imm(2), turns)
	JZ(LabelRef("rest"))
	Label("turn")
	// A turn of a tall kernel has twice the work.
	for r := 0; r < g.rows && !g.fill; r += 6 {
		g.prefetchAhead()
	}
	for range 4 {
		if g.fill {
			g.prefetchAhead()
		}
		g.term()
	}
	DECQ(turns)
	JNZ(LabelRef("turn"))
	Label("rest")
	// The terms beyond a multiple of four follow one by one.
	ANDQ(Imm(3), k)
	JZ(LabelRef("done"))
	Label("one")
	g.term()
	DECQ(k)
	JNZ(LabelRef("one"))
	Label("done")
	// a goes back by the terms of this block, and on by its rows.
	back := Load(Param("k"), GP64())
	IMULQ(g.acs, back)
	g.nextRows(back)
}

// prefetchAhead prefetches the next line of what is needed later.
func (g *panelCode) prefetchAhead() {
	PREFETCHT1(Mem{Base: g.ahead})
	ADDQ(g.step, g.ahead)
}

// nextRows takes a back by the bytes of the terms, and on by its rows.
func (g *panelCode) nextRows(back reg.Register) {
	SUBQ(back, g.a[0])
	IMUL3Q(Imm(uint64(g.rows)), g.ars, g.ars)
	ADDQ(g.ars, g.a[0])
}

// term adds one term to all sums: it loads a row of b, broadcasts the elements
// of a one after the other, and multiplies. The last use of the broadcast
// element may overwrite it.
func (g *panelCode) term() {
	for v, y := range g.y {
		g.load(Mem{Base: g.b, Disp: v * g.bytes()}, y)
	}
	ADDQ(g.brs, g.b)
	g.fillRow()
	for r := range g.rows {
		g.broadcast(
			rowAt(g.a, g.ars, r, 0),
			g.x,
		)
		for v, y := range g.y {
			t := g.t
			if v == g.vecs-1 {
				t = g.x // its last use
			}
			g.mac(g.x, y, g.acc[r*g.vecs+v], t)
		}
	}
	for _, a := range g.a {
		ADDQ(g.acs, a)
	}
}
