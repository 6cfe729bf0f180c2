package check

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check/internal/aliased"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Limits beyond which inputs are not copied, so that a fusion that reads a table of
// half a gigabyte is tuned with little more memory than that.
const (
	maxCopiedBytes = 64 << 20 // of inputs that a verification copies for each run, between red zones
	maxHeldBytes   = 3 << 29  // of arrays with memory of their own and of the reference's values
)

// bytesOf is the number of bytes of arrays.
func bytesOf(all []kernels.Buffer) (n int64) {
	for _, b := range all {
		n += int64(len(b.Data))
	}
	return n
}

// inputBytes is the number of bytes of the parameters of c.
func inputBytes(c *hlo.Computation) (n int64) {
	for _, p := range c.Params {
		n += p.Shape.Bytes()
	}
	return n
}

// heldBytes is what a number of cases of a computation take at the same time: their inputs,
// the outputs, and what the reference holds to evaluate one of them.
func heldBytes(c *hlo.Computation, cases int64) int64 {
	evaluated := int64(maxWholeElements)
	if !tooLargeForAll(c) {
		evaluated = reference.PeakElements(c)
	}
	return cases*inputBytes(c) + outputBytes(c) + evaluated*valueBytes
}

// valueBytes are those of a number in the reference.
const valueBytes = 8

// restoreInputs makes the inputs of a case again, in place.
func restoreInputs(
	ctx context.Context, c *hlo.Computation, in []kernels.Buffer,
	content Content, seed int64, planted bool,
) error {
	err := fillAll(ctx, c, in, content, seed)
	if err == nil && planted {
		plantNaN(c, in)
	}
	return err
}

// NewBench is the function NewBench for the fusion and the seed of v. Where inputs or
// outputs are large, both are those that v has, and verifications overwrite the outputs.
func (v *Verifier) NewBench(
	ctx context.Context, seed, span int64,
) (*Bench, error) {
	for _, c := range v.cases {
		if c.name != randomInputs {
			continue
		}
		switch {
		case c.aliases != nil:
			b, err := newBenchOn(v.c, c.in, c.aliases.out, span)
			if err == nil {
				b.aliases = c.aliases
			}
			return b, err
		case v.large != nil:
			return newBenchOn(v.c, c.in, v.large.out, span)
		case bytesOf(c.in) > maxCopiedBytes:
			return newBenchOn(v.c, c.in, nil, span)
		}
	}
	return NewBench(ctx, v.c, seed, span)
}

// Arrays of a fusion that take more than maxOwnBytes together, such as the update of an
// embedding with the moments of an optimiser, do not have as much memory: large ones
// repeat the pages of a pool, which is several times as large as a cache, so that a kernel
// reads and writes memory as it would otherwise. Parameters begin in different blocks of
// it. Of the outputs one part, spread over all of them, has pages of its own in each run of a
// verification, and is compared; the part of the last run is also compared after timed runs.
const (
	maxOwnBytes     = 768 << 20 // of inputs and outputs together that have memory of their own
	maxAliasedBytes = 64 << 30  // of inputs and outputs together that repeat pools
)

// A repetition says which arrays repeat how much memory.
type repetition struct {
	from  int64 // bytes of an array that repeats a pool
	owned int64 // bytes of outputs that have memory of their own in a run, about
	// Blocks of a pool, a prime: an address that is wrong by a power of two times the size
	// of a row, a tile or a page meets another part of the pool.
	blocks int64
	// Distance of the first blocks of arrays.
	rotation int64
	// Time of a verification after which it leaves parts of the outputs to the next one.
	long time.Duration
	// Bytes of the resident set of the process from which on pages of pools are taken
	// from addresses, if it has grown by so many since the last time, so that a kernel
	// which goes back and forth between blocks does not map them again all the time.
	resident, growth int64
}

// fewestParts are the parts of the outputs that a verification compares in any case.
const fewestParts = 2

// largeRepetition is what computations of more than maxOwnBytes have.
var largeRepetition = repetition{
	from:     32 << 20,
	owned:    256 << 20,
	blocks:   127,
	rotation: 29,
	long:     2 * time.Second,
	resident: 3 << 28,
	growth:   1 << 28,
}

// aliases are the arrays of a case that repeat pools.
type aliases struct {
	repetition
	pools   map[hlo.DType]*aliased.Pool
	results *aliased.Pool // which outputs repeat
	arrays  []*aliased.Array
	// Those of the inputs, nil for one with memory of its own.
	inputs []*aliased.Array
	// Outputs: those without an array have memory of their own.
	out   []kernels.Buffer
	of    []*aliased.Array
	zones []zone
	parts int64 // of the outputs: in each run one has memory of its own
	next  int64 // number of runs

	releaser *releaser
	heap     func() // takes back the limit of the heap
}

// place is where single elements of inputs are read: in the pools, so that the addresses
// of the arrays, of which each element read maps 2 MiB, are left to kernels.
func (a *aliases) place(in []kernels.Buffer) reference.Place {
	if a == nil {
		return nil
	}
	return func(k int, at int64) (kernels.Buffer, int64) {
		b, x := in[k], a.inputs[k]
		if x == nil {
			return b, at
		}
		size := b.Shape.DType.Size()
		b.Data = a.pools[b.Shape.DType].Bytes
		return b, x.InPool(at*size) / size
	}
}

// arrayBytes is the number of bytes of the parameters and results of c.
func arrayBytes(c *hlo.Computation) int64 {
	return inputBytes(c) + outputBytes(c)
}

// outputBytes is the number of bytes of the results of c.
func outputBytes(c *hlo.Computation) (n int64) {
	for _, s := range kernels.OutputShapes(c) {
		n += s.Bytes()
	}
	return n
}

// newAliases makes the arrays of c, with random inputs; errors.ErrUnsupported if the system
// has no such arrays.
func newAliases(
	ctx context.Context, c *hlo.Computation, r repetition, seed int64,
) (*aliases, []kernels.Buffer, error) {
	a := &aliases{
		repetition: r,
		pools:      map[hlo.DType]*aliased.Pool{},
	}
	if err := kernels.CheckFreeMemory(2 * maxOwnBytes); err != nil {
		return nil, nil, err
	}
	a.heap = heap.hold(heapBeside)
	in, err := a.makeInputs(c)
	if err == nil {
		err = a.outputs(c)
	}
	if err == nil {
		a.releaser = newReleaser(r.resident, r.growth, a.release)
		err = a.fill(ctx, c, in, seed)
	}
	if err != nil {
		_ = a.close() // err says more
	}
	return a, in, err
}

// makeInputs makes the parameters. Positions are read from memory of their own.
func (a *aliases) makeInputs(
	c *hlo.Computation,
) (in []kernels.Buffer, err error) {
	indices := indexRanges(c)
	in = make([]kernels.Buffer, len(c.Params))
	a.inputs = make([]*aliased.Array, len(c.Params))
	for k, p := range c.Params {
		if _, index := indices[p]; index || p.Shape.Bytes() < a.from {
			if in[k], err = kernels.NewBuffer(p.Shape); err != nil {
				return nil, err
			}
			continue
		}
		pool := a.pools[p.Shape.DType]
		if pool == nil {
			if pool, err = aliased.NewPool(a.blocks); err != nil {
				return nil, err
			}
			a.pools[p.Shape.DType] = pool
		}
		if in[k], a.inputs[k], err = a.array(pool, p.Shape); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// array makes an array that repeats a pool.
func (a *aliases) array(
	p *aliased.Pool, s hlo.Shape,
) (kernels.Buffer, *aliased.Array, error) {
	first := int64(len(a.arrays)) * a.rotation % a.blocks
	x, err := p.Array(s.Bytes(), first)
	if err != nil {
		return kernels.Buffer{}, nil, err
	}
	a.arrays = append(a.arrays, x)
	return kernels.Buffer{Shape: s, Data: x.Data}, x, nil
}

// outputs makes the results. Small ones lie between red zones, too.
func (a *aliases) outputs(c *hlo.Computation) (err error) {
	var small guard
	repeated := int64(0)
	for k, s := range kernels.OutputShapes(c) {
		var b kernels.Buffer
		var x *aliased.Array
		if s.Bytes() < a.from {
			b, err = small.add(outputName(k), kernels.Buffer{Shape: s})
		} else {
			repeated += s.Bytes()
			if a.results == nil {
				if a.results, err = aliased.NewPool(a.blocks); err != nil {
					return err
				}
				poisonAll([]kernels.Buffer{{Data: a.results.Bytes}})
			}
			b, x, err = a.array(a.results, s)
		}
		if err != nil {
			return err
		}
		a.out = append(a.out, b)
		a.of = append(a.of, x)
	}
	a.zones = small.zones
	a.parts = max(1, (repeated+a.owned-1)/a.owned)
	return nil
}

// fill overwrites the inputs.
func (a *aliases) fill(
	ctx context.Context, c *hlo.Computation,
	in []kernels.Buffer, seed int64,
) error {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x616c_6961))
	indices := indexRanges(c)
	filled := map[hlo.DType]bool{}
	for k, p := range c.Params {
		b, d := in[k], p.Shape.DType
		if r, ok := indices[p]; ok {
			r.fill(b, rng)
			continue
		}
		if pool := a.pools[d]; pool != nil && p.Shape.Bytes() >= a.from {
			if filled[d] {
				continue
			}
			filled[d] = true
			n := int64(len(pool.Bytes)) / d.Size()
			b = kernels.Buffer{
				Shape: hlo.Shape{DType: d, Dims: []int64{n}},
				Data:  pool.Bytes,
			}
		}
		if err := fill(ctx, b.Parts(), Normals, rng); err != nil {
			return err
		}
	}
	return nil
}

// guard gives the next part of the outputs its own pages, and overwrites it.
func (a *aliases) guard() (*guard, error) {
	g := &guard{out: a.out, zones: a.zones}
	part := a.next % a.parts
	a.next++
	for n, x := range a.of {
		if x == nil {
			poisonAll(a.out[n : n+1])
			continue
		}
		if err := x.Own(part, a.parts); err != nil {
			return nil, err
		}
		a.poisonOwn(x)
		before, after := x.Zones()
		name := outputName(n)
		g.zones = append(
			g.zones,
			zone{"before " + name, before},
			zone{"after " + name, after},
		)
	}
	g.fillZones()
	return g, nil
}

// poison is poisonAll for outputs, through the addresses of a pool only once.
func (a *aliases) poison(out []kernels.Buffer) {
	if a == nil {
		poisonAll(out)
		return
	}
	if a.results != nil {
		poisonAll([]kernels.Buffer{{Data: a.results.Bytes}})
	}
	for n, x := range a.of {
		if x == nil {
			poisonAll(out[n : n+1])
			continue
		}
		a.poisonOwn(x)
	}
}

// poisonOwn overwrites the blocks of an array that have pages of their own.
func (a *aliases) poisonOwn(x *aliased.Array) {
	for lo, hi := range x.Blocks() {
		poisonAll([]kernels.Buffer{{Data: x.Data[lo:hi]}})
	}
}

// during is the context of a run of a kernel.
func (a *aliases) during(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return a.releaser.during(ctx)
}

// owns reports whether the element at a place of output n is what was written there.
func (a *aliases) owns(n int, at, size int64) bool {
	if a == nil || a.of[n] == nil {
		return true
	}
	x := a.of[n]
	return x.Owns(at*size) &&
		x.Owns((at+1)*size-1)
}

// firstUnwritten is the function firstUnwritten for output n, of what has memory of its own.
func (a *aliases) firstUnwritten(n int, b kernels.Buffer) int64 {
	if a == nil || a.of[n] == nil {
		return firstUnwritten(b)
	}
	for lo, hi := range a.of[n].Blocks() {
		part := kernels.Buffer{Shape: b.Shape, Data: b.Data[lo:hi]}
		if at := firstUnwritten(part); at >= 0 {
			return at + lo/b.Shape.DType.Size()
		}
	}
	return -1
}

// inputDigest is a hash of all inputs.
func (a *aliases) inputDigest(in []kernels.Buffer) uint64 {
	var all []kernels.Buffer
	for _, b := range in {
		if a.pools[b.Shape.DType] == nil || b.Shape.Bytes() < a.from {
			all = append(all, b)
		}
	}
	for d := range hlo.DType(255) {
		if p := a.pools[d]; p != nil {
			all = append(all, kernels.Buffer{Data: p.Bytes})
		}
	}
	return digestOf(all)
}

// close gives the memory back.
func (a *aliases) close() error {
	if a == nil {
		return nil
	}
	errs := []error{a.releaser.close()}
	a.heap()
	for _, x := range a.arrays {
		errs = append(errs, x.Close())
	}
	for _, p := range a.pools {
		errs = append(errs, p.Close())
	}
	if a.results != nil {
		errs = append(errs, a.results.Close())
	}
	return errors.Join(errs...)
}

// release takes the pages of pools from the addresses of arrays.
func (a *aliases) release() error {
	var errs []error
	for _, x := range a.arrays {
		errs = append(errs, x.Release())
	}
	pools := []*aliased.Pool{a.results}
	for _, p := range a.pools {
		pools = append(pools, p)
	}
	for _, p := range pools {
		if p != nil {
			errs = append(errs, p.Release())
		}
	}
	return errors.Join(errs...)
}

// addAliased adds the case of random inputs on arrays that repeat pools.
func (v *Verifier) addAliased(
	ctx context.Context, c *hlo.Computation, r repetition, seed int64,
) error {
	a, in, err := newAliases(ctx, c, r, seed)
	if err != nil {
		return err
	}
	vc := verifyCase{name: randomInputs, in: in, aliases: a}
	vc.restore = func(ctx context.Context) error {
		return a.fill(ctx, c, in, seed)
	}
	err = vc.expectSamples(ctx, c, seed, ToleranceOf(c))
	if err != nil {
		_ = a.close() // err says more
		return err
	}
	v.cases = append(v.cases, vc)
	return nil
}

// runAliased is run for arrays that repeat pools: until each part of the outputs had
// memory of its own or, of a kernel that takes long, a few had, and others the next time.
func (c *verifyCase) runAliased(
	ctx context.Context, k kernels.Kernel,
) ([]kernels.Buffer, error) {
	began := time.Now()
	for run := range c.aliases.parts {
		if run >= fewestParts && time.Since(began) > c.aliases.long {
			break
		}
		if err := c.runPart(ctx, k); err != nil {
			return nil, err
		}
	}
	return c.aliases.out, nil
}

// runPart runs a kernel once, and compares what has memory of its own.
func (c *verifyCase) runPart(ctx context.Context, k kernels.Kernel) error {
	digest := c.aliases.inputDigest(c.in)
	g, err := c.aliases.guard()
	if err != nil {
		return err
	}
	if _, err := k.Run(c.aliases.during(ctx), c.in, g.out); err != nil {
		return err
	}
	if err := g.zonesIntact(); err != nil {
		return &WrongResult{c.name, err}
	}
	if c.aliases.inputDigest(c.in) != digest {
		if err := c.restore(ctx); err != nil {
			return err
		}
		return &WrongResult{c.name, errInputWritten}
	}
	wrong, err := c.agree(ctx, g.out)
	if err != nil || wrong != nil {
		return wrongResult(c.name, wrong, err)
	}
	return nil
}
