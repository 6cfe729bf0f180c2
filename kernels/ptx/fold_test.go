package ptx

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// apply is what the PTX ISA says of an integer operation on bits x, y and z of
// type t, written without the builder's own arithmetic.
func apply(op string, t Type, x, y, z uint64) uint64 {
	n := t.Bits()
	cut := func(v uint64) uint64 { return v << (64 - n) >> (64 - n) }
	sign := func(v uint64) int64 { return int64(v<<(64-n)) >> (64 - n) }
	less := func(a, b uint64) bool {
		if t.Signed() {
			return sign(a) < sign(b)
		}
		return cut(a) < cut(b)
	}
	_, low := bits.Mul64(x, y)
	switch op {
	case "add":
		return cut(x + y)
	case "sub":
		return cut(x - y)
	case "mul.lo":
		return cut(low)
	case "mad.lo":
		return cut(low + z)
	case "and":
		return cut(x & y)
	case "or":
		return cut(x | y)
	case "xor":
		return cut(x ^ y)
	case "shl":
		if y = y & (1<<32 - 1); y >= uint64(n) {
			return 0
		}
		return cut(x << y)
	case "shr":
		y = min(y&(1<<32-1), uint64(n))
		if t.Signed() {
			return cut(uint64(sign(x) >> y))
		}
		return cut(x) >> y
	case "min":
		if less(x, y) {
			return cut(x)
		}
		return cut(y)
	case "max":
		if less(x, y) {
			return cut(y)
		}
		return cut(x)
	case "div", "rem":
		return divide(op, t, sign(x), sign(y), cut(x), cut(y), cut)
	}
	panic(op)
}

func divide(op string, t Type, sx, sy int64, x, y uint64, cut func(uint64) uint64) uint64 {
	switch {
	case y == 0:
		return 0 // not said; the tree is not drawn with it
	case t.Signed() && op == "div":
		return cut(uint64(sx / sy))
	case t.Signed():
		return cut(uint64(sx % sy))
	case op == "div":
		return x / y
	}
	return x % y
}

// machine runs the instructions of a body that has nothing but integer
// arithmetic.
type machine map[Reg]uint64

func (m machine) run(body []Stmt) {
	for i := range body {
		in := &body[i].Instr
		var s [3]uint64
		t := in.Opcode.Type(-1)
		for k := 1; k < len(in.Operands); k++ {
			s[k-1] = m.value(&in.Operands[k])
		}
		name := in.Opcode.Op.String()
		if in.Opcode.Has(ModLo) {
			name += ".lo"
		}
		m[in.Operands[0].Reg] = apply(
			name, t, s[0], s[1], s[2],
		)
	}
}

func (m machine) value(o *Operand) uint64 {
	if o.Kind == KindInt {
		return o.Bits
	}
	return m[o.Reg]
}

// What Let makes of a tree of operations has the value of the tree.
func TestLetKeepsValues(t *testing.T) {
	numbers := rapid.OneOf(
		rapid.SampledFrom([]int64{
			0, 1, -1, 2, 3, 4, 8, 31, 32, 63,
			64, 65, 1 << 31, 1<<32 - 1, -1 << 31,
			-1 << 63,
		}),
		rapid.Int64(),
	)
	rapid.Check(t, func(t *rapid.T) {
		wide := rapid.Bool().Draw(t, "wide")
		types := map[bool][]Type{false: {U32, S32}, true: {U64, S64}}[wide]
		class := map[bool]Type{false: B32, true: B64}[wide]
		c := NewBuilder(Version{8, 0}, Target{90, 'a'}).Entry("k")
		m := machine{}
		var nodes []Operand
		var want []uint64
		for range 3 {
			r := c.fresh(class, true)
			v := uint64(numbers.Draw(t, "input")) <<
				(64 - class.Bits()) >> (64 - class.Bits())
			m[r.Reg] = v
			nodes, want = append(nodes, r), append(want, v)
		}
		inputs := len(nodes)
		pick := func(ty Type) (Operand, uint64) {
			if i := rapid.IntRange(-3, len(nodes)-1).Draw(t, "node"); i >= 0 {
				return nodes[i], want[i]
			}
			n := numbers.Draw(t, "number")
			if !wide {
				n = int64(int32(n))
			}
			return Int(n), uint64(n)
		}
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			op := rapid.SampledFrom([]string{
				"add", "sub", "mul.lo", "mad.lo", "and", "or", "xor",
				"shl", "shr", "min", "max", "div", "rem",
			}).Draw(t, "op")
			ty := rapid.SampledFrom(types).Draw(t, "type")
			x, vx := pick(ty)
			y, vy := pick(ty)
			z, vz := pick(ty)
			name := ty.String()
			switch op {
			case "and", "or", "xor", "shl":
				name = class.String()
			case "div", "rem":
				if apply("or", ty, vy, 0, 0) == 0 {
					continue
				}
			}
			if (op == "shl" || op == "shr") && wide {
				y, vy = Int(int(uint32(vy))), uint64(uint32(vy))
			}
			sources := []Operand{x, y}
			if op == "mad.lo" {
				sources = append(sources, z)
			}
			nodes = append(nodes, c.Let(op+"."+name, sources...))
			want = append(want, apply(op, ty, vx, vy, vz))
		}
		if c.b.err != nil {
			t.Fatal(c.b.err)
		}
		m.run(c.body)
		for i := inputs; i < len(nodes); i++ {
			if got := apply(
				"or", types[0], m.value(&nodes[i]), 0, 0,
			); got != want[i] {
				t.Fatalf("operation %d: %#x, expected %#x\n%v", i-inputs, got, want[i], c.body)
			}
		}
	})
}
