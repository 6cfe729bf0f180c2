package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/line"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/threads"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
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

  tilewright show softmax.hlo -threads -target sm_90        which bytes its threads load and store
  tilewright show softmax.hlo -svg touched.svg              a picture of that

  tilewright show tests.hlo#2                               the second module of a file; each of several without #2
  tilewright show module.pb                                 a module as XLA stores it (HloProto and the like)

Of fusions that differ in extents only the first is shown, and the others are named; -v, -fusion and -json show each.

-at takes the tile ids of the dimensions in order; those left out are 0. The comments of a kernel say which
tile and instruction each part comes from.`,
	run: runShow,
}

// showJSON is the result of show -json.
type showJSON struct {
	// Fusions of the file.
	Fusions []*query.Fusion `json:"fusions"`
	// Instructions of an unfused module that stay outside of its fusions.
	Outside []query.Outside `json:"outside,omitempty"`

	// The sizes of tiles are variables.
	symbolic bool
	// Fusions that differ in extents only are printed one by one.
	each bool
}

// runShow analyses every fusion of a file, or prints the kernel of one with
// -ptx.
func runShow(c *call) error {
	c.jsonFlag()
	name := c.String("fusion", "", "show only the fusion of this `name`")
	tiling := c.String("tiling", "", "tile `sizes`, e.g. 16,32")
	at := c.String("at", "", "tile `ids`, e.g. 1,0; needs -tiling")
	each := c.Bool("v", false, "print every fusion, also those that differ in extents only, of which the first is printed else")
	ptx := c.Bool("ptx", false, "print the kernel of a plan for a GPU instead")
	kernel := ptxFlags{
		target:  c.String("target", "sm_90", "the `GPU` of -ptx, -threads and -svg: a target or a product, e.g. sm_80, H200"),
		plan:    c.String("plan", "", "the `plan` of these three, e.g. \"row=1 col=512 max=512 sum=512 warps=8\" or \"1,512,512,512 warps=8\""),
		tf32:    c.Bool("tf32", false, "let the default plan of these three round operands of products of f32 to tf32"),
		tiling:  tiling,
		threads: c.Bool("threads", false, "print what the threads of a plan for a GPU touch: the map of every load and store from thread to byte"),
		svg:     c.String("svg", "", "draw what a warp of a plan for a GPU touches of every array, in this `file`"),
		replace: c.replaceFlag(),
	}
	device := c.splitFlag()
	c.shapeFlag()
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	tiles := !*ptx && !*kernel.threads && *kernel.svg == ""
	if !tiles {
		if *device != "cpu" {
			return usagef("-device says for what a module is split; with -ptx, -threads and -svg that is the GPU of -target")
		}
		*device = "sim:sm_90" // any GPU is split for alike
	}
	if err := c.splitFor(*device); err != nil {
		return err
	}
	return c.eachShape(func() error {
		if tiles {
			return kernel.tiles(c, args[0], *name, *at, *each)
		}
		f, err := c.readFusion(args[0], *name)
		if err != nil {
			return err
		}
		return kernel.print(c, f)
	})
}

// tiles shows the maps and tiles of the fusions of the modules of a file, or of the one of a name.
func (f ptxFlags) tiles(c *call, file, name, at string, each bool) error {
	if *f.plan != "" || *f.tf32 {
		return usagef("-plan and -tf32 need -ptx, -threads or -svg; tiles are shown with -tiling")
	}
	if at != "" && *f.tiling == "" {
		return usagef("-at needs -tiling")
	}
	return c.eachModule(file, name != "" || *f.tiling != "", func(file string, split *partition.Result) error {
		return f.tilesOf(c, file, split, name, at, each)
	})
}

// tilesOf shows the maps and tiles of the fusions of a module, or of the one of a name.
func (f ptxFlags) tilesOf(c *call, file string, split *partition.Result, name, at string, each bool) error {
	m := split.Module
	all, err := fusions(file, m, name)
	if err != nil {
		return err
	}
	if *f.tiling != "" && len(all) > 1 {
		return usagef("%s has %d fusions; choose one with -fusion", file, len(all))
	}
	point, err := parsePoint(*f.tiling, at)
	if err != nil {
		return err
	}
	j := showJSON{Fusions: []*query.Fusion{}, symbolic: *f.tiling == "", each: each}
	d := describer{
		ctx: c.ctx, callers: m.Callers(), point: point, outlined: !c.json && !each && point.Sizes == nil,
		first: map[[32]byte]*query.Fusion{}, structures: map[cache.Fingerprint]*query.Fusion{},
	}
	for _, f := range all {
		shown, err := d.describe(f)
		if err != nil {
			return err
		}
		j.Fusions = append(j.Fusions, shown)
	}
	if name == "" {
		j.Outside = query.NewOutside(split.Outside)
	}
	if c.json {
		return c.printJSON(j)
	}
	return j.print(c)
}

// A describer describes the fusions of a module in order.
type describer struct {
	ctx     context.Context
	callers map[*hlo.Computation][]*hlo.Instr
	point   query.Point
	// Fusions that are printed in one line with others of their structure need no maps
	// and tiles.
	outlined bool
	// The first fusion of each fingerprint and of each structure.
	first      map[[32]byte]*query.Fusion
	structures map[cache.Fingerprint]*query.Fusion
}

// describe describes the next fusion.
func (d *describer) describe(f *hlo.Computation) (shown *query.Fusion, err error) {
	print := f.Fingerprint()
	if shown := d.first[print]; shown != nil {
		return shown.Again(f, d.callers[f]), nil
	}
	structure := cache.StructureOf(f.Canonical()).Print
	stands := d.structures[structure]
	if stands != nil && d.outlined {
		if shown, err = query.Outline(d.ctx, f, d.callers[f]); err != nil {
			return nil, err
		}
	}
	if shown == nil || !tiledAs(shown, stands) {
		if shown, err = query.NewFusion(d.ctx, f, d.callers[f], d.point); err != nil {
			return nil, err
		}
	}
	if stands == nil {
		stands = shown
		d.structures[structure] = shown
	}
	shown.Structure = stands.Name
	d.first[print] = shown
	return shown, nil
}

// parsePoint reads the sizes of -tiling and the tile ids of -at, which are lists of
// whole numbers in the order of the dimensions of the space. An empty text leaves its
// part symbolic: the sizes, or the ids of the tile.
func parsePoint(tiling, at string) (p query.Point, err error) {
	if tiling != "" {
		if p.Sizes, err = parseSizes(tiling); err != nil {
			return p, err
		}
	}
	if at != "" {
		p.IDs, err = parseSizes(at)
	}
	return p, err
}

// alike has the first fusion of each structure, and of the structures of several distinct
// ones the names of the others that are tiled as it is, which it stands for.
func (j *showJSON) alike() (first map[string]*query.Fusion, all map[*query.Fusion][]string) {
	first, all = map[string]*query.Fusion{}, map[*query.Fusion][]string{}
	distinct := map[string]int{}
	for _, f := range j.Fusions {
		if f.Same == "" {
			distinct[f.Structure]++
		}
		if stands := first[f.Structure]; stands == nil {
			first[f.Structure] = f
		} else if tiledAs(f, stands) {
			all[stands] = append(all[stands], f.Name)
		}
	}
	maps.DeleteFunc(all, func(f *query.Fusion, _ []string) bool { return j.each || distinct[f.Structure] < 2 })
	return first, all
}

// tiledAs reports whether both fusions can be tiled, or neither can.
func tiledAs(a, b *query.Fusion) bool { return (a.Untileable == nil) == (b.Untileable == nil) }

// print prints all fusions for people.
func (j *showJSON) print(c *call) error {
	first, alike := j.alike()
	for k, f := range j.Fusions {
		stands := first[f.Structure]
		like := alike[stands]
		if stands != f && len(like) > 0 && tiledAs(f, stands) {
			continue
		}
		if k > 0 {
			fmt.Fprintln(c.out)
		}
		printFusion(c, f, j.symbolic)
		if stands == f && len(like) > 0 {
			text := fmt.Sprintf("%d more differ in extents only or are the same, and are tiled like it: %s (-v prints each)", len(like), firstShapes(like))
			fmt.Fprintf(c.out, "\n%s\n", line.Wrap(line.Width, text))
		}
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

// printFusion prints a fusion for people: where it comes from, its parameters, its maps
// and its tile program, or why it has none. symbolic says that the sizes of its tiles
// are variables, so that the tilings whose tiles are no boxes are worth a line.
func printFusion(c *call, j *query.Fusion, symbolic bool) {
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
	if j.Same != "" {
		fmt.Fprintf(c.out, "  is the same as %s\n", j.Same)
		return
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
	if j.Unindexed != "" {
		fmt.Fprintf(c.out, "  not written: %s\n", j.Unindexed)
	}
	if j.Untileable != nil {
		fmt.Fprintf(
			c.out, "\nnot tileable: %s: %s [%s]\n",
			j.Untileable.Instr,
			j.Untileable.Reason, j.Untileable.Rule,
		)
		return
	}
	tilings := strconv.FormatInt(j.Tilings, 10)
	if j.MoreTilings {
		tilings = "2^63 - 1 or more"
	}
	fmt.Fprintln(c.out, "\ndimensions of a plan")
	t := c.table()
	for _, d := range j.Space.Dims {
		fmt.Fprintf(t, "  %s\t%s\textent %d\t%s\tfrom %s\n", d.Role, d.Name, d.Extent, d.Kind, d.Instr)
	}
	t.Flush()
	if j.Unwritten != "" {
		fmt.Fprintf(c.out, "\ntile program, %s tilings proposed, not written: %s\n", tilings, j.Unwritten)
		return
	}
	fmt.Fprintf(c.out, "\ntile program, %s tilings proposed\n", tilings)
	for _, line := range strings.Split(strings.TrimSpace(j.Program), "\n") {
		fmt.Fprintf(c.out, "  %s\n", line)
	}
	if symbolic &&
		j.Space.Boxes != index.Constraint(nil).String() {
		walks := "runs all of them"
		if j.Space.CPU == "boxes" {
			walks = "runs boxes only: something here looks at the indices or masks of digits"
		}
		fmt.Fprintf(c.out, "  other tilings have digits, (sizes) and (strides) in one dimension; the cpu backend %s\n", walks)
	}
	printTiles(c, j)
}

// printTiles prints the tiles as a table, if all of them are numbers.
func printTiles(c *call, j *query.Fusion) {
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
	// Plan that was compiled, and the names of its dimensions.
	Plan string            `json:"plan"`
	Dims kernels.PlanNames `json:"dims,omitempty"`
	// The kernel.
	PTX string `json:"ptx"`
}

// ptxFlags are the flags of show -ptx.
type ptxFlags struct {
	target, tiling, plan, svg *string
	tf32, threads, replace    *bool
}

// print prints the kernel of a plan, which is the default plan if neither a
// plan nor a tiling is given. Nothing is run.
func (f ptxFlags) print(c *call, fusion *hlo.Computation) error {
	sheet, err := device.ParseSpec(*f.target)
	if err != nil {
		return usagef("-target: %v", err)
	}
	p, err := symtile.Analyze(c.ctx, fusion)
	if err != nil {
		return err
	}
	standard := gpu.DefaultPlan
	if *f.tf32 {
		standard = gpu.TF32Plan
	}
	names := kernels.PlanNamesOf(p)
	chosen, err := chosenPlan(*f.tiling, *f.plan, names, func() (kernels.Plan, error) {
		return standard(c.ctx, p, sheet)
	})
	if err != nil {
		return err
	}
	if *f.threads || *f.svg != "" {
		return f.touched(c, p, chosen, sheet)
	}
	text, err := gpu.PTX(p, chosen, sheet)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(ptxJSON{fusion.Name, sheet.Target, chosen.String(), names, text})
	}
	fmt.Fprintf(c.out, "// plan %s\n%s", names.Text(chosen), text)
	return nil
}

// threadsJSON is the result of show -threads -json.
type threadsJSON struct {
	// Name of the fusion, architecture, plan, and names of its dimensions.
	Fusion string            `json:"fusion"`
	Target string            `json:"target"`
	Plan   string            `json:"plan"`
	Dims   kernels.PlanNames `json:"dims,omitempty"`
	// Loads and stores of global memory, in the order of the code.
	Threads []threads.Line `json:"threads"`
	// File of the picture.
	SVG string `json:"svg,omitempty"`
}

// touched prints what the threads of a plan touch, and draws it.
func (f ptxFlags) touched(c *call, p *symtile.Program, plan kernels.Plan, sheet device.Spec) error {
	all, err := gpu.Touches(p, plan, sheet)
	if err != nil {
		return err
	}
	j := threadsJSON{Fusion: p.Fusion.Name, Target: sheet.Target, Plan: plan.String(), Dims: kernels.PlanNamesOf(p), SVG: *f.svg}
	if j.Threads, err = threads.Lines(all); err != nil {
		return err
	}
	if *f.svg != "" {
		title := fmt.Sprintf("%s on %s, plan %s", j.Fusion, j.Target, j.Dims.Text(plan))
		picture, err := threads.SVG(title, all)
		if err != nil {
			return err
		}
		file := c.output("svg", *f.svg, output.Picture, *f.replace)
		if err := file.Write(func(w *bufio.Writer) error { _, err := w.Write(picture); return err }); err != nil {
			return err
		}
	}
	if c.json {
		return c.printJSON(j)
	}
	fmt.Fprintf(c.out, "%s on %s, plan %s\n", j.Fusion, j.Target, j.Dims.Text(plan))
	for _, l := range j.Threads {
		fmt.Fprintf(c.out, "  %s\n", l)
	}
	if *f.svg != "" {
		fmt.Fprintf(c.out, "picture: %s\n", *f.svg)
	}
	return nil
}
