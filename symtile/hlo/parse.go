package hlo

import (
	"bytes"
	"strconv"

	"github.com/tilewright/tilewright/symtile/hlo/origin"
)

// parseHLO reads HLO text in two steps: text to instructions, and names of
// computations to computations.
func parseHLO(file string, src []byte) (*parser, error) {
	p := newParser(file, src)
	if err := p.file(); err != nil {
		return nil, err
	}
	return p, p.resolve()
}

// A parser reads HLO text. It is used once.
type parser struct {
	scanner
	module  *Module
	byName  map[string]*Computation
	callees []callee
	// frames are the tables of source places that metadata refers to.
	frames origin.Frames
	// depth counts the computations and operands that are open inside each other.
	depth int
	// numbers has, of operations such as dynamic_reshape, the operands that say
	// extents, which HLO has as attributes.
	numbers map[*Instr][]*Instr
	// looked is the bytes that instrsUntil has read.
	looked int
	// instrSlab and operandSlab are memory for the next instructions and
	// operands: modules of a hundred thousand instructions are read with few
	// allocations.
	instrSlab   []Instr
	operandSlab []*Instr
	// slab is the size of the last instrSlab.
	slab int
}

// newParser returns a parser of src; file stands in errors.
func newParser(file string, src []byte) *parser {
	p := &parser{
		scanner: newScanner(file, src),
		module:  &Module{},
		byName:  map[string]*Computation{},
	}
	p.shapes = map[string]Shape{}
	return p
}

// slabSize is the most instructions allocated at once, which is cheaper than one by one.
// The first are few: 64 are more than the allocator keeps for small objects, and most
// fusions have fewer.
const slabSize, firstSlab = 64, 8

// newInstr returns an empty instruction at the current place.
func (p *parser) newInstr(pos Pos) *Instr {
	if len(p.instrSlab) == 0 {
		p.slab = min(max(2*p.slab, firstSlab), slabSize)
		p.instrSlab = make([]Instr, p.slab)
	}
	i := &p.instrSlab[0]
	p.instrSlab = p.instrSlab[1:]
	i.Pos = pos
	return i
}

// operandList copies operands to memory that several instructions share.
func (p *parser) operandList(operands []*Instr) []*Instr {
	n := len(operands)
	if n == 0 {
		return nil
	}
	if n > len(p.operandSlab) {
		p.operandSlab = make([]*Instr, max(n, 2*slabSize))
	}
	list := p.operandSlab[:n:n]
	p.operandSlab = p.operandSlab[n:]
	copy(list, operands)
	return list
}

// A callee is a computation named by an attribute. It is resolved after the last
// one is read, since text may call computations that follow.
type callee struct {
	instr *Instr
	// attr is the attribute that names it.
	attr string
	name string
	// at is where the value of the attribute stands, for errors.
	at position
}

// file reads an optional header and computations to the end. The entry is the
// computation marked ENTRY, or the last.
func (p *parser) file() error {
	if p.peek(); p.word("HloModule") {
		if err := p.header(); err != nil {
			return err
		}
		for _, name := range origin.Tables {
			if err := p.table(name); err != nil {
				return err
			}
		}
	}
	for p.peek() != 0 || p.At < len(p.Src) {
		if err := p.computation(); err != nil {
			return err
		}
	}
	if len(p.module.Computations) == 0 {
		return p.failNext("there is no computation here; expected HLO text")
	}
	if p.module.Entry == nil {
		p.module.Entry = p.module.Computations[len(p.module.Computations)-1]
	}
	return nil
}

// word consumes text when it comes next as a whole word.
func (p *parser) word(text string) bool {
	end := p.At + len(text)
	return p.Has(text) &&
		(end == len(p.Src) || !isNameByte(p.Src[end])) &&
		p.accept(text)
}

// header reads the rest of HloModule name, attribute=value, …; attributes stay
// text.
func (p *parser) header() error {
	name, err := p.name("a module name")
	p.module.Name = name
	p.accept(":") // as XLA wrote it until 2020
	for err == nil && p.nextOnLine(',') {
		p.At++
		var a Attr
		if a.Name, err = p.name("an attribute"); err != nil {
			return err
		}
		if err = p.expect("="); err == nil {
			a.Value, err = p.raw()
			p.module.Attrs = append(p.module.Attrs, a)
		}
	}
	return err
}

// table reads a table of source places: its name and numbered entries.
func (p *parser) table(name string) error {
	if p.skip(); !p.word(name) {
		return nil
	}
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		n, err := p.integer()
		if err != nil {
			return err
		}
		entry, err := p.raw()
		if err != nil {
			return err
		}
		p.frames.Add(name, n, entry)
	}
	return nil
}

// nextOnLine reports whether c comes next on this line.
func (p *parser) nextOnLine(c byte) bool {
	p.skipBlanks()
	return p.At < len(p.Src) && p.Src[p.At] == c
}

// computation reads [ENTRY] name [signature] { instructions }, or a bare list
// of instructions.
func (p *parser) computation() error {
	start := p.nextPosition()
	entry := p.word("ENTRY")
	p.skip()
	if p.Has("ROOT ") || p.assigns() {
		return p.bareComputation(start)
	}
	c := &Computation{Name: "main"}
	if p.peek() != '{' {
		name, err := p.name("a computation")
		if err != nil {
			return err
		}
		c.Name = name
	}
	if err := p.signature(); err != nil {
		return err
	}
	if err := p.expect("{"); err != nil {
		return err
	}
	if err := p.body(c, start); err != nil {
		return err
	}
	if err := p.expect("}"); err != nil {
		return err
	}
	for p.nextOnLine(',') { // execution_thread="main"
		p.At++
		if _, err := p.raw(); err != nil {
			return err
		}
	}
	return p.define(c, entry, start)
}

// assigns reports whether "name =" comes next.
func (p *parser) assigns() bool {
	saved := p.scanner
	defer func() { p.scanner = saved }()
	_, err := p.name("a name")
	return err == nil && p.peek() == '='
}

// bareComputation reads instructions that have no computation around them;
// they are the entry when nothing came before.
func (p *parser) bareComputation(start position) error {
	c := &Computation{Name: "main"}
	if err := p.body(c, start); err != nil {
		return err
	}
	return p.define(
		c, len(p.module.Computations) == 0, start,
	)
}

// define adds a computation under its name; start is where it begins, for
// errors.
func (p *parser) define(c *Computation, entry bool, start position) error {
	if p.byName[c.Name] != nil {
		return p.Fail(start, "computation %s is defined twice", c.Name)
	}
	if entry && p.module.Entry != nil {
		return p.Fail(
			start, "%s is a second ENTRY; %s is the first", c.Name, p.module.Entry.Name,
		)
	}
	if entry {
		p.module.Entry = c
	}
	p.byName[c.Name] = c
	p.module.Computations = append(p.module.Computations, c)
	return nil
}

// signature skips (p0: f32[2]) -> f32[2]: the body says it again.
func (p *parser) signature() error {
	if p.peek() == '(' {
		if _, err := p.balanced(); err != nil {
			return err
		}
	}
	if !p.accept("->") {
		return nil
	}
	_, err := p.shape(0)
	return err
}

// balanced reads a bracketed text, returning what is inside.
func (p *parser) balanced() (string, error) {
	p.skip()
	start, open := p.At, p.Here()
	p.At++
	for {
		if _, err := p.raw(); err != nil {
			return "", err
		}
		if p.At >= len(p.Src) {
			return "", p.Fail(open, "the bracket opened here is never closed")
		}
		switch c := p.Src[p.At]; {
		case c == closing[p.Src[start]]:
			p.At++
			return string(p.Src[start+1 : p.At-1]), nil
		case c == '\n':
			p.Newline()
		case c == ',' || c == ';':
			p.At++
		default:
			return "", p.Fail(
				p.Here(), "expected %q to close the bracket, found %q",
				closing[p.Src[start]], c,
			)
		}
	}
}

// body reads instructions up to } or the end of the file.
func (p *parser) body(c *Computation, start position) error {
	n := p.instrsUntil("\n}")
	s := &scope{
		comp:   c,
		byName: make(map[string]*Instr, n),
	}
	c.Instrs = make([]*Instr, 0, n)
	for c0 := p.peek(); c0 != '}' && c0 != 0; c0 = p.peek() {
		if p.accept(";") {
			continue
		}
		if c.Name == "main" && !p.startsInstr() {
			break // a bare list ends where a computation starts
		}
		if err := p.bodyInstr(s); err != nil {
			return err
		}
	}
	if len(c.Instrs) == 0 {
		return p.Fail(start, "computation %s has no instructions", c.Name)
	}
	if c.Root == nil {
		c.Root = c.Instrs[len(c.Instrs)-1]
	}
	return p.params(c)
}

// startsInstr reports whether "ROOT" or "name =" comes next.
func (p *parser) startsInstr() bool {
	p.skip()
	return p.Has("ROOT ") || p.assigns()
}

// bodyInstr reads one instruction of a body, which may be its root.
func (p *parser) bodyInstr(s *scope) error {
	isRoot := p.word("ROOT")
	at := p.nextPosition()
	i, err := p.instr(s)
	if err != nil {
		return err
	}
	if first := s.byName[i.Name]; first != nil && !s.rename(first) {
		return p.Fail(at, "%s is defined twice in %s", i.Name, s.comp.Name)
	}
	if isRoot && s.comp.Root != nil {
		return p.Fail(at, "%s is a second ROOT; %s is the first", i.Name, s.comp.Root.Name)
	}
	if isRoot {
		s.comp.Root = i
	}
	s.add(i)
	return nil
}

// A scope is a computation that is being read.
type scope struct {
	comp   *Computation
	byName map[string]*Instr
	// made are the instructions that have no name in the text: operands written
	// in place, elements of tuples, splats.
	made map[*Instr]bool
	// elements are those of made that name#k stands for.
	elements map[elementOf]*Instr
}

// elementOf is element k of a tuple.
type elementOf struct {
	tuple *Instr
	k     int
}

// add appends an instruction to the computation.
func (s *scope) add(i *Instr) {
	s.byName[i.Name] = i
	i.place = len(s.comp.Instrs)
	s.comp.Instrs = append(s.comp.Instrs, i)
}

// addUnnamed adds an instruction under the first of the names base, base.1, …
// that is free; a later instruction of the text may take the name from it.
func (s *scope) addUnnamed(base string, i *Instr) {
	i.Name = s.free(base)
	if s.made == nil {
		s.made = map[*Instr]bool{}
	}
	s.made[i] = true
	s.add(i)
}

// free is the first of base, base.1, … that names no instruction.
func (s *scope) free(base string) string {
	name := base
	for n := len(s.made); s.byName[name] != nil; n++ {
		name = base + "." + strconv.Itoa(n+1)
	}
	return name
}

// rename gives i another name, if its name is not from the text.
func (s *scope) rename(i *Instr) bool {
	if !s.made[i] {
		return false
	}
	delete(s.byName, i.Name)
	free := s.free(i.Name + ".0")
	i.Name = free
	s.byName[free] = i
	return true
}

// maxLookahead bounds the bytes that instrsUntil reads at once. Each computation
// calls it once; so that a file of many small ones is not read again and again, all
// calls together read no more than has been parsed, that much, and minLookahead each.
const (
	maxLookahead = 1 << 16
	minLookahead = 1 << 8
)

// instrsUntil guesses how many instructions there are before the text that ends
// them, to size tables by.
func (p *parser) instrsUntil(ending string) int {
	ahead := min(maxLookahead, max(minLookahead, p.At+maxLookahead-p.looked))
	rest := p.Src[p.At:min(len(p.Src), p.At+ahead)]
	if end := bytes.Index(rest, []byte(ending)); end >= 0 {
		rest = rest[:end]
	}
	p.looked += len(rest)
	return min(bytes.Count(rest, []byte(" = ")), 1<<20)
}

// params collects the parameters of c by number: each number from 0 on stands
// once.
func (p *parser) params(c *Computation) error {
	byNumber := map[int]*Instr{}
	for _, i := range c.Instrs {
		if i.Op != OpParameter {
			continue
		}
		if first := byNumber[i.Attrs.Param]; first != nil {
			return p.failAt(
				i, "%s and %s are both parameter %d", first.Name, i.Name, i.Attrs.Param,
			)
		}
		byNumber[i.Attrs.Param] = i
	}
	for n := range len(byNumber) {
		if byNumber[n] == nil {
			return p.failAt(
				c.Root, "%s has %d parameters but none is number %d", c.Name, len(byNumber), n,
			)
		}
		c.Params = append(c.Params, byNumber[n])
	}
	return nil
}

// failAt reports an error at an instruction read before.
func (p *parser) failAt(i *Instr, format string, args ...any) error {
	at := position{Line: i.Pos.Line}
	for n := 1; n < i.Pos.Line; n++ {
		at.LineStart += bytes.IndexByte(p.Src[at.LineStart:], '\n') + 1
	}
	at.At = at.LineStart + i.Pos.Col - 1
	return p.Fail(at, format, args...)
}
