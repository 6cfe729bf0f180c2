package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Integers and truth values of one and two bytes are reduced where arrays have them. They are
// widened in registers, or, where the result is of one byte, too, combined in lanes of one byte:
// four times as many to a vector, which wrap by themselves. All of these operations give the same
// in any order.
//
// A row of s8 is summed by
//
//	vpaddb    z8, z8, [rsi]      four accumulators of 64 bytes
//	…
//	vpaddb    y8, y8, y9         which become one of 32
//	vmovups   [rdi+40], y8
//	vpmovsxbd y0, [rdi+40]       whose elements are widened, four vectors of them
//	vpaddd    y8, y8, y0
//	…
//	vpmovsxbd y0, [rsi]          as those at the end of the row are
//	vpaddd    y8, y8, y0
//
// and columns of all rows of a call by
//
//	vpaddb    z8, z8, [rcx]
//	vpaddb    z9, z9, [rcx+64]
//	…
//	add       rcx, r8            the next row

// NarrowArgs is the argument block of a NarrowReduction.
type NarrowArgs struct {
	N          int64 // The number of elements of X.
	X, Y       unsafe.Pointer
	Rows, Step int64    // Of columns: how many rows there are, and the bytes from each to the next.
	partial    [32]byte // What lanes of one byte leave of a row.
}

// narrowPartial is where the argument block has it.
var narrowPartial = int32(unsafe.Offsetof(NarrowArgs{}.partial))

// A NarrowReduction is the routines of an operation.
type NarrowReduction struct {
	Row  amd64.Func // X is reduced into the element *Y, as scratch holds it.
	Each amd64.Func // X is reduced into Y, element by element.
	// Columns sets the bytes at Y to those of Rows rows, each Step bytes behind the one before,
	// combined. N is a multiple of ColumnBytes. There are none of elements that are widened.
	Columns    amd64.Func
	HasColumns bool
}

// ColumnBytes is the bytes of a row that columns are reduced in at a time, at least.
const ColumnBytes = 32

// A narrowKey names the routines of an operation on type d of elements of type from, which are
// held alike.
type narrowKey struct {
	op      hlo.Opcode
	d, from hlo.DType
	wide    bool // There are vectors of 64 bytes.
}

// narrowReductions are those that were asked for: narrowKey → func() (NarrowReduction, bool).
var narrowReductions sync.Map

// NarrowReductionOf is the reduction to elements of type d, by an operation, of elements of type
// from. It is assembled at first use and stays for the life of the process.
func NarrowReductionOf(
	op hlo.Opcode, d, from hlo.DType,
) (NarrowReduction, bool) {
	return narrowKey{op, d, from, amd64.RunsWide()}.reduction()
}

// reduction is that of a key.
func (key narrowKey) reduction() (NarrowReduction, bool) {
	made, _ := narrowReductions.LoadOrStore(
		key, sync.OnceValues(key.routines),
	)
	return made.(func() (NarrowReduction, bool))()
}

// HasNarrowReduction reports whether there is one.
func HasNarrowReduction(
	op hlo.Opcode, d, from hlo.DType,
) bool {
	_, narrow := narrowCodecs[from]
	return narrow && HasReduction(op, d) &&
		portable.ClassOf(d) == portable.Int32 &&
		portable.ClassOf(from) == portable.Int32
}

// routines assembles them.
func (k narrowKey) routines() (r NarrowReduction, ok bool) {
	if !Supported() ||
		!HasNarrowReduction(k.op, k.d, k.from) {
		return r, false
	}
	f := narrowRun{
		runReduction: runReductions[runKeyOf(k.op, k.d)],
		codec:        narrowCodecs[k.from],
		bytes:        int(k.from.Size()),
		wide:         k.wide,
	}
	if k.d == k.from && IsByte(k.d) {
		f.inBytes = byteReductionOf(k.op, k.d)
		f.inBytes.wide = k.wide
	}
	if r.Row, ok = LoadRoutine(f.emitRow); !ok {
		return r, false
	}
	if r.Each, ok = LoadRoutine(f.emitEach); !ok {
		return r, false
	}
	if f.inBytes.op != 0 {
		r.Columns, r.HasColumns = LoadRoutine(f.inBytes.emitColumns)
	}
	return r, true
}

// A byteReduction is a reduction in lanes of one byte by one instruction, which is 0 where there
// is none.
type byteReduction struct {
	op       amd64.Op
	identity uint8 // The element that changes nothing.
	wide     bool  // Vectors of 64 bytes come first.
}

// byteReductionOf is that of an operation.
func byteReductionOf(op hlo.Opcode, d hlo.DType) byteReduction {
	if op == hlo.OpAdd && d == hlo.Pred {
		op = hlo.OpOr
	}
	switch op {
	case hlo.OpAdd:
		return byteReduction{op: amd64.VPADDB, identity: 0}
	case hlo.OpAnd:
		return byteReduction{op: amd64.VPAND, identity: 0xff}
	case hlo.OpOr:
		return byteReduction{op: amd64.VPOR, identity: 0}
	case hlo.OpXor:
		return byteReduction{op: amd64.VPXOR, identity: 0}
	case hlo.OpMaximum:
		if d.IsSigned() {
			return byteReduction{op: amd64.VPMAXSB, identity: 0x80}
		}
		return byteReduction{op: amd64.VPMAXUB, identity: 0}
	case hlo.OpMinimum:
		if d.IsSigned() {
			return byteReduction{op: amd64.VPMINSB, identity: 0x7f}
		}
		return byteReduction{op: amd64.VPMINUB, identity: 0xff}
	}
	return byteReduction{}
}

// chain combines what is at an address with accumulators.
func (f byteReduction) chain(
	c *amd64.Chain, at amd64.Mem, accumulators []amd64.Reg,
) *amd64.Chain {
	sum := c.Pinned(accumulators...)
	c.Assign(
		sum, c.Do(f.op, sum, c.Load(amd64.VMOVUPS, at, 32)),
	)
	return c
}

// emitInit sets accumulators to the identity.
func (f byteReduction) emitInit(
	a *amd64.Assembler, accumulators []amd64.Reg,
) {
	identity := a.Splat32(uint32(f.identity) * 0x01010101)
	for _, r := range accumulators {
		if f.wide {
			a.Emit(amd64.VBROADCASTSS, r.Wide(), identity)
		} else {
			a.Emit(amd64.VMOVUPS, r, identity)
		}
	}
}

// emitRow reduces as many bytes at RSI, of a number in RAX, as whole vectors have, to one vector
// in the first accumulator.
func (f byteReduction) emitRow(a *amd64.Assembler) error {
	all := accumulatorRegs
	from := amd64.Mem{Base: amd64.RSI}
	f.emitInit(a, all)
	loop := &amd64.Loop{
		Counter:  amd64.RAX,
		Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: 1}},
		Width:    1,
		Copies:   len(all),
		Reserved: all,
	}
	if f.wide {
		wide := *loop
		wide.Chain, wide.Wide = f.chain(
			amd64.NewWideChain(), from, all,
		), true
		if _, err := wide.EmitRounds(a); err != nil {
			return err
		}
		for _, r := range all {
			a.Emit(
				amd64.VEXTRACTF64X4, amd64.Y12, r.Wide(), amd64.Imm(1),
			)
			a.Emit(f.op, r, r, amd64.Y12)
		}
	}
	for _, copies := range []int{len(all), 1} {
		loop.Chain, loop.Copies = f.chain(
			&amd64.Chain{}, from, all,
		), copies
		if _, err := loop.EmitRounds(a); err != nil {
			return err
		}
	}
	a.Emit(
		f.op, all[0], all[0], all[1],
	)
	a.Emit(
		f.op, all[2], all[2], all[3],
	)
	a.Emit(
		f.op, all[0], all[0], all[2],
	)
	return nil
}

// The registers of columns: the row at hand, and how many there are.
const (
	columnRow   = amd64.RCX
	columnCount = amd64.R9
	columnRows  = amd64.R10
	columnStep  = amd64.R8
)

// emitColumns reduces columns of bytes at RSI, of a number in RAX, as many at once as vectors
// have, to bytes at RDX.
func (f byteReduction) emitColumns(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	emitLoadArg(a, columnRows, 3)
	emitLoadArg(a, columnStep, 4)
	if f.wide {
		for _, vectors := range []int{4, 1} {
			if err := f.emitColumnTurns(
				a, vectors, true,
			); err != nil {
				return err
			}
		}
		return f.emitColumnTurns(a, 1, false)
	}
	for _, vectors := range []int{4, 1} {
		if err := f.emitColumnTurns(
			a, vectors, false,
		); err != nil {
			return err
		}
	}
	return nil
}

// emitColumnTurns emits the loop over so many vectors of columns, and in it that over rows.
func (f byteReduction) emitColumnTurns(
	a *amd64.Assembler, vectors int, wide bool,
) error {
	accumulators := accumulatorRegs[:vectors]
	c, bytes := &amd64.Chain{}, 32
	if wide {
		c, bytes = amd64.NewWideChain(), 64
	}
	turn, row, done := a.NewLabel(), a.NewLabel(), a.NewLabel()
	a.Bind(turn)
	a.Emit(
		amd64.SUB, amd64.RAX, amd64.Imm(vectors*bytes),
	)
	a.Emit(amd64.JL, done)
	f.emitInit(a, accumulators)
	a.Emit(amd64.MOV, columnRow, amd64.RSI)
	a.Emit(amd64.MOV, columnCount, columnRows)
	a.Align(32)
	a.Bind(row)
	f.chain(
		c, amd64.Mem{Base: columnRow}, accumulators,
	)
	p := amd64.Placement{Copies: vectors, Reserved: accumulators, Wide: wide}
	if err := c.Emit(a, p); err != nil {
		return err
	}
	a.Emit(amd64.ADD, columnRow, columnStep)
	a.Emit(
		amd64.SUB, columnCount, amd64.Imm(1),
	)
	a.Emit(amd64.JG, row)
	for k, r := range accumulators {
		if wide {
			r = r.Wide()
		}
		a.Emit(
			amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX, Disp: int32(k * bytes)}, r,
		)
	}
	a.Emit(
		amd64.ADD, amd64.RSI, amd64.Imm(vectors*bytes),
	)
	a.Emit(
		amd64.ADD, amd64.RDX, amd64.Imm(vectors*bytes),
	)
	a.Emit(amd64.JMP, turn)
	a.Bind(done)
	a.Emit(
		amd64.ADD, amd64.RAX, amd64.Imm(vectors*bytes),
	)
	return nil
}

// A narrowRun is a reduction of elements that are widened.
type narrowRun struct {
	runReduction
	codec   HalfCodec
	bytes   int           // The size of an element.
	wide    bool          // Vectors of 64 bytes come first.
	inBytes byteReduction // What reduces most of a row to one vector, where there is one.
}

// load is the widened elements at an address.
func (f narrowRun) load(
	c *amd64.Chain, from amd64.Mem,
) amd64.Value {
	return f.codec.Load(
		c, from, int32(8*f.bytes),
	)
}

// emitEach reduces x into y, element by element.
func (f narrowRun) emitEach(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	return emitInto(a, f.bytes, 4, 4, func(
		c *amd64.Chain, from, to amd64.Mem,
	) {
		y := c.Load(amd64.VMOVUPS, to, 32)
		c.Store(
			amd64.VMOVUPS, to, 32, f.combine(c, y, f.load(c, from)),
		)
	})
}

// emitRow reduces x into *y: in lanes of one byte first, of which one vector is left.
func (f narrowRun) emitRow(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	rest := amd64.Mem{Base: amd64.RDI, Disp: narrowPartial}
	if f.inBytes.op != 0 {
		if err := f.inBytes.emitRow(a); err != nil {
			return err
		}
		a.Emit(amd64.VMOVUPS, rest, accumulatorRegs[0])
	}
	identity := a.Splat32(uint32(f.identity))
	for _, r := range accumulatorRegs {
		a.Emit(amd64.VMOVUPS, r, identity)
	}
	if f.inBytes.op != 0 {
		p := amd64.Placement{Copies: 4, Reserved: accumulatorRegs}
		if err := f.chain(
			&amd64.Chain{}, rest,
		).Emit(a, p); err != nil {
			return err
		}
	} else if f.wide {
		if err := f.emitWideRounds(a, identity); err != nil {
			return err
		}
	}
	loop := f.loop(&amd64.Chain{})
	loop.Scratch, loop.Mask = amd64.RCX, amd64.Y15
	if err := loop.Emit(a); err != nil {
		return err
	}
	return f.emitTotal(a, amd64.VMOVSS)
}

// chain combines elements at an address with the accumulators.
func (f narrowRun) chain(
	c *amd64.Chain, from amd64.Mem,
) *amd64.Chain {
	sum := c.Pinned(accumulatorRegs...)
	c.Assign(
		sum, f.combine(c, sum, f.load(c, from)),
	)
	return c
}

// loop is that over a row.
func (f narrowRun) loop(
	c *amd64.Chain,
) *amd64.Loop {
	return &amd64.Loop{
		Chain: f.chain(
			c, amd64.Mem{Base: amd64.RSI},
		),
		Counter:  amd64.RAX,
		Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: f.bytes}},
		Width:    4,
		Copies:   len(accumulatorRegs),
		Reserved: accumulatorRegs,
	}
}

// emitWideRounds reduces whole rounds of vectors of 64 bytes, and the halves of these into the low
// ones.
func (f narrowRun) emitWideRounds(
	a *amd64.Assembler, identity amd64.Mem,
) error {
	for _, r := range accumulatorRegs {
		a.Emit(amd64.VBROADCASTSS, r.Wide(), identity)
	}
	loop := f.loop(amd64.NewWideChain())
	loop.Wide = true
	if _, err := loop.EmitRounds(a); err != nil {
		return err
	}
	return f.emitHalves(a)
}
