package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

//go:embed beside.json
var besideRows []byte

// A comparison is a kernel of Triton and one of this backend for the same tile, warps
// and stages. beside.py compiles Triton's.
type comparison struct {
	Name string
	// Arch is what both are assembled for.
	Arch string
	// HLO and Plan give our kernel; no plan is the default, no HLO none of ours.
	HLO, Plan string
	// Stored is set where instructions are counted for 16 bytes stored, not loaded.
	Stored bool `json:",omitempty"`
	// Cause says why ours takes more, where it does.
	Cause string `json:",omitempty"`
	// Kernel and what follows are Triton's.
	Kernel        string
	Args          map[string]any
	Warps, Stages int
}

// A code is what the assembler made of a kernel.
type code struct {
	// Registers of a thread, and bytes of shared memory of a block.
	registers, shared int
	// Threads of a block.
	threads int
	// Work is the instructions a unit: of the loop for 2,048 multiply-adds of a warp, or
	// for 16 bytes loaded, or of a kernel without loops.
	work float64
	// Loop is the instructions of the main loop, 0 if there is none, and tensor those
	// of tensor cores in it, or in the kernel.
	loop, tensor int
	// Spilled bytes.
	spilled int
}

// beside compares the kernels of a folder that beside.py wrote with ours, and prints a
// table.
func beside(t tools, folder string, out io.Writer) error {
	// The newest assembler is taken.
	var rows []comparison
	if err := json.Unmarshal(besideRows, &rows); err != nil {
		return fmt.Errorf("beside.json: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	last := t.assemblers[0]
	for _, a := range t.assemblers {
		if a.version > last.version {
			last = a
		}
	}
	fmt.Fprintf(out, besideHead, last.version)
	fmt.Fprintln(w, "kernel\ttarget\tour plan\tinstructions a unit\tmain loop\ttensor\tregisters\tshared memory")
	var causes []string
	var kept targetsKept
	for n := range rows {
		r := &rows[n]
		theirs, err := r.triton(t, last, filepath.Join(folder, strconv.Itoa(n)))
		if err != nil {
			return fmt.Errorf("%s: Triton's: %w", r.Name, err)
		}
		// A plan that is not legal is a shortfall, not an error.
		ours, plan, err := r.own(t, last)
		var illegal *kernels.Rejected
		switch {
		case r.HLO == "" || errors.As(err, &illegal):
			fmt.Fprintf(w, "%s\t%s\tnone\t-/%.3g\t-/%d\t-/%d\t-/%d\t-/%d\n", r.Name, r.Arch, theirs.work, theirs.loop, theirs.tensor, theirs.registers, theirs.shared)
		case err != nil:
			return fmt.Errorf("%s: %w", r.Name, err)
		default:
			kept.add(&ours, &theirs)
			fmt.Fprintf(
				w, "%s\t%s\t%s\t%.3g/%.3g = %.2f\t%d/%d\t%d/%d\t%d/%d = %.2f\t%d/%d\n",
				r.Name, r.Arch, plan, ours.work, theirs.work, ours.work/theirs.work,
				ours.loop, theirs.loop, ours.tensor, theirs.tensor,
				ours.registers, theirs.registers, float64(ours.registers)/float64(theirs.registers),
				ours.shared, theirs.shared,
			)
		}
		if illegal != nil {
			causes = append(causes, fmt.Sprintf("%s, %s: the plan is not offered: %v", r.Name, r.Arch, illegal))
		}
		if r.Cause != "" {
			causes = append(causes, r.Name+", "+r.Arch+": "+r.Cause)
		}
	}
	// Shares and causes follow the table.
	w.Flush()
	fmt.Fprintf(
		out, "\nOf %d kernels, %d take at most as many instructions a unit, %d at most 1.1 times the registers, %d at most 1.05 times the shared memory, and %d as many tensor instructions.\n\n",
		kept.all, kept.work, kept.registers, kept.shared, kept.tensor,
	)
	for _, c := range causes {
		fmt.Fprintln(out, "* "+c)
	}
	return nil
}

// besideHead says what the columns are.
const besideHead = `What ptxas %s makes of our kernels and of Triton's for the same tile, warps and stages:
ours/Triton's. Made by "make judge-triton"; nothing of it is a time.

Instructions are those of the main loop for 2,048 multiply-adds of a warp (one m16n8k16), and
otherwise those of the loop, or of a kernel without one, for 16 bytes loaded (softmax,
layernorm, transpose: stored). Stages are buffers: on sm_80 Triton has one less than num_stages.

`

// targetsKept counts kernels that are within what is aimed at.
type targetsKept struct{ all, work, registers, shared, tensor int }

func (k *targetsKept) add(ours, theirs *code) {
	k.all++
	count := func(n *int, within bool) {
		if within {
			*n++
		}
	}
	count(&k.work, ours.work <= theirs.work)
	count(&k.registers, 10*ours.registers <= 11*theirs.registers)
	// The 32 bytes more of small kernels are no finding.
	count(&k.shared, ours.shared <= theirs.shared+theirs.shared/20 || ours.shared <= 1024)
	count(&k.tensor, ours.tensor == theirs.tensor)
}

// triton assembles a kernel of Triton.
func (r *comparison) triton(t tools, a assembler, path string) (code, error) {
	var launch struct{ Shared, Threads int }
	text, err := os.ReadFile(path + ".json")
	if err == nil {
		err = json.Unmarshal(text, &launch)
	}
	if err != nil {
		return code{}, err
	}
	return r.assemble(t, a, path+".ptx", launch.Shared, launch.Threads)
}

// own emits and assembles our kernel, and gives its plan.
func (r *comparison) own(t tools, a assembler) (code, string, error) {
	if r.HLO == "" {
		return code{}, "", nil
	}
	name := r.Arch
	if name == "sm_90a" {
		name = "H100"
	}
	// H100 is the device of sm_90a.
	spec, err := device.ParseSpec(name)
	if err != nil {
		return code{}, "", err
	}
	// The rows are single computations, without a module.
	m, err := hlo.Parse(r.Name, []byte(r.HLO))
	if err != nil {
		return code{}, "", err
	}
	p, err := symtile.Analyze(context.Background(), m.Entry)
	if err != nil {
		return code{}, "", err
	}
	plan, err := kernels.ParsePlan(r.Plan)
	if r.Plan == "" {
		plan, err = defaultPlan(p, spec)
	}
	if err != nil {
		return code{}, "", err
	}
	f, err := gpu.FootprintOf(p, plan, spec)
	if err != nil {
		return code{}, "", err
	}
	folder, err := os.MkdirTemp("", "beside")
	if err != nil {
		return code{}, "", err
	}
	defer os.RemoveAll(folder)
	file, err := write(folder, "own.ptx", f.PTX)
	if err != nil {
		return code{}, "", err
	}
	// Of plans of several kernels, the first does the work.
	c, err := r.assemble(t, a, file, f.Launched[0].Shared, f.Launched[0].Threads)
	return c, plan.String(), err
}

// assemble assembles and disassembles a file of PTX; dynamic shared memory is added.
func (r *comparison) assemble(t tools, a assembler, file string, dynamic, threads int) (code, error) {
	// The machine code stays beside the text.
	cubin := strings.TrimSuffix(file, ".ptx") + ".cubin"
	s := a.assemble(file, r.Arch, cubin)
	if s.Failed != "" || len(s.Entries) == 0 {
		return code{}, fmt.Errorf("ptxas: %s", s.Failed)
	}
	text, err := t.disassemble(cubin)
	if err != nil {
		return code{}, err
	}
	u := s.Entries[0]
	c := code{
		registers: u.Registers, spilled: u.Spilled,
		shared: dynamic + u.Smem, threads: threads,
	}
	c.measure(text, r.Stored)
	return c, nil
}

// measure counts the instructions of the main loop, or of the kernel.
func (c *code) measure(text string, stored bool) {
	// Padding at the end is no work.
	ops, repeated := opcodes(text)
	ops = slices.DeleteFunc(ops, func(op string) bool { return op == "NOP" })
	// The loop with the most tensor instructions, or else the most bytes.
	repeated = slices.DeleteFunc(repeated, func(r [2]int) bool { return r[1] > len(ops) })
	best, most := [2]int{0, len(ops)}, 0
	for _, r := range append(innermost(ops, repeated), repeated...) {
		units, _ := c.units(ops[r[0]:r[1]], stored)
		// Of loops that do as much, the smallest is the innermost.
		if units > most || units == most && units > 0 && r[1]-r[0] < c.loop {
			best, most, c.loop = r, units, r[1]-r[0]
		}
	}
	// A kernel without loops is counted as a whole.
	body := ops[best[0]:best[1]]
	units, tensors := c.units(body, stored)
	c.tensor = tensors
	c.work = float64(len(body)) / float64(max(1, units))
}

// units is the work of instructions, in multiply-adds of 2,048, or else in 16 bytes, and
// the number of tensor instructions.
func (c *code) units(ops []string, stored bool) (units, tensors int) {
	// Where there are tensor instructions, bytes do not count.
	sums, bytes := 0, 0
	for _, op := range ops {
		if tensor(op) {
			tensors++
			sums += multiplyAdds(op)
		}
		if strings.HasPrefix(op, "LDG.") && !stored || strings.HasPrefix(op, "STG.") && stored {
			bytes += accessBytes(op)
		}
	}
	if tensors > 0 {
		return sums / 2048, tensors
	}
	return bytes / 16, 0
}

// The shapes of tensor instructions: m16n8k16 as 16816, a warpgroup's as 64x256x16.
var (
	warpShape  = regexp.MustCompile(`MMA\.(?:SP\.)?16(8)(\d+)`)
	groupShape = regexp.MustCompile(`GMMA\.64x(\d+)x(\d+)`)
)

// multiplyAdds are those of a warp.
func multiplyAdds(op string) int {
	if m := warpShape.FindStringSubmatch(op); m != nil {
		return 16 * 8 * number(m[2])
	}
	if m := groupShape.FindStringSubmatch(op); m != nil {
		return 16 * number(m[1]) * number(m[2])
	}
	return 0
}

// defaultPlan is the plan that the backend takes first.
func defaultPlan(p *symtile.Program, spec device.Spec) (kernels.Plan, error) {
	b, err := openSimulated(spec)
	if err != nil {
		return kernels.Plan{}, err
	}
	defer b.Close()
	return b.Default(context.Background(), p)
}
