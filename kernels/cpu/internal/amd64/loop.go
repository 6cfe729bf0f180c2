package amd64

import "errors"

// A Loop runs a Chain over elements in memory, Copies vectors at a time, then
// one, then the rest under a mask.
type Loop struct {
	Chain    *Chain
	Counter  Reg       // elements to do, 0 or more; 0 afterwards
	Pointers []Pointer // advanced after every round but the masked one
	Width    int       // bytes of an element of a vector: 4 or 8, of EmitRounds also 1
	Copies   int       // at most; fewer if the registers do not hold them
	Scratch  Reg       // a general register, for the masked round
	Mask     Reg       // a vector register, for the masked round
	Reserved []Reg     // vector registers that values must not be given

	// Spill and SpillSlots are as in Placement, for when not even one copy fits.
	Spill      Mem
	SpillSlots int

	// Wide is as in Placement, of EmitRounds alone.
	Wide bool
}

// A Pointer is a register that moves Bytes an element.
type Pointer struct {
	Reg   Reg
	Bytes int
}

// Emit appends the loop to a. It needs Width, Scratch and Mask.
func (l *Loop) Emit(a *Assembler) error {
	if err := l.EmitWhole(a); err != nil {
		return err
	}
	end := a.NewLabel()
	a.Emit(TEST, l.Counter, l.Counter)
	a.Emit(JE, end)
	a.Emit(LEA, l.Scratch, a.Data(laneMasks()))
	a.Emit(NEG, l.Counter)
	a.Emit(VMOVUPS, l.Mask, Mem{
		Base:  l.Scratch,
		Index: l.Counter,
		Scale: uint8(l.Width),
		Disp:  32,
	})
	a.Emit(NEG, l.Counter)
	err := l.Chain.Emit(a, l.placement(1, l.Mask))
	a.Emit(XOR, l.Counter, l.Counter)
	a.Bind(end)
	return err
}

// laneMasks returns 64 bytes of which the 32 that start n elements before the
// middle turn on the first n lanes.
func laneMasks() []byte {
	masks := make([]byte, 64)
	for k := range 32 {
		masks[k] = 0xff
	}
	return masks
}

// EmitWhole appends the loop over whole vectors to a; what is left, less than
// a vector, is in Counter, and the pointers are at it.
func (l *Loop) EmitWhole(a *Assembler) error {
	if l.Width != 4 && l.Width != 8 {
		return errors.New("loop: an element is 4 or 8 bytes wide")
	}
	if l.Copies > 1 {
		if err := l.widest(a); err != nil {
			return err
		}
	}
	return l.rounds(a, 1)
}

// EmitRounds appends the loop over rounds of as many vectors as fit, and of no fewer; what is
// left, less than such a round, is in Counter, and the pointers are at it. It returns how many
// elements a round has. On an error it leaves a's code as it was.
func (l *Loop) EmitRounds(a *Assembler) (int, error) {
	for copies := l.Copies; ; copies-- {
		before := a.Mark()
		err := l.rounds(a, copies)
		if err == nil {
			return l.round(copies), nil
		}
		a.Undo(before)
		if copies == 1 || !NeedsRegisters(err) {
			return 0, err
		}
	}
}

// round is the elements of so many vectors.
func (l *Loop) round(copies int) int {
	if l.Wide {
		copies *= 2
	}
	return copies * 32 / l.Width
}

// widest appends the loop with as many copies as fit, if that is more than one.
func (l *Loop) widest(a *Assembler) error {
	for copies := l.Copies; copies > 1; copies-- {
		before := a.Mark()
		err := l.rounds(a, copies)
		if !errors.As(err, new(registersError)) {
			return err
		}
		a.Undo(before)
	}
	return nil
}

// rounds appends the loop over rounds of a number of vectors.
func (l *Loop) rounds(a *Assembler, copies int) error {
	step := l.round(copies)
	loop := a.NewLabel()
	done := a.NewLabel()
	a.Emit(SUB, l.Counter, Imm(step))
	a.Emit(JL, done)
	a.Align(32)
	a.Bind(loop)
	err := l.Chain.Emit(a, l.placement(copies, 0))
	if err != nil {
		return err
	}
	for _, p := range l.Pointers {
		a.Emit(ADD, p.Reg, Imm(step*p.Bytes))
	}
	a.Emit(SUB, l.Counter, Imm(step))
	a.Emit(JGE, loop)
	a.Bind(done)
	a.Emit(ADD, l.Counter, Imm(step))
	return nil
}

// placement allows spilling to one copy only: more would not be faster then.
func (l *Loop) placement(copies int, mask Reg) Placement {
	p := Placement{
		Copies:   copies,
		Mask:     mask,
		Active:   l.Counter,
		Scratch:  l.Scratch,
		Reserved: l.Reserved,
		Wide:     l.Wide,
	}
	if copies == 1 {
		p.Spill = l.Spill
		p.SpillSlots = l.SpillSlots
	}
	return p
}
