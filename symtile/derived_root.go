package symtile

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A cover is an op whose tiles hold every element of an array exactly once,
// over the tile ids of all parallel dimensions but those in once.
//
// The tiles of the dominant output are a cover, and so are the operand's tiles
// of an operation that only moves elements or works on each of them: what is
// read of a cover covers the operand, and what is made of one covers the
// result. So an output that such operations join with a covered array is stored
// from the tiles that these operations make of it.
type cover struct {
	op   int
	once []int
}

// An apartError is the reason why output number Output has no tiles made of
// those of the other outputs. Analyze then tiles it apart from them.
type apartError struct {
	Output int
	Err    error
}

// Error is the reason.
func (e *apartError) Error() string {
	return fmt.Sprintf("output %d: %v", e.Output, e.Err)
}

// Unwrap is the reason.
func (e *apartError) Unwrap() error { return e.Err }

// movesElements reports whether every element of the result of the code is one
// element of each operand that has a tile of its own, and the other way round.
func movesElements(code hlo.Opcode) bool {
	switch code {
	case hlo.OpCopy, hlo.OpReshape, hlo.OpTranspose, hlo.OpReverse,
		hlo.OpBitcast, hlo.OpOptimizationBarrier, hlo.OpGetTupleElement:
		return true
	}
	return code.Elementwise()
}

// addCover notes that op n covers its instruction, and what follows from that
// of the ops that it reads.
func (b *builder) addCover(n int, once []int) {
	op := b.prog.Ops[n]
	if _, known := b.covered[op.Instr]; !known {
		b.covered[op.Instr] = cover{n, once}
	}
	b.coverArgs(n, once)
}

// coverArgs adds the covers among the arguments of a cover. Ops of one
// instruction that read each other are the steps of a bitcast, of which the last
// is the instruction's.
func (b *builder) coverArgs(n int, once []int) {
	op := b.prog.Ops[n]
	if !movesElements(op.Code) {
		return
	}
	for _, a := range op.Args {
		arg := b.prog.Ops[a]
		switch _, known := b.covered[arg.Instr]; {
		case b.nestOf[a] != nil,
			op.Code.Elementwise() && !slices.EqualFunc(op.Tile, arg.Tile, DimTile.Equal):
		case arg.Instr == op.Instr:
			b.coverArgs(a, once)
		case !known:
			b.addCover(a, once)
		}
	}
}

// derivedCover makes a cover of i out of another cover, by the operations on
// single elements between them; nil where there are none.
func (b *builder) derivedCover(i *hlo.Instr) (*cover, error) {
	way := b.wayToCover(i, map[*hlo.Instr]bool{})
	if way == nil {
		return nil, nil
	}
	c := b.covered[way[0]]
	for _, user := range way[1:] {
		var err error
		if c.op, err = b.derivedOp(user, c.op); err != nil {
			return nil, err
		}
	}
	return &c, b.ring.Err()
}

// derivedOp adds the op of an instruction that takes the elements of op from one
// by one.
func (b *builder) derivedOp(i *hlo.Instr, from int) (int, error) {
	t := slices.Clone(b.prog.Ops[from].Tile)
	up, moves := resultPropagators[i.Op]
	if !moves {
		return b.op(i, t)
	}
	t, err := up(b, i, 0, t)
	if err != nil {
		return 0, err
	}
	return b.movedTile(i, from, t), nil
}

// wayToCover lists instructions, each an operand of the next, from one that is
// covered to i; nil where there is none. It walks operands that i takes element
// by element, each instruction once.
func (b *builder) wayToCover(i *hlo.Instr, seen map[*hlo.Instr]bool) []*hlo.Instr {
	if seen[i] {
		return nil
	}
	seen[i] = true
	if _, ok := b.covered[i]; ok {
		return []*hlo.Instr{i}
	}
	if n := b.existingOp(i); n >= 0 {
		b.addCover(n, b.absentDims(b.prog.Ops[n].Tile))
		return []*hlo.Instr{i}
	}
	if !movesElements(i.Op) {
		return nil
	}
	for _, o := range i.Operands {
		if o.Shape.DType != hlo.Tuple && o.Shape.Elements() != i.Shape.Elements() ||
			i.Op.Elementwise() && o.Shape.Rank() != i.Shape.Rank() {
			continue
		}
		if way := b.wayToCover(o, seen); way != nil {
			return append(way, i)
		}
	}
	return nil
}

// movedTile adds the op of an instruction that moves the elements of op from
// into tile t.
func (b *builder) movedTile(i *hlo.Instr, from int, t Tile) int {
	if i.Op == hlo.OpBitcast {
		return b.bitcastSteps(i, from, t)
	}
	key := b.key(i, i.Op, t)
	if n, ok := b.memo[key]; ok {
		return n
	}
	var perm []int
	if i.Op == hlo.OpTranspose {
		perm = ints(i.Attrs.Dimensions)
	}
	return b.add(key, Op{
		Instr: i,
		Code:  i.Op,
		Tile:  t,
		Args:  []int{from},
		Perm:  perm,
	})
}
