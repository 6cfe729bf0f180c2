package gemm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// TestQuadKernels emulates the kernels of quads of bytes, those of AVX-VNNI decoded from
// their bytes, on every platform, with memory that ends where the operands do.
func TestQuadKernels(t *testing.T) {
	all := listings(t)
	r := rand.New(rand.NewPCG(13, 14))
	for _, family := range []struct {
		name  string
		lanes int
	}{
		{"QuadsUS", 16},
		{"QuadsSU", 16},
		{"QuadsUSNarrow", 8},
		{"QuadsSUNarrow", 8},
	} {
		x := quadEmulation{
			lanes: family.lanes,
			r:     r,
		}
		for x.rows = 1; x.rows <= 6; x.rows++ {
			full := fmt.Sprintf("multiply%sRows%d", family.name, x.rows)
			masked := fmt.Sprintf("multiply%sMaskedRows%d", family.name, x.rows)
			for k := range 10 {
				x.code = all[full]
				x.run(t, full, 2*x.lanes, k)
				x.code = all[masked]
				for n := 1; n <= x.lanes; n++ {
					x.run(t, masked, n, k)
				}
			}
		}
	}
}

// A quadEmulation is a kernel that is emulated.
type quadEmulation struct {
	code        *listing
	rows, lanes int
	r           *rand.Rand
}

// run emulates the kernel for n columns and k quads.
func (x *quadEmulation) run(t *testing.T, name string, n, k int) {
	t.Helper()
	r, lanes := x.r, x.lanes
	if x.code == nil {
		t.Fatalf("%s is not there", name)
	}
	blocks, how := 1+k%2, k/2%2
	m := x.rows * blocks
	terms := max(k, 1)
	a := Dense(randomQuads(m*terms, r), terms)
	if k%3 == 0 { // rows of a that are contiguous
		a.Row, a.Col = 1, m
	}
	b := random[int32](layouts[2], terms, n, r)
	copy(raw(b.Data), randomBytes(r, 4*len(b.Data)))
	c := random[int32](layouts[2], m, n, r)
	start := randomQuads(max(n, lanes), r)
	var vm machine
	at := vm.place(raw(c.Data))
	vm.args = map[string]uint64{
		"blocks": uint64(blocks),
		"k":      uint64(k),
		"a":      vm.place(raw(a.Data)),
		"ars":    uint64(4 * a.Row),
		"acs":    uint64(4 * a.Col),
		"b":      vm.place(raw(b.Data)),
		"brs":    uint64(4 * b.Row),
		"start":  vm.place(raw(start)),
		"c":      at,
		"crs":    uint64(4 * c.Row),
		"mask":   vm.place(emulatedMask(n, lanes, 4, lanes == 16)),
		"ahead":  0,
		"step":   64,
		"how":    uint64(how),
	}
	want := bytes.Clone(vm.mem)
	if err := vm.run(x.code); err != nil {
		t.Fatalf("%s, %d columns, %d quads: %v", name, n, k, err)
	}
	view := func(x Matrix[int32]) byteView {
		return byteView{
			unsafe.Pointer(&x.Data[0]),
			4 * x.Row,
			4 * x.Col,
		}
	}
	plain := plainQuads{
		c:      view(c),
		a:      view(a),
		b:      view(b),
		start:  start,
		signed: strings.Contains(name, "SU"),
	}
	plain.multiply(m, n, k, how)
	copy(want[at:], raw(c.Data))
	if !bytes.Equal(want, vm.mem) {
		t.Fatalf("%s, %d columns, %d quads: a wrong result", name, n, k)
	}
}

// byteView is a byteMatrix, which only amd64 has.
type byteView struct {
	p        unsafe.Pointer
	row, col int
}

// at is byte q of an element.
func (x byteView) at(i, j, q int) unsafe.Pointer {
	return unsafe.Add(x.p, i*x.row+j*x.col+q)
}

// randomQuads is n quads of bytes, many of them the least or the greatest.
func randomQuads(n int, r *rand.Rand) []int32 {
	x := make([]int32, n)
	copy(raw(x), randomBytes(r, 4*n))
	return x
}

// plainQuads is what a kernel has to do, element by element.
type plainQuads struct {
	c, a, b byteView
	start   []int32
	signed  bool // a, which has the other sign than b
}

func (x plainQuads) multiply(m, n, k, how int) {
	for i := range m {
		for j := range n {
			to := (*int32)(x.c.at(i, j, 0))
			sum := x.start[j]
			if how&1 == 0 {
				sum += *to
			}
			for p := range k {
				for q := range 4 {
					sum += x.product(i, j, p, q)
				}
			}
			*to = sum
		}
	}
}

// product is that of term q of quad p of row i and column j.
func (x plainQuads) product(i, j, p, q int) int32 {
	a := *(*byte)(x.a.at(i, p, q))
	b := *(*byte)(x.b.at(p, j, q))
	if x.signed {
		return int32(int8(a)) * int32(b)
	}
	return int32(a) * int32(int8(b))
}
