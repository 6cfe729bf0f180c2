// Package replicas reads which devices a collective operation of HLO joins. XLA
// prints the same groups in three ways:
//
//	{{0,1},{2,3}}                                  each group
//	[2,2]<=[2,2]T(1,0)                             2 groups of 2: 0 … 3 as an array of 2×2, transposed
//	mesh['a'=2,'b'=2], device_ids=(…) {'a'}        the devices that differ along axis a of a mesh
//
// All of them become lists, so that equal groups are equal however they are
// written.
package replicas

import (
	"fmt"
	"strconv"
	"strings"
)

// maxDevices bounds the devices of a short form, which takes a few bytes of text
// whatever their number is. The largest machines have some ten thousand.
const maxDevices = 1 << 20

// Parse reads groups of device numbers. {} has no groups, which HLO takes as one of
// all devices. Errors quote the text and say what was expected where; a short form
// of more than 2^20 devices is one.
func Parse(text string) ([][]int64, error) {
	p := &parser{text: text}
	groups, err := p.groups()
	if err == nil && p.peek() != 0 {
		err = p.fail("the end")
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return groups, nil
}

// groups reads any of the forms.
func (p *parser) groups() ([][]int64, error) {
	switch {
	case p.peek() == '[':
		return p.iota()
	case p.accept("maximal_mesh["):
		return p.single()
	case p.accept("mesh["):
		return p.mesh()
	}
	return p.lists()
}

// lists reads {{0,1},{2,3}}. Groups may differ in size, and the text bounds their
// number.
func (p *parser) lists() ([][]int64, error) {
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	groups := [][]int64{}
	for !p.accept("}") {
		group, err := p.numbers("{", "}")
		if err != nil {
			return nil, err
		}
		groups = append(groups, group)
		p.accept(",")
	}
	return groups, nil
}

// iota reads [groups,size]<=[reshape]T(permutation): the devices of the transposed
// array in row-major order, cut into groups of one size.
func (p *parser) iota() ([][]int64, error) {
	shape, err := p.numbers("[", "]")
	if err != nil {
		return nil, err
	}
	if err := p.expect("<="); err != nil {
		return nil, err
	}
	devices, err := p.transposedIota()
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 || product(shape) != int64(len(devices)) {
		return nil, fmt.Errorf("[groups,size] is %v, of %d devices", shape, len(devices))
	}
	return split(devices, shape[1]), nil
}

// transposedIota reads [2,3]T(1,0): the numbers 0 … 5 as an array of 2×3 whose
// dimensions are permuted, in row-major order. T(…) may be left out.
func (p *parser) transposedIota() ([]int64, error) {
	dims, err := p.numbers("[", "]")
	if err != nil {
		return nil, err
	}
	n := product(dims)
	if n < 0 || n > maxDevices {
		return nil, fmt.Errorf("%v is more than %d devices", dims, maxDevices)
	}
	order := identity(len(dims))
	if p.accept("T") {
		if order, err = p.numbers("(", ")"); err != nil {
			return nil, err
		}
	}
	return transpose(identity(int(n)), dims, order)
}

// single reads device_id=5] {…}: a mesh of one device, which has no axes and is a
// group alone.
func (p *parser) single() ([][]int64, error) {
	if err := p.expect("device_id="); err != nil {
		return nil, err
	}
	id, err := p.number()
	if err != nil {
		return nil, err
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	if _, err := p.axisRefs(nil); err != nil {
		return nil, err
	}
	return [][]int64{{id}}, nil
}

// split cuts devices into groups of a size, which divides their number. The groups
// share memory and cannot grow into each other.
func split(devices []int64, size int64) [][]int64 {
	groups := [][]int64{}
	for ; len(devices) > 0 && size > 0; devices = devices[size:] {
		groups = append(groups, devices[:size:size])
	}
	return groups
}

// transpose is the array of the given extents with dimension k taken from
// dimension order[k], in row-major order.
//
// 0 … 5 of 2×3 by (1,0) is 0, 3, 1, 4, 2, 5.
func transpose(array, dims, order []int64) ([]int64, error) {
	// strides are the distances of neighbours along each dimension of the array.
	strides := make([]int64, len(dims))
	step := int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		strides[d] = step
		step *= dims[d]
	}
	seen := make([]bool, len(dims))
	// out are the offsets along the dimensions walked so far, the last one fastest.
	out := []int64{0}
	for _, d := range order {
		if d < 0 || d >= int64(len(dims)) || seen[d] {
			return nil, fmt.Errorf("%v is not a permutation of %d dimensions", order, len(dims))
		}
		seen[d] = true
		var next []int64
		for _, at := range out {
			for k := range dims[d] {
				next = append(next, at+k*strides[d])
			}
		}
		out = next
	}
	if len(order) != len(dims) {
		return nil, fmt.Errorf("%v is not a permutation of %d dimensions", order, len(dims))
	}
	for k, at := range out {
		out[k] = array[at]
	}
	return out, nil
}

// identity is 0, 1, …, n−1: devices in their own order, or dimensions that stay
// where they are.
func identity(n int) []int64 {
	all := make([]int64, n)
	for k := range all {
		all[k] = int64(k)
	}
	return all
}

// product of the extents; −1 when one is below 1 or the product is above
// maxDevices, so that no array is made of a number that the text invents.
func product(extents []int64) int64 {
	n := int64(1)
	for _, e := range extents {
		if e < 1 || e > maxDevices {
			return -1
		}
		if n *= e; n > maxDevices {
			return -1
		}
	}
	return n
}

// A parser walks the text of groups.
type parser struct {
	text string
	// at is the offset of the next byte.
	at int
}

// peek is the next byte after blanks, 0 at the end.
func (p *parser) peek() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// accept consumes word when it comes next.
func (p *parser) accept(word string) bool {
	p.peek()
	if !strings.HasPrefix(p.text[p.at:], word) {
		return false
	}
	p.at += len(word)
	return true
}

// expect consumes word or says that it is missing.
func (p *parser) expect(word string) error {
	if p.accept(word) {
		return nil
	}
	return p.fail(strconv.Quote(word))
}

// fail says what was expected where the parser stands.
func (p *parser) fail(expected string) error {
	return fmt.Errorf("expected %s before %q", expected, p.text[p.at:])
}

// number reads a decimal number ≥ 0; larger ones than an int64 holds are not
// numbers.
func (p *parser) number() (int64, error) {
	p.peek()
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	n, err := strconv.ParseInt(p.text[start:p.at], 10, 64)
	if err != nil {
		p.at = start
		return 0, p.fail("a number")
	}
	return n, nil
}

// numbers reads a list of numbers in brackets.
func (p *parser) numbers(open, end string) ([]int64, error) {
	if err := p.expect(open); err != nil {
		return nil, err
	}
	var all []int64
	for !p.accept(end) {
		if len(all) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		n, err := p.number()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
