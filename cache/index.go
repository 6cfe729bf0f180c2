package cache

import (
	"cmp"
	"errors"
	"slices"
)

// An index finds blocks of a file by a perfect hash function (hash and displace:
// Belazzougui, Botelho and Dietzfelbinger, ESA 2009): the high half of a hash chooses a
// pilot, and hash and pilot one of the slots, which no other hash of the file has. The
// block lies in the slot: a lookup loads a pilot, of which there are half a byte for
// each block, so that the processor's caches hold them, and then the block, from memory.
//
// Pilots are u16; the last word of each of their lines is a digest with the number of the
// line as seed. It has to be compared for a miss only. A slot is some lines. One without
// a block is zeros with a digest at the end of its first line, whose seed is the number
// of that; so is one whose block is longer than a slot, but its first word is farBlock
// with the line of the block above it.
type index struct {
	seed       uint64 // of the hashes
	pilots     uint64 // their first line
	slots      uint64 // the first line of the first slot
	slotLines  uint64
	pilotCount uint64
	slotCount  uint64
}

const (
	pilotsOfLine = (lineBytes - 8) / 2
	// farBlock stands where a block has its length.
	farBlock = 1<<32 - 1
)

// indexOf is the index of n blocks in slots of so many lines, from a line of the file
// on: one pilot for four of them, and an eighth of the slots to spare.
func indexOf(n, line, seed, slotLines uint32) index {
	x := index{seed: uint64(seed), pilots: uint64(line), slotLines: uint64(slotLines)}
	x.pilotCount = uint64(n/4) + 1
	x.slotCount = uint64(n) + uint64(n/8) + 1
	x.slots = x.pilots + x.pilotCount/pilotsOfLine + 1
	return x
}

// end is the first line behind the index.
func (x *index) end() uint64 {
	return x.lineOfSlot(x.slotCount)
}

// lineOfSlot is the first line of a slot.
func (x *index) lineOfSlot(slot uint64) uint64 {
	return x.slots + slot*x.slotLines
}

// pilotOf is the number of the pilot of a hash.
func (x *index) pilotOf(hash uint64) uint64 {
	return hash >> 32 * x.pilotCount >> 32
}

// slotOf is the slot of a hash with its pilot. The pilot is xored: added, it would move
// all hashes by the same distance, and two that are closer than a slot would share one
// with nearly every pilot.
func (x *index) slotOf(hash uint64, pilot uint16) uint64 {
	hash = mix(hash ^ uint64(pilot)*mulB)
	return hash >> 32 * x.slotCount >> 32
}

// pilotLine is the line of a pilot, and pilotAt its position in that line.
func (x *index) pilotLine(n uint64) uint64 { return x.pilots + n/pilotsOfLine }

func pilotAt(n uint64) int { return int(n % pilotsOfLine * 2) }

// line is the line of the slot of a hash.
func (x *index) line(data []byte, hash uint64) uint32 {
	n := x.pilotOf(hash)
	at := int(x.pilotLine(n)*lineBytes) + pilotAt(n)
	pilot := little.Uint16(data[at:])
	return uint32(x.lineOfSlot(x.slotOf(hash, pilot)))
}

// sound compares the digest of the pilot that line reads for a hash.
func (x *index) sound(data []byte, hash uint64) bool {
	return lineSealed(data, x.pilotLine(x.pilotOf(hash)))
}

// lineSealed compares the digest of a line of the file, whose seed is its number.
func lineSealed(data []byte, number uint64) bool {
	line := data[number*lineBytes:]
	copied := *(*[lineBytes]byte)(line)
	return sealed(copied[:], number)
}

// emptySlot is the first line of a slot without a block, or with a far one.
func emptySlot(line, first uint64) []byte {
	out := make([]byte, lineBytes)
	put64(out, 0, first)
	seal(out, line)
	return out
}

// A target is a hash, and the number of what it finds.
type target struct {
	hash   uint64
	number uint32
}

// errNoIndex is the error of hashes of which two are equal, or that have no pilots for
// another reason: with another seed there are some.
var errNoIndex = errors.New("two keys have the same hash: this cannot be published")

// seedsTried is how many seeds are tried until the hashes have an index: two keys have
// the same hash of one seed hardly ever, and of two seeds if they are made for that.
const seedsTried = 16

// seedStep lies between two seeds: low bits alone would leave the distance of most
// hashes as it is.
const seedStep = 0x9e3779b9

// A filling finds the pilots of an index.
type filling struct {
	index
	values []uint16
	taken  []bool   // slots
	placed []uint32 // slots of the targets, by number
}

// newFilling is an index of n hashes without pilots.
func newFilling(n int, line, slotLines, seed uint32) *filling {
	f := &filling{index: indexOf(uint32(n), line, seed, slotLines)}
	f.values = make([]uint16, f.pilotCount)
	f.taken = make([]bool, f.slotCount)
	f.placed = make([]uint32, n)
	return f
}

// newIndex is the index of n hashes from a line on, with the slot of each.
func newIndex(
	n int, line, slotLines uint32, hashOf func(k int, seed uint64) uint64,
) (*filling, error) {
	targets := make([]target, n)
	for try := range uint32(seedsTried) {
		seed := try * seedStep
		for k := range targets {
			hash := hashOf(k, uint64(seed))
			targets[k] = target{hash, uint32(k)}
		}
		f := newFilling(n, line, slotLines, seed)
		if f.fill(targets) {
			return f, nil
		}
	}
	return nil, errNoIndex
}

// fill finds the pilots for targets, which it sorts.
func (f *filling) fill(targets []target) bool {
	slices.SortFunc(targets, func(a, b target) int {
		return cmp.Compare(a.hash, b.hash)
	})
	for _, share := range f.shares(targets) {
		if !f.settle(share) {
			return false
		}
	}
	return true
}

// shares are the targets of each pilot, the largest sets first: the last ones find few
// slots free.
func (f *filling) shares(targets []target) (all [][]target) {
	for len(targets) > 0 {
		pilot := f.pilotOf(targets[0].hash)
		n := 1
		for n < len(targets) && f.pilotOf(targets[n].hash) == pilot {
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

// settle finds a pilot with which all targets have free slots of their own.
func (f *filling) settle(share []target) bool {
	for pilot := range 1 << 16 {
		if f.settleWith(uint16(pilot), share) {
			f.values[f.pilotOf(share[0].hash)] = uint16(pilot)
			return true
		}
	}
	return false
}

// settleWith takes the slots that a pilot gives, if all of them are free.
func (f *filling) settleWith(pilot uint16, share []target) bool {
	for k, t := range share {
		slot := f.slotOf(t.hash, pilot)
		if !f.taken[slot] {
			f.taken[slot] = true
			f.placed[t.number] = uint32(slot)
			continue
		}
		for _, t := range share[:k] {
			f.taken[f.slotOf(t.hash, pilot)] = false
		}
		return false
	}
	return true
}

// pilotLines are the lines of the pilots.
func (f *filling) pilotLines() []byte {
	lines := make([]byte, (f.slots-f.pilots)*lineBytes)
	for n, pilot := range f.values {
		line := n / pilotsOfLine * lineBytes
		at := line + pilotAt(uint64(n))
		little.PutUint16(lines[at:], pilot)
	}
	for k := 0; k < len(lines); k += lineBytes {
		number := f.pilots + uint64(k/lineBytes)
		seal(lines[k:k+lineBytes], number)
	}
	return lines
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
