package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/packtiming"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/npy"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/symtile/layout/draw"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// layoutCommand explains memory layouts and access patterns.
var layoutCommand = command{
	name: "layout", args: "SHAPE", short: "tiled layouts, pack and unpack, access patterns; pictures",
	long: `Shows how an array lies in memory: its size with padding, the pads, reshapes and transposes that make
it, and the maps from an element to its position and back.

  tilewright layout 'f32[3,5]{1,0:T(2,2)}'
  tilewright layout 'bf16[32,256]{1,0:T(8,128)(2,1)}' -element 9,130     where is it?
  tilewright layout 'f32[3,5]{1,0:T(2,2)}' -position 17                  what is there?
  tilewright layout 'f32[3,5]{1,0:T(2,2)}' -svg layout.svg               a picture of it

-pack packs the array as tensor.pack does, and says whether packing pays; with -dot, for that one:

  tilewright layout 'f32[2048,2048]' -pack 'inner_dims_pos=[0,1] inner_tiles=[64,64]'
  tilewright layout 'f32[2048,2048]' -pack 'inner_dims_pos=[0,1] inner_tiles=[64,64]' -dot 512,2048,2048

-time measures it on the processor: the default plans of the dot with the operand as it is and packed, run in
turns, and of packing it. The answer is kept in -db, and given without -time, too, until the code generator changes.

  tilewright layout 'f32[2048,2048]' -pack 'inner_dims_pos=[1] inner_tiles=[64] outer_dims_perm=[1,0]' -dot 512,2048,2048 -time 5s

-unpack takes the array for a packed one and says what it unpacks to. With -in and -out the elements of a
NumPy file are moved: packed, unpacked, or laid out in the tiles of the layout:

  tilewright layout 'f32[129,47]' -pack 'inner_dims_pos=[0,1] inner_tiles=[8,32] padding_value=0' -in a.npy -out packed.npy
  tilewright layout 'f32[17,2,8,32]' -unpack 'inner_dims_pos=[0,1] inner_tiles=[8,32] to 129x47' -in packed.npy -out a.npy

-threads gives the array to the threads of a GPU. A block of threads takes a -tile; along each dimension
it has so many threads with so many neighbouring -elements each. Shown are the map to byte offsets, the
widest vectors, the sectors that warps touch, and the parts of the grid that need no mask:

  tilewright layout 'f32[1024,1024]' -tile 8,128 -threads 8,32 -elements 1,4
  tilewright layout 'f32[1000,1000]{0,1}' -tile 8,128 -threads 8,32 -order 1,0 -svg access.svg
  tilewright layout 'f32[1024,1024]' -tile 8,128 -threads 8,32 -svg access.svg -pick 'block=0,3 warp=2'

Without -pick the worst warp is drawn.`,
	run: runLayout,
}

// layoutJSON is the result of layout -json.
type layoutJSON struct {
	// Shape with its layout, as HLO writes it.
	Shape string `json:"shape"`
	// Extents of the physical array.
	Physical []int64 `json:"physical"`
	// Elements of the logical array.
	Elements int64 `json:"elements"`
	// Elements of the physical array that hold no logical element.
	Padding int64 `json:"padding"`
	// Bytes of the physical array.
	Bytes int64 `json:"bytes"`
	// Steps from the logical to the physical array.
	Steps []string `json:"steps"`
	// Map from logical to physical indices.
	Map string `json:"map"`
	// Map from positions to logical indices.
	Inverse string `json:"inverse"`
	// Parts that the flags ask for.
	Element *elementJSON `json:"element,omitempty"`
	Pack    *packJSON    `json:"pack,omitempty"`
	Access  *accessJSON  `json:"access,omitempty"`
	// File that the picture was written to.
	SVG string `json:"svg,omitempty"`
	// File that the elements of -in were written to.
	Out string `json:"out,omitempty"`
}

// elementJSON is one position in memory.
type elementJSON struct {
	// Index is null in padding.
	Index []int64 `json:"index"`
	// Index in the physical array.
	Physical []int64 `json:"physical,omitempty"`
	// Position in elements.
	Position int64 `json:"position"`
	// First bit of the element.
	Bit int64 `json:"bit"`
}

// packJSON is a pack operation and the maps that it defines.
type packJSON struct {
	// The operation as text.
	Op string `json:"op"`
	// Extents of the packed array.
	Packed []int64 `json:"packed"`
	// Pads, reshapes and transposes that are the same.
	Steps []string `json:"steps"`
	// Map from indices of the source to the packed array.
	ToPacked string `json:"toPacked"`
	// Map from indices of the packed array to the source.
	ToSource string `json:"toSource"`
	// RoundTrip says that unpacking was proved to be the inverse of packing.
	RoundTrip bool `json:"roundTrip"`
	// Whether packing pays, where -dot or -blocks is given.
	Judgement *judgeJSON `json:"judgement,omitempty"`
	// What -time measured.
	Measured *measuredJSON `json:"measured,omitempty"`
}

// judgeJSON weighs packing an operand against reading it as it is. Amounts are
// bytes.
type judgeJSON struct {
	// The matrix that would be packed.
	Operand string `json:"operand"`
	// How often an element is read.
	Visits int64 `json:"visits"`
	// The cost of packing.
	Packing int64 `json:"packing"`
	// Bytes that are moved in vain without packing.
	Waste wasteJSON `json:"waste"`
	// Bytes that are moved in vain with packing.
	Left wasteJSON `json:"left"`
	// Number of visits from which packing pays; 0 is never.
	BreakEven int64 `json:"breakEven"`
	// Pays says whether packing is worth its cost.
	Pays bool `json:"pays"`
	// Why explains the judgement.
	Why string `json:"why"`
}

// measuredJSON is the time of a dot with an operand as it is and packed, in seconds.
type measuredJSON struct {
	// The device.
	Device string `json:"device"`
	// Medians: of the dot that reads the operand as it is, of the one that reads it
	// packed, and of packing it.
	InPlace float64 `json:"inPlace"`
	Packed  float64 `json:"packed"`
	Packing float64 `json:"packing"`
	// Ratio of packed to in place with the ends of its 95 % interval.
	Ratio [3]float64 `json:"ratio"`
	// Pairs of runs.
	Pairs int `json:"pairs"`
	// Dots from which packing once pays; 0: it does not, or cannot be told.
	Pays int64 `json:"paysFrom"`
	// When it was measured.
	When time.Time `json:"when"`
}

// wasteJSON are bytes that are moved in vain: in cache lines, in pages, and by
// conflicts in sets.
type wasteJSON struct {
	// Parts of cache lines that are not used.
	Lines int64 `json:"lines"`
	// Walks of page tables.
	Pages int64 `json:"pages"`
	// Lines that are fetched again because of conflicts in a set.
	Conflicts int64 `json:"conflicts"`
}

// accessJSON is the access pattern of a grid of threads.
type accessJSON struct {
	// Map from blocks, threads and elements to positions.
	Map string `json:"map"`
	// Width of the widest legal vector access in elements.
	Vector int64 `json:"vector"`
	// Proof that it is legal.
	Proof string `json:"proof"`
	// Why no wider one is.
	WhyNoMore string `json:"whyNoMore"`
	// Coalescing by single elements, then by vectors.
	Coalescing []coalescingJSON `json:"coalescing"`
	// Parts of the grid, those without a mask first.
	Parts []partJSON `json:"parts"`
}

// partJSON is a set of blocks of the grid with the same mask.
type partJSON struct {
	// Variables that have one value in the part, which the map leaves out.
	Fixed string `json:"fixed"`
	// Widest vector access in the part.
	Vector int64 `json:"vector"`
	// Some threads of the part have nothing to do.
	Masked bool `json:"masked"`
	// Map of the part, simplified for its domain.
	Map string `json:"map"`
}

// coalescingJSON counts the memory requests of all warps.
type coalescingJSON struct {
	// Elements that an instruction accesses.
	Vector int64 `json:"vector"`
	// Warps of the grid, and their memory instructions.
	Warps    int64 `json:"warps"`
	Requests int64 `json:"requests"`
	// Bytes that the threads use.
	Bytes int64 `json:"bytes"`
	// Sectors that the requests touch.
	Sectors int64 `json:"sectors"`
	// The fewest sectors that could hold the bytes.
	Fewest int64 `json:"fewest"`
	// Sectors, of which each counts once a warp.
	Once int64 `json:"once"`
	// Cache lines that the requests touch.
	Lines int64 `json:"lines"`
	// Bytes that were moved in vain.
	Wasted int64 `json:"wasted"`
	// Sectors over fewest sectors.
	Mean float64 `json:"mean"`
	// The warp with the worst ratio.
	Worst warpJSON `json:"worst"`
}

// warpJSON is the warp with the most sectors over the fewest.
type warpJSON struct {
	// Index of the block, and number of the warp in it.
	Block []int64 `json:"block"`
	Warp  int64   `json:"warp"`
	// Its sectors, and the fewest that would do.
	Sectors int64 `json:"sectors"`
	Fewest  int64 `json:"fewest"`
}

// newCoalescingJSON converts the counts of package layout.
func newCoalescingJSON(c coalesce.Coalescing) coalescingJSON {
	w := c.Worst
	return coalescingJSON{
		c.Vector, c.Warps, c.PerRequest.Requests,
		c.PerRequest.Bytes, c.PerRequest.Sectors,
		c.PerRequest.Ideal, c.PerWarp.Sectors,
		c.PerRequest.Lines, c.Wasted(),
		c.Mean(),
		warpJSON{append(
			[]int64{}, w.Block...,
		), w.Warp, w.PerRequest.Sectors, w.PerRequest.Ideal},
	}
}

// layoutFlags are the flags of the command, as text.
type layoutFlags struct {
	// The call, which knows the files that are named.
	call *call
	// What ends a measurement.
	ctx context.Context
	// The flags that choose what is shown.
	element, position, pack, unpack, dot, blocks, memory string
	// The files of elements.
	in, out string
	// The flags that describe threads and pictures.
	tile, threads, elements, order, pick, svg string
	// Replace a file that is not a picture.
	replace *bool
	// The database of what was measured.
	db *string
	// How long -time measures; 0 is not at all.
	time time.Duration
	// Threads of a warp.
	warpSize int64
	// Elements an instruction accesses; 0 is the widest vector.
	vector int64
}

// layoutFlags defines the flags.
func (c *call) layoutFlags() *layoutFlags {
	f := &layoutFlags{call: c, ctx: c.ctx, replace: c.replaceFlag(), db: c.dbFlag()}
	text := func(to *string, name, usage string) {
		c.StringVar(to, name, "", usage)
	}
	text(&f.element, "element", "say where the element at this `index` is, e.g. 2,3")
	text(&f.position, "position", "say what is at this `position`, counted in elements")
	text(&f.pack, "pack", "pack the array: `attributes` such as 'inner_dims_pos=[0,1] inner_tiles=[8,32]'")
	text(&f.unpack, "unpack", "unpack the array, which is packed: `attributes` such as 'inner_dims_pos=[0,1] inner_tiles=[8,32] to 128x256'")
	text(&f.in, "in", "move the elements of this NumPy `file`, a row-major array, as the pack, unpack or layout says")
	text(&f.out, "out", "write the array that -in becomes to this NumPy `file`")
	text(&f.dot, "dot", "judge packing for a dot of `m,n,k`, one operand of which is the array")
	c.DurationVar(&f.time, "time", 0, "measure for this `time` whether packing pays for the dot, on the processor")
	text(&f.blocks, "blocks", "`sizes` m,n,k of the blocks of the dot; those of the array come from the tiles (default 64,64,64)")
	text(&f.memory, "memory", "what access is charged by, `fields` such as line=64,page=4096,cache=32768,ways=8,tlb=1024,walk=64,refetch=8")
	text(&f.tile, "tile", "`extents` of the part of the array that a block of threads takes")
	text(&f.threads, "threads", "`numbers` of threads of a block along each dimension")
	text(&f.elements, "elements", "`numbers` of neighbouring elements of a thread along each dimension (default 1 each)")
	text(&f.order, "order", "`dimensions`, fastest first, in which threads are numbered (default as the array lies)")
	c.Int64Var(&f.warpSize, "warp-size", 32, "`threads` that access together")
	c.Int64Var(&f.vector, "vector", 0, "`elements` that an instruction touches in the picture; 0: the widest vectors")
	text(&f.pick, "pick", "draw `these`: 'block=0,1', 'block=0,1 warp=2' or 'block=0,1 warp=2 lane=3'")
	text(&f.svg, "svg", "write a picture to this `file`: of the access with -threads, else of the layout")
	return f
}

// runLayout parses the shape with its layout, and shows its map and whatever
// else the flags ask for: an element, a pack operation and its judgement, the
// accesses of a grid of threads, a picture.
func runLayout(c *call) error {
	c.jsonFlag()
	f := c.layoutFlags()
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	l, err := layout.Parse(args[0])
	if err != nil {
		return err
	}
	j, err := f.show(l)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(j)
	}
	j.print(c)
	return nil
}

// check refuses flags that have no effect without others.
func (f *layoutFlags) check() error {
	needs := func(flag, value, other, there string) error {
		if value != "" && there == "" {
			return usagef("-%s needs -%s", flag, other)
		}
		return nil
	}
	for _, x := range [][4]string{
		{"dot", f.dot, "pack", f.pack},
		{"blocks", f.blocks, "dot", f.dot},
		{"memory", f.memory, "pack", f.pack},
		{"tile", f.tile, "threads", f.threads},
		{"threads", f.threads, "tile", f.tile},
		{"elements", f.elements, "threads", f.threads},
		{"order", f.order, "threads", f.threads},
		{"pick", f.pick, "threads", f.threads},
		{"pick", f.pick, "svg", f.svg},
		{"in", f.in, "out", f.out},
		{"out", f.out, "in", f.in},
	} {
		err := needs(x[0], x[1], x[2], x[3])
		if err != nil {
			return err
		}
	}
	if f.time != 0 && f.dot == "" {
		return usagef("-time needs -dot")
	}
	if f.time < 0 {
		return usagef("-time %s is not a time", f.time)
	}
	if f.pack != "" && f.unpack != "" {
		return usagef("-pack and -unpack are two operations: give one")
	}
	if f.element != "" && f.position != "" {
		return usagef("-element and -position ask for the same thing from two sides: give one")
	}
	return nil
}

// show describes a layout and everything that the flags ask for.
func (f *layoutFlags) show(l *layout.Layout) (*layoutJSON, error) {
	r := index.NewRing()
	j := &layoutJSON{
		Shape:    l.String(),
		Physical: append([]int64{}, l.Physical...),
		Elements: l.Elements(),
		Padding:  l.Padding(),
		Bytes:    l.Bytes(),
		Steps:    stepTexts(l.Steps()),
		Map:      l.Map(r).String(),
		Inverse:  l.Inverse(r).Simplify().String(),
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	type part func(*layout.Layout, *layoutJSON) error
	for _, show := range []part{f.showElement, f.showPack, f.showAccess, f.moveData} {
		if err := show(l, j); err != nil {
			return nil, err
		}
	}
	if f.svg != "" && f.threads == "" {
		drawn, err := f.drawn(l)
		if err != nil {
			return nil, err
		}
		page, err := draw.LayoutSVG(drawn, layout.Sectors{})
		if err != nil {
			return nil, err
		}
		j.SVG = f.svg
		return j, f.writePicture(page)
	}
	return j, nil
}

// stepTexts formats steps.
func stepTexts(ss layout.Steps) []string {
	out := []string{}
	for _, s := range ss {
		out = append(out, s.String())
	}
	return out
}

// numbers parses the n numbers of a flag; a negative n means any number of
// them.
func numbers(flag, text string, n int) ([]int64, error) {
	var out []int64
	for _, part := range strings.Split(text, ",") {
		x, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, usagef("-%s %s: %q is not a number", flag, text, part)
		}
		out = append(out, x)
	}
	if n >= 0 && len(out) != n {
		return nil, usagef("-%s %s: needs %d numbers", flag, text, n)
	}
	return out, nil
}

// showElement locates a logical element, or the element at a position.
func (f *layoutFlags) showElement(l *layout.Layout, j *layoutJSON) error {
	switch {
	case f.element != "":
		index, err := numbers("element", f.element, l.Shape.Rank())
		if err != nil {
			return err
		}
		for d, i := range index {
			if i < 0 || i >= l.Shape.Dims[d] {
				return fmt.Errorf("-element %s: index %d of dimension %d is outside %s", f.element, i, d, l)
			}
		}
		at := l.Linear(index)
		j.Element = &elementJSON{
			index, l.Coordinates(index), at,
			at * l.ElementBits(),
		}
	case f.position != "":
		at, err := numbers("position", f.position, 1)
		if err != nil {
			return err
		}
		if at[0] < 0 || at[0] >= l.Elements() {
			return fmt.Errorf(
				"-position %d: %s has positions 0 to %d", at[0], l, l.Elements()-1,
			)
		}
		j.Element = &elementJSON{
			Position: at[0],
			Bit:      at[0] * l.ElementBits(),
		}
		if index, ok := l.Index(at[0]); ok {
			j.Element.Index, j.Element.Physical = index, l.Coordinates(index)
		}
	}
	return nil
}

// drawn is the layout that -svg draws: with -pack that of the packed array, which a
// layout in tiles has too where the last dimensions are packed in their order.
func (f *layoutFlags) drawn(l *layout.Layout) (*layout.Layout, error) {
	p, err := f.parsePack(l)
	if err != nil || p == nil || p.Unpack {
		return l, err
	}
	rank := len(p.Source)
	// Another order of the outer dimensions, or of the tiles, is no tiled layout of
	// the array: its positions are those of ToPacked only.
	inOrder := len(p.OuterDimsPerm) == 0 && slices.Equal(l.Physical, p.Source)
	for k, d := range p.InnerDimsPos {
		inOrder = inOrder && d == rank-len(p.InnerDimsPos)+k
	}
	if !inOrder {
		return nil, fmt.Errorf("-svg draws a pack of the last dimensions in their order, of an array in row-major order, without outer_dims_perm")
	}
	order := make([]string, rank)
	for k := range order {
		order[k] = strconv.Itoa(rank - 1 - k)
	}
	text, _, _ := strings.Cut(l.String(), "{")
	tiles := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.InnerTiles), "[]"), " ", ",")
	return layout.Parse(fmt.Sprintf("%s{%s:T(%s)}", text, strings.Join(order, ","), tiles))
}

// showPack describes a pack operation and, if memory is given, judges it.
func (f *layoutFlags) showPack(l *layout.Layout, j *layoutJSON) error {
	p, err := f.parsePack(l)
	if err != nil || p == nil {
		return err
	}
	r := index.NewRing()
	_, proved := p.RoundTrip(r)
	j.Pack = &packJSON{
		Op:        p.String(),
		Packed:    p.Packed(),
		Steps:     stepTexts(p.Steps()),
		ToPacked:  p.ToPacked(r).String(),
		ToSource:  p.ToSource(r).String(),
		RoundTrip: proved,
	}
	if p.Unpack {
		return nil
	}
	if l.Shape.Rank() != 2 {
		if f.dot != "" {
			return fmt.Errorf("-dot: %s is not a matrix", l)
		}
		return nil
	}
	o, err := f.operand(l, *p)
	if err != nil {
		return err
	}
	m, err := f.parseMemory()
	if err != nil {
		return err
	}
	v, err := o.PackCost(m)
	if err != nil {
		return err
	}
	j.Pack.Judgement = &judgeJSON{
		v.Operand.Name, v.Operand.Visits, v.Packing,
		wasteJSON(v.Waste), wasteJSON(v.PackedWaste),
		v.BreakEven, v.Pays, v.Why,
	}
	return f.measure(l, *p, j.Pack)
}

// measure says what the dot gains by packing: measured now, and kept, with -time, else as
// it was measured on this device before and kept in -db.
func (f *layoutFlags) measure(l *layout.Layout, p layout.Pack, j *packJSON) error {
	if f.dot == "" {
		return nil
	}
	mnk, err := numbers("dot", f.dot, 3)
	if err != nil {
		return err
	}
	d := packtiming.Dot{M: mnk[0], N: mnk[1], K: mnk[2], DType: l.Shape.DType, Pack: p}
	d.Right = !slices.Equal(l.Shape.Dims, []int64{d.M, d.K})
	subject, err := d.Subject()
	if err != nil {
		return err
	}
	b := cpu.New()
	if f.time == 0 {
		key := packtiming.Result{}.Of(subject, kernels.IdentityOf(b))
		j.Measured, err = f.kept(key)
		return err
	}
	r, err := packtiming.Measure(f.ctx, b, subject, packtiming.Plans{}, f.time)
	if err != nil {
		return fmt.Errorf("-time: %w", err)
	}
	measured := r.Of(subject, kernels.IdentityOf(b))
	measured.When, measured.By = time.Now().UTC().Truncate(time.Second), tuner.Version()
	if err := cache.Open(*f.db).PutPacking(measured); err != nil {
		f.call.note("tilewright layout: warning: what was measured is not kept: %v", err)
	}
	j.Measured = newMeasuredJSON(measured)
	return nil
}

// kept is what was measured of a pack before, nil for nothing. A database that cannot be
// read is a warning, since only -time needs one.
func (f *layoutFlags) kept(key cache.Packing) (*measuredJSON, error) {
	all, err := cache.Open(*f.db).Packings(key)
	if err != nil {
		f.call.note("tilewright layout: warning: %v", err)
	}
	// The others are packs of the same operand with other tiles or another order.
	for _, p := range all {
		if p.Pack == key.Pack {
			return newMeasuredJSON(p), nil
		}
	}
	return nil, nil
}

// newMeasuredJSON converts what was measured.
func newMeasuredJSON(p cache.Packing) *measuredJSON {
	return &measuredJSON{
		p.Device, p.InPlace, p.Packed, p.Packing, p.Ratio, p.Pairs, p.Pays(), p.When,
	}
}

// parsePack reads -pack or -unpack; nil where neither is given. The array that the
// command is about is the source of a pack, and what an unpack takes.
func (f *layoutFlags) parsePack(l *layout.Layout) (*layout.Pack, error) {
	switch {
	case f.pack != "":
		p, err := layout.ParsePackOf(l.Shape.Dims, f.pack)
		if err != nil {
			return nil, fmt.Errorf("-pack: %w", err)
		}
		return &p, nil
	case f.unpack != "":
		p, err := layout.ParseUnpackOf(l.Shape.Dims, f.unpack)
		if err != nil {
			return nil, fmt.Errorf("-unpack: %w", err)
		}
		return &p, nil
	}
	return nil, nil
}

// operand is the array as an operand of the given dot, or of an operation that
// reads it any number of times.
func (f *layoutFlags) operand(
	l *layout.Layout, p layout.Pack,
) (layout.Operand, error) {
	dims, bits := l.Shape.Dims, l.Shape.DType.Size()
	tile := []int64{dims[0], dims[1]}
	for i, d := range p.InnerDimsPos {
		tile[d] = p.InnerTiles[i]
	}
	if f.dot == "" {
		return layout.Operand{
			Name:         l.String(),
			Rows:         dims[0],
			Cols:         dims[1],
			BlockRows:    tile[0],
			BlockCols:    tile[1],
			ElementBytes: bits,
			Sweeps:       16,
		}, nil
	}
	mnk, err := numbers("dot", f.dot, 3)
	if err != nil {
		return layout.Operand{}, err
	}
	d := layout.Dot{
		M:     mnk[0],
		N:     mnk[1],
		K:     mnk[2],
		DType: l.Shape.DType,
	}
	if f.blocks != "" {
		b, err := numbers("blocks", f.blocks, 3)
		if err != nil {
			return layout.Operand{}, err
		}
		d.BlockM = b[0]
		d.BlockN = b[1]
		d.BlockK = b[2]
	}
	switch {
	case slices.Equal(dims, []int64{d.M, d.K}):
		d.BlockM = tile[0]
		d.BlockK = tile[1]
		a, _ := d.Operands()
		return a, nil
	case slices.Equal(dims, []int64{d.K, d.N}):
		d.BlockK = tile[0]
		d.BlockN = tile[1]
		_, b := d.Operands()
		return b, nil
	}
	return layout.Operand{}, fmt.Errorf(
		"-dot %s: its operands are [%d,%d] and [%d,%d], and the array is %s",
		f.dot, d.M, d.K,
		d.K, d.N, l,
	)
}

// parseMemory parses "line=64,page=4096".
func (f *layoutFlags) parseMemory() (m layout.Memory, err error) {
	fields := map[string]*int64{
		"line":    &m.Line,
		"page":    &m.Page,
		"cache":   &m.Cache,
		"ways":    &m.Ways,
		"tlb":     &m.TLB,
		"walk":    &m.Walk,
		"refetch": &m.Refetch,
	}
	for _, part := range strings.FieldsFunc(f.memory, func(r rune) bool {
		return r == ',' || r == ' '
	}) {
		name, value, _ := strings.Cut(part, "=")
		x, err := strconv.ParseInt(value, 10, 64)
		if fields[name] == nil || err != nil || x < 1 {
			return m, usagef("-memory: %q is not line, page, cache, ways, tlb, walk or refetch with a number above 0", part)
		}
		*fields[name] = x
	}
	return m, nil
}

// showAccess describes how a grid of threads accesses the layout.
func (f *layoutFlags) showAccess(l *layout.Layout, j *layoutJSON) error {
	if f.threads == "" {
		return nil
	}
	a, err := f.assignment(l)
	if err != nil {
		return err
	}
	x, err := a.Of(index.NewRing(), l)
	if err != nil {
		return err
	}
	simple := x.Offset.Simplify()
	v := x.VectorWidth()
	j.Access = &accessJSON{
		Map:       simple.String(),
		Vector:    v.Width,
		Proof:     v.Proof,
		WhyNoMore: v.Why,
		Parts:     []partJSON{},
	}
	worst := coalesce.WarpCount{}
	for _, vector := range slices.Compact([]int64{1, v.Width}) {
		n, err := x.Coalescing(vector, layout.Sectors{})
		if err != nil {
			return err
		}
		worst = n.Worst
		j.Access.Coalescing = append(j.Access.Coalescing, newCoalescingJSON(n))
	}
	for _, p := range x.Parts(index.RoleBlock) {
		j.Access.Parts = append(j.Access.Parts, newPartJSON(x, p))
	}
	if f.svg == "" {
		return nil
	}
	j.SVG = f.svg
	return f.draw(x, v.Width, worst)
}

// newPartJSON converts a part of an access.
func newPartJSON(whole, part *coalesce.Access) partJSON {
	m := part.Offset
	fixed := []string{}
	m.Dims, m.Ranges = nil, nil
	for i, e := range part.Offset.Vars() {
		n, one := e.Value()
		switch v, named := whole.Offset.Vars()[i].Variable(); {
		case one && named:
			fixed = append(fixed, fmt.Sprintf("%s = %d", v.Name, n))
		case one:
		case i < len(part.Offset.Dims):
			m.Dims = append(m.Dims, e)
		default:
			m.Ranges = append(m.Ranges, e)
		}
	}
	return partJSON{
		strings.Join(fixed, ", "),
		part.VectorWidth().Width,
		!m.Where.True(),
		m.String(),
	}
}

// assignment is the assignment of elements to threads that the flags describe.
func (f *layoutFlags) assignment(l *layout.Layout) (a coalesce.Assignment, err error) {
	rank := l.Shape.Rank()
	for _, x := range []struct {
		flag, text string
		to         *[]int64
	}{{"tile", f.tile, &a.Tile}, {
		"threads", f.threads, &a.Threads,
	}, {"elements", f.elements, &a.Elements}} {
		if x.text == "" {
			continue
		}
		*x.to, err = numbers(x.flag, x.text, rank)
		if err != nil {
			return a, err
		}
	}
	if f.order != "" {
		order, err := numbers("order", f.order, rank)
		if err != nil {
			return a, err
		}
		for _, d := range order {
			a.Order = append(a.Order, int(d))
		}
	}
	a.Warp = f.warpSize
	return a, nil
}

// draw writes the picture of the blocks, warps and lanes that were picked, or
// of the worst warp.
func (f *layoutFlags) draw(x *coalesce.Access, vector int64, worst coalesce.WarpCount) error {
	if f.vector != 0 && f.vector != vector {
		vector = f.vector
		c, err := x.Coalescing(vector, layout.Sectors{})
		if err != nil {
			return fmt.Errorf("-vector: %w", err)
		}
		worst = c.Worst
	}
	picked := pick{
		Block: worst.Block,
		Warp:  worst.Warp,
		Lane:  -1,
	}
	if f.pick != "" {
		var err error
		if picked, err = f.parsePick(len(x.Blocks)); err != nil {
			return err
		}
	}
	page, err := drawAccess(x, picked, vector)
	if err != nil {
		return err
	}
	return f.writePicture(page)
}

// writePicture writes the file of -svg.
func (f *layoutFlags) writePicture(page []byte) error {
	return f.call.output("svg", f.svg, output.Picture, *f.replace).Write(
		func(w *bufio.Writer) error {
			_, err := w.Write(page)
			return err
		},
	)
}

// parsePick parses "block=0,1 warp=2 lane=3".
func (f *layoutFlags) parsePick(rank int) (pick, error) {
	p := pick{
		Block: make([]int64, rank),
		Warp:  -1,
		Lane:  -1,
	}
	for _, part := range strings.Fields(f.pick) {
		name, value, _ := strings.Cut(part, "=")
		n := 1
		if name == "block" {
			n = rank
		}
		xs, err := numbers("pick "+name, value, n)
		if err != nil {
			return p, err
		}
		if slices.Min(xs) < 0 {
			return p, usagef("-pick: %s counts from 0", name)
		}
		switch name {
		case "block":
			p.Block = xs
		case "warp":
			p.Warp = xs[0]
		case "lane":
			p.Lane = xs[0]
		default:
			return p, usagef("-pick: %q is not block=, warp= or lane=", part)
		}
	}
	if p.Lane >= 0 && p.Warp < 0 {
		return p, usagef("-pick: a lane is one of a warp: say which warp")
	}
	return p, nil
}

// print prints the layout for people.
func (j *layoutJSON) print(c *call) {
	fmt.Fprintln(c.out, j.Shape)
	fmt.Fprintf(
		c.out, "  in memory  %s, %d positions, %d of them padding, %d bytes\n",
		extentsText(j.Physical), j.Elements,
		j.Padding, j.Bytes,
	)
	fmt.Fprintf(c.out, "  made by    %s\n", stepList(j.Steps))
	if j.Elements == 0 {
		fmt.Fprintln(c.out, "  maps       none: there are no elements")
	} else {
		fmt.Fprintf(c.out, "  position   %s\n", j.Map)
		fmt.Fprintf(c.out, "  element    %s\n", j.Inverse)
	}
	j.Element.print(c)
	j.Pack.print(c)
	j.Access.print(c)
	if j.SVG != "" {
		fmt.Fprintf(c.out, "\npicture: %s\n", j.SVG)
	}
	if j.Out != "" {
		fmt.Fprintf(c.out, "\nwrote %s\n", j.Out)
	}
}

// stepList joins the steps, or says that there are none.
func stepList(steps []string) string {
	if len(steps) == 0 {
		return "nothing: it lies as it is written"
	}
	return strings.Join(steps, "; ")
}

// extentsText formats extents: "3x5"; no dimensions are 1.
func extentsText(dims []int64) string {
	if len(dims) == 0 {
		return "1"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", "x"), "[]")
}

// print prints an element for people.
func (j *elementJSON) print(c *call) {
	if j == nil {
		return
	}
	place := fmt.Sprintf("byte %d", j.Bit/8)
	if j.Bit%8 != 0 {
		place += fmt.Sprintf(" bit %d", j.Bit%8)
	}
	fmt.Fprintf(c.out, "\nposition %d, %s: ", j.Position, place)
	if j.Index == nil {
		fmt.Fprintln(c.out, "padding")
		return
	}
	fmt.Fprintf(c.out, "element %v, in memory %v\n", j.Index, j.Physical)
}

// print prints a pack operation for people.
func (j *packJSON) print(c *call) {
	if j == nil {
		return
	}
	fmt.Fprintf(
		c.out, "\n%s\n  packed     %s\n  made by    %s\n",
		j.Op, extentsText(j.Packed),
		stepList(j.Steps),
	)
	fmt.Fprintf(c.out, "  to packed  %s\n  to source  %s\n", j.ToPacked, j.ToSource)
	if j.RoundTrip {
		fmt.Fprintln(c.out, "  unpacking gives every element back: the composed maps are the identity")
	}
	if j.Judgement != nil {
		fmt.Fprintf(c.out, "  packing %s: %s\n", j.Judgement.Operand, j.Judgement.Why)
	}
	j.Measured.print(c)
}

// print prints what was measured for people.
func (j *measuredJSON) print(c *call) {
	if j == nil {
		return
	}
	fmt.Fprintf(
		c.out, "  measured on %s, %s: in place %s, packed %s, packed over in place %.3g (%.3g–%.3g; median of %d pairs, not the ratio of the two times); packing takes %s\n",
		j.Device, j.When.Format(time.DateTime), report.Seconds(j.InPlace), report.Seconds(j.Packed),
		j.Ratio[0], j.Ratio[1], j.Ratio[2], j.Pairs, report.Seconds(j.Packing),
	)
	if j.Pays == 0 {
		fmt.Fprintln(c.out, "  packing does not pay, or no gain can be told from noise")
		return
	}
	fmt.Fprintf(c.out, "  packing once pays from %d dots on\n", j.Pays)
}

// print prints an access pattern for people.
func (j *accessJSON) print(c *call) {
	if j == nil {
		return
	}
	fmt.Fprintf(c.out, "\naccess, to byte offsets\n  %s\n", j.Map)
	fmt.Fprintf(
		c.out, "  an instruction can touch %s of a thread (%s), not more: %s\n\n",
		elementsText(j.Vector), j.Proof, j.WhyNoMore,
	)
	t := c.table()
	fmt.Fprintln(t, "  instruction\trequests\tsectors\tfewest\tratio\twasted bytes\tlines\tworst warp")
	for _, r := range j.Coalescing {
		fmt.Fprintf(
			t, "  %s\t%d\t%d\t%d\t%.3g\t%d\t%d\t%d for %d: block %v, warp %d\n",
			elementsText(r.Vector), r.Requests, r.Sectors,
			r.Fewest, r.Mean,
			r.Wasted, r.Lines, r.Worst.Sectors,
			r.Worst.Fewest, r.Worst.Block,
			r.Worst.Warp,
		)
	}
	t.Flush()
	fmt.Fprintf(c.out, "\nparts of the grid, those without a mask first\n")
	for _, p := range j.Parts {
		p.print(c)
	}
}

// print prints a part of the grid on one line.
func (p partJSON) print(c *call) {
	mask, where := "no mask", ""
	if p.Masked {
		mask = "masked"
	}
	if p.Fixed != "" {
		where = ", " + p.Fixed
	}
	fmt.Fprintf(
		c.out, "  %s, %s at a time%s: %s\n",
		mask, elementsText(p.Vector), where, p.Map,
	)
}

// elementsText counts elements in words.
func elementsText(n int64) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// moveData reads the array of -in, does the steps of the pack, unpack or tiled layout
// to it, and writes the result to -out. Both files hold row-major arrays:
//
//	neither flag   the extents of SHAPE become the physical ones
//	-pack          the extents of SHAPE become the packed ones
//	-unpack        the extents of SHAPE, which are packed, become the source's
//
// Padding is the padding value of a pack, and zeros in a tiled layout. The output is
// refused before the input is read where it must not be written.
func (f *layoutFlags) moveData(l *layout.Layout, j *layoutJSON) error {
	if f.in == "" {
		return nil
	}
	from := hlo.Shape{DType: l.Shape.DType, Dims: l.Shape.Dims}
	to := hlo.Shape{DType: from.DType, Dims: l.Physical}
	steps, padding := l.Steps(), []byte(nil)
	if p, err := f.parsePack(l); err != nil {
		return err
	} else if p != nil {
		if to.Dims, steps = p.Packed(), p.Steps(); p.Unpack {
			to.Dims = p.Source
		}
		if padding, err = paddingBytes(from.DType, p.Padding); err != nil {
			return err
		}
	}
	// What is read is never replaced, not even with -f.
	file := f.call.output("out", f.out, output.NumPy, *f.replace)
	if err := file.Check(); err != nil {
		return err
	}
	in, err := readArray(f.in, from)
	if err != nil {
		return err
	}
	// A step makes its result before its operand is free.
	if err := kernels.CheckFreeMemory(2 * (from.Bytes() + to.Bytes())); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	out := kernels.Buffer{Shape: to, Data: steps.Move(in.Data, from.DType.Size(), padding)}
	j.Out = f.out
	return file.Write(func(w *bufio.Writer) error { return npy.Write(w, out) })
}

// readArray reads a NumPy file, which has to hold elements of the type of shape and its
// extents. Errors name the file.
func readArray(name string, shape hlo.Shape) (kernels.Buffer, error) {
	file, err := openInput(name)
	if err != nil {
		return kernels.Buffer{}, err
	}
	defer file.Close()
	b, err := npy.Read(bufio.NewReader(file), shape)
	if err != nil {
		return b, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// paddingBytes is an element that holds the padding value, nil for none. The value
// has to be one of the type: numbers of floating-point types are rounded to it, those
// of integers and pred have to be whole and in range. Complex ones are refused.
func paddingBytes(d hlo.DType, value *float64) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	b, err := kernels.NewBuffer(hlo.Shape{DType: d})
	if err != nil {
		return nil, err
	}
	switch {
	case d.IsFloat():
		b.SetFloat(0, *value)
		return b.Data, nil
	case d.IsComplex():
		return nil, fmt.Errorf("a padding_value of %s is not supported", d)
	}
	lo, hi := d.IntRange()
	if *value != math.Trunc(*value) || *value < float64(lo) || *value > float64(hi) {
		return nil, fmt.Errorf("the padding_value %g is not a value of %s", *value, d)
	}
	b.SetInt(0, int64(*value))
	return b.Data, nil
}

// inMemory is a row-major array as the physical array of a tiled layout, with zeros
// as padding, and the parts of complex numbers; b itself where the layout is not tiled
// and the numbers are real. The layout is one that symtile.Analyze has accepted.
func inMemory(b kernels.Buffer, s hlo.Shape) kernels.Buffer {
	l, err := layout.Of(s)
	if err != nil || len(s.Layout.Tiles) == 0 {
		return b.Parts()
	}
	return kernels.Buffer{
		Shape: hlo.Shape{DType: s.DType, Dims: l.Physical},
		Data:  kernels.Aligned(l.Steps().Move(b.Data, s.DType.Size(), nil)),
	}.Parts()
}

// logical is the row-major array in the physical array of a tiled layout, without its
// padding; b itself where the layout is not tiled. It is the inverse of inMemory.
func logical(b kernels.Buffer, s hlo.Shape) kernels.Buffer {
	l, err := layout.Of(s)
	if err != nil || len(s.Layout.Tiles) == 0 {
		return kernels.Buffer{Shape: s, Data: b.Data}
	}
	return kernels.Buffer{
		Shape: hlo.Shape{DType: s.DType, Dims: s.Dims},
		Data:  l.Steps().Inverse().Move(b.Data, s.DType.Size(), nil),
	}
}
