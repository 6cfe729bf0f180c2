package executable

import (
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A value is what an instruction makes: an array, or a tuple of values. Several
// values share one storage where an operation only changes the shape.
type value struct {
	buffer  kernels.Buffer
	storage *storage
	isTuple bool
	parts   []value
}

// A storage is memory for one array. The memory of parameters and constants is
// not in a pool: their data is nil.
type storage struct {
	data []byte
	// references counts the values that are alive; it goes back to the pool at 0.
	references int
}

// leaves are the arrays of a value, in the order of its tuples.
func (v value) leaves() []value {
	if !v.isTuple {
		return []value{v}
	}
	var all []value
	for _, p := range v.parts {
		all = append(all, p.leaves()...)
	}
	return all
}

// retained is v with one more reference to each of its arrays.
func (v value) retained() value {
	for _, leaf := range v.leaves() {
		leaf.storage.references++
	}
	return v
}

// viewed is v, an array, under another shape of as many bytes.
func (v value) viewed(s hlo.Shape) value {
	v.buffer.Shape = s
	return v.retained()
}

// A pool is memory of values that are dead.
type pool struct {
	Memory
	free []*storage
}

// waste is how many times as large as needed memory may be that is used again.
const waste = 2

// buffer takes memory for an array, used or new. Its content is what it was.
func (p *pool) buffer(s hlo.Shape) (value, error) {
	n := s.Bytes()
	p.Values += n
	best, smallest := -1, int64(0)
	for k, f := range p.free {
		size := int64(len(f.data))
		fits := size >= n && size <= waste*max(n, 64)
		if fits && (best < 0 || size < smallest) {
			best, smallest = k, size
		}
	}
	if best >= 0 {
		f := p.free[best]
		p.free = slices.Delete(p.free, best, best+1)
		f.references = 1
		b := kernels.Buffer{Shape: s, Data: f.data[:n:n]}
		return value{buffer: b, storage: f}, nil
	}
	b, err := kernels.NewBuffer(s)
	if err != nil {
		return value{}, err
	}
	p.Allocated += n
	return owned(b), nil
}

// adopt makes a value of an array that somebody else allocated.
func (p *pool) adopt(b kernels.Buffer) value {
	p.Values += b.Shape.Bytes()
	p.Allocated += b.Shape.Bytes()
	return owned(b)
}

// owned is a new array with one reference.
func owned(b kernels.Buffer) value {
	return value{
		buffer:  b,
		storage: &storage{b.Data, 1},
	}
}

// release ends a value: memory without references can be used again.
func (p *pool) release(v value) {
	for _, leaf := range v.leaves() {
		s := leaf.storage
		s.references--
		if s.references == 0 && len(s.data) > 0 {
			p.free = append(p.free, s)
		}
	}
}

// laidOut is a value, whose references it takes, in the layouts of a shape. A loop, a branch or a call may hand on an
// array in another layout than the text names at its other end: a text from before XLA assigns layouts does.
func (r *run) laidOut(v value, s hlo.Shape) (value, error) {
	if v.isTuple {
		return r.tupleLaidOut(v, s)
	}
	b := v.buffer
	if b.Shape.Equal(s) || !b.Shape.Compatible(s) || len(b.Shape.Layout.Tiles)+len(s.Layout.Tiles) > 0 {
		return v, nil
	}
	made, err := r.pool.buffer(s)
	if err != nil {
		return value{}, err
	}
	b.CopyTo(made.buffer)
	r.pool.release(v)
	return made, nil
}

// tupleLaidOut is laidOut of a tuple; it copies the list of parts when one of them changes.
func (r *run) tupleLaidOut(v value, s hlo.Shape) (value, error) {
	copied := false
	for k, part := range v.parts {
		laid, err := r.laidOut(part, s.Tuple[k])
		if err != nil {
			return value{}, err
		}
		if laid.storage != part.storage || laid.isTuple && len(laid.parts) > 0 && &laid.parts[0] != &part.parts[0] {
			if !copied {
				v.parts = slices.Clone(v.parts)
				copied = true
			}
			v.parts[k] = laid
		}
	}
	return v, nil
}
