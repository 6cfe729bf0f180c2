package cache

// A origin is what many records of a snapshot share, as a block of its file: the
// length of all bytes in front of the zeros, u32; a 0, u32; the lengths of the five
// texts, u32 each; and the texts. The seed of its digest is its number.
type origin struct {
	digest                             uint64
	device, backend, codegen, safe, by []byte
}

// originTexts are the texts of a origin, in the order of their encoding.
type originTexts [5]string

// originOf are the texts of a record's origin.
func originOf(r *Record) originTexts {
	return originTexts{r.Device, r.Backend, r.Codegen, SafeText(r.Safe), r.By}
}

const originTextsAt = 8 + 4*len(originTexts{})

// encode makes the block of a origin.
func (c *originTexts) encode(number int) []byte {
	out := make([]byte, originTextsAt)
	for k, text := range c {
		little.PutUint32(out[8+4*k:], uint32(len(text)))
		out = append(out, text...)
	}
	little.PutUint32(out, uint32(len(out)))
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

// readOrigin copies a origin out of the file.
func (s *Snapshot) readOrigin(number uint32) *origin {
	index := uint64(s.originIndex)*lineBytes + 4*uint64(number)
	b, ok := s.from(little.Uint32(s.data[index:]))
	if !ok || len(b) < lineBytes {
		return nil
	}
	length := uint64(little.Uint32(b))
	whole := (length + 8 + lineBytes - 1) / lineBytes * lineBytes
	if length < uint64(originTextsAt) || whole > uint64(len(b)) {
		return nil
	}
	b = append([]byte(nil), b[:whole]...)
	if !sealed(b, uint64(number)) {
		return nil
	}
	return decodeOrigin(b, b[originTextsAt:length])
}

// decodeOrigin takes the block of a origin apart.
func decodeOrigin(block, texts []byte) *origin {
	c := origin{digest: little.Uint64(block[len(block)-8:])}
	for k, to := range [...]*[]byte{&c.device, &c.backend, &c.codegen, &c.safe, &c.by} {
		n := uint64(little.Uint32(block[8+4*k:]))
		if n > uint64(len(texts)) {
			return nil
		}
		*to, texts = texts[:n:n], texts[n:]
	}
	return &c
}
