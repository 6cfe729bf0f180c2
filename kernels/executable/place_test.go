package executable

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// loopText is a loop that writes a row of an array in each round, and adds the rows before.
const loopText = `HloModule m
%[1]s
body {
  s = (s32[], f32[%[2]d], f32[6,%[2]d]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[%[2]d] get-tuple-element(s), index=1
  a = f32[6,%[2]d] get-tuple-element(s), index=2
  z = s32[] constant(0)
  o = s32[] constant(1)
%[3]s
  n = s32[] add(i, o)
  ROOT t = (s32[], f32[%[2]d], f32[6,%[2]d]) tuple(n, y, u)
}
more {
  s = (s32[], f32[%[2]d], f32[6,%[2]d]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  l = s32[] constant(7)
  ROOT c = pred[] compare(i, l), direction=LT
}
ENTRY e {
  i = s32[] constant(-1)
  x = f32[%[2]d] parameter(0)
  a = f32[6,%[2]d] parameter(1)
  s = (s32[], f32[%[2]d], f32[6,%[2]d]) tuple(i, x, a)
  ROOT w = (s32[], f32[%[2]d], f32[6,%[2]d]) while(s), condition=more, body=body
}`

// A fusion makes a slice where it ends if nothing else reads the slice or the array; the
// results are those of the reference. Starts are clamped: −1 is 0, and 6 is 5.
func TestSlicesMadeInPlace(t *testing.T) {
	const twice = `f {
  p = f32[%[1]d] parameter(0)
  q = f32[%[1]d] add(p, p)
  r = f32[1,%[1]d] reshape(q)
  ROOT t = (f32[%[1]d], f32[1,%[1]d]) tuple(q, r)
}`
	const both = `  b = (f32[%[1]d], f32[1,%[1]d]) fusion(x), kind=kLoop, calls=f
  y = f32[%[1]d] get-tuple-element(b), index=0
  v = f32[1,%[1]d] get-tuple-element(b), index=1
`
	const update = "  u = f32[6,%[1]d] dynamic-update-slice(a, v, i, z)"
	for _, c := range []struct {
		name, fusion, body string
		wide               int
		placed             bool
	}{
		{"of two results", twice, both + update, 16, true},
		{"rows that begin within cache lines", twice, both + update, 12, false},
		{"a view of the result", `f {
  p = f32[%[1]d] parameter(0)
  ROOT q = f32[%[1]d] add(p, p)
}
g {
  p = f32[%[1]d] parameter(0)
  ROOT q = f32[1,%[1]d] broadcast(p), dimensions={1}
}`, `  y = f32[%[1]d] fusion(x), kind=kLoop, calls=f
  k = f32[%[1]d] fusion(y), kind=kLoop, calls=f
  v = f32[1,%[1]d] fusion(k), kind=kLoop, calls=g
` + update, 16, true},
		{"a slice that is read, too", twice, both + update + `
  h = f32[%[1]d] reshape(v)
  y = f32[%[1]d] fusion(h), kind=kLoop, calls=g`, 16, false},
		{"an array that the fusion reads", `f {
  p = f32[%[1]d] parameter(0)
  c = f32[6,%[1]d] parameter(1)
  d = f32[1,%[1]d] slice(c), slice={[0:1],[0:%[1]d]}
  e = f32[%[1]d] reshape(d)
  q = f32[%[1]d] add(p, e)
  r = f32[1,%[1]d] reshape(q)
  ROOT t = (f32[%[1]d], f32[1,%[1]d]) tuple(q, r)
}`, strings.Replace(both, "fusion(x)", "fusion(x, a)", 1) + update, 16, false},
		{"a start that is computed", twice, both + "  j = s32[] add(i, o)\n" + strings.Replace(update, "i, z", "j, z", 1), 16, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fusion := fmt.Sprintf(c.fusion, c.wide)
			body := fmt.Sprintf(c.body, c.wide)
			if strings.Contains(body, "calls=g") && !strings.Contains(fusion, "g {") {
				fusion += fmt.Sprintf("\ng { p = f32[%d] parameter(0) ROOT q = f32[%[1]d] negate(p) }", c.wide)
				body = strings.Replace(body, "  y = f32[16] get-tuple-element(b), index=0\n", "", 1)
			}
			text := fmt.Sprintf(loopText, fusion, c.wide, body)
			var texts []string
			for _, interpret := range []bool{true, false} {
				e, m := compiled(t, text, Options{Interpret: interpret})
				out, err := e.Run(t.Context(), counting(t, m.Entry))
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, printed(out))
				if placed := hasPlace(e, m); placed != (c.placed && !interpret) {
					t.Errorf("made in place: %v", placed)
				}
			}
			if texts[0] != texts[1] {
				t.Errorf("%s, by the reference %s", texts[1], texts[0])
			}
		})
	}
}

// hasPlace reports whether a fusion of m writes a slice where it ends.
func hasPlace(e *Executable, m *hlo.Module) bool {
	for _, c := range m.Computations {
		p := e.compiler.programs[c]
		if p == nil {
			continue
		}
		for _, s := range p.steps {
			if s.place != nil {
				return true
			}
		}
	}
	return false
}
