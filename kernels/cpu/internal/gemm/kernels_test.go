package gemm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// TestEveryKernel emulates every multiplication of kernels_amd64.s, on every
// platform, with memory that ends where the matrices do: those for 512 bits run
// on few CPUs.
func TestEveryKernel(t *testing.T) {
	all := listings(t)
	emulateFamily(t, all, "F32", 8, false, plainlyFused[float32])
	emulateFamily(t, all, "F64", 4, false, plainlyFused[float64])
	emulateFamily(t, all, "I32", 8, false, plainlyFused[int32])
	emulateFamily(t, all, "I16", 8, false, plainlyPaired)
	emulateFamily(t, all, "F32Wide", 16, true, plainlyFused[float32])
	emulateFamily(t, all, "F64Wide", 8, true, plainlyFused[float64])
	emulateFamily(t, all, "I32Wide", 16, true, plainlyFused[int32])
	emulateFamily(t, all, "I16Wide", 16, true, plainlyPaired)
	emulateFamily(t, all, "I16VNNI", 16, true, plainlyPaired)
}

// plainlyPaired multiplies matrices of pairs of 16 bits.
func plainlyPaired(c, a, b Matrix[int32], m, n, k int) {
	for i := range m {
		for j := range n {
			for p := range k {
				x := a.Data[i*a.Row+p*a.Col]
				y := b.Data[p*b.Row+j*b.Col]
				c.Data[i*c.Row+j] += int32(int16(x))*int32(int16(y)) +
					x>>16*(y>>16)
			}
		}
	}
}

func emulateFamily[T Element](
	t *testing.T, all map[string]*listing, name string, lanes int,
	wide bool,
	multiply func(c, a, b Matrix[T], m, n, k int),
) {
	r := rand.New(rand.NewPCG(9, 9))
	for rows := 1; rows <= 6; rows++ {
		pair := fmt.Sprintf("multiply%sPairRows%d", name, rows)
		for k := 0; all[pair] != nil && k < 40; k++ {
			emulateKernel(
				t, pair, all[pair], rows, 4*lanes, k,
				lanes, k%4, wide, r, multiply,
			)
		}
		fill := fmt.Sprintf("multiply%sFillRows%d", name, rows)
		for k := 0; all[fill] != nil && k < 10; k++ {
			emulateKernel(
				t, fill, all[fill], rows, 2*lanes, k,
				lanes, k%4, wide, r, multiply,
			)
		}
		for k := range 10 {
			full := fmt.Sprintf("multiply%sRows%d", name, rows)
			emulateKernel(
				t, full, all[full], rows, 2*lanes, k,
				lanes, k%4, wide, r, multiply,
			)
			for n := 1; n <= lanes; n++ {
				masked := fmt.Sprintf("multiply%sMaskedRows%d", name, rows)
				emulateKernel(t, masked, all[masked], rows, n, k, lanes, k%2, wide, r, multiply)
			}
		}
	}
}

func emulateKernel[T Element](
	t *testing.T, name string, l *listing,
	m, n, k, lanes, how int, wide bool, r *rand.Rand,
	multiply func(c, a, b Matrix[T], m, n, k int),
) {
	t.Helper()
	if l == nil {
		t.Fatalf("%s is not there", name)
	}
	blocks := 1 + k%2
	m *= blocks
	a := random[T](layouts[r.IntN(4)], m, max(k, 1), r)
	b := random[T](layouts[2], max(k, 1), n, r)
	isPair := n > 2*lanes
	if isPair { // rows of contiguous terms, and panels of b that are apart
		a = random[T](layouts[2], m, max(k, 1), r)
	}
	c := random[T](layouts[2], m, n, r)
	size := int(unsafe.Sizeof(c.Data[0]))
	var vm machine
	at := vm.place(raw(c.Data))
	vm.args = map[string]uint64{
		"blocks": uint64(blocks), "k": uint64(k),
		"a": vm.place(raw(a.Data)),
		"b": vm.place(raw(b.Data)), "c": at,
		"mask": vm.place(emulatedMask(n, lanes, size, wide)),
		"ars":  uint64(a.Row * size), "acs": uint64(a.Col * size),
		"brs": uint64(b.Row * size), "crs": uint64(c.Row * size),
		"ahead": 0, "step": 64, "how": uint64(how),
	}
	if isPair {
		panels := twoPanels(b, max(k, 1), 2*lanes)
		vm.args["b"] = vm.place(raw(panels))
		vm.args["brs"] = uint64(2 * lanes * size)
		vm.args["apart"] = uint64(len(panels) / 2 * size)
	}
	filled := strings.Contains(name, "Fill")
	if filled { // the panel is where kernels of whole panels have no mask
		vm.args["mask"] = vm.place(make([]byte, k*n*size))
	}
	want := bytes.Clone(vm.mem)
	if err := vm.run(l); err != nil {
		t.Fatalf("%s, %d columns, %d terms: %v", name, n, k, err)
	}
	if how&1 != 0 {
		for i := range m {
			clear(c.Data[i*c.Row:][:n])
		}
	}
	multiply(c, a, b, m, n, k)
	copy(want[at:], raw(c.Data))
	for p := 0; filled && p < k; p++ {
		to := want[vm.args["mask"]:][p*n*size:]
		copy(to, raw(b.Data[p*b.Row:][:n]))
	}
	if !bytes.Equal(want, vm.mem) {
		t.Fatalf("%s, %d columns, %d terms: a wrong result", name, n, k)
	}
}

// twoPanels is the rows of b as two panels of some columns, one behind the other.
func twoPanels[T Element](b Matrix[T], k, columns int) (panels []T) {
	for at := 0; at < 2*columns; at += columns {
		for p := range k {
			panels = append(panels, b.Data[p*b.Row+at:][:columns]...)
		}
	}
	return panels
}

func raw[T Element](x []T) []byte {
	return unsafe.Slice(
		(*byte)(unsafe.Pointer(unsafe.SliceData(x))),
		len(x)*int(unsafe.Sizeof(x[0])),
	)
}

func emulatedMask(n, lanes, size int, wide bool) []byte {
	mask := make([]byte, 32)
	if wide {
		bits := 1<<min(n, lanes) - 1
		mask[0], mask[1] = byte(bits), byte(bits>>8)
		return mask
	}
	for k := range min(n, lanes) * size {
		mask[k] = 0xff
	}
	return mask
}
