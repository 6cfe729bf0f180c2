package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"golang.org/x/sys/unix"
)

// moveTypes are element types of every width, held in scratch as they are and not.
var moveTypes = []string{
	"f32", "f64", "bf16", "f16", "s8", "u8", "s16", "s32", "u32", "s64", "pred", "f8e4m3fn",
}

var moveExtents = []int64{
	1, 2, 3, 7, 8, 9, 15, 16,
	17, 24, 31, 33, 64, 67, 130,
}

// randomMoves makes a program of operations that move elements, sometimes with
// arithmetic before or after.
func randomMoves(rng *rand.Rand) string {
	c := &chain{rng: rng}
	for range 1 + rng.IntN(3) {
		d := moveExtents[rng.IntN(len(moveExtents))]
		if product64(c.dims)*d <= 1<<13 {
			c.dims = append(c.dims, d)
		}
	}
	layout := ""
	if len(c.dims) > 1 && rng.IntN(3) == 0 {
		layout = "{" + list(rng.Perm(len(c.dims))) + "}"
	}
	fmt.Fprintf(&c.text, "v0 = %s%s parameter(0)\nzero = f32[] constant(0)\npadding = f32[] constant(1)\n", shapeText(c.dims), layout)
	steps := []func(*chain){
		(*chain).reshape, (*chain).transpose, (*chain).transpose,
		(*chain).slice, (*chain).reverse, (*chain).pad,
		(*chain).concatenate, (*chain).broadcast, (*chain).dynamicSlice,
		(*chain).dynamicUpdate, (*chain).gather,
	}
	kind, ops := moveTypes[rng.IntN(len(moveTypes))], 1+rng.IntN(3)
	arithmetic := -1
	if kind == "f32" || kind == "f64" || kind == "bf16" {
		arithmetic = rng.IntN(2*ops+1) - 1
	}
	for k := range ops {
		if k == arithmetic {
			c.add(c.dims, "negate(%%s)")
		}
		if n := product64(c.dims); n < 1<<14 {
			steps[rng.IntN(len(steps))](c)
		}
	}
	if arithmetic == ops || c.n == 0 {
		c.add(c.dims, "copy(%%s)")
	}
	return strings.ReplaceAll(c.text.String(), "f32[", kind+"[")
}

// TestMovesEndAtPage holds moves of all types, alignments and remainders against
// the reference, and runs them on arrays that end where a page does.
func TestMovesEndAtPage(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	programs := 400
	if testing.Short() {
		programs = 100
	}
	moved := 0
	for range programs {
		text := randomMoves(rng)
		m, err := hlo.Parse("moves", []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		if err != nil {
			continue // not every chain has tiles
		}
		moved += checkMoves(t, rng, p)
		if t.Failed() {
			t.Fatalf("in\n%s", text)
		}
	}
	if moved < programs {
		t.Errorf("%d plans of %d programs moved", moved, programs)
	}
}

// Transposes of several blocks each way, whole and not, by every tile.
func TestTransposeBlocks(t *testing.T) {
	for _, shape := range []string{"f32[300,530]", "f32[257,1030]", "f64[140,523]", "bf16[520,517]", "s8[1030,531]", "f32[2,140,3,270]", "s16[3,600,33]", "f32[208,1056]", "f64[35,650]", "s8[2000,1027]", "bf16[330,784]",
		"f32[512,275]", "bf16[1024,333]", "s8[2048,150]", "f64[256,77]", "f32[2,256,3,70]"} {
		m, err := hlo.Parse(shape, []byte(transposeOf(shape)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		if err != nil {
			t.Fatal(err)
		}
		if checkMoves(t, rand.New(rand.NewPCG(1, 1)), p) == 0 {
			t.Errorf("%s: nothing moved", shape)
		}
	}
}

// Transposes to rows that several dimensions make, of which the last is short, in panels of scratch
// with whole and with other numbers of rows and pieces, by every tile.
func TestTransposePanels(t *testing.T) {
	for _, c := range []struct{ from, to, order string }{
		{"T[16,32,8,4,16]", "T[16,8,16,4,32]", "4,2,0,3,1"},
		{"T[3,16,5,7,19]", "T[19,5,3,7,16]", "4,2,0,3,1"},
		{"T[9,8,4,37]", "T[37,8,4,9]", "3,1,2,0"},
		{"T[16,4,8,64]", "T[64,8,4,16]", "3,2,1,0"},
		{"T[24,2,64,16]", "T[64,16,2,24]", "2,3,1,0"},
	} {
		for _, kind := range []string{"s8", "bf16", "f32", "f64"} {
			text := fmt.Sprintf("ENTRY e { x = %s parameter(0)\nROOT r = %s transpose(x), dimensions={%s} }", c.from, c.to, c.order)
			text = strings.ReplaceAll(text, "T[", kind+"[")
			if checkMoves(t, rand.New(rand.NewPCG(1, 1)), kerneltest.Program(t, text)) == 0 {
				t.Errorf("%s: nothing moved", text)
			}
		}
	}
}

// Copies whose destination is periodic, of every width, by every tile: reversed and strided
// rows, rows that are repeated, matrices of few rows or columns, and arrays that are
// interleaved.
func TestPeriodicMoves(t *testing.T) {
	for _, text := range []string{
		"x = T[37,70] parameter(0)\nr = T[37,70] reverse(x), dimensions={1}",
		"x = T[20,5,9] parameter(0)\nr = T[20,5,9] reverse(x), dimensions={1,2}",
		"x = T[31,201] parameter(0)\nr = T[31,67] slice(x), slice={[0:31], [1:201:3]}",
		"x = T[33,41] parameter(0)\nb = T[33,41,3] broadcast(x), dimensions={0,1}\nr = T[33,123] reshape(b)",
		"x = T[3,700] parameter(0)\nr = T[700,3] transpose(x), dimensions={1,0}",
		"x = T[9,130,2] parameter(0)\nr = T[2,9,130] transpose(x), dimensions={2,0,1}",
		"x = T[20,30,2] parameter(0)\nr = T[30,20,2] transpose(x), dimensions={1,0,2}",
		"x = T[33,65,1] parameter(0)\ny = T[33,65,1] parameter(1)\nr = T[33,65,2] concatenate(x, y), dimensions={2}",
		"x = T[50,1] parameter(0)\ny = T[50,3] parameter(1)\nz = T[50,2] parameter(2)\nr = T[50,6] concatenate(x, y, z), dimensions={1}",
		"x = T[16,32] parameter(0)\nn = T[16,32] negate(x)\na = T[16,32,1] reshape(n)\nb = T[16,32,1] reshape(x)\nc = T[16,32,2] concatenate(a, b), dimensions={2}\nr = T[16,64] reshape(c)",
	} {
		for _, kind := range []string{"f32", "f64", "bf16", "s8"} {
			m, err := hlo.Parse(kind, []byte(strings.ReplaceAll(text, "T[", kind+"[")))
			if err != nil {
				t.Fatal(err)
			}
			p, err := symtile.Analyze(t.Context(), m.Entry)
			if err != nil {
				t.Fatal(err)
			}
			if checkMoves(t, rand.New(rand.NewPCG(3, 4)), p) == 0 && !strings.Contains(text, "negate") {
				t.Errorf("nothing moved in\n%s", text)
			}
		}
	}
}

// The scratch of a transpose takes three quarters of the smallest first-level cache at most,
// 32 KiB, and a piece of a row of the destination fits it.
func TestTransposeBlocksFitTheFirstCache(t *testing.T) {
	for _, width := range []int64{1, 2, 4, 8} {
		if bytes := vector.BandBytes(width); bytes > 24<<10 {
			t.Errorf("scratch for elements of %d bytes takes %d bytes", width, bytes)
		}
	}
	if pieceBytes > vector.BandStep-vector.LineBytes {
		t.Errorf("pieces of %d bytes in rows of %d", pieceBytes, vector.BandStep)
	}
}

// transposeOf swaps the last and the last but two dimensions, or of two both.
func transposeOf(shape string) string {
	kind, text, _ := strings.Cut(strings.TrimSuffix(shape, "]"), "[")
	dims := strings.Split(text, ",")
	perm := []string{"0", "1", "2", "3"}[:len(dims)]
	from := max(0, len(dims)-3)
	dims[from], dims[len(dims)-1] = dims[len(dims)-1], dims[from]
	perm[from], perm[len(dims)-1] = perm[len(dims)-1], perm[from]
	return fmt.Sprintf("x = %s parameter(0)\nr = %s[%s] transpose(x), dimensions={%s}", shape, kind, strings.Join(dims, ","), strings.Join(perm, ","))
}

// checkMoves checks some plans and returns how many have moves.
func checkMoves(t *testing.T, rng *rand.Rand, p *symtile.Program) (moved int) {
	t.Helper()
	v := kerneltest.Verifier(t, p, 3)
	tilings := slices.Collect(walkable(p).Tilings())
	for k := range 3 {
		plan := kernels.Plan{Tiles: tilings[len(tilings)-1]}
		if k > 0 {
			plan.Tiles = cheapOf(rng, p, tilings)
		}
		plan = plan.With("stream", int64(k+rng.IntN(2))%2).With(
			"threads", 1+rng.Int64N(2),
		)
		kernel, err := New().Compile(context.Background(), p, plan)
		if no := (*kernels.Rejected)(nil); errors.As(err, &no) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(context.Background(), kernel); err != nil {
			t.Errorf("plan %s: %v\n%s", plan, err, kernel.Source())
		}
		if err := endAtPage(t, p.Fusion, kernel); err != nil {
			t.Errorf("plan %s: %v", plan, err)
		}
		if strings.Contains(kernel.Source(), " to output") || strings.Contains(kernel.Source(), "from memory") {
			moved++
		}
		kernel.Close()
	}
	return moved
}

// endAtPage compares results on arrays that end with a page to those elsewhere.
func endAtPage(t *testing.T, c *hlo.Computation, k kernels.Kernel) error {
	in, err := check.Inputs(c, check.Normals, 9)
	if err != nil {
		return err
	}
	want, err := kernels.NewBuffer(c.Root.Shape)
	if err != nil {
		return err
	}
	if _, err := k.Run(
		context.Background(), in, []kernels.Buffer{want},
	); err != nil {
		return err
	}
	for n := range in {
		data, free := guardedBytes(t, len(in[n].Data))
		defer free()
		copy(data, in[n].Data)
		in[n].Data = data
	}
	data, free := guardedBytes(t, len(want.Data))
	defer free()
	got := kernels.Buffer{Shape: want.Shape, Data: data}
	if _, err := k.Run(
		context.Background(), in, []kernels.Buffer{got},
	); err != nil {
		return err
	}
	if !bytes.Equal(got.Data, want.Data) {
		return errors.New("another result at the end of a page")
	}
	return nil
}

// guardedBytes returns n bytes that end where a page begins that cannot be touched.
func guardedBytes(t *testing.T, n int) (data []byte, free func()) {
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(
		-1, 0, size+page,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE,
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[size-n : size], func() { unix.Munmap(m) }
}
