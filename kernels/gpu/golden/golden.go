// Package golden keeps kernels as text that the GPU backend emitted: PTX to be read
// by people, to be compared with what the backend emits now, and to be assembled
// where there is an assembler. Only tests and `tilewright doctor` need it.
package golden

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

//go:embed testdata/ptx testdata/ptxas.tsv
var stored embed.FS

// A Kernel is a kernel that is kept as text, with the program and the plan that
// it was emitted from.
type Kernel struct {
	// Name of its file, and its number in it: "softmax 1".
	Name    string
	Target  string
	Program *symtile.Program
	Plan    kernels.Plan
	PTX     string
}

// Hash names a text of PTX: its SHA-256 in hexadecimal.
func Hash(ptx string) string {
	return fmt.Sprintf(
		"%x", sha256.Sum256([]byte(ptx)),
	)
}

// Kernels lists the kernels of testdata/ptx. TestPTX of package gpu compares them
// with what is emitted now.
func Kernels() (all []Kernel, err error) {
	files, err := fs.Glob(stored, "testdata/ptx/*")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(stored, file)
		if err != nil {
			return nil, err
		}
		name := file[strings.LastIndexByte(file, '/')+1:]
		n := 0
		for block := range strings.SplitSeq(string(text), "\n----\n----\n\n") {
			if strings.TrimSpace(block) == "" {
				continue
			}
			n++
			g, err := parseKernel(block)
			if err != nil {
				return nil, fmt.Errorf("%s, kernel %d: %w", file, n, err)
			}
			g.Name = fmt.Sprintf("%s %d", name, n)
			all = append(all, g)
		}
	}
	return all, nil
}

// parseKernel reads comments, a line "ptx target=… plan=(…)", the computation
// and, behind a double rule, the kernel.
func parseKernel(block string) (g Kernel, err error) {
	head, text, both := strings.Cut(block, "\n----\n----\n")
	if !both {
		return g, fmt.Errorf("no kernel after a double rule")
	}
	g.PTX = strings.TrimRight(strings.TrimSuffix(text, "----\n----\n"), "\n") + "\n"
	for strings.HasPrefix(head, "#") ||
		strings.HasPrefix(head, "\n") {
		_, head, _ = strings.Cut(head, "\n")
	}
	line, computation, _ := strings.Cut(head, "\n")
	_, rest, _ := strings.Cut(line, "target=")
	target, plan, _ := strings.Cut(rest, " plan=(")
	g.Target = strings.TrimSpace(target)
	plan = strings.ReplaceAll(
		strings.TrimSuffix(strings.TrimSpace(plan), ")"), ", ", " ",
	)
	g.Plan, err = kernels.ParsePlan(strings.ReplaceAll(plan, ";", ","))
	if err != nil {
		return g, err
	}
	m, err := hlo.Parse(
		"golden", []byte(computation+"\n"),
	)
	if err != nil {
		return g, err
	}
	g.Program, err = symtile.Analyze(context.Background(), m.Entry)
	return g, err
}

// AssemblerReport is the result of assembling a text. If the text has several
// entries, each number is the largest of them.
type AssemblerReport struct {
	// Hash of the text.
	Hash   string
	Target string
	// Registers of a thread.
	Registers int
	// Bytes that a thread stores because it has too few registers.
	Spilled int
	// Bytes of shared memory that a block declares with a size.
	Shared int
	// Stack is the bytes of the largest stack frame, and Warning what the assembler
	// warned of. Neither is in the table: a kernel that has one is no golden.
	Stack   int
	Warning string
	// Assembler and version.
	Tool string
}

// AssemblerReportHeader is the first line of a table of reports; columns are
// separated by tabs.
const AssemblerReportHeader = "sha256\ttarget\tregisters\tspilled\tshared\ttool"

// Row is one line of the table, without its end.
func (a AssemblerReport) Row() string {
	return fmt.Sprintf(
		"%s\t%s\t%d\t%d\t%d\t%s",
		a.Hash, a.Target, a.Registers,
		a.Spilled, a.Shared, a.Tool,
	)
}

// AssemblerReports is the table testdata/ptxas.tsv by hash: what assemblers
// have made of the kernels. `tilewright doctor` writes the table where there is
// an assembler.
func AssemblerReports() (map[string]AssemblerReport, error) {
	text, err := fs.ReadFile(stored, "testdata/ptxas.tsv")
	if err != nil {
		return nil, err
	}
	all := map[string]AssemblerReport{}
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if n == 0 && line == AssemblerReportHeader {
			continue
		}
		a, err := parseAssembled(line)
		if err != nil {
			return nil, fmt.Errorf("ptxas.tsv:%d: %w", n+1, err)
		}
		all[a.Hash] = a
	}
	return all, nil
}

// parseAssembled reads one row of the table.
func parseAssembled(line string) (a AssemblerReport, err error) {
	f := strings.Split(line, "\t")
	if len(f) != 6 || len(f[0]) != 64 {
		return a, fmt.Errorf("%q is no row of %q", line, AssemblerReportHeader)
	}
	a = AssemblerReport{
		Hash:   f[0],
		Target: f[1],
		Tool:   f[5],
	}
	for k, to := range []*int{&a.Registers, &a.Spilled, &a.Shared} {
		if *to, err = strconv.Atoi(f[2+k]); err != nil {
			return a, fmt.Errorf("column %d: %w", 3+k, err)
		}
	}
	return a, nil
}
