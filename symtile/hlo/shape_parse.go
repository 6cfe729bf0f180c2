package hlo

import (
	"slices"
	"strconv"
)

// Shapes in HLO text:
//
//	shape  = type "[" extents "]" [ layout ] | tuple | "b" tuple .
//	tuple  = "(" [ shape { "," shape } ] ")" .
//	extent = number | "<=" number | "?" .
//	layout = "{" [ numbers ] [ ":" [ tiles ] [ rest ] ] "}" .
//	tiles  = "T" "(" numbers ")" { "(" numbers ")" } .
//
// Each text is parsed once in a module and then found by its bytes.

// shape reads a shape: f32[8,16]{1,0:T(8,128)}, or a tuple of shapes.
func (s *scanner) shape(depth int) (Shape, error) {
	if depth > maxDepth {
		return Shape{}, s.failNext("tuples nested more than %d deep", maxDepth)
	}
	if s.accept("(") {
		return s.tupleShape(depth)
	}
	if s.accept("b(") {
		return s.bufferShape(depth)
	}
	end := s.shapeEnd()
	if shape, ok := s.shapes[string(s.Src[s.At:end])]; ok {
		s.At = end
		return shape, nil
	}
	start := s.At
	shape, err := s.arrayShape()
	if err == nil && s.At == end && s.shapes != nil {
		s.shapes[string(s.Src[start:end])] = shape
	}
	return shape, err
}

// shapeEnd is where the shape that starts here ends if it is short and looks
// like f32[8,16]{1,0}; most shapes of a module are repeated, and then share
// their dimensions.
func (s *scanner) shapeEnd() int {
	end := s.At
	for ; end < min(len(s.Src), s.At+80); end++ {
		switch c := s.Src[end]; {
		case c == ']' &&
			(end+1 == len(s.Src) || s.Src[end+1] != '{'),
			c == '}':
			return end + 1
		case c == '(' || c == '\n':
			return s.At
		}
	}
	return s.At
}

// arrayShape reads type[extents] and an optional layout.
func (s *scanner) arrayShape() (Shape, error) {
	start := s.nextPosition()
	name, err := s.nameText("a shape")
	if err != nil {
		return Shape{}, err
	}
	dtype, ok := dtypeNames[string(name)]
	if !ok {
		return Shape{}, s.Fail(start, "%q is not an element type", name)
	}
	shape := Shape{DType: dtype}
	if err = s.extents(&shape); err != nil {
		return Shape{}, err
	}
	if s.layoutNext() {
		if shape.Layout, err = s.layout(len(shape.Dims)); err != nil {
			return Shape{}, err
		}
	}
	if err := shape.checkSize(); err != nil {
		return Shape{}, s.Fail(start, "%v", err)
	}
	shape.Dims = slices.Clip(shape.Dims)
	return shape, nil
}

// nextPosition is the position of the next token.
func (s *scanner) nextPosition() position {
	s.skip()
	return s.Here()
}

// tupleShape reads (shape, shape, …); depth bounds the nesting.
func (s *scanner) tupleShape(depth int) (Shape, error) {
	shape := Shape{DType: Tuple}
	for !s.accept(")") {
		if len(shape.Tuple) > 0 {
			if err := s.expect(","); err != nil {
				return Shape{}, err
			}
		}
		e, err := s.shape(depth + 1)
		if err != nil {
			return Shape{}, err
		}
		shape.Tuple = append(shape.Tuple, e)
	}
	return shape, nil
}

// bufferShape reads the rest of b(shape).
func (s *scanner) bufferShape(depth int) (Shape, error) {
	of, err := s.shape(depth + 1)
	if err != nil {
		return Shape{}, err
	}
	return Shape{DType: Buffer, Tuple: []Shape{of}}, s.expect(")")
}

// layoutNext reports whether a layout follows the extents. After a blank { may
// also open a computation, whose instructions begin with a name.
func (s *scanner) layoutNext() bool {
	if s.At < len(s.Src) && s.Src[s.At] == '{' {
		return true
	}
	saved := *s
	defer func() { *s = saved }()
	s.skipBlanks()
	if !s.Has("{") {
		return false
	}
	s.At++
	s.skipBlanks()
	return s.At < len(s.Src) &&
		(s.Src[s.At] == ':' || s.Src[s.At] >= '0' && s.Src[s.At] <= '9')
}

// extents reads [8,<=16] into the shape.
func (s *scanner) extents(shape *Shape) error {
	if err := s.expect("["); err != nil {
		return err
	}
	for !s.accept("]") {
		if len(shape.Dims) > 0 {
			if err := s.expect(","); err != nil {
				return err
			}
		}
		if err := s.extent(shape); err != nil {
			return err
		}
	}
	return nil
}

// extent reads 8, or <=8 for an extent that is known at run time, and adds it
// to the shape.
func (s *scanner) extent(shape *Shape) error {
	if s.accept("?") {
		if shape.Dims = append(shape.Dims, openExtent); len(shape.Dims) > maxRank {
			return s.failNext("the shape has more than %d dimensions", maxRank)
		}
		return nil
	}
	bound := s.accept("<=")
	p := s.nextPosition()
	n, err := s.integer()
	if err != nil {
		return err
	}
	if n < 0 {
		return s.Fail(p, "an extent cannot be negative")
	}
	if shape.Dims = append(shape.Dims, n); len(shape.Dims) > maxRank {
		return s.Fail(p, "the shape has more than %d dimensions", maxRank)
	}
	if bound {
		shape.setBounded(len(shape.Dims) - 1)
	}
	return nil
}

// maxRank bounds the dimensions of a shape. Arrays of programs have ten at most;
// indexing maps of an array of 100,000 would take minutes to print.
const maxRank = 256

// integer reads a decimal integer that fits an int64.
func (s *scanner) integer() (int64, error) {
	p := s.nextPosition()
	start := s.At
	if s.At < len(s.Src) && s.Src[s.At] == '-' {
		s.At++
	}
	for s.At < len(s.Src) &&
		s.Src[s.At] >= '0' &&
		s.Src[s.At] <= '9' {
		s.At++
	}
	v, err := strconv.ParseInt(
		string(s.Src[start:s.At]), 10, 64,
	)
	if err != nil {
		found := s.Src[start:s.At]
		s.At = start
		if len(found) > 1 {
			return 0, s.Fail(p, "%s does not fit 64 bits", found)
		}
		return 0, s.Fail(p, "expected an integer, found %s", s.found())
	}
	return v, nil
}

// layout reads {1,0:T(8,128)(2,1)S(1)} for a given rank.
func (s *scanner) layout(rank int) (Layout, error) {
	s.skipBlanks()
	p := s.Here()
	s.At++ // {
	var l Layout
	seen := make([]bool, rank)
	for s.peek() != '}' && s.peek() != ':' {
		if len(l.MinorToMajor) > 0 {
			if err := s.expect(","); err != nil {
				return l, err
			}
		}
		d, err := s.integer()
		if err != nil {
			return l, err
		}
		if d < 0 || d >= int64(rank) || seen[d] {
			return l, s.Fail(p, "a layout lists each of the %d dimensions once", rank)
		}
		seen[d] = true
		l.MinorToMajor = append(l.MinorToMajor, int(d))
	}
	if len(l.MinorToMajor) != rank &&
		(rank == 0 || len(l.MinorToMajor) != 0) {
		return l, s.Fail(p, "a layout lists each of the %d dimensions once", rank)
	}
	if s.accept(":") {
		if err := s.layoutTiles(&l); err != nil {
			return l, err
		}
	}
	return l, s.expect("}")
}

// layoutTiles reads T(8,128)(2,1) and keeps what follows as text.
func (s *scanner) layoutTiles(l *Layout) error {
	if s.accept("T") {
		for s.accept("(") {
			var tile []int64
			for !s.accept(")") {
				if len(tile) > 0 {
					if err := s.expect(","); err != nil {
						return err
					}
				}
				t := int64(-1)
				if !s.accept("*") {
					p := s.nextPosition()
					err := error(nil)
					if t, err = s.integer(); err != nil {
						return err
					}
					if t < 1 {
						return s.Fail(p, "a layout tile has sizes of at least 1")
					}
				}
				tile = append(tile, t)
			}
			l.Tiles = append(l.Tiles, tile)
		}
	}
	rest, err := s.raw()
	l.Rest = rest
	return err
}

// ParseShape reads one shape.
func ParseShape(text string) (Shape, error) {
	s := newScanner("", []byte(text))
	shape, err := s.shape(0)
	switch {
	case err != nil:
	case s.peek() != 0:
		err = s.failNext("unexpected %s after the shape", s.found())
	case shape.open():
		err = s.failNext("an extent of %s is not known", shape)
	}
	return shape, err
}
