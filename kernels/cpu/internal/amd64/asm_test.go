package amd64

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestEncodings assembles testdata/encodings.txt, which objdump agrees with (see
// TestEncodingsAgainstObjdump), so that encodings are held without it too.
//
//	asm
//	loop: vaddps ymm1, ymm2, [rax+rcx*4-0x20]
//	jne loop
//	----
//	the bytes of each line, as objdump writes them, or the mistake
func TestEncodings(t *testing.T) {
	datadriven.RunTest(t, "testdata/encodings.txt", func(t *testing.T, d *datadriven.TestData) string {
		s := &source{a: &Assembler{}, labels: map[string]Label{}}
		var starts []place
		lines := strings.Split(strings.TrimSpace(d.Input), "\n")
		for _, line := range lines {
			starts = append(starts, s.line(line))
		}
		code, err := s.a.Assemble()
		if err != nil {
			return err.Error() + "\n"
		}
		var out strings.Builder
		for k, from := range starts {
			to := len(code) - len(s.a.constants)
			if k+1 < len(starts) {
				to = s.address(starts[k+1])
			}
			fmt.Fprintf(&out, "% x\n", code[s.address(from):to])
		}
		return out.String()
	})
}

// A source is assembly text on its way into an Assembler.
type source struct {
	a      *Assembler
	labels map[string]Label
}

func (s *source) address(p place) int { return p.at + s.a.before[p.gaps] }

// line reads one line, "[LABEL:] [MNEMONIC OPERANDS]" or ".align N", and returns
// where it starts.
func (s *source) line(line string) place {
	start := place{at: len(s.a.code), gaps: len(s.a.gaps)}
	if name, rest, ok := strings.Cut(line, ":"); ok {
		s.a.Bind(s.label(name))
		line = rest
	}
	mnemonic, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch mnemonic {
	case "":
		return start
	case ".align":
		s.a.Align(int(s.number(rest)))
		return start
	}
	var operands []Operand
	for text := range strings.SplitSeq(rest, ",") {
		if text = strings.TrimSpace(text); text != "" {
			operands = append(operands, s.operand(text))
		}
	}
	s.a.Emit(opNamed(mnemonic, operands), operands...)
	return start
}

// opNamed returns the first instruction of that name with a form for operands,
// else the first.
func opNamed(mnemonic string, operands []Operand) Op {
	first := Op(0)
	for op := Op(1); op < opCount; op++ {
		if op.String() == mnemonic {
			if op.find(operands) != nil {
				return op
			}
			if first == 0 {
				first = op
			}
		}
	}
	return first
}

func (s *source) label(name string) Label {
	l, ok := s.labels[name]
	if !ok {
		l = s.a.NewLabel()
		s.labels[name] = l
	}
	return l
}

func (s *source) number(text string) int64 {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		s.a.err = err
	}
	return n
}

func registerNamed(name string) Reg {
	for r := RAX; r <= Y15; r++ {
		if r.String() == name {
			return r
		}
	}
	return 0
}

func (s *source) operand(text string) Operand {
	if r := registerNamed(text); r != 0 {
		return r
	}
	switch {
	case text[0] == '[':
		return s.mem(strings.Trim(text, "[]"))
	case strings.ContainsRune("-0123456789", rune(text[0])):
		return Imm(s.number(text))
	}
	return s.label(text)
}

// mem reads base+index*scale+disp, or "const" and a displacement.
func (s *source) mem(text string) Mem {
	var m Mem
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "-", "+-"), "+") {
		name, scale, scaled := strings.Cut(part, "*")
		switch r := registerNamed(name); {
		case name == "const":
			m.Label = s.a.Data(make([]byte, 64)).Label
		case scaled:
			m.Index, m.Scale = r, uint8(s.number(scale))
		case r != 0 && m.Base == 0:
			m.Base = r
		case r != 0:
			m.Index = r
		case part != "":
			m.Disp = int32(s.number(part))
		}
	}
	return m
}

// TestEveryInstructionHasForms also finds a name left out of the table.
func TestEveryInstructionHasForms(t *testing.T) {
	for op := Op(1); op < opCount; op++ {
		if len(instructions[op].forms) == 0 || instructions[op].name == "" {
			t.Errorf("instruction %d, after %s, has no row", op, op-1)
		}
	}
	for _, op := range []Op{0, opCount, 60000} {
		a := &Assembler{}
		if a.Emit(op, Y1); a.err == nil {
			t.Errorf("instruction %d was accepted", op)
		}
	}
}
