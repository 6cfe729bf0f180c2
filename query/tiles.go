package query

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// A Fusion is what is known about one fusion without running it.
type Fusion struct {
	// Name of the fusion.
	Name string `json:"name"`
	// Structure is the first fusion of the module that differs from it in extents only, its
	// own name if it is the first. The caller sets it.
	Structure string `json:"structure,omitempty"`
	// Operation and line of the user's program that it comes from.
	Source string `json:"source,omitempty"`
	// What the compiler and the framework noted on the instruction that executes it:
	// backend_config and frontend_attributes, as written.
	Config     string `json:"config,omitempty"`
	Attributes string `json:"attributes,omitempty"`
	// Fingerprint of its canonical form, hexadecimal.
	Fingerprint string `json:"fingerprint"`
	// The first fusion with this fingerprint, which is described in place of this
	// one: it has the same maps, space and tiles, which are left out here.
	Same string `json:"same,omitempty"`
	// Parameters with their shapes.
	Params []Param `json:"params"`
	// Indexing maps of every parameter and output.
	Indexing []Indexing `json:"indexing"`
	// Iteration space of the tiles; null if there are none.
	Space *Space `json:"space"`
	// Tile of every operation.
	Tiles []Tile `json:"tiles"`
	// Number of legal tilings; with MoreTilings there are at least so many.
	Tilings     int64 `json:"tilings"`
	MoreTilings bool  `json:"moreTilings,omitempty"`
	// Why there are no tiles; null if there are.
	Untileable *Untileable `json:"untileable"`
	// The tile program as text.
	Program string `json:"program,omitempty"`
	// The indexing maps that are left out, and why.
	Unindexed string `json:"unindexed,omitempty"`
	// Why the tiles and the tile program are left out, although there are some.
	Unwritten string `json:"unwritten,omitempty"`
}

// A Param is a parameter.
type Param struct {
	// Name and shape, as HLO writes them; "unknown" where an extent is not given.
	Name  string `json:"name"`
	Shape string `json:"shape"`
}

// An Indexing lists the maps from the indices of an output to those of a
// parameter.
type Indexing struct {
	// Parameter, and number of the output.
	Param  string `json:"param"`
	Output int    `json:"output"`
	// Maps in the syntax of XLA; there are several where the parameter is read
	// in several ways.
	Maps []string `json:"maps"`
	// Variables of each map, in the order of its text.
	Variables [][]Variable `json:"variables,omitempty"`

	// Notes says, of a map, where its run-time variables are read, that some of
	// what it relates may not be, or why it is unknown.
	Notes map[int][]string `json:"notes,omitempty"`
}

// add adds a map, with notes on what it leaves open.
func (j *Indexing) add(m index.Map) {
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
	j.Variables = append(j.Variables, variablesOf(m))
}

// A Variable is one of an indexing map.
type Variable struct {
	// Name that it has in the map.
	Name string `json:"name"`
	// Role is "dimension" (of the output), "range" (of what the map relates besides: the
	// dimension that a reduction sums over) or "runtime" (a value known at run time).
	Role string `json:"role"`
	// Inclusive range of its values.
	Lo int64 `json:"lo"`
	Hi int64 `json:"hi"`
}

// roles are the names of the roles of a map's variables.
var roles = map[index.Role]string{
	index.RoleDim:     "dimension",
	index.RoleRange:   "range",
	index.RoleRuntime: "runtime",
}

// variablesOf are the variables of a map.
func variablesOf(m index.Map) []Variable {
	all := []Variable{}
	for _, v := range m.Variables() {
		all = append(all, Variable{v.Name, roles[v.Role], v.Lo, v.Hi})
	}
	return all
}

// A Space is the iteration space of the tiles.
type Space struct {
	// Parallel dimensions, then sequential ones.
	Dims []Dim `json:"dims"`
	// Constraint under which a tiling is legal.
	Where string `json:"where"`
	// Constraint under which every tile is a box: no dimension has digits.
	Boxes string `json:"boxes"`
	// Tilings that the CPU backend runs: "all", or "boxes" only.
	CPU string `json:"cpu"`
	// Variables whose values are known when a tile program runs.
	Runtime []Runtime `json:"runtime,omitempty"`
}

// A Runtime is a variable known at run time: the value of an instruction,
// clamped to an inclusive range.
type Runtime struct {
	// Name of the variable.
	Name string `json:"name"`
	// The instruction.
	From string `json:"from"`
	// Inclusive range that the value is clamped to.
	Lo int64 `json:"lo"`
	Hi int64 `json:"hi"`
}

// A Dim is a dimension of the space, with the instruction it comes from.
type Dim struct {
	// Names of the tile id and of the tile size.
	Name string `json:"name"`
	Size string `json:"size"`
	// Role in the operation that brings it: the name by which plans are printed.
	Role string `json:"role"`
	// Extent of the dimension in elements.
	Extent int64 `json:"extent"`
	// Kind is "parallel" or "sequential".
	Kind string `json:"kind"`
	// Opcode and name of the instruction that brings the dimension.
	From  string `json:"from"`
	Instr string `json:"instr"`
}

// A Tile is the tile of one operation. Expressions are text; with -at they
// are integers.
type Tile struct {
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
	Digits map[int][]Digit `json:"digits,omitempty"`
}

// A Digit is one digit of a dimension.
type Digit struct {
	// The fields of a tile, for one digit.
	Offset any `json:"offset"`
	Size   any `json:"size"`
	Stride any `json:"stride"`
	Lower  any `json:"lower"`
	Bound  any `json:"bound"`
}

// An Untileable is why a fusion has no tiles.
type Untileable struct {
	// Instruction that has no tile.
	Instr string `json:"instr"`
	// Rule of the propagation that refuses it.
	Rule string `json:"rule"`
	// Reason for people.
	Reason string `json:"reason"`
}

// note adds where f comes from, and what the module says of the first instruction that
// executes it; a module that is one fusion has none.
func (j *Fusion) note(f *hlo.Computation, callers []*hlo.Instr) {
	j.Source, _ = origin.First(f.Sources(callers))
	if len(callers) > 0 {
		j.Config = callers[0].Text("backend_config")
		j.Attributes = callers[0].Text("frontend_attributes")
	}
}

// EachReason replaces the reasons why something is not known, or why there are no tiles.
func (j *Fusion) EachReason(by func(string) string) {
	for _, x := range j.Indexing {
		for _, notes := range x.Notes {
			for k := range notes {
				notes[k] = by(notes[k])
			}
		}
	}
	if j.Untileable != nil {
		j.Untileable.Reason = by(j.Untileable.Reason)
	}
}

// A Point chooses one tiling of a fusion, and with IDs one of its tile programs.
// The zero value leaves all of it symbolic.
type Point struct {
	// Sizes of tiles, one for each dimension.
	Sizes symtile.Tiling
	// IDs of the tile in the order of the dimensions; those left out are 0. nil
	// leaves them symbolic; others need Sizes.
	IDs []int64
}

// Again describes a fusion with the fingerprint of j: its names and places are its
// own, and the rest is left to j. The callers are the instructions that execute it
// (hlo.Module.Callers).
func (j *Fusion) Again(f *hlo.Computation, callers []*hlo.Instr) *Fusion {
	again := newFusion(f, callers)
	again.Same = j.Name
	again.Structure = j.Structure
	again.Tilings = j.Tilings
	again.Untileable = j.Untileable
	return again
}

// newFusion is what is known of a fusion before it is analysed.
func newFusion(f *hlo.Computation, callers []*hlo.Instr) *Fusion {
	print := f.Fingerprint()
	j := &Fusion{
		Name:        f.Name,
		Fingerprint: hex.EncodeToString(print[:]),
		Params:      []Param{},
		Indexing:    []Indexing{},
		Tiles:       []Tile{},
	}
	for _, p := range f.Params {
		shape := p.Shape.String()
		if p.Unknown() != "" {
			shape = "unknown"
		}
		j.Params = append(j.Params, Param{p.Name, shape})
	}
	j.note(f, callers)
	return j
}

// Outline describes one fusion without its maps and tiles: its names, places and
// parameters, and why it has no tiles if that is so.
func Outline(ctx context.Context, f *hlo.Computation, callers []*hlo.Instr) (*Fusion, error) {
	j := newFusion(f, callers)
	_, err := j.analyze(ctx, f)
	return j, err
}

// analyze is the tile program of the fusion; nil says that it has none, and j says why.
func (j *Fusion) analyze(ctx context.Context, f *hlo.Computation) (*symtile.Program, error) {
	p, err := symtile.Analyze(ctx, f)
	var no *symtile.Untileable
	if errors.As(err, &no) {
		j.Untileable = &Untileable{no.Instr.Name, no.Rule, no.Reason}
		return nil, nil
	}
	return p, err
}

// NewFusion describes one fusion. A fusion without tiles is described all the same:
// the reason takes the place of the space. The callers are the instructions that
// execute it (hlo.Module.Callers).
func NewFusion(ctx context.Context, f *hlo.Computation, callers []*hlo.Instr, at Point) (*Fusion, error) {
	j := newFusion(f, callers)
	p, err := j.analyze(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := j.index(ctx, f); err != nil && j.Untileable == nil {
		return nil, err
	}
	if p == nil {
		return j, nil
	}
	j.Tilings = p.Space.Count()
	j.MoreTilings = j.Tilings == math.MaxInt64
	j.Space = newSpace(p)
	text := 0
	value := func(e index.Expr) any {
		s := e.String()
		text += len(s)
		return s
	}
	if at.Sizes != nil {
		if p, value, err = programAt(p, at); err != nil {
			return nil, err
		}
	}
	return j, j.write(ctx, p, value, &text)
}

// write lists the tiles and the tile program, but none whose expressions take more than
// maxTileText. Values add their length to text.
func (j *Fusion) write(ctx context.Context, p *symtile.Program, value func(index.Expr) any, text *int) error {
	for _, op := range p.Ops {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		j.Tiles = append(j.Tiles, newTile(op, value))
		if *text > maxTileText {
			j.Tiles = []Tile{}
			j.Unwritten = fmt.Sprintf(
				"the tiles up to %s (%s) have expressions of more than %d MiB; sizes given as numbers shorten them",
				op.Instr.Name, op.Instr.Op, maxTileText>>20,
			)
			return nil
		}
	}
	j.Program = p.String()
	return nil
}

// maxTileText bounds the text of all expressions of a fusion's tiles, in bytes. Those of
// models take 40 kB, of an associative scan 1.5 MB; nobody reads what is longer.
const maxTileText = 2 << 20

// maxIndexings bounds the pairs of an output and a parameter whose maps are written: a page
// of them is read by nobody, and a fusion of 20,000 results of as many parameters has 4·10⁸.
const maxIndexings = 1 << 14

// index fills in the maps of every parameter and output, the first maxIndexings pairs at most.
func (j *Fusion) index(ctx context.Context, f *hlo.Computation) error {
	for output := 0; ; output++ {
		if output > 0 && len(j.Indexing)+len(f.Params) > maxIndexings {
			j.Unindexed = fmt.Sprintf(
				"the maps of outputs from %d on: there are more than %d pairs of an output and a parameter",
				output, maxIndexings,
			)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := index.NewRing()
		all, err := indexing.ParamMaps(r, f, output)
		if err != nil {
			if output > 0 {
				return nil // past the last output
			}
			return err
		}
		for k, maps := range all {
			row := Indexing{
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

// newSpace converts the space of a program.
func newSpace(p *symtile.Program) *Space {
	s := p.Space
	j := &Space{
		Dims:  []Dim{},
		Where: s.Where.String(),
		Boxes: s.Boxes.String(),
		CPU:   "all",
	}
	if !cpu.WalksDigits(p) {
		j.CPU = "boxes"
	}
	for _, r := range p.Runtime {
		v, in := r.Var, r.Var.Range()
		j.Runtime = append(j.Runtime, Runtime{
			v.String(),
			p.Ops[r.Op].Instr.Name,
			in.Lo,
			in.Hi,
		})
	}
	names := p.DimNames()
	for k, d := range s.Dims {
		j.Dims = append(j.Dims, Dim{
			d.Name, d.Size.String(), names[k],
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
	p *symtile.Program, at Point,
) (*symtile.Program, func(index.Expr) any, error) {
	q, err := p.At(at.Sizes)
	if err != nil {
		return nil, nil, err
	}
	if at.IDs == nil {
		return q, func(e index.Expr) any {
			return number(e, nil)
		}, nil
	}
	env, err := tileIDs(q, at.IDs)
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
			"there are %d tile ids; the space has %d dimensions",
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
				"tile id %d of %s is outside [0, %d]", id, d.Name, tiles-1,
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

// newTile converts the tile of an operation.
func newTile(op symtile.Op, value func(index.Expr) any) Tile {
	j := Tile{
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
				j.Digits = map[int][]Digit{}
			}
			j.Digits[k] = append(j.Digits[k], Digit{
				value(x.Offset), value(x.Size),
				value(x.Stride), value(x.Lower),
				value(x.Bound),
			})
		}
	}
	return j
}
