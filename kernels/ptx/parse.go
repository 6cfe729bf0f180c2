package ptx

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/source"
)

// Limits of the text that Parse reads.
const (
	// maxRegs is the maximum number of registers of one declaration.
	maxRegs = 1 << 20
	// maxElements is the maximum number of elements of a vector operand.
	maxElements = 256
	// maxDepth is the maximum depth of nested { }.
	maxDepth = 64
	// maxBytes is the maximum number of elements of an array.
	maxBytes = 1 << 40
)

// Parse reads a PTX module. The file name is for errors, which are *Error. Names
// must be declared before they are used, except for labels. Debugging directives
// (.file, .loc, .section, .pragma) are skipped; textures and surfaces are not
// read. What Parse takes still has to pass [Module.Check].
func Parse(file string, src []byte) (*Module, error) {
	p := &parser{
		scanner: scanner{source.NewScanner(cmp.Or(file, "ptx"), string(src))},
		opcodes: map[string]Opcode{},
	}
	p.m = &Module{file: file, src: p.Src}
	p.mean = strings.Count(p.Src, ";") /
		max(1, strings.Count(p.Src, ".entry"))
	if err := p.module(); err != nil {
		return nil, err
	}
	return p.m, nil
}

// parser reads one module.
type parser struct {
	scanner
	m *Module
	e *Entry
	// opcodes caches opcodes by their text.
	opcodes map[string]Opcode
	// sets maps the prefixes of register sets with numbers to their indices.
	sets map[string]int32
	// singles maps the names of registers without numbers to their sets.
	singles map[string]int32
	// scopes are the open blocks.
	scopes []scope
	// labels holds the labels of the entry so far and how often each was renamed.
	labels map[string]int
	// mean is an estimate of the number of statements of an entry.
	mean int
	// slab is the array that operands are cut from, so that instructions need no
	// allocation each.
	slab []Operand
	// stack holds the operands of the list that is being read.
	stack []Operand
}

// scope is an open { }.
type scope struct {
	// from is its first statement.
	from int
	// sets and singles hold the register names that its declarations hide; -1 is
	// a name that did not exist.
	sets    map[string]int32
	singles map[string]int32 // …
	// labels maps the labels placed in it to their names in the entry.
	labels map[string]string
	// params maps its .param variables, which other blocks have, too, to their names in
	// the entry.
	params map[string]string
}

// module reads directives up to the end of the text.
func (p *parser) module() error {
	for {
		if p.peek() == 0 && p.At >= len(p.Src) {
			return p.complete()
		}
		start := p.Here()
		if err := p.directive(start, p.dotted()); err != nil {
			return err
		}
	}
}

// complete reports a module without a version or a target.
func (p *parser) complete() error {
	switch {
	case p.m.Version == Version{}:
		return p.expected(".version")
	case p.m.Target == Target{}:
		return p.expected(".target")
	}
	return nil
}

// directive reads the module-level directive called name, which starts at start.
func (p *parser) directive(start place, name string) (err error) {
	switch name {
	case "version":
		p.m.Version, err = p.version()
	case "target":
		p.m.Target, err = p.target()
	case "address_size":
		var n int
		n, err = p.count("the address size 64", 64)
		if err == nil && n != 64 {
			err = p.Fail(start, "only 64-bit addresses are read")
		}
	case "file", "loc", "pragma":
		p.SkipLine()
	case "section":
		p.SkipTo("}")
	case "visible", "extern", "weak", "entry", "global", "shared", "const":
		return p.declaration(start, name)
	case "func":
		return p.function(Local)
	default:
		p.backTo(start)
		return p.expected("a directive such as .entry or .shared")
	}
	return err
}

// backTo returns to an earlier place.
func (p *parser) backTo(start place) {
	p.At = start.At
	p.Line = start.Line
	p.LineStart = start.LineStart
}

// version reads the operand of .version.
func (p *parser) version() (Version, error) {
	p.skip()
	start := p.Here()
	v, err := parseVersion(p.numberText())
	if err != nil {
		return v, p.Fail(start, "%v", err)
	}
	return v, nil
}

// target reads the operand of .target.
func (p *parser) target() (Target, error) {
	p.skip()
	start := p.Here()
	t, err := parseTarget(p.name())
	if err != nil {
		return t, p.Fail(start, "%v", err)
	}
	for p.take(',') {
		option := p.name()
		if option != "debug" && option != "texmode_independent" && option != "texmode_unified" {
			return t, p.expected("a target option such as debug")
		}
	}
	return t, nil
}

// linkages are the directives of linkage.
var linkages = map[string]Linkage{
	"visible": Visible,
	"extern":  Extern,
	"weak":    Weak,
}

// declaration reads an entry or a variable; name is its first directive.
func (p *parser) declaration(start place, name string) error {
	link, has := linkages[name]
	if has {
		p.skip()
		start = p.Here()
		name = p.dotted()
	}
	switch name {
	case "entry":
		return p.entry(link)
	case "func":
		return p.function(link)
	case "shared", "global", "const":
		v, err := p.variable(link, name, start)
		p.m.Vars = append(p.m.Vars, v)
		return err
	}
	p.backTo(start)
	return p.expected(".entry, .shared, .global or .const")
}

// variable reads what follows the state space of a variable.
func (p *parser) variable(link Linkage, space string, start place) (Var, error) {
	v := Var{
		Linkage: link,
		Space:   modByName()[space],
		Line:    int32(start.Line),
	}
	var err error
	if v.Align, v.Type, err = p.alignedType(); err != nil {
		return v, err
	}
	if v.Name, err = p.newName("the name of the variable"); err != nil {
		return v, err
	}
	if v.Array, v.Count, err = p.extent(); err != nil {
		return v, err
	}
	if p.take('=') {
		if err := p.initial(&v); err != nil {
			return v, err
		}
	}
	return v, p.want(';')
}

// newName reads a name that is being declared.
func (p *parser) newName(what string) (string, error) {
	name := p.name()
	if name == "" {
		return "", p.expected(what)
	}
	return name, nil
}

// alignedType reads [.align n] .type, in the order of either.
func (p *parser) alignedType() (align int, t Type, err error) {
	for range 2 {
		p.skip()
		start := p.Here()
		name := p.dotted()
		if name == "align" {
			if align, err = p.count("an alignment in bytes", 1<<20); err != nil {
				return
			}
			continue
		}
		if t = modByName()[name]; !t.IsType() {
			p.backTo(start)
			return align, t, p.expected("a type such as .b32")
		}
		if next := p.peek(); next != '.' {
			return align, t, nil
		}
		if mark := p.Here(); p.dotted() != "ptr" {
			p.backTo(mark)
		} else if err := p.pointer(); err != nil {
			return align, t, err
		}
		return align, t, nil
	}
	return align, t, p.expected("a type such as .b32")
}

// pointer skips the attributes that .ptr gives the memory behind a parameter.
func (p *parser) pointer() error {
	for p.peek() == '.' {
		if p.dotted() == "align" {
			if _, err := p.count("an alignment in bytes", 1<<20); err != nil {
				return err
			}
		}
	}
	return nil
}

// extent reads [n], [n][m] … or [], where there is one; n is the product.
func (p *parser) extent() (array bool, n int, err error) {
	start := p.Here()
	for n = 1; p.take('['); array = true {
		if !array && p.take(']') {
			return true, 0, nil
		}
		size, err := p.count("a number of elements", maxBytes)
		if err != nil {
			return true, 0, err
		}
		if size > maxBytes/max(1, n) {
			return true, 0, p.Fail(start, "an array of more than %d elements", maxBytes)
		}
		n *= size
		if err := p.want(']'); err != nil {
			return true, 0, err
		}
	}
	if !array {
		n = 0
	}
	return array, n, nil
}

// initial reads the initial value of a variable.
func (p *parser) initial(v *Var) error {
	if !v.Array {
		o, err := p.number()
		v.Init = []int64{int64(o.As(v.Type))}
		return err
	}
	if err := p.want('{'); err != nil {
		return err
	}
	for {
		o, err := p.number()
		if err != nil {
			return err
		}
		v.Init = append(v.Init, int64(o.As(v.Type)))
		if !p.take(',') {
			return p.want('}')
		}
	}
}

// entry reads an entry, whose directive was read.
func (p *parser) entry(link Linkage) error {
	e := Entry{Linkage: link, Line: int32(p.Line)}
	var err error
	if e.Name, err = p.newName("the name of the entry"); err != nil {
		return err
	}
	p.begin(&e)
	if err := p.params(); err != nil {
		return err
	}
	if err := p.performance(); err != nil {
		return err
	}
	if err := p.want('{'); err != nil {
		return err
	}
	if err := p.body(); err != nil {
		return err
	}
	p.m.Entries = append(p.m.Entries, e)
	return nil
}

// params reads the parameters of an entry.
func (p *parser) params() error {
	if !p.take('(') || p.take(')') {
		return nil
	}
	for {
		if err := p.param(); err != nil {
			return err
		}
		if !p.take(',') {
			return p.want(')')
		}
	}
}

// param reads one parameter.
func (p *parser) param() (err error) {
	p.skip()
	start := p.Here()
	if p.dotted() != "param" {
		p.backTo(start)
		return p.expected(".param")
	}
	a := Param{Line: int32(p.Line)}
	if a.Align, a.Type, err = p.alignedType(); err != nil {
		return err
	}
	if a.Name, err = p.newName("the name of the parameter"); err != nil {
		return err
	}
	array, n, err := p.extent()
	if err == nil && array && n == 0 {
		err = p.Fail(start, "a parameter array says how many elements it has")
	}
	a.Count = n
	p.e.Params = append(p.e.Params, a)
	return err
}

// performance reads the directives between the parameters and the body.
func (p *parser) performance() (err error) {
	for p.peek() == '.' && err == nil {
		start := p.Here()
		e := p.e
		switch name := p.dotted(); name {
		case "maxntid":
			e.MaxNTid, err = p.dims()
		case "reqntid":
			e.ReqNTid, err = p.dims()
		case "reqnctapercluster":
			e.ReqNCTAPerCluster, err = p.dims()
		case "minnctapersm":
			e.MinNCTAPerSM, err = p.count("a number of blocks", 1<<20)
		case "maxnctapersm":
			e.MaxNCTAPerSM, err = p.count("a number of blocks", 1<<20)
		case "maxnreg":
			e.MaxNReg, err = p.count("a number of registers", 1<<20)
		case "maxclusterrank":
			e.MaxClusterRank, err = p.count("a number of blocks", 1<<20)
		case "explicitcluster":
			e.ExplicitCluster = true
		case "pragma":
			p.SkipLine()
		default:
			p.backTo(start)
			return p.expected("{ or a directive such as .maxntid")
		}
	}
	return err
}

// dims reads one to three sizes.
func (p *parser) dims() (d [3]int, err error) {
	d = [3]int{1, 1, 1}
	for i := range d {
		d[i], err = p.count("a size", 1<<30)
		if err != nil || i == 2 || !p.take(',') {
			return d, err
		}
	}
	return d, nil
}

// body reads statements up to the } that closes the entry.
func (p *parser) body() error {
	p.e.Body = make([]Stmt, 0, p.mean+8)
	for {
		if p.skipBlanks() {
			p.comment()
			continue
		}
		if p.At >= len(p.Src) {
			return p.expected("} at the end of the entry")
		}
		closed, err := p.statement()
		if closed || err != nil {
			return err
		}
	}
}

// comment keeps a comment of a line of its own or at the end of a line.
func (p *parser) comment() {
	s := p.stmt(StmtComment)
	s.Text = strings.Trim(
		strings.TrimPrefix(p.restOfLine(), "//"), " \t\r",
	)
	p.e.Body = append(p.e.Body, s)
}

// stmt is a statement at the current place.
func (p *parser) stmt(k StmtKind) Stmt {
	return Stmt{
		Kind: k,
		Line: int32(p.Line),
		Col:  int32(p.At - p.LineStart + 1),
	}
}

// statement reads a statement; closed reports that it was the } of the entry.
func (p *parser) statement() (closed bool, err error) {
	s := p.stmt(StmtInstr)
	switch p.Src[p.At] {
	case '{':
		return false, p.open(s)
	case '}':
		p.At++
		return p.close(s)
	case ';':
		p.At++
		return false, nil
	case '.':
		return false, p.bodyDirective(s)
	case '@':
		p.At++
		if err := p.guard(&s.Instr.Guard); err != nil {
			return false, err
		}
		p.skip()
	}
	return false, p.instruction(s)
}

// open begins a block.
func (p *parser) open(s Stmt) error {
	if len(p.scopes) == maxDepth {
		return p.Fail(p.Here(), "more than %d nested blocks", maxDepth)
	}
	p.At++
	s.Kind = StmtOpen
	p.scopes = append(p.scopes, scope{
		from:   len(p.e.Body),
		labels: map[string]string{},
	})
	p.e.Body = append(p.e.Body, s)
	return nil
}

// close ends a block, or the entry. Labels of the block that the entry knows
// already get another name.
func (p *parser) close(s Stmt) (closed bool, err error) {
	top := p.scopes[len(p.scopes)-1]
	p.scopes = p.scopes[:len(p.scopes)-1]
	p.rename(&top)
	if len(p.scopes) == 0 {
		return true, nil
	}
	restore(p.sets, top.sets)
	restore(p.singles, top.singles)
	s.Kind = StmtClose
	p.e.Body = append(p.e.Body, s)
	return false, nil
}

// restore restores what a block had hidden; -1 is a name that did not exist.
func restore(names, hidden map[string]int32) {
	for name, set := range hidden {
		if set < 0 {
			delete(names, name)
		} else {
			names[name] = set
		}
	}
}

// rename gives the labels of a block the names that they have in the entry.
func (p *parser) rename(top *scope) {
	other := false
	for label, name := range top.labels {
		other = other || label != name
	}
	if !other {
		return
	}
	body := p.e.Body[top.from:]
	for i := range body {
		s := &body[i]
		if name, ours := top.labels[s.Text]; ours && s.Kind == StmtLabel {
			s.Text = name
		}
		for k := range s.Instr.Operands {
			if o := &s.Instr.Operands[k]; o.Kind == KindSym {
				if name, ours := top.labels[o.Sym]; ours {
					o.Sym = name
				}
			}
		}
	}
}

// guard reads a guard behind its @.
func (p *parser) guard(g *Guard) error {
	g.Neg = p.take('!')
	p.skip()
	start := p.Here()
	name := p.name()
	r, known := p.register(name)
	if !known {
		return p.Fail(start, "expected a predicate register after @, found %q, which is not declared", name)
	}
	g.Reg = r
	return nil
}

// bodyDirective reads a declaration in a body.
func (p *parser) bodyDirective(s Stmt) error {
	start := p.Here()
	switch name := p.dotted(); name {
	case "reg":
		return p.regs(s)
	case "branchtargets":
		return p.branchTargets(s)
	case "shared", "local", "global", "const", "param":
		v, err := p.variable(Local, name, start)
		if name == "param" {
			v.Name = p.argument(v.Name)
		}
		s.Kind = StmtVar
		s.Index = int32(len(p.e.Vars))
		p.e.Vars = append(p.e.Vars, v)
		p.e.Body = append(p.e.Body, s)
		return err
	case "loc", "pragma", "file":
		p.SkipLine()
		return nil
	}
	p.backTo(start)
	return p.expected("a declaration such as .reg or .shared")
}

// argument gives a .param variable of a block a name that no other has.
func (p *parser) argument(name string) string {
	top := &p.scopes[len(p.scopes)-1]
	if top.params == nil {
		top.params = map[string]string{}
	}
	full := name
	taken := func(v Var) bool { return v.Name == full }
	if slices.ContainsFunc(p.e.Vars, taken) {
		full = name + "_" + strconv.Itoa(len(p.e.Vars))
	}
	top.params[name] = full
	return full
}

// renamed is the name of a variable of an open block in the entry.
func (p *parser) renamed(name string) string {
	for i := range slices.Backward(p.scopes) {
		if full, known := p.scopes[i].params[name]; known {
			return full
		}
	}
	return name
}

// regs reads the register sets of one .reg.
func (p *parser) regs(s Stmt) error {
	_, t, err := p.alignedType()
	if err != nil {
		return err
	}
	for {
		p.skip()
		start := p.Here()
		name, err := p.newName("the name of a register")
		if err != nil {
			return err
		}
		set := RegSet{Prefix: name, Type: t}
		if p.take('<') {
			if set.N, err = p.count("a number of registers", maxRegs); err != nil {
				return err
			}
			if err := p.want('>'); err != nil {
				return err
			}
			if set.N == 0 {
				return p.Fail(start, "a declaration of no registers")
			}
		}
		p.declare(s, set)
		if !p.take(',') {
			return p.want(';')
		}
	}
}

// declare enters a register set under its name and keeps what it hides.
func (p *parser) declare(s Stmt, set RegSet) {
	s.Kind = StmtReg
	s.Index = int32(len(p.e.Regs))
	p.e.Body = append(p.e.Body, s)
	p.e.Regs = append(p.e.Regs, set)
	top := &p.scopes[len(p.scopes)-1]
	names, hidden := p.singles, &top.singles
	if set.N > 0 {
		names, hidden = p.sets, &top.sets
	}
	if *hidden == nil {
		*hidden = map[string]int32{}
	}
	if _, again := (*hidden)[set.Prefix]; !again {
		before, was := names[set.Prefix]
		if !was {
			before = -1
		}
		(*hidden)[set.Prefix] = before
	}
	names[set.Prefix] = s.Index + 1
}

// register is the register called name.
func (p *parser) register(name string) (Reg, bool) {
	if set, known := p.singles[name]; known {
		return Reg{Set: set}, true
	}
	first := max(0, len(name)-8) // of at most eight digits
	for i := len(name); i > first && isDigit(name[i-1]); i-- {
		if name[i-1] == '0' && i < len(name) {
			// The number of a register does not start with 0.
			continue
		}
		set, known := p.sets[name[:i-1]]
		if !known {
			continue
		}
		n, _ := strconv.Atoi(name[i-1:])
		if n < p.e.Regs[set-1].N {
			return Reg{set, int32(n)}, true
		}
	}
	return Reg{}, false
}

// instruction reads a label or an instruction whose guard was read.
func (p *parser) instruction(s Stmt) error {
	start := p.Here()
	name := p.name()
	if name == "" {
		return p.expected("an instruction")
	}
	behind := p.Here()
	if s.Instr.Guard.None() &&
		!p.Has("::") && p.take(':') {
		return p.label(s, name)
	}
	p.backTo(behind)
	p.At = p.opcodeEnd()
	text := p.Src[start.At:p.At]
	opcode, known := p.opcodes[text]
	if !known {
		var err error
		if opcode, err = ParseOpcode(text); err != nil {
			return p.Fail(start, "%v", err)
		}
		p.opcodes[text] = opcode
	}
	s.Instr.Opcode = opcode
	if !p.take(';') {
		read := p.operands
		if opcode.Op == OpCall {
			read = p.callOperands
		}
		if err := read(&s.Instr); err != nil {
			return err
		}
		if err := p.want(';'); err != nil {
			return err
		}
	}
	s.Instr.unbrace()
	p.e.Body = append(p.e.Body, s)
	return nil
}

// unbrace takes the braces off a vector of one element, which compilers write round
// the value of a load, a store or an atomic operation without a vector.
func (in *Instr) unbrace() {
	switch in.Opcode.Op {
	case OpLd, OpSt, OpAtom, OpRed:
	default:
		return
	}
	if in.Opcode.Vec() > 1 {
		return
	}
	for i := range in.Operands {
		o := &in.Operands[i]
		if o.Kind == KindVec && len(o.List) == 1 {
			*o = o.List[0]
		}
	}
}

// label places a label; one of a block that the entry knows already gets another
// name when the block is closed.
func (p *parser) label(s Stmt, name string) error {
	s.Kind, s.Text = StmtLabel, name
	p.e.Body = append(p.e.Body, s)
	full := name
	for len(p.scopes) > 1 {
		if _, taken := p.labels[full]; !taken {
			break
		}
		p.labels[name]++
		full = name + "_" + strconv.Itoa(p.labels[name])
	}
	p.labels[full] = 0
	top := &p.scopes[len(p.scopes)-1]
	if _, twice := top.labels[name]; !twice {
		top.labels[name] = full
	}
	return nil
}

// operands reads operands up to the ;.
func (p *parser) operands(in *Instr) error {
	base := len(p.stack)
	for {
		p.skip()
		start := p.Here()
		o, err := p.operand()
		if err != nil {
			return err
		}
		if len(p.stack)-base == maxOperands {
			return p.Fail(start, "more than %d operands", maxOperands)
		}
		p.stack = append(p.stack, o)
		if !p.take(',') {
			in.Operands = p.cut(base)
			return nil
		}
	}
}

// cut moves the operands of the stack from base on to their final place.
func (p *parser) cut(base int) []Operand {
	n := len(p.stack) - base
	if cap(p.slab)-len(p.slab) < n {
		p.slab = make([]Operand, 0, max(1024, n))
	}
	at := len(p.slab)
	p.slab = append(p.slab, p.stack[base:]...)
	p.stack = p.stack[:base]
	return p.slab[at:len(p.slab):len(p.slab)]
}

// operand reads one operand.
func (p *parser) operand() (Operand, error) {
	switch c := p.peek(); {
	case c == '{':
		p.At++
		return p.vector()
	case c == '[':
		p.At++
		return p.memory()
	case c == '!':
		p.At++
		o, err := p.named()
		if err == nil && o.Kind != KindReg {
			err = p.expected("a predicate register after !")
		}
		o.Neg = true
		return o, err
	case c == '-' || isDigit(c):
		return p.number()
	}
	o, err := p.named()
	if err != nil || !p.take('|') {
		return o, err
	}
	second, err := p.named()
	base := len(p.stack)
	p.stack = append(p.stack, o, second)
	return Operand{Kind: KindPair, List: p.cut(base)}, err
}

// named reads a register, a special register, _, or a symbol with an offset.
func (p *parser) named() (Operand, error) {
	p.skip()
	start := p.Here()
	name := p.name()
	switch {
	case name == "":
		return Operand{}, p.expected("an operand")
	case name == "_":
		return Operand{Kind: KindSink}, nil
	case name == "WARP_SZ":
		return Int(32), nil
	}
	if r, known := p.register(name); known {
		return Operand{Kind: KindReg, Reg: r}, nil
	}
	if name[0] != '%' {
		offset, err := p.offset()
		return Operand{Kind: KindSym, Sym: p.renamed(name), Bits: offset}, err
	}
	if p.At+1 < len(p.Src) && p.Src[p.At] == '.' {
		name = p.Src[start.At : p.At+2]
	}
	if s, known := specialByName()[name]; known {
		p.At = start.At + len(name)
		return Sreg(s), nil
	}
	return Operand{}, p.Fail(start, "register %s is not declared", name)
}

// offset reads a sequence of +n, +-n and -n and returns its sum.
func (p *parser) offset() (sum uint64, err error) {
	for {
		c := p.peek()
		if c == '+' {
			p.At++
		} else if c != '-' {
			return sum, nil
		}
		p.skip()
		start := p.Here()
		o, err := p.number()
		if err == nil && o.Kind != KindInt {
			err = p.Fail(start, "expected an offset in bytes")
		}
		if err != nil {
			return sum, err
		}
		sum += o.Bits
	}
}

// vector reads a vector behind its {.
func (p *parser) vector() (Operand, error) {
	base := len(p.stack)
	for {
		var o Operand
		var err error
		p.skip()
		start := p.Here()
		c := p.peek()
		if c == '-' || isDigit(c) {
			o, err = p.number()
		} else {
			o, err = p.named()
		}
		if err != nil {
			return o, err
		}
		if len(p.stack)-base == maxElements {
			return o, p.Fail(start, "more than %d elements", maxElements)
		}
		p.stack = append(p.stack, o)
		if !p.take(',') {
			v := Operand{Kind: KindVec, List: p.cut(base)}
			return v, p.want('}')
		}
	}
}

// memory reads an address, or a tensor map with coordinates, behind the [.
func (p *parser) memory() (Operand, error) {
	o, err := p.address()
	if err != nil || p.take(']') {
		return o, err
	}
	if !p.take(',') {
		return o, p.expected("]")
	}
	if err := p.want('{'); err != nil {
		return o, err
	}
	at, err := p.vector()
	if err != nil {
		return o, err
	}
	base := len(p.stack)
	p.stack = append(p.stack, o, at)
	return Operand{Kind: KindTensor, List: p.cut(base)},
		p.want(']')
}

// address reads an address: a number, or a register or a symbol with an offset.
func (p *parser) address() (Operand, error) {
	p.skip()
	start := p.Here()
	c := p.peek()
	if c == '-' || isDigit(c) {
		o, err := p.number()
		if err == nil && o.Kind != KindInt {
			err = p.Fail(start, "expected an address")
		}
		return Operand{Kind: KindMem, Bits: o.Bits}, err
	}
	o, err := p.named()
	switch {
	case err != nil:
		return o, err
	case o.Kind == KindSym:
		o.Kind = KindMem
		return o, nil
	case o.Kind != KindReg:
		return o, p.Fail(start, "expected the register, the variable or the parameter that an address starts from")
	}
	o.Kind = KindMem
	o.Bits, err = p.offset()
	return o, err
}
