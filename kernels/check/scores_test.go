package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// maskedAttention has shared keys and values (grouped queries), a causal mask with an
// offset, and operands that are moved.
const maskedAttention = `q = %[1]s[2,19,8] parameter(0)
k = %[1]s[8,19] parameter(1)
v = %[1]s[2,19,8] parameter(2)
half = %[1]s[] constant(0.5)
halves = %[1]s[2,19,8] broadcast(half), dimensions={}
scaled = %[1]s[2,19,8] multiply(q, halves)
turned = %[1]s[19,8] transpose(k), dimensions={1,0}
keys = %[1]s[2,19,8] broadcast(turned), dimensions={1,2}
x = f32[2,19,19] dot(scaled, keys), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
row = s32[2,19,19] iota(), iota_dimension=1
col = s32[2,19,19] iota(), iota_dimension=2
offset = s32[] constant(-3)
offsets = s32[2,19,19] broadcast(offset), dimensions={}
last = s32[2,19,19] add(row, offsets)
seen = pred[2,19,19] compare(col, last), direction=LE
low = f32[] constant(-1e30)
lows = f32[2,19,19] broadcast(low), dimensions={}
s = f32[2,19,19] select(seen, x, lows)
none = f32[] constant(-inf)
zero = f32[] constant(0)
m = f32[2,19] reduce(s, none), dimensions={2}, to_apply=maximum
ms = f32[2,19,19] broadcast(m), dimensions={0,1}
less = f32[2,19,19] subtract(s, ms)
e = f32[2,19,19] exponential(less)
sum = f32[2,19] reduce(e, zero), dimensions={2}, to_apply=add
sums = f32[2,19,19] broadcast(sum), dimensions={0,1}
w = f32[2,19,19] divide(e, sums)
b = %[1]s[2,19,19] convert(w)
ROOT o = %[1]s[2,19,8] dot(b, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
`

// A textKernel computes what the reference computes for another text.
type textKernel struct{ c *hlo.Computation }

func (k textKernel) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	got, err := reference.InterpretContext(ctx, k.c, in)
	for n := range got {
		copy(out[n].Data, got[n].Data)
	}
	return time.Microsecond, err
}

func (k textKernel) Close() error   { return nil }
func (k textKernel) Source() string { return "" }

// A mask that is off by one, a hidden score and a score that is left out of the maximum are
// found under any seed, for each type that operands of scores have.
func TestScoresShowMasks(t *testing.T) {
	parse := func(text string) *hlo.Computation {
		m, err := hlo.Parse("attention", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m.Entry
	}
	// The maximum is of scores of which one column in eight is left out.
	const omits = `eight = s32[] constant(8)
eights = s32[2,19,19] broadcast(eight), dimensions={}
part = s32[2,19,19] remainder(col, eights)
five = s32[] constant(5)
fives = s32[2,19,19] broadcast(five), dimensions={}
omitted = pred[2,19,19] compare(part, fives), direction=EQ
infs = f32[2,19,19] broadcast(none), dimensions={}
rest = f32[2,19,19] select(omitted, infs, s)
m = f32[2,19] reduce(rest, `
	for _, d := range []string{"bf16", "f16", "f32"} {
		text := fmt.Sprintf(maskedAttention, d)
		c := parse(text)
		for seed := range int64(30) {
			v, err := NewVerifier(t.Context(), c, seed)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Verify(t.Context(), textKernel{c}); err != nil {
				t.Fatalf("%s, seed %d: %v", d, seed, err)
			}
			for _, change := range [][2]string{
				{"direction=LE", "direction=LT"},
				{"constant(-3)", "constant(-2)"},
				{"constant(-3)", "constant(-4)"},
				{"direction=LE", "direction=NE"},
				{"m = f32[2,19] reduce(s, ", omits},
			} {
				wrong := parse(strings.Replace(text, change[0], change[1], 1))
				err := v.Verify(t.Context(), textKernel{wrong})
				if !errors.As(err, new(*WrongResult)) {
					t.Errorf("%s, seed %d, %s: %v", d, seed, change[1], err)
				}
			}
		}
	}
}
