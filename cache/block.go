package cache

// A snapshot consists of blocks, whole lines of 64 bytes, whose last word is the digest
// of the others. A line is what a processor loads at once.
const (
	lineBytes = 64
	lineWords = lineBytes / 8
)

// Multipliers of digest and of the hashes: odd, from the fractions of the golden
// ratio and of the square roots of 2, 3 and 5. They are part of the file format.
const (
	mulA = 0x9e3779b97f4a7c15
	mulB = 0x6a09e667f3bcc909
	mulC = 0xbb67ae8584caa73b
	mulD = 0x3c6ef372fe94f82b
)

// mix is a bijection of words.
func mix(x uint64) uint64 {
	x *= mulA
	return x ^ x>>32
}

// digest is the digest of a block: of its words but for the last, and of a seed. Words
// go through four chains in turns, each a bijection of every word, and the sum is one
// of every chain: what has changed in one chain only, as a flipped bit has, gives
// another digest for certain, anything else with a chance of 1 − 2⁻⁶⁴.
func digest(block []byte, seed uint64) uint64 {
	a, b, c, d := seed^mulB, seed^mulC, seed^mulD, seed+uint64(len(block))
	for len(block) > lineBytes {
		a = mix(mix(a^little.Uint64(block)) ^ little.Uint64(block[32:]))
		b = mix(mix(b^little.Uint64(block[8:])) ^ little.Uint64(block[40:]))
		c = mix(mix(c^little.Uint64(block[16:])) ^ little.Uint64(block[48:]))
		d = mix(mix(d^little.Uint64(block[24:])) ^ little.Uint64(block[56:]))
		block = block[lineBytes:]
	}
	block = block[:lineBytes]
	a = mix(mix(a^little.Uint64(block)) ^ little.Uint64(block[32:]))
	b = mix(mix(b^little.Uint64(block[8:])) ^ little.Uint64(block[40:]))
	c = mix(mix(c^little.Uint64(block[16:])) ^ little.Uint64(block[48:]))
	d = mix(d ^ little.Uint64(block[24:]))
	return a*mulA + b*mulB + c*mulC + d*mulD
}

// seal stores the digest of a block in its last word.
func seal(block []byte, seed uint64) {
	little.PutUint64(block[len(block)-8:], digest(block, seed))
}

// sealed reports whether a block is as seal left it.
func sealed(block []byte, seed uint64) bool {
	return digest(block, seed) == little.Uint64(block[len(block)-8:])
}

// padded appends zeros to a block until its lines are whole with the digest.
func padded(block []byte) []byte {
	whole := (len(block) + 8 + lineBytes - 1) / lineBytes * lineBytes
	return append(block, make([]byte, whole-len(block))...)
}

// hashText continues a hash with the words of a text, the last of them with its
// length above the bytes that are left.
func hashText(h uint64, s string) uint64 {
	n := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		h = mix(h ^ word(s))
	}
	last := n << 56
	for k := range len(s) {
		last |= uint64(s[k]) << (8 * k)
	}
	return mix(h ^ last)
}

// word is the first 8 bytes of a text.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
