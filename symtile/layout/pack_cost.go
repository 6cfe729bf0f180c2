package layout

import (
	"fmt"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Memory is the memory that accesses are charged for. The zero value is a usual
// CPU core with its first-level cache.
type Memory struct {
	// Line is the bytes of a cache line; 0 is 64.
	Line int64
	// Page is the bytes of a page; 0 is 4096.
	Page int64
	// Cache is the bytes of the cache that holds a block; 0 is 32768.
	Cache int64
	// Ways is the lines of a set; 0 is 8.
	Ways int64
	// TLB is the pages whose addresses are cached; 0 is 1024, a second-level
	// TLB.
	TLB int64
	// Walk and Refetch are the bytes of main memory that a page walk, and
	// fetching a line again from the next cache, cost as much as; 0 is 64, the
	// line of the page's entry, and 8, as BenchmarkPacking measures it on an
	// EPYC.
	Walk, Refetch int64
}

// withDefaults replaces zero fields by what they stand for.
func (m Memory) withDefaults() Memory {
	or := func(x *int64, d int64) {
		if *x == 0 {
			*x = d
		}
	}
	or(&m.Line, 64)
	or(&m.Page, 4096)
	or(&m.Cache, 32768)
	or(&m.Ways, 8)
	or(&m.TLB, 1024)
	or(&m.Walk, 64)
	or(&m.Refetch, 8)
	return m
}

// check reports a field that is out of bounds.
func (m Memory) check() error {
	for _, x := range []struct {
		name string
		v    int64
	}{
		{"line", m.Line}, {"page", m.Page},
		{"cache", m.Cache}, {"ways", m.Ways},
		{"TLB", m.TLB}, {"walk", m.Walk},
		{"refetch", m.Refetch},
	} {
		if x.v < 1 || x.v > 1<<31 {
			return fmt.Errorf("the memory's %s of %d is not between 1 and 2^31", x.name, x.v)
		}
	}
	if m.sets() < 1 || m.sets() > 1<<20 {
		return fmt.Errorf(
			"a cache of %d bytes has %d sets of %d lines of %d bytes; that is not between 1 and 2^20",
			m.Cache, m.sets(),
			m.Ways, m.Line,
		)
	}
	return nil
}

// sets is the number of sets of the cache.
func (m Memory) sets() int64 {
	return m.Cache / (m.Line * m.Ways)
}

// A Dot is C[m,n] = Σ A[m,k]·B[k,n] over row-major operands, block by block:
// block (i,j) of C reads a block of A and of B for each block of k.
type Dot struct {
	M, N, K int64
	// DType is the element type of the operands.
	DType hlo.DType
	// BlockM, BlockN and BlockK are the sizes of a block; 0 is 64, or the
	// extent if that is less.
	BlockM, BlockN, BlockK int64
	// Rows is the number of rows or columns of the other operand that stay in
	// registers: a block is swept once for each so many. 0 is 4.
	Rows int64
}

// An Operand is a row-major matrix that is read in blocks.
type Operand struct {
	// Name is what messages call it, "A".
	Name string
	// Rows and Cols are those of the matrix.
	Rows, Cols           int64
	BlockRows, BlockCols int64
	ElementBytes         int64
	// Visits is how often each block is brought into the cache; 0 computes the
	// cost of one visit, and from how many on packing pays.
	Visits int64
	// Sweeps is how often a block is read while it is in the cache; 0 is 1.
	Sweeps int64
}

// A footprint is what reading one block touches.
type footprint struct {
	Lines, Pages int64
	// Evicted is the lines beyond the ways of their set: evicted before the
	// next sweep.
	Evicted int64
}

// A PackCost weighs packing the blocks of an operand, each into consecutive
// memory, against reading them in place. Amounts are bytes, of all visits
// together, or what costs as much as moving so many.
type PackCost struct {
	Operand Operand
	// Packing is what the copy moves: all of the matrix read once, all of the
	// packed one written, which reads each line before (write allocation), and
	// the page walks of both.
	Packing int64
	// Waste is what reading in place moves beyond the elements, PackedWaste
	// what reading the packed blocks does.
	Waste, PackedWaste Waste
	// Sets is the number of cache sets that the first columns of a block's rows
	// map to, of AllSets.
	Sets, AllSets int64
	// BreakEven is the number of visits from which packing pays; 0: never.
	BreakEven int64
	Pays      bool
	// Why explains the result in words.
	Why string
}

// Waste is bytes moved beyond the elements themselves, or what costs as much.
type Waste struct {
	// Lines is the parts of lines that hold no element of the block.
	Lines int64
	// Pages is the page walks.
	Pages int64
	// Conflicts is the lines fetched again because their set was full, each
	// Memory.Refetch.
	Conflicts int64
}

// Total is all of the waste.
func (w Waste) Total() int64 { return w.Lines + w.Pages + w.Conflicts }

// times is the waste of n visits.
func (w Waste) times(n int64) Waste {
	return Waste{
		w.Lines * n, w.Pages * n, w.Conflicts * n,
	}
}

// plus is the sum of two wastes.
func (w Waste) plus(v Waste) Waste {
	return Waste{
		w.Lines + v.Lines,
		w.Pages + v.Pages,
		w.Conflicts + v.Conflicts,
	}
}

// Operands are A, of which each block is visited for every block of columns of
// C, and B, for every block of rows.
func (d Dot) Operands() (a, b Operand) {
	or := func(x, def int64) int64 {
		if x == 0 {
			return def
		}
		return x
	}
	bm := or(d.BlockM, min(64, d.M))
	bn := or(d.BlockN, min(64, d.N))
	bk := or(d.BlockK, min(64, d.K))
	rows := or(d.Rows, 4)
	size := d.DType.Size()
	times := func(x, y int64) int64 {
		return index.CeilDiv(max(x, 0), max(y, 1))
	}
	a = Operand{
		"A", d.M, d.K, bm, bk,
		size, times(d.N, bn),
		times(min(bn, d.N), rows),
	}
	b = Operand{
		"B", d.K, d.N, bk, bn,
		size, times(d.M, bm),
		times(min(bm, d.M), rows),
	}
	return a, b
}

// Bounds of the evaluation: maxBlocks of the blocks of a matrix, maxTouches of
// their rows and lines.
const (
	maxBlocks  = 1 << 20
	maxTouches = 1 << 27
)

// check reports a field that is out of bounds.
func (o Operand) check(m Memory) error {
	for _, x := range []struct {
		name string
		v    int64
	}{
		{"rows", o.Rows}, {"columns", o.Cols},
		{"rows in a block", o.BlockRows}, {"columns in a block", o.BlockCols},
		{"bytes in an element", o.ElementBytes}, {"sweeps", o.Sweeps},
		{"visits", o.Visits},
	} {
		if x.v < 1 || x.v > 1<<24 {
			return fmt.Errorf(
				"%s has %d %s; that is not between 1 and 2^24", o.Name, x.v, x.name,
			)
		}
	}
	n := index.CeilDiv(o.Rows, o.BlockRows) *
		index.CeilDiv(o.Cols, o.BlockCols)
	if n > maxBlocks {
		return fmt.Errorf(
			"%s has %d blocks of %dx%d, more than the %d that are looked at: take larger ones",
			o.Name, n, o.BlockRows, o.BlockCols, maxBlocks,
		)
	}
	worst := float64(o.Rows) * float64(o.Cols) *
		float64(o.ElementBytes+m.Line+m.Walk+m.Refetch) *
		float64(o.Sweeps) * float64(o.Visits)
	if worst > 1<<61 {
		return fmt.Errorf("%s may waste more than 2^61 bytes: too much to add up", o.Name)
	}
	return nil
}

// PackCost counts the lines, pages and full sets of every block, in place and
// packed, and computes whether packing pays.
func (o Operand) PackCost(m Memory) (PackCost, error) {
	m = m.withDefaults()
	anyVisits := o.Visits == 0
	o.Visits = max(o.Visits, 1)
	o.Sweeps = max(o.Sweeps, 1)
	if err := m.check(); err != nil {
		return PackCost{}, err
	}
	if err := o.check(m); err != nil {
		return PackCost{}, err
	}
	j := PackCost{Operand: o, AllSets: m.sets()}
	inPlace, packed, err := o.visit(m)
	if err != nil {
		return j, err
	}
	size := o.Rows * o.Cols * o.ElementBytes
	whole := index.CeilDiv(o.Rows, o.BlockRows) *
		o.BlockRows *
		index.CeilDiv(o.Cols, o.BlockCols) *
		o.BlockCols * o.ElementBytes
	j.Packing = size + 2*whole + (index.CeilDiv(size, m.Page)+
		index.CeilDiv(whole, m.Page))*m.Walk
	if saved := inPlace.Total() - packed.Total(); saved > 0 {
		j.BreakEven = j.Packing/saved + 1
	}
	j.Waste = inPlace.times(o.Visits)
	j.PackedWaste = packed.times(o.Visits)
	j.Pays = j.BreakEven > 0 && o.Visits >= j.BreakEven
	j.Sets = o.rowSets(m)
	j.Why = j.why(m, anyVisits)
	return j, nil
}

// visit is the waste of one visit to each block, in place and packed. Blocks
// that start at the same offset within a page and the sets have equal
// footprints.
func (o Operand) visit(m Memory) (inPlace, packed Waste, err error) {
	type class struct{ base, rows, cols int64 }
	wasteOf := map[class]Waste{}
	period := index.LCM(m.sets()*m.Line, m.Page)
	blockBytes := o.BlockRows * o.BlockCols * o.ElementBytes
	at := int64(0)
	touched := int64(0)
	for i := int64(0); i < o.Rows; i += o.BlockRows {
		for c := int64(0); c < o.Cols; c += o.BlockCols {
			rows := min(o.BlockRows, o.Rows-i)
			cols := min(o.BlockCols, o.Cols-c)
			k := class{
				(i*o.Cols + c) * o.ElementBytes % period,
				rows, cols,
			}
			w, ok := wasteOf[k]
			if !ok {
				if touched += rows * (1 + cols*o.ElementBytes/m.Line); touched > maxTouches {
					return w, w, fmt.Errorf(
						"%s in blocks of %dx%d has more than %d places to look at",
						o.Name, o.BlockRows, o.BlockCols, maxTouches,
					)
				}
				w = o.waste(
					m,
					o.stridedFootprint(
						m, k.base, rows,
						cols*o.ElementBytes, o.Cols*o.ElementBytes,
					),
					rows*cols,
				)
				wasteOf[k] = w
			}
			inPlace = inPlace.plus(w)
			packed = packed.plus(o.waste(
				m, m.contiguousFootprint(at, blockBytes), rows*cols,
			))
			at += blockBytes
		}
	}
	return inPlace, packed, nil
}

// waste charges what a footprint moves beyond the elements.
func (o Operand) waste(m Memory, t footprint, elements int64) Waste {
	walks := t.Pages
	if t.Pages > m.TLB {
		walks *= o.Sweeps
	}
	return Waste{
		Lines:     t.Lines*m.Line - elements*o.ElementBytes,
		Pages:     walks * m.Walk,
		Conflicts: t.Evicted * (o.Sweeps - 1) * m.Refetch,
	}
}

// stridedFootprint counts the distinct lines and pages of rows of rowBytes,
// stride bytes apart, the first at base, and the lines that are too many for
// their sets.
func (o Operand) stridedFootprint(m Memory, base, rows, rowBytes, stride int64) (t footprint) {
	inSet := make(map[int64]int64, min(m.sets(), rows))
	lastLine := int64(-1)
	lastPage := int64(-1)
	for i := range rows {
		from := base + i*stride
		to := from + rowBytes - 1
		for line := max(from/m.Line, lastLine+1); line <= to/m.Line; line++ {
			t.Lines++
			if inSet[line%m.sets()]++; inSet[line%m.sets()] > m.Ways {
				t.Evicted++
			}
		}
		t.Pages += max(
			0,
			to/m.Page-max(from/m.Page, lastPage+1)+1,
		)
		lastLine = to / m.Line
		lastPage = to / m.Page
	}
	return t
}

// contiguousFootprint is the footprint of consecutive bytes.
func (m Memory) contiguousFootprint(base, n int64) footprint {
	t := footprint{
		Lines: (base+n-1)/m.Line - base/m.Line + 1,
		Pages: (base+n-1)/m.Page - base/m.Page + 1,
	}
	t.Evicted = max(0, t.Lines-m.sets()*m.Ways)
	return t
}

// rowSets is the number of sets that the rows of a block start in.
func (o Operand) rowSets(m Memory) int64 {
	sets := map[int64]bool{}
	for i := range min(o.BlockRows, o.Rows) {
		sets[i*o.Cols*o.ElementBytes/m.Line%m.sets()] = true
	}
	return int64(len(sets))
}

// why explains the result in words, with the numbers that it rests on.
func (j *PackCost) why(m Memory, anyVisits bool) string {
	o := j.Operand
	perVisit := j.Waste.Total() /
		j.Operand.Visits
	var b strings.Builder
	switch {
	case j.BreakEven == 0:
		fmt.Fprintf(&b, "does not pay, however often blocks are read: in place %s are wasted a visit, packed no less.", BytesText(perVisit))
	case anyVisits:
		fmt.Fprintf(
			&b, "pays from %s on: it moves %s once, and a visit to every block wastes %s in place, %s packed.",
			CountText(j.BreakEven, "visit"), BytesText(j.Packing),
			BytesText(perVisit),
			BytesText(j.PackedWaste.Total()/o.Visits),
		)
	default:
		verdict := "does not pay"
		if j.Pays {
			verdict = "pays"
		}
		fmt.Fprintf(
			&b, "%s: it moves %s once; the waste of %s is %s in place, %s packed. It pays from %s on.", verdict,
			BytesText(j.Packing), CountText(o.Visits, "visit"),
			BytesText(j.Waste.Total()),
			BytesText(j.PackedWaste.Total()),
			CountText(j.BreakEven, "visit"),
		)
	}
	b.WriteString(" " + j.cause(m))
	return b.String()
}

// cause explains the largest part of the waste.
func (j *PackCost) cause(m Memory) string {
	o, w := j.Operand, j.Waste
	stride := o.Cols * o.ElementBytes
	row := min(o.BlockCols, o.Cols) * o.ElementBytes
	switch {
	case w.Conflicts > 0 &&
		w.Conflicts >= w.Lines &&
		w.Conflicts >= w.Pages:
		return fmt.Sprintf(
			"Most of it is conflicts: rows %s apart start in %d of %d sets of %d lines, so a block of %s does not stay in a cache of %s.",
			BytesText(stride), j.Sets, j.AllSets,
			m.Ways,
			BytesText(row*min(o.BlockRows, o.Rows)),
			BytesText(m.Cache),
		)
	case w.Pages > w.Lines:
		return fmt.Sprintf(
			"Most of it is page walks: a block has %s, %s apart, on pages of %s, and %d addresses are remembered.",
			CountText(min(o.BlockRows, o.Rows), "row"),
			BytesText(stride), BytesText(m.Page), m.TLB,
		)
	case w.Lines > 0:
		return fmt.Sprintf("Most of it is parts of lines: %s of a row are used, in lines of %d bytes.", BytesText(row), m.Line)
	}
	return "The rows of a block fill their lines, its pages are remembered and no set is full."
}
