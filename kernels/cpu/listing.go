package cpu

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A listing shows a plan as it runs. For z = tanh(x + broadcast(b)) in f64, with
// tiles of 16 rows of 1024 elements:
//
// 	plan 16,1024: 4 tile programs on 2 workers, 8192 bytes of scratch each
// 	t0: parallel, extent 64 in 4 tiles of 16, from z
// 	t1: parallel, extent 1024 in 1 tiles of 1024, from z
// 	%0 (f64 16384, in place) is x
// 	%1 (f64 1024, in place) is b
// 	%4 (f64 16384, in place) is output 0
// 	strips of 512 of 16384 {
// 	  %2 (f64 512, strip at 0) = broadcast(%1)
// 	  %3 (f64 512, strip at 4096) = add(%0, %2)
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
				b, "%sfor %s {\n",
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

// header is the extents of a loop, such as "t2 < 8, t3 < 4".
func (lp *loop) header(l *lowering) string {
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
	return strings.Join(names, ", ")
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
	return fmt.Sprintf(
		"%s (%s %d, %s at %d)",
		v.name, v.class.String(), v.n,
		residenceNames[v.where], v.at,
	)
}
