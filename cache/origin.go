package cache

import "bytes"

// An origin is what many records of a snapshot share, as a block of its file: the
// length of all bytes in front of the zeros, u32; a 0, u32; the lengths of the five
// texts, u32 each; and the texts. The seed of its digest is its number.
type origin struct {
	digest                             uint64
	device, backend, codegen, safe, by []byte
}

// originTexts are the texts of an origin, in the order of their encoding.
type originTexts [5]string

const originTextsAt = 8 + 4*len(originTexts{})

// encode makes the block of an origin.
func (c *originTexts) encode(number int) []byte {
	out := make([]byte, originTextsAt)
	for k, text := range c {
		put32(out, 8+4*k, uint32(len(text)))
		out = append(out, text...)
	}
	put32(out, 0, uint32(len(out)))
	out = padded(out)
	seal(out, uint64(number))
	return out
}

// origin is that of a number, nil where the file has none or it is damaged. It is
// copied out of the file when it is first asked for, which is the only allocation of
// lookups: one for each origin.
func (s *Snapshot) origin(number uint32) *origin {
	if uint64(number) >= uint64(len(s.origins)) {
		return nil
	}
	if c := s.origins[number].Load(); c != nil {
		return c
	}
	c := s.readOrigin(number)
	if c != nil {
		s.origins[number].Store(c)
	}
	return c
}

// readOrigin copies an origin out of the file.
func (s *Snapshot) readOrigin(number uint32) *origin {
	index := int(s.originIndex)*lineBytes + 4*int(number)
	b, ok := s.from(u32(s.data, index))
	if !ok || len(b) < lineBytes {
		return nil
	}
	length := int(u32(b, 0))
	whole := blockBytes(length)
	if length < originTextsAt || whole > len(b) {
		return nil
	}
	b = bytes.Clone(b[:whole])
	if !sealed(b, uint64(number)) {
		return nil
	}
	return decodeOrigin(b, b[originTextsAt:length])
}

// decodeOrigin takes the block of an origin apart.
func decodeOrigin(block, texts []byte) *origin {
	c := origin{digest: u64(block, len(block)-8)}
	for k, to := range [...]*[]byte{
		&c.device, &c.backend, &c.codegen, &c.safe, &c.by,
	} {
		n := uint64(u32(block, 8+4*k))
		if n > uint64(len(texts)) {
			return nil
		}
		*to, texts = texts[:n:n], texts[n:]
	}
	return &c
}

// An asked remembers the texts of the last key of a Hit, which the next key has most
// often, with their hash and the origin that has them.
type asked struct {
	device, backend, codegen string
	seed, hash               uint64
	known                    bool
	origin                   *origin
}

// hashOf is the hash of the texts of a key.
func (a *asked) hashOf(k *Key, seed uint64) uint64 {
	if a.known && a.seed == seed && a.device == k.Device &&
		a.backend == k.Backend && a.codegen == k.Codegen {
		return a.hash
	}
	*a = asked{
		device: k.Device, backend: k.Backend, codegen: k.Codegen,
		seed: seed, known: true,
		hash: hashTexts(seed, k.Device, k.Backend, k.Codegen),
	}
	return a.hash
}

// by reports whether the texts are those of an origin.
func (a *asked) by(o *origin) bool {
	if a.origin == o {
		return true
	}
	if string(o.device) != a.device || string(o.backend) != a.backend ||
		string(o.codegen) != a.codegen {
		return false
	}
	a.origin = o
	return true
}
