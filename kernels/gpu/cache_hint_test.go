package gpu

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// What is read once, and results larger than the L2 cache, have a cache policy with l2=1,
// and nothing else has. testdata/cache_hints.txt has the instructions that differ, or why
// a plan is refused. Plans without the word "huge" also run in the simulator.
func TestCacheHints(t *testing.T) {
	datadriven.RunTest(t, "testdata/cache_hints.txt", func(t *testing.T, d *datadriven.TestData) string {
		var target, words string
		d.ScanArgs(t, "target", &target)
		for _, a := range d.CmdArgs {
			if a.Key == "plan" {
				words = strings.ReplaceAll(strings.Join(a.Vals, " "), ";", ",")
			}
		}
		spec, err := device.ParseSpec(target)
		if err != nil {
			return err.Error() + "\n"
		}
		plan, err := kernels.ParsePlan(words)
		if err != nil {
			return err.Error() + "\n"
		}
		p := kerneltest.Program(t, d.Input+"\n")
		text, err := PTX(p, plan.With("l2", 1), spec)
		if err != nil {
			return err.Error() + "\n"
		}
		if d.Cmd != "huge" {
			simulate(t, target, d.Input+"\n", plan.With("l2", 1).String())
		}
		hinted := map[string]bool{}
		var list strings.Builder
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) > 1 && strings.HasPrefix(words[0], "@") {
				words = words[1:]
			}
			name := strings.Join(words[:min(1, len(words))], "")
			known := strings.Contains(name, "hint") || strings.Contains(name, "policy")
			moves := strings.Contains(name, "global") && !strings.Contains(name, "cvta")
			if (known || moves) && !hinted[name] {
				hinted[name] = true
				list.WriteString(name + "\n")
			}
		}
		return list.String()
	})
}

// An operand that is no policy is found, as is one that nothing has written.
func TestCacheHintMutants(t *testing.T) {
	const create = "\tcreatepolicy.fractional.L2::evict_first.b64 %rd4;\n"
	p := kerneltest.Program(t, "a = f32[64,64] parameter(0)\nb = f32[64,64] negate(a)\n")
	for instead, kind := range map[string]sim.Kind{
		"":                        sim.Uninitialised,
		"\tmov.b64 %rd4, %rd1;\n": sim.InvalidOperation,
	} {
		_, err := dependentRun(t, p, "64,64 l2=1", func(s string) string {
			if !strings.Contains(s, create) {
				t.Fatalf("no %q in\n%s", create, s)
			}
			return strings.Replace(s, create, instead, 1)
		})
		if err == nil || !strings.Contains(err.Error(), string(kind)) {
			t.Errorf("%q: %v", instead, err)
		}
	}
}
