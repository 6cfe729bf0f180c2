package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A listing is the instructions of one function of kernels_amd64.s.
type listing struct {
	lines  [][]string // name, operands
	labels map[string]int
}

var function = regexp.MustCompile(`^TEXT ·(\w+)\(SB\)`)

// listings reads the committed assembly.
func listings(t *testing.T) map[string]*listing {
	src, err := os.ReadFile("kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*listing{}
	var l *listing
	var code []byte // bytes of instructions that the assembler does not have
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		if m := function.FindStringSubmatch(line); m != nil {
			l = &listing{labels: map[string]int{}}
			all[m[1]] = l
			continue
		}
		if l == nil || line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		if label, ok := strings.CutSuffix(line, ":"); ok {
			l.labels[label] = len(l.lines)
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		if name == "BYTE" {
			x, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(rest), "$"), 0, 8)
			if err != nil {
				t.Fatal(err)
			}
			if code = append(code, byte(x)); len(code) < tileLength(code) {
				continue
			}
			l.lines = append(l.lines, tileInstruction(code))
			code = nil
			continue
		}
		fields := []string{name}
		for _, f := range strings.Split(rest, ",") {
			fields = append(fields, strings.TrimSpace(f))
		}
		l.lines = append(l.lines, fields)
	}
	return all
}

// A machine emulates what kernels use of a CPU. Its memory is what place put
// there; any other address is a mistake.
type machine struct {
	mem  []byte
	ends map[uint64]uint64 // of each piece, by its beginning
	args map[string]uint64 // by name
	regs map[string]uint64 // of 64 bits, and of masks
	vecs map[string]*[64]byte
	zero bool

	tiles      [8][16][64]byte
	tileRows   [8]byte
	configured bool // tiles can be used
}

// place puts a piece in memory, far from the others.
func (m *machine) place(x []byte) (at uint64) {
	m.mem = append(m.mem, make([]byte, 256)...)
	at = uint64(len(m.mem))
	m.mem = append(m.mem, x...)
	if m.ends == nil {
		m.ends = map[uint64]uint64{}
	}
	m.ends[at] = uint64(len(m.mem))
	return at
}

func (m *machine) run(l *listing) error {
	m.regs, m.vecs = map[string]uint64{}, map[string]*[64]byte{}
	for at, steps := 0, 0; at < len(l.lines); at++ {
		line := l.lines[at]
		if steps++; steps > 1e5 {
			return fmt.Errorf("it does not end")
		}
		switch line[0] {
		case "RET":
			if m.configured {
				return fmt.Errorf("tiles are not released")
			}
			return nil
		case "JZ", "JNZ", "JMP":
			if line[0] == "JMP" || m.zero == (line[0] == "JZ") {
				to, ok := l.labels[line[1]]
				if !ok {
					return fmt.Errorf("there is no label %s", line[1])
				}
				at = to - 1
			}
		default:
			if err := m.step(line[0], line[1:]); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(line, " "), err)
			}
		}
	}
	return fmt.Errorf("it runs off its end")
}

func (m *machine) step(name string, ops []string) error {
	last := ops[len(ops)-1]
	switch name {
	case "VZEROUPPER", "PREFETCHT0", "PREFETCHT1", "SFENCE":
		return nil
	case "MOVQ", "MOVL", "KMOVW":
		x, err := m.scalar(ops[0], name == "MOVL")
		m.regs[last] = x
		return err
	case "LEAQ":
		x, err := m.address(ops[0])
		m.regs[last] = x
		return err
	case "ADDQ", "SUBQ", "IMULQ", "IMUL3Q", "SHRQ", "SHLQ", "ANDQ", "TESTQ", "DECQ":
		return m.integer(name, ops, last)
	}
	if f, ok := tileSteps[name]; ok {
		return f(m, ops)
	}
	return m.vector(name, ops, last)
}

func (m *machine) integer(name string, ops []string, last string) error {
	x, err := m.scalar(ops[0], false)
	r := m.regs[last]
	switch name {
	case "ADDQ":
		r += x
	case "SUBQ":
		r -= x
	case "IMULQ":
		r *= x
	case "IMUL3Q":
		r = x * m.regs[ops[1]]
	case "SHRQ":
		r >>= x
	case "SHLQ":
		r <<= x
	case "ANDQ":
		r &= x
	case "TESTQ":
		m.zero = r&x == 0
		return err
	case "DECQ":
		r--
	}
	m.regs[last], m.zero = r, r == 0
	return err
}

var memory = regexp.MustCompile(`^(-?\d+)?\((\w+)\)(?:\((\w+)\*(\d)\))?$`)

func (m *machine) address(op string) (uint64, error) {
	f := memory.FindStringSubmatch(op)
	if f == nil {
		return 0, fmt.Errorf("%s is not memory", op)
	}
	disp, _ := strconv.ParseInt("0"+strings.TrimPrefix(f[1], "-"), 10, 64)
	if strings.HasPrefix(f[1], "-") {
		disp = -disp
	}
	scale, _ := strconv.ParseUint("0"+f[4], 10, 64)
	return m.regs[f[2]] + m.regs[f[3]]*scale + uint64(disp), nil
}

// bytes is n bytes of memory.
func (m *machine) bytes(at uint64, n int) ([]byte, error) {
	for begin, end := range m.ends {
		if at >= begin && at+uint64(n) <= end {
			return m.mem[at:][:n], nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %d are outside of %v", n, at, m.ends)
}

func (m *machine) scalar(op string, short bool) (uint64, error) {
	switch {
	case strings.HasPrefix(op, "$"):
		return strconv.ParseUint(op[1:], 0, 64)
	case strings.HasSuffix(op, "(FP)"):
		name, _, _ := strings.Cut(op, "+")
		x, ok := m.args[name]
		if !ok {
			return 0, fmt.Errorf("there is no argument %s", name)
		}
		return x, nil
	case strings.Contains(op, "("):
		at, err := m.address(op)
		if err != nil {
			return 0, err
		}
		if !short {
			b, err := m.bytes(at, 8)
			if err != nil {
				return 0, err
			}
			return binary.LittleEndian.Uint64(b), nil
		}
		b, err := m.bytes(at, 4)
		if err != nil {
			return 0, err
		}
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	return m.regs[op], nil
}

func (m *machine) reg(name string) *[64]byte {
	key := strings.TrimLeft(name, "YZ")
	if m.vecs[key] == nil {
		m.vecs[key] = &[64]byte{}
	}
	return m.vecs[key]
}

// isMemory says whether an operand is in memory.
func isMemory(op string) bool { return strings.Contains(op, "(") }

func width(ops []string) int {
	for _, op := range ops {
		if strings.HasPrefix(op, "Z") {
			return 64
		}
	}
	return 32
}

func (m *machine) vector(name string, ops []string, last string) error {
	lane := 4
	if strings.HasSuffix(name, "PD") || strings.HasSuffix(name, "SD") || name == "VMOVUPD.Z" {
		lane = 8
	}
	n := width(ops)
	switch name {
	case "VMOVUPS", "VMOVUPD", "VMOVDQU", "VMOVUPS.Z", "VMOVUPD.Z", "VMASKMOVPS":
		on := func(int) bool { return true }
		if len(ops) == 3 {
			on = m.mask(ops[1], lane)
		}
		return m.move(ops[0], last, n, lane, on)
	case "VMOVDQU64", "VMOVNTPS":
		return m.move(ops[0], last, n, lane, func(int) bool { return true })
	case "VMOVDQA64":
		*m.reg(last) = *m.reg(ops[0])
		return nil
	case "VINSERTI64X4":
		at, err := m.address(ops[1])
		if err != nil || ops[0] != "$0x01" || ops[2] != last {
			return fmt.Errorf("another half: %w", err)
		}
		b, err := m.bytes(at, 32)
		copy(m.reg(last)[32:], b)
		return err
	case "VPERMT2B", "VPERMT2W":
		m.permute(ops, map[string]int{"VPERMT2B": 1, "VPERMT2W": 2}[name])
		return nil
	case "VBROADCASTSS", "VBROADCASTSD", "VPBROADCASTD", "VBROADCASTI64X4":
		if name == "VBROADCASTI64X4" {
			lane = 32
		}
		at, err := m.address(ops[0])
		if err != nil {
			return err
		}
		b, err := m.bytes(at, lane)
		if err != nil {
			return err
		}
		for to := m.reg(last)[:n]; len(to) > 0; to = to[lane:] {
			copy(to, b)
		}
		return nil
	}
	return m.compute(
		name, m.reg(ops[0])[:n],
		m.reg(ops[1])[:n],
		m.reg(last)[:n],
	)
}

// permute takes elements of size bytes of two vectors, the last and the first, by indices.
func (m *machine) permute(ops []string, size int) {
	var both [128]byte
	copy(both[:], m.reg(ops[2])[:])
	copy(both[64:], m.reg(ops[0])[:])
	order, to := *m.reg(ops[1]), m.reg(ops[2])
	for at := 0; at < 64; at += size {
		from := int(order[at]) % (128 / size)
		copy(to[at:at+size], both[from*size:])
	}
}

// mask says which lanes a mask has: by the bits of K registers, or the signs of
// the lanes of a vector.
func (m *machine) mask(op string, lane int) func(int) bool {
	if strings.HasPrefix(op, "K") {
		bits := m.regs[op]
		return func(k int) bool { return bits>>k&1 == 1 }
	}
	v := *m.reg(op)
	return func(k int) bool { return v[k*lane+lane-1]&0x80 != 0 }
}

// move loads or stores the lanes that are on; others are loaded as zeros.
func (m *machine) move(from, to string, n, lane int, on func(int) bool) error {
	place, v := from, to
	if isMemory(to) {
		place, v = to, from
	}
	at, err := m.address(place)
	if err != nil {
		return err
	}
	r := m.reg(v)[:n]
	if !isMemory(to) {
		clear(m.reg(v)[:])
	}
	for k := range n / lane {
		if !on(k) {
			continue
		}
		b, err := m.bytes(at+uint64(k*lane), lane)
		if err != nil {
			return err
		}
		if isMemory(to) {
			copy(b, r[k*lane:])
		} else {
			copy(r[k*lane:], b)
		}
	}
	return nil
}

func (m *machine) compute(name string, x, y, z []byte) error {
	le := binary.LittleEndian
	for k := 0; k < len(z); k += 4 {
		a, b := le.Uint32(x[k:]), le.Uint32(y[k:])
		switch name {
		case "VXORPS", "VPXORD":
			le.PutUint32(z[k:], a^b)
		case "VPADDD":
			le.PutUint32(z[k:], a+b)
		case "VPMULLD":
			le.PutUint32(z[k:], a*b)
		case "VPMADDWD":
			pair := int32(int16(a))*int32(int16(b)) +
				int32(int16(a>>16))*int32(int16(b>>16))
			le.PutUint32(z[k:], uint32(pair))
		case "VPDPWSSD":
			pair := int32(int16(a))*int32(int16(b)) +
				int32(int16(a>>16))*int32(int16(b>>16))
			le.PutUint32(z[k:], le.Uint32(z[k:])+uint32(pair))
		case "VPDPBUSD": // the last source is unsigned
			sum := le.Uint32(z[k:])
			for q := range 4 {
				sum += uint32(int32(int8(x[k+q])) * int32(y[k+q]))
			}
			le.PutUint32(z[k:], sum)
		case "VDPBF16PS": // the second term of a pair comes first
			sum := math.Float32frombits(le.Uint32(z[k:]))
			sum = multiplyAddHalf(ofBF16(uint16(a>>16)), ofBF16(uint16(b>>16)), sum)
			sum = multiplyAddHalf(ofBF16(uint16(a)), ofBF16(uint16(b)), sum)
			le.PutUint32(z[k:], math.Float32bits(sum))
		case "VFMADD231PS":
			f := func(u uint32) float64 { return float64(math.Float32frombits(u)) }
			sum := math.FMA(f(a), f(b), f(le.Uint32(z[k:])))
			le.PutUint32(z[k:], math.Float32bits(float32(sum)))
		case "VFMADD231PD":
			if k%8 == 0 {
				f := func(v []byte) float64 { return math.Float64frombits(le.Uint64(v[k:])) }
				le.PutUint64(
					z[k:],
					math.Float64bits(math.FMA(f(x), f(y), f(z))),
				)
			}
		default:
			return fmt.Errorf("the emulator has no such instruction")
		}
	}
	return nil
}
