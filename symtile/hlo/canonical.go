package hlo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	w := &canonicalWriter{number: map[*Computation]int{}}
	w.computation(c)
	slices.Reverse(w.texts) // callers were finished first
	return strings.Join(w.texts, "\n")
}

// Fingerprint is the SHA-256 of the canonical text.
func (c *Computation) Fingerprint() [32]byte {
	return sha256.Sum256([]byte(c.Canonical()))
}

// A canonicalWriter prints a computation and all it calls. Computations are
// numbered as they are met; equal ones, by the digest of their text, share a
// number.
type canonicalWriter struct {
	// number is the number of each computation that was met.
	number map[*Computation]int
	// numberByDigest finds the number of an equal computation.
	numberByDigest map[[32]byte]int
	// digest is the digest of each computation with its callees; see digestOf.
	digest map[*Computation][32]byte
	// queue holds the computations in the order of their numbers, texts their
	// text.
	queue []*Computation
	texts []string
}

// computation writes c and all it calls, in the order in which they are met;
// callees are queued by name while their callers are written.
func (w *canonicalWriter) computation(c *Computation) {
	w.numberByDigest = map[[32]byte]int{}
	w.digest = map[*Computation][32]byte{}
	w.name(c)
	for k := 0; k < len(w.queue); k++ {
		head := fmt.Sprintf("%%c%d {\n", k)
		if k == 0 {
			head = "ENTRY " + head
		}
		w.texts = append(
			w.texts,
			head+w.queue[k].canonicalBody(w.name)+"}\n",
		)
	}
}

// name numbers a computation when it is first met and queues its text. Equal
// callees met as different computations are one.
func (w *canonicalWriter) name(c *Computation) string {
	n, ok := w.number[c]
	if !ok {
		d := [32]byte{}
		if len(w.queue) > 0 { // nothing calls the first
			d = w.digestOf(c)
		}
		if n, ok = w.numberByDigest[d]; !ok {
			n = len(w.queue)
			w.numberByDigest[d] = n
			w.queue = append(w.queue, c)
		}
		w.number[c] = n
	}
	return fmt.Sprintf("c%d", n)
}

// digestOf is the SHA-256 of c's text with callees named by their digests:
// equal for computations that are equal all the way down, made once each.
func (w *canonicalWriter) digestOf(c *Computation) [32]byte {
	if d, ok := w.digest[c]; ok {
		return d
	}
	d := sha256.Sum256([]byte(c.canonicalBody(func(callee *Computation) string {
		d := w.digestOf(callee)
		return hex.EncodeToString(d[:])
	})))
	w.digest[c] = d
	return d
}

// canonicalBody prints the instructions, callees under the names given.
func (c *Computation) canonicalBody(name func(*Computation) string) string {
	order := c.Needed()
	number := make(map[*Instr]int, len(order))
	for n, i := range order {
		number[i] = n
	}
	p := printOptions{
		instr:     func(i *Instr) string { return fmt.Sprintf("v%d", number[i]) },
		comp:      name,
		canonical: true,
	}
	var b []byte
	for _, i := range order {
		b = append(b, "  "...)
		if i == c.Root {
			b = append(b, "ROOT "...)
		}
		b = append(i.append(b, p), '\n')
	}
	return string(b)
}

// Needed lists the parameters by number, then what the root needs, operands
// first, in depth-first order.
func (c *Computation) Needed() []*Instr {
	order := slices.Clone(c.Params)
	seen := make(map[*Instr]bool, len(c.Instrs))
	for _, p := range order {
		seen[p] = true
	}
	type frame struct {
		i    *Instr
		next int
	}
	stack := []frame{{i: c.Root}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if seen[top.i] {
			stack = stack[:len(stack)-1]
			continue
		}
		if top.next < len(top.i.Operands) {
			top.next++
			if o := top.i.Operands[top.next-1]; !seen[o] {
				stack = append(stack, frame{i: o})
			}
			continue
		}
		seen[top.i] = true
		order = append(order, top.i)
		stack = stack[:len(stack)-1]
	}
	return order
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

// Uses counts how often one run of the module executes each computation that
// it reaches by fusions, calls and control flow; the entry counts once. The body
// and the condition of a while count as often as its backend_config says
// (known_trip_count), or once; every branch of a conditional counts once.
func (m *Module) Uses() map[*Computation]float64 {
	var order []*Computation // callees before their callers
	seen := map[*Computation]bool{}
	var walk func(c *Computation)
	walk = func(c *Computation) {
		seen[c] = true
		c.eachExecuted(func(callee *Computation, _ float64) {
			if !seen[callee] {
				walk(callee)
			}
		})
		order = append(order, c)
	}
	walk(m.Entry)
	uses := map[*Computation]float64{m.Entry: 1}
	for _, c := range slices.Backward(order) {
		c.eachExecuted(func(callee *Computation, times float64) {
			uses[callee] += uses[c] * times
		})
	}
	return uses
}

// eachExecuted calls do for the computations that each fusion, call and control
// flow of c executes, with how often.
func (c *Computation) eachExecuted(do func(callee *Computation, times float64)) {
	for _, i := range c.Instrs {
		switch i.Op {
		case OpFusion, OpCall, OpWhile, OpConditional:
			times := i.tripCount()
			for _, callee := range i.Callees() {
				do(callee, times)
			}
		}
	}
}

// tripCount is how often XLA has found a while to run; 1 where that is not known,
// and for other instructions.
func (i *Instr) tripCount() float64 {
	if i.Op != OpWhile {
		return 1
	}
	var known struct {
		TripCount struct {
			N int64 `json:"n,string"`
		} `json:"known_trip_count"`
	}
	err := json.Unmarshal([]byte(i.Text("backend_config")), &known)
	if err != nil || known.TripCount.N < 1 {
		return 1
	}
	return float64(known.TripCount.N)
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
