package partition

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Bounds of the second pass. Programs with more loops take long to rank, those
// with more results have no tiles in common, and the time of the pass is linear
// in the attempts and in the neighbours that are looked at.
const (
	maxAccumulators  = 12
	maxRoots         = 8
	maxAttempts      = 48
	maxSiblings      = 8
	maxUnitsSearched = 4096
	maxOffers        = 1 << 16
	maxDims          = 10
)

// A threshold is the share of the price apart that a join has to save, and for people
// the reason of one that a backend may run less well than the price assumes.
type threshold struct {
	saves   float64
	because string
}

// The thresholds of joins, of those that nest or add loops, and of those in which a
// contraction reads another one's tiles outside of an online loop.
var (
	worthwhile        = threshold{0.001, ""}
	worthwhileNested  = threshold{0.05, "; more loops have to save 5 %"}
	worthwhileChained = threshold{0.25, "; a contraction within a contraction has to save 25 %"}
)

// joinNeighbours joins clusters to neighbours where the joined price is lower,
// those first that save the most.
func (s *clustering) joinNeighbours() {
	var queue joinQueue
	for _, c := range s.all {
		s.offer(c, &queue)
	}
	for len(queue) > 0 && s.pricer.ctx.Err() == nil {
		j := heap.Pop(&queue).(*join)
		if j.a.gone ||
			j.b.gone ||
			j.a.version+j.b.version != j.version ||
			s.pathAround(j.a, j.b) ||
			s.pathAround(j.b, j.a) {
			continue
		}
		j.a.note("%s joins: %s", j.b.root.Name, j.why)
		s.absorb(j.a, j.b, s.union(j.a, j.b))
		s.offer(j.a, &queue)
	}
	s.all = slices.DeleteFunc(s.all, func(c *cluster) bool { return c.gone })
}

// A join is two clusters that cost less together, which have not changed since
// where the sum of their versions is the same.
type join struct {
	a, b    *cluster
	version int
	// saves is in seconds, why both prices for people.
	saves float64
	why   string
	// order breaks ties: the number of the offer.
	order int
}

// A joinQueue is a heap of joins, the one that saves the most first.
type joinQueue []*join

func (q joinQueue) Len() int      { return len(q) }
func (q joinQueue) Swap(i, k int) { q[i], q[k] = q[k], q[i] }
func (q *joinQueue) Push(j any)   { *q = append(*q, j.(*join)) }

// Less orders by what is saved, then by age.
func (q joinQueue) Less(i, k int) bool {
	if q[i].saves != q[k].saves {
		return q[i].saves > q[k].saves
	}
	return q[i].order < q[k].order
}

// Pop removes the last element, as container/heap demands.
func (q *joinQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// offer puts the joins of c with its neighbours into the queue.
func (s *clustering) offer(
	c *cluster, queue *joinQueue,
) {
	for k, n := range s.neighbours(c) {
		if k == maxAttempts || s.offers == maxOffers {
			return
		}
		s.offers++
		if j := s.priceJoin(c, n.cluster); j != nil {
			j.order = s.offers
			heap.Push(queue, j)
		}
		c.refused[n.cluster] = true
		n.refused[c] = true
	}
}

// A neighbour is a cluster that shares arrays with another.
type neighbour struct {
	*cluster
	// bytes are those of the arrays that they share.
	bytes float64
}

// neighbours lists the clusters that c reads, that read c, and that read what c
// reads, with the most bytes first.
func (s *clustering) neighbours(c *cluster) []neighbour {
	bytes := map[*cluster]float64{}
	for _, v := range slices.Concat(c.roots, s.reads(c)) {
		if v.Shape.Rank() == 0 {
			continue
		}
		for _, d := range s.sharers(v) {
			if d != c && !c.refused[d] {
				bytes[d] += float64(v.Shape.Bytes())
			}
		}
	}
	var all []neighbour
	for d, n := range bytes {
		all = append(all, neighbour{d, n})
	}
	slices.SortFunc(all, func(a, b neighbour) int {
		return cmp.Or(
			cmp.Compare(b.bytes, a.bytes),
			s.position[b.root]-s.position[a.root],
		)
	})
	return all
}

// reads lists what members of c take from outside, each once.
func (s *clustering) reads(
	c *cluster,
) []*hlo.Instr {
	var all []*hlo.Instr
	seen := map[*hlo.Instr]bool{}
	for _, i := range c.members {
		for _, o := range i.Operands {
			if !seen[o] &&
				!c.roles[o].member {
				seen[o] = true
				all = append(all, o)
			}
		}
	}
	return all
}

// sharers are the cluster that makes v and some of those that read it.
func (s *clustering) sharers(
	v *hlo.Instr,
) []*cluster {
	var all []*cluster
	if c := s.clusterRootedAt[v]; c != nil {
		all = append(all, c)
	}
	for _, u := range s.users[v] {
		for _, c := range s.clustersOf(u) {
			if len(all) > maxSiblings {
				return all
			}
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// priceJoin prices two clusters joined and apart; nil where they are to stay
// apart. The reason is noted.
func (s *clustering) priceJoin(
	c, n *cluster,
) *join {
	if len(c.members)+len(n.members) > maxClusterMembers ||
		s.accumulators(c)+s.accumulators(n) > maxAccumulators ||
		s.pathAround(c, n) ||
		s.pathAround(n, c) {
		return nil
	}
	u := s.union(c, n)
	if len(u.roots) > maxRoots ||
		s.mostTiles(u) > maxTiles ||
		u.ops > maxOps {
		return nil
	}
	a, b, joined := s.price(c), s.price(n), s.price(u)
	if why := cmp.Or(cannotPrice(a, b, joined), tooDeep(joined)); why != "" {
		c.note("%s stays apart: %s", n.root.Name, why)
		return nil
	}
	apart := a.price.plus(b.price)
	j := &join{a: c, b: n, version: c.version + n.version}
	j.saves = s.pricer.seconds(apart) - s.pricer.seconds(joined.price)
	j.why = fmt.Sprintf(
		"joined %s, apart %s", s.pricer.describe(joined.price), s.pricer.describe(apart),
	)
	limit := s.threshold(c, n, u)
	if j.saves < limit.saves*s.pricer.seconds(apart) {
		c.note("%s stays apart: %s%s", n.root.Name, j.why, limit.because)
		return nil
	}
	return j
}

// cannotPrice is why one of several prices is not known; "" where all are.
func cannotPrice(all ...pricedFusion) string {
	for _, x := range all {
		if x.err != nil {
			return x.err.Error()
		}
	}
	return ""
}

// tooDeep is why a fusion is none whatever it costs; "" where it is one.
func tooDeep(joined pricedFusion) string {
	if joined.shape.dims > maxDims {
		return fmt.Sprintf("joined, tilings have %d dimensions", joined.shape.dims)
	}
	return ""
}

// threshold is what a join of c and n to u has to save.
func (s *clustering) threshold(
	c, n, u *cluster,
) threshold {
	joined := s.price(u).shape
	switch chain := max(s.chain(c, n, u), s.chain(n, c, u)); {
	case chain == chainDirect,
		chain == chainSoftmax && !joined.online:
		return worthwhileChained
	case chain == chainNone &&
		joined.dims > max(s.price(c).shape.dims, s.price(n).shape.dims):
		return worthwhileNested
	}
	return worthwhile
}

// A chain is how contractions and windows of one cluster read what a contraction of
// another makes. Backends compute the tile of the latter for each tile of the
// former.
type chain int

const (
	// chainNone is not at all.
	chainNone chain = iota
	// chainSoftmax is as terms of a softmax, of which online loops compute one tile
	// after another.
	chainSoftmax
	// chainDirect is in any other way.
	chainDirect
)

// chain is how contractions and windows of c read contractions of n, where both are
// parts of u.
func (s *clustering) chain(c, n, u *cluster) chain {
	if !n.hero {
		return chainNone
	}
	worst := chainNone
	reads := make(map[*hlo.Instr]chain, len(u.members))
	for _, i := range slices.Backward(u.members) { // operands come first
		from := chainNone
		for _, o := range i.Operands {
			if r := reads[o]; from == chainNone || r == chainSoftmax {
				from = r
			}
		}
		switch {
		case n.roles[i].member && s.classes[i] == classHero:
			from = chainDirect
		case from == chainNone:
		case i.Op == hlo.OpReduce && reducesBy(i, hlo.OpMaximum):
			from = chainSoftmax
		case c.roles[i].member &&
			(s.classes[i] == classHero || i.Op == hlo.OpReduceWindow):
			worst = max(worst, from)
		}
		reads[i] = from
	}
	return worst
}

// reducesBy reports whether a reduction is by one operation.
func reducesBy(i *hlo.Instr, op hlo.Opcode) bool {
	to := i.Attrs.ToApply
	return to != nil && to.Root.Op == op
}

// mostTiles is the most tiles at which a member of u is read, as role.tiles, and
// counts the operations of u.
func (s *clustering) mostTiles(u *cluster) int {
	most := 1
	for _, i := range u.members { // users come first
		tiles := tileSet{}
		for _, user := range s.users[i] {
			if r := u.roles[user]; r.member {
				tiles = s.addReads(tiles, i, user, r.tiles)
			}
		}
		if len(tiles) == 0 || slices.Contains(u.roots, i) {
			tiles = tiles.with(rootTile)
		}
		u.roles[i] = role{member: true, tiles: tiles}
		u.ops += len(tiles)
		most = max(most, len(tiles))
	}
	return most
}

// maxReasons bounds the reasons that a cluster keeps.
const maxReasons = 24

// note adds a reason.
func (c *cluster) note(format string, args ...any) {
	if len(c.reasons) < maxReasons {
		c.reasons = append(c.reasons, fmt.Sprintf(format, args...))
	}
}

// describe is a price for people.
func (p *pricer) describe(x Price) string {
	return fmt.Sprintf(
		"%.3g µs (%.3g MB moved, %.3g MB loaded by tiles, %.3g Mflop)",
		1e6*p.seconds(x), x.Bytes/1e6, x.Loads/1e6, x.Work/1e6,
	)
}

// price is the price of a cluster.
func (s *clustering) price(c *cluster) pricedFusion {
	if c.priced == nil {
		x := s.pricer.fusion(s.computationOf(c))
		c.priced = &x
	}
	return *c.priced
}

// accumulators counts the reductions and contractions of a cluster.
func (s *clustering) accumulators(
	c *cluster) (n int,
) {
	for _, i := range c.members {
		if s.classes[i] == classHero ||
			s.classes[i] == classReduction {
			n++
		}
	}
	return n
}

// union is a cluster of the members of both.
func (s *clustering) union(
	a, b *cluster,
) *cluster {
	u := &cluster{
		roles:     make(map[*hlo.Instr]role, len(a.members)+len(b.members)),
		hero:      a.hero || b.hero,
		reduction: cmp.Or(a.reduction, b.reduction),
	}
	for _, c := range []*cluster{a, b} {
		for _, i := range c.members {
			if !u.roles[i].member {
				u.roles[i] = role{member: true}
				u.members = append(u.members, i)
			}
		}
	}
	byPosition := func(x, y *hlo.Instr) int { return s.position[x] - s.position[y] }
	slices.SortFunc(u.members, func(x, y *hlo.Instr) int { return -byPosition(x, y) })
	for _, r := range slices.Concat(a.roots, b.roots) {
		if s.usedOutside(r, a, b) {
			u.roots = append(u.roots, r)
		}
	}
	slices.SortFunc(u.roots, byPosition)
	u.root = u.roots[len(u.roots)-1]
	for _, r := range u.roots {
		u.rootsAt = append(u.rootsAt, s.position[r])
	}
	return u
}

// usedOutside reports whether something outside of two clusters reads i, which is
// a member of one of them.
func (s *clustering) usedOutside(
	i *hlo.Instr, a, b *cluster,
) bool {
	return i == s.root ||
		slices.ContainsFunc(s.users[i], func(u *hlo.Instr) bool {
			return len(s.clustersOf(u)) == 0 || s.copied[s.position[u]] ||
				slices.ContainsFunc(s.clustersOf(u), func(d *cluster) bool {
					return d != a &&
						d != b &&
						!d.roles[i].member
				})
		})
}

// absorb makes c the union of itself and n.
func (s *clustering) absorb(
	c, n, union *cluster,
) {
	for _, r := range slices.Concat(c.roots, n.roots) {
		delete(s.clusterRootedAt, r)
	}
	for _, i := range n.members {
		at := s.position[i]
		in := slices.DeleteFunc(s.in[at], func(d *cluster) bool { return d == n || d == c })
		s.in[at] = append(in, c)
	}
	n.gone = true
	union.reasons = slices.Concat(c.reasons, n.reasons)
	union.refused = map[*cluster]bool{}
	union.version = c.version + n.version + 1
	*c = *union
	for _, r := range c.roots {
		s.clusterRootedAt[r] = c
	}
	s.spread = slices.DeleteFunc(s.spread, func(d *cluster) bool {
		return d.gone || d == c
	})
	if len(c.roots) > 1 {
		s.spread = append(s.spread, c)
	}
	s.spans = s.spans[:0]
	for _, d := range s.spread {
		s.spans = append(s.spans, span{d.rootsAt[0], s.position[d.members[0]]})
	}
	s.spans = merged(s.spans)
}

// lastBefore is the last position from which a path of reads can lead to position p
// or one before it. Reads go to later positions, but a cluster of several roots can
// be entered at its last member and left by its first root.
func (s *clustering) lastBefore(p int) int { return lastFrom(s.spans, p) }

// A unit is what a cycle can go through: a cluster, or the instruction at a position
// that is computed alone.
type unit struct {
	cluster *cluster
	at      int
}

// pathAround reports whether something else reads from, directly or not, and is
// read by to, so that joining the two would make a cycle. It gives up, and says
// yes, after maxUnitsSearched units.
func (s *clustering) pathAround(from, to *cluster) bool {
	s.searches++
	p := pathSearch{s, from, to, s.lastBefore(s.position[to.members[0]]), nil, 0}
	if from.seen = s.searches; p.push(from.rootsAt, true) {
		return true
	}
	for len(p.stack) > 0 {
		u := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		roots := []int{u.at}
		if u.cluster != nil {
			roots = u.cluster.rootsAt
		}
		if p.push(roots, false) || p.seen > maxUnitsSearched {
			return true
		}
	}
	return false
}

// A pathSearch looks for a path between clusters up to a position.
type pathSearch struct {
	*clustering
	from, to *cluster
	last     int
	stack    []unit
	// seen counts the units that have been met.
	seen int
}

// push puts the units that read some values from memory on the stack, those that are
// new. It reports whether one of them is to, unless that may read the values.
func (p *pathSearch) push(roots []int, direct bool) (found bool) {
	for _, r := range roots {
		if r > p.last {
			continue
		}
		for _, u := range p.usersAt[r] {
			if (len(p.in[u]) == 0 || p.copied[u]) && p.seenAt[u] != p.searches {
				p.seenAt[u] = p.searches
				p.stack = append(p.stack, unit{at: u})
				p.seen++
			}
			for _, c := range p.in[u] {
				switch {
				case slices.Contains(p.in[r], c):
				case c == p.to && !direct:
					return true
				case c != p.to && c.seen != p.searches:
					c.seen = p.searches
					p.stack = append(p.stack, unit{cluster: c})
					p.seen++
				}
			}
		}
	}
	return false
}
