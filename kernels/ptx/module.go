package ptx

import "strings"

// A Version is a version of the PTX ISA, the operand of .version.
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

// A Module is the content of a PTX file.
type Module struct {
	Version Version
	Target  Target
	// Vars are the .shared and .global variables of the whole module.
	Vars []Var
	// Functions are what kernels call.
	Functions []Function
	// Entries are the kernels.
	Entries []Entry

	// file is the name of the text that the module was parsed from.
	file string
	// src is the text that the lines of the statements count in; it is empty if
	// that is Text.
	src string
}

// Linkage is the visibility of a name.
type Linkage uint8

const (
	// Local is a name of its module.
	Local Linkage = iota
	// Visible is a name that other modules and the host may use.
	Visible
	// Extern is a name that is defined elsewhere, such as dynamic shared memory.
	Extern
	// Weak is a name that other definitions override.
	Weak
)

// A Var is a variable in shared, global or constant memory.
type Var struct {
	Linkage Linkage
	// Space is ModShared, ModGlobal, ModConst, or in a body ModLocal or ModParam.
	Space Mod
	// Align is the alignment in bytes; 0 is the natural alignment of Type.
	Align int
	Type  Type
	Name  string
	// Array is set if the variable is declared with [].
	Array bool
	// Count is the number of elements of an array; 0 if the launch decides it
	// (.extern).
	Count int
	// Init holds the initial values of the first elements; floats as their bits.
	Init []int64
	Line int32
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
	Type Type
	// Align is the alignment in bytes; 0 is the natural alignment of Type.
	Align int
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

// Offsets are the offset of each parameter in the parameter block, and the size
// of the block, in bytes.
func Offsets(params []Param) (offsets []int, size int) {
	for i := range params {
		a := max(1, params[i].Alignment())
		size = (size + a - 1) / a * a
		offsets = append(offsets, size)
		size += params[i].Bytes()
	}
	return offsets, size
}

// An Entry is a kernel. In the dimensions and counts, zero means that the
// directive is absent.
type Entry struct {
	Name    string
	Linkage Linkage
	Params  []Param

	// MaxNTid is the maximum number of threads of a block.
	MaxNTid [3]int
	// ReqNTid is the exact number of threads of a block.
	ReqNTid [3]int
	// MinNCTAPerSM is the number of blocks that should fit on a multiprocessor.
	MinNCTAPerSM int
	// MaxNCTAPerSM is the deprecated form of MinNCTAPerSM.
	MaxNCTAPerSM int
	// MaxNReg is the maximum number of registers of a thread.
	MaxNReg int
	// ReqNCTAPerCluster is the exact number of blocks of a cluster.
	ReqNCTAPerCluster [3]int
	// ExplicitCluster is set if the kernel is launched with clusters.
	ExplicitCluster bool
	// MaxClusterRank is the maximum number of blocks of a cluster.
	MaxClusterRank int

	// Regs are the register sets, declared in the body or before it.
	Regs []RegSet
	// Vars are the variables declared in the body.
	Vars []Var
	Body []Stmt
	Line int32
}

// A Function is a .func: what entries and other functions call. Its parameters are read
// and its results written as parameters are.
type Function struct {
	Entry
	Results []Param
	// Declared is set where there is no body: another module, or a later function of this
	// name, has it.
	Declared bool
}

// A RegSet is the registers of one declaration: Prefix0, Prefix1, … or, if N is
// 0, the single register called Prefix.
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

// StmtKind is the kind of a statement.
type StmtKind uint8

const (
	// StmtInstr is the instruction Instr.
	StmtInstr StmtKind = iota
	// StmtLabel is the label Text.
	StmtLabel
	// StmtComment is the comment Text.
	StmtComment
	// StmtReg declares Entry.Regs[Index].
	StmtReg
	// StmtVar declares Entry.Vars[Index].
	StmtVar
	// StmtOpen is the { that opens a block.
	StmtOpen
	// StmtClose is the } that closes a block.
	StmtClose
	// StmtTargets lists the labels that a brx.idx chooses from, as operands of Instr.
	StmtTargets
)

// Stmt is one statement of a body, which is a line of its text.
type Stmt struct {
	Kind StmtKind
	// Line is the line of the text that the statement was parsed from or is
	// printed to, from 1; Col is the column in bytes, from 1.
	Line int32
	Col  int32
	// Index is the declaration of a StmtReg or StmtVar.
	Index int32
	// Text is the name of a label, or a comment.
	Text  string
	Instr Instr
}

// A Guard is the predicate under which an instruction executes; the zero Guard is
// always true.
type Guard struct {
	Reg Reg
	// Neg is set if the instruction executes where the predicate is false.
	Neg bool
}

// None reports whether the instruction executes always.
func (g Guard) None() bool { return g.Reg.None() }

// An Instr is an instruction: a guard, an opcode and operands, destinations
// first.
type Instr struct {
	Guard    Guard
	Opcode   Opcode
	Operands []Operand
}

// maxMods is the maximum number of modifiers of an opcode, so that opcodes are
// comparable arrays.
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
