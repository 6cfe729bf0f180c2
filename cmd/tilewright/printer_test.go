package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/tuner"
)

// hostile text clears a screen and sets a title in four ways, and turns what follows.
const hostile = "x\x1b[2J\x1b]0;t\a\u009b2J\r\x7f\u202etxt\u2066y"

// TestTerminal: no control character of names, notes, sources and headers reaches
// a terminal or a report, from any command that prints them.
func TestTerminal(t *testing.T) {
	dir := t.TempDir()
	at := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const fusion = "x = f32[8] parameter(0); ROOT y = f32[8] negate(x)"
	m, err := hlo.Parse("f", []byte(fusion))
	if err != nil {
		t.Fatal(err)
	}
	r := cache.Record{
		Key:       cache.Key{Fusion: m.Entry.Fingerprint(), Device: hostile, Backend: "cpu"},
		Canonical: m.Entry.Canonical(), Name: hostile, Note: hostile, By: hostile,
		Plan: "8", Seconds: 1,
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	good, db := at("good.hlo", fusion), filepath.Join(dir, "a.db")
	header := "{'descr': '" + hostile + "', 'fortran_order': False, 'shape': (8,), }\n"
	npy := at("x.npy", "\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})+header)
	id := kernels.IdentityOf(cpu.New())
	r.Device, r.Codegen = id.Device, id.Revision
	here, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	reported, page := filepath.Join(dir, "b.db"), filepath.Join(dir, "page.html")
	print := m.Entry.Fingerprint()
	for _, args := range [][]string{
		{"show", at("bad.hlo", "x = f32[8] parameter(0) "+hostile+"\nROOT y = f32[8] negate(x)")},
		{"show", at("latin.hlo", "x = \x9b2J")},
		{"show", at(hostile, "x")},
		{"run", "-args", npy, good},
		{"cache", "import", "-db", db, at("a.jsonl", string(line))},
		{"cache", "ls", "-db", db},
		{"cache", "ls", "-json", "-db", db},
		{"cache", "show", "-db", db, hostile},
		{"cache", "show", "-db", db, hostile + "y"},
		{"cache", "export", "-db", db},
		{"cache", "import", "-db", reported, at("b.jsonl", string(here))},
		{"report", "-db", reported, "-o", page},
		{"cache", "rm", "-db", db, string(hexOf(print))},
		{hostile},
	} {
		var out, errs bytes.Buffer
		run(args, strings.NewReader(""), &out, &errs)
		text := out.String() + errs.String()
		if !isPlain(text) {
			t.Errorf("%q prints %q", args, text)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !isPlain(string(text)) || !strings.Contains(string(text), `x\u001b[2J`) {
		t.Errorf("the report is %q, %v", text, err)
	}
}

// isPlain reports whether a text is UTF-8 that shows what it says.
func isPlain(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
	})
}

// hexOf is the beginning of a fingerprint.
func hexOf(f cache.Fingerprint) []byte {
	text, _ := f.MarshalText()
	return text[:12]
}

// TestPrinterSplits: a character that comes in two writes is one.
func TestPrinterSplits(t *testing.T) {
	var out bytes.Buffer
	p := &printer{to: &out}
	text := "a×b\u009bc\x1bd…\xc2"
	for k := range len(text) {
		if _, err := p.Write([]byte{text[k]}); err != nil {
			t.Fatal(err)
		}
	}
	p.finish()
	if want := `a×b\u009bc\u001bd…\xc2`; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestUnfinishedRaces: races that are not over are neither tuned nor "not raced", and a
// ratio of too few runs has no interval.
func TestUnfinishedRaces(t *testing.T) {
	m := modelJSON{Speedup: 2.25, Parts: map[string]timePartJSON{
		"checked":  {Fusions: 3, Uses: 3, Share: 0.25},
		unfinished: {Fusions: 1, Uses: 1, Share: 0.75},
	}}
	f := tunedJSON{
		Fusion: "f", Plan: "8", Default: "4", Seconds: 1e-3, Speedup: [3]float64{1.64, 0, 0}, Tried: 11, Provisional: true,
	}
	got := strings.Join(append(m.lines(), f.String()), "\n")
	const want = `4 distinct fusions, executed 4 times: 0% of the time is tuned;
  what was timed (provisional winners included) takes 0.444 of the default
  plans' time, 2.25× their speed
not tuned: 1 provisional, race not over (75%), 3 checked and timed by default,
  not raced (25%)
f: 1 ms, 1.64× the default's speed in too few runs for an interval; plan 8;
  provisional: the race of 11 plans is not over`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for n, want := range map[float64]string{1: "1", 2.5: "2.5", 1 << 20: "1048576", 1 << 51: "2.25e+15"} {
		if got := timesText(n); got != want {
			t.Errorf("%v executions are written as %s", n, got)
		}
	}
}

// TestWrongDefault: a fusion whose default was found wrong in a run that had no time for
// another plan was listed as one that was not reached.
func TestWrongDefault(t *testing.T) {
	trial := cache.Trial{Plan: "8", Failure: cache.FailedWrong, Detail: "output 0 is wrong"}
	m, err := hlo.Parse("f", []byte("f { x = f32[8] parameter(0)\nROOT y = f32[8] negate(x) }"))
	if err != nil {
		t.Fatal(err)
	}
	x := &tuner.Item{Fusion: m.Entry, Uses: 1}
	x.Outcome = tuner.Outcome{
		Err: &tuner.NoWinnerError{Fusion: "f", Trials: []cache.Trial{trial}, Err: errors.New("none ran")},
	}
	const want = `f: the default is not right, and the time was over before another plan was
  tried: the default plan 8 fails its check: wrong: output 0 is wrong`
	if got := newTunedJSON(x).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	trial.Failure = cache.FailedTimeout
	x.Err = &tuner.NoWinnerError{Fusion: "f", Trials: []cache.Trial{trial}, Err: errors.New("none ran")}
	trial.Detail = "its check had not ended after 10s"
	x.Err = &tuner.NoWinnerError{Fusion: "f", Trials: []cache.Trial{trial}, Err: errors.New("none ran")}
	if got := newTunedJSON(x).String(); got != "f: not checked: its check had not ended after 10s" {
		t.Errorf("a default whose check did not end in time: %s", got)
	}
}

// TestStructure: fusions that differ in extents only have one entry, those that were not
// reached too, and one that is refused or has failed has lines of its own.
func TestStructure(t *testing.T) {
	var text, calls strings.Builder
	for k := range 6 {
		fmt.Fprintf(&text, "f%d { x = f32[%d] parameter(0)\nROOT y = f32[%[2]d] negate(x) }\n", k, 8+k)
		fmt.Fprintf(&calls, "p%d = f32[%d] parameter(%[1]d)\nc%[1]d = f32[%[2]d] fusion(p%[1]d), kind=kLoop, calls=f%[1]d\n", k, 8+k)
	}
	text.WriteString("ENTRY e {\n" + calls.String() + "ROOT t = (f32[8], f32[9], f32[10], f32[11], f32[12], f32[13]) tuple(c0, c1, c2, c3, c4, c5)\n}")
	m, err := hlo.Parse("m", []byte("HloModule m\n"+text.String()))
	if err != nil {
		t.Fatal(err)
	}
	w := &tuner.Workload{}
	w.Add("m", m, m.Fusions())
	raced := func(seconds, speedup float64, like string) tuner.Result {
		return tuner.Result{Record: cache.Record{
			Plan: "8", Default: "4", Like: like, Seconds: seconds, DefaultSeconds: seconds * speedup,
			Speedup: [3]float64{speedup, speedup, speedup}, Trials: make([]cache.Trial, 2),
		}}
	}
	for k, o := range []tuner.Outcome{
		{State: tuner.StateRefused, Err: errors.New("no tiles")},
		{State: tuner.StateTuned, Result: raced(1e-3, 2, "")},
		{State: tuner.StateFailed, Err: errors.New("wrong")},
		{State: tuner.StateTuned, Result: raced(2e-3, 1.5, "f1")},
		{State: tuner.StateWaiting, Predicted: 1e-3},
		{State: tuner.StateTuned, Result: raced(3e-3, 1, "f1")},
	} {
		w.Items[k].Outcome = o
	}
	const own = `f0: refused: no tiles
f2: failed: wrong
`
	const together = `f1 and 3 of its structure: 4 fusions, 4 distinct;
  6 ms together, 1.33× the defaults' speed (each 1.00–2.00); plan 8;
  1 raced, 2 raced with the winner of another, 1 not reached;
  shapes f32[9] f32[11] f32[12] f32[13]
`
	for _, ends := range []bool{true, false} {
		var out strings.Builder
		s := &session{c: &call{out: &out, err: io.Discard}, schedule: &tuner.Schedule{Workload: w}}
		s.f.each = new(bool)
		s.status = newStatus(s.c, 0)
		s.countStructures()
		for k, x := range w.Items {
			if ends || k < 5 {
				s.note(x)
			}
		}
		want := own + together
		if !ends { // as when a kernel hangs
			s.printTogether(s.inOrder[0])
			want = own + strings.NewReplacer(
				"and 3", "and 2", "4 fusions, 4", "3 fusions, 3", "6 ms", "3 ms", "1.33", "1.67", "1.00–", "1.50–", "2 raced with", "1 raced with", " f32[13]", "",
			).Replace(together)
		}
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", out.String(), want)
		}
		for _, f := range s.summary.Fusions {
			if f.Structure != "f0" || f.Copies != 1 {
				t.Errorf("%+v", f)
			}
		}
		if sum := s.schedule.Workload.Items; len(sum) != len(s.structures)*6 {
			t.Errorf("%d structures of %d fusions", len(s.structures), len(sum))
		}
	}
}

// What prices rest on is said: the sheet of the processor's family, or of no family.
func TestPriorPrinted(t *testing.T) {
	levels := []levelJSON{{Name: "L1"}}
	for j, want := range map[*priorJSON]string{
		{Sheet: "Zen 4", Spread: []float64{0.5, 2}}:                     "by the sheet of Zen 4: f32 within 1.5×, L1 within 3×",
		{Sheet: "typical core", Unknown: true, Spread: []float64{2, 2}}: "no sheet for this processor: prices are those of a typical core, whose rates may be off by a factor of 3",
	} {
		var out bytes.Buffer
		c := devicesCommand.call(nil, nil, &out, io.Discard)
		j.print(c, levels)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
}

// TestProgressNames: a line of progress has the fusion's name and the end of that of the
// user's program, in the width of the terminal; what does not fit is left out of the middle
// of the one and of the front of the other, and of a narrow line the second is left out.
func TestProgressNames(t *testing.T) {
	const op = "jit(train_step)/transpose(jvp(Llama))/layers_0/attention/dot_general"
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		width      int
		fusion, op string
		best, want string
	}{
		{80, "fused.7", "jit(f)/tanh", "", "1:30 left, 3/45 racing fused.7 (jit(f)/tanh): inputs, 12 s"},
		{80, "fused.7", op, "", "1:30 left, 3/45 racing fused.7 (…/layers_0/attention/dot_general): inputs, 12 s"},
		{80, "loop_transpose_convert_fusion.17", op, "", "1:30 left, 3/45 racing loop_tran…fusion.17 (…tention/dot_general): inputs, 12 s"},
		{80, "loop_transpose_convert_fusion.17", "", "", "1:30 left, 3/45 racing loop_transpose_convert_fusion.17: inputs, 12 s"},
		{80, "fused.7", op, "1.23 ms, 1.05× the default", "1:30 left, 3/45 racing fused.7 (…dot_general): 1.23 ms, 1.05× the default, 12 s"},
		{60, "loop_transpose_convert_fusion.17", op, "", "1:30 left, 3/45 racing loop_transp…_fusion.17: inputs, 12 s"},
		{20, "loop_transpose_convert_fusion.17", op, "", "1:30 left…uts, 12 s"},
	} {
		s := &status{width: c.width, best: c.best, phase: tuner.Preparing, since: now.Add(-12 * time.Second), turn: tuner.Turn{
			EventHeader: tuner.EventHeader{Fusion: c.fusion},
			Source:      origin.Source{Op: c.op, File: "model.py", Line: 3},
			Purpose:     "racing", Number: 3, Of: 45, End: now.Add(90 * time.Second),
		}}
		if c.op == "" {
			s.turn.Source = origin.Source{}
		}
		got := s.progress(now)
		if got != c.want {
			t.Errorf("width %d:\n%s, want\n%s", c.width, got, c.want)
		}
		if n := utf8.RuneCountInString(got); n >= c.width {
			t.Errorf("%d characters in a width of %d: %s", n, c.width, got)
		}
	}
}
