package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A kind says how an operation takes part in a partition.
type opClass uint8

const (
	classUnfused          opClass = iota // cannot be tiled, or is no work
	classFusible                         // elementwise or moves data: joins its users
	classDuplicated                      // constant, iota: copied to its users
	classHero                            // dot, scaled-dot, convolution
	classReduction                       // reduce, reduce-window
	classReductionElement                // of a variadic reduction
	classSolitary                        // tiled, but a fusion of its own
)

const maxDuplicatedElements = 1024 // elements of a constant that is copied into fusions; larger ones are data

// kindOf tells what i is; its operands are known.
func (s *clustering) classOf(i *hlo.Instr) opClass {
	switch {
	case i.Op == hlo.OpGetTupleElement:
		if s.classes[i.Operands[0]] == classReduction {
			return classReductionElement
		}
		return classUnfused
	case i.Op == hlo.OpParameter ||
		i.Op == hlo.OpOptimizationBarrier || i.Op == hlo.OpCall ||
		untileableReason(i) != "":
		return classUnfused
	case i.Op.Class() == hlo.ClassReduction:
		return classReduction
	case !i.Shape.DType.IsArray():
		return classUnfused
	case i.Op == hlo.OpIota ||
		i.Op == hlo.OpConstant && i.Shape.Elements() <= maxDuplicatedElements:
		return classDuplicated
	case i.Op == hlo.OpConstant:
		return classUnfused
	case i.Op.Class() == hlo.ClassContraction:
		return classHero
	case i.Op.Elementwise() || i.Op == hlo.OpMap:
		return classFusible
	case i.Op.Class() == hlo.ClassMove || i.Op.Class() == hlo.ClassDynamic:
		return classFusible
	}
	return classSolitary
}

// A split sorts what a computation needs into clusters.
type clustering struct {
	root            *hlo.Instr
	order           []*hlo.Instr // operands first
	users           map[*hlo.Instr][]*hlo.Instr
	classes         map[*hlo.Instr]opClass
	afterHero       map[*hlo.Instr]bool       // operations that follow a hero or a reduction
	clustersOf      map[*hlo.Instr][]*cluster // of members; several for what is copied
	clusterRootedAt map[*hlo.Instr]*cluster
	visits          int // of calls of clustersOfUsers
}

// A cluster becomes a fusion. Only its root is used outside of it.
type cluster struct {
	root       *hlo.Instr
	members    []*hlo.Instr        // users first
	roles      map[*hlo.Instr]role // of the members
	hero       bool
	reduction  *hlo.Instr // a reduction; the others reduce the same
	visited    int        // the last call of clustersOfUsers that met it, and what that found:
	broadcasts bool       // a broadcast between the instruction and the root
	feedsHero  bool       // the hero, or a window, reads the instruction, directly or not; it would be computed more than once
}

// A role says what a member is to its cluster.
type role struct {
	member    bool
	broadcast bool // there is a broadcast between it and the root
	feedsHero bool // the hero or a window reads it, directly or not
}

const maxClusterMembers = 256 // of a cluster; what compilers fuse stays under a hundred

func newClustering(c *hlo.Computation) *clustering {
	s := &clustering{root: c.Root, order: c.Needed()}
	n := len(s.order)
	s.users = make(map[*hlo.Instr][]*hlo.Instr, n)
	s.classes = make(map[*hlo.Instr]opClass, n)
	s.afterHero = make(map[*hlo.Instr]bool, n)
	s.clustersOf = make(map[*hlo.Instr][]*cluster, n)
	s.clusterRootedAt = map[*hlo.Instr]*cluster{}
	for _, i := range s.order {
		s.classes[i] = s.classOf(i)
		for _, o := range i.Operands {
			u := s.users[o]
			if len(u) == 0 || u[len(u)-1] != i {
				s.users[o] = append(u, i)
			}
			s.afterHero[i] = s.afterHero[i] ||
				s.classes[o] == classHero ||
				s.classes[o] == classReduction ||
				s.classes[o] != classUnfused && s.afterHero[o]
		}
	}
	return s
}

// cluster walks from the results to the parameters.
func (s *clustering) cluster() {
	var all []*cluster
	for _, i := range slices.Backward(s.order) {
		if s.classes[i] == classUnfused {
			continue
		}
		homes, escapes := s.clustersOfUsers(i)
		switch {
		case s.classes[i] == classDuplicated ||
			i.Op.Has(hlo.View) && !escapes && s.acceptedByAll(i, homes):
			for _, c := range homes {
				s.join(i, c)
			}
		case !escapes && len(homes) == 1 &&
			s.accepts(homes[0], i):
			s.join(i, homes[0])
		case s.classes[i] == classReductionElement:
			s.classes[i] = classUnfused
		default:
			c := &cluster{
				root:  i,
				roles: map[*hlo.Instr]role{},
			}
			s.clusterRootedAt[i] = c
			all = append(all, c)
			s.join(i, c)
		}
	}
	for _, c := range all {
		if s.trivial(c) {
			s.dissolve(c)
		}
	}
}

// clustersOfUsers lists the clusters i is used in, and notes in each what i would be
// there; escapes says whether it is also used outside of them.
func (s *clustering) clustersOfUsers(i *hlo.Instr) (homes []*cluster, escapes bool) {
	escapes = i == s.root
	s.visits++
	for _, u := range s.users[i] {
		if len(s.clustersOf[u]) == 0 {
			escapes = true
		}
		again := s.classes[u] == classHero ||
			u.Op == hlo.OpReduceWindow
		for _, c := range s.clustersOf[u] {
			if c.visited != s.visits {
				c.visited = s.visits
				c.broadcasts = false
				c.feedsHero = false
				homes = append(homes, c)
			}
			c.broadcasts = c.broadcasts ||
				c.roles[u].broadcast || expands(u)
			c.feedsHero = c.feedsHero ||
				c.roles[u].feedsHero || again
		}
	}
	return homes, escapes
}

func (s *clustering) acceptedByAll(i *hlo.Instr, homes []*cluster) bool {
	return !slices.ContainsFunc(homes, func(c *cluster) bool {
		return !s.accepts(c, i)
	})
}

func (s *clustering) join(i *hlo.Instr, c *cluster) {
	c.members = append(c.members, i)
	c.roles[i] = role{
		true,
		c.root != i && c.broadcasts,
		c.root != i && c.feedsHero,
	}
	s.clustersOf[i] = append(s.clustersOf[i], c)
	switch s.classes[i] {
	case classHero, classSolitary:
		c.hero = true
	case classReduction:
		c.reduction = i
	}
}

// expands says whether i is a broadcast to more elements.
func expands(i *hlo.Instr) bool {
	return i.Op == hlo.OpBroadcast &&
		i.Shape.Elements() > i.Operands[0].Shape.Elements()
}

// accepts says whether i, all of whose users here are in c, may join it.
func (s *clustering) accepts(c *cluster, i *hlo.Instr) bool {
	if len(c.members) >= maxClusterMembers ||
		s.classes[c.root] == classSolitary {
		return false
	}
	switch s.classes[i] {
	case classFusible:
		return i.Op.Has(hlo.View) ||
			!s.afterHero[i] || !c.feedsHero
	case classReductionElement, classDuplicated:
		return true
	case classHero:
		return !c.hero && c.reduction == nil && !c.broadcasts
	case classReduction:
		return !c.hero &&
			(c.reduction == nil || sameReduction(i, c.reduction)) &&
			s.restoresShape(i, c)
	}
	return false
}

// sameReduction says whether two reductions walk the same rows.
func sameReduction(a, b *hlo.Instr) bool {
	return a.Op == hlo.OpReduce &&
		b.Op == hlo.OpReduce &&
		a.Operands[0].Shape.SameDims(b.Operands[0].Shape) &&
		slices.Equal(sortedDims(a.Attrs.Dimensions), sortedDims(b.Attrs.Dimensions))
}

func sortedDims(v []int64) []int64 {
	return slices.Sorted(slices.Values(v))
}

// restoresShape says whether every broadcast of i's result in c restores the shape
// that i reduces, with its rows where they were.
func (s *clustering) restoresShape(i *hlo.Instr, c *cluster) bool {
	rows := keptReduceDims(i)
	seen := map[*hlo.Instr]bool{}
	queue := []*hlo.Instr{i}
	for len(queue) > 0 {
		o := queue[0]
		queue = queue[1:]
		for _, u := range s.users[o] {
			if !c.roles[u].member || seen[u] {
				continue
			}
			seen[u] = true
			switch {
			case expands(u):
				if !u.Shape.SameDims(i.Operands[0].Shape) ||
					!slices.Equal(broadcastDims(u), rows) {
					return false
				}
			case s.classes[u] == classFusible &&
				u.Shape.Elements() == o.Shape.Elements() &&
				u.Op != hlo.OpTranspose && u.Op != hlo.OpReverse:
				queue = append(queue, u)
			case s.classes[u] == classReductionElement:
				queue = append(queue, u)
			case c.roles[u].broadcast:
				return false
			}
		}
	}
	return true
}

// rowsOf are the dimensions a reduction keeps, without those of extent 1.
func keptReduceDims(i *hlo.Instr) []int64 {
	var kept []int64
	for d, extent := range i.Operands[0].Shape.Dims {
		if extent != 1 &&
			!slices.Contains(i.Attrs.Dimensions, int64(d)) {
			kept = append(kept, int64(d))
		}
	}
	return kept
}

// broadcastDims are the dimensions a broadcast puts its operand's in, without those
// of extent 1.
func broadcastDims(i *hlo.Instr) []int64 {
	var dims []int64
	for k, d := range i.Attrs.Dimensions {
		if i.Operands[0].Shape.Dims[k] != 1 {
			dims = append(dims, d)
		}
	}
	return dims
}

// trivial says whether there is nothing to tune in c: scalars, or no work.
func (s *clustering) trivial(c *cluster) bool {
	scalars, still := true, true
	for _, i := range c.members {
		scalars = scalars && i.Shape.DType.IsArray() &&
			i.Shape.Elements() <= 1
		for _, o := range i.Operands {
			scalars = scalars && o.Shape.DType.IsArray() &&
				o.Shape.Elements() <= 1
		}
		still = still &&
			(i.Op == hlo.OpReshape ||
				i.Op == hlo.OpBitcast ||
				s.classes[i] == classDuplicated)
	}
	return scalars || still
}

// dissolve puts the members of c outside.
func (s *clustering) dissolve(c *cluster) {
	delete(s.clusterRootedAt, c.root)
	for _, i := range c.members {
		s.clustersOf[i] = slices.DeleteFunc(
			s.clustersOf[i],
			func(h *cluster) bool { return h == c },
		)
	}
}

// kind is what XLA calls such a fusion.
func (c *cluster) kind() string {
	switch {
	case c.hero:
		return "kOutput"
	case c.reduction != nil:
		return "kInput"
	}
	return "kLoop"
}
