package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// cellTypes are the element types that modules of testdata/operations.hlo are tried with
// beside their own.
var cellTypes = strings.Fields(`pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128
	f4e2m1fn f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu`)

// namesOperation is how a refusal names an instruction and its operation.
var namesOperation = regexp.MustCompile(` \([a-z0-9-]+\): `)

// cellDevices are devices of the columns of docs/operations.md.
var cellDevices = map[string]hlo.Target{"cpu": hlo.CPU, "sim:H100": hlo.GPU}

// Every cell of docs/operations.md is what the program does. Each row has a module in
// testdata/operations.hlo and, where StableHLO has the operation, in operations.mlir; each
// module is run, shown, ranked and tuned on the CPU and on simulated GPUs: computed, and
// compared with the reference, where the cell says so, and refused by the cell's reason
// where not. The same is asked of all other element types.
func TestEveryCellOfOperations(t *testing.T) {
	table := operationRows(t)
	texts, mlir := operationModules(t, "hlo"), operationModules(t, "mlir")
	for _, op := range hlo.Opcodes() {
		if !slices.Contains(table, op) {
			t.Errorf("docs/operations.md has no row of %s", op)
		}
	}
	db := filepath.Join(t.TempDir(), "t.db")
	for _, op := range table {
		t.Run(string(op), func(t *testing.T) {
			text := texts[op]
			if text == "" {
				t.Fatal("testdata/operations.hlo has no module of this row")
			}
			c := cell{t, op, filepath.Join(t.TempDir(), "m.hlo"), db, ""}
			c.all(text)
			if other := mlir[op]; other != "" {
				c.all(other)
			} else if slices.ContainsFunc(op.MLIR(), inStableHLO) {
				t.Errorf("testdata/operations.mlir has no module of this row, which StableHLO has as %v", op.MLIR())
			}
			for _, d := range cellTypes {
				c.typed(text, d)
			}
		})
	}
}

// inStableHLO reports whether an operation of MLIR is one of StableHLO's, or of chlo.
func inStableHLO(name string) bool { return !strings.HasPrefix(name, "mhlo.") }

// operationRows are the operations of docs/operations.md.
func operationRows(t *testing.T) (all []hlo.Opcode) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|").FindAllStringSubmatch(string(page), -1) {
		all = append(all, hlo.Opcode(row[1]))
	}
	return all
}

// operationModules are the modules of testdata/operations.KIND by the operation that the
// comment in front of each names.
func operationModules(t *testing.T, kind string) map[hlo.Opcode]string {
	file, err := os.ReadFile("../../testdata/operations." + kind)
	if err != nil {
		t.Fatal(err)
	}
	all := map[hlo.Opcode]string{}
	for text := range strings.SplitSeq(string(file), "// -----\n") {
		name, module, _ := strings.Cut(strings.TrimPrefix(text, "// "), "\n")
		all[hlo.Opcode(name)] = module
	}
	return all
}

// A cell runs commands on modules of an operation.
type cell struct {
	t    *testing.T
	op   hlo.Opcode
	file string
	db   string // one of all cells, so that rates of the machine are measured once
	what string // the type, for messages
}

// An answer is what a command says of a module.
type answer struct {
	computed bool
	said     string // both streams, blanks as single ones
}

// ask runs a command; refusals are answers, everything else that is not success fails.
func (c cell) ask(args ...string) answer {
	var out, errs strings.Builder
	status := run(append(args, c.file), strings.NewReader(""), &out, &errs)
	said := strings.Join(strings.Fields(out.String()+" "+errs.String()), " ")
	refused := strings.Contains(said, "refused:")
	if status > exitBad || strings.Contains(said, "failed") || strings.Contains(said, "internal error") {
		c.t.Errorf("%s%v: status %d: %s", c.what, args, status, said)
	}
	return answer{status == exitOK && !refused, said}
}

// all gives a module to every command.
func (c cell) all(text string) {
	c.write(text)
	tune := func(device string) answer {
		return c.ask("tune", "-force", "-db", c.db, "-device", device, "-budget", "20ms", "-try", "1", "-progress", "0")
	}
	c.expect(hlo.Reference, "run", c.ask("run", "-repeat", "1"))
	c.expect(hlo.CPU, "rank", c.ask("rank", "-top", "1"))
	c.expect(hlo.CPU, "tune", tune("cpu"))
	c.expect(hlo.GPU, "rank", c.ask("rank", "-top", "1", "-device", "sim:H100"))
	c.expect(hlo.GPU, "tune on H100", tune("sim:H100"))
	c.expect(hlo.GPU, "tune on A100", tune("sim:A100"))
	if shown := c.ask("show"); !shown.computed {
		c.t.Errorf("show: %s", shown.said)
	} else if why := c.op.Not(hlo.CPU); why != "" && !c.byParts() && !c.explained(shown.said, why) {
		c.t.Errorf("show does not say that %s: %s", why, shown.said)
	}
}

// write writes the module.
func (c cell) write(text string) {
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// expect holds an answer against the cell of a target.
func (c cell) expect(target hlo.Target, command string, a answer) {
	c.t.Helper()
	switch why := c.op.Not(target); {
	case why == "" && !a.computed:
		c.t.Errorf("%s: the %s is said to compute it: %s", command, target, a.said)
	case why != "" && a.computed && !c.byParts():
		c.t.Errorf("%s: the %s is said not to compute it, since %s: %s", command, target, why, a.said)
	case !a.computed && !c.explained(a.said, why):
		c.t.Errorf("%s: another reason than %q: %s", command, why, a.said)
	}
}

// byParts reports whether the operation is executed though no target computes it: loops
// and branches by their bodies, and what a partition takes apart.
func (c cell) byParts() bool {
	return c.op.Class() == hlo.ClassControl || strings.Contains(c.op.Not(hlo.CPU), "takes apart")
}

// explained reports whether a refusal has a reason, or says that the operation of MLIR is
// not read.
func (c cell) explained(said, why string) bool {
	return strings.Contains(said, why) || strings.Contains(said, "stablehlo."+strings.ReplaceAll(string(c.op), "-", "_")+" is not read")
}

// typed tries an operation of another type: what the reference computes, each backend does
// unless the table excepts it, and what is refused is refused by the name of the operation.
func (c cell) typed(text, name string) {
	d, _ := hlo.ParseDType(name)
	text, ok := retyped(text, name)
	m, err := hlo.Parse("m.hlo", []byte(text))
	if !ok || err != nil || c.op.Not(hlo.Reference) != "" || slices.ContainsFunc(m.Entry.Instrs, isUnread) {
		return // not a module of this type
	}
	c.what = name + " "
	c.write(text)
	computes := interprets(m.Entry)
	if a := c.ask("run", "-repeat", "1"); a.computed != computes {
		c.t.Errorf("run of %s: the reference computes it: %v; %s", name, computes, a.said)
	}
	for device, target := range cellDevices {
		a := c.ask("rank", "-top", "1", "-device", device)
		excepted := c.op.Not(target) != "" || c.op.NotOf(target, d) || target == hlo.GPU && d == hlo.Pred
		switch {
		case a.computed && c.op.NotOf(target, d):
			c.t.Errorf("the %s computes %s, which the table excepts", target, name)
		case !a.computed && computes && !excepted:
			c.t.Errorf("the %s does not compute %s, which the reference does: %s", target, name, a.said)
		case !a.computed && !namesOperation.MatchString(a.said):
			c.t.Errorf("the %s refuses %s without the name of an operation: %s", target, name, a.said)
		}
	}
}

// isUnread reports whether an instruction is one that has not been read.
func isUnread(i *hlo.Instr) bool { return i.Unknown() != "" }

// retyped is a module whose arrays of its own type are of another one; ok is false where
// that is the same.
func retyped(text, d string) (string, bool) {
	base := "f32"
	for _, other := range []string{"s32", "c64"} {
		if strings.Contains(text, "x = "+other+"[") {
			base = other
		}
	}
	switch base + d { // complex numbers and their parts
	case "f32f64":
		text = strings.ReplaceAll(text, "c64[", "c128[")
	case "c64c128":
		text = strings.ReplaceAll(text, "f32[", "f64[")
	}
	return strings.ReplaceAll(text, base+"[", d+"["), base != d
}

// interprets reports whether the reference computes a computation.
func interprets(c *hlo.Computation) bool {
	in, err := check.Inputs(c, check.Normals, 1)
	if err != nil {
		return false
	}
	_, err = reference.Interpret(c, in)
	return err == nil
}
