package check

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A guard has copies of inputs and poisoned outputs, each between two red
// zones.
type guard struct {
	in, out []kernels.Buffer
	zones   []zone
	// Of inputs that are too large to be copied for every run; otherwise 0.
	digest uint64
}

// A zone is the bytes in front of or behind a buffer, which no kernel may
// write.
type zone struct {
	name  string
	bytes []byte
}

const (
	// Bytes of a zone; a multiple of the alignment of buffers.
	redZone = 256
	// The content of a zone.
	zoneByte = 0xA5
	// The content of outputs before a run: NaN in every floating-point type
	// that has one, and −1 in integers.
	poison = 0xFF
)

// newGuard copies the inputs, unless they are large, and allocates outputs of the
// given shapes, unless there are some from an earlier run.
func newGuard(in, out []kernels.Buffer, earlier *guard) (*guard, error) {
	g := &guard{}
	if bytesOf(in) > maxCopiedBytes {
		g.in, g.digest = in, digestOf(in)
		in = nil
	}
	for k, b := range in {
		c, err := g.add(fmt.Sprintf("input %d", k), b)
		if err != nil {
			return nil, err
		}
		copy(c.Data, b.Data)
		g.in = append(g.in, c)
	}
	if earlier == nil {
		var err error
		if earlier, err = guardOutputs(out); err != nil {
			return nil, err
		}
	}
	g.out = earlier.out
	g.zones = append(g.zones, earlier.zones...)
	g.fillZones()
	poisonAll(g.out)
	return g, nil
}

// guardOutputs allocates outputs of the given shapes between red zones.
func guardOutputs(out []kernels.Buffer) (*guard, error) {
	g := &guard{}
	for k, b := range out {
		c, err := g.add(outputName(k), b)
		if err != nil {
			return nil, err
		}
		g.out = append(g.out, c)
	}
	return g, nil
}

// outputName is what messages call output k.
func outputName(k int) string { return fmt.Sprintf("output %d", k) }

// fillZones writes the content of the zones.
func (g *guard) fillZones() {
	for _, z := range g.zones {
		for k := range z.bytes {
			z.bytes[k] = zoneByte
		}
	}
}

// add allocates a buffer of the shape of b between red zones.
func (g *guard) add(name string, b kernels.Buffer) (kernels.Buffer, error) {
	n := int(b.Shape.Bytes())
	bytes, err := kernels.NewBuffer(hlo.Shape{
		DType: hlo.U8,
		Dims:  []int64{int64(n + 2*redZone)},
	})
	if err != nil {
		return kernels.Buffer{}, err
	}
	whole := bytes.Data
	before := whole[:redZone]
	after := whole[redZone+n:]
	g.zones = append(
		g.zones,
		zone{"before " + name, before},
		zone{"after " + name, after},
	)
	return kernels.Buffer{
		Shape: b.Shape,
		Data:  whole[redZone : redZone+n : redZone+n],
	}, nil
}

// errInputWritten is the error of a kernel that writes to a large input.
var errInputWritten = errors.New("wrote to an input")

// zonesIntact is an error if a red zone was written to.
func (g *guard) zonesIntact() error {
	for _, z := range g.zones {
		for k, v := range z.bytes {
			if v != zoneByte {
				return fmt.Errorf("wrote outside its buffers, byte %d of the red zone %s", k, z.name)
			}
		}
	}
	return nil
}

// intact is an error if a red zone or an input was written to.
func (g *guard) intact(in []kernels.Buffer) error {
	if err := g.zonesIntact(); err != nil {
		return err
	}
	if g.digest != 0 {
		if digestOf(g.in) != g.digest {
			return errInputWritten
		}
		return nil
	}
	for k, b := range in {
		if !bytes.Equal(b.Data, g.in[k].Data) {
			return fmt.Errorf("wrote to input %d", k)
		}
	}
	return nil
}
