package sim

import "sync/atomic"

// knownClock says which accesses of a party are known to another: all with a
// clock ≤ all, and those of the given lanes with a clock ≤ some. The second part
// represents lanes that published on their own.
type knownClock struct{ all, some, lanes uint32 }

// join adds what o knows. Where the parts for single lanes differ, the result
// errs towards knowing more, that is towards silence.
func (s *knownClock) join(o knownClock) {
	s.all = max(s.all, o.all)
	if o.some > s.all {
		s.some = max(s.some, o.some)
		s.lanes |= o.lanes
	}
}

// knows reports whether the access of a lane at a clock is known.
func (s knownClock) knows(clock uint32, lane int) bool {
	return clock <= s.all ||
		clock <= s.some && s.lanes>>lane&1 == 1
}

// vectorClock is what is known of every party of the own cluster, and of parties
// of other clusters by the number of their cluster.
type vectorClock struct {
	near []knownClock
	far  map[int][]knownClock
}

// join adds what another vector clock knows.
func (h *vectorClock) join(o *vectorClock) {
	if o.near != nil {
		if h.near == nil {
			h.near = make([]knownClock, len(o.near))
		}
		for i := range o.near {
			h.near[i].join(o.near[i])
		}
	}
	for unit, theirs := range o.far {
		h.joinFar(unit, theirs)
	}
}

// joinFar adds what is known of the parties of another cluster. It copies,
// because slices of far clocks are shared between workers.
func (h *vectorClock) joinFar(unit int, theirs []knownClock) {
	if h.far == nil {
		h.far = map[int][]knownClock{}
	}
	mine := append([]knownClock(nil), h.far[unit]...)
	if mine == nil {
		mine = make([]knownClock, len(theirs))
	}
	for i := range theirs {
		mine[i].join(theirs[i])
	}
	h.far[unit] = mine
}

// partyClock is the clock and the knowledge of a warp.
type partyClock struct {
	// on is set with Options.Races.
	on bool
	// now is the clock of the warp's next accesses.
	now uint32
	// synced is the clock up to which the warp's own accesses are ordered among
	// its lanes.
	synced uint32
	// The knowledge of the warp has three parts: seen is what it knows of
	// everybody; fenced holds the generic accesses that a proxy fence has made
	// visible to the async proxy; atLast is seen at the last fence, its own or
	// that of a warp it has synchronised with, which is what a relaxed atomic
	// publishes.
	knowledge
	// toCome was acquired by relaxed atomics and becomes known at the next fence.
	toCome vectorClock
}

// newPartyClock is the clock of a warp of the launch.
func newPartyClock(parties int) partyClock {
	return partyClock{
		on: true,
		knowledge: knowledge{seen: vectorClock{
			near: make([]knownClock, parties+1),
		}},
	}
}

// reset forgets everything, for another cluster.
func (c *partyClock) reset(int) {
	if !c.on {
		return
	}
	clear(c.seen.near)
	*c = partyClock{
		on:        true,
		now:       1,
		knowledge: knowledge{seen: vectorClock{near: c.seen.near}},
	}
}

// joinLanes orders the accesses of the warp's lanes so far.
func (c *partyClock) joinLanes() {
	c.synced = c.now
	c.now++
}

// knowledge is what a synchronisation object carries from the warps that arrive
// to those that leave.
type knowledge struct {
	seen vectorClock
	// fenced is what the async proxy may rely on.
	fenced vectorClock
	// atLast is what fences of the memory model cover.
	atLast vectorClock
}

// join adds what o carries.
func (k *knowledge) join(o *knowledge) {
	k.seen.join(&o.seen)
	k.fenced.join(&o.fenced)
	k.atLast.join(&o.atLast)
}

// stamp is an access in one word, so that shadow memory can exchange it
// atomically: clock (24 bits), bytes of the word (4), atomic (1), lane (5), party
// (10), cluster (20). The zero stamp is no access.
type stamp uint64

// clock is the clock of the party when it made the access.
func (s stamp) clock() uint32 { return uint32(s >> 40) }

// bytes is the mask of the bytes of the 4-byte word that the access covers.
func (s stamp) bytes() uint8 { return uint8(s>>36) & 15 }

// atomic reports whether the access is atomic, so that it does not conflict with
// others that are.
func (s stamp) atomic() bool { return s>>35&1 == 1 }

// lane is the lane that made the access.
func (s stamp) lane() int { return int(s>>30) & 31 }

// party is the warp in its cluster, or the number of parties for asynchronous
// writes.
func (s stamp) party() int { return int(s>>20) & 1023 }

// unit is the number of the cluster.
func (s stamp) unit() int {
	return int(s) & (1<<20 - 1)
}

// makeStamp packs an access.
func makeStamp(clock uint32, bytes uint8, atomic bool, lane, party, unit int) stamp {
	return stamp(clock)<<40 |
		stamp(bytes&15)<<36 |
		stamp(boolBit(atomic))<<35 |
		stamp(lane)<<30 | stamp(party)<<20 |
		stamp(unit&(1<<20-1))
}

// access is the way in which a lane accesses memory.
type access uint8

const (
	// reading is a load.
	reading access = iota
	// writing is a store that is not atomic.
	writing
	// atomically is an atomic operation or a strong access: two of them do not
	// race.
	atomically
)

// globalShadow records the accesses to an allocation, a cell for each word of 4
// bytes, in chunks that are allocated at the first access. Workers share it.
type globalShadow struct {
	chunks []atomic.Pointer[shadowChunk]
}

// chunkWords is the number of words of a chunk.
const chunkWords = 1 << 10

// shadowChunk holds what is known of so many words.
type shadowChunk [chunkWords]shadowCell

// shadowCell holds the latest write of a word, the latest read, and a read by
// another cluster than that one's. Two reads suffice to find most conflicts of a
// later write; keeping all would cost a list for each word.
type shadowCell struct {
	write, read, read2 atomic.Uint64
	writePC, readPC    atomic.Int32
}

// newGlobalShadow is the shadow of size bytes.
func newGlobalShadow(size int64) *globalShadow {
	return &globalShadow{
		chunks: make(
			[]atomic.Pointer[shadowChunk],
			(size+chunkWords*4-1)/(chunkWords*4),
		),
	}
}

// chunk returns chunk i and allocates it if no worker has.
func (s *globalShadow) chunk(i int64) *shadowChunk {
	c := s.chunks[i].Load()
	if c == nil {
		c = new(shadowChunk)
		if !s.chunks[i].CompareAndSwap(nil, c) {
			c = s.chunks[i].Load()
		}
	}
	return c
}

// wordBytes is the mask of the bytes of word q that an access of n bytes at
// offset off covers.
func wordBytes(off, n, q int64) uint8 {
	lo := max(off-q*4, 0)
	hi := min(off+n-q*4, 4)
	return uint8(1<<hi - 1<<lo)
}

// sharedShadow records the accesses to a CTA's shared memory.
type sharedShadow struct {
	// written is one byte for each byte, 1 once it was written; nil unless
	// Options.Uninitialised.
	written []uint8
	// words holds the latest write of each word; nil unless Options.Races.
	words []sharedWord
	// readers holds the latest read of each word by each party: clock<<9 |
	// bytes<<5 | lane.
	readers []uint32
	parties int64
}

// sharedWord is what is known of a word of shared memory.
type sharedWord struct {
	// write is the latest write; writePC and readPC are the instructions of the
	// latest accesses.
	write   stamp
	writePC int32
	readPC  int32
	// generic is set if the write was not by the async proxy.
	generic bool
	// busyPC and busyParty are the latest asynchronous operation on the word.
	busyPC    int32
	busyParty int32
	// incoming is the number of asynchronous writes under way.
	incoming uint16
	// outgoing is the number of asynchronous reads under way.
	outgoing uint16
}

// newSharedShadow is the shadow of a CTA's shared memory for the checks of the
// launch.
func newSharedShadow(size int64, parties int, opt Options) *sharedShadow {
	s := &sharedShadow{parties: int64(parties) + 1}
	words := (size + 3) / 4
	if opt.Uninitialised {
		s.written = make([]uint8, words*4)
	}
	if opt.Races {
		s.words = make([]sharedWord, words)
		s.readers = make([]uint32, words*s.parties)
	}
	return s
}

// reset forgets all accesses.
func (s *sharedShadow) reset() {
	clear(s.written)
	clear(s.words)
	clear(s.readers)
}
