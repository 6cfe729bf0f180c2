package device

// An Executable is a compiled plan as data: PTX text, and the launches that run it
// once. Any session can run it, also after its device was lost and opened again. A run
// writes its outputs and does not read them, so running it again gives the same
// results.
type Executable struct {
	PTX  string
	Load LoadOptions
	// Scratch is the bytes of each array that only the executable uses.
	Scratch []int64
	// Zeroed is how many of these arrays, the first, are zeros before a run. A run leaves
	// zeros in them.
	Zeroed int
	// Steps run in order; each sees the results of the ones before.
	Steps []Step
}

// A Step is a launch whose arguments name arrays instead of addresses.
type Step struct {
	Entry       string
	Grid        Dim3
	Block       Dim3
	Cluster     Dim3
	SharedBytes int
	Args        []Operand
	// Dependent is that of Launch.
	Dependent bool
}

// launch is the step without arguments.
func (s Step) launch(f Function) Launch {
	return Launch{
		Function:    f,
		Grid:        s.Grid,
		Block:       s.Block,
		Cluster:     s.Cluster,
		SharedBytes: s.SharedBytes,
		Dependent:   s.Dependent,
	}
}

// An Operand is an argument of a step: an array, a tensor map of an array, or a value.
type Operand struct {
	role  role
	index int
	value Arg
	spec  *TensorMapSpec
}

// A role is the list of arrays that an operand refers to.
type role uint8

const (
	roleValue role = iota
	roleInput
	roleOutput
	roleScratch
)

// Input is the address of parameter k.
func Input(k int) Operand { return Operand{role: roleInput, index: k} }

// Output is the address of result k.
func Output(k int) Operand { return Operand{role: roleOutput, index: k} }

// ScratchArray is the address of array k of Scratch.
func ScratchArray(k int) Operand { return Operand{role: roleScratch, index: k} }

// Value is an argument that does not depend on arrays.
func Value(a Arg) Operand { return Operand{value: a} }

// Mapped is a tensor map of the array that o names. The base of spec is relative to
// the array.
func (o Operand) Mapped(spec TensorMapSpec) Operand {
	o.spec = &spec
	return o
}

// arrays are the addresses of one run.
type arrays struct{ in, out, scratch []Address }

// of is the list of arrays of a role.
func (s *arrays) of(r role) []Address {
	switch r {
	case roleInput:
		return s.in
	case roleOutput:
		return s.out
	}
	return s.scratch
}
