package vector

import (
	"math"
	"sync"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A scan of a run, x[0], x[0]+x[1], …, is a chain of operations. Within a vector of
// eight elements it is made of three steps instead, in which each element is combined
// with the one one, two and four places before it (Kogge and Stone, 1973; the last step
// takes the total of the lower half). The chain from vector to vector is then one
// operation: what came before a vector is combined with the vector's total while the
// steps of the next ones are under way.

// ScanArgs is the argument block of scans.
type ScanArgs struct {
	// N is the number of elements. Of runs it is a multiple of Lanes.
	N int64
	// X is the first vector of the run and Y where its results go; of a scan that goes
	// backwards they are the last ones. Of rows, X is a row and Y the row of results.
	X, Y *float32
	// Before is, of rows, the row of results that X is combined with.
	Before *float32
	// Carry is, of runs, what comes before the first element, and then the last result.
	Carry float32
}

// scanCarry is the offset of ScanArgs.Carry.
const scanCarry = 32

// Scan is the routines of one operation.
type Scan struct {
	// Forward and Backward scan a run from its first or from its last element.
	Forward, Backward amd64.Func
	// Rows combines two rows to a third one.
	Rows amd64.Func
}

// Scans are the routines by operation, assembled at first use for the life of the
// process.
var Scans = sync.OnceValue(func() map[hlo.Opcode]Scan {
	made := map[hlo.Opcode]Scan{}
	if !Supported() {
		return made
	}
	for op, f := range Reductions {
		forward, ok := LoadRoutine(func(a *amd64.Assembler) error {
			return f.emitScan(a, scanForward)
		})
		backward, ok2 := LoadRoutine(func(a *amd64.Assembler) error {
			return f.emitScan(a, scanBackward)
		})
		rows, ok3 := LoadRoutine(f.emitScanRows)
		if ok && ok2 && ok3 {
			made[op] = Scan{forward, backward, rows}
		}
	}
	return made
})

// A scanShuffle is how elements come to those that they are combined with: an
// immediate of VPERMILPS, after one of VPERM2F128 where that is not noHalves, and the
// lanes to which none comes.
type scanShuffle struct {
	halves, lanes amd64.Imm
	none          amd64.Imm
}

// noHalves leaves halves where they are: the first two steps combine elements of the
// same half.
const noHalves = -1

// A scanDirection is the three steps of a scan, how its total comes to all lanes, and
// how far pointers move for each element.
type scanDirection struct {
	steps [3]scanShuffle
	total scanShuffle
	bytes int
}

// The two directions mirror each other: forwards, lanes 3 and 7 are the last ones of
// their halves, and lane 7 has the total; backwards, lanes 4 and 0 are and lane 0 has it.
var (
	scanForward = scanDirection{
		[3]scanShuffle{
			{noHalves, 0x90, 0x11},
			{noHalves, 0x40, 0x33},
			{0x00, 0xff, 0x0f},
		},
		scanShuffle{0x11, 0xff, 0}, 4,
	}
	scanBackward = scanDirection{
		[3]scanShuffle{
			{noHalves, 0xf9, 0x88},
			{noHalves, 0xfe, 0xcc},
			{0x11, 0x00, 0xf0},
		},
		scanShuffle{0x00, 0x00, 0}, -4,
	}
)

// apply moves the elements of x; lanes to which none comes take the identity.
func (s scanShuffle) apply(
	c *amd64.Chain, x, identity amd64.Value,
) amd64.Value {
	if s.halves != noHalves {
		x = c.Do(
			amd64.VPERM2F128, x, x, s.halves,
		)
	}
	x = c.Do(amd64.VPERMILPS, x, s.lanes)
	if s.none == 0 {
		return x
	}
	return c.Do(
		amd64.VBLENDPS, x, identity, s.none,
	)
}

// emitScan emits the scan of a run of whole vectors.
func (f Reduction) emitScan(
	a *amd64.Assembler, d scanDirection,
) error {
	EmitLoadArgs(a)
	carryReg := amd64.Y8
	a.Emit(
		amd64.VBROADCASTSS, carryReg,
		amd64.Mem{Base: amd64.RDI, Disp: scanCarry},
	)
	c := &amd64.Chain{}
	carry := c.Pinned(carryReg)
	nothing := math.Float32bits(f.Identity)
	if f.op == amd64.VADDPS {
		nothing = 1 << 31 // −0: with 0, −0 would become 0
	}
	identity := c.Const32(nothing)
	// What comes before an element, in the direction of the scan, is the left operand.
	x := c.Load(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 0,
	)
	for _, s := range d.steps {
		x = f.Combine(
			c, s.apply(c, x, identity), x,
		)
	}
	// The carry waits for nothing but itself and the total, which no store delays.
	c.Store(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX},
		0, f.Combine(c, carry, x),
	)
	c.Assign(
		carry, f.Combine(
			c, carry, d.total.apply(
				c, x, identity,
			),
		),
	)
	loop := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Pointers: []amd64.Pointer{
			{Reg: amd64.RSI, Bytes: d.bytes},
			{Reg: amd64.RDX, Bytes: d.bytes},
		},
		Width:    4,
		Copies:   1,
		Reserved: []amd64.Reg{carryReg},
	}
	if err := loop.EmitWhole(a); err != nil {
		return err
	}
	a.Emit(
		amd64.VMOVSS,
		amd64.Mem{
			Base: amd64.RDI, Disp: scanCarry,
		}, carryReg.X(),
	)
	return nil
}

// emitScanRows emits the combination of a row of results with the next row.
func (f Reduction) emitScanRows(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	a.Emit(
		amd64.MOV, amd64.RBX, amd64.Mem{
			Base: amd64.RDI, Disp: 24,
		},
	)
	c := &amd64.Chain{}
	before := c.Load(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RBX}, 32,
	)
	x := c.Load(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 32,
	)
	c.Store(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX},
		32, f.Combine(c, before, x),
	)
	loop := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Pointers: []amd64.Pointer{
			{Reg: amd64.RSI, Bytes: 4},
			{Reg: amd64.RDX, Bytes: 4},
			{Reg: amd64.RBX, Bytes: 4},
		},
		Width:   4,
		Copies:  4,
		Scratch: amd64.RCX,
		Mask:    amd64.Y15,
	}
	return loop.Emit(a)
}
