package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
	"github.com/tilewright/tilewright/symtile/partition"
)

// showCommand shows what is known of a fusion without running it.
var showCommand = command{
	name: "show", args: "FILE", short: "indexing maps, symbolic tiles, constraints; or why not",
	long: `Shows what can be tiled: for every fusion its indexing maps from the result to each parameter, the
dimensions of its tilings, the constraints, the tile program and the number of tilings proposed. A module
that is not fused yet (StableHLO, or HLO before fusion) is split into fusions first; what is in none of them
is listed with the reason.

  tilewright show softmax.hlo
  tilewright show softmax.hlo -tiling 8,512,512,512          with these sizes
  tilewright show softmax.hlo -tiling 8,512,512,512 -at 3,0  the tiles of one tile program, as numbers

  tilewright show softmax.hlo -ptx -target sm_90            the kernel of the default plan for a GPU

  tilewright show tests.hlo#2                               the second module of a file that has several
  tilewright show module.pb                                 a module as XLA stores it (HloProto and the like)

-at takes the tile ids of the dimensions in order; those left out are 0. The comments of a kernel say which
tile and instruction each part comes from.`,
	run: runShow,
}

// showJSON is the result of show -json.
type showJSON struct {
	// Fusions of the file.
	Fusions []fusionJSON `json:"fusions"`
	// Instructions of an unfused module that stay outside of its fusions.
	Outside []outsideJSON `json:"outside,omitempty"`
}

// outsideJSON is an instruction of an unfused module that is in no fusion.
type outsideJSON struct {
	// Name, opcode, and why no fusion takes it.
	Instr  string `json:"instr"`
	Op     string `json:"op"`
	Reason string `json:"reason"`
}

// fusionJSON is what is known about one fusion without running it.
type fusionJSON struct {
	// Name of the fusion.
	Name string `json:"name"`
	// Operation and line of the user's program that it comes from.
	Source string `json:"source,omitempty"`
	// What the compiler and the framework noted on the instruction that executes it:
	// backend_config and frontend_attributes, as written.
	Config     string `json:"config,omitempty"`
	Attributes string `json:"attributes,omitempty"`
	// Fingerprint of its canonical form, hexadecimal.
	Fingerprint string `json:"fingerprint"`
	// Parameters with their shapes.
	Params []paramJSON `json:"params"`
	// Indexing maps of every parameter and output.
	Indexing []indexingJSON `json:"indexing"`
	// Iteration space of the tiles; null if there are none.
	Space *spaceJSON `json:"space"`
	// Tile of every operation.
	Tiles []tileJSON `json:"tiles"`
	// Number of legal tilings; with MoreTilings there are at least so many.
	Tilings     int64 `json:"tilings"`
	MoreTilings bool  `json:"moreTilings,omitempty"`
	// Why there are no tiles; null if there are.
	Untileable *untileableJSON `json:"untileable"`
	// The tile program as text.
	Program string `json:"program,omitempty"`

	// The sizes of tiles are variables.
	symbolic bool
}

// paramJSON is a parameter.
type paramJSON struct {
	// Name and shape, as HLO writes them.
	Name  string `json:"name"`
	Shape string `json:"shape"`
}

// indexingJSON lists the maps from the indices of an output to those of a
// parameter.
type indexingJSON struct {
	// Parameter, and number of the output.
	Param  string `json:"param"`
	Output int    `json:"output"`
	// Maps in the syntax of XLA; there are several where the parameter is read
	// in several ways.
	Maps []string `json:"maps"`

	// Notes says, of a map, where its run-time variables are read, that some of
	// what it relates may not be, or why it is unknown.
	Notes map[int][]string `json:"notes,omitempty"`
}

// add adds a map, with notes on what it leaves open.
func (j *indexingJSON) add(m index.Map) {
	notes := m.RuntimeText()
	if m.Approximate {
		notes = append(notes, "some of these elements may not be read")
	}
	if m.Why != "" {
		notes = append(notes, m.Why)
	}
	if len(notes) > 0 {
		if j.Notes == nil {
			j.Notes = map[int][]string{}
		}
		j.Notes[len(j.Maps)] = notes
	}
	j.Maps = append(j.Maps, m.String())
}

// spaceJSON is the iteration space of the tiles.
type spaceJSON struct {
	// Parallel dimensions, then sequential ones.
	Dims []dimJSON `json:"dims"`
	// Constraint under which a tiling is legal.
	Where string `json:"where"`
	// Constraint under which every tile is a box: no dimension has digits.
	Boxes string `json:"boxes"`
	// Tilings that the CPU backend runs: "all", or "boxes" only.
	CPU string `json:"cpu"`
	// Variables whose values are known when a tile program runs.
	Runtime []runtimeJSON `json:"runtime,omitempty"`
}

// runtimeJSON is a variable known at run time: the value of an instruction,
// clamped to an inclusive range.
type runtimeJSON struct {
	// Name of the variable.
	Name string `json:"name"`
	// The instruction.
	From string `json:"from"`
	// Inclusive range that the value is clamped to.
	Lo int64 `json:"lo"`
	Hi int64 `json:"hi"`
}

// dimJSON is a dimension of the space, with the instruction it comes from.
type dimJSON struct {
	// Names of the tile id and of the tile size.
	Name string `json:"name"`
	Size string `json:"size"`
	// Extent of the dimension in elements.
	Extent int64 `json:"extent"`
	// Kind is "parallel" or "sequential".
	Kind string `json:"kind"`
	// Opcode and name of the instruction that brings the dimension.
	From  string `json:"from"`
	Instr string `json:"instr"`
}

// tileJSON is the tile of one operation. Expressions are text; with -at they
// are integers.
type tileJSON struct {
	// Name and opcode of the operation.
	Instr string `json:"instr"`
	Op    string `json:"op"`
	// For each dimension, element i of the tile is index Offset + i·Stride, for
	// i below Size.
	Offset []any `json:"offset"`
	Size   []any `json:"size"`
	Stride []any `json:"stride"`
	// Elements whose index is below Lower, or not below Bound, are masked.
	Lower []any `json:"lower"`
	Bound []any `json:"bound"`

	// Digits of the dimensions that are more than a run, outermost first, by
	// the number of the dimension.
	Digits map[int][]digitJSON `json:"digits,omitempty"`
}

// digitJSON is one digit of a dimension.
type digitJSON struct {
	// The fields of a tile, for one digit.
	Offset any `json:"offset"`
	Size   any `json:"size"`
	Stride any `json:"stride"`
	Lower  any `json:"lower"`
	Bound  any `json:"bound"`
}

// untileableJSON is why a fusion has no tiles.
type untileableJSON struct {
	// Instruction that has no tile.
	Instr string `json:"instr"`
	// Rule of the propagation that refuses it.
	Rule string `json:"rule"`
	// Reason for people.
	Reason string `json:"reason"`
}

// runShow analyses every fusion of a file, or prints the kernel of one with
// -ptx.
func runShow(c *call) error {
	c.jsonFlag()
	name := c.String("fusion", "", "show only the fusion of this `name`")
	tiling := c.String("tiling", "", "tile `sizes`, e.g. 16,32")
	at := c.String("at", "", "tile `ids`, e.g. 1,0; needs -tiling")
	ptx := c.Bool("ptx", false, "print the kernel of a plan for a GPU instead")
	kernel := ptxFlags{
		target: c.String("target", "sm_90", "the `GPU` of -ptx: a target or a product, e.g. sm_80, H200"),
		plan:   c.String("plan", "", "the `plan` of -ptx, e.g. \"1,512,512,512 warps=8\""),
		tf32:   c.Bool("tf32", false, "let the default plan of -ptx round operands of products of f32 to tf32"),
		tiling: tiling,
	}
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	if *ptx {
		f, err := c.readFusion(args[0], *name)
		if err != nil {
			return err
		}
		return kernel.print(c, f)
	}
	if *kernel.plan != "" || *kernel.tf32 {
		return usagef("-plan and -tf32 need -ptx; tiles are shown with -tiling")
	}
	if *at != "" && *tiling == "" {
		return usagef("-at needs -tiling")
	}
	m, outside, err := c.readModule(args[0])
	if err != nil {
		return err
	}
	all, err := fusions(args[0], m, *name)
	if err != nil {
		return err
	}
	if *tiling != "" && len(all) > 1 {
		return usagef("%s has %d fusions; choose one with -fusion", args[0], len(all))
	}
	j := showJSON{Fusions: []fusionJSON{}}
	callers := callersOf(m)
	for _, f := range all {
		shown, err := showFusion(f, *tiling, *at)
		if err != nil {
			return err
		}
		shown.note(f, callers[f])
		j.Fusions = append(j.Fusions, *shown)
	}
	if *name == "" {
		j.addOutside(outside)
	}
	if c.json {
		return c.printJSON(j)
	}
	return j.print(c)
}

// tilingsText is the number of tilings, or that it is beyond counting.
func (j *fusionJSON) tilingsText() string {
	if j.MoreTilings {
		return "2^63 - 1 or more"
	}
	return strconv.FormatInt(j.Tilings, 10)
}

// callersOf finds for each fusion the first instruction that executes it.
func callersOf(m *hlo.Module) map[*hlo.Computation]*hlo.Instr {
	callers := map[*hlo.Computation]*hlo.Instr{}
	for _, c := range m.Computations {
		for _, i := range c.Instrs {
			if i.Op == hlo.OpFusion && callers[i.Attrs.Calls] == nil {
				callers[i.Attrs.Calls] = i
			}
		}
	}
	return callers
}

// note adds where f comes from, and what the module says of the instruction that
// executes it, which is nil for a module that is one fusion.
func (j *fusionJSON) note(f *hlo.Computation, caller *hlo.Instr) {
	j.Source = f.Source().String()
	if caller == nil {
		return
	}
	j.Config = caller.Text("backend_config")
	j.Attributes = caller.Text("frontend_attributes")
	if s := caller.Source().String(); s != "" {
		j.Source = s
	}
}

// addOutside notes what stays outside of the fusions.
func (j *showJSON) addOutside(outside []partition.Unfused) {
	for _, o := range untileable(outside) {
		j.Outside = append(j.Outside, outsideJSON{
			o.Instr.Name, string(o.Instr.Op), o.Reason,
		})
	}
}

// print prints all fusions for people.
func (j *showJSON) print(c *call) error {
	for k, f := range j.Fusions {
		if k > 0 {
			fmt.Fprintln(c.out)
		}
		f.print(c)
	}
	if len(j.Outside) == 0 {
		return nil
	}
	fmt.Fprintf(c.out, "\noutside of the fusions\n")
	t := c.table()
	for _, o := range j.Outside {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", o.Instr, o.Op, o.Reason)
	}
	return t.Flush()
}

// showFusion analyses one fusion. With tiling the sizes of its tiles are
// numbers, and with at, which needs it, so are the offsets of one tile. A
// fusion without tiles is described all the same: the reason takes the place of
// the space.
func showFusion(f *hlo.Computation, tiling, at string) (*fusionJSON, error) {
	print := f.Fingerprint()
	j := &fusionJSON{
		Name:        f.Name,
		Fingerprint: hex.EncodeToString(print[:]),
		Params:      []paramJSON{},
		Indexing:    []indexingJSON{},
		Tiles:       []tileJSON{},
	}
	for _, p := range f.Params {
		j.Params = append(j.Params, paramJSON{
			p.Name, p.Shape.String(),
		})
	}
	p, err := symtile.Analyze(f)
	var no *symtile.Untileable
	if errors.As(err, &no) {
		j.Untileable = &untileableJSON{no.Instr.Name, no.Rule, no.Reason}
	} else if err != nil {
		return nil, err
	}
	if err := j.index(f); err != nil && j.Untileable == nil {
		return nil, err
	}
	if p == nil {
		return j, nil
	}
	j.Tilings = p.Space.Count()
	j.MoreTilings = j.Tilings == math.MaxInt64
	j.Space = newSpaceJSON(p)
	value := func(e index.Expr) any { return e.String() }
	j.symbolic = tiling == ""
	if tiling != "" {
		if p, value, err = programAt(p, tiling, at); err != nil {
			return nil, err
		}
	}
	for _, op := range p.Ops {
		j.Tiles = append(j.Tiles, newTileJSON(op, value))
	}
	j.Program = p.String()
	return j, nil
}

// index fills in the maps of every parameter and output.
func (j *fusionJSON) index(f *hlo.Computation) error {
	for output := 0; ; output++ {
		r := index.NewRing()
		all, err := indexing.ParamMaps(r, f, output)
		if err != nil {
			if output > 0 {
				return nil // past the last output
			}
			return err
		}
		for k, maps := range all {
			row := indexingJSON{
				Param:  f.Params[k].Name,
				Output: output,
				Maps:   []string{},
			}
			for _, m := range maps {
				row.add(m)
			}
			j.Indexing = append(j.Indexing, row)
		}
	}
}

// newSpaceJSON converts the space of a program.
func newSpaceJSON(p *symtile.Program) *spaceJSON {
	s := p.Space
	j := &spaceJSON{
		Dims:  []dimJSON{},
		Where: s.Where.String(),
		Boxes: s.Boxes.String(),
		CPU:   "all",
	}
	if !cpu.WalksDigits(p) {
		j.CPU = "boxes"
	}
	for _, r := range p.Runtime {
		v, in := r.Var, r.Var.Range()
		j.Runtime = append(j.Runtime, runtimeJSON{
			v.String(),
			p.Ops[r.Op].Instr.Name,
			in.Lo,
			in.Hi,
		})
	}
	for _, d := range s.Dims {
		j.Dims = append(j.Dims, dimJSON{
			d.Name, d.Size.String(),
			d.Extent, d.Kind.String(),
			string(d.From.Op), d.From.Name,
		})
	}
	return j
}

// programAt substitutes tile sizes and, with at, the ids of a tile. The second
// result converts an expression to the value it has by then: a number where it
// is known, else text.
func programAt(
	p *symtile.Program, tiling, at string,
) (*symtile.Program, func(index.Expr) any, error) {
	sizes, err := parseSizes(tiling)
	if err != nil {
		return nil, nil, err
	}
	q, err := p.At(sizes)
	if err != nil {
		return nil, nil, err
	}
	if at == "" {
		return q, func(e index.Expr) any {
			return number(e, nil)
		}, nil
	}
	ids, err := parseSizes(at)
	if err != nil {
		return nil, nil, err
	}
	env, err := tileIDs(q, ids)
	return q, func(e index.Expr) any {
		return number(e, env)
	}, err
}

// tileIDs pairs the tile ids of a program with numbers.
func tileIDs(
	q *symtile.Program, ids []int64,
) (map[index.Expr]int64, error) {
	if len(ids) > len(q.Space.Dims) {
		return nil, fmt.Errorf(
			"-at has %d tile ids; the space has %d dimensions",
			len(ids), len(q.Space.Dims),
		)
	}
	env := map[index.Expr]int64{}
	for k, d := range q.Space.Dims {
		id := int64(0)
		if k < len(ids) {
			id = ids[k]
		}
		tiles, _ := d.Tiles.Value()
		if id < 0 || id >= max(1, tiles) {
			return nil, fmt.Errorf(
				"-at: tile id %d of %s is outside [0, %d]", id, d.Name, tiles-1,
			)
		}
		if _, fixed := d.Tid.Value(); !fixed {
			env[d.Tid] = id
		}
	}
	return env, nil
}

// number is the value of an expression that has one, and its text otherwise.
func number(e index.Expr, env map[index.Expr]int64) any {
	if v, ok := e.Value(); ok {
		return v
	}
	if env == nil {
		return e.String()
	}
	for _, v := range e.Vars() {
		if _, known := env[v]; !known { // at run time
			with := map[index.Expr]index.Expr{}
			for x, n := range env {
				with[x] = e.Ring().Const(n)
			}
			return e.Subst(with).String()
		}
	}
	return e.Eval(env)
}

// newTileJSON converts the tile of an operation.
func newTileJSON(op symtile.Op, value func(index.Expr) any) tileJSON {
	j := tileJSON{
		Instr:  op.Instr.Name,
		Op:     string(op.Code),
		Offset: []any{},
		Size:   []any{},
		Stride: []any{},
		Lower:  []any{},
		Bound:  []any{},
	}
	for _, d := range op.Tile {
		j.Offset, j.Size, j.Stride = append(
			j.Offset, value(d.Offset),
		),
			append(j.Size, value(d.Size)),
			append(j.Stride, value(d.Stride))
		j.Lower, j.Bound = append(j.Lower, value(d.Lower)),
			append(j.Bound, value(d.Bound))
	}
	for k, d := range op.Tile {
		for _, x := range d.Digits {
			if j.Digits == nil {
				j.Digits = map[int][]digitJSON{}
			}
			j.Digits[k] = append(j.Digits[k], digitJSON{
				value(x.Offset), value(x.Size),
				value(x.Stride), value(x.Lower),
				value(x.Bound),
			})
		}
	}
	return j
}

// print prints a fusion for people.
func (j *fusionJSON) print(c *call) {
	fmt.Fprintf(c.out, "%s  %s\n", j.Name, j.Fingerprint[:12])
	for _, note := range []struct{ name, text string }{
		{"from", j.Source},
		{"backend_config", j.Config},
		{"frontend_attributes", j.Attributes},
	} {
		if note.text != "" {
			fmt.Fprintf(c.out, "  %s %s\n", note.name, note.text)
		}
	}
	for _, p := range j.Params {
		fmt.Fprintf(c.out, "  %s: %s\n", p.Name, p.Shape)
	}
	fmt.Fprintln(c.out, "\nindexing, result → parameter")
	for _, row := range j.Indexing {
		for k, m := range row.Maps {
			output := ""
			if row.Output > 0 {
				output = fmt.Sprintf(" (output %d)", row.Output)
			}
			fmt.Fprintf(c.out, "  %s%s: %s\n", row.Param, output, m)
			for _, note := range row.Notes[k] {
				fmt.Fprintf(c.out, "    %s\n", note)
			}
		}
	}
	if j.Untileable != nil {
		fmt.Fprintf(
			c.out, "\nnot tileable: %s: %s [%s]\n",
			j.Untileable.Instr,
			j.Untileable.Reason, j.Untileable.Rule,
		)
		return
	}
	fmt.Fprintf(c.out, "\ntile program, %s tilings proposed\n", j.tilingsText())
	for _, line := range strings.Split(strings.TrimSpace(j.Program), "\n") {
		fmt.Fprintf(c.out, "  %s\n", line)
	}
	if j.symbolic &&
		j.Space.Boxes != index.Constraint(nil).String() {
		walks := "runs all of them"
		if j.Space.CPU == "boxes" {
			walks = "runs boxes only: something here looks at the indices or masks of digits"
		}
		fmt.Fprintf(c.out, "  other tilings have digits, (sizes) and (strides) in one dimension; the cpu backend %s\n", walks)
	}
	j.printTiles(c)
}

// printTiles prints the tiles as a table, if all of them are numbers.
func (j *fusionJSON) printTiles(c *call) {
	for _, t := range j.Tiles {
		for _, v := range t.Offset {
			if _, ok := v.(int64); !ok {
				return
			}
		}
	}
	fmt.Fprintln(c.out, "\ntiles at these tile ids")
	t := c.table()
	for _, x := range j.Tiles {
		fmt.Fprintf(
			t, "  %s\toffset %v\tsize %v\tstride %v\tindices from %v below %v\n",
			x.Instr, x.Offset, x.Size,
			x.Stride, x.Lower, x.Bound,
		)
	}
	t.Flush()
}

// ptxJSON is the result of show -ptx -json.
type ptxJSON struct {
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Architecture that the code is for: "sm_90a".
	Target string `json:"target"`
	// Plan that was compiled.
	Plan string `json:"plan"`
	// The kernel.
	PTX string `json:"ptx"`
}

// ptxFlags are the flags of show -ptx.
type ptxFlags struct {
	target, tiling, plan *string
	tf32                 *bool
}

// print prints the kernel of a plan, which is the default plan if neither a
// plan nor a tiling is given. Nothing is run.
func (f ptxFlags) print(c *call, fusion *hlo.Computation) error {
	sheet, err := device.ParseSpec(*f.target)
	if err != nil {
		return usagef("-target: %v", err)
	}
	p, err := symtile.Analyze(fusion)
	if err != nil {
		return err
	}
	standard := gpu.DefaultPlan
	if *f.tf32 {
		standard = gpu.TF32Plan
	}
	chosen, err := chosenPlan(*f.tiling, *f.plan, func() (kernels.Plan, error) {
		return standard(p, sheet)
	})
	if err != nil {
		return err
	}
	text, err := gpu.PTX(p, chosen, sheet)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(ptxJSON{fusion.Name, sheet.Target, chosen.String(), text})
	}
	fmt.Fprintf(c.out, "// plan %s\n%s", chosen, text)
	return nil
}
