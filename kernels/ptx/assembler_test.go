package ptx

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	ptxas        = flag.String("ptxas", "", "NVIDIA's assemblers, separated by commas: what the opcode table accepts, they must")
	instructions = flag.Int("instructions", 2500, "random instructions for -ptxas")
	seed         = flag.Uint64("seed", 1, "of the random instructions")
	refusals     = flag.String("refusals", "", "a file for the instructions that an assembler refused, as JSON lines")
)

// A refusal is an instruction that the table accepts and an assembler does not.
type refusal struct {
	Text      string `json:"instruction"`
	Target    string `json:"target"`
	Version   string `json:"version"`
	Assembler string `json:"assembler"`
	Said      string `json:"said"`
}

// Random instructions that the opcode table accepts are accepted by NVIDIA's
// assemblers, in the first version and the target that have them and in later ones.
func TestAssemblersAcceptWhatTheTableAccepts(t *testing.T) {
	if *ptxas == "" {
		t.Skip("needs -ptxas=PATH,...; make judge-gpu installs them")
	}
	rng := rand.New(rand.NewPCG(*seed, 0))
	tried, all := 0, []refusal(nil)
	for tried < *instructions {
		m := randomModule(rng)
		tried += len(m.Entries[0].Body)
		for path := range strings.SplitSeq(*ptxas, ",") {
			all = append(all, refused(t, path, m)...)
		}
	}
	t.Logf("%d instructions, %d refused", tried, len(all))
	var lines strings.Builder
	for _, r := range all {
		t.Errorf("%s %s, %s: %s\n%s", r.Version, r.Target, r.Assembler, r.Text, r.Said)
		line, _ := json.Marshal(r)
		lines.Write(append(line, '\n'))
	}
	if *refusals != "" {
		if err := os.WriteFile(*refusals, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// assembledTargets are the targets that instructions are drawn for.
var assembledTargets = []string{"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"}

// randomModule is one kernel with an instruction of each row that its version and
// target have.
func randomModule(rng *rand.Rand) *Module {
	name := assembledTargets[rng.IntN(len(assembledTargets))]
	target, _ := parseTarget(name)
	versions := slices.DeleteFunc(
		[]Version{{7, 0}, {7, 1}, {7, 8}, {8, 0}, {8, 1}, {8, 4}, {8, 6}, {8, 7}, {8, 8}},
		func(v Version) bool { return !v.AtLeast(targets[name]) },
	)
	version := versions[rng.IntN(len(versions))]
	return rapid.Custom(func(t *rapid.T) *Module {
		return legalModule(t, version, target)
	}).Example(int(rng.Int32()))
}

// legalModule draws an instruction for each row, and keeps those that are checked
// without an error.
func legalModule(t *rapid.T, version Version, target Target) *Module {
	g := newInstrGen(t)
	g.e.MaxNTid = [3]int{128, 1, 1}
	g.e.Body = slices.Clip(g.e.Body)
	m := &Module{Version: version, Target: target, Entries: []Entry{*g.e}}
	m.Vars = []Var{
		{Space: ModShared, Align: 128, Type: B8, Name: "smem", Array: true, Count: 4096},
	}
	e := &m.Entries[0]
	if !version.AtLeast(Version{8, 3}) {
		e.Regs[g.sets[B128]-1].Type = B64 // so that nothing that takes them is legal
	}
	body := slices.Clip(e.Body)
	ret := Stmt{Kind: StmtInstr, Instr: Instr{Opcode: Opcode{Op: OpRet}}}
	for op := NoOp + 1; op < numOps; op++ {
		for i := range forms()[op] {
			f := g.form(op, &forms()[op][i])
			in := g.instr(&f)
			if in.Guard.None() && (op == OpBra || op == OpRet || op == OpExit || op == OpTrap) {
				in.Guard = Guard{Reg: g.reg(Pred).Reg}
			}
			s := Stmt{Kind: StmtInstr, Instr: in}
			e.Body = append(g.e.Body, s, ret)
			if m.number(); m.Check() == nil {
				body = append(body, s)
			}
		}
	}
	e.Body = append(body, ret)
	m.number()
	return m
}

// refused lists the instructions of a module that an assembler refuses: those that it
// names are taken out until it accepts the rest. Where it names none, each half of them
// is assembled alone.
func refused(t *testing.T, path string, m *Module) (all []refusal) {
	t.Helper()
	rest := *m
	rest.Entries = []Entry{m.Entries[0]}
	e := &rest.Entries[0]
	e.Body = slices.Clone(e.Body)
	for {
		rest.number()
		text := rest.Text()
		said := assembleText(t, path, rest.Target.String(), text)
		if len(said) == 0 {
			return all
		}
		lines := strings.Split(string(text), "\n")
		var left []Stmt
		for _, s := range e.Body {
			what, bad := said[int(s.Line)]
			if !bad || s.Kind != StmtInstr {
				left = append(left, s)
				continue
			}
			all = append(all, refusal{
				strings.TrimSpace(lines[s.Line-1]), rest.Target.String(),
				rest.Version.String(), filepath.Base(filepath.Dir(filepath.Dir(path))), what,
			})
		}
		if len(left) == len(e.Body) {
			return append(all, halves(t, path, &rest, said)...)
		}
		e.Body = left
	}
}

// halves lists the refused instructions of the two halves of a module that is refused
// as a whole.
func halves(t *testing.T, path string, m *Module, said map[int]string) (all []refusal) {
	t.Helper()
	body := m.Entries[0].Body
	first := slices.IndexFunc(body, func(s Stmt) bool { return s.Kind == StmtInstr })
	last := len(body) - 1
	if last-first == 1 {
		return []refusal{{
			m.Entries[0].InstrText(&body[first].Instr), m.Target.String(),
			m.Version.String(), filepath.Base(filepath.Dir(filepath.Dir(path))), fmt.Sprint(said),
		}}
	}
	mid := (first + last) / 2
	for _, part := range [][]Stmt{body[first:mid], body[mid:last]} {
		half := *m
		half.Entries = []Entry{m.Entries[0]}
		half.Entries[0].Body = slices.Concat(body[:first], part, body[last:])
		all = append(all, refused(t, path, &half)...)
	}
	return all
}

var complaint = regexp.MustCompile(`(?m)^ptxas (?:\S+, line (\d+); )?(?:error|fatal)\s*:(.*)$`)

// assembleText is what an assembler has against a text, by line.
func assembleText(t *testing.T, path, target string, text []byte) map[int]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "random.ptx")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "-arch="+target, "-o", os.DevNull, file).CombinedOutput()
	if err == nil {
		return nil
	}
	said := map[int]string{}
	for _, c := range complaint.FindAllStringSubmatch(string(out), -1) {
		what := strings.TrimSpace(c[2])
		if _, quoted, found := strings.Cut(what, "on line '"); found {
			c[1], _, _ = strings.Cut(quoted, "'")
		}
		line, _ := strconv.Atoi(c[1])
		if line > 0 || !strings.HasPrefix(what, "Ptx assembly aborted") {
			said[line] = cmp.Or(said[line], what)
		}
	}
	if len(said) == 0 {
		said[0] = fmt.Sprint(err, ": ", string(out))
	}
	return said
}
