package sim

import (
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// decoder turns one entry into dense code: registers become indices into the
// files of their banks, constants and special registers become preloaded
// registers, and labels become instruction indices.
type decoder struct {
	module *ptx.Module
	src    *ptx.Entry
	e      *entry
	// base is the first register of each register set of the entry.
	base []register
	// scopes holds the parent of each scope, and scope the current one.
	scopes []int
	scope  int
	// labels maps labels to instructions.
	labels map[label]int32
	// jumps are the branches whose targets are resolved when all labels are
	// known.
	jumps []jump
	// comment is the source comment that holds for the next instructions.
	comment string
	// line is the line of the current instruction.
	line int32
	// touched are the registers that each instruction reads and writes.
	touched []defUse
	// effects are the effects of each instruction on taint.
	effects []taintEffect
}

// label is a label in its scope.
type label struct {
	scope int
	name  string
}

// jump is a branch at an instruction to a label that is looked up from a scope
// outwards.
type jump struct {
	at    int
	scope int
	name  string
}

// decodeEntry decodes an entry and analyses it.
func decodeEntry(m *ptx.Module, src *ptx.Entry) (*entry, error) {
	e := &entry{
		name:      src.Name,
		source:    src,
		const32:   map[uint32]int32{},
		const64:   map[uint64]int32{},
		special:   map[ptx.Special]register{},
		variables: map[string]variable{},
		globals:   map[string]int32{},
	}
	e.count = [4]int{bank32: 1, bank64: 1, bankPred: 1}
	e.params, e.block = ptx.Offsets(src.Params)
	d := &decoder{
		module: m,
		src:    src,
		e:      e,
		labels: map[label]int32{},
		scopes: []int{-1},
	}
	for i := range src.Regs {
		s := &src.Regs[i]
		b := bankOf(s.Type)
		if b == noBank {
			return nil, fmt.Errorf("registers of type %v are not modelled", s.Type)
		}
		d.base = append(d.base, register{
			b, int32(e.count[b]),
		})
		e.count[b] += s.Len()
	}
	// Variables have addresses before any operand is decoded.
	d.layOut()
	if err := d.body(); err != nil {
		return nil, err
	}
	// All labels are known: branches get their targets.
	for _, j := range d.jumps {
		at, ok := d.resolve(j.scope, j.name)
		if !ok {
			return nil, fmt.Errorf("no label %s", j.name)
		}
		e.code[j.at].target = at
	}
	// Static analysis makes run-time checks cheap: most registers need none.
	e.proveAssigned(d.touched)
	e.noteTensor(d.touched)
	e.noteIsolated()
	e.analyseTaint(d.effects)
	return e, nil
}

// layOut places the variables of the module and the entry in their state spaces.
// Arrays of unknown length share the dynamic shared memory behind the static
// variables.
func (d *decoder) layOut() {
	e := d.e
	dynamic := []string{}
	dynamicAlign := int64(16)
	put := func(v *ptx.Var) {
		align := int64(max(v.Alignment(), 1))
		switch {
		case v.Space == ptx.ModShared &&
			// An array without a length is dynamic shared memory.
			v.Array && v.Count == 0:
			dynamic = append(dynamic, v.Name)
			dynamicAlign = max(dynamicAlign, align)
		case v.Space == ptx.ModShared:
			at := roundUp(e.statics, align)
			e.variables[v.Name] = variable{shared, at}
			e.statics = at + int64(v.Bytes())
		case v.Space == ptx.ModLocal:
			at := roundUp(e.locals, align)
			e.variables[v.Name] = variable{local, at}
			e.locals = at + int64(v.Bytes())
		default:
			e.variables[v.Name] = variable{global, 0}
		}
	}
	for i := range d.module.Vars {
		put(&d.module.Vars[i])
	}
	for i := range d.src.Vars {
		put(&d.src.Vars[i])
	}
	e.locals = roundUp(e.locals, 16)
	e.dynamic = roundUp(e.statics, dynamicAlign)
	for _, name := range dynamic {
		e.variables[name] = variable{shared, e.dynamic}
	}
	if len(dynamic) == 0 {
		e.dynamic = e.statics
	}
	for i, p := range d.src.Params {
		e.variables[p.Name] = variable{
			param, int64(e.params[i]),
		}
	}
}

// roundUp is the smallest multiple of align that is not below v.
func roundUp(v, align int64) int64 { return (v + align - 1) / align * align }

// body decodes the statements of the entry and appends the instruction that exits
// at its end.
func (d *decoder) body() error {
	for i := range d.src.Body {
		s := &d.src.Body[i]
		switch s.Kind {
		case ptx.StmtLabel:
			d.labels[label{d.scope, s.Text}] = int32(
				len(d.e.code),
			)
			d.comment = ""
		case ptx.StmtComment:
			d.note(s)
		case ptx.StmtOpen:
			d.scopes = append(d.scopes, d.scope)
			d.scope = len(d.scopes) - 1
		case ptx.StmtClose:
			d.scope = d.scopes[d.scope]
		case ptx.StmtInstr:
			d.line = s.Line
			if err := d.instruction(&s.Instr); err != nil {
				return fmt.Errorf(
					"line %d: %v: %w", s.Line, s.Instr.Opcode, err,
				)
			}
		}
	}
	// Falling off the end exits.
	end := instr{
		flow:  leave,
		pc:    int32(len(d.e.code)),
		class: Control,
	}
	d.e.code = append(d.e.code, end)
	d.e.sites = append(d.e.sites, Site{
		PC:   int(end.pc),
		Line: int(d.line),
		Text: "the end of the entry",
		Lane: -1,
	})
	return nil
}

// note keeps a source comment: one at the end of a line is of its instruction,
// one on a line of its own is of all until the next one or a label.
func (d *decoder) note(s *ptx.Stmt) {
	n := len(d.e.sites)
	if n > 0 && s.Line != 0 && s.Line == d.line {
		d.e.sites[n-1].Comment = s.Text
		return
	}
	d.comment = s.Text
}

// resolve finds a label from a scope outwards.
func (d *decoder) resolve(scope int, name string) (int32, bool) {
	for ; scope >= 0; scope = d.scopes[scope] {
		if at, ok := d.labels[label{scope, name}]; ok {
			return at, true
		}
	}
	return 0, false
}

// unmodelled are operations that texts may have and that are not computed, with the
// reason.
var unmodelled = map[ptx.Op]string{
	ptx.OpBrx:                   "branches go to one label",
	ptx.OpWmmaLoad:              "fragments of wmma have no public layout",
	ptx.OpWmmaStore:             "fragments of wmma have no public layout",
	ptx.OpWmmaMMA:               "fragments of wmma have no public layout",
	ptx.OpTensormapReplace:      "tensor maps come from the host",
	ptx.OpTensormapCpFenceproxy: "tensor maps come from the host",
}

// instruction decodes one instruction with its guard and notes its place in the
// source.
func (d *decoder) instruction(src *ptx.Instr) error {
	if why := unmodelled[src.Opcode.Op]; why != "" {
		return fmt.Errorf("%w: %s", errNotModelled, why)
	}
	in := instr{
		pc:    int32(len(d.e.code)),
		class: classOfOp(&src.Opcode),
		mods:  &operation{code: src.Opcode},
	}
	if !src.Guard.None() {
		in.guard = d.register(src.Guard.Reg).index
		if src.Guard.Neg {
			in.flip = allLanes
		}
	}
	if err := d.decode(&in, src); err != nil {
		return err
	}
	if in.run == nil &&
		in.flow != branch && in.flow != leave {
		return errNotModelled
	}
	d.e.code = append(d.e.code, in)
	t := d.defUse(src)
	d.touched = append(d.touched, t)
	d.effects = append(
		d.effects, d.taintEffect(src, &in, t),
	)
	text := d.src.InstrText(src)
	d.e.sites = append(d.e.sites, Site{
		PC:      int(in.pc),
		Line:    int(d.line),
		Text:    text,
		Comment: d.comment,
		Lane:    -1,
	})
	return nil
}

// register is the register of a bank that stands for a PTX register.
func (d *decoder) register(r ptx.Reg) register {
	b := d.base[r.Set-1]
	return register{b.bank, b.index + r.Index}
}

// const32 is the index of a register preloaded with a constant of 32 bits.
func (d *decoder) const32(v uint32) int32 {
	if v == 0 {
		return 0
	}
	r, ok := d.e.const32[v]
	if !ok {
		r = int32(d.e.count[bank32])
		d.e.count[bank32]++
		d.e.const32[v] = r
	}
	return r
}

// const64 is the index of a register preloaded with a constant of 64 bits.
func (d *decoder) const64(v uint64) int32 {
	if v == 0 {
		return 0
	}
	r, ok := d.e.const64[v]
	if !ok {
		r = int32(d.e.count[bank64])
		d.e.count[bank64]++
		d.e.const64[v] = r
	}
	return r
}

// source is the register that a value operand of type t is read from.
func (d *decoder) source(o *ptx.Operand, t ptx.Type) (register, error) {
	switch {
	case o.Kind == ptx.KindReg:
		return d.register(o.Reg), nil
	case o.IsImm() && t == ptx.Pred:
		return d.constantPred(o.Bits != 0), nil
	case o.IsImm() && bankOf(t) == bank64:
		return register{bank64, d.const64(o.As(t))}, nil
	case o.IsImm():
		return register{
			bank32, d.const32(uint32(o.As(t))),
		}, nil
	case o.Kind == ptx.KindSpecial:
		return d.special(o.Special), nil
	case o.Kind == ptx.KindSym,
		o.Kind == ptx.KindMem && o.Sym != "":
		return d.symbol(o.Sym, int64(o.Bits), t)
	}
	return register{}, fmt.Errorf("an operand that is no value")
}

// constantPred is a predicate that is constantly true (predicate 0) or false (a
// special register that is never set).
func (d *decoder) constantPred(v bool) register {
	if v {
		return register{bankPred, 0}
	}
	r, ok := d.e.special[ptx.NoSpecial]
	if !ok {
		r = register{bankPred, int32(d.e.count[bankPred])}
		d.e.count[bankPred]++
		d.e.special[ptx.NoSpecial] = r
	}
	return r
}

// special is the register preloaded with a special register.
func (d *decoder) special(s ptx.Special) register {
	r, ok := d.e.special[s]
	if !ok {
		b := bankOf(s.Type())
		r = register{b, int32(d.e.count[b])}
		d.e.count[b]++
		d.e.special[s] = r
	}
	return r
}

// symbol is a register preloaded with the address of a variable.
func (d *decoder) symbol(name string, offset int64, t ptx.Type) (register, error) {
	v, ok := d.e.variables[name]
	if !ok {
		return register{}, fmt.Errorf("no variable %s", name)
	}
	addr := v.offset + offset
	switch v.space {
	case global:
		if offset != 0 {
			return register{}, fmt.Errorf("%s+%d as a value is not modelled", name, offset)
		}
		return register{bank64, d.globalAddress(name)}, nil
	case shared:
		addr += sharedBase
	case param:
		addr += paramWindow
	}
	if bankOf(t) == bank64 {
		return register{bank64, d.const64(uint64(addr))}, nil
	}
	return register{bank32, d.const32(uint32(addr))}, nil
}

// globalAddress is the register preloaded with the address of a module variable.
func (d *decoder) globalAddress(name string) int32 {
	r, ok := d.e.globals[name]
	if !ok {
		r = int32(d.e.count[bank64])
		d.e.count[bank64]++
		d.e.globals[name] = r
	}
	return r
}

// destination is a register or the sink.
func (d *decoder) destination(o *ptx.Operand) register {
	if o.Kind == ptx.KindReg {
		return d.register(o.Reg)
	}
	return register{}
}

// pair splits d|p; the second is the sink where it is absent.
func (d *decoder) pair(o *ptx.Operand) (register, register) {
	if o.Kind == ptx.KindPair {
		return d.destination(&o.List[0]),
			d.destination(&o.List[1])
	}
	return d.destination(o), register{}
}

// sources are the registers of an operand that may be a vector.
func (d *decoder) sources(
	o *ptx.Operand, t ptx.Type,
) ([]register, error) {
	if o.Kind != ptx.KindVec {
		r, err := d.source(o, t)
		return []register{r}, err
	}
	var list []register
	for i := range o.List {
		r, err := d.source(&o.List[i], t)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// destinations are the registers of a destination that may be a vector.
func (d *decoder) destinations(o *ptx.Operand) []register {
	if o.Kind != ptx.KindVec {
		return []register{d.destination(o)}
	}
	var list []register
	for i := range o.List {
		list = append(list, d.destination(&o.List[i]))
	}
	return list
}

// place decodes a memory operand.
func (d *decoder) place(o *ptx.Operand) (place, error) {
	switch {
	case o.Kind == ptx.KindTensor:
		return d.place(&o.List[0])
	case o.Kind != ptx.KindMem:
		return place{}, fmt.Errorf("an operand that is no address")
	case !o.Reg.None():
		r := d.register(o.Reg)
		return place{
			r.index, r.bank == bank32, int64(o.Bits),
		}, nil
	case o.Sym != "":
		r, err := d.symbol(o.Sym, 0, ptx.U64)
		return place{
			reg:    r.index,
			offset: int64(o.Bits),
		}, err
	}
	return place{reg: d.const64(o.Bits)}, nil
}

// spaceOf is the state space that a modifier names.
func spaceOf(m ptx.Mod) space {
	switch m {
	case ptx.ModGlobal:
		return global
	case ptx.ModShared, ptx.ModSharedCTA:
		return shared
	case ptx.ModSharedCluster:
		return sharedCluster
	case ptx.ModLocal:
		return local
	case ptx.ModParam, ptx.ModParamEntry:
		return param
	case ptx.ModConst:
		return constant
	}
	return generic
}

// standing is an entry without calls: what it calls is put in their place.
func standing(m *ptx.Module, e *ptx.Entry) (*ptx.Entry, error) {
	calls := func(s ptx.Stmt) bool {
		return s.Kind == ptx.StmtInstr && s.Instr.Opcode.Op == ptx.OpCall
	}
	if !slices.ContainsFunc(e.Body, calls) {
		return e, nil
	}
	alone, err := m.Inline(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotModelled, err)
	}
	return alone, nil
}

// Load decodes every entry of a module. An instruction that the simulator does
// not model is an error that names it.
func Load(m *ptx.Module) (*Program, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	p := &Program{
		target:  m.Target,
		entries: map[string]*entry{},
	}
	for _, v := range m.Vars {
		if v.Space != ptx.ModShared {
			p.globals = append(p.globals, v)
		}
	}
	for i := range m.Entries {
		src, err := standing(m, &m.Entries[i])
		if err != nil {
			return nil, fmt.Errorf("sim: entry %s: call: %w", m.Entries[i].Name, err)
		}
		e, err := decodeEntry(m, src)
		if err != nil {
			return nil, fmt.Errorf(
				"sim: entry %s: %w", m.Entries[i].Name, err,
			)
		}
		p.entries[e.name] = e
	}
	return p, nil
}
