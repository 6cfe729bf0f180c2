package partition

import (
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// duplicateParts are the parameters and computations of the cases of TestDuplicates.
const duplicateParts = `HloModule m
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
plus { c = f32[] parameter(0) d = f32[] parameter(1) ROOT r = f32[] add(c, d) }
most { c = f32[] parameter(0) d = f32[] parameter(1) ROOT r = f32[] maximum(c, d) }
drawn { c = f32[] parameter(0) d = f32[] parameter(1) ROOT r = f32[] rng(c, d), distribution=rng_uniform }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }
twice { x = f32[64,64] parameter(0) ROOT y = f32[64,64] add(x, x) }
total { x = f32[64,64] parameter(0) z = f32[] constant(0) ROOT y = f32[] reduce(x, z), dimensions={0,1}, to_apply=sum }
low { p = f32[64,64] parameter(0) ROOT l = pred[] constant(false) }
ENTRY main {
x = f32[64,64] parameter(0)
w = f32[64,64] parameter(1)
n = s32[64,1] parameter(2)
u = u64[2] parameter(3)
pair = (f32[64,64], f32[64,64]) parameter(4)
zero = f32[] constant(0)
`

// TestDuplicates: work on operands that are the same, or compute the same, is done once where
// nobody can tell. What joins its readers stays, and so does what draws numbers, has a side
// effect, is placed elsewhere or is computed again on purpose. The result is a and b.
func TestDuplicates(t *testing.T) {
	for name, text := range map[string]string{
		"reduction":       `A = f32[64] reduce(x, zero), dimensions={1}, to_apply=%SUM`,
		"contraction":     `A = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
		"metadata":        `A = f32[64] reduce(x, zero), dimensions={1}, to_apply=%SUM, metadata={op_name="A"}`,
		"one sharding":    `A = f32[64] reduce(x, zero), dimensions={1}, to_apply=%SUM, sharding={replicated}`,
		"scatter":         `A = f32[64,64] scatter(w, n, x), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%SUM`,
		"sort":            `A = f32[64,64] sort(x), dimensions={1}, to_apply=less`,
		"element":         `A = f32[64,64] get-tuple-element(pair), index=1`,
		"call":            `A = f32[] call(x), to_apply=total`,
		"window":          `A = f32[64,64] reduce-window(x, zero), window={size=1x3 pad=0_0x1_1}, to_apply=%SUM`,
		"equal operands":  `c.A = f32[] constant(3); d.A = f32[64,64] broadcast(c.A), dimensions={}; e.A = f32[64,64] power(d.A, x); f.A = f32[64,64] tanh(e.A); A = f32[64] reduce(f.A, zero), dimensions={1}, to_apply=%SUM`,
		"behind the same": `s.A = f32[64] reduce(x, zero), dimensions={1}, to_apply=%SUM; m.A = f32[64,64] broadcast(s.A), dimensions={0}; A = f32[64,64] dot(m.A, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
	} {
		a, b := duplicates(t, text, text)
		if a != b {
			t.Errorf("%s: %s and %s", name, a, b)
		}
	}
	for name, text := range map[string]string{
		"elementwise":        `A = f32[64,64] add(x, w)`,
		"source":             `A = f32[64,64] iota(), iota_dimension=1`,
		"zeros":              `A = f32[64,64] broadcast(zero), dimensions={}`,
		"gather":             `A = f32[64,64] gather(x, n), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}`,
		"random numbers":     `A = f32[64,64] rng(zero, zero), distribution=rng_uniform`,
		"random bits":        `g.A = (u64[2], f32[64,64]) rng-bit-generator(u), algorithm=rng_three_fry; A = f32[64,64] get-tuple-element(g.A), index=1`,
		"random reduction":   `A = f32[64] reduce(x, zero), dimensions={1}, to_apply=drawn`,
		"custom call":        `A = f32[64,64] custom-call(x), custom_call_target="f"`,
		"side effect":        `A = f32[64,64] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true`,
		"host":               `t.A = token[] after-all(); i.A = (f32[64,64], token[]) infeed(t.A); A = f32[64,64] get-tuple-element(i.A), index=0`,
		"barrier":            `A = f32[64,64] opt-barrier(x)`,
		"behind a barrier":   `o.A = f32[64,64] opt-barrier(x); A = f32[64] reduce(o.A, zero), dimensions={1}, to_apply=%SUM`,
		"collective":         `A = f32[64,64] all-reduce(x), replica_groups={}, to_apply=sum`,
		"channel":            `A = f32[64,64] all-reduce(x), channel_id=1, replica_groups={}, to_apply=sum`,
		"device":             `A = u32[] partition-id()`,
		"loop":               `A = f32[64,64] while(x), condition=low, body=twice`,
		"elided":             `c.A = f32[64,64] constant({...}); A = f32[64] reduce(c.A, zero), dimensions={1}, to_apply=%SUM`,
		"control dependence": `A = f32[64] reduce(x, zero), dimensions={1}, to_apply=%SUM, control-predecessors={w}`,
	} {
		a, b := duplicates(t, text, text)
		if a == b {
			t.Errorf("%s: both are %s", name, a)
		}
	}
}

// TestNearDuplicates: pairs that differ in what is computed, where, or how.
func TestNearDuplicates(t *testing.T) {
	// What stands before a reduction of c.
	before := func(text string) string {
		return "c.A = " + text + "; A = f32[] reduce(c.A, zero), dimensions={0,1}, to_apply=sum"
	}
	dot := func(attrs string) string {
		return `A = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}` + attrs
	}
	reduce := func(attrs string) string { return `A = f32[64] reduce(x, zero), ` + attrs }
	for name, pair := range map[string][2]string{
		"operation":    {before(`f32[64,64] add(x, w)`), before(`f32[64,64] subtract(x, w)`)},
		"order":        {before(`f32[64,64] subtract(x, w)`), before(`f32[64,64] subtract(w, x)`)},
		"layout":       {before(`f32[64,64]{1,0} copy(x)`), before(`f32[64,64]{0,1} copy(x)`)},
		"sign of 0":    {before(`f32[1,2] constant({{0, 1}})`), before(`f32[1,2] constant({{-0, 1}})`)},
		"constant":     {before(`f32[1,2] constant({{1, 1}})`), before(`f32[1,2] constant({{1, 1.0000001}})`)},
		"along":        {before(`f32[64,64] iota(), iota_dimension=0`), before(`f32[64,64] iota(), iota_dimension=1`)},
		"slice":        {before(`f32[32,64] slice(x), slice={[0:32], [0:64]}`), before(`f32[32,64] slice(x), slice={[32:64], [0:64]}`)},
		"placed":       {before(`f32[64,64] negate(x), sharding={replicated}`), before(`f32[64,64] negate(x), sharding={devices=[2,1]0,1}`)},
		"computation":  {reduce(`dimensions={1}, to_apply=sum`), reduce(`dimensions={1}, to_apply=most`)},
		"dimensions":   {reduce(`dimensions={1}, to_apply=sum`), reduce(`dimensions={0}, to_apply=sum`)},
		"sharding":     {reduce(`dimensions={1}, to_apply=sum, sharding={replicated}`), reduce(`dimensions={1}, to_apply=sum`)},
		"asked for":    {dot(`, frontend_attributes={_xla_compute_type="host"}`), dot(``)},
		"asked again":  {dot(`, frontend_attributes={k="1"}`), dot(`, frontend_attributes={k="2"}`)},
		"backend":      {dot(`, backend_config={"precision":1}`), dot(``)},
		"precision":    {dot(`, operand_precision={highest,highest}`), dot(``)},
		"part of pair": {`A = f32[64,64] get-tuple-element(pair), index=0`, `A = f32[64,64] get-tuple-element(pair), index=1`},
		"result type":  {`A = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, `A = f64[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`},
	} {
		a, b := duplicates(t, pair[0], pair[1])
		if a == b {
			t.Errorf("%s: both are %s", name, a)
		}
	}
}

// duplicates flattens a module of two texts, in which A stands for a and b, and SUM for two
// computations that are equal, and returns what the elements of its result are.
func duplicates(t *testing.T, first, second string) (a, b *hlo.Instr) {
	t.Helper()
	text := duplicateParts
	shape := [2]string{}
	for k, x := range [2]string{first, second} {
		x = strings.NewReplacer("A", "ab"[k:k+1], "SUM", [2]string{"sum", "plus"}[k], "; ", "\n").Replace(x)
		shape[k], _, _ = strings.Cut(x[strings.LastIndex("\n"+x, "\n"):][len("a = "):], " ")
		text += x + "\n"
	}
	text += "ROOT r = (" + shape[0] + ", " + shape[1] + ") tuple(a, b)\n}\n"
	m, err := hlo.Parse("test", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	flat := newPartitioner(t.Context(), Options{}).flatten(m.Entry)
	if _, err := Module(t.Context(), m, Options{}); err != nil {
		t.Fatal(err)
	}
	return flat.Root.Operands[0], flat.Root.Operands[1]
}
