package hlo

import (
	"errors"
	"fmt"
)

// HLO text may leave out the shape of an instruction that follows from its
// operands and attributes, ROOT t = tuple(a, b). The shape rule that checks a
// declared shape finds it: a rule says with a shapeError which shape it wants, and
// is asked with no shape at all. The operations that only have a rule here are
// those that the table takes as they are written. The rules are those of XLA's
// ShapeInference.

// A shapeError says that a declared shape does not follow from the operands.
type shapeError struct {
	// want is the shape that does.
	want Shape
	msg  string
}

// Error says what is declared and what was expected.
func (e *shapeError) Error() string { return e.msg }

// wrongShape is the error of an instruction whose shape should be want.
func wrongShape(want Shape, format string, args ...any) error {
	return &shapeError{want, fmt.Sprintf(format, args...)}
}

// inferShape gives i the shape that the text leaves out, and does nothing for an
// instruction that has one. Computations that the shape depends on must stand
// above.
func (p *parser) inferShape(i *Instr) error {
	if i.Shape.DType != InvalidDType {
		return nil
	}
	p.setKnownCallees(i)
	shape, err := i.inferredShape()
	if err != nil {
		return p.failAt(i, "the shape of %s is left out and cannot be inferred: %v", i.Op, err)
	}
	i.Shape = shape
	i.Attrs.Branches = nil // resolve adds them again
	return nil
}

// setKnownCallees ties the computations of i that were read already.
func (p *parser) setKnownCallees(i *Instr) {
	for k := len(p.callees) - 1; k >= 0 && p.callees[k].instr == i; k-- {
		c := p.callees[k]
		target := p.byName[c.name]
		if target == nil {
			target = p.scalarCallee(c)
		}
		if target != nil {
			c.set(target)
		}
	}
}

// inferredShape is the shape of i by its operands and attributes.
func (i *Instr) inferredShape() (Shape, error) {
	if infer := inferred[i.Op]; infer != nil {
		return infer(i)
	}
	if opTable[i.Op].check == nil {
		return Shape{}, fmt.Errorf("%s is %w", i.Op, errDeclared)
	}
	if i.Op.Class() == ClassContraction {
		i.Shape.DType = wider(i.Operands[0].Shape.DType, i.Operands[1].Shape.DType)
	}
	err := i.check()
	i.Shape.DType = InvalidDType
	e := (*shapeError)(nil)
	switch {
	case errors.As(err, &e) && e.want.DType != InvalidDType:
		return e.want, nil
	case err == nil || e != nil:
		err = errFree
	}
	return Shape{}, err
}

// wider is the type of a product of a and b where none is given: the one of
// more bits, of floating point if either is.
func wider(a, b DType) DType {
	if a.IsFloat() != b.IsFloat() && b.IsFloat() ||
		a.IsFloat() == b.IsFloat() && b.Bits() > a.Bits() {
		return b
	}
	return a
}

// inferred are the rules of operations whose declared shape is not checked, and
// of those whose check needs a part of it.
var inferred = map[Opcode]func(*Instr) (Shape, error){
	OpAbs:               componentShape,
	OpAddDependency:     operandShape,
	OpAfterAll:          tokenShape,
	OpAllReduce:         operandsShape,
	OpAllReduceDone:     operandShape,
	OpAllReduceStart:    operandsShape,
	OpAllToAll:          operandsShape,
	OpAsyncDone:         asyncResultShape,
	OpAsyncUpdate:       operandShape,
	OpBitcast:           freeShape,
	OpBroadcast:         broadcastShape,
	OpCholesky:          operandShape,
	OpCollectivePermute: operandsShape,
	OpComplex:           complexShape,
	OpConditional:       branchShape,
	OpCopyDone:          firstElementShape,
	OpDomain:            operandShape,
	OpGetDimensionSize:  constantShape(S32),
	OpImag:              componentShape,
	OpPartitionId:       constantShape(U32),
	OpReal:              componentShape,
	OpReplicaId:         constantShape(U32),
	OpReshape:           freeShape,
	OpSort:              operandsShape,
	OpTriangularSolve:   lastOperandShape,
	OpWhile:             operandShape,
}

// errNoOperands is the error of an operation that has the shape of an operand and
// has none.
var errNoOperands = errors.New("it has no operands")

// operandShape is the shape of the first operand.
func operandShape(i *Instr) (Shape, error) {
	if len(i.Operands) == 0 {
		return Shape{}, errNoOperands
	}
	return i.Operands[0].Shape, nil
}

// lastOperandShape is the shape of the last operand.
func lastOperandShape(i *Instr) (Shape, error) {
	if len(i.Operands) == 0 {
		return Shape{}, errNoOperands
	}
	return i.Operands[len(i.Operands)-1].Shape, nil
}

// operandsShape is the shape of the operand, or a tuple of those of several.
func operandsShape(i *Instr) (Shape, error) {
	if len(i.Operands) < 2 {
		return operandShape(i)
	}
	return Shape{DType: Tuple, Tuple: operandShapes(i)}, nil
}

// errFree is the error of an operation that may have one of several shapes.
var errFree = errors.New("more than one shape is possible")

// errDeclared is the error of an operation without a shape rule.
var errDeclared = errors.New("what its declaration says")

// freeShape is the rule of operations whose shape has to be written.
func freeShape(*Instr) (Shape, error) { return Shape{}, errFree }

// tokenShape is that of a token.
func tokenShape(*Instr) (Shape, error) { return Shape{DType: Token}, nil }

// constantShape is the rule of operations whose result is a scalar of one type.
func constantShape(d DType) func(*Instr) (Shape, error) {
	return func(*Instr) (Shape, error) { return Shape{DType: d}, nil }
}

// componentShape is the shape of the operand, of real numbers for complex ones.
func componentShape(i *Instr) (Shape, error) {
	s := i.Operands[0].Shape
	s.DType = s.DType.Component()
	return s, nil
}

// complexShape is the shape of the real part, of complex numbers.
func complexShape(i *Instr) (Shape, error) {
	s := i.Operands[0].Shape
	s.DType = map[DType]DType{F32: C64, F64: C128}[s.DType]
	if s.DType == InvalidDType {
		return s, fmt.Errorf("there are no complex numbers of %s", i.Operands[0].Shape)
	}
	return s, nil
}

// broadcastShape is the shape of the operand where no dimension is added.
func broadcastShape(i *Instr) (Shape, error) {
	if s := i.Operands[0].Shape; len(i.Attrs.Dimensions) == s.Rank() {
		return s, nil
	}
	return Shape{}, errFree
}

// branchShape is the result of the first branch of a conditional.
func branchShape(i *Instr) (Shape, error) {
	if len(i.Attrs.Branches) == 0 {
		return Shape{}, fmt.Errorf("its branches have to stand above it")
	}
	return i.Attrs.Branches[0].Root.Shape, nil
}

// asyncResultShape is the result in the tuple of an async-start: (operands,
// result, …).
func asyncResultShape(i *Instr) (Shape, error) { return elementShape(i, 1) }

// firstElementShape is the first element of the operand's tuple.
func firstElementShape(i *Instr) (Shape, error) { return elementShape(i, 0) }

// elementShape is element k of the tuple that the first operand is.
func elementShape(i *Instr, k int) (Shape, error) {
	s, err := operandShape(i)
	if err != nil {
		return s, err
	}
	if k >= len(s.Tuple) {
		return Shape{}, fmt.Errorf("%s is %s, which has no element %d", i.Operands[0].Name, s, k)
	}
	return s.Tuple[k], nil
}
