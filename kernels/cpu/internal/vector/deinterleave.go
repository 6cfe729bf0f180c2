package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Reducing a run by a computation of pairs takes neighbours apart again and again:
// the elements at even places are the left operands, those at odd places the right
// ones. Two vectors of eight elements give one vector of each.

// LoadPairs loads eight pairs of neighbours of four bytes at an address, which moves by
// eight bytes a pair, and returns the first ones of the pairs and the second ones. A shuffle
// within halves gathers the elements of each side, a permutation orders them.
func LoadPairs(c *amd64.Chain, at amd64.Reg) (left, right amd64.Value) {
	low := c.Load(amd64.VMOVUPS, amd64.Mem{Base: at}, 64)
	high := c.Load(amd64.VMOVUPS, amd64.Mem{Base: at, Disp: 32}, 64)
	return split(c, low, high)
}

// split is the elements at even places of two vectors, and those at odd places.
func split(
	c *amd64.Chain, low, high amd64.Value,
) (left, right amd64.Value) {
	const seconds = amd64.Imm(0xdd)
	left = firstOfPairs(c, low, high)
	right = c.Do(
		amd64.VPERMPD,
		c.Do(
			amd64.VSHUFPS,
			low, high, seconds,
		),
		inOrder,
	)
	return left, right
}

// inOrder orders the fours of a vector whose middle two are exchanged.
const inOrder = amd64.Imm(0xd8)

// firstOfPairs is the elements at even places of two vectors.
func firstOfPairs(c *amd64.Chain, low, high amd64.Value) amd64.Value {
	const firsts = amd64.Imm(0x88)
	return c.Do(
		amd64.VPERMPD,
		c.Do(
			amd64.VSHUFPS,
			low, high, firsts,
		),
		inOrder,
	)
}

// TakeApart loads pairs of neighbours of four bytes at an address: eight first ones and eight
// second ones. The next copy of the chain has the next eight pairs.
func TakeApart(
	c *amd64.Chain, at amd64.Mem,
) (left, right amd64.Value) {
	low := c.Load(amd64.VMOVUPS, at, 64)
	high := c.Load(amd64.VMOVUPS, next(at), 64)
	return split(c, low, high)
}

// PutTogether stores pairs of eight first ones and eight second ones, past the caches or not.
func PutTogether(
	c *amd64.Chain, at amd64.Mem,
	left, right amd64.Value, nonTemporal bool,
) {
	op := amd64.VMOVUPS
	if nonTemporal {
		op = amd64.VMOVNTPS
	}
	// Within halves, the unpacked vectors have pairs 0, 1, 4, 5 and pairs 2, 3, 6, 7.
	const lowHalves = amd64.Imm(0x20)
	const highHalves = amd64.Imm(0x31)
	low := c.Do(amd64.VUNPCKLPS, left, right)
	high := c.Do(amd64.VUNPCKHPS, left, right)
	x := c.Do(amd64.VPERM2F128, low, high, lowHalves)
	y := c.Do(amd64.VPERM2F128, low, high, highHalves)
	c.Store(op, at, 64, x)
	c.Store(op, next(at), 64, y)
}

// next is the vector behind one.
func next(at amd64.Mem) amd64.Mem {
	at.Disp += Lanes * 4
	return at
}

// secondsRoutine loads every second element of four bytes to scratch, in whole vectors.
var secondsRoutine = sync.OnceValues(func() (amd64.Func, bool) {
	if !Supported() {
		return amd64.Func{}, false
	}
	return LoadRoutine(func(a *amd64.Assembler) error {
		EmitLoadArgs(a)
		c := &amd64.Chain{}
		at := amd64.Mem{Base: amd64.RSI}
		low := c.Load(amd64.VMOVUPS, at, 64)
		high := c.Load(
			amd64.VMOVUPS,
			next(at), 64,
		)
		to := amd64.Mem{Base: amd64.RDX}
		c.Store(
			amd64.VMOVUPS, to, 32,
			firstOfPairs(c, low, high),
		)
		loop := &amd64.Loop{
			Chain:   c,
			Counter: amd64.RAX,
			Pointers: []amd64.Pointer{
				{Reg: amd64.RSI, Bytes: 8},
				{Reg: amd64.RDX, Bytes: 4},
			},
			Width:  4,
			Copies: 2,
		}
		return loop.EmitWhole(a)
	})
})

// SecondsReader is the transfer to scratch of a type of four bytes that scratch holds as it is,
// as of the real parts of complex numbers, by machine code where every second element is read.
// The last vector is left to the other transfer: the element behind the last one may be
// behind the array.
func SecondsReader[T portable.Number](
	d hlo.DType, otherwise portable.Transfer[T],
) portable.Transfer[T] {
	if !portable.IsNative(d) || d.Size() != 4 {
		return otherwise
	}
	return func(scratch []T, data []byte, at, stride int64) {
		f, ok := secondsRoutine()
		if ok && stride == 2 {
			for len(scratch) > Lanes {
				n := int64(min(MaxCallLength, (len(scratch)-1)/Lanes*Lanes))
				args := convertArgs{
					n, unsafe.Pointer(&data[4*at]),
					unsafe.Pointer(unsafe.SliceData(scratch)),
				}
				f.Call(unsafe.Pointer(&args))
				scratch, at = scratch[n:], at+2*n
			}
		}
		otherwise(scratch, data, at, stride)
	}
}
