package amd64

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A sample is an instruction with random operands and what objdump should say.
type sample struct {
	op       Op
	form     int
	operands []Operand
	at       place // where it was put
}

// TestEncodingsAgainstObjdump holds every form of every instruction, over random
// operands, against the disassembler of binutils.
func TestEncodingsAgainstObjdump(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := &Assembler{}
	pool := a.Data(make([]byte, 4096)).Label
	var samples []sample
	for op := Op(1); op < opCount; op++ {
		for k, f := range instructions[op].forms {
			if f.enc == "J" {
				continue // TestJumpsAgainstObjdump
			}
			for range 60 {
				samples = append(samples, emitRandom(a, r, op, k, pool))
			}
		}
	}
	text := disassemble(t, a)
	checkForms(t, samples)
	before := a.relax()
	for _, s := range samples {
		want := expected(s, func(m Mem) string {
			return fmt.Sprintf("[rip] # 0x%x", a.address(m.Label, before)+int(m.Disp))
		})
		at := s.at.at + before[s.at.gaps]
		if got := text[at]; got != want {
			t.Errorf("%#x: %s %s\n objdump %s\n want    %s", at, s.op, s.operands, got, want)
		}
		if t.Failed() && testing.Short() {
			break
		}
	}
	t.Logf("%d instructions, %d encodings", opCount-1, len(samples))
}

func emitRandom(a *Assembler, r *rand.Rand, op Op, form int, pool Label) sample {
	f := instructions[op].forms[form]
	long := r.IntN(2) == 0
	s := sample{
		op:   op,
		form: form,
		at:   place{at: len(a.code), gaps: len(a.gaps)},
	}
	for k := range f.enc {
		s.operands = append(s.operands, randomOperand(r, f.args[k], long, pool))
	}
	a.Emit(op, s.operands...)
	return s
}

// randomOperand draws one of the kinds that c allows, then its value.
func randomOperand(r *rand.Rand, c class, long bool, pool Label) Operand {
	if c&(x|y) == x|y {
		if c &^= x; !long {
			c = c&^y | x
		}
	}
	var kinds []class
	for k := r8; k < same; k <<= 1 {
		if c&k != 0 {
			kinds = append(kinds, k)
		}
	}
	n := Reg(r.IntN(16))
	switch kind := kinds[r.IntN(len(kinds))]; kind {
	case r64:
		return RAX + n
	case r32:
		return EAX + n
	case r8:
		return AL + n
	case x:
		return X0 + n
	case y:
		return Y0 + n
	case z:
		return Z(r.IntN(32))
	case k:
		return K1 + n%7
	default:
		if kind&memory != 0 {
			return randomMem(r, pool)
		}
		return randomImm(r, kind)
	}
}

func randomImm(r *rand.Rand, kind class) Imm {
	switch kind {
	case i8:
		return Imm(int8(r.Uint32()))
	case u8:
		return Imm(uint8(r.Uint32()))
	case i32:
		return Imm(int32(r.Uint32()))
	case u32:
		return Imm(r.Uint32())
	}
	return Imm(int64(r.Uint64()))
}

func randomMem(r *rand.Rand, pool Label) Mem {
	disp := []int32{
		0, int32(int8(r.Uint32())),
		int32(r.Uint32()), -128, 127, 128, -129,
	}[r.IntN(7)]
	base, index := RAX+Reg(r.IntN(16)), RAX+Reg(r.IntN(16))
	scale := uint8(1) << r.IntN(4)
	if index == RSP {
		index = R12
	}
	switch r.IntN(8) {
	case 0:
		return Mem{Label: pool, Disp: r.Int32N(4096)}
	case 1:
		return Mem{Index: index, Scale: scale, Disp: disp}
	case 2, 3, 4:
		return Mem{Base: base, Disp: disp}
	}
	return Mem{Base: base, Index: index, Scale: scale, Disp: disp}
}

// checkForms fails if a form was never the first that fits.
func checkForms(t *testing.T, samples []sample) {
	used := map[string]bool{}
	name := func(op Op, form int) string { return fmt.Sprintf("%s form %d", op, form) }
	for _, s := range samples {
		if s.op.find(s.operands) == &instructions[s.op].forms[s.form] {
			used[name(s.op, s.form)] = true
		}
	}
	for _, s := range samples {
		if n := name(s.op, s.form); !used[n] {
			t.Errorf("%s is never chosen", n)
			used[n] = true
		}
	}
}

// disassemble returns what objdump says, by address.
func disassemble(t *testing.T, a *Assembler) map[int]string {
	t.Helper()
	code, err := a.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("objdump (binutils) is not installed: encodings are held against testdata only")
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(
		objdump, "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", file,
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := map[int]string{}
	for line := range strings.Lines(string(out)) {
		address, rest, _ := strings.Cut(line, ":")
		if at, err := strconv.ParseInt(strings.TrimSpace(address), 16, 64); err == nil {
			text[int(at)] = normal(rest)
		}
	}
	return text
}

// normal makes objdump's line comparable: one space, no zero displacement, and
// an address relative to rip as [rip] with the address meant.
func normal(line string) string {
	line = strings.ReplaceAll(strings.Join(strings.Fields(line), " "), "+0x0]", "]")
	if from := strings.Index(line, "[rip"); from >= 0 {
		line = line[:from] + "[rip" + line[strings.Index(line, "]"):]
		line, comment, _ := strings.Cut(line, " #")
		return strings.Replace(line, "[rip]", "[rip] #"+comment, 1)
	}
	return line
}

// wideNames are the names of instructions that have another for 64 bytes.
var wideNames = map[Op]string{
	VMOVDQU: "vmovdqu32", VROUNDPS: "vrndscaleps",
	VPAND: "vpandd", VPANDN: "vpandnd", VPOR: "vpord", VPXOR: "vpxord", VROUNDPD: "vrndscalepd",
}

// expected writes s as objdump does.
func expected(s sample, rip func(Mem) string) string {
	f := instructions[s.op].forms[s.form]
	name, operands := s.op.String(), s.operands
	if wide := wideNames[s.op]; wide != "" && f.prefix&evex != 0 {
		name = wide
	}
	if strings.HasPrefix(name, "vcmp") {
		if predicate := operands[3].(Imm); predicate < 32 {
			name = "vcmp" + predicates[predicate] + name[4:]
			operands = operands[:3]
		}
	}
	var parts []string
	for k, o := range operands {
		if f.enc[k] == 'K' {
			parts[0] += fmt.Sprintf("{%s}", o)
			continue
		}
		parts = append(parts, expectedOperand(f, s, k, o, rip))
	}
	if f.args[1] == i64 &&
		s.op.find(s.operands) == &instructions[s.op].forms[s.form] {
		name = "movabs"
	}
	return strings.TrimSpace(name + " " + strings.Join(parts, ","))
}

func expectedOperand(f form, s sample, k int, o Operand, rip func(Mem) string) string {
	switch o := o.(type) {
	case Mem:
		text := o.String()
		if o.Label != 0 {
			text = rip(o)
		}
		return sizeName(f, s) + text
	case Imm:
		return expectedImm(f.args[k], o, s.operands[0])
	}
	return operandText(o)
}

func expectedImm(c class, i Imm, first Operand) string {
	v := uint64(i)
	r, _ := first.(Reg)
	switch {
	case c&u8 != 0:
		v &= 0xff
	case r.class() == r32:
		v &= 1<<32 - 1
	}
	return fmt.Sprintf("%#x", v)
}

// sizeName returns how objdump calls the size of s's memory operand.
func sizeName(f form, s sample) string {
	c := class(0)
	vector := 16
	for k, o := range s.operands {
		switch o := o.(type) {
		case Mem:
			c = f.args[k] & memory
		case Reg:
			switch o.class() {
			case y:
				vector = max(vector, 32)
			case z:
				vector = 64
			}
		}
	}
	bytes := map[class]int{
		mem:  0,
		m8:   1,
		m16:  2,
		m32:  4,
		m64:  8,
		m128: 16,
		m256: 32,
		mv:   vector,
		mh:   vector / 2,
		mq:   vector / 4,
	}[c]
	if strings.HasPrefix(s.op.String(), "prefetch") {
		bytes = 1
	}
	return map[int]string{
		0:  "",
		1:  "BYTE PTR ",
		2:  "WORD PTR ",
		4:  "DWORD PTR ",
		8:  "QWORD PTR ",
		16: "XMMWORD PTR ",
		32: "YMMWORD PTR ",
		64: "ZMMWORD PTR ",
	}[bytes]
}

var predicates = strings.Fields(`eq lt le unord neq nlt nle ord eq_uq nge ngt false neq_oq ge gt true
	eq_os lt_oq le_oq unord_s neq_us nlt_uq nle_uq ord_s eq_us nge_uq ngt_uq false_os neq_os ge_oq gt_oq true_us`)

// TestJumpsAgainstObjdump jumps forth and back over random distances: short
// jumps become long where they must, and all arrive.
func TestJumpsAgainstObjdump(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		a := &Assembler{}
		labels := make([]Label, 40)
		for k := range labels {
			labels[k] = a.NewLabel()
		}
		var samples []sample
		for _, l := range labels {
			if r.IntN(3) == 0 {
				a.Align(1 << r.IntN(7))
			}
			a.Bind(l)
			for range r.IntN(4) {
				s := sample{
					op:       JMP + Op(r.IntN(17)),
					operands: []Operand{labels[r.IntN(len(labels))]},
					at:       place{at: len(a.code), gaps: len(a.gaps)},
				}
				samples = append(samples, s)
				a.Emit(s.op, s.operands...)
			}
			for range r.IntN(30) {
				emitRandom(a, r, VADDPS, 0, a.Splat32(1).Label)
			}
		}
		text := disassemble(t, a)
		before := a.relax()
		for _, s := range samples {
			want := fmt.Sprintf("%s 0x%x", s.op, a.address(s.operands[0].(Label), before))
			if got := text[s.at.at+before[s.at.gaps]]; got != want {
				t.Errorf("seed %d: objdump %q, want %q", seed, got, want)
			}
		}
	}
}
