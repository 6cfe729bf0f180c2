package tuner

import (
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Fusions count as often as a run of the module executes them: in the body of a loop whose
// trip count XLA has noted or whose counter says it, in calls of calls, and in two places. What
// is outside of them counts likewise, and a reduction's computation is part of the reduction.
func TestWorkloadUses(t *testing.T) {
	m, err := hlo.Parse("uses", []byte(`HloModule m
f { x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x) }
g { x = f32[8] parameter(0)
  ROOT y = f32[8] exponential(x) }
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
body { x = f32[8] parameter(0)
  a = f32[8] fusion(x), kind=kLoop, calls=f
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=g }
cond { x = f32[8] parameter(0)
  ROOT t = pred[] constant(true) }
twice { x = f32[8] parameter(0)
  a = f32[8] fusion(x), kind=kLoop, calls=g
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=g }
counted { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  two = s32[] constant(2)
  n = s32[] add(i, two)
  x = f32[8] get-tuple-element(s), index=1
  a = f32[8] fusion(x), kind=kLoop, calls=f
  zero = f32[] constant(0)
  total = f32[] reduce(a, zero), dimensions={0}, to_apply=add
  ROOT r = (s32[], f32[8]) tuple(n, a) }
below { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(10)
  ROOT c = pred[] compare(i, end), direction=LT }
ENTRY e {
  p = f32[8] parameter(0)
  w = f32[8] while(p), condition=cond, body=body, backend_config={"known_trip_count":{"n":"12"},"x":1}
  v = f32[8] while(w), condition=cond, body=body
  c = f32[8] call(v), to_apply=twice
  d = f32[8] call(c), to_apply=twice
  first = s32[] constant(0)
  s = (s32[], f32[8]) tuple(first, d)
  u = (s32[], f32[8]) while(s), condition=below, body=counted
  h = f32[8] get-tuple-element(u), index=1
  ROOT r = f32[8] fusion(h), kind=kLoop, calls=f
}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := &Workload{}
	w.Add("uses", m, m.Fusions())
	w.AddOutside(m)
	got := map[string]float64{}
	for _, x := range w.Items {
		got[x.Fusion.Name] = x.Uses
	}
	for op, o := range w.Outside {
		for _, move := range o.moves {
			got[string(op)] += move.uses
		}
	}
	for name, want := range map[string]float64{"f": 12 + 1 + 5 + 1, "g": 13 + 4, "add": 5, "reduce": 5, "compare": 6} {
		if got[name] != want {
			t.Errorf("%s is executed %v times, want %v", name, got[name], want)
		}
	}
}

// An update whose slice a fusion makes in place moves nothing; one that lies across the
// array moves the slice.
func TestSlicesInPlaceMoveNothing(t *testing.T) {
	m, err := hlo.Parse("scan", []byte(`
f { x = f32[64] parameter(0)
  y = f32[64] negate(x)
  z = f32[1,64] reshape(y)
  ROOT t = (f32[1,64], f32[64]) tuple(z, y) }
ENTRY e { s = (s32[], f32[64], f32[8,64], f32[64,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  a = f32[8,64] get-tuple-element(s), index=2
  b = f32[64,8] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  both = (f32[1,64], f32[64]) fusion(x), kind=kLoop, calls=f
  row = f32[1,64] get-tuple-element(both), index=0
  state = f32[64] get-tuple-element(both), index=1
  column = f32[64,1] bitcast(state)
  c = f32[8,64] dynamic-update-slice(a, row, i, zero)
  d = f32[64,8] dynamic-update-slice(b, column, zero, i)
  ROOT r = (f32[8,64], f32[64,8]) tuple(c, d) }`))
	if err != nil {
		t.Fatal(err)
	}
	w := &Workload{}
	w.AddOutside(m)
	moves := w.Outside[hlo.OpDynamicUpdateSlice].moves
	if len(moves) != 2 || moves[0].bytes != 0 || moves[1].bytes != 512 {
		t.Errorf("%+v", moves)
	}
}
