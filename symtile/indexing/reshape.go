package indexing

// A DimGroup is a minimal pair of runs of dimensions, in the operand (From) and
// the result (To) of a reshape, with the same number of elements. Dimensions of
// extent 1 belong to no group.
type DimGroup struct{ From, To []int }

// ReshapeGroups splits a reshape between arrays without zero extents into
// groups that are reshaped independently of each other. The extents of both
// sides are multiplied from the left; a group ends where the products are
// equal, which is at the end of the arrays at the latest. For [2,3,4] to
// [6,1,4] the groups are {0, 1} to {0} and {2} to {2}.
func ReshapeGroups(from, to []int64) []DimGroup {
	var all []DimGroup
	a := nonUnit(from)
	c := nonUnit(to)
	for i, j := 0, 0; i < len(a); {
		w := DimGroup{From: a[i : i+1], To: c[j : j+1]}
		x := from[a[i]]
		y := to[c[j]]
		i0, j0 := i, j
		i, j = i+1, j+1
		for x != y {
			if x < y {
				x *= from[a[i]]
				i++
			} else {
				y *= to[c[j]]
				j++
			}
		}
		w.From = a[i0:i]
		w.To = c[j0:j]
		all = append(all, w)
	}
	return all
}

// nonUnit are the dimensions of an extent other than 1.
func nonUnit(dims []int64) []int {
	var keep []int
	for d, extent := range dims {
		if extent != 1 {
			keep = append(keep, d)
		}
	}
	return keep
}

// Permute returns out with out[k] = v[order[k]]: the elements of v in another
// order.
func Permute[T any, S ~[]T](v S, order []int) S {
	out := make(S, len(order))
	for k, d := range order {
		out[k] = v[d]
	}
	return out
}
