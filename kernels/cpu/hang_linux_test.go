package cpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// hangVariable makes the test binary the process whose kernel hangs.
const hangVariable = "TILEWRIGHT_TEST_HANG"

// An endlessKernel runs machine code that never returns.
type endlessKernel struct{ code amd64.Func }

func (endlessKernel) Source() string { return "" }
func (endlessKernel) Close() error   { return nil }

func (k endlessKernel) Run(context.Context, []kernels.Buffer, []kernels.Buffer) (time.Duration, error) {
	k.code.Call(unsafe.Pointer(new(int64)))
	return 0, nil
}

// garbage is written so that allocations are not optimised away.
var garbage []byte

// A process goes on beside machine code that never returns, which the garbage
// collector would wait for: it allocates, starts goroutines and ends. Several
// processes try it at once, because the end of a collection leaves a short time in
// which a run must not begin, and a busy machine makes that longer.
func TestProcessOutlivesMachineCode(t *testing.T) {
	if os.Getenv(hangVariable) != "" {
		outliveMachineCode()
	}
	if err := amd64.Supported(); err != nil {
		t.Skip(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // one that hangs would for ever
	defer cancel()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			cmd := exec.CommandContext(ctx, program, "-test.run=^TestProcessOutlivesMachineCode$")
			cmd.Env = append(os.Environ(), hangVariable+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "went on") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
}

// outliveMachineCode abandons a kernel, goes on and ends the process.
func outliveMachineCode() {
	code, err := amd64.Load([]byte{0xEB, 0xFE}) // a jump to itself
	if err != nil {
		panic(err)
	}
	f, err := code.Func(0)
	if err != nil {
		panic(err)
	}
	for range 8 {
		garbage = make([]byte, 64<<20) // a collection may be under way when the run begins
	}
	_, err = check.Bounded(endlessKernel{f}, time.Millisecond).Run(context.Background(), nil, nil)
	var hung *check.Hung
	if !errors.As(err, &hung) {
		panic(err)
	}
	for range 64 {
		garbage = make([]byte, 8<<20)
		done := make(chan bool)
		go func() { close(done) }()
		<-done
		runtime.Gosched()
	}
	os.Stdout.WriteString("went on\n")
	os.Exit(0)
}
