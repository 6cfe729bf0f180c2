//go:build cgo

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/serve"
)

// TestTargets: a module is split for the device of the handle that is asked. A GPU leaves
// scatters and powers of integers outside, and so has other fusions, with other
// fingerprints; without a handle they are those of the CPU. testdata/host.c asks through
// the C functions.
func TestTargets(t *testing.T) {
	scatter, err := os.ReadFile("testdata/scatter.mlir")
	if err != nil {
		t.Fatal(err)
	}
	const power = "HloModule power\nENTRY e {\n  x = s32[4096] parameter(0)\n  a = s32[4096] abs(x)\n  p = s32[4096] power(a, a)\n  ROOT n = s32[4096] negate(p)\n}\n"
	const gpu = `{"device": "sim:H100", "backend": "gpu", "revision": "1", "safe": {}}`
	for _, c := range []struct{ text, whole, outside string }{
		{string(scatter), "fused.n", "scatter"},
		{power, "fused.n", "power"},
	} {
		prints := map[string]string{}
		for _, device := range []string{"", "cpu", gpu} {
			s := unopened
			if device != "" {
				d, err := deviceNamed(device)
				if err != nil {
					t.Fatal(err)
				}
				if s, err = query.Open(filepath.Join(t.TempDir(), "t.db"), d); err != nil {
					t.Fatal(err)
				}
			}
			for _, op := range []string{"partition", "fingerprint", "tiles", "lookup", "plan"} {
				if s == unopened && (op == "lookup" || op == "plan") {
					continue
				}
				line, err := json.Marshal(serve.Request{Op: op, Text: c.text})
				if err != nil {
					t.Fatal(err)
				}
				answer, err := serve.Encode(serve.AnswerLine(t.Context(), s, line))
				if err != nil || strings.Contains(string(answer), `"error"`) {
					t.Fatalf("%s on %q: %s, %v", op, device, answer, err)
				}
				if op == "fingerprint" {
					prints[device] = string(answer)
					continue
				}
				if left := strings.Contains(string(answer), `"op":"`+c.outside+`","reason":`); left != (device == gpu) {
					t.Errorf("%s on %q: %s outside is %v: %s", op, device, c.outside, left, answer)
				}
			}
			if s != unopened {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if prints[""] != prints["cpu"] || prints["cpu"] == prints[gpu] || !strings.Contains(prints["cpu"], c.whole) {
			t.Errorf("fingerprints of %s: %v", c.outside, prints)
		}
	}
}
