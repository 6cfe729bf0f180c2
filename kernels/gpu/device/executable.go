package device

// A Executable is a compiled plan as data: text, and the launches that run it once.
// Any session can run it, also after its device was lost and opened again.
// Running it again gives the same results: it writes its outputs, and does not
// add to what is there.
type Executable struct {
	PTX     string
	Load    LoadOptions
	Scratch []int64 // bytes of each array that only the work itself uses
	Steps   []Step  // in order; each sees what the ones before it wrote
}

// A Step is a launch whose arguments name arrays instead of addresses.
type Step struct {
	Entry       string
	Grid        Dim3
	Block       Dim3
	Cluster     Dim3
	SharedBytes int
	Args        []Operand
}

// launch is the step without arguments.
func (s Step) launch(f Function) Launch {
	return Launch{
		Function:    f,
		Grid:        s.Grid,
		Block:       s.Block,
		Cluster:     s.Cluster,
		SharedBytes: s.SharedBytes,
	}
}

// An Operand is an argument of a step.
type Operand struct {
	role  role
	index int
	value Arg
	spec  *TensorMapSpec
}

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

// ScratchArray is the address of Scratch[k].
func ScratchArray(k int) Operand { return Operand{role: roleScratch, index: k} }

// Value is an argument that is the same for all arrays.
func Value(a Arg) Operand { return Operand{value: a} }

// Mapped is a tensor map of the array o names; spec's Base is counted from the
// array's first byte.
func (o Operand) Mapped(spec TensorMapSpec) Operand {
	o.spec = &spec
	return o
}

// arrays are the addresses of one run.
type arrays struct{ in, out, scratch []Address }

func (s *arrays) of(r role) []Address {
	switch r {
	case roleInput:
		return s.in
	case roleOutput:
		return s.out
	}
	return s.scratch
}
