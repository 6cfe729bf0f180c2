//go:build cgo && linux && amd64 && !noasm

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/serve"
)

// components are what arch_prctl says of the state components of this process.
func components(what uintptr) (mask uint64) {
	const archPrctl = 158
	syscall.RawSyscall(archPrctl, what, uintptr(unsafe.Pointer(&mask)), 0)
	return mask
}

// TestAsksNoPermission: a host that asks for the plan of a product of bf16 may have signal
// stacks of 8 KiB as before, which Linux refuses to processes that may use AMX; and the plan
// uses it where the processor has it.
func TestAsksNoPermission(t *testing.T) {
	const (
		supported = 0x1021
		permitted = 0x1022
		tiles     = 18
	)
	before := components(permitted)
	d, err := deviceNamed("cpu")
	if err != nil {
		t.Fatal(err)
	}
	s, err := query.Open(filepath.Join(t.TempDir(), "t.db"), d)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(serve.Request{Op: "plan", Text: `
a = bf16[512,512] parameter(0)
b = bf16[512,512] parameter(1)
ROOT p = bf16[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
`})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := serve.Encode(serve.AnswerLine(t.Context(), s, line))
	if err != nil || !strings.Contains(string(answer), `"plan"`) {
		t.Fatalf("%s, %v", answer, err)
	}
	if after := components(permitted); after != before {
		t.Errorf("the process may use components %#x, not %#x", after, before)
	}
	has := components(supported)>>tiles&1 == 1
	if got := strings.Contains(string(answer), "bf16=2"); got != has {
		t.Errorf("AMX is there: %v; %s", has, answer)
	}
}
