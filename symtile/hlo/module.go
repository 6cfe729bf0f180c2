package hlo

import (
	"github.com/tilewright/tilewright/symtile/source"
)

// A Module is one HLO file: computations, one of which is the entry.
type Module struct {
	Name         string
	Attrs        []Attr // module-level attributes, verbatim, in file order
	Computations []*Computation
	Entry        *Computation
}

// A Computation is a list of instructions in an order in which operands come
// before their users.
type Computation struct {
	Name   string
	Instrs []*Instr
	Params []*Instr // by parameter number
	Root   *Instr
}

// An Instr is one instruction. Shape is the shape of its result.
type Instr struct {
	Name     string // without the leading %
	Op       Opcode
	Shape    Shape
	Operands []*Instr
	Attrs    Attrs
	Literal  *Literal // the value of a constant; nil otherwise
	Pos      Pos
}

// Attrs are the attributes the project reasons about, typed. Everything else
// is in Other, verbatim. A nil slice means the attribute is absent or empty.
type Attrs struct {
	Param                      int            // parameter number
	Index                      int            // get-tuple-element
	Dimensions                 []int64        // broadcast, transpose, reduce, concatenate, reverse, map, …
	IotaDim                    int64          // iota_dimension
	Slice                      []SliceDim     // slice={[start:limit:stride], …}
	Padding                    []PadDim       // pad: low_high[_interior]x…
	LHSBatch                   []int64        // lhs_batch_dims
	RHSBatch                   []int64        // rhs_batch_dims
	LHSContract                []int64        // lhs_contracting_dims
	RHSContract                []int64        // rhs_contracting_dims
	Window                     []WindowDim    // window= of reduce-window, select-and-scatter, convolution
	Conv                       *ConvDims      // dim_labels= of convolution
	FeatureGroups, BatchGroups int64          // of convolution; 0 is 1
	Gather                     *GatherDims    // gather
	Scatter                    *ScatterDims   // scatter
	SliceSizes                 []int64        // dynamic_slice_sizes
	ReplicaGroups              [][]int64      // replica_groups= of collectives; nil or empty: all replicas
	SourceTargets              [][]int64      // source_target_pairs= of collective-permute
	Direction                  string         // compare: EQ NE LT LE GT GE
	CompareType                string         // compare: type=TOTALORDER, "" otherwise
	Kind                       string         // fusion: kLoop kInput kOutput kCustom
	Calls                      *Computation   // calls= of fusion, to_apply= of call
	ToApply                    *Computation   // to_apply= of reduce, map, sort, …; scatter= of select-and-scatter
	Select                     *Computation   // select= of select-and-scatter
	Branches                   []*Computation // body=, condition=, branch_computations=, in file order
	Other                      []Attr         // the rest, in file order
}

// SliceDim is one dimension of a slice: indices start, start+stride, … < limit.
type SliceDim struct{ Start, Limit, Stride int64 }

// PadDim is one dimension of a padding. Low and High may be negative.
type PadDim struct{ Low, High, Interior int64 }

// Attr is an attribute kept as text.
type Attr struct{ Name, Value string }

// Pos is a place in the source text; Line and Col count from 1, Col in bytes.
type Pos = source.Position

// ParamShapes is the shapes of the parameters, by parameter number.
func (c *Computation) ParamShapes() []Shape {
	shapes := make([]Shape, len(c.Params))
	for k, p := range c.Params {
		shapes[k] = p.Shape
	}
	return shapes
}

// Reads reports whether output, an element of the root tuple or 0 for the root
// itself, is made from parameter param.
func (c *Computation) Reads(output, param int) bool {
	root := c.Root
	if root.Op == OpTuple && output < len(root.Operands) {
		root = root.Operands[output]
	}
	seen := map[*Instr]bool{}
	var reads func(i *Instr) bool
	reads = func(i *Instr) bool {
		if seen[i] {
			return false
		}
		seen[i] = true
		for _, o := range i.Operands {
			if reads(o) {
				return true
			}
		}
		return i.Op == OpParameter && i.Attrs.Param == param
	}
	return reads(root)
}
