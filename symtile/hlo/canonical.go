package hlo

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
)

// The canonical form decides which fusions share winners. What it keeps is what
// a compiled kernel depends on; what it drops are names, order and annotations.

// Canonical prints c so that two computations have the same text exactly when
// they compute the same thing in the same way: parameters first, by number,
// then what the root needs, in the depth-first order of operands; instructions
// are named by their position, computations by the order they are met; dead
// instructions, metadata, ids, a fusion's kind and backend_config, and sharding
// are gone; a default layout is not printed. The text is HLO and parses.
func (c *Computation) Canonical() string {
	w := canonicalWriters.Get().(*canonicalWriter)
	defer w.release()
	return string(w.canonical(c))
}

// Fingerprint is the SHA-256 of the canonical text.
func (c *Computation) Fingerprint() [32]byte {
	w := canonicalWriters.Get().(*canonicalWriter)
	defer w.release()
	return sha256.Sum256(w.canonical(c))
}

// A canonicalWriter prints a computation and all it calls. Computations are
// numbered as they are met; equal ones, by the digest of their text, share a
// number. Its memory is used again, so that a fingerprint allocates nothing.
type canonicalWriter struct {
	// number is the number of each computation that was met.
	number map[*Computation]int
	// numberByDigest finds the number of an equal computation.
	numberByDigest map[[32]byte]int
	// digest is the digest of each computation with its callees; see digestOf.
	digest map[*Computation][32]byte
	// different is whether several computations are called, which may be equal: only
	// then digests are made.
	different bool
	// queue holds the computations in the order of their numbers.
	queue []*Computation
	// bodies holds their texts one after the other; ends are where each ends.
	bodies []byte
	ends   []int
	// text is the whole text, callees first.
	text []byte
	// scratch is the text of a computation whose digest is made.
	scratch []byte

	needed    neededOrder
	numbered  printOptions // callees by number
	digesting printOptions // callees by digest
}

// canonicalWriters keeps writers that are not in use.
var canonicalWriters = sync.Pool{New: func() any { return newCanonicalWriter() }}

func newCanonicalWriter() *canonicalWriter {
	w := &canonicalWriter{
		number:         map[*Computation]int{},
		numberByDigest: map[[32]byte]int{},
		digest:         map[*Computation][32]byte{},
	}
	w.needed.elsewhere = map[*Instr]int{}
	w.numbered = printOptions{
		instr:     w.appendInstr,
		comp:      w.appendNumber,
		canonical: true,
	}
	w.digesting = w.numbered
	w.digesting.comp = w.appendDigest
	return w
}

// keptWriter bounds the text of a writer that is kept.
const keptWriter = 1 << 20

// release forgets what was printed and keeps the memory.
func (w *canonicalWriter) release() {
	if cap(w.bodies) > keptWriter {
		return
	}
	clear(w.number)
	clear(w.numberByDigest)
	clear(w.digest)
	clear(w.queue)
	w.needed.forget()
	w.queue = w.queue[:0]
	w.ends = w.ends[:0]
	w.bodies = w.bodies[:0]
	w.text = w.text[:0]
	canonicalWriters.Put(w)
}

// canonical writes c and all it calls, in the order in which they are met; callees are
// queued while their callers are written, and come first in the text. The result is
// the writer's.
func (w *canonicalWriter) canonical(c *Computation) []byte {
	w.different = !callsOne(c)
	w.meet(c)
	for k := 0; k < len(w.queue); k++ {
		if k == 0 {
			w.bodies = append(w.bodies, "ENTRY "...)
		}
		b := append(w.bodies, "%c"...)
		b = strconv.AppendInt(b, int64(k), 10)
		b = append(b, " {\n"...)
		b = w.appendBody(b, w.queue[k], &w.numbered)
		w.bodies = append(b, "}\n"...)
		w.ends = append(w.ends, len(w.bodies))
	}
	for k := len(w.ends) - 1; k >= 0; k-- {
		first := 0
		if k > 0 {
			first = w.ends[k-1]
		}
		w.text = append(w.text, w.bodies[first:w.ends[k]]...)
		if k > 0 {
			w.text = append(w.text, '\n')
		}
	}
	return w.text
}

// meet numbers a computation when it is first met and queues it. Equal callees met as
// different computations are one.
func (w *canonicalWriter) meet(c *Computation) int {
	n, ok := w.number[c]
	if ok {
		return n
	}
	n = len(w.queue)
	if w.different && n > 0 { // nothing calls the first
		d := w.digestOf(c)
		if equal, ok := w.numberByDigest[d]; ok {
			w.number[c] = equal
			return equal
		}
		w.numberByDigest[d] = n
	}
	w.queue = append(w.queue, c)
	w.number[c] = n
	return n
}

// callsOne reports whether one computation at most is called, which calls none, as in a
// fusion with reductions by one operation.
func callsOne(c *Computation) bool {
	var one *Computation
	for _, i := range c.Instrs {
		if !i.calls() {
			continue
		}
		for _, callee := range i.Callees() {
			if one != nil && callee != one {
				return false
			}
			one = callee
		}
	}
	return one == nil || !slices.ContainsFunc(one.Instrs, (*Instr).calls)
}

// calls reports whether an instruction has callees.
func (i *Instr) calls() bool {
	a := &i.Attrs
	return a.Calls != nil || a.Select != nil || a.ToApply != nil || len(a.Branches) > 0
}

// appendNumber names a computation by its number. Its digest, which prints it, was made
// before its caller was begun.
func (w *canonicalWriter) appendNumber(b []byte, c *Computation) []byte {
	n := w.meet(c)
	b = append(b, 'c')
	return strconv.AppendInt(b, int64(n), 10)
}

// appendDigest names a computation by its digest.
func (w *canonicalWriter) appendDigest(b []byte, c *Computation) []byte {
	d := w.digest[c]
	return hex.AppendEncode(b, d[:])
}

// appendInstr names an instruction by its position.
func (w *canonicalWriter) appendInstr(b []byte, i *Instr) []byte {
	n := w.needed.position(i)
	b = append(b, 'v')
	return strconv.AppendInt(b, int64(n), 10)
}

// digestOf is the SHA-256 of c's text with callees named by their digests:
// equal for computations that are equal all the way down, made once each.
func (w *canonicalWriter) digestOf(c *Computation) [32]byte {
	if d, ok := w.digest[c]; ok {
		return d
	}
	w.digestCallees(c)
	w.scratch = w.appendBody(w.scratch[:0], c, &w.digesting)
	d := sha256.Sum256(w.scratch)
	w.digest[c] = d
	return d
}

// digestCallees makes the digests of what c calls, so that no text is printed while
// another one is.
func (w *canonicalWriter) digestCallees(c *Computation) {
	if !w.different {
		return
	}
	for _, i := range c.Instrs {
		if !i.calls() {
			continue
		}
		for _, callee := range i.Callees() {
			w.digestOf(callee)
		}
	}
}

// appendBody prints the instructions, callees under the names given.
func (w *canonicalWriter) appendBody(b []byte, c *Computation, p *printOptions) []byte {
	w.digestCallees(c)
	for _, i := range w.needed.of(c) {
		b = append(b, "  "...)
		if i == c.Root {
			b = append(b, "ROOT "...)
		}
		b = append(i.append(b, p), '\n')
	}
	return b
}

// Needed lists the parameters by number, then what the root needs, operands
// first, in depth-first order.
func (c *Computation) Needed() []*Instr {
	n := neededOrder{elsewhere: map[*Instr]int{}}
	return n.of(c)
}

// Executed lists what a run of c has to execute: the parameters by number, what the root
// needs, and what the instructions with side effects need, and these, in the order of
// the text. Operands come first.
func (c *Computation) Executed(e *Effects) []*Instr {
	n := neededOrder{elsewhere: map[*Instr]int{}}
	order := n.of(c)
	for _, i := range c.Instrs {
		if !n.has(i) && e.Of(i) != nil {
			order = n.needs(i)
		}
	}
	return slices.Clip(order)
}

// A neededOrder lists what computations need, one after the other, in memory that is
// used again.
type neededOrder struct {
	order []*Instr
	// Position of each instruction in order: by its place, 1 more, 0 for one that was not
	// visited; and of those whose place is not theirs.
	instrs    []*Instr // of the computation
	positions []int
	elsewhere map[*Instr]int
	stack     []pendingInstr
}

// A pendingInstr is an instruction of which the operands up to next were visited.
type pendingInstr struct {
	i    *Instr
	next int
}

// of is Computation.Needed. The list is valid until the next call.
func (n *neededOrder) of(c *Computation) []*Instr {
	n.forget()
	n.instrs = c.Instrs
	n.positions = slices.Grow(n.positions, len(c.Instrs))[:len(c.Instrs)]
	clear(n.positions)
	for _, p := range c.Params {
		n.add(p)
	}
	return n.needs(c.Root)
}

// needs appends what i needs, and i, to the list.
func (n *neededOrder) needs(i *Instr) []*Instr {
	n.stack = append(n.stack, pendingInstr{i: i})
	for len(n.stack) > 0 {
		top := &n.stack[len(n.stack)-1]
		if n.has(top.i) {
			n.stack = n.stack[:len(n.stack)-1]
			continue
		}
		if top.next < len(top.i.Operands) {
			top.next++
			if o := top.i.Operands[top.next-1]; !n.has(o) {
				n.stack = append(n.stack, pendingInstr{i: o})
			}
			continue
		}
		n.add(top.i)
		n.stack = n.stack[:len(n.stack)-1]
	}
	return n.order
}

// add appends an instruction.
func (n *neededOrder) add(i *Instr) {
	at := len(n.order)
	if n.inPlace(i) {
		n.positions[i.place] = at + 1
	} else {
		n.elsewhere[i] = at
	}
	n.order = append(n.order, i)
}

// inPlace reports whether an instruction has its own place.
func (n *neededOrder) inPlace(i *Instr) bool {
	return i.place < len(n.instrs) && n.instrs[i.place] == i
}

// position is that of an instruction, −1 for one that was not visited.
func (n *neededOrder) position(i *Instr) int {
	if n.inPlace(i) {
		return n.positions[i.place] - 1
	}
	if at, ok := n.elsewhere[i]; ok {
		return at
	}
	return -1
}

// has reports whether an instruction was visited.
func (n *neededOrder) has(i *Instr) bool {
	return n.position(i) >= 0
}

// forget empties the list and lets go of what was in it.
func (n *neededOrder) forget() {
	clear(n.elsewhere)
	clear(n.order)
	n.instrs = nil
	clear(n.stack[:cap(n.stack)])
	n.order = n.order[:0]
	n.stack = n.stack[:0]
}

// Fusions lists the computations to tune: those called by fusion instructions
// of the entry and of what it calls, in order, each once; the entry itself
// when there are none. See symtile/partition for modules that are not fused yet.
func (m *Module) Fusions() []*Computation {
	if all := m.fused(); len(all) > 0 {
		return all
	}
	return []*Computation{m.Entry}
}

// fused lists the computations called by fusion instructions.
func (m *Module) fused() []*Computation {
	var all []*Computation
	seen := map[*Computation]bool{}
	var walk func(c *Computation)
	walk = func(c *Computation) {
		for _, i := range c.Instrs {
			for _, callee := range i.Callees() {
				switch {
				case seen[callee]:
				case i.Op == OpFusion:
					seen[callee] = true
					all = append(all, callee)
				case i.Op == OpCall || i.Op == OpAsyncStart ||
					i.Op == OpWhile || i.Op == OpConditional:
					seen[callee] = true
					walk(callee)
				}
			}
		}
	}
	walk(m.Entry)
	return all
}

// Users maps each instruction of c to the instructions that take it as an
// operand, in order, each once.
func (c *Computation) Users() map[*Instr][]*Instr {
	users := make(map[*Instr][]*Instr, len(c.Instrs))
	for _, i := range c.Instrs {
		for _, o := range i.Operands {
			u := users[o]
			if len(u) == 0 || u[len(u)-1] != i {
				users[o] = append(u, i)
			}
		}
	}
	return users
}
