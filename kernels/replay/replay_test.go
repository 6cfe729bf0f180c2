package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

func program(t *testing.T) *symtile.Program {
	m, err := hlo.Parse("replay", []byte("x = f32[16] parameter(0); ROOT y = f32[16] negate(x)"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const line = `{"fusion":"%x","device":"H200","backend":"cuda","codegen":"ptx1","default":"16","trials":[` +
	`{"plan":"16","samples":[0.002,0.003]},{"plan":"8 warps=2","samples":[0.001]},{"plan":"4","failure":"wrong","detail":"output 0"},{"plan":"2"}]}` + "\n"

func TestRunsTakeTheRecordedTimes(t *testing.T) {
	p := program(t)
	b, err := Read("run.jsonl", strings.NewReader(fmt.Sprintf(line, p.Fusion.Fingerprint())))
	if err != nil {
		t.Fatal(err)
	}
	var plans []string
	for plan := range b.Plans(t.Context(), p) {
		plans = append(plans, plan.String())
	}
	if d := b.Device(); d.Name != "replay:H200" ||
		!slices.Equal(plans, []string{"16", "8 warps=2", "4"}) {
		t.Errorf("%s offers %v", d.Name, plans)
	}
	standard, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	k, err := b.Compile(context.Background(), p, standard)
	if err != nil {
		t.Fatal(err)
	}
	v, err := check.NewVerifier(context.Background(), p.Fusion, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(context.Background(), k); err != nil {
		t.Error(err)
	}
	bench, err := check.NewBench(context.Background(), p.Fusion, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for range 3 {
		d, err := bench.Run(context.Background(), k)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, d/time.Millisecond)
	}
	if times[0] == times[1] ||
		times[0] != times[2] ||
		times[0]+times[1] != 5 {
		t.Errorf("times %v", times)
	}
}

func TestNoRecordIsRejected(t *testing.T) {
	p := program(t)
	b, err := Read("run.jsonl", strings.NewReader(fmt.Sprintf(line, p.Fusion.Fingerprint())))
	if err != nil {
		t.Fatal(err)
	}
	for plan, want := range map[string]string{"4": "recorded as wrong: output 0", "2": "not tried", "3": "not tried"} {
		parsed, _ := kernels.ParsePlan(plan)
		var no *kernels.Rejected
		_, err := b.Compile(context.Background(), p, parsed)
		if !errors.As(err, &no) || !strings.Contains(no.Reason, want) {
			t.Errorf("plan %s: %v", plan, err)
		}
	}
}

func TestBadRecordings(t *testing.T) {
	good := fmt.Sprintf(line, program(t).Fusion.Fingerprint())
	for text, want := range map[string]string{
		"":                "no records in it",
		"\n{":             "f:2: not a record",
		`{"fusion":"12"}`: "f:1: \"12\" is not a fingerprint",
		good + strings.Replace(good, "H200", "H100", 1): "f:2: it is of H100 (cuda ptx1), the ones before are of H200 (cuda ptx1)",
		strings.Replace(good, `"16"`, `"x"`, 1):         "f:1:",
	} {
		if _, err := Read("f", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
}

// TestClocksAreReplayed: a sample has the mean of the recorded times and clocks,
// and no clock where one of them is unknown.
func TestClocksAreReplayed(t *testing.T) {
	p := program(t)
	text := fmt.Sprintf(line, p.Fusion.Fingerprint())
	clocked := strings.NewReplacer(`[0.002,0.003]`, `[0.002,0.003],"clocks":[1e9,2e9]`, `[0.001]`, `[0.001],"clocks":[0]`).Replace(text)
	b, err := Read("run.jsonl", strings.NewReader(clocked))
	if err != nil {
		t.Fatal(err)
	}
	bench, err := check.NewBench(context.Background(), p.Fusion, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for plan, want := range map[string]kernels.Timing{
		"16":        {Seconds: 0.0025, Hertz: 1.5e9},
		"8 warps=2": {Seconds: 0.001},
	} {
		x, err := kernels.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		k, err := b.Compile(t.Context(), p, x)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := bench.Sample(t.Context(), k, 2); err != nil || got != want {
			t.Errorf("%s: %+v, %v", plan, got, err)
		}
	}
	if e := b.SampleQuality(); e.Samples != 2 ||
		e.Clock.Known != 1 || e.Clock.Median != 1.5e9 {
		t.Errorf("evidence %+v", e)
	}
	if _, err := Read(
		"run.jsonl", strings.NewReader(strings.Replace(text, `[0.001]`, `[0.001],"clocks":[1,2]`, 1)),
	); err == nil || !strings.Contains(err.Error(), "run.jsonl:1: plan 8 warps=2: 2 clocks of 1 samples") {
		t.Error(err)
	}
}
