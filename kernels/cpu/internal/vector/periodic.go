package vector

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// Many copies of elements that are no rows in the source have a destination that is
// periodic: the elements of a period come from fixed places of some streams, each of which
// moves by a fixed number of bytes from period to period. Reversed rows have a period of one
// element and a stream that moves back by one, every third element one that moves by three;
// columns of a matrix of two rows are two places of a stream; n arrays that are interleaved
// are n streams.
//
// The places of a period are known when code is made. So a vector of the destination is the
// union of pieces of the streams, each loaded to a half of a register and permuted by a
// constant: VPSHUFB takes a byte of the half for each byte, or zero. That is general, moves
// elements of all widths, and takes AVX2 only.
//
// For example, f32 arrays a and b that are interleaved have a period of 8 bytes and two
// streams with steps of 4. A vector is a0 b0 a1 b1 | a2 b2 a3 b3; its pieces are the 16 bytes
// of a from a0 on and of b from b0 on, both for each half, of which four permutations take
// bytes 0–7 or 8–15 and leave zeros between.

// MaxStreams bounds the streams of a periodic copy, for each of which there is a register.
const MaxStreams = 8

// A Periodic is a copy whose destination is periodic.
type Periodic struct {
	Width  int64           // The bytes of an element.
	Period []PeriodElement // What the elements of a period of the destination are, in order.
	Steps  []int64         // By stream, how far it moves from period to period, in bytes.
}

// A PeriodElement is an element of a stream, at a distance in bytes from where the stream is.
type PeriodElement struct{ Stream, At int64 }

// Bytes is the bytes of a period. Elements of the destination follow each other without
// gaps, within periods and between them.
func (p *Periodic) Bytes() int64 { return p.Width * int64(len(p.Period)) }

const (
	halfBytes    = 16  // Bytes of its half.
	leastTurn    = 64  // Bytes that an iteration makes at least, beside which counting is little.
	evenTurn     = 512 // Bytes up to which an iteration is lengthened to whole vectors.
	maxPieces    = 384 // Pieces of streams that an iteration may take: 2 to 3 KiB of code a hundred.
	freePatterns = 12  // Registers for permutations that are not loaded again.
)

// Turn is the periods that an iteration makes: those of whole vectors where these are few,
// else of at least leastTurn bytes, whose last vector begins within the one before.
func (p *Periodic) Turn() int64 {
	bytes := p.Bytes()
	least := (leastTurn + bytes - 1) / bytes
	most := max(evenTurn, bytes)
	for n := least; n*bytes <= most; n++ {
		if n*bytes%vectorBytes == 0 {
			return n
		}
	}
	return max(least, (2*leastTurn+bytes-1)/bytes)
}

// PeriodicArgs is the argument block of a periodic copy of N rows. The addresses of rows
// move and may then lie behind the ends of arrays, so that they are numbers.
type PeriodicArgs struct {
	n, iterations int64
	last          int64 // 1 where one more iteration, over the end of those before, ends a row.
	to, toStep    uintptr
	toLast        int64 // From where a row's iterations end to where its last one begins.
	from          [MaxStreams]uintptr
	fromStep      [MaxStreams]int64
	fromLast      [MaxStreams]int64
	keepTo        unsafe.Pointer // Keep the arrays alive.
	keepFrom      [MaxStreams]unsafe.Pointer
}

// The fields of PeriodicArgs, as emitLoadArg counts.
const (
	periodicRows = iota
	periodicIterations
	periodicLast
	periodicTo
	periodicToStep
	periodicToLast
	periodicFrom
	periodicFromStep = periodicFrom + MaxStreams
	periodicFromLast = periodicFromStep + MaxStreams
)

// PeriodicRows are rows of Periods periods, whose streams begin at From, with the distances
// of rows in bytes.
type PeriodicRows struct {
	N, Periods int64
	To         unsafe.Pointer
	ToStep     int64
	From       [MaxStreams]unsafe.Pointer
	FromStep   [MaxStreams]int64
}

// Run copies rows by the function that p emitted, which are a turn or longer.
func (args *PeriodicArgs) Run(f *amd64.Func, p *Periodic, rows *PeriodicRows) {
	turn := p.Turn()
	args.n = rows.N
	args.iterations = rows.Periods / turn
	args.to = uintptr(rows.To)
	args.toStep = uintptr(rows.ToStep)
	args.keepTo, args.keepFrom = rows.To, rows.From
	rest := rows.Periods % turn
	args.last = min(1, rest)
	args.toLast = (rest - turn) * p.Bytes()
	// The last iteration makes the rest of the row and what the one before has made.
	for k, step := range p.Steps {
		args.from[k] = uintptr(rows.From[k])
		args.fromStep[k] = rows.FromStep[k]
		args.fromLast[k] = (rest - turn) * step
	}
	f.Call(unsafe.Pointer(args))
	args.keepTo = nil
	clear(args.keepFrom[:])
}

// streamRegs hold the addresses of streams.
var streamRegs = [MaxStreams]amd64.Reg{
	amd64.RSI, amd64.RCX, amd64.RBX, amd64.R8,
	amd64.R9, amd64.R10, amd64.R11, amd64.R12,
}

// Emit emits the copy of rows, or reports false where an iteration would be too long. RDX
// is the address in the destination, RAX counts iterations, R13 rows, and R14 is 0 where a
// row ends with its iterations.
func (p *Periodic) Emit(a *amd64.Assembler) bool {
	vectors, ok := p.vectors()
	if !ok {
		return false
	}
	e := periodicEmitter{
		Assembler: a,
		tables:    map[[8]uint32]amd64.Operand{},
	}
	e.pin(vectors)
	row, turn, end := a.NewLabel(), a.NewLabel(), a.NewLabel()
	emitLoadArg(a, amd64.R13, periodicRows)
	// A row begins where the argument block says, which moves from row to row.
	a.Bind(row)
	emitLoadArg(a, amd64.RDX, periodicTo)
	emitLoadArg(a, amd64.RAX, periodicIterations)
	emitLoadArg(a, amd64.R14, periodicLast)
	for k := range p.Steps {
		emitLoadArg(
			a, streamRegs[k], int32(periodicFrom+k),
		)
	}
	a.Bind(turn)
	for _, v := range vectors {
		e.vector(v)
	}
	// What an iteration makes is a number of periods, by which all addresses move.
	n := p.Turn()
	a.Emit(
		amd64.ADD, amd64.RDX, amd64.Imm(n*p.Bytes()),
	)
	for k, step := range p.Steps {
		a.Emit(
			amd64.ADD, streamRegs[k], amd64.Imm(n*step),
		)
	}
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, turn)
	a.Emit(amd64.SUB, amd64.R14, amd64.Imm(1))
	a.Emit(amd64.JL, end)
	// One more iteration, over the end of those before, makes the rest of the row.
	e.advance(amd64.RDX, periodicToLast)
	for k := range p.Steps {
		e.advance(
			streamRegs[k], int32(periodicFromLast+k),
		)
	}
	a.Emit(amd64.MOV, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JMP, turn)
	a.Bind(end)
	e.nextRow(periodicTo, periodicToStep)
	for k := range p.Steps {
		e.nextRow(
			int32(periodicFrom+k),
			int32(periodicFromStep+k),
		)
	}
	a.Emit(amd64.SUB, amd64.R13, amd64.Imm(1))
	a.Emit(amd64.JG, row)
	return true
}

// A piece is bytes of a stream that are loaded at once, and which byte of it each byte of a
// half of a vector is; absent where it has the sign bit.
type piece struct {
	stream, at, bytes int64
	order             [halfBytes]byte
}

// absent is what VPSHUFB makes zero.
const absent = 0x80

// A periodicVector is a vector of the destination: where it is, and the pieces of its halves.
// A half takes one piece where its bytes are near each other in a stream, as of an element
// that is repeated, and as many as it has elements where they are far apart.
type periodicVector struct {
	to     int64
	halves [2][]piece
}

// vectors are those of an iteration; it reports false where they are of too many pieces.
func (p *Periodic) vectors() (list []periodicVector, ok bool) {
	// Where the bytes of an iteration are has to fit what instructions hold of a distance.
	all := p.sources()
	within := p.spans(all)
	for k, step := range p.Steps {
		far := max(step, -step) * p.Turn()
		far = max(far, -within[k].lo, within[k].hi)
		if far > maxDistance {
			return nil, false
		}
	}
	// The last vector begins within the one before where the bytes are not whole vectors.
	pieces := 0
	for at := 0; at < len(all); at += vectorBytes {
		at = min(at, len(all)-vectorBytes)
		v := periodicVector{to: int64(at)}
		for half := range v.halves {
			from := all[at+half*halfBytes:][:halfBytes]
			v.halves[half] = piecesOf(from, within)
			pieces += len(v.halves[half])
		}
		list = append(list, v)
	}
	return list, pieces <= maxPieces
}

// maxDistance bounds distances in code, which have 32 bits.
const maxDistance = 1 << 30

// A byteSpan is the bytes lo … hi−1 of a stream.
type byteSpan struct{ lo, hi int64 }

// spans are the bytes that an iteration takes of each stream, from its first to its last.
func (p *Periodic) spans(all []PeriodElement) []byteSpan {
	list := make([]byteSpan, len(p.Steps))
	for k := range list {
		list[k] = byteSpan{math.MaxInt64, math.MinInt64}
	}
	for _, b := range all {
		x := &list[b.Stream]
		x.lo = min(x.lo, b.At)
		x.hi = max(x.hi, b.At+1)
	}
	return list
}

// sources are where the bytes of an iteration come from.
func (p *Periodic) sources() (all []PeriodElement) {
	for n := range p.Turn() {
		for _, x := range p.Period {
			for k := range p.Width {
				at := x.At + n*p.Steps[x.Stream] + k
				all = append(
					all, PeriodElement{x.Stream, at},
				)
			}
		}
	}
	return all
}

// piecesOf covers the bytes of a half by pieces, which lie within what an iteration takes
// of their streams, so that no byte outside of the arrays is read. A piece begins at the
// first byte that none before has, or ends where the stream does.
func piecesOf(from []PeriodElement, within []byteSpan) (list []piece) {
	ascending := slices.Clone(from)
	slices.SortFunc(ascending, func(x, y PeriodElement) int {
		return cmp.Or(
			cmp.Compare(x.Stream, y.Stream),
			cmp.Compare(x.At, y.At),
		)
	})
	for _, x := range ascending {
		n := len(list) - 1
		if n >= 0 && list[n].has(x) {
			continue
		}
		// A stream of which an iteration takes few bytes is loaded in smaller pieces.
		w := within[x.Stream]
		bytes := int64(halfBytes)
		for bytes > w.hi-w.lo {
			bytes /= 2
		}
		list = append(list, piece{
			stream: x.Stream,
			at:     min(x.At, w.hi-bytes),
			bytes:  bytes,
		})
	}
	for n := range list {
		list[n].setOrder(from, list[:n])
	}
	return list
}

// setOrder says which byte of the piece each byte of a half is, but for those that the piece
// before has, too.
func (q *piece) setOrder(from []PeriodElement, before []piece) {
	for k, x := range from {
		q.order[k] = absent
		n := len(before) - 1
		if q.has(x) && (n < 0 || !before[n].has(x)) {
			q.order[k] = byte(x.At - q.at)
		}
	}
}

// has reports whether a byte is in the piece.
func (q *piece) has(x PeriodElement) bool {
	at := x.At - q.at
	return x.Stream == q.stream &&
		at >= 0 && at < q.bytes
}

// inOrder reports whether a piece is a half as it is.
func (q *piece) inOrder() bool {
	for k, x := range q.order {
		if int(x) != k {
			return false
		}
	}
	return true
}

// A periodicEmitter emits vectors, and knows where their permutations are.
type periodicEmitter struct {
	*amd64.Assembler
	tables map[[8]uint32]amd64.Operand
}

// pin loads the permutations that are used most to registers; the others are operands in
// memory. Y0, Y1 and X2 are free for the pieces of a vector.
func (e *periodicEmitter) pin(vectors []periodicVector) {
	// Ties keep the order of the code, so that the same copy has the same code.
	uses := map[[8]uint32]int{}
	var order [][8]uint32
	for _, v := range vectors {
		for _, pair := range v.pairs() {
			table, needed := pair.table()
			if !needed {
				continue
			}
			if uses[table]++; uses[table] == 1 {
				order = append(order, table)
			}
		}
	}
	slices.SortStableFunc(order, func(x, y [8]uint32) int {
		return uses[y] - uses[x]
	})
	for k, table := range order {
		at := e.Table(table)
		e.tables[table] = at
		if k < freePatterns {
			r := amd64.Y(16 - freePatterns + k)
			e.Emit(amd64.VMOVUPS, r, at)
			e.tables[table] = r
		}
	}
}

// A piecePair is a piece for each half of a vector, nil for none.
type piecePair [2]*piece

// pairs are the pieces of both halves.
func (v *periodicVector) pairs() (list []piecePair) {
	most := max(len(v.halves[0]), len(v.halves[1]))
	for n := range most {
		var pair piecePair
		for half := range pair {
			if n < len(v.halves[half]) {
				pair[half] = &v.halves[half][n]
			}
		}
		list = append(list, pair)
	}
	return list
}

// table is the permutation of a pair, and whether it changes anything.
func (pair piecePair) table() (words [8]uint32, needed bool) {
	var bytes [vectorBytes]byte
	for half, q := range pair {
		part := bytes[half*halfBytes:][:halfBytes]
		if q == nil {
			for k := range part {
				part[k] = absent
			}
			needed = true
			continue
		}
		copy(part, q.order[:])
		needed = needed || !q.inOrder()
	}
	for k := range words {
		words[k] = binary.LittleEndian.Uint32(bytes[4*k:])
	}
	return words, needed
}

// isVector reports whether a pair is a vector that follows itself in a stream.
func (pair piecePair) isVector() bool {
	lo, hi := pair[0], pair[1]
	return lo != nil && hi != nil &&
		lo.inOrder() && hi.inOrder() &&
		lo.stream == hi.stream &&
		hi.at == lo.at+halfBytes
}

// vector emits the load of the pieces of a vector, their permutation and its store.
func (e *periodicEmitter) vector(v periodicVector) {
	sum, next := amd64.Y0, amd64.Y1
	for n, pair := range v.pairs() {
		y := next
		if n == 0 {
			y = sum
		}
		e.load(y, pair)
		if table, needed := pair.table(); needed {
			e.Emit(amd64.VPSHUFB, y, y, e.tables[table])
		}
		if n > 0 {
			e.Emit(amd64.VPOR, sum, sum, y)
		}
	}
	to := amd64.Mem{
		Base: amd64.RDX,
		Disp: int32(v.to),
	}
	e.Emit(amd64.VMOVUPS, to, sum)
}

// load emits the load of a pair of pieces by as few instructions as there are for it. What a half has that no permutation takes is
// whatever was there.
func (e *periodicEmitter) load(y amd64.Reg, pair piecePair) {
	lo, hi := pair[0], pair[1]
	x := y - amd64.Y0 + amd64.X0
	switch {
	case pair.isVector():
		e.Emit(amd64.VMOVUPS, y, lo.memory())
	case hi == nil:
		e.loadHalf(x, lo)
	case hi.bytes == halfBytes &&
		(lo == nil || lo.samePlace(hi)):
		e.Emit(amd64.VBROADCASTF128, y, hi.memory())
	default:
		if lo != nil {
			e.loadHalf(x, lo)
		}
		e.loadHigh(y, hi)
	}
}

// loadHigh emits the load of a piece to the upper half of a register.
func (e *periodicEmitter) loadHigh(y amd64.Reg, q *piece) {
	var from amd64.Operand = q.memory()
	if q.bytes < halfBytes {
		e.loadHalf(amd64.X2, q)
		from = amd64.X2
	}
	e.Emit(
		amd64.VINSERTF128, y, y, from, amd64.Imm(1),
	)
}

// samePlace reports whether two pieces are the same bytes.
func (q *piece) samePlace(r *piece) bool {
	return q.stream == r.stream && q.at == r.at
}

// memory is where a piece is.
func (q *piece) memory() amd64.Mem {
	return amd64.Mem{
		Base: streamRegs[q.stream],
		Disp: int32(q.at),
	}
}

// loadHalf emits the load of a piece of any size.
func (e *periodicEmitter) loadHalf(x amd64.Reg, q *piece) {
	at := q.memory()
	switch q.bytes {
	case 16:
		e.Emit(amd64.VMOVUPS, x, at)
	case 8:
		e.Emit(amd64.VMOVSD, x, at)
	case 4:
		e.Emit(amd64.VMOVSS, x, at)
	case 2:
		e.Emit(amd64.VPINSRW, x, x, at, amd64.Imm(0))
	case 1:
		e.Emit(amd64.VPINSRB, x, x, at, amd64.Imm(0))
	}
}

// advance emits the addition of a field of the argument block to a register.
func (e *periodicEmitter) advance(r amd64.Reg, field int32) {
	e.Emit(amd64.ADD, r, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8 * field,
	})
}

// nextRow emits the addition of a field to another.
func (e *periodicEmitter) nextRow(field, step int32) {
	emitLoadArg(e.Assembler, amd64.R15, field)
	e.advance(amd64.R15, step)
	emitStoreArg(e.Assembler, field, amd64.R15)
}
