package ptx

import (
	"fmt"
	"strings"
)

// operands checks each operand against its pattern.
func (c *checker) operands(m *match, patterns []*pattern, in *Instr) error {
	memory := 0
	for i, p := range patterns {
		o := &in.Operands[i]
		if err := c.operand(m, p, o, memory); err != nil {
			return err
		}
		if o.Kind == KindMem {
			memory++
		}
	}
	return nil
}

// wrong is the error for an operand that does not match its pattern.
func (c *checker) wrong(m *match, p *pattern, o *Operand) error {
	in := Instr{Operands: []Operand{*o}}
	text := strings.TrimSpace(
		c.e.InstrText(&in)[len(in.Opcode.Op.String()):],
	)
	return c.fail(
		text, "%s: operand %s is %s; expected %s",
		m.op, text, c.describe(o),
		c.wanted(m, p),
	)
}

// describe names an operand for errors.
func (c *checker) describe(o *Operand) string {
	switch o.Kind {
	case KindReg:
		if o.Neg {
			return "negated"
		}
		return fmt.Sprintf("a .%s register", c.e.RegType(o.Reg))
	case KindInt:
		return "an integer"
	case KindF32, KindF64:
		return "a floating-point number"
	case KindVec:
		return fmt.Sprintf("a vector of %d", len(o.List))
	}
	return kindNames[o.Kind]
}

// kindNames are the kinds of operands for errors.
var kindNames = [...]string{
	NoOperand: "nothing", KindReg: "a register", KindSink: "the sink _", KindInt: "an integer", KindF32: "a float",
	KindF64: "a double", KindSpecial: "a special register", KindSym: "a symbol", KindMem: "an address in memory",
	KindVec: "a vector", KindPair: "two destinations", KindTensor: "a tensor map with coordinates",
}

// wanted names what a pattern takes, for errors.
func (c *checker) wanted(m *match, p *pattern) string {
	switch p.kind {
	case patMem:
		return "an address in brackets"
	case patTensor:
		return "a tensor map with coordinates in brackets"
	case patLabel:
		return "a label"
	case patSink:
		return "the sink _"
	case patPred:
		return "a .pred register"
	case patImm:
		if p.set != nil {
			return "one of the numbers " + strings.Trim(fmt.Sprint(p.set), "[]")
		}
		return "a number, " + rangeText(p.lo, p.hi, p.step)
	}
	one := fmt.Sprintf("a register for .%s", m.typ(p))
	if p.wide {
		one += " or wider"
	}
	t := m.typ(p)
	if !p.regOnly && t.Float() {
		one += " or a number such as 0f3F800000"
	} else if !p.regOnly {
		one += fmt.Sprintf(" or a number of %d bits", t.Bits())
	}
	if n, braces := m.elements(p); braces {
		return fmt.Sprintf("a vector of %d, each %s", n, one)
	}
	return one
}

// operand checks an operand, the memory-th one of its instruction if it is an
// address.
func (c *checker) operand(m *match, p *pattern, o *Operand, memory int) error {
	switch p.kind {
	case patMem:
		return c.memory(m, p, o, memory)
	case patTensor:
		return c.tensor(m, p, o)
	case patImm:
		if o.Kind != KindInt || !p.allows(o.Int()) {
			return c.wrong(m, p, o)
		}
		return nil
	case patSink:
		if o.Kind != KindSink {
			return c.wrong(m, p, o)
		}
		return nil
	case patLabel:
		if o.Kind != KindSym || o.Bits != 0 {
			return c.wrong(m, p, o)
		}
		if !c.labels[o.Sym] {
			return c.fail(
				o.Sym, "no label %s is placed in %s", o.Sym, c.e.Name,
			)
		}
		return nil
	}
	return c.values(m, p, o)
}

// allows reports whether an immediate is in the range or the list.
func (p *pattern) allows(v int64) bool {
	for _, x := range p.set {
		if x == v {
			return true
		}
	}
	return p.set == nil && v >= p.lo &&
		v <= p.hi && v%p.step == 0
}

// values checks an operand that is a value, a vector of them or a pair.
func (c *checker) values(m *match, p *pattern, o *Operand) error {
	n, braces := m.elements(p)
	switch {
	case o.Kind == KindVec != braces:
		return c.wrong(m, p, o)
	case braces && len(o.List) != n:
		return c.wrong(m, p, o)
	case p.both && o.Kind != KindPair:
		return c.fail("", "%s: expected a second destination, |p", m.op)
	case p.vector && !braces && o.Kind == KindSink:
		return c.fail("_", "%s: the sink _ is for elements of vectors only", m.op)
	case o.Kind == KindPair:
		return c.pair(m, p, o)
	case !braces:
		return c.value(m, p, o)
	}
	sinks := 0
	for i := range o.List {
		if err := c.value(m, p, &o.List[i]); err != nil {
			return err
		}
		if o.List[i].Kind == KindSink {
			sinks++
		}
	}
	if n > 0 && sinks == n {
		return c.fail("{", "%s: an element of the vector must be kept", m.op)
	}
	return nil
}

// pair checks two destinations: a value and a predicate.
func (c *checker) pair(m *match, p *pattern, o *Operand) error {
	if !p.pair || len(o.List) != 2 {
		return c.wrong(m, p, o)
	}
	err := c.value(m, p, &o.List[0])
	if err != nil && o.List[0].Kind != KindSink {
		return err
	}
	second := pattern{
		kind:    patPred,
		typ:     Pred,
		dst:     true,
		regOnly: true,
		sink:    true,
		count:   count{n: 1},
	}
	return c.value(m, &second, &o.List[1])
}

// value checks a register, a number, a special register or a symbol against the
// type.
func (c *checker) value(m *match, p *pattern, o *Operand) error {
	t := m.typ(p)
	ok := false
	switch o.Kind {
	case KindReg:
		if err := c.visible(o.Reg); err != nil {
			return err
		}
		ok = holds(c.e.RegType(o.Reg), t, p.wide) &&
			(!o.Neg || p.neg)
	case KindSink:
		ok = p.sink
	case KindInt, KindF32, KindF64:
		ok = !p.regOnly &&
			p.kind != patPred && number(o, t) ||
			p.flag && o.Kind == KindInt && o.Bits <= 1
	case KindSpecial:
		return c.special(m, p, o, t)
	case KindSym:
		if ok = p.address &&
			!t.Float() &&
			t.Bits() >= 32; ok {
			return c.symbol(o.Sym)
		}
	}
	if !ok {
		return c.wrong(m, p, o)
	}
	return nil
}

// special checks that the module's version and target have a special register.
func (c *checker) special(m *match, p *pattern, o *Operand, t Type) error {
	if o.Special == NoSpecial || o.Special >= numSpecials || !p.special ||
		t.Float() || t.Bits() != o.Special.Type().Bits() {
		return c.wrong(m, p, o)
	}
	s := &specials[o.Special]
	if !c.m.Version.AtLeast(s.isa) ||
		c.m.Target.SM < s.sm {
		return c.fail(
			s.name, "%s needs PTX ISA %s and sm_%d, this is %s and %s",
			s.name, s.isa, s.sm,
			c.m.Version, c.m.Target,
		)
	}
	return nil
}

// visible checks that a register is declared, and in an open block.
func (c *checker) visible(r Reg) error {
	if r.Set < 1 ||
		int(r.Set) > len(c.e.Regs) ||
		r.Index < 0 ||
		int(r.Index) >= c.e.Regs[r.Set-1].Len() {
		return c.fail("", "register %d of set %d is not declared", r.Index, r.Set)
	}
	if !c.open[r.Set-1] {
		return c.fail(
			c.e.Regs[r.Set-1].Prefix, "register %s is used outside the block that declares it, or before",
			c.e.Regs[r.Set-1].Prefix,
		)
	}
	return nil
}

// symbol checks that a variable or a parameter is declared.
func (c *checker) symbol(name string) error {
	_, isParam := c.params[name]
	if !isParam && c.lookup(name) == nil {
		return c.fail(name, "no variable or parameter %s is declared", name)
	}
	return nil
}

// holds reports whether a register of type r may hold an operand of type t;
// section 9.4, and its tables 27 and 28 where it may be wider.
func holds(r, t Type, wide bool) bool {
	if r == Pred || t == Pred {
		return r == t
	}
	if r.Bits() != t.Bits() &&
		(!wide || r.Bits() < t.Bits()) {
		return false
	}
	switch {
	case r.Untyped() || t.Untyped() || r == t:
		return true
	case t == U16x2 || t == S16x2:
		return r == U32 || r == S32
	case t.Float() || r.Float():
		return false
	}
	return true
}

// number reports whether the number o is one of type t.
func number(o *Operand, t Type) bool {
	if o.Kind != KindInt {
		return t == F32 || t == F64 ||
			t == B32 && o.Kind == KindF32 ||
			t == B64 && o.Kind == KindF64
	}
	n := t.Bits()
	switch {
	case t.Float():
		return false
	case t == Pred:
		return o.Int() >= -1 && o.Int() <= 1
	case n == 64:
		return true
	case n > 64:
		return false
	}
	return o.Int() >= -1<<(n-1) && o.Int() < 1<<n
}

// memory checks an address, the i-th of its instruction.
func (c *checker) memory(m *match, p *pattern, o *Operand, i int) error {
	if o.Kind != KindMem {
		return c.wrong(m, p, o)
	}
	space := addressSpace(&m.op, i)
	n, _ := m.elements(p)
	align := max(p.align, m.typ(p).Bytes()*n)
	switch {
	case !o.Reg.None():
		return c.base(m, o, space)
	case o.Sym != "":
		return c.named(m, o, space, align)
	case space != ModLocal || m.op.Op == OpPrefetch:
		return c.fail(
			"[", "%s: the address %d is known here; only that of .local memory may be", m.op, int64(o.Bits),
		)
	case int64(o.Bits)%int64(align) != 0:
		return c.fail(
			"[", "%s: address %d is not aligned to %d bytes", m.op, int64(o.Bits), align,
		)
	}
	return nil
}

// base checks the register that an address starts from: shared, local and constant
// memory and parameters have addresses of 32 or 64 bits, the others of 64.
func (c *checker) base(m *match, o *Operand, space Mod) error {
	if err := c.visible(o.Reg); err != nil {
		return err
	}
	if m.op.Op == OpSt && space == ModParam {
		return c.fail("[", "%s: a result is stored by its name", m.op)
	}
	t := c.e.RegType(o.Reg)
	if !t.Float() && t != Pred &&
		(t.Bits() == 64 || t.Bits() == 32 && isShort(space)) {
		return nil
	}
	wide := "64"
	if isShort(space) {
		wide = "32 or 64"
	}
	return c.fail("[", "%s: the address starts from a .%s register; expected %s bits", m.op, t, wide)
}

// isShort reports whether a modifier names a state space whose addresses fit in 32 bits.
func isShort(space Mod) bool {
	switch space {
	case ModLocal, ModConst, ModParam, ModParamEntry:
		return true
	}
	return isShared(space)
}

// isShared reports whether a modifier names shared memory.
func isShared(space Mod) bool {
	return space == ModShared || space == ModSharedCTA || space == ModSharedCluster
}

// named checks an address that starts from a variable or a parameter: its space,
// alignment and bounds.
func (c *checker) named(m *match, o *Operand, space Mod, align int) error {
	if err := c.symbol(o.Sym); err != nil {
		return err
	}
	offset := int64(o.Bits)
	if i, isParam := c.params[o.Sym]; isParam {
		p := &c.e.Params[i]
		if space != ModParam && space != ModParamEntry && m.op.Op != OpPrefetch || m.op.Op == OpSt {
			return c.fail(
				o.Sym, "%s: %s is a parameter; read it with ld.param", m.op, o.Sym,
			)
		}
		return c.bounds(
			m, o, offset, int64(p.Bytes()),
			align, alignedTo(int64(c.starts[i])),
		)
	}
	v := c.lookup(o.Sym)
	if v.Space != space &&
		!(v.Space == ModShared && isShared(space)) {
		return c.fail(
			o.Sym, "%s: %s lies in .%s memory", m.op, o.Sym, v.Space,
		)
	}
	size := int64(v.Bytes())
	if v.Linkage == Extern && v.Array && v.Count == 0 {
		size = 1 << 40
	}
	return c.bounds(
		m, o, offset, size, align, v.Alignment(),
	)
}

// bounds checks an access of align bytes at offset of something that has size
// bytes and is aligned itself.
func (c *checker) bounds(
	m *match, o *Operand, offset, size int64, align, aligned int,
) error {
	bytes := max(1, align)
	if m.op.Op >= OpCpAsync && m.op.Op <= OpCpReduceAsyncBulkTensor ||
		m.op.Op == OpLdmatrix || m.op.Op == OpStmatrix {
		bytes = 1 // the instruction moves another number of bytes
	}
	switch {
	case offset < 0 || offset > size-int64(bytes):
		return c.fail(
			o.Sym, "%s: bytes %d to %d of %s, which has %d",
			m.op, offset,
			offset+int64(bytes)-1, o.Sym,
			size,
		)
	case align > 1 &&
		(offset%int64(align) != 0 || aligned < align):
		return c.fail(
			o.Sym, "%s: %s+%d is aligned to %d bytes; expected %d",
			m.op, o.Sym, offset,
			min(aligned, alignedTo(offset)), align,
		)
	}
	return nil
}

// addressSpace is the state space of the i-th address of an instruction, NoMod
// for generic addresses. In copies the destination comes first, the mbarrier
// last; the addresses beside a tensor map are in shared memory.
func addressSpace(o *Opcode, i int) Mod {
	switch o.Op {
	case OpCpAsyncBulkTensor, OpCpReduceAsyncBulkTensor:
		return ModShared
	case OpStAsync, OpRedAsync:
		return ModSharedCluster
	case OpCpAsync, OpCpAsyncBulk, OpCpReduceAsyncBulk:
		for _, m := range o.Mods() {
			if m >= ModParam && m <= ModConst {
				if i == 0 {
					return m
				}
				i--
			}
		}
		return ModShared
	}
	return o.Space()
}

// tensor checks a tensor map and its coordinates.
func (c *checker) tensor(m *match, p *pattern, o *Operand) error {
	if o.Kind != KindTensor ||
		len(o.List) != 2 ||
		o.List[0].Kind != KindMem ||
		o.List[1].Kind != KindVec {
		return c.wrong(m, p, o)
	}
	if o.List[0].Reg.None() {
		return c.fail("[", "%s: the tensor map is at the generic address in a 64-bit register", m.op)
	}
	if o.List[0].Bits != 0 {
		return c.fail("+", "%s: a tensor map has no offset", m.op)
	}
	if err := c.base(m, &o.List[0], NoMod); err != nil {
		return err
	}
	dims := int(m.op.mods[0]-ModDim1) + 1
	if len(o.List[1].List) != dims {
		return c.fail(
			"{", "%s: %d coordinates; expected %d",
			m.op,
			len(o.List[1].List),
			dims,
		)
	}
	coordinate := pattern{typ: S32, count: count{n: 1}}
	for i := range o.List[1].List {
		err := c.value(m, &coordinate, &o.List[1].List[i])
		if err != nil {
			return err
		}
	}
	return nil
}
