// Package packtiming measures on a device whether an operand of a dot is worth packing:
// the dot that reads the operand as it is, against the dot that reads it packed, run in
// turns, and the time that packing takes once.
package packtiming

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/layout"
)

// A Dot is a product of matrices, [M, K] and [K, N], of which one operand may be packed.
type Dot struct {
	M, N, K int64
	DType   hlo.DType
	// Right reports that the packed operand is the right one.
	Right bool
	// Pack packs it.
	Pack layout.Pack
}

// A Result is what was measured. Times are medians, in seconds.
type Result struct {
	// InPlace is a dot that reads the operand as it is, Packed one that reads it
	// packed, and Packing the time of packing it.
	InPlace, Packed, Packing float64
	// Ratio is the time packed over the time in place, with its 95 % interval by
	// pairs of runs that followed each other.
	Ratio check.PairedInterval
	// Pairs is how many there were.
	Pairs int
}

// Pays is the number of dots from which packing the operand once takes less time than
// reading it as it is; 0 where the interval of the ratio does not exclude that packed
// operands are as slow.
func (r Result) Pays() int64 {
	saved := r.InPlace - r.Packed
	if r.Ratio.Hi >= 1 || saved <= 0 {
		return 0
	}
	return int64(r.Packing/saved) + 1
}

// minPairs is the number of pairs that are measured whatever the time: fewer have no
// bounded 95 % interval.
const minPairs = 6

// sampleTime is how long a sample runs at least, so that clocks do not matter.
const sampleTime = time.Millisecond

// Measure compiles the default plans of the three programs, verifies them, and times
// them in turns for the given time, at least minPairs times. The error is that of the
// backend, of the verification or of ctx.
func Measure(
	ctx context.Context, b kernels.Backend,
	d Dot, span time.Duration,
) (Result, error) {
	if b.Device().Untimed {
		return Result{}, fmt.Errorf(
			"%s cannot time", b.Identity().Name,
		)
	}
	var all [3]*runner
	texts := []string{
		d.text(false),
		d.text(true),
		d.packText(),
	}
	for k, text := range texts {
		r, err := newRunner(ctx, b, text)
		if err != nil {
			return Result{}, err
		}
		defer r.kernel.Close()
		all[k] = r
	}
	var times [3][]float64
	end := time.Now().Add(span)
	for turn := 0; ; turn++ {
		if turn >= minPairs && time.Now().After(end) {
			break
		}
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		for n := range all {
			// Another one is first in each turn.
			k := (n + turn) % len(all)
			seconds, err := all[k].sample(ctx)
			if err != nil {
				return Result{}, err
			}
			times[k] = append(times[k], seconds)
		}
	}
	return Result{
		InPlace: median(times[0]),
		Packed:  median(times[1]),
		Packing: median(times[2]),
		Ratio:   check.Paired(times[1], times[0], 0.95),
		Pairs:   len(times[0]),
	}, nil
}

// median is the middle one of some times, of which there is at least one; of an even
// number it is the upper one.
func median(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	middle := len(sorted) / 2
	return sorted[middle]
}

// A runner is a verified kernel with inputs to time it on.
type runner struct {
	kernel kernels.Kernel
	bench  *check.Bench
	// runs make a sample.
	runs int
}

// newRunner compiles and verifies the default plan of a text.
func newRunner(
	ctx context.Context, b kernels.Backend,
	text string,
) (*runner, error) {
	m, err := hlo.Parse("dot.mlir", []byte(text))
	if err != nil {
		return nil, err
	}
	p, err := symtile.Analyze(ctx, m.Entry)
	if err != nil {
		return nil, err
	}
	plan, err := b.Default(ctx, p)
	if err != nil {
		return nil, err
	}
	v, err := check.NewVerifier(ctx, p.Physical, 1)
	if err != nil {
		return nil, err
	}
	r := &runner{runs: 1}
	r.kernel, err = b.Compile(ctx, p, plan)
	if err != nil {
		return nil, err
	}
	err = v.Verify(ctx, r.kernel)
	if err == nil {
		r.bench, err = v.NewBench(ctx, 1, 0)
	}
	if err != nil {
		r.kernel.Close()
		return nil, err
	}
	first, err := r.sample(ctx)
	r.runs = check.RunsPerSample(first, sampleTime)
	return r, err
}

// sample is the time of a run, in seconds.
func (r *runner) sample(ctx context.Context) (float64, error) {
	t, err := r.bench.Sample(ctx, r.kernel, r.runs)
	return t.Seconds, err
}

// text is the dot as MLIR; packed takes the operand packed and unpacks it, which is
// index arithmetic of the kernel.
func (d Dot) text(packed bool) string {
	left := d.tensor(d.M, d.K)
	right := d.tensor(d.K, d.N)
	packedType := d.tensor(d.Pack.Packed()...)
	types := []string{left, right}
	operands := []string{"%a", "%b"}
	var unpack string
	if packed {
		k := 0
		if d.Right {
			k = 1
		}
		unpack = fmt.Sprintf(
			"  %%e = tensor.empty() : %s\n  %%u = linalg.unpack %s %s into %%e : %s -> %s\n",
			types[k], operands[k],
			d.attributes(), packedType, types[k],
		)
		types[k] = packedType
		operands[k] = "%u"
	}
	return fmt.Sprintf(
		"func.func @main(%%a: %s, %%b: %s) -> %[3]s {\n%[4]s  %%d = stablehlo.dot_general %[5]s, %[6]s, contracting_dims = [1] x [0] : (%[7]s, %[8]s) -> %[3]s\n  return %%d : %[3]s\n}\n",
		types[0], types[1],
		d.tensor(d.M, d.N), unpack,
		operands[0], operands[1],
		left, right,
	)
}

// packText packs the operand.
func (d Dot) packText() string {
	from := d.tensor(d.Pack.Source...)
	to := d.tensor(d.Pack.Packed()...)
	return fmt.Sprintf(`func.func @main(%%x: %[1]s) -> %[2]s {
  %%z = arith.constant 0.0 : %[3]s
  %%e = tensor.empty() : %[2]s
  %%p = linalg.pack %%x padding_value(%%z : %[3]s) %[4]s into %%e : %[1]s -> %[2]s
  return %%p : %[2]s
}
`, from, to, d.DType, d.attributes())
}

// attributes are those of the pack in MLIR's spelling.
func (d Dot) attributes() string {
	perm := ""
	if d.Pack.OuterDimsPerm != nil {
		perm = fmt.Sprintf(
			"outer_dims_perm = %s ",
			layout.ListText(d.Pack.OuterDimsPerm),
		)
	}
	return fmt.Sprintf(
		"%sinner_dims_pos = %s inner_tiles = %s", perm,
		layout.ListText(d.Pack.InnerDimsPos),
		layout.ListText(d.Pack.InnerTiles),
	)
}

// tensor is a type of MLIR, such as tensor<128x256xf32>. The name of an element type
// of floating point is the same there as here; of others the reader refuses HLO's.
func (d Dot) tensor(dims ...int64) string {
	return fmt.Sprintf(
		"tensor<%sx%s>", layout.ExtentsText(dims), d.DType,
	)
}
