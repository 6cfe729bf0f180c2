package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/tilewright/tilewright/kernels/gpu/golden"
)

// An assembler is NVIDIA's ptxas, if it is on the PATH.
type assembler struct {
	// The program; "" when there is none.
	path string
	// What it reports of itself: "ptxas 13.0".
	version string
}

// errNoAssembler says that a kernel could not be assembled for want of ptxas.
var errNoAssembler = errors.New("unassembled: no ptxas on the PATH")

// findAssembler searches the PATH for ptxas and asks it for its version.
func findAssembler(ctx context.Context) assembler {
	path, err := exec.LookPath("ptxas")
	if err != nil {
		return assembler{}
	}
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	_, release, _ := strings.Cut(string(out), "release ")
	release, _, _ = strings.Cut(release, ",")
	return assembler{path, "ptxas " + strings.TrimSpace(release)}
}

// assemble assembles a file of PTX for the target that its text names, and
// returns the registers and the memory that it uses.
func (a assembler) assemble(ctx context.Context, file, source string) (golden.AssemblerReport, error) {
	if a.path == "" {
		return golden.AssemblerReport{}, errNoAssembler
	}
	_, rest, _ := strings.Cut(source, ".target ")
	target, _, _ := strings.Cut(rest, "\n")
	row := golden.AssemblerReport{
		Hash:   golden.Hash(source),
		Target: strings.TrimSpace(target),
		Tool:   a.version,
	}
	out, err := exec.CommandContext(
		ctx, a.path, "-v",
		"-arch="+row.Target, "-o", os.DevNull, file,
	).CombinedOutput()
	if err != nil {
		return row, fmt.Errorf("refused: %s", firstLine(strings.TrimSpace(string(out))))
	}
	readUsage(string(out), &row)
	return row, nil
}

// readUsage parses the output of ptxas -v: "Used 40 registers, …, 1024 bytes
// smem" and "0 bytes stack frame, 8 bytes spill stores, …". Of several entries
// the largest numbers count.
func readUsage(said string, row *golden.AssemblerReport) {
	for line := range strings.Lines(said) {
		for part := range strings.SplitSeq(line[strings.LastIndexByte(line, ':')+1:], ",") {
			var n int
			switch part = strings.TrimSpace(part); {
			case scan(part, "Used %d registers", &n):
				row.Registers = max(row.Registers, n)
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

// usageText formats a row for people.
func usageText(a golden.AssemblerReport) string {
	return fmt.Sprintf(
		"%d registers, %d bytes spilled, %d bytes of shared memory",
		a.Registers, a.Spilled, a.Shared,
	)
}
