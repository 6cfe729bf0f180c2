package indexing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// OperandMaps returns, for each operand of in, the maps from indices of the
// result to indices of the operand: which elements of the operand an element of
// the result is made from. There is one map for most operations, and one for
// each distinct way in which a fusion or call reads the operand. Run-time
// variables whose value is known are replaced; the maps are not simplified.
//
// The arrays of a result that is a tuple are numbered as they are written,
// nested ones in place; output is the number of the one that is asked for, 0
// for a result that is an array. An operand that is a tuple has the maps of
// those of its arrays that are read. An operand that is not read has none. A
// map whose State is StateUndefined says why.
func OperandMaps(
	r *index.Ring, in *hlo.Instr, output int,
) [][]index.Map {
	maps := make([][]index.Map, len(in.Operands))
	for _, l := range newWalker(r).edges(in, output) {
		maps[l.operand] = append(
			maps[l.operand], l.maps...,
		)
	}
	return maps
}

// UserMaps returns, for each operand of in, the maps from indices of the
// operand to indices of the result's array output, numbered as for OperandMaps:
// which elements of the result an element of the operand takes part in. It is
// the inverse relation of OperandMaps.
func UserMaps(
	r *index.Ring, in *hlo.Instr, output int,
) [][]index.Map {
	maps := make([][]index.Map, len(in.Operands))
	w := newWalker(r)
	for k, o := range in.Operands {
		for e := range o.Shape.Arrays() {
			maps[k] = append(
				maps[k],
				w.userEdges(in, k, e, output)...,
			)
		}
	}
	return maps
}

// arrayOf is array k of s; the zero Shape where there is none.
func arrayOf(s hlo.Shape, k int) hlo.Shape {
	if all := s.Arrays(); k < len(all) {
		return all[k]
	}
	return hlo.Shape{}
}

// An indexer makes the maps of one instruction, in either direction. Its rows
// are in the tables operandMaps and userMaps.
type indexer struct {
	// r is the ring in which maps are built.
	r *index.Ring
	// in is the instruction.
	in *hlo.Instr
	// op is in.Op, or for the first half of an asynchronous collective the
	// operation that it starts.
	op hlo.Opcode
	// output is the number of the array of the result.
	output int
	// shape is the shape of the output.
	shape hlo.Shape
	// operand is the number of the operand that userMap is asked for.
	operand int
	// dims are the dimension variables of a map: those of the output, or of the
	// operand for userMap.
	dims []index.Expr
}

// newIndexer is an indexer for one array of in's result, with its dimension
// variables.
func newIndexer(r *index.Ring, in *hlo.Instr, output int) *indexer {
	x := &indexer{
		r:      r,
		in:     in,
		op:     in.Op,
		output: output,
		shape:  arrayOf(in.Shape, output),
	}
	if whole, ok := startOf[in.Op]; ok {
		// The operands come before the results in the tuple.
		x.op = whole
		x.output = output - len(in.Operands)
	}
	x.dims = x.variables(
		"d", index.RoleDim, x.shape.Dims,
	)
	return x
}

// startOf is the collective of which an operation is the first half, whose
// operands come before its results in a tuple.
var startOf = map[hlo.Opcode]hlo.Opcode{
	hlo.OpAllGatherStart:         hlo.OpAllGather,
	hlo.OpCollectivePermuteStart: hlo.OpCollectivePermute,
}

// operandMaps are the maps to every operand. The operands have to be arrays.
func (x *indexer) operandMaps() []index.Map {
	row, ok := operandMaps[x.op]
	switch {
	case ok:
	case x.in.Op.Elementwise():
		row = operandsElementwise
	default:
		return x.undefined("%s", unknownReason(x.in))
	}
	if slices.Contains(x.shape.Dims, 0) {
		row = operandsOfNothing
	}
	maps := row(x)
	for k := range maps {
		maps[k] = x.complete(maps[k])
	}
	return maps
}

// operandsOfNothing are the maps of a result without elements.
func operandsOfNothing(x *indexer) []index.Map {
	return make([]index.Map, len(x.in.Operands))
}

// userMap is the map from the operand's indices to the output's.
func (x *indexer) userMap(operand int) index.Map {
	x.operand = operand
	x.dims = x.variables(
		"d", index.RoleDim, x.operandDims(operand),
	)
	row, ok := userMaps[x.op]
	switch {
	case ok:
	case x.in.Op.Elementwise():
		row = usersElementwise
	default:
		return x.unknown("%s", unknownReason(x.in))
	}
	if slices.Contains(x.shape.Dims, 0) ||
		slices.Contains(x.operandDims(operand), 0) {
		return index.Map{State: index.StateEmpty, Dims: x.dims}
	}
	return x.complete(row(x))
}

// complete adds what all maps have in common: the dimensions, StateEmpty where
// a domain has no points, and known values in place of run-time variables.
func (x *indexer) complete(m index.Map) index.Map {
	m.Dims = x.dims
	if m.State == index.StateUndefined {
		return m
	}
	for _, e := range slices.Concat(m.Dims, m.Ranges) {
		if v, constant := e.Value(); constant && v < 0 {
			m.State = index.StateEmpty
		}
	}
	if m.State == index.StateEmpty {
		return m
	}
	return foldRuntime(m)
}

// undefined is, for every operand, a map of which nothing is known, with the
// reason.
func (x *indexer) undefined(format string, args ...any) []index.Map {
	maps := make([]index.Map, len(x.in.Operands))
	for k := range maps {
		maps[k] = x.unknown(format, args...)
	}
	return maps
}

// unknown is a map of which nothing is known, with the reason.
func (x *indexer) unknown(format string, args ...any) index.Map {
	return index.Map{
		State: index.StateUndefined,
		Why: fmt.Sprintf("%s (%s): ", x.in.Name, x.in.Op) +
			fmt.Sprintf(format, args...),
	}
}

// variables are a variable for each extent; −1 stands for one without values,
// of extent 0.
func (x *indexer) variables(
	name string, role index.Role, extents []int64,
) []index.Expr {
	vars := make([]index.Expr, len(extents))
	for k, n := range extents {
		vars[k] = x.r.Const(-1)
		if n > 0 {
			vars[k] = x.r.Var(index.Variable{
				Name: fmt.Sprintf("%s%d", name, k),
				Hi:   n - 1,
				Role: role,
			})
		}
	}
	return vars
}

// ranges are range variables of the extents.
func (x *indexer) ranges(extents []int64) []index.Expr {
	return x.variables("s", index.RoleRange, extents)
}

// everywhere is the map to all elements of the output.
func (x *indexer) everywhere() index.Map {
	all := x.ranges(x.shape.Dims)
	return index.Map{Ranges: all, Results: all}
}

// operandDims are the extents of operand k.
func (x *indexer) operandDims(k int) []int64 {
	return x.in.Operands[k].Shape.Dims
}

// singleMap is the maps of an operation with one operand.
func (x *indexer) singleMap(results []index.Expr) []index.Map {
	return []index.Map{{Results: results}}
}

// operandMaps is the table of maps from the result to the operands. Elementwise
// operations are all one row, operandsElementwise.
var operandMaps = map[hlo.Opcode]func(*indexer) []index.Map{
	hlo.OpParameter:      func(*indexer) []index.Map { return nil },
	hlo.OpConstant:       func(*indexer) []index.Map { return nil },
	hlo.OpIota:           func(*indexer) []index.Map { return nil },
	hlo.OpPartitionId:    func(*indexer) []index.Map { return nil },
	hlo.OpReplicaId:      func(*indexer) []index.Map { return nil },
	hlo.OpMap:            operandsElementwise,
	hlo.OpBitcastConvert: operandsBitcastConvert,
	hlo.OpBroadcast: func(x *indexer) []index.Map {
		return x.singleMap(gatherDims(x.dims, x.in.Attrs.Dimensions))
	},
	hlo.OpTranspose: func(x *indexer) []index.Map {
		return x.singleMap(scatterDims(x.dims, x.in.Attrs.Dimensions))
	},
	hlo.OpReshape: func(x *indexer) []index.Map {
		return x.singleMap(x.reshaped(
			x.dims, x.shape.Dims, x.operandDims(0),
		))
	},
	hlo.OpBitcast: func(x *indexer) []index.Map {
		return []index.Map{
			x.bitcast(x.shape, x.in.Operands[0].Shape),
		}
	},
	hlo.OpSlice: func(x *indexer) []index.Map {
		return x.singleMap(sliced(x.dims, x.in.Attrs.Slice))
	},
	hlo.OpReverse:             func(x *indexer) []index.Map { return x.singleMap(x.mirrored()) },
	hlo.OpConcatenate:         operandsConcatenate,
	hlo.OpPad:                 operandsPad,
	hlo.OpReduce:              operandsReduce,
	hlo.OpReduceWindow:        operandsReduceWindow,
	hlo.OpConvolution:         operandsConvolution,
	hlo.OpDot:                 operandsDot,
	hlo.OpScaledDot:           operandsScaledDot,
	hlo.OpDynamicSlice:        operandsDynamicSlice,
	hlo.OpDynamicUpdateSlice:  operandsDynamicUpdateSlice,
	hlo.OpGather:              operandsGather,
	hlo.OpScatter:             operandsScatter,
	hlo.OpScan:                operandsScan,
	hlo.OpAllGather:           operandsAllGather,
	hlo.OpAllReduce:           operandsAllReduce,
	hlo.OpAllReduceStart:      operandsAllReduce,
	hlo.OpReduceScatter:       operandsReduceScatter,
	hlo.OpAllToAll:            operandsAllToAll,
	hlo.OpCollectivePermute:   operandsCollectivePermute,
	hlo.OpCollectiveBroadcast: operandsCollectiveBroadcast,
}

// userMaps is the table of maps from an operand to the result. Elementwise
// operations are all one row, usersElementwise.
var userMaps = map[hlo.Opcode]func(*indexer) index.Map{
	hlo.OpMap: usersElementwise,
	hlo.OpBitcastConvert: func(x *indexer) index.Map {
		return x.bitcastConvert(
			x.operandDims(0), x.shape.Dims,
		)
	},
	hlo.OpBroadcast: usersBroadcast,
	hlo.OpTranspose: func(x *indexer) index.Map {
		return index.Map{
			Results: gatherDims(x.dims, x.in.Attrs.Dimensions),
		}
	},
	hlo.OpReshape: func(x *indexer) index.Map {
		return index.Map{
			Results: x.reshaped(x.dims, x.operandDims(0), x.shape.Dims),
		}
	},
	hlo.OpBitcast: func(x *indexer) index.Map {
		return x.bitcast(x.in.Operands[0].Shape, x.shape)
	},
	hlo.OpSlice:               usersSlice,
	hlo.OpReverse:             func(x *indexer) index.Map { return index.Map{Results: x.mirrored()} },
	hlo.OpConcatenate:         usersConcatenate,
	hlo.OpPad:                 usersPad,
	hlo.OpReduce:              usersReduce,
	hlo.OpReduceWindow:        usersReduceWindow,
	hlo.OpConvolution:         usersConvolution,
	hlo.OpDot:                 usersDot,
	hlo.OpScaledDot:           usersScaledDot,
	hlo.OpDynamicSlice:        usersDynamicSlice,
	hlo.OpDynamicUpdateSlice:  usersDynamicUpdateSlice,
	hlo.OpGather:              usersGather,
	hlo.OpScatter:             usersScatter,
	hlo.OpScan:                usersScan,
	hlo.OpAllGather:           usersAllGather,
	hlo.OpAllReduce:           usersAllReduce,
	hlo.OpAllReduceStart:      usersAllReduce,
	hlo.OpReduceScatter:       usersReduceScatter,
	hlo.OpAllToAll:            usersAllToAll,
	hlo.OpCollectivePermute:   usersCollectivePermute,
	hlo.OpCollectiveBroadcast: usersCollectiveBroadcast,
}

// unknownReason is the reason why it is not known which elements an instruction
// reads: its own, or that of its operation.
func unknownReason(in *hlo.Instr) string {
	if why := cmp.Or(in.Unknown(), unknownReasons[in.Op]); why != "" {
		return why
	}
	return "there is no indexing map for this operation"
}

// unknownReasons are reasons for operations without a row in the tables.
var unknownReasons = map[hlo.Opcode]string{
	hlo.OpSelectAndScatter:     "which element of a window is selected depends on the values in it",
	hlo.OpSort:                 "where an element ends up depends on the values it is compared with",
	hlo.OpTopK:                 "which elements are greatest depends on their values",
	hlo.OpFft:                  "a transform mixes a whole axis by a formula that is not a set of elements at fixed places",
	hlo.OpCholesky:             "elements of the factor depend on each other in order",
	hlo.OpTriangularSolve:      "elements of the solution depend on each other in order",
	hlo.OpRng:                  "random numbers are made from a state and not from operands",
	hlo.OpRngBitGenerator:      "random numbers are made from a state and not from operands",
	hlo.OpRngGetAndUpdateState: "random numbers are made from a state and not from operands",
	hlo.OpCustomCall:           "what the target reads is not known",
	hlo.OpWhile:                "how often the body runs is known at run time only",
	hlo.OpConditional:          "which branch runs is known at run time only",
	hlo.OpRaggedDot:            "the sizes of its groups are known at run time only",
	hlo.OpRaggedAllToAll:       "the sizes of its pieces are known at run time only",
	hlo.OpGetDimensionSize:     "dynamic shapes have no indexing maps",
	hlo.OpSetDimensionSize:     "dynamic shapes have no indexing maps",
	hlo.OpDynamicReshape:       "dynamic shapes have no indexing maps",
}
