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
	x.placeCount = uint64(n) + uint64(n/4) + 1
	x.places = x.pilots + x.pilotCount/pilotsOfLine + 1
	return x
}

// end is the first line behind the index.
func (x *index) end() uint64 { return x.places + x.placeCount/placesOfLine + 1 }

// pilotOf is the number of the pilot of a hash.
func (x *index) pilotOf(hash uint64) uint64 { return hash >> 32 * x.pilotCount >> 32 }

// placeOf is the place of a hash with its pilot.
func (x *index) placeOf(hash uint64, pilot uint16) uint64 {
	return mix(hash+uint64(pilot)*mulB) >> 32 * x.placeCount >> 32
}

// pilotAt and placeAt are positions in the file.
func (x *index) pilotAt(n uint64) uint64 {
	return (x.pilots+n/pilotsOfLine)*lineBytes + n%pilotsOfLine*2
}

func (x *index) placeAt(n uint64) uint64 {
	return (x.places+n/placesOfLine)*lineBytes + n%placesOfLine*4
}

// line is the line of a hash that is in the file, and that of some other or noLine for
// one that is not.
func (x *index) line(data []byte, hash uint64) uint32 {
	pilot := little.Uint16(data[x.pilotAt(x.pilotOf(hash)):])
	return little.Uint32(data[x.placeAt(x.placeOf(hash, pilot)):])
}

// sound compares the digests of what line reads for a hash.
func (x *index) sound(data []byte, hash uint64) bool {
	at := x.pilotAt(x.pilotOf(hash))
	if !lineSealed(data, at/lineBytes) {
		return false
	}
	return lineSealed(data, x.placeAt(x.placeOf(hash, little.Uint16(data[at:])))/lineBytes)
}

// lineSealed compares the digest of a line of the file, whose seed is its number.
func lineSealed(data []byte, number uint64) bool {
	line := *(*[lineBytes]byte)(data[number*lineBytes:])
	return sealed(line[:], number)
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
	from := x.pilots * lineBytes
	lines = make([]byte, x.end()*lineBytes-from)
	for k := range x.placeCount {
		little.PutUint32(lines[x.placeAt(k)-from:], noLine)
	}
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.hash, b.hash) })
	for _, share := range x.shares(targets) {
		if !x.settle(share, lines, from) {
			return nil, errNoIndex
		}
	}
	for k := 0; k < len(lines); k += lineBytes {
		seal(lines[k:k+lineBytes], (from+uint64(k))/lineBytes)
	}
	return lines, nil
}

// shares are the targets of each pilot, the largest sets first: the last ones find few
// places free.
func (x *index) shares(targets []target) [][]target {
	var all [][]target
	for first := 0; first < len(targets); {
		last := first + 1
		for last < len(targets) && x.pilotOf(targets[last].hash) == x.pilotOf(targets[first].hash) {
			last++
		}
		all = append(all, targets[first:last])
		first = last
	}
	slices.SortStableFunc(all, func(a, b []target) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// settle finds a pilot with which all targets have free places of their own; lines are
// those of the index, which begin at a position of the file.
func (x *index) settle(share []target, lines []byte, from uint64) bool {
	for pilot := range uint32(1 << 16) {
		settled := 0
		for _, t := range share {
			place := lines[x.placeAt(x.placeOf(t.hash, uint16(pilot)))-from:]
			if little.Uint32(place) != noLine {
				break
			}
			little.PutUint32(place, t.line)
			settled++
		}
		if settled == len(share) {
			little.PutUint16(lines[x.pilotAt(x.pilotOf(share[0].hash))-from:], uint16(pilot))
			return true
		}
		for _, t := range share[:settled] {
			little.PutUint32(lines[x.placeAt(x.placeOf(t.hash, uint16(pilot)))-from:], noLine)
		}
	}
	return false
}

// hash mixes the first 8 bytes of the fingerprint, which are uniform already, with the
// texts.
func (k *Key) hash(seed uint64) uint64 {
	return hashKey(seed^little.Uint64(k.Fusion[:]), k.Device, k.Backend, k.Codegen)
}

func hashKey(h uint64, device, backend, codegen string) uint64 {
	return hashText(hashText(hashText(h, device), backend), codegen)
}

// structureHash is the hash of a structure on a backend.
func structureHash(print *Fingerprint, backend string) uint64 {
	return hashText(little.Uint64(print[:]), backend)
}
