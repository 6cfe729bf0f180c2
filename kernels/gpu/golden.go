package gpu

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

//go:embed testdata/ptx testdata/ptxas.tsv
var goldenFiles embed.FS

// A Golden is a kernel that is kept as text, to be read and to be assembled
// where there is an assembler.
type Golden struct {
	Name    string // "softmax 1": the file, and which of it
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

// Goldens lists the kernels of testdata/ptx, which TestPTX keeps as they are
// emitted now.
func Goldens() (all []Golden, err error) {
	files, err := fs.Glob(goldenFiles, "testdata/ptx/*")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(goldenFiles, file)
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
			g, err := parseGolden(block)
			if err != nil {
				return nil, fmt.Errorf("%s, kernel %d: %w", file, n, err)
			}
			g.Name = fmt.Sprintf("%s %d", name, n)
			all = append(all, g)
		}
	}
	return all, nil
}

// parseGolden reads comments, a line "ptx target=… plan=(…)", the computation
// and, after a double rule, the kernel.
func parseGolden(block string) (g Golden, err error) {
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
	g.Program, err = symtile.Analyze(m.Entry)
	return g, err
}

// CompileGolden has the device assemble a golden's own text, as it is kept; its
// launches are those of the program emitted for the golden's target, which has to
// be the same text. What the device cannot run is a *kernels.Rejected with what it
// needs: "needs sm_90a".
func (b *Backend) CompileGolden(ctx context.Context, g Golden) (kernels.Kernel, error) {
	im, err := g.image()
	if err != nil {
		return nil, fmt.Errorf(
			"golden %s for %s: %w", g.Name, g.Target, err,
		)
	}
	if needs := im.needs(b.session.Spec()); needs != "" {
		return nil, &kernels.Rejected{
			Plan:   g.Plan,
			Reason: "needs " + needs,
		}
	}
	return b.load(ctx, g.Program, im)
}

// image is the golden with its launches.
func (g Golden) image() (*image, error) {
	sheet, err := device.ParseSpec(g.Target)
	if err != nil {
		return nil, err
	}
	im, err := compile(g.Program, g.Plan, sheet)
	if err != nil {
		return nil, fmt.Errorf("nothing says how it is launched: %v", err)
	}
	if string(im.module.Text()) != g.PTX {
		return nil, errors.New("nothing says how it is launched: its plan is another text now")
	}
	return im, nil
}

// needs is what an image takes of a device that one with a sheet does not have;
// "" if it runs there.
func (im *image) needs(s device.Spec) string {
	if !device.PTXTarget(s).Runs(im.module.Target) {
		return im.module.Target.String()
	}
	for _, step := range im.steps {
		if step.SharedBytes > s.BlockShared {
			return fmt.Sprintf("%d bytes of shared memory", step.SharedBytes)
		}
	}
	return ""
}

// AssemblerReport is what an assembler made of a text; where it has several entries, the
// most that one of them takes.
type AssemblerReport struct {
	Hash      string
	Target    string
	Registers int    // a thread
	Spilled   int    // bytes of a thread, stored
	Shared    int    // bytes of a block, declared with a size
	Tool      string // and its version
}

// AssemblerReportHeader is the first line of a table of Assembled; the columns of a
// row are separated by tabs.
const AssemblerReportHeader = "sha256\ttarget\tregisters\tspilled\tshared\ttool"

// Row is one line of the table, without its end.
func (a AssemblerReport) Row() string {
	return fmt.Sprintf(
		"%s\t%s\t%d\t%d\t%d\t%s",
		a.Hash, a.Target, a.Registers,
		a.Spilled, a.Shared, a.Tool,
	)
}

// AssemblerReports is the table of what assemblers have made of goldens, by
// hash: testdata/ptxas.tsv, which `tilewright doctor` writes anew where there is
// one.
func AssemblerReports() (map[string]AssemblerReport, error) {
	text, err := fs.ReadFile(goldenFiles, "testdata/ptxas.tsv")
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
