package cpu

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// How far the search for the first plan by price goes.
const (
	fewTilings  = 320 // of a space: each is priced
	maxSweeps   = 6   // over all dimensions, of a descent
	refined     = 8   // tilings that are priced with all knobs
	startShares = 4   // tile programs for each lane that a descent begins with
)

// first is the first plan by price that can be lowered.
func (s *search) first() (kernels.Plan, error) {
	found := s.found()
	if s.ended() {
		return kernels.Plan{}, context.Cause(s.ctx)
	}
	if len(found) == 0 {
		if s.p.Space.Count() == 0 {
			return kernels.Plan{},
				fmt.Errorf("%s has no legal tiling", s.p.Fusion.Name)
		}
		return kernels.Plan{}, cmp.Or(s.refused, errDigits)
	}
	for first := 0; first < len(found); first += refined {
		var plans []pricedPlan
		for _, x := range found[first:min(first+refined, len(found))] {
			plans = append(plans, s.plans(x.tiling, maxPlansPerTiling)...)
		}
		slices.SortFunc(plans, pricedPlan.compare)
		for _, x := range plans {
			if s.runs(x.plan.Tiles) {
				return x.plan, nil
			}
		}
	}
	return kernels.Plan{}, s.refused
}

// ended reports whether the context of the search has.
func (s *search) ended() bool { return s.ctx.Err() != nil }

// found are the sensible tilings that a search meets, the best first. Prices take the
// rows of a large tile for rows that need no scratch; where none of the tilings met can
// be lowered, tilings that cannot are not sensible in a second search.
func (s *search) found() []pricedTiling {
	all := s.foundByPrice()
	if len(all) == 0 {
		s.strict = true
		all = s.foundByPrice()
		s.strict = false
	}
	return all
}

// foundByPrice is found without looking twice.
func (s *search) foundByPrice() []pricedTiling {
	var all []pricedTiling
	if s.program.Space.Count() <= fewTilings {
		for t := range s.tilings() {
			if s.ended() {
				return nil
			}
			all = append(all, s.tiling(t))
		}
	} else {
		d := newDescent(s)
		for k, t := range d.starts() {
			if d.ended() {
				return nil
			}
			d.descend(t, k == 1)
		}
		all = d.met
	}
	some := slices.DeleteFunc(slices.Clone(all), func(x pricedTiling) bool {
		return !x.sensible
	})
	if len(some) == 0 {
		some = all
	}
	some = s.fitting(some)
	slices.SortFunc(some, pricedTiling.compare)
	return slices.CompactFunc(some, func(x, y pricedTiling) bool {
		return slices.Equal(x.tiling, y.tiling)
	})
}

// A descent looks for the cheapest tiling by changing one dimension at a time, or the
// dimensions of loops that can be joined together.
type descent struct {
	*search
	// Dimensions that change together.
	moves [][]int
	// The best of this descent.
	at pricedTiling
	// That tiling with one change.
	try symtile.Tiling
	// Of each move: improved when it was tried last.
	tried []int
	// How often at became better, over all descents.
	improved int
	// That were the best at some time, and all that came close.
	met []pricedTiling
	// Tilings by their sizes: descents meet most of them several times.
	seen map[string]seenTiling
	key  []byte
}

// A seenTiling is what is known of a tiling that was looked at.
type seenTiling struct {
	pricedTiling
	legal bool
	met   bool
}

// newDescent lists the moves: each dimension alone, and the dimensions of loops that can
// be joined together, since loops are joined where their tiles have equal sizes.
func newDescent(s *search) *descent {
	n := len(s.p.Space.Dims)
	d := &descent{
		search: s,
		try:    make(symtile.Tiling, n),
		seen:   map[string]seenTiling{},
	}
	for k := range n {
		d.moves = append(d.moves, []int{k})
	}
	if s.joined != nil {
		groups := map[int][]int{}
		for _, j := range s.joined.joins {
			groups[j[1]] = append(groups[j[1]], j[0])
		}
		for k := range n {
			if groups[k] != nil {
				d.moves = append(
					d.moves,
					append([]int{k}, groups[k]...),
				)
			}
		}
	}
	d.tried = make([]int, len(d.moves))
	return d
}

// starts are tilings that descents begin with: the largest tiles, tiles of about equal
// sides, for every parallel dimension those with as many tiles along it as lanes can
// share, and where there are loops in loops those of one step of the outermost: a row of
// the window of a convolution.
func (d *descent) starts() []symtile.Tiling {
	full := d.largest()
	if full == nil {
		return nil
	}
	if d.strict {
		full = d.halved(full)
	}
	all := []symtile.Tiling{full}
	if even := d.even(full); even != nil {
		all = append(all, even)
	}
	tiles := int64(startShares * max(1, d.device.Lanes))
	for k, dim := range d.p.Space.Dims {
		if dim.Kind != symtile.Parallel {
			break
		}
		if dim.Extent >= tiles {
			all = d.withSize(all, k, dim.Extent/tiles)
		}
	}
	sequential := func(x symtile.Dim) bool {
		return x.Kind == symtile.Sequential
	}
	k := slices.IndexFunc(d.p.Space.Dims, sequential)
	if k >= 0 && slices.ContainsFunc(d.p.Space.Dims[k+1:], sequential) {
		all = d.withSize(all, k, 1)
	}
	return all
}

// halved halves the longest side of tiles until they can be lowered, as far as that is
// legal.
func (d *descent) halved(full symtile.Tiling) symtile.Tiling {
	t := slices.Clone(full)
	for !d.fits(t) {
		longest := slices.Index(t, slices.Max(t))
		sizes := d.program.Space.Sizes(longest)
		at, _ := slices.BinarySearch(sizes, (t[longest]+1)/2)
		if at == len(sizes) || sizes[at] >= t[longest] {
			return full
		}
		if t[longest] = sizes[at]; d.program.Check(t) != nil {
			return full
		}
	}
	return t
}

// withSize adds the first start with another size of a dimension, the greatest that
// Tilings proposes up to a limit, if that is legal.
func (d *descent) withSize(all []symtile.Tiling, dim int, limit int64) []symtile.Tiling {
	t := slices.Clone(all[0])
	for _, size := range d.program.Space.Sizes(dim) {
		if size <= limit {
			t[dim] = size
		}
	}
	if d.program.Check(t) != nil {
		return all
	}
	return append(all, t)
}

// even halves the longest side of tiles until there is one for each lane; nil where that
// is not legal.
func (d *descent) even(full symtile.Tiling) symtile.Tiling {
	t := slices.Clone(full)
	for programs := 1; programs < max(1, d.device.Lanes); programs *= 2 {
		longest := -1
		for k, dim := range d.p.Space.Dims {
			if dim.Kind == symtile.Parallel && (longest < 0 || t[k] > t[longest]) {
				longest = k
			}
		}
		if longest < 0 || t[longest] < 2 {
			break
		}
		t[longest] = (t[longest] + 1) / 2
	}
	if d.program.Check(t) != nil {
		return nil
	}
	return t
}

// largest is the tiling of the largest tiles that are legal, or any; nil without.
func (d *descent) largest() symtile.Tiling {
	full := make(symtile.Tiling, len(d.try))
	for k, dim := range d.p.Space.Dims {
		full[k] = max(1, dim.Extent)
	}
	if d.program.Check(full) == nil {
		return full
	}
	for t := range d.program.Space.Sample(1) {
		return t
	}
	return nil
}

// descend changes a tiling as long as that makes it cheaper, by exchanges first or by
// single dimensions.
func (d *descent) descend(t symtile.Tiling, exchange bool) {
	d.at = pricedTiling{seconds: math.Inf(1)}
	d.visit(t)
	if exchange {
		d.exchanges()
	}
	for range maxSweeps {
		if d.ended() {
			return
		}
		before := d.improved
		for k := range d.moves {
			d.line(k)
		}
		if before == d.improved {
			d.exchanges()
		}
		if before == d.improved {
			d.trades()
		}
		if before == d.improved {
			return
		}
	}
}

// line tries all sizes of the dimensions of a move, the same of each. Where nothing
// became better since it was tried last, it has nothing new.
func (d *descent) line(move int) {
	if d.tried[move] == d.improved {
		return
	}
	copy(d.try, d.at.tiling)
	dims := d.moves[move]
	for _, size := range d.program.Space.Sizes(dims[0]) {
		if d.ended() {
			return
		}
		for _, k := range dims {
			d.try[k] = size
		}
		d.visit(d.try)
	}
	d.tried[move] = d.improved
}

// exchanges makes tiles longer in one parallel dimension and shorter in another, so that
// they have about as many elements.
func (d *descent) exchanges() {
	dims := d.p.Space.Dims
	for k := range dims {
		for l := k + 1; l < len(dims) && dims[l].Kind == symtile.Parallel; l++ {
			d.exchange(k, l, d.at.tiling, d.at.tiling[k]*d.at.tiling[l])
		}
	}
}

// trades are exchanges of two parallel dimensions by tiles with the next smaller or larger
// size of the first dimension, and about as many elements: an image of one and half of two.
func (d *descent) trades() {
	dims := d.p.Space.Dims
	if len(dims) == 0 {
		return
	}
	sizes := d.program.Space.Sizes(0)
	from := slices.Clone(d.at.tiling)
	at, _ := slices.BinarySearch(sizes, from[0])
	for _, size := range sizes[max(0, at-1):min(len(sizes), at+2)] {
		for l := 1; size != from[0] && l < len(dims) && dims[l].Kind == symtile.Parallel; l++ {
			for m := l + 1; m < len(dims) && dims[m].Kind == symtile.Parallel; m++ {
				t := slices.Clone(from)
				t[0] = size
				d.exchange(l, m, t, (from[0]*from[l]*from[m]+size-1)/size)
			}
		}
	}
}

// exchange tries the sizes of two dimensions of a tiling with about so many elements.
func (d *descent) exchange(k, l int, t symtile.Tiling, area int64) {
	const around = 2 // sizes: the nearest may leave a ragged tile
	copy(d.try, t)
	sizes := d.program.Space.Sizes(l)
	for _, size := range d.program.Space.Sizes(k) {
		if d.ended() {
			return
		}
		d.try[k] = size
		at, _ := slices.BinarySearch(sizes, (area+size-1)/size)
		for _, d.try[l] = range sizes[max(0, at-around):min(len(sizes), at+around)] {
			d.visit(d.try)
		}
	}
}

// visit prices a tiling that is legal.
func (d *descent) visit(t symtile.Tiling) {
	if slices.Equal(t, d.at.tiling) {
		return
	}
	x := d.look(t)
	if !x.legal {
		return
	}
	better := d.at.tiling == nil || x.fitness() > d.at.fitness() ||
		x.fitness() == d.at.fitness() && x.before(d.at)
	if !x.met && (better || x.seconds < d.at.seconds*nearBest) {
		x.met = true
		d.seen[string(d.key)] = x
		d.met = append(d.met, x.pricedTiling)
	}
	if better {
		d.at = x.pricedTiling
		d.improved++
	}
}

// look prices a tiling, or remembers what it costs.
func (d *descent) look(t symtile.Tiling) seenTiling {
	d.key = d.key[:0]
	for _, size := range t {
		d.key = binary.AppendUvarint(d.key, uint64(size))
	}
	x, known := d.seen[string(d.key)]
	if known {
		return x
	}
	if x.legal = d.program.Check(t) == nil; x.legal {
		x.pricedTiling = d.tiling(slices.Clone(t))
	}
	d.seen[string(d.key)] = x
	return x
}

// nearBest is how many times the price of the best tiling others may have to be kept:
// with knobs they may become the best.
const nearBest = 1.05

// A growth looks at the neighbours of the best tilings, the best first: a dimension, or the
// dimensions of a move of a descent, with the next smaller or larger size.
type growth struct {
	*descent
	all  []pricedTiling
	open openTilings // indices into all, the best first
	seen map[string]bool
	key  []byte
}

// newGrowth begins with tilings, some of which may be the same.
func newGrowth(s *search, all []pricedTiling) *growth {
	g := &growth{
		descent: newDescent(s),
		all:     all,
		seen:    make(map[string]bool, 2*len(all)),
	}
	g.open.tilings = &g.all
	for k := range all {
		if g.enter(all[k].tiling) && all[k].sensible {
			g.open.order = append(g.open.order, k)
		}
	}
	heap.Init(&g.open)
	return g
}

// enter notes a tiling; it is false for one that was noted before.
func (g *growth) enter(t symtile.Tiling) bool {
	g.key = g.key[:0]
	for _, size := range t {
		g.key = binary.AppendVarint(g.key, size)
	}
	if g.seen[string(g.key)] {
		return false
	}
	g.seen[string(g.key)] = true
	return true
}

// grow prices so many more tilings, and returns all.
func (g *growth) grow(n int) []pricedTiling {
	most := len(g.all) + n
	for len(g.all) < most && len(g.open.order) > 0 && !g.ended() {
		t := g.all[heap.Pop(&g.open).(int)].tiling
		for _, dims := range g.moves {
			sizes := g.program.Space.Sizes(dims[0])
			at, found := slices.BinarySearch(sizes, t[dims[0]])
			if at > 0 {
				g.neighbour(t, dims, sizes[at-1])
			}
			if found {
				at++
			}
			if at < len(sizes) {
				g.neighbour(t, dims, sizes[at])
			}
		}
	}
	return g.all
}

// neighbour prices a tiling with another size of some dimensions.
func (g *growth) neighbour(t symtile.Tiling, dims []int, size int64) {
	copy(g.try, t)
	for _, k := range dims {
		g.try[k] = size
	}
	if !g.enter(g.try) || g.program.Check(g.try) != nil {
		return
	}
	x := g.tiling(slices.Clone(g.try))
	g.all = append(g.all, x)
	if x.sensible {
		heap.Push(&g.open, len(g.all)-1)
	}
}

// openTilings is a heap of indices of tilings, the best first.
type openTilings struct {
	tilings *[]pricedTiling
	order   []int
}

func (o *openTilings) Len() int { return len(o.order) }
func (o *openTilings) Less(i, j int) bool {
	return (*o.tilings)[o.order[i]].before((*o.tilings)[o.order[j]])
}
func (o *openTilings) Swap(i, j int) { o.order[i], o.order[j] = o.order[j], o.order[i] }
func (o *openTilings) Push(x any)    { o.order = append(o.order, x.(int)) }
func (o *openTilings) Pop() any {
	last := len(o.order) - 1
	x := o.order[last]
	o.order = o.order[:last]
	return x
}

// runs reports whether a tiling can be lowered. Tilings of one kind are lowered to the
// same instructions, but for sizes that happen to be equal.
func (s *search) runs(t symtile.Tiling) bool {
	kind := s.kind(t)
	if lowers, met := s.lowers[kind]; met {
		return lowers
	}
	err := s.lowersAt(t)
	s.refused = cmp.Or(s.refused, err)
	s.lowers[kind] = err == nil
	return err == nil
}

// lowersAt is why a tiling cannot be lowered; nil where it can.
func (s *search) lowersAt(t symtile.Tiling) error {
	q, err := s.p.At(t)
	switch {
	case err != nil:
		return err
	case s.each && !WalksDigits(q):
		return errDigits
	}
	l, _ := lower(q, kernels.Plan{}, s.spec)
	return l.err
}

// fits reports whether the program of a tiling can be lowered within maxScratch.
func (s *search) fits(t symtile.Tiling) bool {
	key := keyOf(t)
	if fits, met := s.roomy[key]; met {
		return fits
	}
	q, err := s.p.At(t)
	if err == nil {
		_, err = lowerAndCompile(q, kernels.Plan{}, s.spec, nil)
	}
	if err != nil && s.refused == nil {
		s.refused = err
	}
	s.roomy[key] = err == nil
	return err == nil
}

// kind is a text that says for every dimension whether its tile is all of it, one element, a divisor or
// ragged, whether it has eight elements, and whether it is too long for a row of a nest. Of a
// program whose tiles have no digits, what cannot be lowered does not depend on the tiling, and
// all tilings are of one kind. Where digits are no parameter's alone, each is of its own.
func (s *search) kind(t symtile.Tiling) string {
	switch {
	case !s.digits:
		return ""
	case s.each:
		return keyOf(t)
	}
	text := make([]byte, len(t))
	for k, d := range s.p.Space.Dims {
		switch {
		case t[k] >= d.Extent:
			text[k] = 'w'
		case t[k] == 1:
			text[k] = '1'
		case d.Extent%t[k] == 0:
			text[k] = 'd'
		default:
			text[k] = 'r'
		}
		if t[k] > maxRowLength {
			text[k] -= 'a' - 'A'
		}
		if t[k] >= 8 { // a block can be transposed
			text[k] |= 0x80
		}
	}
	return string(text)
}
