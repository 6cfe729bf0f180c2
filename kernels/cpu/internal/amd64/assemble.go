package amd64

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// poolAlign keeps constants on other cache lines than instructions.
const poolAlign = 64

// Assemble returns the machine code, its constants behind it, or the first
// mistake. The code may be put at any address that is a multiple of 64.
func (a *Assembler) Assemble() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	if a.pool != 0 && !a.labels[a.pool-1].bound {
		a.Align(poolAlign)
		a.Bind(a.pool)
	}
	for k := range a.labels {
		if a.err == nil && !a.labels[k].bound {
			a.err = fmt.Errorf("%s is bound nowhere", Label(k+1))
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	a.before = a.relax()
	code := a.fill(a.before)
	a.resolve(code, a.before)
	return append(code, a.constants...), nil
}

// WithoutNonTemporal returns code, which Assemble returned, with VMOVUPS for every VMOVNTPS:
// their stores to memory differ in the opcode only (VEX.256.0F.WIG 2B and 11, EVEX.512.0F.W0
// the same; Intel SDM 2B). It is for memory that is no multiple of the vector.
func (a *Assembler) WithoutNonTemporal(code []byte) []byte {
	code = slices.Clone(code)
	for _, p := range a.nonTemporal {
		at := p.at + a.before[p.gaps] + 2
		switch code[at-2] {
		case 0xc4: // a prefix of three bytes
			at++
		case 0x62: // and of four
			at += 2
		}
		code[at] = 0x11
	}
	return code
}

// Offset returns where label is in the code that Assemble returned, in bytes
// from its start, and -1 before that or if there is no such label.
func (a *Assembler) Offset(label Label) int {
	if a.before == nil || !a.has(label) {
		return -1
	}
	return a.address(label, a.before)
}

// relax sizes the gaps: jumps start short and grow where they do not reach,
// until none does. It returns the bytes of gaps before gap 0, 1, …, n.
func (a *Assembler) relax() []int {
	before := make([]int, len(a.gaps)+1)
	for grown := true; grown; {
		for k := range a.gaps {
			g := &a.gaps[k]
			if g.align != 0 {
				g.size = -(g.at + before[k]) & (g.align - 1)
			}
			before[k+1] = before[k] + g.size
		}
		grown = a.grow(before)
	}
	return before
}

// grow makes short jumps that do not reach long, and reports whether there was
// one.
func (a *Assembler) grow(before []int) bool {
	grown := false
	for k := range a.gaps {
		g := &a.gaps[k]
		if g.align == 0 && g.size == 2 {
			d := a.distance(g, before[k+1], before)
			if d != int(int8(d)) {
				g.size = longJump(g.opcode)
				grown = true
			}
		}
	}
	return grown
}

// jmpShort is the opcode of a short jump.
const jmpShort = 0xeb

// longJump is the size of a long jump.
func longJump(opcode byte) int {
	if opcode == jmpShort {
		return 5
	}
	return 6
}

// distance returns how far g jumps, counted from its end.
func (a *Assembler) distance(g *gap, end int, before []int) int {
	return a.address(g.target, before) - (g.at + end)
}

// address returns where a label is.
func (a *Assembler) address(l Label, before []int) int {
	p := a.labels[l-1]
	return p.at + before[p.gaps]
}

// fill returns the code with its gaps filled.
func (a *Assembler) fill(before []int) []byte {
	out := make(
		[]byte,
		0,
		len(a.code)+before[len(a.gaps)]+len(a.constants),
	)
	from := 0
	for k := range a.gaps {
		g := &a.gaps[k]
		out = append(out, a.code[from:g.at]...)
		from = g.at
		if g.align != 0 {
			out = appendNops(out, g.size)
			continue
		}
		out = g.jump(
			out, a.distance(g, before[k+1], before),
		)
	}
	return append(out, a.code[from:]...)
}

// jump appends a jump over the distance.
func (g *gap) jump(out []byte, distance int) []byte {
	switch g.size {
	case 2:
		return append(out, g.opcode, byte(distance))
	case 5:
		out = append(out, 0xe9)
	default:
		out = append(out, 0x0f, g.opcode+0x10)
	}
	return binary.LittleEndian.AppendUint32(out, uint32(distance))
}

// resolve fills in the offsets to labels; they hold a displacement already.
func (a *Assembler) resolve(code []byte, before []int) {
	for _, r := range a.refs {
		at := r.place.at + before[r.place.gaps]
		word := code[at : at+4]
		offset := a.address(r.label, before) - (at + r.end)
		binary.LittleEndian.PutUint32(
			word, binary.LittleEndian.Uint32(word)+uint32(offset),
		)
	}
}

// nops are the NOPs of 1 … 9 bytes that Intel recommends (SDM 2B, NOP).
var nops = [...]string{
	"", "\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00", "\x0f\x1f\x44\x00\x00",
	"\x66\x0f\x1f\x44\x00\x00", "\x0f\x1f\x80\x00\x00\x00\x00",
	"\x0f\x1f\x84\x00\x00\x00\x00\x00", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
}

// appendNops appends n bytes of NOPs, as few instructions as possible.
func appendNops(out []byte, n int) []byte {
	for ; n > 0; n -= min(n, len(nops)-1) {
		out = append(out, nops[min(n, len(nops)-1)]...)
	}
	return out
}
