package gemm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestBytePanels emulates the packing of panels of bytes, on every platform, with memory that
// ends where the operands do.
func TestBytePanels(t *testing.T) {
	all := listings(t)
	r := rand.New(rand.NewPCG(31, 32))
	for _, sign := range []string{"Signed", "Unsigned"} {
		for panels := 1; panels <= 2; panels++ {
			name := fmt.Sprintf("bytePanels%s%d", sign, panels)
			for quads := range 5 {
				x := panelPacking{all[name], name, 1, 4, 32, panels, quads}
				x.emulate(t, r)
			}
		}
	}
	for pairs := range 5 {
		x := panelPacking{all["wordPanel"], "wordPanel", 2, 2, 32, 1, pairs}
		x.emulate(t, r)
	}
}

// A panelPacking packs so many rows of lanes, of elements of size bytes.
type panelPacking struct {
	code                               *listing
	name                               string
	size, terms, columns, panels, rows int
}

// emulate compares the emulation with plain copies.
func (x panelPacking) emulate(t *testing.T, r *rand.Rand) {
	t.Helper()
	if x.code == nil {
		t.Fatalf("%s is not there", x.name)
	}
	width := x.panels * x.columns * x.size
	stride := width + r.IntN(40)
	rows := x.terms * x.rows
	from := randomBytes(r, max(0, rows-1)*stride+width)
	panel := 4*x.columns*x.rows + 64
	to := randomBytes(r, x.panels*panel)
	sums := randomBytes(r, 4*x.columns*x.panels)
	var vm machine
	at := vm.place(to)
	sumsAt := vm.place(sums)
	vm.args = map[string]uint64{
		"quads":      uint64(x.rows),
		"pairs":      uint64(x.rows),
		"to":         at,
		"panel":      uint64(panel),
		"from":       vm.place(from),
		"fromStride": uint64(stride),
		"sums":       sumsAt,
		"order":      vm.place(x.order()),
	}
	want := bytes.Clone(vm.mem)
	if err := vm.run(x.code); err != nil {
		t.Fatalf("%s, %d rows: %v", x.name, x.rows, err)
	}
	for j := range x.panels * x.columns {
		sum := int32(0)
		for p := range rows {
			e := from[p*stride+j*x.size:][:x.size]
			lane := j/x.columns*panel + (p/x.terms*x.columns+j%x.columns)*4
			copy(want[int(at)+lane+p%x.terms*x.size:], e)
			if x.size == 1 && x.name[len("bytePanels")] == 'U' {
				sum += int32(e[0])
			} else {
				sum += int32(int8(e[0]))
			}
		}
		if x.size == 1 {
			binary.LittleEndian.PutUint32(want[int(sumsAt)+4*j:], uint32(sum))
		}
	}
	if !bytes.Equal(want, vm.mem) {
		t.Fatalf("%s, %d rows: a wrong result", x.name, x.rows)
	}
}

// order is the indices of the permutation, which Go without assembly does not have.
func (x panelPacking) order() []byte {
	var order []byte
	for at := range x.terms * x.columns {
		row, column := at%x.terms, at/x.terms
		e := row*x.columns + column
		if x.size == 1 {
			order = append(order, byte(e))
		} else {
			order = binary.LittleEndian.AppendUint16(order, uint16(e))
		}
	}
	return append(order, 1, 1, 1, 1)
}

// TestWideCopies emulates the copies of four panels of vectors of 512 bits.
func TestWideCopies(t *testing.T) {
	code := listings(t)["copyWidePanels"]
	r := rand.New(rand.NewPCG(33, 34))
	const panels, line = 4, 128
	for rows := range 5 {
		stride, panel := panels*line+r.IntN(40), rows*line+64
		from := randomBytes(r, max(0, rows-1)*stride+panels*line)
		to := randomBytes(r, panels*panel)
		var vm machine
		at := vm.place(to)
		vm.args = map[string]uint64{
			"rows":       uint64(rows),
			"to":         at,
			"panel":      uint64(panel),
			"from":       vm.place(from),
			"fromStride": uint64(stride),
		}
		want := bytes.Clone(vm.mem)
		if err := vm.run(code); err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		for q := range panels {
			for i := range rows {
				copy(want[int(at)+q*panel+i*line:], from[i*stride+q*line:][:line])
			}
		}
		if !bytes.Equal(want, vm.mem) {
			t.Fatalf("%d rows: a wrong result", rows)
		}
	}
}
