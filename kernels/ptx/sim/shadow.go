package sim

import "sync/atomic"

// knownClock says which accesses of a party are known: all with clock ≤ all, and
// those of lanes with clock ≤ some.
type knownClock struct{ all, some, lanes uint32 }

func (s *knownClock) join(o knownClock) {
	s.all = max(s.all, o.all)
	if o.some > s.all {
		s.some = max(s.some, o.some)
		s.lanes |= o.lanes
	}
}

func (s knownClock) knows(clock uint32, lane int) bool {
	return clock <= s.all ||
		clock <= s.some && s.lanes>>lane&1 == 1
}

// vectorClock is what is known of every party of the own cluster, and of parties of
// other clusters.
type vectorClock struct {
	near []knownClock
	far  map[int][]knownClock
}

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

// partyClock is what a warp knows.
type partyClock struct {
	on     bool
	now    uint32
	synced uint32 // own accesses up to here are ordered among its lanes
	// seen of everybody; fenced: generic accesses that a proxy fence has made
	// visible to the async proxy; atLast: seen at the last fence, its own or of
	// one it has synchronised with, which is what a relaxed atomic publishes
	knowledge
	toCome vectorClock // acquired by relaxed atomics, known after the next fence
}

func newPartyClock(parties int) partyClock {
	return partyClock{
		on: true,
		knowledge: knowledge{seen: vectorClock{
			near: make([]knownClock, parties+1),
		}},
	}
}

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

// knowledge is what a synchronisation object carries from those who arrive to
// those who leave.
type knowledge struct {
	seen   vectorClock
	fenced vectorClock // for the async proxy
	atLast vectorClock // by fences of the memory model
}

func (k *knowledge) join(o *knowledge) {
	k.seen.join(&o.seen)
	k.fenced.join(&o.fenced)
	k.atLast.join(&o.atLast)
}

// stamp is an access in one word: clock 24 bits, bytes of the word 4, atomic 1,
// lane 5, party 10, unit 20; 0 is none.
type stamp uint64

func (s stamp) clock() uint32 { return uint32(s >> 40) }

func (s stamp) bytes() uint8 { return uint8(s>>36) & 15 }

func (s stamp) atomic() bool { return s>>35&1 == 1 }

func (s stamp) lane() int { return int(s>>30) & 31 }

func (s stamp) party() int { return int(s>>20) & 1023 }

func (s stamp) unit() int {
	return int(s) & (1<<20 - 1)
}

func makeStamp(clock uint32, bytes uint8, atomic bool, lane, party, unit int) stamp {
	return stamp(clock)<<40 |
		stamp(bytes&15)<<36 |
		stamp(boolBit(atomic))<<35 |
		stamp(lane)<<30 | stamp(party)<<20 |
		stamp(unit&(1<<20-1))
}

// access says how a lane touches memory.
type access uint8

const (
	reading access = iota
	writing
	atomically
)

// globalShadow remembers the accesses to an allocation, in chunks made when
// first touched.
type globalShadow struct {
	chunks []atomic.Pointer[shadowChunk]
}

const chunkWords = 1 << 10

type shadowChunk [chunkWords]struct {
	write, read, read2 atomic.Uint64
	writePC, readPC    atomic.Int32
}

func newGlobalShadow(size int64) *globalShadow {
	return &globalShadow{
		chunks: make(
			[]atomic.Pointer[shadowChunk],
			(size+chunkWords*4-1)/(chunkWords*4),
		),
	}
}

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

// wordBytes is which bytes of the word at q an access of n bytes at off covers.
func wordBytes(off, n, q int64) uint8 {
	lo := max(off-q*4, 0)
	hi := min(off+n-q*4, 4)
	return uint8(1<<hi - 1<<lo)
}

// sharedShadow is what is known of every word of a CTA's shared memory.
type sharedShadow struct {
	written []uint8 // per byte; nil unless Options.Uninitialised
	words   []sharedWord
	readers []uint32 // per word and party: clock<<9 | bytes<<5 | lane
	parties int64
}

type sharedWord struct {
	write     stamp
	writePC   int32
	readPC    int32
	generic   bool // the write was not by the async proxy
	busyPC    int32
	busyParty int32
	incoming  uint16 // asynchronous writes under way
	outgoing  uint16 // asynchronous reads under way
}

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

func (s *sharedShadow) reset() {
	clear(s.written)
	clear(s.words)
	clear(s.readers)
}
