package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A tile is a block of a product's result and of k, with its launch.
type tile struct {
	m, n, k int64
	stages  int64
	warps   int64
}

// A timed tile has the seconds that it took; +Inf where it cannot run.
type timed struct {
	tile
	seconds float64
}

// An operand is the type and the strides of a matrix.
type operand struct {
	dtype   string
	strides [2]int64
}

// A shape is a product with the times of its plans.
type shape struct {
	id      string
	m, k, n int64
	a, b    operand
	tf32    bool
	times   []timed
}

// hloTypes are the types of the tables in HLO, and their bytes.
var hloTypes = map[string]struct {
	name  string
	bytes int64
}{
	"float16":  {"f16", 2},
	"bfloat16": {"bf16", 2},
	"float32":  {"f32", 4},
	"int8":     {"s8", 1},
	"uint8":    {"u8", 1},
}

// layout is the layout of a matrix of the operand in HLO: the first dimension is the
// fastest where its stride is 1 and the other's is not.
func (o operand) layout() string {
	s := o.strides
	if s[1] != 1 && s[0] == 1 {
		return "{0,1}"
	}
	return "{1,0}"
}

// hlo is the product as text; operands of different types are converted to the first.
func (s *shape) hlo() string {
	a := hloTypes[s.a.dtype]
	b := hloTypes[s.b.dtype]
	var t strings.Builder
	left := fmt.Sprintf("[%d,%d]", s.m, s.k)
	right := fmt.Sprintf("[%d,%d]", s.k, s.n)
	left += s.a.layout()
	right += s.b.layout()
	fmt.Fprintf(&t, "a = %s%s parameter(0)\n", a.name, left)
	fmt.Fprintf(&t, "b = %s%s parameter(1)\n", b.name, right)
	name := "b"
	if a.name != b.name {
		name = "c"
		fmt.Fprintf(&t, "c = %s%s convert(b)\n", a.name, right)
	}
	result := fmt.Sprintf("%s[%d,%d]", a.name, s.m, s.n)
	fmt.Fprintf(
		&t, "ROOT p = %s dot(a, %s), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
		result, name,
	)
	return t.String()
}

// plan is the text of a tile's plan.
func (s *shape) plan(t tile) string {
	rows := (s.m + t.m - 1) / t.m
	text := fmt.Sprintf(
		"%d,%d,%d group=%d stages=%d warps=%d",
		min(t.m, s.m),
		min(t.n, s.n),
		min(t.k, s.k),
		min(8, rows),
		max(1, t.stages-1),
		t.warps,
	)
	if s.tf32 {
		text += " tf32=1"
	}
	return text
}

// held reports whether the shape is of the half that is held out.
func (s *shape) held() bool {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d %d %d", s.m, s.k, s.n)
	return h.Sum32()>>7%2 == 1
}

// triton reads the shapes of a table of Triton kernels with their times.
func triton(folder, name string) ([]*shape, error) {
	byID := map[string]*shape{}
	var all []*shape
	path := filepath.Join(folder, name)
	err := table(path+"_shapes.tsv.gz", func(r row) {
		s := &shape{
			id: name + "/" + r.text("shape_id"),
			m:  r.whole("m"),
			k:  r.whole("k"),
			n:  r.whole("n"),
			a:  r.operand("mat1"),
			b:  r.operand("mat2"),
		}
		s.tf32 = r.text("using_tf32") == "True"
		all = append(all, s)
		byID[r.text("shape_id")] = s
	})
	if err != nil {
		return nil, err
	}
	return all, table(path+"_times.tsv.gz", func(r row) {
		s := byID[r.text("shape_id")]
		if s == nil {
			return
		}
		x := timed{seconds: r.number("median_ms") / 1e3}
		x.m = r.whole("block_m")
		x.n = r.whole("block_n")
		x.k = r.whole("block_k")
		x.stages = r.whole("stages")
		x.warps = r.whole("warps")
		s.times = append(s.times, x)
	})
}

// A row is a line of a table, by the names of its columns.
type row struct {
	columns map[string]int
	fields  []string
}

// text is a field; "" where there is no such column.
func (r row) text(name string) string {
	if k, ok := r.columns[name]; ok {
		return r.fields[k]
	}
	return ""
}

// whole is a field that is a whole number; 0 if it is none.
func (r row) whole(name string) int64 {
	v, _ := strconv.ParseInt(r.text(name), 10, 64)
	return v
}

// operand is a matrix by the prefix of its columns.
func (r row) operand(prefix string) operand {
	return operand{
		dtype: r.text(prefix + "_dtype"),
		strides: [2]int64{
			r.whole(prefix + "_stride_0"),
			r.whole(prefix + "_stride_1"),
		},
	}
}

// number is a field that is a number; +Inf if it is none.
func (r row) number(name string) float64 {
	v, err := strconv.ParseFloat(r.text(name), 64)
	if err != nil {
		return math.Inf(1)
	}
	return v
}

// table reads a compressed table with tabs between its columns.
func table(file string, each func(row)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	rows := csv.NewReader(z)
	rows.Comma = '\t'
	columns := map[string]int{}
	for n := 0; ; n++ {
		fields, err := rows.Read()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		case n == 0:
			for k, name := range fields {
				columns[name] = k
			}
		default:
			each(row{columns, fields})
		}
	}
}
