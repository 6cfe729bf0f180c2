package symtile

import "github.com/tilewright/tilewright/symtile/hlo"

// OperandMaps returns, for each operand of in, the map from output indices to
// operand indices; one row per output of a tuple-shaped in is out of scope:
// use get-tuple-element.
func OperandMaps(r *Ring, in *hlo.Instr) []Map { panic("indexing room") }

// UserMaps returns, for each operand of in, the map from operand indices to
// output indices, Undefined where there is none.
func UserMaps(r *Ring, in *hlo.Instr) []Map { panic("indexing room") }

// ParamMaps returns, for each parameter of c, the distinct maps from the
// root's indices (root output output) to the parameter's, composed through the
// computation, in the order they are met.
func ParamMaps(r *Ring, c *hlo.Computation, output int) [][]Map { panic("indexing room") }
