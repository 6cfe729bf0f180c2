package ptx

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tilewright/tilewright/symtile/source"
)

// Limits of a module, from the CUDA C++ programming guide's table of technical
// specifications and the PTX ISA's section on kernel parameters.
const (
	// MaxParamBytes is the maximum size of the parameters of an entry.
	MaxParamBytes = 4096
	// MaxStaticBytes is the maximum size of shared memory that is not .extern.
	MaxStaticBytes = 48 * 1024
	// MaxThreads is the maximum number of threads of a block.
	MaxThreads     = 1024
	maxClusterCTAs = 16
	// maxNReg is what a thread has after setmaxnreg; ptxas ignores 256 with a warning.
	maxNReg = 256
)

// Check reports the first thing that ptxas would have against the module, as an
// *Error: an opcode that is not in the table or that the version or the target
// does not have, an operand of another kind or type, a register, label or
// variable that is not declared or declared twice, a known address that is not
// aligned or out of bounds, an end that control falls off, too many parameters
// or too much shared memory, directives that contradict each other. Its line is
// that of the text the module was parsed from, otherwise of [Module.Text].
func (m *Module) Check() error {
	c := checker{m: m, forms: map[Opcode][]match{}}
	err := c.ascii()
	if err == nil {
		err = c.module()
	}
	if p, is := err.(*problem); is {
		return p.place(m)
	}
	return nil
}

// problem is an error whose place in the text has not been determined yet.
type problem struct {
	line, col int32
	// what is the text to look for: the caret goes under its first occurrence in
	// the line.
	what, msg string
}

// Error is the message without a place.
func (p *problem) Error() string { return p.msg }

// place finds the problem in the text of the module.
func (p *problem) place(m *Module) *Error {
	text := m.src
	if text == "" {
		text = string(m.Text())
	}
	start := 0
	for n := int32(1); n < p.line; n++ {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			break
		}
		start += end + 1
	}
	from := min(len(text), start+max(0, int(p.col)-1))
	rest, _, _ := strings.Cut(text[from:], "\n")
	caret := len(rest) - len(strings.TrimLeft(rest, " \t"))
	if k := indexWord(rest, p.what); k > 0 {
		caret = k
	}
	at := source.Place{
		At:        from + caret,
		Line:      int(p.line),
		LineStart: start,
	}
	return source.ErrorAt(
		cmp.Or(m.file, "ptx"),
		text, at, p.msg,
	)
}

// checker checks one module, entry by entry.
type checker struct {
	// m and e are the module and the current entry.
	m *Module
	e *Entry
	// forms caches the matches of opcodes.
	forms map[Opcode][]match
	// vars are the variables of the module, and locals those of the entry.
	vars   map[string]*Var
	locals map[string]*Var // of the entry
	// static is the number of bytes of shared memory that the module's variables
	// take.
	static int
	// params maps parameters to their indices, and starts holds their offsets.
	params map[string]int
	starts []int // offsets of the parameters
	labels map[string]bool
	// lists are the labels of lists of branch targets.
	lists map[string]bool
	// functions are those of the module.
	functions map[string]*Function
	// open tells for each register set whether it is visible at the current
	// statement.
	open []bool
	// scopes are the open blocks.
	scopes []regScope
	// stmt is the current statement, for errors.
	stmt *Stmt
}

// regScope is the registers that an open { } declares.
type regScope struct {
	sets []int32
	// size is the number of registers of each set, by prefix; single registers
	// have a dot behind their names.
	size map[string]int
	// minNumber holds the smallest number of each group of names that end in a
	// number, by the part before it.
	minNumber map[string]int
}

// indexWord is the index of word in s where it is not a part of a longer name or
// number; -1 if there is none.
func indexWord(s, word string) int {
	for from := 0; word != ""; {
		k := strings.Index(s[from:], word)
		if k < 0 {
			break
		}
		k += from
		end := k + len(word)
		if (k == 0 ||
			!isName(word[0]) ||
			!isName(s[k-1]) && s[k-1] != '%') &&
			(end == len(s) ||
				!isName(word[len(word)-1]) ||
				!isName(s[end])) {
			return k
		}
		from = k + 1
	}
	return -1
}

// at is the error for a line and column.
func (c *checker) at(line, col int32, what, format string, args ...any) error {
	return &problem{
		line, col, what, fmt.Sprintf(format, args...),
	}
}

// fail is the error for the current statement.
func (c *checker) fail(what, format string, args ...any) error {
	return c.at(
		c.stmt.Line, c.stmt.Col,
		what, format, args...,
	)
}

// targets are the PTX ISA versions that first have a target; section 11.1.2 and
// the release notes.
var targets = map[string]Version{
	"sm_20": {2, 0}, "sm_30": {3, 0},
	"sm_32": {4, 0}, "sm_35": {3, 1},
	"sm_37": {4, 1}, "sm_50": {4, 0},
	"sm_52": {4, 1}, "sm_53": {4, 2},
	"sm_60": {5, 0}, "sm_61": {5, 0},
	"sm_62": {5, 0},
	"sm_70": {6, 0}, "sm_72": {6, 1},
	"sm_75": {6, 3}, "sm_80": {7, 0},
	"sm_86": {7, 1}, "sm_87": {7, 4},
	"sm_89": {7, 8}, "sm_90": {7, 8},
	"sm_90a": {8, 0}, "sm_100": {8, 6},
	"sm_100a": {8, 6}, "sm_101": {8, 6},
	"sm_101a": {8, 6}, "sm_103": {8, 8},
	"sm_103a": {8, 8}, "sm_120": {8, 7},
	"sm_120a": {8, 7},
	"sm_121":  {8, 8}, "sm_121a": {8, 8},
	"sm_110": {9, 0}, "sm_110a": {9, 0},
}

// ascii refuses other characters, in comments too: ptxas before 13 does.
func (c *checker) ascii() error {
	line := int32(1)
	for i, b := range []byte(c.m.src) {
		switch {
		case b == '\n':
			line++
		case b >= utf8.RuneSelf:
			r, _ := utf8.DecodeRuneInString(c.m.src[i:])
			return c.at(line, 1, string(r), "%q is no ASCII character", r)
		}
	}
	return nil
}

// module checks directives and variables of the module, and its entries.
func (c *checker) module() error {
	first, known := targets[c.m.Target.String()]
	switch {
	case !known:
		return c.at(
			2, 1, "sm_", "no target %s is known", c.m.Target,
		)
	case !c.m.Version.AtLeast(first):
		return c.at(
			2, 1, "sm_", "%s needs PTX ISA %s, this is %s",
			c.m.Target, first, c.m.Version,
		)
	}
	c.vars = map[string]*Var{}
	for i := range c.m.Vars {
		err := c.variable(&c.m.Vars[i], c.vars, &c.static)
		if err != nil {
			return err
		}
	}
	if err := c.declare(); err != nil {
		return err
	}
	for i := range c.m.Functions {
		if err := c.function(&c.m.Functions[i]); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for i := range c.m.Entries {
		e := &c.m.Entries[i]
		if names[e.Name] || c.vars[e.Name] != nil || c.functions[e.Name] != nil {
			return c.at(
				e.Line, 1, e.Name, "%s is declared twice", e.Name,
			)
		}
		names[e.Name] = true
		if err := c.entry(e); err != nil {
			return err
		}
	}
	return nil
}

// powerOfTwo reports whether n is a power of two.
func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// stored reports whether variables, parameters and registers may have type t:
// the alternate formats live in types of their width.
func stored(t Type) bool {
	switch t {
	case B8, B16, B32, B64, U8, U16, U32,
		U64, S8, S16, S32, S64, F16, F16x2, F32,
		F64:
		return true
	}
	return false
}

// variable declares v among names; static is the shared memory before it and
// behind it.
func (c *checker) variable(
	v *Var, names map[string]*Var, static *int,
) error {
	switch {
	case names[v.Name] != nil:
		return c.at(
			v.Line, 1, v.Name, "%s is declared twice", v.Name,
		)
	case !stored(v.Type):
		return c.at(
			v.Line, 1,
			"."+v.Type.String(), "a variable cannot have the type .%s",
			v.Type,
		)
	case v.Align != 0 && !powerOfTwo(v.Align):
		return c.at(
			v.Line, 1, ".align", "the alignment %d is no power of two", v.Align,
		)
	case v.Array && v.Count == 0 && v.Linkage != Extern:
		return c.at(
			v.Line, 1, v.Name, "%s has no size; only an .extern variable gets it at launch", v.Name,
		)
	case len(v.Init) > 0 && v.Space == ModShared:
		return c.at(v.Line, 1, "=", "shared memory has no initial value")
	case len(v.Init) > max(1, v.Count):
		return c.at(
			v.Line, 1, "=", "%d initial values for %d elements",
			len(v.Init), max(1, v.Count),
		)
	}
	names[v.Name] = v
	if v.Space == ModShared && v.Linkage != Extern {
		a := max(1, v.Alignment())
		*static = (*static+a-1)/a*a + v.Bytes()
		if *static > MaxStaticBytes || v.Count > MaxStaticBytes {
			return c.at(
				v.Line, 1, v.Name, "more than %d bytes of shared memory; declare it .extern and say its size at launch", MaxStaticBytes,
			)
		}
	}
	return nil
}

// entry checks an entry: its parameters, directives, names and body.
func (c *checker) entry(e *Entry) error {
	c.e = e
	for _, step := range []func() error{c.parameters, c.directives, c.names, c.body} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// parameters checks sizes and alignments of the parameters.
func (c *checker) parameters() error {
	c.params = map[string]int{}
	for i := range c.e.Params {
		p := &c.e.Params[i]
		_, twice := c.params[p.Name]
		switch {
		case twice:
			return c.at(
				p.Line, 1, p.Name, "the parameter %s is declared twice", p.Name,
			)
		case !stored(p.Type):
			return c.at(
				p.Line, 1,
				"."+p.Type.String(), "a parameter cannot have the type .%s",
				p.Type,
			)
		case p.Align != 0 &&
			(!powerOfTwo(p.Align) || p.Align > 128):
			return c.at(
				p.Line, 1, ".align", "the alignment %d of a parameter is no power of two of at most 128", p.Align,
			)
		case p.Count > MaxParamBytes:
			return c.at(
				p.Line, 1, p.Name, "the parameter %s is larger than the %d bytes for all of them", p.Name, MaxParamBytes,
			)
		}
		c.params[p.Name] = i
	}
	var size int
	if c.starts, size = Offsets(c.e.Params); size > MaxParamBytes {
		return c.at(
			c.e.Line, 1, c.e.Name,
			"the parameters of %s take %d bytes, at most %d may be", c.e.Name, size, MaxParamBytes,
		)
	}
	return nil
}

// product is the number of points of three dimensions, where zero is one.
func product(d [3]int) int {
	return max(1, d[0]) *
		max(1, d[1]) *
		max(1, d[2])
}

// directives checks the limits that the entry sets for launches.
func (c *checker) directives() error {
	e := c.e
	clusters := e.ReqNCTAPerCluster != [3]int{} ||
		e.ExplicitCluster || e.MaxClusterRank > 0
	wrong := ""
	switch {
	case product(e.MaxNTid) > MaxThreads ||
		e.MaxNTid[2] > 64:
		wrong = fmt.Sprintf(".maxntid of more than %d threads, or more than 64 in z", MaxThreads)
	case product(e.ReqNTid) > MaxThreads ||
		e.ReqNTid[2] > 64:
		wrong = fmt.Sprintf(".reqntid of more than %d threads, or more than 64 in z", MaxThreads)
	case e.MaxNTid != [3]int{} &&
		e.ReqNTid != [3]int{}:
		wrong = ".maxntid and .reqntid contradict each other: one of them says the threads"
	case e.MinNCTAPerSM > 0 &&
		e.MaxNTid == [3]int{} &&
		e.ReqNTid == [3]int{}:
		wrong = ".minnctapersm needs .maxntid or .reqntid beside it"
	case e.MaxNReg > maxNReg:
		wrong = fmt.Sprintf(".maxnreg of more than %d registers", maxNReg)
	case clusters &&
		(c.m.Target.SM < 90 ||
			!c.m.Version.AtLeast(Version{7, 8})):
		wrong = "clusters need sm_90 and PTX ISA 7.8"
	case product(e.ReqNCTAPerCluster) > maxClusterCTAs || e.MaxClusterRank > maxClusterCTAs:
		wrong = fmt.Sprintf("a cluster of more than %d blocks", maxClusterCTAs)
	case e.ReqNCTAPerCluster != [3]int{} &&
		e.MaxClusterRank > 0:
		wrong = ".reqnctapercluster and .maxclusterrank contradict each other"
	}
	if wrong != "" {
		return c.at(
			e.Line, 1, e.Name, "%s: %s", e.Name, wrong,
		)
	}
	return nil
}

// names checks the variables and labels of the body, which all have names of
// their own.
func (c *checker) names() error {
	c.locals = map[string]*Var{}
	static := c.static
	for i := range c.e.Vars {
		err := c.variable(&c.e.Vars[i], c.locals, &static)
		if err != nil {
			return err
		}
	}
	c.labels = map[string]bool{}
	c.lists = map[string]bool{}
	for i := range c.e.Body {
		s := &c.e.Body[i]
		if s.Kind == StmtTargets && i > 0 && c.e.Body[i-1].Kind == StmtLabel {
			c.lists[c.e.Body[i-1].Text] = true
		}
		if s.Kind != StmtLabel {
			continue
		}
		c.stmt = s
		if c.labels[s.Text] {
			return c.fail(s.Text, "the label %s is placed twice", s.Text)
		}
		c.labels[s.Text] = true
	}
	return nil
}

// lookup is the variable of a name, nil if there is none.
func (c *checker) lookup(name string) *Var {
	if v := c.locals[name]; v != nil {
		return v
	}
	return c.vars[name]
}

// body checks the statements of the entry, and that all labels exist.
func (c *checker) body() error {
	c.open = make([]bool, len(c.e.Regs))
	c.scopes = []regScope{{}}
	for i := range c.e.Body {
		c.stmt = &c.e.Body[i]
		if err := c.statement(c.stmt); err != nil {
			return err
		}
	}
	last := c.last()
	switch {
	case len(c.scopes) != 1:
		return c.at(
			c.e.Line, 1,
			c.e.Name, "%s: a { without }", c.e.Name,
		)
	case last == nil:
		return c.at(
			c.e.Line, 1,
			c.e.Name, "%s has no instruction; it ends with ret", c.e.Name,
		)
	case !ends(last):
		c.stmt = last
		return c.fail("", "control falls off the end of %s; the last instruction must be ret, exit, trap or bra without a guard", c.e.Name)
	}
	return nil
}

// last is the last instruction or label of the body, nil if there is none. Labels at
// the end that no instruction names are those of compilers for debuggers.
func (c *checker) last() *Stmt {
	named := map[string]bool{}
	for i := range c.e.Body {
		for _, o := range c.e.Body[i].Instr.Operands {
			if o.Kind == KindSym {
				named[o.Sym] = true
			}
		}
	}
	for i := len(c.e.Body) - 1; i >= 0; i-- {
		s := &c.e.Body[i]
		if s.Kind == StmtInstr ||
			s.Kind == StmtLabel && named[s.Text] && !c.lists[s.Text] {
			return s
		}
	}
	return nil
}

// statement checks one statement.
func (c *checker) statement(s *Stmt) error {
	switch s.Kind {
	case StmtInstr:
		return c.instr(&s.Instr)
	case StmtReg:
		return c.regs(s)
	case StmtTargets:
		return c.targets(s)
	case StmtOpen:
		c.scopes = append(c.scopes, regScope{})
	case StmtClose:
		top := c.scopes[len(c.scopes)-1]
		for _, i := range top.sets {
			c.open[i] = false
		}
		c.scopes = c.scopes[:len(c.scopes)-1]
		if len(c.scopes) == 0 {
			return c.fail("}", "a } without {")
		}
	}
	return nil
}

// regs checks and declares a register set.
func (c *checker) regs(s *Stmt) error {
	if int(s.Index) >= len(c.e.Regs) ||
		s.Index < 0 || c.open[s.Index] {
		return c.fail(
			"", "a declaration of register set %d of %d, or its second", s.Index, len(c.e.Regs),
		)
	}
	r := &c.e.Regs[s.Index]
	top := &c.scopes[len(c.scopes)-1]
	switch {
	case !top.declare(r):
		return c.fail(r.Prefix, "registers %s are declared twice", r.Prefix)
	case r.Type != Pred && r.Type != B128 &&
		!stored(r.Type):
		return c.fail(
			"."+r.Type.String(), "a register cannot have the type .%s; hold it in bits of its width",
			r.Type,
		)
	case r.Type == B128 && !c.has("8.3", "70"):
		return c.fail(".b128", "128-bit registers need PTX ISA 8.3 and sm_70")
	}
	top.sets = append(top.sets, s.Index)
	c.open[s.Index] = true
	return nil
}

// declare reports whether the names of r are new to the scope: %r<20> has %r12,
// which %r12 and %r1<3> have too.
func (s *regScope) declare(r *RegSet) bool {
	if s.size == nil {
		s.size = map[string]int{}
		s.minNumber = map[string]int{}
	}
	key := r.Prefix
	if r.N == 0 {
		key += "."
	}
	if _, twice := s.size[key]; twice {
		return false
	}
	if minimum, some := s.minNumber[r.Prefix]; some && minimum < r.N {
		return false
	}
	first := r.Prefix
	if r.N > 0 {
		first += "0"
	}
	start := max(1, len(first)-8) // of at most eight digits
	for i := len(first); i > start && isDigit(first[i-1]); i-- {
		head := first[:i-1]
		n, _ := strconv.Atoi(first[i-1:])
		if head == r.Prefix ||
			first[i-1] == '0' && i < len(first) {
			continue
		}
		if n < s.size[head] {
			return false
		}
		minimum, some := s.minNumber[head]
		if !some || n < minimum {
			s.minNumber[head] = n
		}
	}
	s.size[key] = r.N
	return true
}

// has reports whether the module's version and target are these or later.
func (c *checker) has(isa, sm string) bool {
	v, _ := parseVersion(isa)
	t, _ := parseTarget("sm_" + sm)
	return c.m.Version.AtLeast(v) && c.m.Target.Runs(t)
}

// instr checks an instruction: its guard, its form and modifiers, its operands,
// and further rules.
func (c *checker) instr(in *Instr) error {
	if err := c.guard(in.Guard); err != nil {
		return err
	}
	if in.Opcode.Op == OpCall {
		return c.call(in)
	}
	all, known := c.forms[in.Opcode]
	if !known {
		all = matches(in.Opcode)
		c.forms[in.Opcode] = all
	}
	if len(all) == 0 {
		return c.fail("", "%s", noForm(in.Opcode))
	}
	if err := c.fits(in, all); err != nil {
		return err
	}
	if err := c.modifiers(in); err != nil {
		return err
	}
	return c.rules(in)
}

// guard checks that the guard is a visible predicate.
func (c *checker) guard(g Guard) error {
	if g.None() {
		return nil
	}
	if err := c.visible(g.Reg); err != nil {
		return err
	}
	if t := c.e.RegType(g.Reg); t != Pred {
		return c.fail("@", "the guard is a .%s register; expected a .pred register", t)
	}
	return nil
}

// fits checks that the operands of in are those of a match, which the module's
// version and target have.
func (c *checker) fits(in *Instr, all []match) error {
	var room [maxOperands]*pattern
	// wrong is the error of the first match that takes so many operands.
	var wrong error
	// late is the version and target that the matches which take the operands need.
	late := ""
	for i := range all {
		m := &all[i]
		patterns, ok := m.assign(&room, len(in.Operands))
		if !ok {
			continue
		}
		err := c.operands(m, patterns, in)
		switch {
		case err != nil && wrong == nil:
			wrong = err
		case err != nil:
		case c.m.Version.AtLeast(m.isa) &&
			c.m.Target.Runs(m.target):
			return nil
		default:
			late += fmt.Sprintf(
				" or PTX ISA %s and %s (section %s)", m.isa, m.target, m.row.section,
			)
		}
	}
	switch {
	case late != "":
		return c.fail(
			"", "%s needs %s, this is %s and %s",
			in.Opcode, late[len(" or "):],
			c.m.Version, c.m.Target,
		)
	case wrong != nil:
		return wrong
	}
	return c.fail(
		"", "%s has %d operands; expected %s",
		in.Opcode, len(in.Operands),
		operandText(&all[0]),
	)
}

// operandText is the operands of a form as its row writes them.
func operandText(m *match) string {
	if _, list, found := strings.Cut(m.row.syntax, " "); found {
		return list
	}
	return "none"
}

// modifiers checks the version and target of each modifier.
func (c *checker) modifiers(in *Instr) error {
	for _, mod := range in.Opcode.Mods() {
		g, gated := gates()[mod]
		if gated &&
			(!c.m.Version.AtLeast(g.isa) ||
				!c.m.Target.Runs(g.target)) {
			return c.fail(
				"."+mod.String(), ".%s needs PTX ISA %s and %s, this is %s and %s",
				mod, g.isa, g.target,
				c.m.Version, c.m.Target,
			)
		}
	}
	return nil
}

// noForm is the error for an opcode whose modifiers do not go together; it shows
// the nearest form of the table.
func noForm(o Opcode) string {
	best, most := -1, -1
	for i := range forms()[o.Op] {
		m := match{form: &forms()[o.Op][i], op: o}
		if n := m.prefix(); n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return o.Op.String() + " is not in the opcode table"
	}
	f := &forms()[o.Op][best]
	head, _, _ := strings.Cut(f.row.syntax, " ")
	bad := "its modifiers end too early"
	if most < int(o.n) {
		bad = "." + o.mods[most].String() + " may not stand there"
	}
	return fmt.Sprintf(
		"%s: %s; expected %s%s (section %s)", o, bad, head, f.setText(),
		f.row.section,
	)
}

// setText is the sets that the opcode of the row names, for errors.
func (f *form) setText() string {
	var sets []string
	if f.row.sets != "" {
		sets = append(sets, f.row.sets)
	}
	own := rowSets(f.row.sets)
	for i := range f.slots {
		name := f.slots[i].name
		list := modSets[name]
		if list != "" && own[name] == "" {
			sets = append(sets, name+"="+list)
		}
	}
	if sets == nil {
		return ""
	}
	return " with " + strings.Join(sets, " ")
}

// prefix is the number of leading modifiers that the form has in order.
func (m *match) prefix() int {
	n := 0
	for i := range m.slots {
		if n < int(m.op.n) &&
			m.slots[i].set.has(m.op.mods[n]) {
			n++
		} else if !m.slots[i].optional {
			break
		}
	}
	return n
}

// A limit bounds an operand where it is a number that is known here.
type limit struct {
	// At is the operand's index.
	at           int
	lo, hi, step int64
	// What names the operand in errors.
	what string
}

// Limits that several instructions share.
const (
	barrierNumber  = "the number of a barrier"
	barrierThreads = "the threads of a barrier"
	bulkBytes      = "the bytes of a bulk copy"
	fieldPosition  = "the position of a bit field"
	fieldLength    = "the length of a bit field"
	arrivals       = "the count of an arrival"
)

// limits are the bounds of operands that the sections of the table's rows state in
// words.
var limits = map[Op][]limit{
	OpBarSync:             {{0, 0, 15, 1, barrierNumber}, {1, 32, MaxThreads, 32, barrierThreads}},
	OpBarArrive:           {{0, 0, 15, 1, barrierNumber}, {1, 32, MaxThreads, 32, barrierThreads}},
	OpBarrierSync:         {{0, 0, 15, 1, barrierNumber}, {1, 32, MaxThreads, 32, barrierThreads}},
	OpBarrierArrive:       {{0, 0, 15, 1, barrierNumber}, {1, 32, MaxThreads, 32, barrierThreads}},
	OpBarRed:              {{1, 0, 15, 1, barrierNumber}, {2, 32, MaxThreads, 32, barrierThreads}},
	OpBarrierRed:          {{1, 0, 15, 1, barrierNumber}, {2, 32, MaxThreads, 32, barrierThreads}},
	OpMbarrierInit:        {{1, 1, 1<<20 - 1, 1, "the count of an mbarrier"}},
	OpCpAsyncBulk:         {{2, 16, 1<<20 - 16, 16, bulkBytes}},
	OpCpReduceAsyncBulk:   {{2, 16, 1<<20 - 16, 16, bulkBytes}},
	OpCpAsyncBulkPrefetch: {{1, 16, 1<<20 - 16, 16, bulkBytes}},
	OpBfe:                 {{2, 0, 255, 1, fieldPosition}, {3, 0, 255, 1, fieldLength}},
	OpBfi:                 {{3, 0, 255, 1, fieldPosition}, {4, 0, 255, 1, fieldLength}},
	OpShflSync:            {{4, -1 << 31, 1<<32 - 1, 1, "the member mask"}},
}

// modLimits are the bounds that an opcode has because of a modifier, or unless it has
// one.
var modLimits = []struct {
	op     Op
	mod    Mod
	absent bool
	limit  limit
}{
	{OpMbarrierArrive, ModExpectTx, true, limit{2, 1, 1<<20 - 1, 1, arrivals}},
	{OpMbarrierArriveDrop, ModExpectTx, true, limit{2, 1, 1<<20 - 1, 1, arrivals}},
	{OpMbarrierTestWait, ModParity, false, limit{2, 0, 1, 1, "the parity of a phase"}},
	{OpMbarrierTryWait, ModParity, false, limit{2, 0, 1, 1, "the parity of a phase"}},
}

// rules checks what the table cannot express.
func (c *checker) rules(in *Instr) error {
	o := &in.Opcode
	for _, l := range limits[o.Op] {
		if err := c.within(in, l); err != nil {
			return err
		}
	}
	for _, l := range modLimits {
		if l.op == o.Op && o.Has(l.mod) != l.absent {
			if err := c.within(in, l.limit); err != nil {
				return err
			}
		}
	}
	switch o.Op {
	case OpLd, OpSt:
		return c.moves(o)
	case OpAtom, OpRed:
		if isShared(o.Space()) {
			return c.globalOnly(o)
		}
	case OpBrx:
		if list := in.Operands[1].Sym; !c.lists[list] {
			return c.fail(list, "%s names no list of .branchtargets", list)
		}
	case OpCvt:
		return c.saturation(o)
	case OpCreatepolicy:
		return c.fraction(in)
	case OpCpAsync:
		return c.sourceBytes(in)
	case OpSetmaxnreg:
		e := c.e
		if e.MaxNReg == 0 &&
			e.MaxNTid == [3]int{} &&
			e.ReqNTid == [3]int{} {
			return c.fail("", "setmaxnreg without .maxnreg, .maxntid or .reqntid: the registers at entry are not known")
		}
	}
	return nil
}

// moves checks the width of a load or a store, and its space.
func (c *checker) moves(o *Opcode) error {
	bits := o.Vec() * o.Type(-1).Bits()
	switch {
	case bits > 128 && !c.has("8.8", "100"):
		return c.fail("", "%s moves %d bits; at most 128 go at once, 256 with PTX ISA 8.8 and sm_100", o, bits)
	case bits > 256 || o.Has(ModV8) && bits < 256:
		return c.fail("", "%s moves %d bits; .v8 is for 32-bit types, .v4 for those of at most 64", o, bits)
	}
	s := o.Space()
	if s == NoMod || s == ModGlobal {
		return nil
	}
	if bits > 128 {
		return c.fail("."+s.String(), "%s moves %d bits; more than 128 are for global memory", o, bits)
	}
	return c.globalOnly(o)
}

// globalOnly refuses modifiers that only accesses to global memory have.
func (c *checker) globalOnly(o *Opcode) error {
	if onlyGlobal(o) {
		return nil
	}
	return c.fail("."+o.Space().String(), "eviction priorities, prefetch and cache hints are for global memory")
}

// saturation refuses .sat between integers where the result has every value of the
// source.
func (c *checker) saturation(o *Opcode) error {
	to, from := o.Type(-2), o.Type(-1)
	if !o.Has(ModSat) || to.Float() || from.Float() {
		return nil
	}
	wider := to.Bits() > from.Bits() && (to.Signed() || from.Unsigned())
	if wider || to == from {
		return c.fail(".sat", "%s: every .%s is a .%s, nothing saturates", o, from, to)
	}
	return nil
}

// fraction checks the share of accesses that a policy is for.
func (c *checker) fraction(in *Instr) error {
	if len(in.Operands) < 2 || in.Operands[1].Kind != KindF32 {
		return nil
	}
	f := math.Float32frombits(uint32(in.Operands[1].Bits))
	if !(f > 0 && f <= 1) {
		return c.fail("", "the fraction of a policy is %g; expected more than 0 and at most 1", f)
	}
	return nil
}

// sourceBytes checks that a copy reads no more bytes than it writes.
func (c *checker) sourceBytes(in *Instr) error {
	if len(in.Operands) < 4 {
		return nil
	}
	return c.within(in, limit{3, 0, in.Operands[2].Int(), 1, "the bytes of the source"})
}

// onlyGlobal reports that o has none of the modifiers that only global memory
// has.
func onlyGlobal(o *Opcode) bool {
	for _, m := range o.Mods() {
		if m >= ModL1NoAllocate && m <= ModL2Prefetch256B {
			return false
		}
	}
	return true
}

// within checks an operand that is known here.
func (c *checker) within(in *Instr, l limit) error {
	if l.at >= len(in.Operands) {
		return nil
	}
	o := &in.Operands[l.at]
	if o.Kind == KindInt &&
		(o.Int() < l.lo ||
			o.Int() > l.hi ||
			o.Int()%l.step != 0) {
		return c.fail(
			strconv.FormatInt(o.Int(), 10), "%s is %d; expected %s",
			l.what, o.Int(), rangeText(l.lo, l.hi, l.step),
		)
	}
	return nil
}

// rangeText is a range of numbers for errors.
func rangeText(lo, hi, step int64) string {
	s := fmt.Sprintf("%d to %d", lo, hi)
	if hi == lo {
		s = strconv.FormatInt(lo, 10)
	}
	if step > 1 {
		s += fmt.Sprintf(" in steps of %d", step)
	}
	return s
}

// alignedTo is the largest power of two that divides n, 128 for 0.
func alignedTo(n int64) int {
	if n == 0 {
		return 128
	}
	return 1 << min(7, bits.TrailingZeros64(uint64(n)))
}
