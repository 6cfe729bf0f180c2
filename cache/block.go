package cache

import "encoding/binary"

// little is the byte order of a snapshot.
var little = binary.LittleEndian

// u32, u64, put32 and put64 read and write numbers at positions.
func u32(b []byte, at int) uint32      { return little.Uint32(b[at:]) }
func u64(b []byte, at int) uint64      { return little.Uint64(b[at:]) }
func put32(b []byte, at int, n uint32) { little.PutUint32(b[at:], n) }
func put64(b []byte, at int, n uint64) { little.PutUint64(b[at:], n) }

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

// snapshotMagic is what a snapshot begins with; its last two characters are the version.
const snapshotMagic = "TWSNAP07"

// Slots are written by pieces of a file's large pages: Linux keeps what was written at
// once in one page where the file system can.
const hugePage = 2 << 20

// hugeFrom is the size of a file from which its large pages are worth reading whole.
const hugeFrom = 16 * hugePage

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
	a, b := seed^mulB, seed^mulC
	c, d := seed^mulD, seed+uint64(len(block))
	for {
		line := (*[lineBytes]byte)(block)[:]
		a = mix(a ^ u64(line, 0))
		b = mix(b ^ u64(line, 8))
		c = mix(c ^ u64(line, 16))
		d = mix(d ^ u64(line, 24))
		a = mix(a ^ u64(line, 32))
		b = mix(b ^ u64(line, 40))
		c = mix(c ^ u64(line, 48))
		if len(block) == lineBytes {
			return a*mulA + b*mulB + c*mulC + d*mulD
		}
		d = mix(d ^ u64(line, 56))
		block = block[lineBytes:]
	}
}

// seal stores the digest of a block in its last word.
func seal(block []byte, seed uint64) {
	put64(block, len(block)-8, digest(block, seed))
}

// sealed reports whether a block is as seal left it.
func sealed(block []byte, seed uint64) bool {
	return digest(block, seed) == u64(block, len(block)-8)
}

// blockBytes are those of a block with n bytes in front of zeros and digest.
func blockBytes(n int) int { return (n + 8 + lineBytes - 1) / lineBytes * lineBytes }

// padded appends zeros to a block until its lines are whole with the digest.
func padded(block []byte) []byte {
	zeros := make([]byte, blockBytes(len(block))-len(block))
	return append(block, zeros...)
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
	return uint64(s[0]) | uint64(s[1])<<8 |
		uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 |
		uint64(s[6])<<48 | uint64(s[7])<<56
}
