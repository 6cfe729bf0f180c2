package cache

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// An index says at which line of a file a hash has its block, by a perfect hash
// function (hash and displace: Belazzougui, Botelho and Dietzfelbinger, ESA 2009): the
// high half of a hash chooses a pilot, and hash and pilot one of the places, in which
// no other hash of the file is. A lookup loads a pilot, a place and the block, and
// compares that with what it wants. The first two take 3 bytes a block together, so
// that the processor's caches hold them.
//
// Pilots are u16 and places u32, the number of a line or none; the last word of each
// of their lines is a digest with the number of the line as seed. It has to be compared
// for a miss only.
type index struct {
	seed       uint64 // of the hashes
	pilots     uint64 // their first line
	places     uint64
	pilotCount uint64
	placeCount uint64
}

const (
	pilotsOfLine = (lineBytes - 8) / 2
	placesOfLine = (lineBytes - 8) / 4
	// noLine stands in places that no hash has: no flipped bit makes it of another line.
	noLine = math.MaxUint32
)

// indexOf is the index of n blocks, from a line of the file on: one pilot for four of
// them, and a fifth of the places to spare.
func indexOf(n, line, seed uint32) index {
	x := index{seed: uint64(seed), pilots: uint64(line)}
	x.pilotCount = uint64(n/4) + 1
	x.placeCount = uint64(n) + x.pilotCount
	x.places = x.pilots + x.pilotCount/pilotsOfLine + 1
	return x
}

// end is the first line behind the index.
func (x *index) end() uint64 {
	return x.places + x.placeCount/placesOfLine + 1
}

// pilotOf is the number of the pilot of a hash.
func (x *index) pilotOf(hash uint64) uint64 {
	return hash >> 32 * x.pilotCount >> 32
}

// placeOf is the place of a hash with its pilot.
func (x *index) placeOf(hash uint64, pilot uint16) uint64 {
	hash = mix(hash + uint64(pilot)*mulB)
	return hash >> 32 * x.placeCount >> 32
}

// pilotAt and placeAt are positions in the file.
func (x *index) pilotAt(n uint64) int {
	line := x.pilots + n/pilotsOfLine
	return int(line*lineBytes + n%pilotsOfLine*2)
}

func (x *index) placeAt(n uint64) int {
	line := x.places + n/placesOfLine
	return int(line*lineBytes + n%placesOfLine*4)
}

// find is the position of the place of a hash.
func (x *index) find(data []byte, hash uint64) int {
	at := x.pilotAt(x.pilotOf(hash))
	pilot := little.Uint16(data[at:])
	return x.placeAt(x.placeOf(hash, pilot))
}

// line is the line of a hash that is in the file, and that of some other or noLine for
// one that is not.
func (x *index) line(data []byte, hash uint64) uint32 {
	return u32(data, x.find(data, hash))
}

// sound compares the digests of what line reads for a hash.
func (x *index) sound(data []byte, hash uint64) bool {
	pilot := x.pilotAt(x.pilotOf(hash))
	return lineSealed(data, pilot/lineBytes) &&
		lineSealed(data, x.find(data, hash)/lineBytes)
}

// lineSealed compares the digest of a line of the file, whose seed is its number.
func lineSealed(data []byte, number int) bool {
	line := data[number*lineBytes:]
	copied := *(*[lineBytes]byte)(line)
	return sealed(copied[:], uint64(number))
}

// A target is what an index finds.
type target struct {
	hash uint64
	line uint32
}

// errNoIndex is the error of hashes of which two are equal, or that have no pilots for
// another reason: with another seed there are some.
var errNoIndex = errors.New("two keys have the same hash: this cannot be published")

// fill makes the lines of an index that has targets, which it sorts.
func (x *index) fill(targets []target) (lines []byte, err error) {
	own := *x
	own.pilots, own.places = 0, x.places-x.pilots // as if the file began with it
	lines = make([]byte, own.end()*lineBytes)
	for k := range own.placeCount {
		put32(lines, own.placeAt(k), noLine)
	}
	slices.SortFunc(targets, byHash)
	for _, share := range own.shares(targets) {
		if !own.settle(share, lines) {
			return nil, errNoIndex
		}
	}
	for k := 0; k < len(lines); k += lineBytes {
		number := x.pilots + uint64(k/lineBytes)
		seal(lines[k:k+lineBytes], number)
	}
	return lines, nil
}

// byHash orders targets.
func byHash(a, b target) int { return cmp.Compare(a.hash, b.hash) }

// shares are the targets of each pilot, the largest sets first: the last ones find few
// places free.
func (x *index) shares(targets []target) (all [][]target) {
	for len(targets) > 0 {
		pilot := x.pilotOf(targets[0].hash)
		n := 1
		for n < len(targets) && x.pilotOf(targets[n].hash) == pilot {
			n++
		}
		all = append(all, targets[:n])
		targets = targets[n:]
	}
	slices.SortStableFunc(all, func(a, b []target) int {
		return cmp.Compare(len(b), len(a))
	})
	return all
}

// settle finds a pilot with which all targets have free places of their own.
func (x *index) settle(share []target, lines []byte) bool {
	for pilot := range 1 << 16 {
		if !x.settleWith(uint16(pilot), share, lines) {
			continue
		}
		at := x.pilotAt(x.pilotOf(share[0].hash))
		little.PutUint16(lines[at:], uint16(pilot))
		return true
	}
	return false
}

// settleWith takes the places that a pilot gives, if all of them are free.
func (x *index) settleWith(pilot uint16, share []target, lines []byte) bool {
	for k, t := range share {
		at := x.placeAt(x.placeOf(t.hash, pilot))
		if u32(lines, at) == noLine {
			put32(lines, at, t.line)
			continue
		}
		for _, t := range share[:k] {
			at := x.placeAt(x.placeOf(t.hash, pilot))
			put32(lines, at, noLine)
		}
		return false
	}
	return true
}

// hash mixes the texts with the first 8 bytes of the fingerprint.
func (k *Key) hash(seed uint64) uint64 {
	texts := hashTexts(seed, k.Device, k.Backend, k.Codegen)
	return mix(texts ^ u64(k.Fusion[:], 0))
}

// hashTexts is the hash of the texts of a key.
func hashTexts(seed uint64, device, backend, codegen string) uint64 {
	h := hashText(seed, device)
	h = hashText(h, backend)
	return hashText(h, codegen)
}

// structureHash is the hash of a structure on a backend.
func structureHash(print *Fingerprint, backend string) uint64 {
	first := u64(print[:], 0)
	return hashText(mix(first), backend)
}
