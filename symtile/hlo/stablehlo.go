package hlo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/source"
)

// The StableHLO reader is a recursive-descent parser over the scanner of the HLO
// parser. It makes HLO instructions while it reads, one operation at a time, and
// keeps no syntax tree:
//
//	file      = { alias | mesh | metadata } ( module | { function } ) .
//	module    = "module" [ "@" name ] [ "attributes" dict ] "{" { function } "}" .
//	function  = "func.func" [ visibility ] "@" name "(" arguments ")"
//	            [ "->" types ] [ "attributes" dict ] "{" block "}" .
//	block     = [ "^" name "(" arguments ")" ":" ] { operation } .
//	operation = [ results "=" ] name ( pretty | generic ) [ location ] .
//	generic   = "(" operands ")" [ "<" dict ">" ] [ "(" regions ")" ] [ dict ]
//	            ":" "(" types ")" "->" types .
//
// The files follow the grammar: stablehlo_block.go has blocks and their values,
// stablehlo_parse.go both forms of operations, stablehlo_attr.go, _dense.go and
// _type.go what these consist of; stablehlo_dispatch.go finds the lowering of an
// operation, and _lower.go, _flow.go, _window.go and _misc.go are the lowerings.

// isStableHLO reports whether src looks like StableHLO text: MLIR whose first
// token opens a module or a function, or defines an alias.
func isStableHLO(src []byte) bool {
	s := newScanner("", src)
	s.skip()
	for _, opening := range []string{
		"module @", "module attributes", "module {", "func.func", "sdy.mesh", "\"sdy.mesh\"", "\"builtin.module\"",
		"builtin.module", "#", "!", "{-#", "ML\xefR",
	} {
		if s.Has(opening) {
			return true
		}
	}
	return false
}

// parseStableHLO reads a module of MLIR text in the StableHLO dialect: what
// JAX's lowered.as_text() and PyTorch/XLA print, in pretty or generic form.
func parseStableHLO(file string, src []byte) (*parser, error) {
	m := &mlir{
		parser:    *newParser(file, src),
		funcs:     map[string]*function{},
		usedNames: map[string]int{},
	}
	m.numbers = map[*Instr][]*Instr{}
	if m.Has("ML\xefR") {
		return nil, m.failNext("this is MLIR bytecode; print it as text first (stablehlo-translate --deserialize, or lowered.as_text())")
	}
	if err := m.topLevel(); err != nil {
		return nil, err
	}
	return &m.parser, m.finish()
}

// mlir reads MLIR text into an HLO module, one operation at a time: there is
// no tree in between.
type mlir struct {
	parser
	// funcs are the functions by symbol, calls the references to them; calls are
	// tied to functions at the end of the file.
	funcs map[string]*function
	calls []mlirCall
	// usedNames are the names of computations, for UniqueName.
	usedNames map[string]int
	// depth is the number of regions around the next operation.
	depth int
	// located are the instructions that have a location, whose text may refer to
	// one of locations, which can stand at the end of the file.
	located   []located
	locations origin.Locations
	// quantized is set once a quantized type has been read.
	quantized bool
	// freeOps are operations that were read and whose memory is used again.
	freeOps []*mlirOp
}

// A function is a func.func.
type function struct {
	// comp is the computation; nil for a declaration without a body.
	comp *Computation
	// private functions are not candidates for the entry.
	private bool
	// at is where the symbol stands.
	at position
}

// An mlirCall is a reference to a function, resolved when all are read.
type mlirCall struct {
	instr *Instr
	// attr is the attribute of HLO that the computation becomes: to_apply or
	// called_computations.
	attr   string
	symbol string
	// at is where the symbol stands.
	at position
}

// topLevel reads the file: aliases, one module or bare functions, metadata.
func (m *mlir) topLevel() error {
	modules := 0
	for m.peek() != 0 || m.At < len(m.Src) {
		at := m.nextPosition()
		var err error
		switch {
		case m.word("module"), m.word("builtin.module"):
			modules++
			err = m.moduleBody()
		case m.accept(`"builtin.module"`):
			modules++
			err = m.genericModule()
		default:
			err = m.topItem()
		}
		if err != nil {
			return err
		}
		if modules > 1 {
			return m.Fail(at, "a second module; a file holds one")
		}
	}
	return nil
}

// topItem reads what may stand in a module as well as outside of one.
func (m *mlir) topItem() error {
	switch c := m.peek(); {
	case c == '#' || c == '!': // #map = …, #loc = …
		m.define()
		return nil
	case m.accept("{-#"):
		m.SkipTo("#-}")
		return nil
	case m.word("func.func"), m.word("func"):
		return m.function()
	case m.accept(`"func.func"`):
		return m.genericFunction()
	case m.Has("sdy.mesh"), m.Has(`"sdy.mesh"`): // devices; what lies on which is not looked at
		m.skipLineBalanced()
		return nil
	case m.declares():
		m.skipLineBalanced()
		return nil
	}
	return m.failNext("expected a module or a func.func, found %s", m.found())
}

// declares reports whether an operation of a dialect that is not read comes next, which
// beside functions declares something, util.global for instance. What uses it says its
// name.
func (m *mlir) declares() bool {
	saved := m.Here()
	defer func() { m.Place = saved }()
	m.accept(`"`)
	full, err := m.bareWord("an operation")
	dialect, _, dotted := strings.Cut(full, ".")
	return err == nil && dotted && dialect != "builtin" &&
		dialects[dialect] == nil &&
		suggest(dialect, commonDialects) == ""
}

// skipLineBalanced moves to the end of the line, or further when brackets
// opened on it close later.
func (m *mlir) skipLineBalanced() {
	depth := 0
	for ; m.At < len(m.Src); m.At++ {
		switch c := m.Src[m.At]; {
		case c == '"':
			if m.skipString() != nil {
				return
			}
			m.At--
		case c == '<' || closing[c] != 0:
			depth++
		case c == '-' && m.Has("->"):
			m.At++
		case c == '>' || c == ')' || c == ']' || c == '}':
			depth--
		case c == '\n' && depth <= 0:
			return
		case c == '\n':
			m.Line = m.Line + 1
			m.LineStart = m.At + 1
		}
	}
}

// moduleBody reads [@name] [attributes {…}] { functions } after the word
// module.
func (m *mlir) moduleBody() error {
	if m.peek() == '@' {
		name, err := m.symbol()
		if err != nil {
			return err
		}
		m.module.Name = hloName(name)
	}
	if m.word("attributes") {
		if _, err := m.dict(); err != nil {
			return err
		}
	}
	if err := m.expect("{"); err != nil {
		return err
	}
	for !m.accept("}") {
		if err := m.topItem(); err != nil {
			return err
		}
	}
	return m.location()
}

// genericModule reads "builtin.module"() <{sym_name = "…"}> ({ … }) : () -> ().
func (m *mlir) genericModule() error {
	attrs, err := m.genericHead()
	if err != nil {
		return err
	}
	if name, ok := attrs.find("sym_name"); ok {
		m.module.Name = hloName(m.unquoted(name))
	}
	for !m.accept("}") {
		if err := m.topItem(); err != nil {
			return err
		}
	}
	return m.genericTail()
}

// genericHead reads () <{…}> ({ and returns the properties.
func (m *mlir) genericHead() (attrs mlirAttrs, err error) {
	if err = m.expect("("); err == nil {
		err = m.expect(")")
	}
	if err == nil && m.accept("<") {
		if attrs, err = m.dict(); err == nil {
			err = m.expect(">")
		}
	}
	if err == nil {
		err = m.expect("(")
	}
	if err == nil {
		err = m.expect("{")
	}
	return attrs, err
}

// genericTail reads ) {…} : () -> ().
func (m *mlir) genericTail() error {
	if err := m.expect(")"); err != nil {
		return err
	}
	if m.peek() == '{' {
		if _, err := m.dict(); err != nil {
			return err
		}
	}
	for _, text := range []string{":", "(", ")", "->", "(", ")"} {
		if err := m.expect(text); err != nil {
			return err
		}
	}
	return m.location()
}

// location passes over loc(…), which may follow almost anything.
func (m *mlir) location() error {
	_, err := m.place()
	return err
}

// place reads loc(…), if it is there, and returns what is in the parentheses.
func (m *mlir) place() (span, error) {
	if m.peek() != 'l' || !m.word("loc") {
		return span{}, nil
	}
	if m.peek() != '(' {
		return span{}, m.failNext("expected ( after loc, found %s", m.found())
	}
	s, err := m.group()
	s.At++
	s.end--
	return s, err
}

// A located is an instruction, or several of one operation, and where its
// location stands.
type located struct {
	instrs []*Instr
	place  span
}

// setSources gives every instruction the metadata that its location says.
func (m *mlir) setSources() {
	for _, x := range m.located {
		metadata := m.locations.Metadata(m.text(x.place))
		for _, i := range x.instrs {
			if metadata != "" {
				i.Attrs.Other = append(i.Attrs.Other, Attr{"metadata", metadata})
			}
		}
	}
}

// define keeps #loc3 = loc(…) and passes over other aliases.
func (m *mlir) define() {
	start := m.At
	m.skipLineBalanced()
	m.locations.Define(string(m.Src[start:m.At]))
}

// function reads func.func [public|private] @name(arguments) -> results
// [attributes {…}] { body }.
func (m *mlir) function() error {
	f := &function{}
	for _, word := range []string{"public", "private", "nested"} {
		f.private = m.word(word) && word == "private" ||
			f.private
	}
	f.at = m.nextPosition()
	name, err := m.symbol()
	if err != nil {
		return err
	}
	args, err := m.arguments()
	if err != nil {
		return err
	}
	results, err := m.functionResults()
	if err != nil {
		return err
	}
	if m.word("attributes") {
		if _, err := m.dict(); err != nil {
			return err
		}
	}
	if m.peek() != '{' {
		return m.declare(name, f)
	}
	b := m.newBlock(name, nil)
	if err := m.regionWith(b, args); err != nil {
		return err
	}
	if err := m.checkReturn(b, results, f.at); err != nil {
		return err
	}
	f.comp = b.comp
	return m.declare(name, f)
}

// declare adds a function under its symbol.
func (m *mlir) declare(name string, f *function) error {
	if m.funcs[name] != nil {
		return m.Fail(f.at, "@%s is defined twice", name)
	}
	m.funcs[name] = f
	return m.location()
}

// functionResults reads -> type or -> (types); none at all is no result.
func (m *mlir) functionResults() ([]Shape, error) {
	if !m.accept("->") {
		return nil, nil
	}
	if m.peek() != '(' {
		s, err := m.typ(0)
		return []Shape{s}, err
	}
	m.accept("(")
	return m.typeList(")")
}

// genericFunction reads "func.func"() <{sym_name = "…", …}> ({ ^bb0(…): … }) : () -> ().
func (m *mlir) genericFunction() error {
	f := &function{at: m.nextPosition()}
	attrs, err := m.genericHead()
	if err != nil {
		return err
	}
	sym, ok := attrs.find("sym_name")
	if !ok {
		return m.Fail(f.at, "func.func needs sym_name")
	}
	name := m.unquoted(sym)
	if v, ok := attrs.find("sym_visibility"); ok {
		f.private = m.unquoted(v) == "private"
	}
	if m.accept("}") {
		if err := m.genericTail(); err != nil {
			return err
		}
		return m.declare(name, f)
	}
	b := m.newBlock(name, nil)
	if err := m.blockBody(b, nil); err != nil {
		return err
	}
	f.comp = b.comp
	if err := m.genericTail(); err != nil {
		return err
	}
	return m.declare(name, f)
}

// checkReturn compares the types of the values b returns with those its
// function or operation declares.
func (m *mlir) checkReturn(b *block, want []Shape, at position) error {
	if len(b.returned) != len(want) {
		return m.Fail(
			at, "@%s returns %d values and declares %d",
			b.comp.Name,
			len(b.returned), len(want),
		)
	}
	for k, i := range b.returned {
		if !i.Shape.Compatible(want[k]) {
			return m.Fail(
				at, "@%s returns %s as result %d and declares %s",
				b.comp.Name, i.Shape, k, want[k],
			)
		}
	}
	return nil
}

// finish ties calls to functions and picks the entry.
func (m *mlir) finish() error {
	for _, c := range m.calls {
		f := m.funcs[c.symbol]
		if f == nil {
			return m.Fail(
				c.at, "there is no function @%s%s",
				c.symbol, m.didYouMean(c.symbol),
			)
		}
		if f.comp == nil {
			return m.Fail(c.at, "@%s is declared without a body", c.symbol)
		}
		callee{instr: c.instr, attr: c.attr}.set(f.comp)
	}
	m.setSources()
	entry, err := m.entry()
	if err != nil {
		return err
	}
	m.module.Entry = entry
	if m.module.Name == "" {
		m.module.Name = entry.Name
	}
	return m.refuseRecursion()
}

// didYouMean suggests the function whose name is nearest, for errors.
func (m *mlir) didYouMean(symbol string) string {
	near := Nearest(
		symbol, m.symbols(func(*function) bool { return true }),
	)
	if near != "" {
		return fmt.Sprintf(" (did you mean @%s?)", near)
	}
	return ""
}

// entry is @main, or the only function that is not private.
func (m *mlir) entry() (*Computation, error) {
	if f := m.funcs["main"]; f != nil && f.comp != nil {
		return f.comp, nil
	}
	public := m.symbols(func(f *function) bool {
		return !f.private && f.comp != nil
	})
	switch len(public) {
	case 0:
		return nil, m.Fail(source.Start(), "there is no function here to start from; expected func.func public @main")
	case 1:
		return m.funcs[public[0]].comp, nil
	}
	return nil, m.Fail(
		m.funcs[public[1]].at, "the module has no @main and more than one public function: @%s",
		strings.Join(public[:min(len(public), 8)], ", @"),
	)
}

// symbols lists functions in the order of the file.
func (m *mlir) symbols(wanted func(*function) bool) []string {
	var names []string
	for name, f := range m.funcs {
		if wanted(f) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return m.funcs[a].at.At - m.funcs[b].at.At
	})
	return names
}

// symbol reads @name or @"any name".
func (m *mlir) symbol() (string, error) {
	if err := m.expect("@"); err != nil {
		return "", err
	}
	if m.At < len(m.Src) && m.Src[m.At] == '"' {
		start := m.At
		if err := m.skipString(); err != nil {
			return "", err
		}
		return unescaped(string(m.Src[start+1 : m.At-1])), nil
	}
	return m.bareWord("a symbol")
}

// bareWord reads an identifier of MLIR.
func (m *mlir) bareWord(what string) (string, error) {
	m.skip()
	start := m.At
	for m.At < len(m.Src) &&
		(isNameByte(m.Src[m.At]) &&
			m.Src[m.At] != '-' || m.Src[m.At] == '$') {
		m.At++
	}
	if m.At == start {
		return "", m.failNext("expected %s, found %s", what, m.found())
	}
	if m.At-start > MaxName {
		return "", m.failNext("a name of %d bytes; at most %d are read", m.At-start, MaxName)
	}
	return string(m.Src[start:m.At]), nil
}

// hloName is an MLIR name in the letters of HLO names.
func hloName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && isNameByte(byte(r)) {
			return r
		}
		return '_'
	}, name)
	if clean = clean[:min(len(clean), MaxName/2)]; clean == "" {
		return "_"
	}
	return strings.ReplaceAll(clean, "->", "__")
}

// unescaped resolves \" \\ \n \t and \XX of an MLIR string.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b bytes.Buffer
	for k := 0; k < len(text); k++ {
		var code byte
		switch {
		case text[k] != '\\' || k+1 == len(text):
			b.WriteByte(text[k])
			continue
		case k+2 < len(text) &&
			isHex(text[k+1]) &&
			isHex(text[k+2]):
			fmt.Sscanf(text[k+1:k+3], "%02x", &code)
			b.WriteByte(code)
			k += 2
			continue
		case text[k+1] == 'n':
			code = '\n'
		case text[k+1] == 't':
			code = '\t'
		default:
			code = text[k+1]
		}
		b.WriteByte(code)
		k++
	}
	return b.String()
}

// isHex reports whether c is a hexadecimal digit.
func isHex(c byte) bool {
	return c >= '0' && c <= '9' ||
		c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// word consumes text when it comes next as a whole word.
func (m *mlir) word(text string) bool {
	m.skip()
	return m.parser.word(text)
}
