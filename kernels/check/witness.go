package check

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"

	"github.com/tilewright/tilewright/kernels"
)

// A Witness remembers what a kernel computed from the inputs of a Bench when it was
// verified, and compares later runs on them with that: a kernel that is wrong now and
// then, or begins to be wrong, passes a verification of a few runs.
type Witness struct {
	verifier *Verifier
	// Deterministic kernels have to give the same bits.
	deterministic bool
	// Digest of the outputs that were verified.
	digest uint64
	// Number of runs that were compared, the verified one included.
	runs int
}

// timedRuns names the case of a result that a Witness found.
const timedRuns = "the inputs of timed runs"

// errUnsteady is the error of a deterministic kernel whose results change. Each may
// be within the tolerance.
var errUnsteady = errors.New("the same inputs give other bits than when the plan was verified, and nothing in it depends on timing")

// newWitness remembers the outputs of a verified run of a kernel.
func newWitness(v *Verifier, k kernels.Kernel, c *verifyCase, out []kernels.Buffer) *Witness {
	w := &Witness{verifier: v, runs: 1}
	if c.aliases != nil {
		return w // which lane writes last to a page that several parts of an array have is chance
	}
	d, says := k.(kernels.Deterministic)
	w.deterministic = says && d.Deterministic()
	w.digest = digestOf(out)
	return w
}

// digestSeed makes digests comparable within a process, and only there.
var digestSeed = maphash.MakeSeed()

// digestOf is a hash of the bytes of arrays and of their lengths.
func digestOf(all []kernels.Buffer) uint64 {
	var h maphash.Hash
	h.SetSeed(digestSeed)
	for _, b := range all {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(b.Data)))
		h.Write(size[:])
		h.Write(b.Data)
	}
	return h.Sum64()
}

// Runs is the number of runs that were compared, the verified one included.
func (w *Witness) Runs() int { return w.runs }

// Compare compares the results of one more run on the inputs of a Bench: bit for bit
// if the kernel is deterministic, otherwise within the tolerance of the reference. The
// error is a *WrongResult, or that of ctx.
func (w *Witness) Compare(ctx context.Context, out []kernels.Buffer) error {
	w.runs++
	if w.deterministic && digestOf(out) == w.digest {
		return nil
	}
	for _, c := range w.verifier.cases {
		if c.name != randomInputs {
			continue
		}
		wrong, err := c.agree(ctx, out)
		if err != nil {
			return err
		}
		if wrong != nil {
			return &WrongResult{timedRuns, wrong}
		}
	}
	if w.deterministic {
		return &WrongResult{timedRuns, errUnsteady}
	}
	return nil
}

// Rerun runs a kernel once more, on the next set and into outputs that are filled
// with NaN before, and compares the results. Nothing is timed.
func (b *Bench) Rerun(ctx context.Context, k kernels.Kernel, w *Witness) error {
	set := b.take()
	b.aliases.poison(set.Out)
	if _, err := k.Run(b.aliases.during(ctx), set.In, set.Out); err != nil {
		return err
	}
	return w.Compare(ctx, set.Out)
}

// CompareLast compares the results of the last run of the last Sample of a kernel. A
// kernel that times itself, and whose results cannot be read, is run again.
func (b *Bench) CompareLast(ctx context.Context, k kernels.Kernel, w *Witness) error {
	s, own := k.(kernels.Sampler)
	if !own {
		return w.Compare(ctx, b.last.Out)
	}
	r, readable := s.(kernels.OutputReader)
	if !readable {
		return b.Rerun(ctx, k, w)
	}
	out := b.sets[0].Out // which such a kernel does not write while it is timed
	b.aliases.poison(out)
	if err := r.ReadOutputs(ctx, out); err != nil {
		return err
	}
	return w.Compare(ctx, out)
}

// poisonAll overwrites arrays with bytes that no operation has as its result.
func poisonAll(all []kernels.Buffer) {
	for _, b := range all {
		for rest := b.Data; len(rest) > 0; {
			rest = rest[copy(rest, poisoned):]
		}
	}
}

// poisoned is bytes that poisonAll copies.
var poisoned = bytes.Repeat([]byte{poison}, 1<<12)
