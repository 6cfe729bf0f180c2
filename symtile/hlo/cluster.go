package hlo

import "slices"

// A kind says how an operation takes part in a partition.
type kind uint8

const (
	outside   kind = iota // cannot be tiled, or is no work
	light                 // elementwise or moves data: joins its users
	copied                // constant, iota: copied to its users
	hero                  // dot, scaled-dot, convolution
	reduction             // reduce, reduce-window
	element               // of a variadic reduction
	single                // tiled, but a fusion of its own
)

// moves are the operations that move data, besides the elementwise ones.
var moves = map[Opcode]bool{
	"broadcast": true, "reshape": true, "bitcast": true, "transpose": true, "slice": true, "pad": true, "concatenate": true,
	"reverse": true, "gather": true, "dynamic-slice": true,
}

// views look at their operand another way; copying one costs nothing.
var views = map[Opcode]bool{"broadcast": true, "reshape": true, "bitcast": true}

const mostCopied = 1024 // elements of a constant that is copied into fusions; larger ones are data

// kindOf tells what i is; its operands are known.
func (s *split) kindOf(i *Instr) kind {
	switch {
	case i.Op == "get-tuple-element":
		if s.kinds[i.Operands[0]] == reduction {
			return element
		}
		return outside
	case i.Op == "parameter" || i.Op == "optimization-barrier" || i.Op == "call" || s.why(i) != "":
		return outside
	case i.Op == "reduce" || i.Op == "reduce-window":
		return reduction
	case !i.Shape.DType.IsArray():
		return outside
	case i.Op == "iota" || i.Op == "constant" && i.Shape.Elements() <= mostCopied:
		return copied
	case i.Op == "constant":
		return outside
	case i.Op == "dot" || i.Op == "scaled-dot" || i.Op == "convolution":
		return hero
	case i.Op.Elementwise() || i.Op == "map" || moves[i.Op]:
		return light
	}
	return single
}

// A split sorts what a computation needs into clusters.
type split struct {
	why    func(*Instr) string
	root   *Instr
	order  []*Instr // operands first
	users  map[*Instr][]*Instr
	kinds  map[*Instr]kind
	after  map[*Instr]bool       // operations that follow a hero or a reduction
	homes  map[*Instr][]*cluster // of members; several for what is copied
	rootOf map[*Instr]*cluster
	count  int // of calls of usersHomes
}

// A cluster becomes a fusion. Only its root is used outside of it.
type cluster struct {
	root    *Instr
	members []*Instr        // users first
	roles   map[*Instr]role // of the members
	hero    bool
	over    *Instr // a reduction; the others reduce the same
	counted int    // the last call of usersHomes that met it, and what that found:
	grows   bool   // a broadcast between the instruction and the root
	feeds   bool   // the hero, or a window, reads the instruction, directly or not; it would be computed more than once
}

// A role says what a member is to its cluster.
type role struct {
	in     bool
	grown  bool // there is a broadcast between it and the root
	before bool // the hero or a window reads it, directly or not
}

const mostMembers = 256 // of a cluster; what compilers fuse stays under a hundred

func newSplit(c *Computation, why func(*Instr) string) *split {
	s := &split{why: why, root: c.Root, order: c.needed()}
	n := len(s.order)
	s.users, s.kinds = make(map[*Instr][]*Instr, n), make(map[*Instr]kind, n)
	s.after = make(map[*Instr]bool, n)
	s.homes, s.rootOf = make(map[*Instr][]*cluster, n), map[*Instr]*cluster{}
	for _, i := range s.order {
		s.kinds[i] = s.kindOf(i)
		for _, o := range i.Operands {
			if u := s.users[o]; len(u) == 0 || u[len(u)-1] != i {
				s.users[o] = append(u, i)
			}
			s.after[i] = s.after[i] || s.kinds[o] == hero || s.kinds[o] == reduction || s.kinds[o] != outside && s.after[o]
		}
	}
	return s
}

// cluster walks from the results to the parameters.
func (s *split) cluster() {
	var all []*cluster
	for _, i := range slices.Backward(s.order) {
		if s.kinds[i] == outside {
			continue
		}
		homes, escapes := s.usersHomes(i)
		switch {
		case s.kinds[i] == copied || views[i.Op] && !escapes && s.fits(i, homes):
			for _, c := range homes {
				s.join(i, c)
			}
		case !escapes && len(homes) == 1 && s.accepts(homes[0], i):
			s.join(i, homes[0])
		case s.kinds[i] == element:
			s.kinds[i] = outside
		default:
			c := &cluster{root: i, roles: map[*Instr]role{}}
			s.rootOf[i] = c
			all = append(all, c)
			s.join(i, c)
		}
	}
	for _, c := range all {
		if s.idle(c) {
			s.dissolve(c)
		}
	}
}

// usersHomes lists the clusters i is used in, and notes in each what i would be
// there; escapes says whether it is also used outside of them.
func (s *split) usersHomes(i *Instr) (homes []*cluster, escapes bool) {
	escapes = i == s.root
	s.count++
	for _, u := range s.users[i] {
		if len(s.homes[u]) == 0 {
			escapes = true
		}
		again := s.kinds[u] == hero || u.Op == "reduce-window"
		for _, c := range s.homes[u] {
			if c.counted != s.count {
				c.counted, c.grows, c.feeds = s.count, false, false
				homes = append(homes, c)
			}
			c.grows = c.grows || c.roles[u].grown || isGrowing(u)
			c.feeds = c.feeds || c.roles[u].before || again
		}
	}
	return homes, escapes
}

func (s *split) fits(i *Instr, homes []*cluster) bool {
	return !slices.ContainsFunc(homes, func(c *cluster) bool { return !s.accepts(c, i) })
}

func (s *split) join(i *Instr, c *cluster) {
	c.members = append(c.members, i)
	c.roles[i] = role{true, c.root != i && c.grows, c.root != i && c.feeds}
	s.homes[i] = append(s.homes[i], c)
	switch s.kinds[i] {
	case hero, single:
		c.hero = true
	case reduction:
		c.over = i
	}
}

// isGrowing says whether i is a broadcast to more elements.
func isGrowing(i *Instr) bool {
	return i.Op == "broadcast" && i.Shape.Elements() > i.Operands[0].Shape.Elements()
}

// accepts says whether i, all of whose users here are in c, may join it.
func (s *split) accepts(c *cluster, i *Instr) bool {
	if len(c.members) >= mostMembers || s.kinds[c.root] == single {
		return false
	}
	switch s.kinds[i] {
	case light:
		return views[i.Op] || !s.after[i] || !c.feeds
	case element, copied:
		return true
	case hero:
		return !c.hero && c.over == nil && !c.grows
	case reduction:
		return !c.hero && (c.over == nil || sameReduction(i, c.over)) && s.restored(i, c)
	}
	return false
}

// sameReduction says whether two reductions walk the same rows.
func sameReduction(a, b *Instr) bool {
	return a.Op == "reduce" && b.Op == "reduce" && a.Operands[0].Shape.SameDims(b.Operands[0].Shape) && slices.Equal(sorted(a.Attrs.Dimensions), sorted(b.Attrs.Dimensions))
}

func sorted(v []int64) []int64 { return slices.Sorted(slices.Values(v)) }

// restored says whether every broadcast of i's result in c restores the shape
// that i reduces, with its rows where they were.
func (s *split) restored(i *Instr, c *cluster) bool {
	rows := rowsOf(i)
	seen := map[*Instr]bool{}
	queue := []*Instr{i}
	for len(queue) > 0 {
		o := queue[0]
		queue = queue[1:]
		for _, u := range s.users[o] {
			if !c.roles[u].in || seen[u] {
				continue
			}
			seen[u] = true
			switch {
			case isGrowing(u):
				if !u.Shape.SameDims(i.Operands[0].Shape) || !slices.Equal(targets(u), rows) {
					return false
				}
			case s.kinds[u] == light && u.Shape.Elements() == o.Shape.Elements() && u.Op != "transpose" && u.Op != "reverse":
				queue = append(queue, u)
			case s.kinds[u] == element:
				queue = append(queue, u)
			case c.roles[u].grown:
				return false
			}
		}
	}
	return true
}

// rowsOf are the dimensions a reduction keeps, without those of extent 1.
func rowsOf(i *Instr) []int64 {
	var kept []int64
	for d, extent := range i.Operands[0].Shape.Dims {
		if extent != 1 && !slices.Contains(i.Attrs.Dimensions, int64(d)) {
			kept = append(kept, int64(d))
		}
	}
	return kept
}

// targets are the dimensions a broadcast puts its operand's in, without those
// of extent 1.
func targets(i *Instr) []int64 {
	var dims []int64
	for k, d := range i.Attrs.Dimensions {
		if i.Operands[0].Shape.Dims[k] != 1 {
			dims = append(dims, d)
		}
	}
	return dims
}

// idle says whether there is nothing to tune in c: scalars, or no work.
func (s *split) idle(c *cluster) bool {
	scalars, still := true, true
	for _, i := range c.members {
		scalars = scalars && i.Shape.DType.IsArray() && i.Shape.Elements() <= 1
		for _, o := range i.Operands {
			scalars = scalars && o.Shape.DType.IsArray() && o.Shape.Elements() <= 1
		}
		still = still && (i.Op == "reshape" || i.Op == "bitcast" || s.kinds[i] == copied)
	}
	return scalars || still
}

// dissolve puts the members of c outside.
func (s *split) dissolve(c *cluster) {
	delete(s.rootOf, c.root)
	for _, i := range c.members {
		s.homes[i] = slices.DeleteFunc(s.homes[i], func(h *cluster) bool { return h == c })
	}
}

// kind is what XLA calls such a fusion.
func (c *cluster) kind() string {
	switch {
	case c.hero:
		return "kOutput"
	case c.over != nil:
		return "kInput"
	}
	return "kLoop"
}
