package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// A loop is the innermost loop of a kernel that has tensor instructions, by counts of
// its instructions.
type loop struct {
	// Instructions of all kinds.
	Instructions int
	// Tensor counts instructions of tensor cores, of which Group are a warpgroup's,
	// and Wide those of them that have at least 128 columns.
	Tensor, Group, Wide int
	// Ldsm counts ldmatrix, and Ldgsts copies to shared memory by cp.async.
	Ldsm, Ldgsts int
	// NarrowCopies are LDGSTS of less than 16 bytes.
	NarrowCopies int
	// Fences are MEMBAR, CCTL and ERRBAR; Calls BSSY, WARPSYNC and CALL; Local LDL and
	// STL; Uniform R2UR; Stores STG.
	Fences, Calls, Local, Uniform, Stores int
	// Converted counts F2FP, by which products of f8 are emulated.
	Converted int
}

// The lines of nvdisasm -c: labels, and instructions with their guards and operands.
var (
	label       = regexp.MustCompile(`^(\.L_\S+):`)
	instruction = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.a-z]*)(.*)`)
	branch      = regexp.MustCompile("`\\((\\.L_[^)]+)\\)")
	columns     = regexp.MustCompile(`GMMA\.64x(\d+)x`)
)

// A body is a whole kernel, by counts of its instructions.
type body struct {
	Instructions int
	// Special counts MUFU, by which functions are computed, and Calls those of slow
	// paths, such as that of a division that is rounded right.
	Special, Calls int
	// Narrow counts loads and stores of global memory of less than 16 bytes, and
	// Stored the bytes that stores have.
	Narrow, Stored int
}

// bodyOf counts the instructions of a disassembly.
func bodyOf(text string) (b body) {
	ops, _ := opcodes(text)
	for _, op := range ops {
		b.Instructions++
		name, _, _ := strings.Cut(op, ".")
		switch name {
		case "MUFU":
			b.Special++
		case "CALL":
			b.Calls++
		case "STG":
			b.Stored += accessBytes(op)
			fallthrough
		case "LDG":
			if accessBytes(op) < 16 {
				b.Narrow++
			}
		}
	}
	return b
}

// accessBytes is the width of an access by its opcode, 4 bytes where it does not say.
func accessBytes(op string) int {
	switch {
	case strings.Contains(op, ".128"):
		return 16
	case strings.Contains(op, ".64"):
		return 8
	case strings.Contains(op, "16"):
		return 2
	case strings.Contains(op, "8"):
		return 1
	}
	return 4
}

// opcodes lists the opcodes of a disassembly in order, and the ranges that backward
// branches repeat. A branch from behind the end of the kernel is that of the slow path of a
// wait, and repeats nothing.
func opcodes(text string) (ops []string, repeated [][2]int) {
	at := map[string]int{}
	end := 0
	// Labels are placed before the branches back to them.
	for line := range strings.Lines(text) {
		if m := label.FindStringSubmatch(line); m != nil {
			at[m[1]] = len(ops)
			continue
		}
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		to := branch.FindStringSubmatch(m[2])
		if to != nil && strings.HasPrefix(m[1], "BRA") {
			start, back := at[to[1]]
			if back && start >= end {
				repeated = append(repeated, [2]int{start, len(ops) + 1})
			}
		}
		ops = append(ops, m[1])
		if m[1] == "EXIT" && !strings.Contains(line, "@") {
			end = len(ops)
		}
	}
	return ops, repeated
}

// innermost lists the ranges that have tensor instructions, and overlap with no smaller
// one that has.
func innermost(ops []string, repeated [][2]int) (all [][2]int) {
	slices.SortFunc(repeated, func(x, y [2]int) int {
		return cmp.Compare(x[1]-x[0], y[1]-y[0])
	})
	// The smallest ranges come first.
	for _, r := range repeated {
		overlaps := slices.ContainsFunc(all, func(a [2]int) bool {
			return r[0] < a[1] && a[0] < r[1]
		})
		body := ops[r[0]:r[1]]
		if !overlaps && slices.ContainsFunc(body, tensor) {
			all = append(all, r)
		}
	}
	return all
}

// tensor reports whether an opcode is one of tensor cores.
func tensor(op string) bool {
	name, _, _ := strings.Cut(op, ".")
	return strings.HasSuffix(name, "GMMA") || strings.HasSuffix(name, "MMA")
}

// loops are the main loops of a disassembly.
func loops(text string) (all []loop) {
	ops, repeated := opcodes(text)
	for _, r := range innermost(ops, repeated) {
		l := loop{Instructions: r[1] - r[0]}
		for _, op := range ops[r[0]:r[1]] {
			l.count(op)
		}
		all = append(all, l)
	}
	return all
}

// count adds an instruction.
func (l *loop) count(op string) {
	name, _, _ := strings.Cut(op, ".")
	if tensor(op) {
		l.Tensor++
	}
	if strings.HasSuffix(name, "GMMA") {
		l.Group++
		m := columns.FindStringSubmatch(op)
		if m != nil && number(m[1]) >= 128 {
			l.Wide++
		}
	}
	switch name {
	case "LDSM":
		l.Ldsm++
	case "LDGSTS":
		l.Ldgsts++
		if !strings.Contains(op, ".128") {
			l.NarrowCopies++
		}
	case "MEMBAR", "CCTL", "ERRBAR", "CGAERRBAR":
		l.Fences++
	case "BSSY", "WARPSYNC", "CALL":
		l.Calls++
	case "LDL", "STL":
		l.Local++
	case "R2UR":
		l.Uniform++
	case "STG":
		l.Stores++
	case "F2FP":
		l.Converted++
	}
}
