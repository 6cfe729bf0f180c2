package symtile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A tileVector is one line of the conformance file about tiles.
type tileVector struct {
	Kind, ID, System, Op, Dir, HLO, Tile, Note string
	Expect                                     json.RawMessage
	Parts                                      map[string]string
	Operand                                    string
	Checks                                     map[string]bool
}

// otherwise are vectors whose tiles are not written as ours, or that say no
// where we do not, with the reason; meaning is compared all the same where both
// have a tile.
var otherwise = map[string]string{
	"tp.broadcast.out":                  "whole dimensions have their extent for a size, not the next power of two",
	"tp.gather.out.data":                "whole dimensions have their extent for a size, not the next power of two",
	"tp.gather.out.indices":             "whole dimensions have their extent for a size, not the next power of two",
	"tp.bitcast.symbolic-then-concrete": "legal: the dimensions of the operand are digits of the index",
	"tp.concat.shifted-slice.reject":    "legal: an operand is masked where another is read",
	"tp.pad.interior":                   "legal: interior padding thins the tile, also under strides",
	"tp.reshape.expand.not-box":         "refused by both",
	"tp.reshape.permuted-extents":       "legal: a tile of one element is a tile of one element",
	"tp.pad.edge":                       "masked below too",
	"tp.concat.bitcast":                 "masked below too",
	"tp.all-gather.broadcast":           "a tile of stride 2 is in one shard, and has no more than 16 elements there",
	"tp.slice":                          "the bound is the last index there is, and one more",
	"tp.scaled-dot":                     "scales are repeated over their blocks: a block that is in part in the tile is whole digits of it",
	"tp.scan":                           "scan is not tiled",
	"tp.dot.6d.concrete16":              "a tile is not longer than the extent: sizes of 16 become 4, 11 and 10",
	"tp.dynamic-slice":                  "a start that can only be 0 is 0",
	"tp.reshape.collapse.row-part":      "the bound is relative to the row",
	"tp.reshape.expand.row":             "a row that is there is whole: its bound is the extent",
	"tp.reshape.expand.inside-row":      "a row that is there is whole: its bound is the extent",
	"tp.reshape.collapse.strided-tail":  "the bound is that of the dimension",
}

func loadTileVectors(t *testing.T, kind string) (all []tileVector) {
	for _, v := range vectorsOf[tileVector](t) {
		if v.Kind == kind {
			all = append(all, v)
		}
	}
	return all
}

// TestVectorsTile holds op-local propagation, both ways, against the vectors.
func TestVectorsTile(t *testing.T) {
	form, meaning, listed, wrong := 0, 0, 0, 0
	for _, v := range loadTileVectors(t, "tile") {
		if v.System != "tile_propagation" || v.Op != "" {
			continue
		}
		for name, text := range missingComputations {
			if strings.Contains(v.HLO, "to_apply="+name) {
				v.HLO = text + v.HLO
			}
		}
		written, same, err := checkTile(t, v)
		switch {
		case err != nil && strings.Contains(string(v.Expect), "rejected") &&
			!strings.Contains(err.Error(), "there"):
			form++
		case err != nil && otherwise[v.ID] == "":
			wrong++
			t.Errorf("%s: %v", v.ID, err)
		case err != nil:
			listed++
			t.Logf("%s: %s (%v)", v.ID, otherwise[v.ID], err)
		case written:
			form++
		case !same:
			wrong++
			t.Errorf("%s: other elements", v.ID)
		case otherwise[v.ID] == "":
			wrong++
			t.Errorf("%s: the same elements, written otherwise", v.ID)
		default:
			meaning++
		}
	}
	t.Logf("%d as written, %d by meaning with a reason, %d with another answer and a reason, %d wrong", form, meaning, listed, wrong)
}

// checkTile compares all tiles a vector expects: as they are written, and by
// the elements they have at some sizes.
func checkTile(t *testing.T, v tileVector) (written, same bool, err error) {
	m, err := hlo.Parse("vector", []byte(v.HLO))
	if err != nil {
		return false, false, err
	}
	var expect map[string]string
	if err := json.Unmarshal(v.Expect, &expect); err != nil {
		return false, false, err
	}
	r := index.NewRing()
	from, up := strings.CutPrefix(v.Dir, "from:")
	scope := tileScope(r, m.Entry, from, up)
	given, err := parseTile(r, v.Tile, scope)
	if err != nil {
		return false, false, err
	}
	got := map[string][]Tile{}
	var runtime []Runtime
	if up {
		root := m.Entry.Root
		k := slices.IndexFunc(root.Operands, func(o *hlo.Instr) bool { return o.Name == from })
		rel, err := ResultTiles(r, root, k, given)
		if err != nil {
			return false, false, err
		}
		got["out"] = rel.Tiles[0]
	} else if got, runtime, err = propagateAll(r, m.Entry, given); err != nil {
		return false, false, err
	}
	for _, x := range runtime {
		scope[fmt.Sprintf("rt_%d", x.Op-1)] = x.Var
	}
	written, same = true, true
	for name, text := range expect {
		if text == "rejected" || text == "accepted" {
			if len(got[name]) > 0 == (text == "accepted") {
				continue
			}
			return false, false, fmt.Errorf("%s is %s there", name, text)
		}
		text, _, _ = strings.Cut(text, " replica ids")
		want, err := parseTile(r, text, scope)
		if err != nil {
			return false, false, fmt.Errorf("%s: %v", name, err)
		}
		if len(got[name]) == 0 {
			return false, false, fmt.Errorf("%s has no tile", name)
		}
		written = written && slices.EqualFunc(got[name][0], want, DimTile.Equal)
		same = same && sameElements(got[name][0], want, extentsOf(m.Entry, name))
		if !written {
			t.Logf("%s %s\n got  %s\n want %s", v.ID, name, got[name][0], want)
		}
	}
	return written, same, nil
}

// propagateAll carries a tile from the root to the parameters, op by op.
func propagateAll(
	r *index.Ring, c *hlo.Computation, root Tile,
) (map[string][]Tile, []Runtime, error) {
	at := map[*hlo.Instr][]Tile{c.Root: {root}}
	out := map[string][]Tile{}
	var runtime []Runtime
	for _, i := range slices.Backward(c.Instrs) {
		for _, t := range at[i] {
			out[i.Name] = append(out[i.Name], t)
			if i.Op == hlo.OpParameter || i.Op == hlo.OpConstant {
				continue
			}
			rel, err := OperandTiles(r, i, t)
			if err != nil {
				return nil, nil, err
			}
			runtime = append(runtime, rel.Runtime...)
			for k, tiles := range rel.Tiles {
				at[i.Operands[k]] = append(at[i.Operands[k]], tiles...)
			}
		}
	}
	return out, runtime, nil
}

// tileScope names the tile ids and sizes of the vector: ours, over the extents
// of the tile that is given and of the sequential dimensions.
func tileScope(r *index.Ring, c *hlo.Computation, from string, up bool) map[string]index.Expr {
	var dims []int64
	dims = append(dims, arrayShapes(c.Root.Shape)[0].Dims...)
	if up {
		k := slices.IndexFunc(c.Params, func(p *hlo.Instr) bool { return p.Name == from })
		dims = slices.Clone(c.Params[k].Shape.Dims)
	} else {
		for _, i := range c.Instrs {
			dims = append(dims, sequentialExtents(i)...)
			for _, d := range i.Attrs.LHSContract {
				if i.Op == hlo.OpScaledDot {
					dims = append(dims, i.Operands[0].Shape.Dims[d])
				}
			}
		}
	}
	scope := map[string]index.Expr{
		"rt_0": r.Const(0),
		"rt_1": r.Const(0),
		"rt_2": r.Const(0),
	}
	for k, n := range dims {
		d := newDim(r, k, n, 0, Parallel, nil)
		scope[fmt.Sprintf("tid_%d", k)], scope[fmt.Sprintf("ts_%d", k)] = d.Tid,
			d.Size
	}
	return scope
}

var tileText = regexp.MustCompile(`offsets \[(.*?)\] sizes \[(.*?)\] strides \[(.*?)\] upper bounds \[(.*?)\]`)

// parseTile reads offsets [..] sizes [..] strides [..] upper bounds [..].
func parseTile(r *index.Ring, text string, scope map[string]index.Expr) (Tile, error) {
	m := tileText.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q is no tile", text)
	}
	var fields [4][]index.Expr
	for k := range fields {
		for _, word := range splitTop(m[k+1]) {
			e, err := r.Parse(word, scope)
			if err != nil {
				return nil, err
			}
			fields[k] = append(fields[k], e)
		}
	}
	t := make(Tile, len(fields[0]))
	for k := range t {
		t[k] = DimTile{
			Offset: fields[0][k],
			Size:   fields[1][k],
			Stride: fields[2][k],
			Lower:  r.Const(0),
			Bound:  fields[3][k],
		}
	}
	return t, nil
}

// splitTop splits at commas outside parentheses.
func splitTop(text string) (words []string) {
	depth, start := 0, 0
	for k, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			words, start = append(words, strings.TrimSpace(text[start:k])), k+1
		}
	}
	if last := strings.TrimSpace(text[start:]); last != "" {
		words = append(words, last)
	}
	return words
}

// sameElements compares the elements of an array that are there at some sizes
// and tile ids, those past its end too.
func sameElements(a, b Tile, dims []int64) bool {
	vars := a.vars()
	for v := range b.vars() {
		vars[v] = true
	}
	var list []index.Expr
	for v := range vars {
		list = append(list, v)
	}
	for seed := range int64(40) {
		env := map[index.Expr]int64{}
		for k, v := range list {
			in := v.Range()
			env[v] = in.Lo +
				(seed*7+int64(k)*3)%min(in.Len(), 5)
		}
		if !slices.EqualFunc(thereOf(a, env, dims), thereOf(b, env, dims), slices.Equal) {
			return false
		}
	}
	return true
}

func thereOf(t Tile, env map[index.Expr]int64, dims []int64) (all [][]int64) {
	t.Each(env, func(index []int64, there bool) {
		if there && inside(index, dims) && len(all) < 1<<16 {
			all = append(all, slices.Clone(index))
		}
	})
	return all
}

// TestVectorsConstraints compares the tilings that are legal with those the
// vectors have: none of theirs may be refused.
func TestVectorsConstraints(t *testing.T) {
	for _, v := range append(loadTileVectors(t, "tile_constraints"), loadTileVectors(t, "tile")...) {
		if strings.HasPrefix(v.HLO, "(") ||
			!strings.Contains(v.HLO, "ROOT") || v.System == "tile_propagation" ||
			v.Op != "" {
			continue
		}
		var want string
		if v.Parts != nil {
			want = v.Parts["constraints"]
		} else if json.Unmarshal(v.Expect, &want) != nil ||
			!strings.Contains(want, "d0 in") && !strings.Contains(want, "mod d0") {
			continue
		}
		compareConstraints(t, v, want)
	}
}

func compareConstraints(t *testing.T, v tileVector, want string) {
	m, err := hlo.Parse("vector", []byte(v.HLO))
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	p, err := Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	scope := map[string]index.Expr{}
	for k, d := range p.Space.Dims {
		scope[fmt.Sprintf("d%d", k)] = d.Size
	}
	theirs := index.Constraint(nil)
	if want != "always satisfied" {
		if theirs, err = p.Space.Ring.ParseConstraint(want, scope); err != nil {
			t.Errorf("%s: %v", v.ID, err)
			return
		}
	}
	legal, boxes, both, missed := 0, 0, 0, 0
	for tiling := range everyTiling(p.Space) {
		env := map[index.Expr]int64{}
		for k, d := range p.Space.Dims {
			env[d.Size] = tiling[k]
		}
		ours := p.Space.Where.Holds(env)
		if ours {
			legal++
			if p.Space.Boxes.Holds(env) {
				boxes++
			}
		}
		if theirs.Holds(env) {
			both++
			if !ours {
				missed++
				t.Errorf("%s: %v is refused", v.ID, tiling)
			}
		}
	}
	t.Logf("%s: %d legal, %d of them boxes; there %d", v.ID, legal, boxes, both)
	for text, ok := range v.Checks {
		var tiling Tiling
		for _, word := range strings.Split(text, ",") {
			var n int64
			fmt.Sscan(word, &n)
			tiling = append(tiling, n)
		}
		boxed := &Program{Space: p.Space.Boxed()}
		if err := boxed.Check(tiling); (err == nil) != ok {
			t.Errorf("%s: %s is %v there; as boxes we say %v", v.ID, text, ok, err)
		}
	}
}

// everyTiling yields all sizes up to some thousands of tilings.
func everyTiling(s *Space) func(func(Tiling) bool) {
	return func(yield func(Tiling) bool) {
		t := make(Tiling, len(s.Dims))
		left := 4000
		var walk func(k int) bool
		walk = func(k int) bool {
			if k == len(t) {
				left--
				return yield(t) && left > 0
			}
			for n := int64(1); n <= max(1, s.Dims[k].Extent); n++ {
				if t[k] = n; !walk(k + 1) {
					return false
				}
			}
			return true
		}
		walk(0)
	}
}

// extentsOf are those of an instruction, or of the root, which is "out".
func extentsOf(c *hlo.Computation, name string) []int64 {
	for _, i := range c.Instrs {
		if i.Name == name {
			return arrayShapes(i.Shape)[0].Dims
		}
	}
	return arrayShapes(c.Root.Shape)[0].Dims
}

// A fusionVector is a whole fusion with a tiling.
type fusionVector struct {
	Kind, ID, HLO string
	Tiling        json.RawMessage
	Expect        map[string]json.RawMessage
}

// TestVectorsFusion holds whole fusions against the vectors: offsets as a map of
// the program id, sizes and strides of parameters and roots.
func TestVectorsFusion(t *testing.T) {
	form, meaning, skipped := 0, 0, 0
	for _, v := range vectorsOf[fusionVector](t) {
		if v.Kind != "fusion_tiling" {
			continue
		}
		var tiling Tiling
		if json.Unmarshal(v.Tiling, &tiling) != nil || strings.HasPrefix(v.HLO, "iteration") {
			skipped++
			t.Logf("%s: not a tiling by its dimensions", v.ID)
			continue
		}
		f, m, s := checkFusion(t, v, tiling)
		form, meaning, skipped = form+f, meaning+m, skipped+s
	}
	t.Logf("%d tiles as written, %d by meaning, %d vectors not compared", form, meaning, skipped)
}

func checkFusion(t *testing.T, v fusionVector, tiling Tiling) (form, meaning, skipped int) {
	m, err := hlo.Parse("vector", []byte(v.HLO))
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	p, err := Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Logf("%s: %v", v.ID, err)
		return 0, 0, 1
	}
	for _, d := range p.Space.Dims[len(tiling):] {
		tiling = append(tiling, max(1, d.Extent)) // there: reductions are whole
	}
	q, err := p.At(tiling)
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	for name, raw := range v.Expect {
		var want struct {
			Sizes   []int64 `json:"tile_sizes"`
			Strides []int64 `json:"tile_strides"`
			Offsets string  `json:"tile_offsets"`
		}
		if json.Unmarshal(raw, &want) != nil || want.Offsets == "" {
			skipped = 1
			continue
		}
		op := slices.IndexFunc(q.Ops, func(o Op) bool { return o.Instr.Name == name })
		if op < 0 {
			t.Logf("%s: no tile of %s alone", v.ID, name)
			continue
		}
		written, same := sameOffsets(
			t, v.ID+" "+name, q,
			q.Ops[op].Tile, want.Offsets,
		)
		if !slices.Equal(q.Ops[op].Tile.Sizes(), want.Sizes) || !same {
			t.Errorf("%s %s: got %s\n want sizes %v offsets %s", v.ID, name, q.Ops[op].Tile, want.Sizes, want.Offsets)
		}
		if written {
			form++
		} else {
			meaning++
		}
	}
	return form, meaning, skipped
}

// sameOffsets compares offsets as functions of the program id, as written and
// wherever the vector's domain has a point.
func sameOffsets(t *testing.T, id string, q *Program, tile Tile, text string) (written, same bool) {
	r := q.Space.Ring
	want, err := r.ParseMap(text)
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	pid := r.Var(index.Variable{
		Name: "pid_0",
		Lo:   0,
		Hi:   q.Programs() - 1,
		Role: index.RoleDim,
	})
	with := map[index.Expr]index.Expr{}
	rest := pid
	for k := len(q.Grid()) - 1; k >= 0; k-- {
		with[q.Space.Dims[k].Tid] = rest.Mod(q.Grid()[k])
		rest = rest.Div(q.Grid()[k])
	}
	for _, x := range q.Runtime {
		with[x.Var] = r.Const(0)
	}
	delete(with, r.Const(0))
	got := index.Map{
		Dims:  []index.Expr{pid},
		Where: want.Where.Subst(map[index.Expr]index.Expr{}),
	}
	for _, d := range tile {
		got.Results = append(got.Results, d.Offset.Subst(with))
	}
	same = true
	vals := make([]int64, len(want.Vars()))
	for n := int64(0); n < min(q.Programs(), 4096); n++ {
		vals[0] = n
		if want.Has(vals) &&
			!slices.Equal(got.Eval([]int64{n}), want.Eval(vals)) {
			same = false
		}
	}
	a, _, _ := strings.Cut(got.Simplify().String(), ", domain")
	b, _, _ := strings.Cut(want.Simplify().String(), ", domain")
	if a != b {
		t.Logf("%s\n got  %s\n want %s", id, a, b)
	}
	return a == b, same
}
