package indexing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// TestFoldedValues compares what run-time variables fold to with integer
// arithmetic that wraps as the types do.
func TestFoldedValues(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 500
	}
	folded := 0
	for seed := range n {
		s := sampler{rand.New(rand.NewPCG(uint64(seed), 5))}
		text := s.indices()
		m, err := hlo.Parse("sample", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		root := m.Entry.Root
		values := integers(m.Entry)
		r := index.NewRing()
		x := &indexer{r: r}
		at := x.variables("d", index.RoleDim, root.Shape.Dims)
		f := newFolder(r, nil)
		e, ok := f.value(root, at)
		if r.Err() != nil {
			t.Fatalf("%v\n%s", r.Err(), text)
		}
		if !ok {
			continue
		}
		folded++
		eachIndex(root.Shape.Dims, func(indices []int64) {
			env := map[index.Expr]int64{}
			for k, d := range at {
				env[d] = indices[k]
			}
			if got, want := e.Eval(env),
				values[root][rowMajorOf(indices, root.Shape.Dims)]; got != want {
				t.Fatalf("element %v is %d, not %d as %s says\n%s", indices, want, got, e, text)
			}
		})
	}
	t.Logf("%d of %d fold", folded, n)
	if folded < n/4 {
		t.Errorf("%d of %d fold", folded, n)
	}
}

// indices writes a random computation on integers that uses no parameter.
func (s sampler) indices() string {
	types := []string{"s8", "u8", "s32", "u32", "s64"}
	dims := s.shape(1 + s.IntN(2))
	for k := range dims {
		dims[k] = max(dims[k], 1) + s.upTo(2)
	}
	d := commas(dims)
	var lines []string
	names, of := []string{}, []string{}
	add := func(dtype, text string, args ...any) {
		names, of = append(names, fmt.Sprintf("v%d", len(lines))), append(of, dtype)
		lines = append(
			lines,
			fmt.Sprintf("v%d = %s[%s] %s", len(lines), dtype, d, fmt.Sprintf(text, args...)),
		)
	}
	dtype := types[s.IntN(len(types))]
	add(dtype, "iota(), iota_dimension=%d", s.IntN(len(dims)))
	for range 2 {
		value := s.upTo(60)
		if dtype[0] == 's' && s.IntN(3) == 0 {
			value = -value
		}
		lines = append(lines, fmt.Sprintf("c%d = %s[] constant(%d)", len(lines), dtype, value))
		add(dtype, "broadcast(c%d), dimensions={}", len(lines)-1)
	}
	ops := []string{"add", "subtract", "multiply", "minimum", "maximum", "divide", "remainder"}
	for range 1 + s.IntN(4) {
		k := s.IntN(len(names))
		x, same := names[k], []string{}
		for j, other := range of {
			if other == of[k] {
				same = append(same, names[j])
			}
		}
		y, z := same[s.IntN(len(same))], same[s.IntN(len(same))]
		switch s.IntN(9) {
		case 0:
			add(types[s.IntN(len(types))], "convert(%s)", x)
		case 1:
			add(of[k], "negate(%s)", x)
		case 2:
			add(of[k], "clamp(%s, %s, %s)", y, x, z)
		case 3:
			lines = append(
				lines,
				fmt.Sprintf(
					"p%d = pred[%s] compare(%s, %s), direction=%s",
					len(lines), d, x, y,
					[]string{"EQ", "NE", "LT", "LE", "GT", "GE"}[s.IntN(6)],
				),
			)
			add(of[k], "select(p%d, %s, %s)", len(lines)-1, y, z)
		case 4:
			add(of[k], "reverse(%s), dimensions={0}", x)
		default:
			add(of[k], "%s(%s, %s)", ops[s.IntN(len(ops))], x, y)
		}
	}
	lines[len(lines)-1] = "ROOT " + lines[len(lines)-1]
	return strings.Join(lines, "\n")
}

// integers evaluates every instruction.
func integers(c *hlo.Computation) map[*hlo.Instr][]int64 {
	all := map[*hlo.Instr][]int64{}
	for _, in := range c.Instrs {
		if in.Op == hlo.OpConstant {
			all[in] = in.Literal.Ints
			continue
		}
		eachIndex(in.Shape.Dims, func(at []int64) {
			var a []int64
			for _, o := range in.Operands {
				from := at
				if in.Op == hlo.OpReverse {
					from = slices.Clone(at)
					from[0] = in.Shape.Dims[0] - 1 - from[0]
				}
				a = append(
					a,
					all[o][rowMajorOf(from[:o.Shape.Rank()], o.Shape.Dims)],
				)
			}
			all[in] = append(all[in], wrapTo(integer(in, at, a), in.Shape.DType))
		})
	}
	return all
}

func integer(in *hlo.Instr, at, a []int64) int64 {
	switch in.Op {
	case hlo.OpIota:
		return at[in.Attrs.IotaDim]
	case hlo.OpBroadcast, hlo.OpConvert, hlo.OpReverse:
		return a[0]
	case hlo.OpAdd:
		return a[0] + a[1]
	case hlo.OpSubtract:
		return a[0] - a[1]
	case hlo.OpMultiply:
		return a[0] * a[1]
	case hlo.OpMinimum:
		return min(a[0], a[1])
	case hlo.OpMaximum:
		return max(a[0], a[1])
	case hlo.OpNegate:
		return -a[0]
	case hlo.OpClamp:
		return min(max(a[0], a[1]), a[2])
	case hlo.OpSelect:
		return a[2-a[0]]
	case hlo.OpDivide:
		if a[1] == 0 {
			return -1
		}
		return a[0] / a[1]
	case hlo.OpRemainder:
		if a[1] == 0 {
			return a[0]
		}
		return a[0] % a[1]
	case hlo.OpCompare:
		holds := map[string]bool{
			"EQ": a[0] == a[1],
			"NE": a[0] != a[1],
			"LT": a[0] < a[1],
			"LE": a[0] <= a[1],
			"GT": a[0] > a[1],
			"GE": a[0] >= a[1],
		}
		if holds[in.Attrs.Direction] {
			return 1
		}
		return 0
	}
	panic(in.Op)
}

// wrapTo keeps the bits that the type has.
func wrapTo(v int64, d hlo.DType) int64 {
	switch d {
	case hlo.S8:
		return int64(int8(v))
	case hlo.U8:
		return int64(uint8(v))
	case hlo.S32:
		return int64(int32(v))
	case hlo.U32:
		return int64(uint32(v))
	}
	return v
}
