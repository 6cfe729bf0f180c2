package vector

import (
	"testing"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// wideMachine emulates the instructions of a block in vectors of 64 bytes. An element of the source
// is a number; addresses are numbers of four bytes.
type wideMachine struct {
	general map[amd64.Reg]int64
	vectors [16][16]int32
	memory  map[int64]int32
}

// sourceAt is where the source begins, columnsAt where the columns go.
const sourceAt, columnsAt, rowStep = 1 << 30, 1 << 20, 1 << 12

// at is the address of an operand.
func (m *wideMachine) at(x amd64.Mem) int64 {
	return m.general[x.Base] + m.general[x.Index]*int64(x.Scale) + int64(x.Disp)
}

// lanes are those of an operand, of which memory has some.
func (m *wideMachine) lanes(x amd64.Operand, n int) (all [16]int32) {
	if r, is := x.(amd64.Reg); is {
		return m.vectors[r&15]
	}
	for k := range n {
		all[k] = m.memory[m.at(x.(amd64.Mem))+int64(4*k)]
	}
	return all
}

// width is the number of lanes of a register.
func width(r amd64.Reg) int {
	if r >= amd64.Z0 {
		return 16
	}
	return 8
}

// do emulates an instruction, and reports whether it is known.
func (m *wideMachine) do(i amd64.Instruction) bool {
	o := i.Operands
	switch i.Op {
	case amd64.MOV:
		m.general[o[0].(amd64.Reg)] = map[int32]int64{0: 1, 8 * bandFrom: sourceAt, 8 * bandTo: columnsAt, 8 * bandFromStep: rowStep}[o[1].(amd64.Mem).Disp]
	case amd64.LEA:
		m.general[o[0].(amd64.Reg)] = m.at(o[1].(amd64.Mem))
	case amd64.VMOVUPS:
		if to, stores := o[0].(amd64.Mem); stores {
			for k, x := range m.lanes(o[1], 16) {
				m.memory[m.at(to)+int64(4*k)] = x
			}
			return true
		}
		r := o[0].(amd64.Reg)
		m.vectors[r&15] = m.lanes(o[1], width(r))
	default:
		return m.shuffle(i.Op, o)
	}
	return true
}

// shuffle emulates an instruction on two vectors.
func (m *wideMachine) shuffle(op amd64.Op, o []amd64.Operand) bool {
	x, y := m.lanes(o[1], 16), m.lanes(o[2], 8)
	z := &m.vectors[o[0].(amd64.Reg)&15]
	for k := range z {
		quarter, lane := k&^3, k&3
		pair := [2]*[16]int32{&x, &y}
		switch op {
		case amd64.VINSERTF64X4:
			if z[k] = x[k]; k >= 8 {
				z[k] = y[k-8]
			}
		case amd64.VUNPCKLPS:
			z[k] = pair[lane%2][quarter+lane/2]
		case amd64.VUNPCKHPS:
			z[k] = pair[lane%2][quarter+2+lane/2]
		case amd64.VUNPCKLPD:
			z[k] = pair[lane/2][quarter+lane%2]
		case amd64.VUNPCKHPD:
			z[k] = pair[lane/2][quarter+2+lane%2]
		case amd64.VSHUFF32X4:
			from := int(o[3].(amd64.Imm)) >> (2 * (k / 4)) & 3
			z[k] = pair[k/8][4*from+lane]
		default:
			return false
		}
	}
	return true
}

// TestWideBlock emulates a block in vectors of 64 bytes, also where there are none.
func TestWideBlock(t *testing.T) {
	a := &amd64.Assembler{Record: true}
	if err := emitWide32(a, false); err != nil {
		t.Fatal(err)
	}
	m := &wideMachine{general: map[amd64.Reg]int64{}, memory: map[int64]int32{}}
	for row := range int64(wideBlock) {
		for k := range int64(wideBlock) {
			m.memory[sourceAt+row*rowStep+4*k] = int32(100*row + k)
		}
	}
	code, _ := a.Recorded()
	for _, i := range code {
		if !m.do(i) {
			t.Fatalf("%v is not emulated", i)
		}
	}
	for k := range int64(wideBlock) {
		for row := range int64(wideBlock) {
			if got := m.memory[columnsAt+k*BandStep+4*row]; got != int32(100*row+k) {
				t.Fatalf("column %d, row %d: %d", k, row, got)
			}
		}
	}
}
