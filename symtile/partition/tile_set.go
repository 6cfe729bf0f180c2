package partition

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A tileID stands for the tile at which a member of a cluster is computed: equal
// tiles of an instruction mostly have equal ids, different ones have different ids
// but for collisions of 64 bits. It is what the reads on the way from the root do
// to a tile, without the tile.
type tileID uint64

// Ids of the tile of a root, and of scalars, which have no tile.
const (
	rootTile   tileID = 1
	scalarTile tileID = 2
)

// A tileSet is the different tiles at which a member is read: at most maxTiles + 1.
type tileSet []tileID

// with adds a tile.
func (t tileSet) with(id tileID) tileSet {
	if len(t) > maxTiles || slices.Contains(t, id) {
		return t
	}
	return append(t, id)
}

// maxPlaces bounds the operands of an instruction that are told apart: one that
// occurs only after them counts as read once.
const maxPlaces = 16

// addReads adds to a set the tiles at which u reads i, when it is computed at some.
func (s *clustering) addReads(set tileSet, i, u *hlo.Instr, at tileSet) tileSet {
	if i.Shape.Rank() == 0 {
		return set.with(scalarTile)
	}
	if u.Op.Elementwise() {
		for _, id := range at {
			set = set.with(id)
		}
		return set
	}
	found := false
	for k, o := range u.Operands[:min(len(u.Operands), maxPlaces)] {
		if o == i {
			found = true
			set = set.withRead(at, s.readID(u, k))
		}
	}
	if !found {
		return set.withRead(at, s.readID(u, maxPlaces+s.position[i]))
	}
	return set
}

// withRead adds what a way to read makes of tiles.
func (t tileSet) withRead(at tileSet, way uint64) tileSet {
	for _, id := range at {
		// The constants are those of splitmix64.
		x := uint64(id)*0x9e3779b97f4a7c15 ^ way
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		t = t.with(tileID(x ^ x>>31))
	}
	return t
}

// readID stands for what an instruction makes of its tile to read operand k. Where
// the attributes tell, instructions that do the same have the same id: two
// reductions of the same dimensions read the same tile.
func (s *clustering) readID(u *hlo.Instr, k int) uint64 {
	id, known := s.readIDs[u]
	if !known {
		h := fnv.New64a()
		a := &u.Attrs
		switch u.Op {
		case hlo.OpReduce, hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReshape,
			hlo.OpSlice, hlo.OpPad, hlo.OpReverse:
			fmt.Fprint(h, u.Op, a.Dimensions, a.Slice, a.Padding, u.Operands[0].Shape.Dims)
		default:
			fmt.Fprint(h, s.position[u])
		}
		id = h.Sum64()
		s.readIDs[u] = id
	}
	if u.Op == hlo.OpReduce {
		return id
	}
	return id + uint64(k)*0x9e3779b97f4a7c15
}
