package gpu

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
)

// dependentPlan is a product in seven pieces whose second kernel begins early.
const dependentPlan = "64,64,64 pdl=1 splitk=7 stages=2"

// dependentRun runs the kernels of a plan, whose text is changed before.
func dependentRun(t *testing.T, p *symtile.Program, words string, change func(string) string) (string, error) {
	t.Helper()
	plan, err := kernels.ParsePlan(words)
	if err != nil {
		t.Fatal(err)
	}
	dev := newSimulator("sm_90a")
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	im, err := compile(p, plan, dev.spec)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(s).load(t.Context(), p, im)
	if err != nil {
		t.Fatal(err)
	}
	text := change(k.work.PTX)
	// Changed text is parsed here, so that it runs as it is.
	m, err := ptx.Parse("changed.ptx", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	k.work.PTX = string(m.Text())
	err = kerneltest.Verifier(t, p, 3).Verify(t.Context(), k)
	return k.work.PTX, err
}

// The second kernel of a plan in pieces waits before it reads what the first has left:
// without the wait, or with it behind the first load, the simulator finds the access; a
// first kernel that does not say that the second may begin is right, and later.
func TestDependentLaunch(t *testing.T) {
	const wait = "\tgriddepcontrol.wait;\n"
	const start = "\tgriddepcontrol.launch_dependents;\n"
	p := kerneltest.Program(t, skinny)
	cut := func(s, what string) string {
		if strings.Count(s, what) != 1 {
			t.Fatalf("%d times %q", strings.Count(s, what), what)
		}
		return strings.Replace(s, what, "", 1)
	}
	datadriven.RunTest(t, "testdata/dependent.txt", func(t *testing.T, d *datadriven.TestData) string {
		_, err := dependentRun(t, p, dependentPlan, func(s string) string {
			switch d.Cmd {
			case "no-wait":
				return cut(s, wait)
			case "no-start":
				return cut(s, start)
			case "late":
				// Behind the first load of partial sums.
				s = cut(s, wait)
				at := strings.Index(s, "_rest(")
				at += strings.Index(s[at:], "ld.global.v4")
				at += strings.Index(s[at:], "\n") + 1
				return s[:at] + wait + s[at:]
			case "some":
				return strings.Replace(s, wait, "\tsetp.lt.s32 %p0, %r1, 32;\n\t@%p0 griddepcontrol.wait;\n", 1)
			}
			return s
		})
		if err == nil {
			return "agrees\n"
		}
		text, _, _ := strings.Cut(err.Error(), " (and ")
		at := strings.Index(text, string(sim.MissingWait))
		if at < 0 {
			return "not found: " + err.Error() + "\n"
		}
		_, detail, _ := strings.Cut(text[at:], "global ")
		_, detail, _ = strings.Cut(detail, ": ")
		return string(sim.MissingWait) + ": " + detail + "\n"
	})
}
