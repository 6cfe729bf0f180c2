package ptx

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A row of the opcode table says one way to write an instruction, in the manner
// of the manual. In the opcode {.x} may be absent, and a name in capitals stands
// for one modifier of a set: of those that sets says (T=u32,s32), or of
// [modSets]. Operands, separated by commas, are
//
//	T, f32     a source of that type: register or number; T! register only
//	T~         in a register that may be wider than the type
//	T^  T%     also the address of a variable; a special register
//	T_         a destination that may be the sink _
//	_          the sink _
//	>T  =T     a destination; a register that is read and written
//	{f32*4}    a vector of 4; {T*VEC} of as many as the modifier .v2 … says, one
//	           without braces where it is absent; {f32*N/2} of half as many as the shape is wide
//	p !p       a predicate; one that may be negated
//	>p|q       two destinations of which the second may be absent; |Q where it may not
//	[T] [16]   memory, aligned to the type or to 16 bytes; [] of no known type
//	[map]      a tensor map at an address with as many coordinates as .1d … says
//	#0..15     an integer within these bounds; #24..256/8 a multiple of 8; #4|8|16 one of these
//	label      a label
//	X?  X?.m   may be absent; there exactly when the modifier is
type row struct {
	section string // of the PTX ISA 9.0
	isa     string // first version that has it
	sm      string // first target that has it, "90a" where only that has it
	syntax  string
	sets    string // T=u32,s32 U=…
}

// form is a compiled row.
type form struct {
	row      *row
	isa      Version
	target   Target
	slots    []slot
	operands []pattern
}

// slot is the place of a modifier in a form.
type slot struct {
	name string
	// set holds the modifiers that may stand there.
	set      modSet
	optional bool
}

// modSet is a set of modifiers.
type modSet [(numMods + 63) / 64]uint64

// add adds a modifier.
func (s *modSet) add(m Mod) {
	s[m/64] |= 1 << (m % 64)
}

// has reports whether a modifier is in the set.
func (s *modSet) has(m Mod) bool {
	return s[m/64]>>(m%64)&1 != 0
}

// each calls f with the modifiers of the set in order.
func (s *modSet) each(f func(Mod)) {
	for m := NoMod + 1; m < numMods; m++ {
		if s.has(m) {
			f(m)
		}
	}
}

// patternKind is the kind of operand that a pattern describes.
type patternKind uint8

const (
	// patValue is a register or a number of a type.
	patValue patternKind = iota
	// patPred is a predicate.
	patPred
	// patMem is [address].
	patMem
	// patTensor is [map, {coordinates}].
	patTensor
	// patImm is an integer in a range.
	patImm
	// patLabel is a label.
	patLabel
	// patSink is the sink _.
	patSink
)

// pattern describes what may stand at one place among the operands.
type pattern struct {
	kind patternKind
	// dst is set if the operand is written, and src if it is read.
	dst bool
	src bool // read
	// regOnly excludes numbers.
	regOnly bool
	// wide allows registers that are wider than the type.
	wide bool
	// neg allows negated predicates, and flag 0 and 1 for predicates.
	neg  bool
	flag bool
	// address allows the address of a variable.
	address bool
	// special allows special registers.
	special bool
	// sink allows the sink _.
	sink bool
	// pair allows a second destination, and both demands it.
	pair bool
	both bool
	// vector is set for vectors in braces.
	vector bool
	// optional is set if the operand may be absent.
	optional bool
	// when is the modifier whose presence decides about an optional operand;
	// NoMod if none does.
	when Mod
	// typ is the type; slot overrides it.
	typ Type
	// slot is the slot of the modifier that is the type, plus 1; 0 if typ is the
	// type.
	slot int
	// count is the number of elements of a vector.
	count count
	// align is the alignment of an address in bytes; 0 is that of the type.
	align int
	// lo and hi bound an immediate.
	lo, hi int64
	// step divides an immediate.
	step int64
	// set lists the immediates that are allowed, if there is a list.
	set []int64
	// text is the operand as the row writes it.
	text string
}

// count is a number of elements: n, or the number that the modifier at slot-1
// names, or the columns of the shape divided by div.
type count struct{ n, slot, div int }

// table holds the forms of every operation.
type table [numOps][]form

// forms compiles the table once; it is constant data.
var forms = sync.OnceValue(func() *table {
	t := new(table)
	for _, part := range [][]row{
		moveRows, intRows, floatRows, logicRows, controlRows, syncRows, atomicRows, copyRows, tensormapRows, matrixRows,
	} {
		for i := range part {
			op, f, err := compile(&part[i])
			if err != nil {
				panic(fmt.Sprintf("opcode table: %s: %v", part[i].syntax, err))
			}
			t[op] = append(t[op], f)
		}
	}
	return t
})

// opByName finds operations by their names.
var opByName = sync.OnceValue(func() map[string]Op {
	m := make(map[string]Op, numOps)
	for o := NoOp + 1; o < numOps; o++ {
		m[o.String()] = o
	}
	return m
})

// modByName finds modifiers by their names.
var modByName = sync.OnceValue(func() map[string]Mod {
	m := make(map[string]Mod, numMods)
	for x := NoMod + 1; x < numMods; x++ {
		m[x.String()] = x
	}
	return m
})

// compile reads a row.
func compile(r *row) (Op, form, error) {
	head, operands, _ := strings.Cut(r.syntax, " ")
	f := form{row: r}
	var err error
	if f.isa, err = parseVersion(r.isa); err != nil {
		return NoOp, f, err
	}
	if f.target, err = parseTarget("sm_" + r.sm); err != nil {
		return NoOp, f, err
	}
	op, mods, err := cutOp(
		strings.NewReplacer("{", "", "}", "").Replace(head),
	)
	if err != nil {
		return NoOp, f, err
	}
	own := rowSets(r.sets)
	optional := strings.Count(head, "{") > 0
	for _, m := range splitMods(mods) {
		s := slot{
			name:     m,
			optional: optional && strings.Contains(head, "{."+m+"}"),
		}
		if err := s.fill(own); err != nil {
			return NoOp, f, err
		}
		f.slots = append(f.slots, s)
	}
	for _, text := range splitOperands(operands) {
		p, err := f.pattern(text)
		if err != nil {
			return NoOp, f, err
		}
		f.operands = append(f.operands, p)
	}
	return op, f, nil
}

// splitMods splits the modifiers of a row at their dots.
func splitMods(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}

// splitOperands splits the operands of a row at commas outside of brackets.
func splitOperands(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}

// rowSets reads the sets that a row defines itself.
func rowSets(s string) map[string]string {
	own := map[string]string{}
	for _, f := range strings.Fields(s) {
		name, set, _ := strings.Cut(f, "=")
		own[name] = set
	}
	return own
}

// fill sets the modifiers that may stand at the slot.
func (s *slot) fill(own map[string]string) error {
	return s.addAll(s.name, own)
}

// addAll adds the modifiers that a name stands for.
func (s *slot) addAll(name string, own map[string]string) error {
	list, found := own[name]
	if !found {
		list, found = modSets[name]
	}
	if found {
		for _, n := range strings.Split(list, ",") {
			if err := s.addAll(n, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return s.addOne(name)
}

// addOne adds one modifier by its name.
func (s *slot) addOne(name string) error {
	if k, isShape := strings.CutPrefix(name, "m64n*k"); isShape {
		k, _ := strconv.Atoi(k)
		for n := 8; n <= 256; n += 8 {
			s.set.add(WGMMA(n, k))
		}
		return nil
	}
	m, known := modByName()[name]
	if !known {
		return fmt.Errorf("no modifier .%s", name)
	}
	s.set.add(m)
	return nil
}

// pattern reads one operand of a row.
func (f *form) pattern(text string) (pattern, error) {
	p := pattern{
		text:  text,
		src:   true,
		count: count{n: 1},
	}
	rest, when, conditional := strings.Cut(text, "?")
	p.optional = conditional
	if when != "" {
		p.when = modByName()[when[1:]]
		if p.when == NoMod {
			return p, fmt.Errorf("no modifier %s", when)
		}
	}
	switch {
	case strings.HasPrefix(rest, ">"):
		p.dst = true
		p.src = false
		p.regOnly = true
		rest = rest[1:]
	case strings.HasPrefix(rest, "="):
		p.dst = true
		p.regOnly = true
		rest = rest[1:]
	}
	if inner, is := strings.CutPrefix(rest, "["); is {
		return p, f.address(
			&p, strings.TrimSuffix(inner, "]"),
		)
	}
	if inner, is := strings.CutPrefix(rest, "#"); is {
		return p, p.immediate(inner)
	}
	if inner, is := strings.CutPrefix(rest, "{"); is {
		ty, n, _ := strings.Cut(
			strings.TrimSuffix(inner, "}"), "*",
		)
		p.vector, rest = true, ty
		if err := f.count(&p, n); err != nil {
			return p, err
		}
	}
	return p, f.value(&p, rest)
}

// address reads the pattern of a memory operand.
func (f *form) address(p *pattern, inner string) error {
	p.kind = patMem
	if inner == "map" {
		p.kind = patTensor
		return nil
	}
	if n, err := strconv.Atoi(inner); err == nil {
		p.align = n
		return nil
	}
	if inner == "" {
		p.align = 1
		return nil
	}
	ty, n, vector := strings.Cut(inner, "*")
	if vector {
		if err := f.count(p, n); err != nil {
			return err
		}
	}
	return f.typeOf(p, ty)
}

// count reads the number of elements of a vector.
func (f *form) count(p *pattern, n string) error {
	if div, is := strings.CutPrefix(n, "N/"); is {
		d, err := strconv.Atoi(div)
		p.count = count{div: d}
		return err
	}
	if k, err := strconv.Atoi(n); err == nil {
		p.count = count{n: k}
		return nil
	}
	i, err := f.slotOf(n)
	p.count = count{slot: i + 1}
	return err
}

// immediate reads the bounds of an integer.
func (p *pattern) immediate(s string) error {
	p.kind, p.step = patImm, 1
	if strings.Contains(s, "|") {
		for _, x := range strings.Split(s, "|") {
			n, err := strconv.ParseInt(x, 10, 64)
			if err != nil {
				return err
			}
			p.set = append(p.set, n)
		}
		return nil
	}
	if bounds, step, found := strings.Cut(s, "/"); found {
		s = bounds
		p.step, _ = strconv.ParseInt(step, 10, 64)
	}
	_, err := fmt.Sscanf(s, "%d..%d", &p.lo, &p.hi)
	return err
}

// value reads the pattern of a value.
func (f *form) value(p *pattern, s string) error {
	switch s {
	case "label":
		p.kind = patLabel
		return nil
	case "_":
		p.kind = patSink
		p.dst = true
		p.src = false
		return nil
	}
	s, p.both = strings.CutSuffix(s, "|Q")
	s, p.pair = strings.CutSuffix(s, "|q")
	p.pair = p.pair || p.both
	s, p.neg = strings.CutPrefix(s, "!")
	for marks := true; marks; {
		switch s[len(s)-1] {
		case '~':
			p.wide = true
		case '!':
			p.regOnly = true
		case '^':
			p.address = true
		case '%':
			p.special = true
		case '_':
			p.sink = true
		default:
			marks = false
			continue
		}
		s = s[:len(s)-1]
	}
	s, p.flag = strings.CutSuffix(s, "#")
	if s == "p" {
		p.kind, p.typ = patPred, Pred
		return nil
	}
	return f.typeOf(p, s)
}

// typeOf reads a type, or the name of the slot that is the type.
func (f *form) typeOf(p *pattern, s string) error {
	if m := modByName()[s]; m.IsType() {
		p.typ = m
		return nil
	}
	i, err := f.slotOf(s)
	p.slot = i + 1
	return err
}

// slotOf is the index of a slot by its name.
func (f *form) slotOf(name string) (int, error) {
	for i := range f.slots {
		if f.slots[i].name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is no modifier of the form", name)
}

// match is a form with the modifiers of an opcode bound to its slots; NoMod is an
// optional one that is absent.
type match struct {
	*form
	op    Opcode
	bound [maxMods]Mod
}

// matches lists the forms that an opcode has; it is empty for an illegal one.
func matches(c Opcode) []match {
	if c.Op >= numOps {
		return nil
	}
	var all []match
	for i, f := range forms()[c.Op] {
		m := match{form: &forms()[c.Op][i], op: c}
		if len(f.slots) >= int(c.n) &&
			m.bind(0, c.Mods()) {
			all = append(all, m)
		}
	}
	return all
}

// bind binds mods to the slots from slot i on, and backtracks where an optional
// slot could take a modifier that a later one needs.
func (m *match) bind(i int, mods []Mod) bool {
	if i == len(m.slots) {
		return len(mods) == 0
	}
	s := &m.slots[i]
	if len(mods) > 0 && s.set.has(mods[0]) {
		m.bound[i] = mods[0]
		if m.bind(i+1, mods[1:]) {
			return true
		}
	}
	m.bound[i] = NoMod
	return s.optional && m.bind(i+1, mods)
}

// typ is the type of pattern p under the match.
func (m *match) typ(p *pattern) Type {
	if p.slot > 0 {
		return m.bound[p.slot-1]
	}
	return p.typ
}

// elements is the number of elements of pattern p, and whether they stand in
// braces.
func (m *match) elements(p *pattern) (n int, braces bool) {
	switch {
	case p.count.div > 0:
		return m.op.Shape().N / p.count.div, true
	case p.count.slot > 0:
		n, braces = vecCount(m.bound[p.count.slot-1])
		return n, braces
	}
	return p.count.n, p.vector
}

// vecCount is the number of elements that a modifier such as .v2 names.
func vecCount(m Mod) (n int, braces bool) {
	switch m {
	case ModX1:
		return 1, true
	case ModV2, ModX2:
		return 2, true
	case ModV4, ModX4:
		return 4, true
	case ModV8:
		return 8, true
	}
	return 1, false
}

// maxOperands is the maximum number of operands of an instruction.
const maxOperands = 10

// assign is the patterns that n operands have in this order; ok is false if the
// match does not take n operands. Patterns of optional operands are assigned from
// left to right.
func (m *match) assign(
	room *[maxOperands]*pattern, n int,
) (patterns []*pattern, ok bool) {
	spare := n
	for i := range m.operands {
		p := &m.operands[i]
		if !p.optional ||
			p.when != NoMod && m.op.Has(p.when) {
			spare--
		}
	}
	patterns = room[:0]
	for i := range m.operands {
		p := &m.operands[i]
		if p.optional &&
			(p.when == NoMod || !m.op.Has(p.when)) {
			if p.when != NoMod || spare <= 0 {
				continue
			}
			spare--
		}
		patterns = append(patterns, p)
	}
	return patterns, spare == 0
}

// alike reports whether o is the kind of operand that p describes, whatever its
// type.
func (m *match) alike(p *pattern, o *Operand) bool {
	switch p.kind {
	case patMem:
		return o.Kind == KindMem
	case patTensor:
		return o.Kind == KindTensor
	case patImm:
		return o.Kind == KindInt
	case patLabel:
		return o.Kind == KindSym
	case patSink:
		return o.Kind == KindSink
	}
	_, braces := m.elements(p)
	switch o.Kind {
	case KindVec:
		return braces
	case KindPair:
		return p.pair
	case KindMem, KindTensor:
		return false
	case KindSpecial:
		return p.special
	case KindSym:
		return p.address
	}
	return !braces
}

// cutOp splits the name of an opcode at the end of the longest operation.
func cutOp(text string) (op Op, mods string, err error) {
	for end := len(text); end > 0; end = strings.LastIndexByte(text[:end], '.') {
		if o, found := opByName()[text[:end]]; found {
			return o, strings.TrimPrefix(text[end:], "."), nil
		}
	}
	name, _, _ := strings.Cut(text, ".")
	return NoOp, "", fmt.Errorf("no operation %q in the opcode table", name)
}

// ParseOpcode parses an opcode with its modifiers, such as mad.lo.s32. It checks
// that the operation and the modifiers exist; whether they may be combined is
// checked by [Module.Check].
func ParseOpcode(text string) (Opcode, error) {
	op, mods, err := cutOp(text)
	c := Opcode{Op: op}
	if err != nil || mods == "" {
		return c, err
	}
	for more := true; more; {
		var name string
		name, mods, more = strings.Cut(mods, ".")
		m, known := modByName()[name]
		if !known {
			return c, fmt.Errorf("%s has no modifier .%s", op, name)
		}
		if c.n == maxMods {
			return c, fmt.Errorf("more than %d modifiers", maxMods)
		}
		c.mods[c.n] = m
		c.n++
	}
	c.orderScope()
	return c, nil
}

// orderScope puts the memory order, the scope and the state space of an atomic
// operation in the order of the ISA: assemblers take them, and compilers write them, in any
// order.
func (c *Opcode) orderScope() {
	if c.Op != OpAtom && c.Op != OpRed {
		return
	}
	head := c.mods[:c.n]
	for i, m := range head {
		if scopeRank(m) == 0 {
			head = head[:i]
			break
		}
	}
	slices.SortStableFunc(head, func(x, y Mod) int {
		return cmp.Compare(scopeRank(x), scopeRank(y))
	})
}

// scopeRank is 1 for a memory order, 2 for a scope, 3 for a state space, and 0 for any
// other modifier.
func scopeRank(m Mod) int {
	switch m {
	case ModRelaxed, ModAcquire, ModRelease, ModAcqRel:
		return 1
	case ModCTA, ModCluster, ModGPU, ModSYS:
		return 2
	case ModGlobal, ModShared, ModSharedCTA, ModSharedCluster:
		return 3
	}
	return 0
}

// parseVersion reads a version such as 8.0.
func parseVersion(s string) (v Version, err error) {
	major, minor, found := strings.Cut(s, ".")
	v.Major, err = strconv.Atoi(major)
	if err == nil && found {
		v.Minor, err = strconv.Atoi(minor)
	}
	if err != nil || !found {
		return v, fmt.Errorf("%q is no version such as 8.0", s)
	}
	return v, nil
}

// parseTarget reads a target such as sm_90a.
func parseTarget(s string) (Target, error) {
	digits, isSM := strings.CutPrefix(s, "sm_")
	digits, isA := strings.CutSuffix(digits, "a")
	n, err := strconv.Atoi(digits)
	if !isSM || err != nil || n < 0 || n > 999 {
		return Target{}, fmt.Errorf("%q is no target such as sm_80 or sm_90a", s)
	}
	t := Target{SM: n}
	if isA {
		t.Arch = 'a'
	}
	return t, nil
}

// String is the operand of .version, such as 8.0.
func (v Version) String() string {
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// String is the operand of .target, such as sm_90a.
func (t Target) String() string {
	if t.Arch != 0 {
		return fmt.Sprintf("sm_%d%c", t.SM, t.Arch)
	}
	return fmt.Sprintf("sm_%d", t.SM)
}

// Runs reports whether code for w may be written for target t: t is w or later,
// and w itself where w names an architecture.
func (t Target) Runs(w Target) bool {
	if w.Arch != 0 {
		return t == w
	}
	return t.SM >= w.SM
}
