package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// An assembler is one ptxas.
type assembler struct {
	// The program's file.
	path string
	// Version is its release, such as 12.9.
	version string
}

// tools are NVIDIA's programs: two major versions of ptxas, and a disassembler.
type tools struct {
	// Assemblers are sorted by their folders, which puts CUDA 12 behind 13.
	assemblers []assembler
	// The disassembler is of the newest version, which reads all machine code.
	nvdisasm string
}

// findTools looks for the programs below the folder of a virtual environment.
func findTools(folder string) (tools, error) {
	// Each package of pip has a folder of its own below nvidia.
	find := func(name string) []string {
		all, _ := filepath.Glob(filepath.Join(folder, "lib/python*/site-packages/nvidia/*/bin", name))
		return all
	}
	var t tools
	majors := map[string]bool{}
	for _, path := range find("ptxas") {
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			return t, fmt.Errorf("%s: %w", path, err)
		}
		_, release, _ := strings.Cut(string(out), "release ")
		release, _, _ = strings.Cut(release, ",")
		major, _, _ := strings.Cut(release, ".")
		majors[major] = true
		t.assemblers = append(t.assemblers, assembler{path, release})
	}
	disassemblers := find("nvdisasm")
	if len(majors) < 2 || len(disassemblers) == 0 {
		return t, fmt.Errorf(
			"%s has %d major versions of ptxas and %d of nvdisasm; expected 2 and 1: `make judge-gpu` installs them",
			folder, len(majors), len(disassemblers),
		)
	}
	t.nvdisasm = disassemblers[0]
	return t, nil
}

// A usage is what ptxas -v says of one entry.
type usage struct {
	Entry string
	// Registers of a thread.
	Registers int
	// Bytes of a thread's stack frame, and of what it stores for want of registers.
	Stack, Spilled int
	// Smem is the bytes of shared memory that are declared with a size.
	Smem int
}

// An assembly is what one assembler made of a kernel.
type assembly struct {
	Version string
	// Failed is the first line of an error.
	Failed string
	// Warnings are lines that hint at slow code.
	Warnings []string
	Entries  []usage
}

// assemble assembles a file of PTX; the machine code is kept in cubin.
func (a assembler) assemble(file, arch, cubin string) assembly {
	out, err := exec.Command(
		a.path, "-v", "-warn-spills", "-warn-lmem-usage",
		"-arch="+arch, "-o", cubin, file,
	).CombinedOutput()
	r := assembly{Version: a.version}
	if err != nil {
		r.Failed = firstLine(string(out))
		if r.Failed == "" {
			r.Failed = err.Error()
		}
		return r
	}
	r.read(string(out))
	return r
}

// The lines of ptxas -v, of which each entry has three.
var (
	compiling = regexp.MustCompile(`Compiling entry function '([^']*)'`)
	framed    = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores`)
	used      = regexp.MustCompile(`Used (\d+) registers`)
	shared    = regexp.MustCompile(`(\d+) bytes smem`)
	// Advice has a number, as in (C7514) of products that are serialised.
	hint = regexp.MustCompile(`warning|\(C\d+\)|Potential`)
)

// read parses what ptxas -v printed.
func (r *assembly) read(said string) {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if m := compiling.FindStringSubmatch(line); m != nil {
			r.Entries = append(r.Entries, usage{Entry: m[1]})
			continue
		}
		if hint.MatchString(line) {
			r.Warnings = append(r.Warnings, line)
		}
		if len(r.Entries) == 0 {
			continue
		}
		u := &r.Entries[len(r.Entries)-1]
		if m := framed.FindStringSubmatch(line); m != nil {
			u.Stack, u.Spilled = number(m[1]), number(m[2])
		}
		if m := used.FindStringSubmatch(line); m != nil {
			u.Registers = number(m[1])
		}
		if m := shared.FindStringSubmatch(line); m != nil {
			u.Smem = number(m[1])
		}
	}
}

// number is the value of digits, 0 if there are none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// firstLine is the first line of an error message.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// disassemble is the machine code of a file as text.
func (t tools) disassemble(cubin string) (string, error) {
	out, err := exec.Command(t.nvdisasm, "-c", cubin).Output()
	if err != nil {
		return "", fmt.Errorf("nvdisasm: %w", err)
	}
	return string(out), nil
}

// write writes a file for a tool.
func write(folder, name, text string) (string, error) {
	path := filepath.Join(folder, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}
