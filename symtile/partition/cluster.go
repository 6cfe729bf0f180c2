package partition

import (
	"cmp"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An opClass is the way in which an operation takes part in a partition.
type opClass uint8

const (
	// classUnfused operations cannot be tiled, or are no work.
	classUnfused opClass = iota
	// classFusible operations are elementwise or move data: they join their
	// users.
	classFusible
	// classDuplicated operations are constants and iotas, copied to their
	// users.
	classDuplicated
	// classHero operations are dot, scaled-dot, convolution and scatter.
	classHero
	// classReduction operations are reduce and reduce-window.
	classReduction
	// classReductionElement operations take a result out of a variadic
	// reduction.
	classReductionElement
	// classSolitary operations can be tiled, in a fusion of their own.
	classSolitary
)

// maxDuplicatedElements bounds the elements of a constant that is copied into
// fusions; larger ones are data, and stay outside.
const maxDuplicatedElements = 1024

// classOf classifies i, whose operands have been classified.
func (s *clustering) classOf(i *hlo.Instr) opClass {
	switch {
	case i.Op == hlo.OpGetTupleElement:
		if s.classes[i.Operands[0]] == classReduction {
			return classReductionElement
		}
		return classUnfused
	case i.Op == hlo.OpParameter ||
		i.Op == hlo.OpOptimizationBarrier || i.Op == hlo.OpCall ||
		s.outside(i) != "":
		return classUnfused
	case i.Op.Class() == hlo.ClassReduction:
		return classReduction
	case !i.Shape.DType.IsArray():
		return classUnfused
	case i.Op == hlo.OpIota ||
		i.Op == hlo.OpConstant &&
			i.Shape.Elements() <= maxDuplicatedElements:
		return classDuplicated
	case i.Op == hlo.OpConstant:
		return classUnfused
	case i.Op.Class() == hlo.ClassContraction || i.Op == hlo.OpScatter:
		return classHero
	case i.Op.Elementwise() ||
		i.Op == hlo.OpMap:
		return classFusible
	case i.Op.Class() == hlo.ClassMove ||
		i.Op.Class() == hlo.ClassDynamic:
		return classFusible
	}
	return classSolitary
}

// A clustering assigns the instructions of a flat computation to clusters.
type clustering struct {
	*partitioner
	root *hlo.Instr
	// order is the instructions that are executed, operands first.
	order []*hlo.Instr
	// position is the index of each instruction in order.
	position map[*hlo.Instr]int
	users    map[*hlo.Instr][]*hlo.Instr
	// readIDs caches what readID hashes.
	readIDs map[*hlo.Instr]uint64
	classes map[*hlo.Instr]opClass
	// afterHero are the operations that follow a hero or a reduction.
	afterHero map[*hlo.Instr]bool
	// in is the clusters of the instruction at each position; several for a
	// duplicated one. usersAt are the positions of its users.
	in      [][]*cluster
	usersAt [][]int
	// copied reports of the instruction at each position, which is in clusters but the root
	// of none, that something in no cluster needs it, so that it is also computed alone.
	copied []bool
	// clusterRootedAt is the cluster whose root is the instruction.
	clusterRootedAt map[*hlo.Instr]*cluster
	// all are the clusters, users before what they read.
	all []*cluster
	// visits counts the calls of clustersOfUsers.
	visits int
	// spread are the clusters of several roots, spans their positions, merged.
	spread []*cluster
	spans  []span
	// offers counts the pairs of neighbours that have been looked at.
	offers int
	// searches counts the searches for paths, and seenAt is the last of them that
	// met the instruction at each position.
	searches int
	seenAt   []int
}

// A cluster becomes a fusion. Only its roots are used outside of it.
type cluster struct {
	// root is the first of the roots, and during the first pass the only one.
	root *hlo.Instr
	// roots are in the order of the computation.
	roots []*hlo.Instr
	// rootsAt are their positions.
	rootsAt []int
	// seen is the last search for a path that met the cluster.
	seen int
	// reasons are those of Fusion.
	reasons []string
	// refused are the neighbours that the second pass has left apart.
	refused map[*cluster]bool
	// priced is the price of the members; nil where it is not known.
	priced *pricedFusion
	// ops are about the operations of the tile program: each member counts once for
	// every tile at which it is read.
	ops int
	// version counts the clusters that have joined.
	version int
	// outlined reports that its fusion is being made, or is made.
	outlined bool
	// gone reports that another cluster has taken over the members.
	gone bool
	// members are in an order in which users come first.
	members []*hlo.Instr
	// roles are the properties of each member.
	roles map[*hlo.Instr]role
	// hero reports that a member is a hero, or solitary.
	hero bool
	// reduction is a reduction among the members; the others reduce the same.
	reduction *hlo.Instr
	// visited is the last call of clustersOfUsers that met the cluster;
	// broadcasts and feedsHero are what it found for the instruction at hand.
	visited int
	// broadcasts reports that there is a broadcast between the instruction and
	// the root.
	broadcasts bool
	// feedsHero reports that the hero, or a window, reads the instruction,
	// directly or not, so that it would be computed more than once.
	feedsHero bool
	// tiles are those at which the instruction would be read.
	tiles tileSet
}

// A role is the properties of a member of a cluster.
type role struct {
	member bool
	// broadcast reports that there is a broadcast between the member and the
	// root.
	broadcast bool
	// feedsHero reports that the hero or a window reads the member, directly or
	// not.
	feedsHero bool
	// tiles are those at which the member is read.
	tiles tileSet
}

// maxClusterMembers bounds a cluster; fusions of compilers stay under a
// hundred.
const maxClusterMembers = 256

// maxTiles bounds the different tiles at which a member is read: it is computed for
// each of them, and scans of slices of slices have more with every step.
const maxTiles = 16

// maxOps bounds the operations of the tile program of a cluster, which members that
// are read at several tiles multiply. Pricing, planning and lowering take time in
// proportion to them.
const maxOps = 1024

// newClustering classifies the instructions that a run of c executes.
func (p *partitioner) newClustering(
	c *hlo.Computation,
) *clustering {
	s := &clustering{partitioner: p, root: c.Root, order: c.Executed(&p.effects)}
	n := len(s.order)
	s.position = make(map[*hlo.Instr]int, n)
	s.users = make(map[*hlo.Instr][]*hlo.Instr, n)
	s.classes = make(map[*hlo.Instr]opClass, n)
	s.afterHero = make(map[*hlo.Instr]bool, n)
	s.in = make([][]*cluster, n)
	s.usersAt = make([][]int, n)
	s.seenAt = make([]int, n)
	s.clusterRootedAt = map[*hlo.Instr]*cluster{}
	s.readIDs = map[*hlo.Instr]uint64{}
	for k, i := range s.order {
		s.position[i] = k
		s.classes[i] = s.classOf(i)
		for _, o := range i.Operands {
			u := s.users[o]
			if len(u) == 0 ||
				u[len(u)-1] != i {
				s.users[o] = append(u, i)
				at := s.position[o]
				s.usersAt[at] = append(s.usersAt[at], k)
			}
			s.afterHero[i] = s.afterHero[i] ||
				s.classes[o] == classHero ||
				s.classes[o] == classReduction ||
				s.classes[o] != classUnfused && s.afterHero[o]
		}
	}
	return s
}

// cluster assigns instructions to clusters, from the results to the parameters,
// and dissolves clusters in which there is nothing to tune.
func (s *clustering) cluster() {
	for _, i := range slices.Backward(s.order) {
		if s.classes[i] == classUnfused {
			continue
		}
		homes, usedOutside := s.clustersOfUsers(i)
		switch {
		case s.separate[i]:
			s.start(i)
		case s.classes[i] == classDuplicated ||
			(i.Op.Has(hlo.View) ||
				s.cheaperCopied(i, homes)) &&
				!usedOutside && s.acceptedByAll(i, homes):
			for _, c := range homes {
				s.join(i, c)
			}
		case !usedOutside && len(homes) == 1 &&
			s.accepts(homes[0], i):
			s.join(i, homes[0])
		case s.classes[i] == classReductionElement:
			s.classes[i] = classUnfused
		default:
			s.start(i)
		}
	}
	s.all = slices.DeleteFunc(s.all, func(c *cluster) bool {
		trivial := s.trivial(c)
		if trivial {
			s.dissolve(c)
		}
		return trivial
	})
	s.copied = make([]bool, len(s.order))
	for at, i := range slices.Backward(s.order) {
		s.copied[at] = len(s.in[at]) > 0 && s.clusterRootedAt[i] == nil &&
			slices.ContainsFunc(s.usersAt[at], func(u int) bool { return len(s.in[u]) == 0 || s.copied[u] })
	}
}

// clustersOf lists the clusters that i is a member of.
func (s *clustering) clustersOf(i *hlo.Instr) []*cluster {
	if at, needed := s.position[i]; needed {
		return s.in[at]
	}
	return nil
}

// start makes a cluster with root i.
func (s *clustering) start(i *hlo.Instr) {
	c := &cluster{
		root:    i,
		roots:   []*hlo.Instr{i},
		rootsAt: []int{s.position[i]},
		roles:   map[*hlo.Instr]role{},
		refused: map[*cluster]bool{},
	}
	s.clusterRootedAt[i] = c
	s.all = append(s.all, c)
	s.join(i, c)
}

// clustersOfUsers lists the clusters in which i is used, and records in each
// what i would be there. escapes reports that i is also used outside of
// clusters.
func (s *clustering) clustersOfUsers(
	i *hlo.Instr) (homes []*cluster, usedOutside bool,
) {
	usedOutside = i == s.root
	s.visits++
	for _, u := range s.users[i] {
		if len(s.clustersOf(u)) == 0 {
			usedOutside = true
		}
		recomputes := s.classes[u] == classHero ||
			u.Op == hlo.OpReduceWindow
		for _, c := range s.clustersOf(u) {
			if c.visited != s.visits {
				c.visited = s.visits
				c.broadcasts = false
				c.feedsHero = false
				c.tiles = nil
				homes = append(homes, c)
			}
			c.broadcasts = c.broadcasts ||
				c.roles[u].broadcast || expands(u)
			c.feedsHero = c.feedsHero ||
				c.roles[u].feedsHero || recomputes
			c.tiles = s.addReads(c.tiles, i, u, c.roles[u].tiles)
		}
	}
	return homes, usedOutside
}

// acceptedByAll reports whether i can join all clusters of a list.
func (s *clustering) acceptedByAll(
	i *hlo.Instr, homes []*cluster,
) bool {
	return !slices.ContainsFunc(homes, func(c *cluster) bool {
		return !s.accepts(c, i)
	})
}

// join makes i a member of c.
func (s *clustering) join(
	i *hlo.Instr, c *cluster,
) {
	c.members = append(c.members, i)
	c.priced = nil
	c.roles[i] = role{member: true, tiles: tileSet{rootTile}}
	if c.root != i {
		c.roles[i] = role{true, c.broadcasts, c.feedsHero, c.tiles}
	}
	c.ops += len(c.roles[i].tiles)
	at := s.position[i]
	s.in[at] = append(s.in[at], c)
	switch s.classes[i] {
	case classHero, classSolitary:
		c.hero = true
	case classReduction:
		c.reduction = i
	}
}

// expands reports whether i is a broadcast to more elements.
func expands(i *hlo.Instr) bool {
	return i.Op == hlo.OpBroadcast &&
		i.Shape.Elements() > i.Operands[0].Shape.Elements()
}

// accepts reports whether i, all of whose users here are in c, can join it.
func (s *clustering) accepts(
	c *cluster, i *hlo.Instr,
) bool {
	if len(c.members) >= maxClusterMembers ||
		len(c.tiles) > maxTiles ||
		c.ops+len(c.tiles) > maxOps ||
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
		return !c.hero &&
			c.reduction == nil &&
			!c.broadcasts &&
			s.cheaperWith(i, c)
	case classReduction:
		return !c.hero &&
			(c.reduction == nil ||
				sameReduction(i, c.reduction) &&
					s.readsWith(i, c)) &&
			s.restoresShape(i, c) &&
			(i.Shape.Rank() > 0 || s.cheaperWith(i, c))
	}
	return false
}

// cheaperWith reports whether a hero, or the reduction of a whole array, costs less in c
// than alone: what follows it may read it at several tiles, each of which computes it.
func (s *clustering) cheaperWith(
	i *hlo.Instr, c *cluster,
) bool {
	alone := &cluster{
		root:    i,
		roots:   []*hlo.Instr{i},
		members: []*hlo.Instr{i},
	}
	joined := &cluster{
		root:    c.root,
		roots:   c.roots,
		members: append(slices.Clone(c.members), i),
	}
	a, b, both := s.price(alone), s.price(c), s.price(joined)
	return cmp.Or(a.err, b.err) != nil ||
		both.err == nil &&
			s.pricer.seconds(both.price) <= s.pricer.seconds(a.price.plus(b.price))
}

// sameReduction reports whether two reductions reduce the same dimensions of
// equal shapes.
func sameReduction(a, b *hlo.Instr) bool {
	return a.Op == hlo.OpReduce &&
		b.Op == hlo.OpReduce &&
		a.Operands[0].Shape.SameDims(b.Operands[0].Shape) &&
		slices.Equal(ascendingDims(a.Attrs.Dimensions), ascendingDims(b.Attrs.Dimensions))
}

// maxReadsVisited bounds the instructions below a reduction that are searched for
// what it reads in common with a cluster.
const maxReadsVisited = 256

// readsWith reports whether a reduction reads, directly or through operations
// that would join with it, an array that members of c read.
func (s *clustering) readsWith(
	i *hlo.Instr, c *cluster,
) bool {
	seen := map[*hlo.Instr]bool{}
	stack := slices.Clone(i.Operands)
	for len(stack) > 0 && len(seen) < maxReadsVisited {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[o] || o.Shape.Rank() == 0 ||
			s.classes[o] == classDuplicated {
			continue
		}
		seen[o] = true
		for _, u := range s.users[o] {
			if u != i && c.roles[u].member {
				return true
			}
		}
		if s.classes[o] == classFusible {
			stack = append(stack, o.Operands...)
		}
	}
	return false
}

// maxCopies bounds the clusters that an operation is copied into.
const maxCopies = 8

// cheaperCopied reports whether it costs less to compute an elementwise
// operation in each of several clusters than once, and to write and read it: the
// operands, which something else needs in memory anyway, are read instead.
func (s *clustering) cheaperCopied(
	i *hlo.Instr, homes []*cluster,
) bool {
	if s.classes[i] != classFusible ||
		len(homes) < 2 ||
		len(homes) > maxCopies ||
		!i.Op.Elementwise() {
		return false
	}
	apart := Price{Launches: 1}
	copied := Price{}
	for _, o := range i.Operands {
		if !s.inMemoryAnyway(o) {
			return false
		}
		bytes := s.sourceBytes(o)
		apart.Bytes += bytes
		for _, c := range homes {
			if !s.readIn(o, c) {
				copied.Bytes += bytes
			}
		}
	}
	n := float64(len(homes))
	apart.Bytes += (1 + n) * float64(i.Shape.Bytes())
	copied.Work = (n - 1) * float64(i.Shape.Elements()) * max(1, i.Op.FLOPs())
	return copied.Bytes <= apart.Bytes &&
		s.pricer.seconds(copied) < s.pricer.seconds(apart)
}

// inMemoryAnyway reports whether o is a value that is in memory whoever computes
// its user, or is made of nothing.
func (s *clustering) inMemoryAnyway(o *hlo.Instr) bool {
	for o.Op.Has(hlo.View) {
		o = o.Operands[0]
	}
	class := s.classes[o]
	return class == classUnfused ||
		class == classDuplicated ||
		len(s.users[o]) > 1
}

// sourceBytes is the bytes of the array that a view presents, 0 for a constant.
func (s *clustering) sourceBytes(o *hlo.Instr) float64 {
	for o.Op.Has(hlo.View) {
		o = o.Operands[0]
	}
	if s.classes[o] == classDuplicated {
		return 0
	}
	return float64(o.Shape.Bytes())
}

// readIn reports whether a member of c reads o.
func (s *clustering) readIn(
	o *hlo.Instr, c *cluster,
) bool {
	return slices.ContainsFunc(s.users[o], func(u *hlo.Instr) bool {
		return c.roles[u].member
	})
}

// restoresShape reports whether every broadcast of i's result in c restores the
// shape that i reduces, with the rows where they were. It follows the result
// through elementwise operations on values of one element a row.
func (s *clustering) restoresShape(
	i *hlo.Instr, c *cluster,
) bool {
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

// keptReduceDims are the dimensions that a reduction keeps, without those of
// extent 1.
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

// broadcastDims are the dimensions to which a broadcast maps those of its
// operand, without those of extent 1.
func broadcastDims(i *hlo.Instr) []int64 {
	var dims []int64
	for k, d := range i.Attrs.Dimensions {
		if i.Operands[0].Shape.Dims[k] != 1 {
			dims = append(dims, d)
		}
	}
	return dims
}

// trivial reports whether there is nothing to tune in c: only scalars, or no
// work.
func (s *clustering) trivial(c *cluster) bool {
	onlyScalars, noWork := true, true
	for _, i := range c.members {
		onlyScalars = onlyScalars && i.Shape.DType.IsArray() &&
			i.Shape.Elements() <= 1
		for _, o := range i.Operands {
			onlyScalars = onlyScalars && o.Shape.DType.IsArray() &&
				o.Shape.Elements() <= 1
		}
		noWork = noWork &&
			(i.Op == hlo.OpReshape ||
				i.Op == hlo.OpBitcast ||
				s.classes[i] == classDuplicated)
	}
	return onlyScalars || noWork
}

// dissolve leaves the members of c unfused.
func (s *clustering) dissolve(c *cluster) {
	delete(s.clusterRootedAt, c.root)
	for _, i := range c.members {
		at := s.position[i]
		s.in[at] = slices.DeleteFunc(
			s.in[at],
			func(h *cluster) bool { return h == c },
		)
	}
}

// kind is the name that XLA gives to such a fusion.
func (c *cluster) kind() string {
	switch {
	case c.hero:
		return "kOutput"
	case c.reduction != nil:
		return "kInput"
	}
	return "kLoop"
}
