// Package assembler asks NVIDIA's ptxas, where there is one, what kernels take. The
// program needs none.
package assembler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/golden"
)

// An Assembler is NVIDIA's ptxas.
type Assembler struct {
	// The program; "" when there is none.
	Path string
	// What it reports of itself: "ptxas 13.0".
	Version string
}

// ErrNone says that a kernel could not be assembled for want of ptxas.
var ErrNone = errors.New("unassembled: no ptxas on the PATH")

// None is the name with which no assembler is looked for.
const None = "none"

// Find is the assembler that is named, a program, or with "" the ptxas on the PATH, if there is
// one. A program that is named and is not ptxas is an error, since it would refuse every
// plan; one that is found is passed over.
func Find(ctx context.Context, named string) (Assembler, error) {
	if named == None {
		return Assembler{}, nil
	}
	path, err := exec.LookPath(cmp.Or(named, "ptxas"))
	if err != nil && named == "" {
		return Assembler{}, nil
	}
	version := exec.CommandContext(ctx, cmp.Or(path, named), "--version")
	out, _ := version.Output()
	_, release, _ := strings.Cut(string(out), "release ")
	release, _, _ = strings.Cut(release, ",")
	switch {
	case release != "":
		return Assembler{path, "ptxas " + strings.TrimSpace(release)}, nil
	case named == "":
		// Another program that happens to be called so.
		return Assembler{}, nil
	}
	return Assembler{}, fmt.Errorf("%s: it does not say which version of ptxas it is", named)
}

// File assembles a file of PTX for the target that its text names, and
// returns the registers and the memory that it uses.
func (a Assembler) File(
	ctx context.Context, file, source string,
) (golden.AssemblerReport, error) {
	if a.Path == "" {
		return golden.AssemblerReport{}, ErrNone
	}
	_, rest, _ := strings.Cut(source, ".target ")
	target, _, _ := strings.Cut(rest, "\n")
	row := golden.AssemblerReport{
		Hash:   golden.Hash(source),
		Target: strings.TrimSpace(target),
		Tool:   a.Version,
	}
	// Resources are printed with -v only.
	out, err := exec.CommandContext(
		ctx, a.Path, "-v",
		"-arch="+row.Target, "-o", os.DevNull, file,
	).CombinedOutput()
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return row, fmt.Errorf("refused: %s", first)
	}
	readUsage(string(out), &row)
	row.Warning = device.AssemblerWarnings(string(out))
	return row, nil
}

// Text is what the assembler says of a text.
func (a Assembler) Text(
	ctx context.Context, text string,
) (gpu.Assembly, error) {
	// ptxas reads a file only; the code that it writes is not kept.
	f, err := os.CreateTemp("", "tilewright*.ptx")
	if err != nil {
		return gpu.Assembly{}, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return gpu.Assembly{}, err
	}
	// A plan of one kernel has one entry, so the most of all entries is what it takes.
	row, err := a.File(ctx, f.Name(), text)
	return gpu.Assembly{
		Registers:  row.Registers,
		Spilled:    row.Spilled,
		Stack:      row.Stack,
		Serialised: strings.Contains(row.Warning, "serialized"),
	}, err
}

// readUsage parses the output of ptxas -v: "Used 40 registers, …, 1024 bytes
// smem" and "0 bytes stack frame, 8 bytes spill stores, …". Of several entries
// the largest numbers count.
func readUsage(said string, row *golden.AssemblerReport) {
	for line := range strings.Lines(said) {
		numbers := line[strings.LastIndexByte(line, ':')+1:]
		for part := range strings.SplitSeq(numbers, ",") {
			var n int
			part = strings.TrimSpace(part)
			switch {
			case scan(part, "Used %d registers", &n):
				row.Registers = max(row.Registers, n)
			case strings.HasSuffix(part, "stack frame") &&
				scan(part, "%d bytes", &n):
				row.Stack = max(row.Stack, n)
			case strings.HasSuffix(part, "spill stores") &&
				scan(part, "%d bytes", &n):
				row.Spilled = max(row.Spilled, n)
			case strings.HasSuffix(part, "smem") &&
				scan(part, "%d", &n):
				row.Shared = max(row.Shared, n)
			}
		}
	}
}

// scan reads one number of a text that contains the given format.
func scan(text, format string, n *int) bool {
	_, err := fmt.Sscanf(text, format, n)
	return err == nil
}
