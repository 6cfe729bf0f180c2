package hlo

import "testing"

// Fusions count as often as a run of the module executes them: in the body of a loop
// with a known trip count, in calls of calls, and in two places.
func TestUses(t *testing.T) {
	m, err := Parse("uses", []byte(`HloModule m
f { x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x) }
g { x = f32[8] parameter(0)
  ROOT y = f32[8] exponential(x) }
body { x = f32[8] parameter(0)
  a = f32[8] fusion(x), kind=kLoop, calls=f
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=g }
cond { x = f32[8] parameter(0)
  ROOT t = pred[] constant(true) }
twice { x = f32[8] parameter(0)
  a = f32[8] fusion(x), kind=kLoop, calls=g
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=g }
ENTRY e {
  p = f32[8] parameter(0)
  w = f32[8] while(p), condition=cond, body=body, backend_config={"known_trip_count":{"n":"12"},"x":1}
  v = f32[8] while(w), condition=cond, body=body
  c = f32[8] call(v), to_apply=twice
  d = f32[8] call(c), to_apply=twice
  ROOT r = f32[8] fusion(d), kind=kLoop, calls=f
}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for c, n := range m.Uses() {
		got[c.Name] = n
	}
	for name, want := range map[string]float64{"e": 1, "body": 13, "twice": 2, "f": 14, "g": 17} {
		if got[name] != want {
			t.Errorf("%s is executed %v times, want %v", name, got[name], want)
		}
	}
}
