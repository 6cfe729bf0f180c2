package symtile

import (
	"fmt"
	"strings"
)

// Concrete says whether the sizes are known.
func (p *Program) Concrete() bool {
	for _, d := range p.Space.Dims {
		if _, ok := d.Size.Value(); !ok {
			return false
		}
	}
	return true
}

// Tiling is the sizes of a concrete program.
func (p *Program) Tiling() Tiling {
	t := make(Tiling, len(p.Space.Dims))
	for k, d := range p.Space.Dims {
		t[k] = mustValue(d.Size)
	}
	return t
}

// Grid is the number of tiles along each parallel dimension of a concrete
// program; tile programs are numbered with the last fastest.
func (p *Program) Grid() []int64 {
	var grid []int64
	for _, d := range p.Space.Dims {
		if d.Kind == Parallel {
			grid = append(grid, mustValue(d.Tiles))
		}
	}
	return grid
}

// Programs is the number of tile programs of a concrete program.
func (p *Program) Programs() int64 {
	n := int64(1)
	for _, g := range p.Grid() {
		n *= g
	}
	return n
}

// Trips is the number of iterations of a loop of a concrete program.
func (p *Program) Trips(l *Loop) int64 {
	n := int64(1)
	for _, d := range l.Dims {
		n *= mustValue(p.Space.Dims[d].Tiles)
	}
	return n
}

// String lists the space, then every step with its tile, loops indented.
func (p *Program) String() string {
	var b strings.Builder
	for _, d := range p.Space.Dims {
		fmt.Fprintf(
			&b, "%s: %s, extent %d, size %s",
			d.Name, d.Kind, d.Extent, d.Size,
		)
		if tiles, ok := d.Tiles.Value(); ok {
			fmt.Fprintf(&b, ", tiles %d", tiles)
		}
		fmt.Fprintf(&b, ", from %s\n", d.From.Name)
	}
	if len(p.Space.Where) > 0 {
		fmt.Fprintf(&b, "where %s\n", p.Space.Where)
	}
	if len(p.Space.Boxes) > 0 {
		fmt.Fprintf(&b, "boxes where %s\n", p.Space.Boxes)
	}
	for _, r := range p.Runtime {
		in := r.Var.Range()
		fmt.Fprintf(
			&b, "%s: %%%d at run time, clamped to [%d, %d]\n",
			r.Var, r.Op, in.Lo, in.Hi,
		)
	}
	p.writeSteps(&b, p.Body, "")
	for _, r := range p.Roots {
		fmt.Fprintf(&b, "store output %d from %%%d", r.Output, r.Op)
		for k, d := range r.Once {
			fmt.Fprintf(
				&b, "%s%s = 0",
				[2]string{" when ", " and "}[min(k, 1)],
				p.Space.Dims[d].Name,
			)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (p *Program) writeSteps(b *strings.Builder, steps []Step, indent string) {
	for _, s := range steps {
		if s.Loop == nil {
			p.writeOp(b, s.Op, indent)
			continue
		}
		names := make([]string, len(s.Loop.Dims))
		for k, d := range s.Loop.Dims {
			names[k] = p.Space.Dims[d].Name
		}
		fmt.Fprintf(
			b, "%sfor %s {\n", indent, strings.Join(names, ", "),
		)
		p.writeBody(b, s.Loop, indent+"  ")
		fmt.Fprintf(b, "%s}\n", indent)
	}
}

// writeBody lists a loop's body and closers; of an online loop the closer that
// iterations read where they do.
func (p *Program) writeBody(b *strings.Builder, l *Loop, indent string) {
	body, closers := l.Body, l.Accumulators
	if o := l.Online; o != nil {
		p.writeSteps(b, body[:o.Prefix], indent)
		p.writeOp(b, o.Statistic, indent)
		body = body[o.Prefix:]
		closers = closers[1:]
		for _, s := range o.Rescaled {
			fmt.Fprintf(
				b, "%s%%%d scaled by exp(-%%%d) along dimensions %v\n",
				indent, s.Op, o.Statistic, s.Dims,
			)
		}
		if o.Deviation >= 0 {
			fmt.Fprintf(
				b, "%s%%%d near its mean, %%%d less that, %%%v of squares\n",
				indent, o.Statistic, o.Deviation, o.SquaredDeviations,
			)
		}
	}
	p.writeSteps(b, body, indent)
	for _, c := range closers {
		p.writeOp(b, c, indent)
	}
}

func (p *Program) writeOp(b *strings.Builder, n int, indent string) {
	op := p.Ops[n]
	args := make([]string, len(op.Args))
	for k, a := range op.Args {
		args[k] = fmt.Sprintf("%%%d", a)
	}
	fmt.Fprintf(
		b, "%s%%%d = %s %s(%s) %s\n",
		indent, n, op.Instr.Name, op.Code,
		strings.Join(args, ", "), op.Tile,
	)
}
