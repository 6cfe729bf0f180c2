package replicas

import (
	"fmt"
	"slices"
	"strconv"
)

// A mesh arranges devices along named axes. Groups are given by some of the axes,
// or by parts of them: an axis of 8 is also an array of 2×2×2, and 'a':(2)2 is
// the middle one, of 2 with 2 before it.

// An axis is a name with an extent.
type axis struct {
	// name is what groups call it.
	name string
	// size is the number of devices along it.
	size int64
}

// A part is size places of an axis that has before places outside of them.
type part struct {
	axis         int
	before, size int64
}

// mesh reads 'a'=2,'b'=4], device_ids=(…) {'a'}.
func (p *parser) mesh() ([][]int64, error) {
	axes, err := p.axes()
	if err != nil {
		return nil, err
	}
	extents := make([]int64, len(axes))
	for k, a := range axes {
		extents[k] = a.size
	}
	n := product(extents)
	if n < 0 {
		return nil, fmt.Errorf("the mesh has extents %v; at least 1 each and at most %d devices are read", extents, maxDevices)
	}
	devices, err := p.deviceIDs(n)
	if err != nil {
		return nil, err
	}
	along, err := p.axisRefs(axes)
	if err != nil {
		return nil, err
	}
	return groupsAlong(devices, axes, along)
}

// axes reads 'a'=2,'b'=4], the axes of a mesh from the outermost on.
func (p *parser) axes() ([]axis, error) {
	var all []axis
	for !p.accept("]") {
		if len(all) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		name, err := p.quoted()
		if err != nil {
			return nil, err
		}
		if err := p.expect("="); err != nil {
			return nil, err
		}
		size, err := p.number()
		if err != nil {
			return nil, err
		}
		all = append(all, axis{name, size})
	}
	return all, nil
}

// quoted reads a name in single or double quotes.
func (p *parser) quoted() (string, error) {
	quote := p.peek()
	if quote != '\'' && quote != '"' {
		return "", p.fail("a name in quotes")
	}
	start := p.at + 1
	for end := start; end < len(p.text); end++ {
		if p.text[end] == quote {
			p.at = end + 1
			return p.text[start:end], nil
		}
	}
	return "", p.fail("a closing quote")
}

// deviceIDs reads the numbers of n devices in the order of the mesh, which are
// 0, 1, … when they are left out: (3,2,1,0), or a transposed array,
// ([2,2]T(1,0)).
func (p *parser) deviceIDs(n int64) ([]int64, error) {
	if !p.accept(",") {
		return identity(int(n)), nil
	}
	for _, word := range []string{"device_ids", "="} {
		if err := p.expect(word); err != nil {
			return nil, err
		}
	}
	start := p.at
	var ids []int64
	var err error
	if p.accept("(") && p.peek() == '[' {
		if ids, err = p.transposedIota(); err == nil {
			err = p.expect(")")
		}
	} else {
		p.at = start
		ids, err = p.numbers("(", ")")
	}
	if err == nil && int64(len(ids)) != n {
		err = fmt.Errorf("%d device_ids for a mesh of %d", len(ids), n)
	}
	return ids, err
}

// axisRefs reads {'a','b':(2)4}: axes by name or number, or parts of them.
func (p *parser) axisRefs(axes []axis) ([]part, error) {
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	var all []part
	for !p.accept("}") {
		if len(all) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		one, err := p.axisRef(axes)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// axisRef reads 'a' or 'a':(before)size.
func (p *parser) axisRef(axes []axis) (part, error) {
	name, err := p.quoted()
	if err != nil {
		return part{}, err
	}
	k := slices.IndexFunc(axes, func(a axis) bool { return a.name == name })
	if n, err := strconv.Atoi(name); k < 0 && err == nil && n >= 0 && n < len(axes) {
		k = n
	}
	if k < 0 {
		return part{}, fmt.Errorf("the mesh has no axis %q", name)
	}
	one := part{k, 1, axes[k].size}
	if !p.accept(":") {
		return one, nil
	}
	before, err := p.numbers("(", ")")
	if err != nil {
		return part{}, err
	}
	if one.size, err = p.number(); err != nil {
		return part{}, err
	}
	if len(before) != 1 {
		return part{}, fmt.Errorf("a part of an axis is 'name':(before)size")
	}
	one.before = before[0]
	return one, nil
}

// groupsAlong are the groups of devices that differ along the given parts only:
// the axes are cut into their parts, the array is transposed so that those come
// last, and cut into groups.
//
// Of mesh['a'=2,'b'=3], {'a'} is {{0,3},{1,4},{2,5}}: 0 … 5 as an array of 2×3 and
// its columns. The order of groups, and of the devices in one, is that of XLA's
// flattened_replica_groups.
func groupsAlong(devices []int64, axes []axis, along []part) ([][]int64, error) {
	// cut are the parts of all axes: the dimensions of the array of devices.
	var cut []part
	for k, a := range axes {
		parts, err := a.parts(k, along)
		if err != nil {
			return nil, err
		}
		cut = append(cut, parts...)
	}
	extents := make([]int64, len(cut))
	// outer are the dimensions that tell groups apart, inner those of a group.
	var outer, inner []int64
	size := int64(1)
	for k, c := range cut {
		extents[k] = c.size
		if !slices.ContainsFunc(along, c.in) {
			outer = append(outer, int64(k))
		}
	}
	for _, ref := range along {
		for k, c := range cut {
			if c.in(ref) {
				inner = append(inner, int64(k))
				size *= c.size
			}
		}
	}
	order, err := transpose(devices, extents, append(outer, inner...))
	if err != nil {
		return nil, fmt.Errorf("the axes of a group overlap")
	}
	return split(order, size), nil
}

// in reports whether the part lies in a larger one, where both are measured by
// the places outside of their first and last element.
func (c part) in(of part) bool {
	return c.axis == of.axis && c.before >= of.before && c.before*c.size <= of.before*of.size
}

// parts cuts axis k where the parts in use begin and end. Each has to be a divisor
// of the next, as the extents of an array are.
func (a axis) parts(k int, used []part) ([]part, error) {
	// cuts are the products of extents, from the outside, at which parts begin.
	cuts := []int64{1, a.size}
	for _, u := range used {
		if u.axis == k {
			cuts = append(cuts, u.before, u.before*u.size)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var all []part
	for n := range len(cuts) - 1 {
		if cuts[n] < 1 || cuts[n+1]%cuts[n] != 0 || cuts[n+1] > a.size {
			return nil, fmt.Errorf("axis %q of %d has no such part", a.name, a.size)
		}
		all = append(all, part{k, cuts[n], cuts[n+1] / cuts[n]})
	}
	return all, nil
}
