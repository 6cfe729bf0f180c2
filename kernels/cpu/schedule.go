package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Instructions are ordered by phases. An elementwise instruction can share a strip
// with the instructions it reads, so that its operands are still in the first-level
// cache, or in registers. Everything else needs all of its operands before it
// starts. A phase is therefore as early as the operands allow, where a change
// between the two kinds of instructions takes a phase. For example
//
// 	load a, load b, add a b, reduce, broadcast, multiply a broadcast
//
// is a strip phase (load, add), a phase with the reduction, and a strip phase
// (broadcast, multiply), into which the load of a is not moved, since the add needs
// it before. Loads that only later phases read sink to them, so that their values
// exist a strip at a time and need no tile of scratch.

// A schedule is the instructions of a block in the order in which they run,
// with elementwise ones in groups. Instructions alternate between two kinds of
// phases: odd phases hold elementwise instructions, even phases the others.
// Within a phase the order is that of the program.
type schedule struct {
	block *block
	items []*instr
}

// A producer is the instruction of the block that made a value, and its phase.
type producer struct {
	instr *instr
	phase int
}

// schedule orders the instructions of the block, groups them and decides where
// their values are. It is called once, when all instructions are known.
func (b *block) schedule() *schedule {
	phase := b.phases()
	s := &schedule{block: b}
	for p := 0; p <= slices.Max(append(phase, 0)); p++ {
		var now []*instr
		for k, i := range b.list {
			if phase[k] == p {
				now = append(now, i)
			}
		}
		if p%2 == 1 {
			now = groupByLength(now)
		}
		s.items = append(s.items, now...)
	}
	s.assignResidence()
	return s
}

// phases assigns instructions to phases: as early as their operands allow, but
// for instructions that only bring values in (loads, broadcasts, iota), which
// are as late as their readers allow.
func (b *block) phases() []int {
	phase := make([]int, len(b.list))
	made := map[*value]producer{}
	for k, i := range b.list {
		p := 0
		for _, v := range i.tileArgs {
			p = max(p, made[v].readyFor(i, false))
		}
		for _, v := range i.stripArgs {
			p = max(p, made[v].readyFor(i, true))
		}
		if i.strip != nil {
			p |= 1
		} else {
			p += p & 1
		}
		phase[k] = p
		for _, v := range i.outs {
			made[v] = producer{i, p}
		}
	}
	b.sink(phase)
	return phase
}

// readyFor is the first phase in which i can read the value: the producer's
// own, if both compute the same elements strip by strip.
func (m producer) readyFor(i *instr, same bool) int {
	switch {
	case m.instr == nil, m.instr.strip == nil,
		same && i.strip != nil && i.n == m.instr.n:
		return m.phase
	}
	return m.phase + 1
}

// sink moves instructions without operands of their own length to the phase
// before their first reader, or into it.
func (b *block) sink(phase []int) {
	for k := len(b.list) - 1; k >= 0; k-- {
		i := b.list[k]
		if i.strip == nil ||
			len(i.stripArgs) > 0 ||
			len(i.outs) == 0 {
			continue
		}
		latest := -1
		for j := k + 1; j < len(b.list); j++ {
			u := b.list[j]
			at := (phase[j] - 2) | 1 // The odd phase before that of j.
			switch {
			case slices.Contains(u.tileArgs, i.outs[0]):
			case !slices.Contains(u.stripArgs, i.outs[0]):
				continue
			case u.strip != nil && u.n == i.n:
				at = phase[j]
			}
			if latest < 0 || at < latest {
				latest = at
			}
		}
		phase[k] = max(phase[k], latest)
	}
}

// groupByLength joins elementwise instructions of one length to groups.
func groupByLength(list []*instr) []*instr {
	var groups []*instr
	for _, i := range list {
		k := slices.IndexFunc(groups, func(g *instr) bool {
			return g.n == i.n
		})
		if k < 0 {
			k = len(groups)
			groups = append(groups, &instr{
				name: "strips",
				n:    i.n,
			})
		}
		groups[k].group = append(groups[k].group, i)
	}
	return groups
}

// assignResidence decides which values exist a strip at a time, those that only
// the group reads that makes them, and which in registers, those inside of row
// kernels.
func (s *schedule) assignResidence() {
	if s.block.l.fusesRows {
		s.fuseRows()
	}
	// If a group has all readers of a value that it makes, the value need not exist as
	// a whole.
	uses := map[*value]int{}
	inside := map[*value]int{}
	for _, i := range s.items {
		for n := range i.members {
			for v := range n.args {
				uses[v]++
			}
		}
	}
	for _, g := range s.items {
		clear(inside)
		for _, n := range g.group {
			for _, v := range n.stripArgs {
				inside[v]++
			}
		}
		for _, n := range g.group {
			for _, v := range n.outs {
				if v.where == inTile && uses[v] > 0 &&
					uses[v] == inside[v] {
					v.where = inStrip
					v.n = min(v.n, s.block.l.strip)
				}
			}
		}
		if g.group != nil {
			s.block.l.assignRoutines(g)
		}
	}
}

// compile makes the steps of the schedule.
func (s *schedule) compile() []step {
	var steps []step
	if f := s.block.slotStep(); f != nil {
		steps = append(steps, f)
	}
	if binds := s.block.binds; len(binds) > 0 {
		steps = append(steps, bindStep(binds))
	}
	for _, i := range s.items {
		switch {
		case i.rows != nil:
			f, err := i.rows.compile(s.block.l)
			if err != nil {
				s.block.l.codeErr = err
			}
			steps = append(steps, f)
		case i.loop != nil:
			i.loop.steps = i.loop.body.compile()
			steps = append(steps, i.loop.run)
		case i.group != nil:
			steps = append(steps, i.strips(s.block.l))
		default:
			steps = append(steps, i.run)
		}
	}
	return steps
}

// strips makes the step of a group, which runs strip by strip. A single
// instruction that needs no strips runs once.
func (i *instr) strips(l *lowering) step {
	// Strips exist so that values stay in the first-level cache between instructions.
	// One machine function needs none, but returns now and then for the garbage
	// collector; views dictate a length of their own.
	nodes, row := l.stripsOf(i.group)
	n := i.n
	length := n
	single := isFunction(nodes)
	switch {
	case single && nodes[0].function.row > 0:
		f := nodes[0].function
		return f.overRows(nodes[0].code, n)
	case row > 0:
		length = evenStrip(row, l.strip, shortestRow)
	case single: // Its strips are in registers.
		length = min(length, vector.MaxCallLength)
	case len(nodes) > 1 || i.hasStrips():
		length = l.strip
	}
	if n <= length && len(nodes) == 1 {
		f := nodes[0].strip
		return func(w *worker) { f(w, 0, n) }
	}
	if box := i.needed(); box != nil && row == 0 {
		return neededStrips(nodes, box, n, length)
	}
	return func(w *worker) {
		for lo := int64(0); lo < n; lo += length {
			hi := min(lo+length, n)
			for k := range nodes {
				nodes[k].strip(w, lo, hi)
			}
		}
	}
}

// neededStrips makes the step of a group of which only the elements in a box are needed: each
// strip begins at the first of these behind the last.
func neededStrips(nodes []stripNode, box *tileBox, n, length int64) step {
	return func(w *worker) {
		var r region
		box.region(w, &r)
		for lo := box.next(&r, 0); lo < n; {
			hi := min(lo+length, n)
			for k := range nodes {
				nodes[k].strip(w, lo, hi)
			}
			lo = box.next(&r, hi)
		}
	}
}

// needed is the elements that are read of what a group makes, nil where all are: of the update
// of a cache of keys, say, one row of a tile of 256, whose other rows are the cache's.
func (i *instr) needed() (box *tileBox) {
	for _, n := range i.group {
		if len(n.outs) == 0 {
			return nil // A store.
		}
		for _, v := range n.outs {
			switch {
			case v.where == inStrip:
			case v.needed == nil:
				return nil
			case box != nil && box != v.needed:
				return nil
			default:
				box = v.needed
			}
		}
	}
	return box
}

// hasStrips reports whether instructions of a group read or make values that
// exist a strip at a time.
func (i *instr) hasStrips() bool {
	strip := func(v *value) bool {
		return v.where == inStrip || v.where == inSplat
	}
	return slices.ContainsFunc(i.group, func(n *instr) bool {
		return slices.ContainsFunc(n.outs, strip) ||
			slices.ContainsFunc(n.stripArgs, strip)
	})
}

// A listing shows a plan as it runs. For z = tanh(x + broadcast(b)) in f64, with
// tiles of 16 rows of 1024 elements:
//
// 	plan 16,1024: 4 tile programs on 2 workers, 16384 bytes of scratch each
// 	t0: parallel, extent 64 in 4 tiles of 16, from z
// 	t1: parallel, extent 1024 in 1 tiles of 1024, from z
// 	%0 (f64 16384, in place) is x
// 	%1 (f64 1024, in place) is b
// 	%4 (f64 16384, in place) is output 0
// 	strips of 1024 of 16384 {
// 	  %2 (f64 1024, strip at 0) = broadcast(%1)
// 	  %3 (f64 1024, strip at 8192) = add(%0, %2)
// 	  %4 (f64 16384, in place) = tanh(%3)
// 	}

// describe lists the program as it runs: every instruction with the values it
// makes and where these are. A tile or strip is "f32 1024 at 4096": its
// elements, and its offset in the scratch of a worker.
func (s *schedule) describe(plan kernels.Plan, workers int) string {
	var b strings.Builder
	p := s.block.l.p
	fmt.Fprintf(
		&b, "plan %s: %d tile programs on %d workers, %d bytes of scratch each\n",
		plan, p.Programs(), workers,
		s.block.l.bytes,
	)
	for _, d := range p.Space.Dims {
		size, _ := d.Size.Value()
		tiles, _ := d.Tiles.Value()
		fmt.Fprintf(
			&b, "%s: %s, extent %d in %d tiles of %d, from %s\n",
			d.Name, d.Kind, d.Extent,
			tiles, size, d.From.Name,
		)
	}
	for _, v := range s.block.l.values {
		if v.where == inSplat && v.liveTo == lastPosition {
			fmt.Fprintf(&b, "%s = constant\n", v)
		}
	}
	s.listTo(&b, "")
	return b.String()
}

// listTo writes the instructions of a schedule.
func (s *schedule) listTo(b *strings.Builder, indent string) {
	for _, x := range s.block.binds {
		fmt.Fprintf(b, "%s%s %s\n", indent, x.v, x.text)
	}
	for _, i := range s.items {
		switch {
		case i.rows != nil:
			i.rows.listTo(b, indent)
		case i.loop != nil:
			fmt.Fprintf(
				b, "%s%s {\n",
				indent, i.loop.header(s.block.l),
			)
			i.loop.body.listTo(b, indent+"  ")
			fmt.Fprintf(b, "%s}\n", indent)
		case i.group == nil:
			fmt.Fprintf(b, "%s%s\n", indent, i)
		case len(i.group) == 1:
			fmt.Fprintf(b, "%s%s\n", indent, i.group[0])
		default:
			fmt.Fprintf(
				b, "%sstrips of %d of %d {\n",
				indent,
				min(s.block.l.strip, i.n),
				i.n,
			)
			for _, n := range i.group {
				fmt.Fprintf(b, "%s  %s\n", indent, n)
			}
			fmt.Fprintf(b, "%s}\n", indent)
		}
	}
}

// listTo writes the instructions of a row kernel. Those of one sweep run
// interleaved.
func (n *rowGroup) listTo(b *strings.Builder, indent string) {
	fmt.Fprintf(
		b, "%sfor rows of %d of %d, passes %d {\n",
		indent, n.cols(),
		hlo.Elements(n.extents), n.kernel.Sweeps(),
	)
	for _, i := range n.items {
		list := i.group
		if list == nil {
			list = []*instr{i}
		}
		for _, x := range list {
			fmt.Fprintf(b, "%s  %s\n", indent, x)
		}
	}
	fmt.Fprintf(b, "%s}\n", indent)
}

// header is the extents of a loop, such as "for t2 < 8, t3 < 4", or what it keeps.
func (lp *loop) header(l *lowering) string {
	if lp.kept != nil {
		return "keep " + lp.kept.v.String()
	}
	var names []string
	for k, d := range lp.dims {
		names = append(
			names,
			fmt.Sprintf(
				"%s < %d",
				l.p.Space.Dims[d].Name,
				lp.trips[k],
			),
		)
	}
	return "for " + strings.Join(names, ", ")
}

// String is such as "%4 (f32 512, strip at 2048) = subtract(%0, %3)".
func (i *instr) String() string {
	var made, args []string
	for _, v := range i.outs {
		made = append(made, v.String())
	}
	for _, list := range [][]*value{i.stripArgs, i.tileArgs} {
		for _, v := range list {
			args = append(args, v.name)
		}
	}
	text := fmt.Sprintf(
		"%s(%s)", i.name, strings.Join(args, ", "),
	)
	if len(made) > 0 {
		text = strings.Join(made, ", ") + " = " + text
	}
	return text
}

// String is the name of a value, its class and length, and where it is: its
// offset in the arena, "in place" in an array of the caller, or nothing more in
// registers.
func (v *value) String() string {
	if v.where == inMemory {
		return fmt.Sprintf(
			"%s (%s %d, in place)", v.name, v.class.String(), v.n,
		)
	}
	if v.where == inRegister {
		return v.name
	}
	short := ""
	if v.short != 0 {
		short = fmt.Sprintf(" in %d bytes", v.short)
	}
	return fmt.Sprintf(
		"%s (%s %d%s, %s at %d)",
		v.name, v.class.String(), v.n, short,
		residenceNames[v.where], v.at,
	)
}
