package gemm

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestObjectCode holds the object code of every function of kernels_amd64.s, as the assembler
// of Go made it for Linux, against its text: GNU objdump has to name the same instructions
// with the same operands, and jumps to the same places. Instructions that are bytes in the
// text are those that the emulator decodes.
func TestObjectCode(t *testing.T) {
	if testing.Short() {
		t.Skip("a test binary is linked")
	}
	all := listings(t)
	code := objectCode(t)
	for name, l := range all {
		got := code[name]
		if got == nil {
			t.Errorf("%s is not in the binary", name)
			continue
		}
		compareObject(t, name, l, got)
	}
	t.Logf("%d functions", len(all))
}

// An objectLine is an instruction as objdump writes it, and its address.
type objectLine struct {
	at   uint64
	text string
}

// objectCode is the instructions of the package's functions.
func objectCode(t *testing.T) map[string][]objectLine {
	t.Helper()
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("binutils are not installed")
	}
	file := filepath.Join(t.TempDir(), "gemm.test")
	build := exec.Command("go", "test", "-c", "-o", file, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Skipf("no binary for amd64: %v\n%s", err, text)
	}
	functions, from, to := packageFunctions(t, file)
	out, err := exec.Command(
		objdump, "-d", "--no-show-raw-insn",
		fmt.Sprintf("--start-address=%d", from),
		fmt.Sprintf("--stop-address=%d", to), file,
	).Output()
	if err != nil {
		t.Skipf("objdump does not read binaries of amd64: %v", err)
	}
	code := map[string][]objectLine{}
	for line := range strings.Lines(string(out)) {
		address, text, ok := strings.Cut(strings.TrimSpace(line), ":\t")
		at, err := strconv.ParseUint(address, 16, 64)
		if !ok || err != nil {
			continue
		}
		if name := functions.at(at); name != "" {
			// R13 as a base has a displacement, if only of 0.
			text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "0x0(%r13", "(%r13")
			code[name] = append(code[name], objectLine{at, text})
		}
	}
	return code
}

// functionRanges are functions in the order of their addresses.
type functionRanges []elf.Symbol

// at is the name of the function at an address, or "".
func (f functionRanges) at(address uint64) string {
	n, _ := slices.BinarySearchFunc(f, address, func(s elf.Symbol, address uint64) int {
		if s.Value+s.Size <= address {
			return -1
		}
		return 1
	})
	if n == len(f) || address < f[n].Value {
		return ""
	}
	return f[n].Name
}

// packageFunctions are the functions of the package that are assembly, and where they are.
func packageFunctions(t *testing.T, file string) (list functionRanges, from, to uint64) {
	t.Helper()
	binary, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	symbols, err := binary.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		rest, ours := strings.CutPrefix(s.Name, "github.com/tilewright/tilewright/kernels/cpu/internal/gemm.")
		name, assembly := strings.CutSuffix(rest, ".abi0")
		if ours && assembly {
			s.Name = name
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		t.Fatal("there are no functions of assembly")
	}
	slices.SortFunc(list, func(x, y elf.Symbol) int { return int(x.Value) - int(y.Value) })
	last := list[len(list)-1]
	return list, list[0].Value, last.Value + last.Size
}

// compareObject compares a function with its text.
func compareObject(t *testing.T, name string, l *listing, got []objectLine) {
	t.Helper()
	for len(got) > 0 && got[len(got)-1].text == "int3" {
		got = got[:len(got)-1] // up to the next function
	}
	if len(got) != len(l.lines) {
		t.Errorf("%s: %d instructions, not %d", name, len(got), len(l.lines))
		return
	}
	for k, line := range l.lines {
		if isJump(line[0]) {
			line = []string{line[0], fmt.Sprintf("%x", got[l.arrival(line[1])].at)}
			got[k].text, _, _ = strings.Cut(got[k].text, " <")
		}
		want := gnuSyntax(line)
		if !slices.Contains(want, got[k].text) {
			t.Errorf("%s, instruction %d, %s: objdump has %q, not %q", name, k, strings.Join(line, " "), got[k].text, want)
			return
		}
	}
}

// isJump reports whether an instruction is one of the jumps of kernels.
func isJump(name string) bool { return name[0] == 'J' }

// arrival is the instruction at which a jump to a label arrives: the assembler jumps over
// jumps.
func (l *listing) arrival(label string) int {
	at := l.labels[label]
	for l.lines[at][0] == "JMP" {
		at = l.labels[l.lines[at][1]]
	}
	return at
}

// gnuNames are the names of instructions that GNU calls otherwise than Go.
var gnuNames = map[string]string{
	"MOVQ": "mov", "MOVL": "mov", "LEAQ": "lea",
	"ADDQ": "add", "SUBQ": "sub", "IMULQ": "imul", "IMUL3Q": "imul", "DECQ": "dec",
	"ANDQ": "and", "TESTQ": "test", "SHRQ": "shr", "SHLQ": "shl",
	"JZ": "je", "JNZ": "jne", "JMP": "jmp", "JLE": "jle",
}

// gnuSyntax is how GNU may write an instruction: with the register of 32 bits, where a
// constant that is moved fits it.
func gnuSyntax(line []string) []string {
	name, zeroed := strings.CutSuffix(line[0], ".Z")
	ops := slices.DeleteFunc(slices.Clone(line[1:]), func(op string) bool { return op == "" })
	gnu := gnuNames[name]
	switch {
	case gnu != "":
	case name == "VCMPPS" && ops[0] == "$0x03":
		gnu, ops = "vcmpunordps", ops[1:]
	case name == "VPDPBUSD" && ops[0][0] == 'Y':
		gnu = "{vex} vpdpbusd"
	default:
		gnu = strings.ToLower(name)
	}
	write := func(bits int) string {
		return strings.TrimSpace(gnu + " " + gnuOperands(ops, bits, zeroed))
	}
	switch {
	case name == "MOVL" || name == "KMOVW":
		return []string{write(32)}
	case name == "MOVQ" && ops[0][0] == '$':
		return []string{write(64), write(32)}
	}
	return []string{write(64)}
}

// gnuOperands writes operands, with general registers of some bits; a mask follows what it
// masks.
func gnuOperands(ops []string, bits int, zeroed bool) string {
	var parts []string
	mask := ""
	for k, op := range ops {
		if strings.HasPrefix(op, "K") && k+1 < len(ops) {
			mask = "{" + gnuOperand(op, bits) + "}"
			continue
		}
		parts = append(parts, gnuOperand(op, bits))
	}
	if zeroed {
		mask += "{z}"
	}
	return strings.Join(parts, ",") + mask
}

// gnuOperand writes an operand.
func gnuOperand(op string, bits int) string {
	if constant, ok := strings.CutPrefix(op, "$"); ok {
		n, _ := strconv.ParseInt(constant, 0, 64)
		return fmt.Sprintf("$%#x", uint64(n))
	}
	if _, place, ok := strings.Cut(op, "+"); ok { // an argument, behind the return address
		n, _ := strconv.Atoi(strings.TrimSuffix(place, "(FP)"))
		return fmt.Sprintf("%#x(%%rsp)", n+8)
	}
	if m := memory.FindStringSubmatch(op); m != nil {
		return gnuMemory(m)
	}
	switch op[0] {
	case 'X', 'Y', 'Z':
		return "%" + strings.ToLower(op[:1]) + "mm" + op[1:]
	case 'K':
		return "%" + strings.ToLower(op)
	}
	if op[0] >= '0' && op[0] <= '7' && len(op) == 1 {
		return "%tmm" + op
	}
	return gnuRegister(op, bits)
}

// gnuMemory writes what memory matches: a displacement, a base, an index and its scale.
func gnuMemory(m []string) string {
	text := ""
	if n, _ := strconv.ParseInt("0"+strings.TrimPrefix(m[1], "-"), 10, 64); n != 0 {
		text = fmt.Sprintf("%#x", n)
		if m[1][0] == '-' {
			text = "-" + text
		}
	}
	text += "(" + gnuRegister(m[2], 64)
	if m[3] != "" {
		text += "," + gnuRegister(m[3], 64) + "," + m[4]
	}
	return text + ")"
}

// gnuRegister writes a general register, and what is none as it is: the target of a jump.
func gnuRegister(name string, bits int) string {
	switch {
	case name[0] == 'R' && bits == 64:
		return "%r" + name[1:]
	case name[0] == 'R':
		return "%r" + name[1:] + "d"
	case !slices.Contains([]string{"AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"}, name):
		return name
	case bits == 64:
		return "%r" + strings.ToLower(name)
	}
	return "%e" + strings.ToLower(name)
}
