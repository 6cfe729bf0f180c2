package ptx

import "strings"

// A Version is a version of the PTX ISA: what .version says.
type Version struct{ Major, Minor int }

// AtLeast reports whether v is w or later.
func (v Version) AtLeast(w Version) bool {
	return v.Major > w.Major ||
		v.Major == w.Major && v.Minor >= w.Minor
}

// A Target is what .target says: sm_SM, and where Arch is 'a' the features that
// only this architecture has.
type Target struct {
	SM   int
	Arch byte // 0 or 'a'
}

// A Module is a PTX file.
type Module struct {
	Version Version
	Target  Target
	Vars    []Var // .shared and .global variables of the whole module
	Entries []Entry

	file string // where it was parsed from
	src  string // the text that the lines of its statements count in; empty where that is Text
}

// Linkage says who sees a name.
type Linkage uint8

const (
	Local Linkage = iota
	Visible
	Extern
	Weak
)

// A Var is a variable in shared, global or constant memory.
type Var struct {
	Linkage Linkage
	Space   Mod // ModShared, ModGlobal or ModConst
	Align   int // bytes; 0 is the natural alignment of Type
	Type    Type
	Name    string
	Array   bool    // declared with []
	Count   int     // elements of an array; 0 where the launch says how many (.extern)
	Init    []int64 // initial values of the first elements; floats as their bits
	Line    int32
}

// Bytes is the size of the variable.
func (v *Var) Bytes() int {
	if v.Array {
		return v.Count * v.Type.Bytes()
	}
	return v.Type.Bytes()
}

// Alignment is the alignment of the variable in bytes.
func (v *Var) Alignment() int {
	return max(v.Align, v.Type.Bytes())
}

// A Param is a parameter of an entry: a scalar, or Count elements such as the 128
// bytes of a tensor map.
type Param struct {
	Type  Type
	Align int // bytes; 0 is the natural alignment of Type
	Count int // elements of an array; 0 for a scalar
	Name  string
	Line  int32
}

// Bytes is the size of the parameter.
func (p *Param) Bytes() int {
	return max(1, p.Count) * p.Type.Bytes()
}

// Alignment is the alignment of the parameter in bytes.
func (p *Param) Alignment() int {
	return max(p.Align, p.Type.Bytes())
}

// Offsets is where each parameter lies in the parameter block, and the size of
// the block, in bytes.
func Offsets(params []Param) (offsets []int, size int) {
	for i := range params {
		a := max(1, params[i].Alignment())
		size = (size + a - 1) / a * a
		offsets = append(offsets, size)
		size += params[i].Bytes()
	}
	return offsets, size
}

// An Entry is a kernel. In the dimensions and counts zero is "not said".
type Entry struct {
	Name    string
	Linkage Linkage
	Params  []Param

	MaxNTid           [3]int // most threads of a block
	ReqNTid           [3]int // exactly the threads of a block
	MinNCTAPerSM      int    // blocks that should fit on a multiprocessor
	MaxNCTAPerSM      int    // deprecated form of it
	MaxNReg           int    // most registers of a thread
	ReqNCTAPerCluster [3]int // blocks of a cluster
	ExplicitCluster   bool   // launched with clusters
	MaxClusterRank    int    // most blocks of a cluster

	Regs []RegSet
	Vars []Var // declared in the body
	Body []Stmt
	Line int32
}

// A RegSet is the registers of one declaration: Prefix0, Prefix1, … or, where N
// is 0, the one register that is called Prefix.
type RegSet struct {
	Prefix string
	Type   Type
	N      int
}

// Len is the number of registers of the set.
func (s *RegSet) Len() int { return max(1, s.N) }

// RegType is the type that r was declared with.
func (e *Entry) RegType(r Reg) Type {
	if r.Set < 1 || int(r.Set) > len(e.Regs) {
		return NoMod
	}
	return e.Regs[r.Set-1].Type
}

// StmtKind says what a statement is.
type StmtKind uint8

const (
	StmtInstr   StmtKind = iota
	StmtLabel            // Text:
	StmtComment          // // Text
	StmtReg              // declares Entry.Regs[Index]
	StmtVar              // declares Entry.Vars[Index]
	StmtOpen             // {
	StmtClose            // }
)

// A Stmt is one statement of a body, which is a line of its text.
type Stmt struct {
	Kind  StmtKind
	Line  int32 // of the text it was parsed from or is printed to, from 1
	Col   int32
	Index int32
	Text  string
	Instr Instr
}

// A Guard is the predicate under which an instruction executes; the zero Guard
// always does.
type Guard struct {
	Reg Reg
	Neg bool // executes where the predicate is false
}

// None reports whether the instruction executes always.
func (g Guard) None() bool { return g.Reg.None() }

// An Instr is an instruction.
type Instr struct {
	Guard    Guard
	Opcode   Opcode
	Operands []Operand
}

const maxMods = 13

// An Opcode is an operation with its modifiers in the order they are written.
// Opcodes are comparable.
type Opcode struct {
	Op   Op
	n    uint8
	mods [maxMods]Mod
}

// Mods is the modifiers in the order they are written.
func (c *Opcode) Mods() []Mod {
	return c.mods[:c.n]
}

// Has reports whether m is among the modifiers.
func (c *Opcode) Has(m Mod) bool {
	for _, x := range c.Mods() {
		if x == m {
			return true
		}
	}
	return false
}

// Type is type modifier i, counted from 0; from the end where i is negative.
// NoMod where there is none.
func (c *Opcode) Type(i int) Type {
	var types [maxMods]Mod
	n := 0
	for _, m := range c.Mods() {
		if m.IsType() {
			types[n] = m
			n++
		}
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return NoMod
	}
	return types[i]
}

// Space is the first state space among the modifiers, NoMod for generic
// addresses.
func (c *Opcode) Space() Mod {
	for _, m := range c.Mods() {
		if m >= ModParam && m <= ModConst {
			return m
		}
	}
	return NoMod
}

// Vec is the number of elements that a load or store moves: 1, 2, 4 or 8.
func (c *Opcode) Vec() int {
	switch {
	case c.Has(ModV2):
		return 2
	case c.Has(ModV4):
		return 4
	case c.Has(ModV8):
		return 8
	}
	return 1
}

// Shape is the shape of a matrix product, zero where the opcode is none.
func (c *Opcode) Shape() Shape {
	for _, m := range c.Mods() {
		if s := m.Shape(); s != (Shape{}) {
			return s
		}
	}
	return Shape{}
}

// String is the opcode as written.
func (c Opcode) String() string {
	var b strings.Builder
	b.WriteString(c.Op.String())
	for _, m := range c.Mods() {
		b.WriteByte('.')
		b.WriteString(m.String())
	}
	return b.String()
}
