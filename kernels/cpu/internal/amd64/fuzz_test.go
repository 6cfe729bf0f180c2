package amd64

import "testing"

// FuzzEmit draws instructions and operands from bytes: whatever they are, there
// is code or an error.
func FuzzEmit(f *testing.F) {
	f.Add([]byte{
		0, 40, 0, 0x50, 0, 0x51, 1, 0x10,
		0x11, 2, 5, 2, 7, 3, 1,
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		a := &Assembler{}
		next := func() byte {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return b
		}
		labels := []Label{0, a.NewLabel(), a.NewLabel(), 99, -1}
		bound := 0
		for len(data) > 0 {
			op := Op(next())<<8 | Op(next())
			var operands []Operand
			for range next() % 5 {
				operands = append(operands, fuzzOperand(next, labels))
			}
			a.Emit(op%(opCount+2), operands...)
			switch b := next(); {
			case b == 0 && bound < 2:
				bound++
				a.Bind(labels[bound])
			case b == 1:
				a.Align(int(next()))
			}
		}
		if code, err := a.Assemble(); (code == nil) == (err == nil) && a.count > 0 {
			t.Errorf("%d bytes of code, error %v", len(code), err)
		}
	})
}

func fuzzOperand(next func() byte, labels []Label) Operand {
	switch next() % 6 {
	case 0:
		return Reg(next())
	case 1:
		return Mem{
			Base:  Reg(next()),
			Index: Reg(next()),
			Scale: next(),
			Disp:  int32(int8(next())) << (next() % 25),
		}
	case 2:
		return Mem{
			Label: labels[int(next())%len(labels)],
			Disp:  int32(int8(next())),
		}
	case 3:
		return Imm(int64(int8(next())) << (next() % 64))
	case 4:
		return labels[int(next())%len(labels)]
	}
	return nil
}
