package portable

import "github.com/tilewright/tilewright/symtile/hlo"

// Row reductions with several partial results give the processor independent chains
// of operations, as many as the latency of an addition is longer than its throughput.
// The partial results of elements 4k, 4k+1, 4k+2 and 4k+3 are combined as
// (a + b) + (c + d), and what remains of a row joins the first.

// ReduceRow is the loop that reduces a run into x, nil where there is none for
// the operation on type d. It has four partial results, which do not depend on
// each other and are combined in a fixed order, so that the result depends on
// nothing but the run.
func ReduceRow[T Number](
	monoid hlo.Opcode, d hlo.DType,
) func(x T, row []T) T {
	if hasNumberLoop(monoid, d) {
		switch monoid {
		case hlo.OpAdd:
			return sumRow[T]
		case hlo.OpMultiply:
			return productRow[T]
		case hlo.OpMaximum:
			return maxRow[T]
		case hlo.OpMinimum:
			return minRow[T]
		}
	}
	var row any
	switch ClassFor[T]() {
	case Int32:
		row = reduceIntegerRow[int32](monoid, d)
	case Int64:
		row = reduceIntegerRow[int64](monoid, d)
	}
	f, _ := row.(func(x T, row []T) T)
	return f
}

// reduceIntegerRow is ReduceRow for what only integers have: operations on
// bits, and the order of unsigned numbers of 64 bits. Pred adds as or.
func reduceIntegerRow[T integer](
	monoid hlo.Opcode, d hlo.DType,
) func(x T, row []T) T {
	switch {
	case monoid == hlo.OpAnd:
		return func(x T, row []T) T {
			for _, v := range row {
				x &= v
			}
			return x
		}
	case monoid == hlo.OpXor:
		return func(x T, row []T) T {
			for _, v := range row {
				x ^= v
			}
			return x
		}
	case monoid == hlo.OpOr,
		monoid == hlo.OpAdd && d == hlo.Pred:
		return func(x T, row []T) T {
			for _, v := range row {
				x |= v
			}
			return x
		}
	case monoid == hlo.OpMaximum:
		return func(x T, row []T) T {
			for _, v := range row {
				x = T(max(uint64(x), uint64(v)))
			}
			return x
		}
	case monoid == hlo.OpMinimum:
		return func(x T, row []T) T {
			for _, v := range row {
				x = T(min(uint64(x), uint64(v)))
			}
			return x
		}
	}
	return nil
}

// sumRow is x plus the sum of a row.
func sumRow[T Number](x T, row []T) T {
	var a, b, c, d T
	for len(row) >= 4 {
		a += row[0]
		b += row[1]
		c += row[2]
		d += row[3]
		row = row[4:]
	}
	for _, v := range row {
		a += v
	}
	return x + ((a + b) + (c + d))
}

// productRow is x times the product of a row.
func productRow[T Number](x T, row []T) T {
	var a T = 1
	var b T = 1
	var c T = 1
	var d T = 1
	for len(row) >= 4 {
		a *= row[0]
		b *= row[1]
		c *= row[2]
		d *= row[3]
		row = row[4:]
	}
	for _, v := range row {
		a *= v
	}
	return x * ((a * b) * (c * d))
}

// maxRow is the maximum of x and a row.
func maxRow[T Number](x T, row []T) T {
	a := x
	b := x
	c := x
	d := x
	for len(row) >= 4 {
		a = max(a, row[0])
		b = max(b, row[1])
		c = max(c, row[2])
		d = max(d, row[3])
		row = row[4:]
	}
	for _, v := range row {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

// minRow is the minimum of x and a row.
func minRow[T Number](x T, row []T) T {
	a := x
	b := x
	c := x
	d := x
	for len(row) >= 4 {
		a = min(a, row[0])
		b = min(b, row[1])
		c = min(c, row[2])
		d = min(d, row[3])
		row = row[4:]
	}
	for _, v := range row {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

// A Scan sets dst[k] to x combined with row[0] … row[k], or, of one that goes
// backwards, with row[k] … row[n−1]. It returns the last that it set, x without any.
type Scan[T Number] func(dst, row []T, x T) T

// ScanRow are the loops that scan a run forwards and backwards, nil where there are none
// for the operation on type d.
func ScanRow[T Number](
	monoid hlo.Opcode, d hlo.DType,
) (forward, backward Scan[T]) {
	if monoid == hlo.OpAdd && hasNumberLoop(monoid, d) {
		return sumsForward[T], sumsBackward[T]
	}
	into := ReduceRow[T](monoid, d)
	if into == nil {
		return nil, nil
	}
	forward = func(dst, row []T, x T) T {
		for k := range row {
			x = into(x, row[k:k+1])
			dst[k] = x
		}
		return x
	}
	backward = func(dst, row []T, x T) T {
		for k := len(row) - 1; k >= 0; k-- {
			x = into(x, row[k:k+1])
			dst[k] = x
		}
		return x
	}
	return forward, backward
}

// sumsForward are the sums of a run up to each element.
func sumsForward[T Number](dst, row []T, x T) T {
	dst = dst[:len(row)]
	for k, v := range row {
		x += v
		dst[k] = x
	}
	return x
}

// sumsBackward are the sums of a run from each element on.
func sumsBackward[T Number](dst, row []T, x T) T {
	dst = dst[:len(row)]
	for k := len(row) - 1; k >= 0; k-- {
		x += row[k]
		dst[k] = x
	}
	return x
}
