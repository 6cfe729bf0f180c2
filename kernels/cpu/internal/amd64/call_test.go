//go:build linux && amd64 && !noasm

package amd64

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func load(t testing.TB, a *Assembler) Func {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skip(err)
	}
	code, err := a.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(code)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loaded.Close() })
	f, err := loaded.Func(0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// axpyArgs is the argument block of y += a*x over n elements.
type axpyArgs struct {
	n    int
	a    float32
	x, y *float32
}

// axpy computes 32 elements a step, then 8, then the rest under a mask.
func axpy() *Assembler {
	a := &Assembler{}
	table := make([]byte, 64)
	for k := range 32 {
		table[k] = 0xff
	}
	masks := a.Data(table)
	a.Emit(MOV, RAX, Mem{Base: RDI})
	a.Emit(VBROADCASTSS, Y0, Mem{Base: RDI, Disp: 8})
	a.Emit(MOV, RSI, Mem{Base: RDI, Disp: 16})
	a.Emit(MOV, RDX, Mem{Base: RDI, Disp: 24})
	for _, vectors := range []int{4, 1} {
		loop, done := a.NewLabel(), a.NewLabel()
		a.Emit(SUB, RAX, Imm(8*vectors))
		a.Emit(JL, done)
		a.Align(32)
		a.Bind(loop)
		for k := range vectors {
			a.Emit(VMOVUPS, Y(1+k), Mem{Base: RDX, Disp: int32(32 * k)})
			a.Emit(VFMADD231PS, Y(1+k), Y0, Mem{
				Base: RSI,
				Disp: int32(32 * k),
			})
			a.Emit(VMOVUPS, Mem{Base: RDX, Disp: int32(32 * k)}, Y(1+k))
		}
		a.Emit(ADD, RSI, Imm(32*vectors))
		a.Emit(ADD, RDX, Imm(32*vectors))
		a.Emit(SUB, RAX, Imm(8*vectors))
		a.Emit(JGE, loop)
		a.Bind(done)
		a.Emit(ADD, RAX, Imm(8*vectors))
	}
	axpyTail(a, masks)
	return a
}

// axpyTail does the last RAX < 8 elements: lane k is on where k < RAX.
func axpyTail(a *Assembler, masks Mem) {
	end := a.NewLabel()
	a.Emit(TEST, RAX, RAX)
	a.Emit(JE, end)
	a.Emit(NEG, RAX)
	a.Emit(LEA, RCX, masks)
	a.Emit(VMOVUPS, Y3, Mem{Base: RCX, Index: RAX, Scale: 4, Disp: 32})
	a.Emit(VMASKMOVPS, Y1, Y3, Mem{Base: RDX})
	a.Emit(VMASKMOVPS, Y2, Y3, Mem{Base: RSI})
	a.Emit(VFMADD231PS, Y1, Y0, Y2)
	a.Emit(VMASKMOVPS, Mem{Base: RDX}, Y3, Y1)
	a.Bind(end)
	a.Emit(RET)
}

// guarded returns n floats that end where a page begins that cannot be touched.
func guarded(t testing.TB, n int) []float32 {
	return unsafe.Slice(
		(*float32)(unsafe.Pointer(unsafe.SliceData(guardedBytes(t, 4*n)))), n,
	)
}

func guardedBytes(t testing.TB, n int) []byte {
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(
		-1, 0, size+page,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE,
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[size-n : size]
}

// TestAxpyEndsAtPage runs lengths 0 … 67 whose last element is the last of a
// page: a read or write past it would end the test.
func TestAxpyEndsAtPage(t *testing.T) {
	f := load(t, axpy())
	for n := range 68 {
		x, y := guarded(t, n), guarded(t, n)
		for k := range n {
			x[k], y[k] = float32(k+1), float32(100*k)
		}
		f.Call(unsafe.Pointer(&axpyArgs{
			n, 2, unsafe.SliceData(x), unsafe.SliceData(y),
		}))
		for k := range n {
			if want := float32(100*k) + 2*float32(k+1); y[k] != want {
				t.Errorf("n %d: y[%d] = %v, want %v", n, k, y[k], want)
			}
		}
	}
}

// TestCallKeepsGoRegisters destroys every register that code may use.
func TestCallKeepsGoRegisters(t *testing.T) {
	a := &Assembler{}
	for r := RAX; r <= R15; r++ {
		if r != RSP && r != RBP {
			a.Emit(MOV, r, Imm(0x5eadbeef))
		}
	}
	a.Emit(VMOVD, X0, EAX)
	for k := 15; k >= 0; k-- {
		a.Emit(VPBROADCASTD, Y(k), X0)
	}
	a.Emit(RET)
	f := load(t, a)
	sum := 0.0
	for k := range 1000 {
		f.Call(nil)
		sum += math.Sqrt(float64(k * k))
		runtime.Gosched()
	}
	if sum != 499500 || fmt.Sprint([3]float32{}) != "[0 0 0]" {
		t.Errorf("sum %v", sum)
	}
}

// TestCallUnderProfilerAndCollector spins in generated code while signals
// arrive, stacks move and the collector runs.
func TestCallUnderProfilerAndCollector(t *testing.T) {
	f := load(t, axpy())
	profile, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer profile.Close()
	if err := pprof.StartCPUProfile(profile); err != nil {
		t.Skip(err)
	}
	defer pprof.StopCPUProfile()
	stop := time.Now().Add(300 * time.Millisecond)
	collector := make(chan struct{})
	go func() {
		defer close(collector)
		for time.Now().Before(stop) {
			runtime.GC()
		}
	}()
	for depth := 1; time.Now().Before(stop); depth = depth%50 + 1 {
		deep(t, f, depth)
	}
	<-collector
}

// deep grows the stack, calling f at every level with an argument block on it.
func deep(t *testing.T, f Func, depth int) {
	var pad [256]float32
	x := make([]float32, 1000)
	for k := range x {
		x[k] = 1
	}
	y := make([]float32, 1000)
	args := axpyArgs{1000, 2, &x[0], &y[0]}
	for range 20 {
		f.Call(unsafe.Pointer(&args))
	}
	pad[depth] = y[999]
	if depth > 0 {
		deep(t, f, depth-1)
	}
	if pad[depth] != 40 {
		t.Fatalf("depth %d: %v", depth, pad[depth])
	}
}

// TestPagesAreNeverWritableAndExecutable looks at what the kernel says.
func TestPagesAreNeverWritableAndExecutable(t *testing.T) {
	f := load(t, axpy())
	if mode := modeOf(t, f.pc); mode != "r-xp" {
		t.Errorf("the code is in pages of mode %q", mode)
	}
}

// modeOf is the mode of the page at an address, "" where there is none. No page is writable
// and executable.
func modeOf(t *testing.T, at uintptr) (found string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var mode string
		fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode)
		if strings.Contains(mode, "w") && strings.Contains(mode, "x") {
			t.Errorf("writable and executable: %s", line)
		}
		if at >= from && at < to {
			found = mode
		}
	}
	return found
}

// TestClosedPagesServeAgain: code that is loaded after other code was closed lies in its
// pages, which nothing of it is left in, and which could not be executed in between. Pages
// that more kernels than are kept had are given back, as is all when Pages is dropped.
func TestClosedPagesServeAgain(t *testing.T) {
	load(t, axpy()) // skips where no code runs
	pages := NewPages()
	first, err := pages.Load(bytes.Repeat([]byte{0x90}, 5000))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := first.Func(0)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if mode := modeOf(t, f.pc); mode != "rw-p" {
		t.Errorf("pages that are kept have mode %q", mode)
	}
	second, err := pages.Load([]byte{0xc3, 0xc3, 0xc3, 0xc3, 0xc3})
	if err != nil {
		t.Fatal(err)
	}
	if g, _ := second.Func(0); g.pc == f.pc {
		t.Error("code of one page got pieces of two")
	}
	third, err := pages.Load(append(bytes.Repeat([]byte{0x90}, 4096), 0xc3))
	if err != nil {
		t.Fatal(err)
	}
	g, _ := third.Func(0)
	if g.pc != f.pc || modeOf(t, g.pc) != "r-xp" {
		t.Errorf("the second code of two pages is at %x, the first was at %x", g.pc, f.pc)
	}
	g.Call(unsafe.Pointer(&axpyArgs{}))
	for _, x := range third.pages[4097:] {
		if x != 0xcc {
			t.Fatal("old code is left behind the new one")
		}
	}
	second.Close()
	third.Close()
	runtime.KeepAlive(pages)
	for range 100 {
		if runtime.GC(); modeOf(t, g.pc) != "rw-p" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("dropped pages are still mapped")
}

// TestRefusedPages runs itself where the kernel refuses executable pages
// (PR_SET_MDWE, Linux 6.3): Load and Supported say so.
func TestRefusedPages(t *testing.T) {
	const prSetMDWE = 65
	const refuseExecGain = 1
	const marker = "TEST_REFUSED_PAGES"
	if os.Getenv(marker) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRefusedPages$", "-test.v")
		cmd.Env = append(os.Environ(), marker+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), "SKIP") {
			t.Skip("the kernel cannot refuse executable pages")
		}
		return
	}
	if err := unix.Prctl(prSetMDWE, refuseExecGain, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	_, err := Load([]byte{0xc3})
	if err == nil || !strings.Contains(err.Error(), "does not let the process make pages executable") {
		t.Errorf("Load: %v", err)
	}
	if Supported() == nil {
		t.Error("Supported: nil")
	}
}

func TestFuncOutsideCode(t *testing.T) {
	if err := Supported(); err != nil {
		t.Skip(err)
	}
	code, err := Load([]byte{0xc3})
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int{-1, 1, 4096} {
		if _, err := code.Func(offset); err == nil {
			t.Errorf("a function at %d", offset)
		}
	}
	if err := code.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := code.Func(0); err == nil {
		t.Error("a function of closed code")
	}
	if err := code.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Load(nil); err == nil {
		t.Error("no code was loaded")
	}
}

// BenchmarkAssemble is what making a small kernel costs, pages not included.
func BenchmarkAssemble(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := axpy().Assemble(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad is what pages for it cost: three system calls and two faults.
func BenchmarkLoad(b *testing.B) {
	code, err := axpy().Assemble()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		loaded, err := Load(code)
		if err != nil {
			b.Skip(err)
		}
		loaded.Close()
	}
}

// BenchmarkCall is the way into generated code and back.
func BenchmarkCall(b *testing.B) {
	f := load(b, axpy())
	args := axpyArgs{}
	for b.Loop() {
		f.Call(unsafe.Pointer(&args))
	}
}
