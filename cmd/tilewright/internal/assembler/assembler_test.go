package assembler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/golden"
)

// What ptxas says is read; a tool that fails is quoted.
func TestAssembler(t *testing.T) {
	folder := t.TempDir()
	for name, script := range map[string]string{
		"good": `case "$1" in --version) echo "Cuda compilation tools, release 13.0, V13.0.48"; exit;; esac
echo "ptxas info    : Compiling entry function 'tw_main' for 'sm_90a'"
echo "    8 bytes stack frame, 16 bytes spill stores, 12 bytes spill loads"
echo "ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem, 900 bytes cmem[0]"
echo "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized"
echo "ptxas info    : Compiling entry function 'tw_main_rest' for 'sm_90a'"
echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
echo "ptxas info    : Used 40 registers, 900 bytes cmem[0]"`,
		"bad": `echo "ptxas fatal   : Unresolved extern"; exit 255`,
	} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		a := Assembler{path, "ptxas 13.0"}
		row, err := a.File(t.Context(), "x.ptx", ".version 8.0\n.target sm_90a\n")
		if name == "bad" {
			if err == nil || err.Error() != "refused: ptxas fatal   : Unresolved extern" {
				t.Error(err)
			}
			continue
		}
		want := golden.AssemblerReport{
			Hash:      row.Hash,
			Target:    "sm_90a",
			Registers: 168,
			Spilled:   16,
			Shared:    1024,
			Stack:     8,
			Warning:   "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized",
			Tool:      "ptxas 13.0",
		}
		if err != nil || row != want {
			t.Errorf("%+v, %v", row, err)
		}
	}
	if _, err := (Assembler{}).File(t.Context(), "x.ptx", ""); err != ErrNone {
		t.Error(err)
	}
}
