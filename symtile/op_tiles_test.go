package symtile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// Instructions whose tiles are held against indexing maps, both ways.
var relations = []string{
	"x = f32[6,5] parameter(0); y = f32[6,5] parameter(1); ROOT r = f32[6,5] add(x, y)",
	"x = f32[5] parameter(0); ROOT r = f32[4,5,3] broadcast(x), dimensions={1}",
	"x = f32[4,5,3] parameter(0); ROOT r = f32[3,4,5] transpose(x), dimensions={2,0,1}",
	"x = f32[4,6] parameter(0); ROOT r = f32[2,2,6] reshape(x)",
	"x = f32[2,3,4] parameter(0); ROOT r = f32[6,4] reshape(x)",
	"x = f32[6,4] parameter(0); ROOT r = f32[3,8] reshape(x)",
	"x = f32[12] parameter(0); ROOT r = f32[3,4] bitcast(x)",
	"x = f32[10,7] parameter(0); ROOT r = f32[3,6] slice(x), slice={[1:10:3],[1:7]}",
	"x = f32[7,3] parameter(0); ROOT r = f32[7,3] reverse(x), dimensions={0}",
	"x = f32[2,5] parameter(0); y = f32[2,4] parameter(1); ROOT r = f32[2,9] concatenate(x, y), dimensions={1}",
	"x = f32[4,4] parameter(0); z = f32[] parameter(1); ROOT r = f32[12,3] pad(x, z), padding=1_4_1x-1_0_0",
	"x = f32[4,6,3] parameter(0); z = f32[] constant(0); ROOT r = f32[4,3] reduce(x, z), dimensions={1}, to_apply=add",
	"x = f32[2,4,6] parameter(0); y = f32[2,6,3] parameter(1); ROOT r = f32[2,4,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
	"x = f32[9] parameter(0); z = f32[] constant(0); ROOT r = f32[4] reduce-window(x, z), window={size=3 stride=2}, to_apply=add",
	"x = f32[8,5] parameter(0); z = f32[] constant(0); ROOT r = f32[8,2] reduce-window(x, z), window={size=3x2 pad=1_1x0_0 stride=1x2 rhs_dilate=1x1}, to_apply=add",
	"x = f32[7] parameter(0); z = f32[] constant(0); ROOT r = f32[9] reduce-window(x, z), window={size=3 pad=0_0 rhs_dilate=2 lhs_dilate=2}, to_apply=add",
	"x = f32[2,9,3] parameter(0); k = f32[3,3,4] parameter(1); ROOT r = f32[2,5,4] convolution(x, k), window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f",
	"x = f32[1,6,4] parameter(0); k = f32[2,2,6] parameter(1); ROOT r = f32[1,5,6] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2",
	"x = f32[6,5,2] parameter(0); k = f32[2,2,3] parameter(1); ROOT r = f32[2,4,3] convolution(x, k), window={size=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f, batch_group_count=3",
	"x = f32[9,2] parameter(0); c = s32[] constant(3); d = s32[] constant(0); ROOT r = f32[4,2] dynamic-slice(x, c, d), dynamic_slice_sizes={4,2}",
	"x = f32[9] parameter(0); u = f32[3] parameter(1); c = s32[] constant(5); ROOT r = f32[9] dynamic-update-slice(x, u, c)",
	"x = f32[8,6] parameter(0); y = f32[6,4] parameter(1); s = f32[4,2] parameter(2); t = f32[3,4] parameter(3); ROOT r = f32[8,4] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
}

// TestRelations: of every element of a tile of the result all operand elements
// it is made from are in the operands' tiles, and the other way round. How often
// a tile has nothing else is counted, with a floor that only goes up.
func TestRelations(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	downExact, downAll, upExact, upAll := 0, 0, 0, 0
	for _, text := range relations {
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		in := m.Entry.Root
		for range 60 {
			r := index.NewRing()
			if out := randomTile(r, rng, in.Shape.Dims); true {
				rel, err := OperandTiles(r, in, out)
				if err == nil {
					exact, missing := against(r, in, out, rel)
					if missing != "" {
						t.Fatalf("%s\n%s: %s", text, out, missing)
					}
					downAll++
					downExact += exact
				}
			}
			for k, o := range in.Operands {
				tile := randomTile(r, rng, o.Shape.Dims)
				rel, err := ResultTiles(r, in, k, tile)
				if err != nil || o.Op == hlo.OpConstant {
					continue
				}
				exact, missing := backwards(r, in, k, tile, rel.Tiles[0][0])
				if missing != "" {
					t.Fatalf("%s\noperand %d %s\nresult %s: %s", text, k, tile, rel.Tiles[0][0], missing)
				}
				upAll++
				upExact += exact
			}
		}
	}
	t.Logf("to operands %d of %d exact, to results %d of %d", downExact, downAll, upExact, upAll)
	if downExact*100 < downAll*98 || upExact*100 < upAll*87 {
		t.Error("fewer exact tiles than there were")
	}
}

// randomTile is a tile of a tensor with constant fields.
func randomTile(r *index.Ring, rng *rand.Rand, dims []int64) Tile {
	t := make(Tile, len(dims))
	for k, n := range dims {
		size := 1 + rng.Int64N(n)
		offset := rng.Int64N(n)
		t[k] = DimTile{
			Offset: r.Const(offset),
			Size:   r.Const(size),
			Stride: r.Const(1),
			Lower:  r.Const(0),
			Bound:  r.Const(n),
		}
	}
	return t
}

// against compares what operands' tiles claim with what the maps read.
func against(r *index.Ring, in *hlo.Instr, out Tile, rel *Relation) (exact int, missing string) {
	exact = 1
	for k, maps := range indexing.OperandMaps(r, in, 0) {
		if in.Operands[k].Shape.Rank() == 0 || in.Operands[k].Op == hlo.OpConstant {
			continue
		}
		read, claimed := map[string]bool{}, map[string]bool{}
		out.Each(nil, func(indices []int64, there bool) {
			for _, m := range maps {
				if there {
					images(m, indices, read)
				}
			}
		})
		for _, tile := range rel.Tiles[k] {
			with := map[index.Expr]index.Expr{} // one step that is the whole dimension
			for _, d := range rel.Steps {
				with[d.Size], with[d.Tid] = r.Const(max(1, d.Extent)),
					r.Const(0)
			}
			substituted(tile, with).Each(nil, func(indices []int64, there bool) {
				if there {
					claimed[fmt.Sprint(indices)] = true
				}
			})
		}
		for e := range read {
			if !claimed[e] {
				return 0, fmt.Sprintf("operand %d: %s is read, not claimed by %s", k, e, rel.Tiles[k])
			}
		}
		if len(read) != len(claimed) {
			exact = 0
		}
	}
	return exact, ""
}

func substituted(t Tile, with map[index.Expr]index.Expr) Tile {
	out := make(Tile, len(t))
	for k, d := range t {
		out[k] = DimTile{
			Offset: d.Offset.Subst(with),
			Size:   d.Size.Subst(with),
			Stride: d.Stride.Subst(with),
			Lower:  d.Lower.Subst(with),
			Bound:  d.Bound.Subst(with),
		}
		if d.Digits != nil {
			out[k].Digits = substituted(d.Digits, with)
		}
	}
	return out
}

// images adds the results of m at indices, for all values of its ranges.
func images(m index.Map, indices []int64, to map[string]bool) {
	if m.State != index.StateKnown {
		return
	}
	vals := append(
		append([]int64{}, indices...),
		make([]int64, len(m.Ranges)+len(m.Runtime))...,
	)
	var walk func(k int)
	walk = func(k int) {
		if k == len(m.Ranges) {
			if m.Has(vals) {
				to[fmt.Sprint(m.Eval(vals))] = true
			}
			return
		}
		in := m.Ranges[k].Range()
		for x := in.Lo; x <= in.Hi; x++ {
			vals[len(indices)+k] = x
			walk(k + 1)
		}
	}
	walk(0)
}

// backwards compares what a result's tile claims with what is made from a tile
// of operand k: the result elements whose maps read one of its elements.
func backwards(
	r *index.Ring, in *hlo.Instr, k int, tile, out Tile,
) (exact int, missing string) {
	from, made, claimed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	tile.Each(nil, func(index []int64, there bool) {
		if there {
			from[fmt.Sprint(index)] = true
		}
	})
	all := Tile{}
	for _, n := range in.Shape.Dims {
		all = append(all, whole(r, n))
	}
	all.Each(nil, func(index []int64, _ bool) {
		for _, m := range indexing.OperandMaps(r, in, 0)[k] {
			read := map[string]bool{}
			images(m, index, read)
			for e := range read {
				if from[e] {
					made[fmt.Sprint(index)] = true
				}
			}
		}
	})
	out.Each(nil, func(index []int64, there bool) {
		if there {
			claimed[fmt.Sprint(index)] = true
		}
	})
	for e := range made {
		if !claimed[e] {
			return 0, e + " is made from it and not claimed"
		}
	}
	if len(made) == len(claimed) {
		exact = 1
	}
	return exact, ""
}

// A collective without groups has as many replicas as its sides differ by; of an
// all-reduce that is not known.
func TestCollectiveTiles(t *testing.T) {
	for text, want := range map[string]string{
		"x = f32[8] parameter(0); ROOT g = f32[32] all-gather(x), dimensions={0}":                        "4",
		"x = f32[8] parameter(0); ROOT g = f32[8] all-reduce(x), replica_groups={{0,1,2}}, to_apply=add": "3",
		"x = f32[8] parameter(0); ROOT g = f32[8] all-reduce(x), to_apply=add":                           "g (all-reduce): how many replicas are in a group is not said [replica-groups]",
	} {
		m, err := hlo.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := index.NewRing()
		rel, err := OperandTiles(r, m.Entry.Root, Tile{whole(r, 8)})
		got := fmt.Sprint(err)
		if err == nil {
			got = rel.Replicas.Bound.String()
		}
		if got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}
