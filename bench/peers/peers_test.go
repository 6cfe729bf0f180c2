package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
)

// Every case is a fusion that can be tiled, with as many bytes as it says.
func TestCasesCanBeTiled(t *testing.T) {
	for _, c := range slices.Concat(allCases(), essentialCases(), quickCases(), searchCases()) {
		fusion, err := parse(c)
		if err != nil {
			t.Errorf("%s: %v", c, err)
			continue
		}
		if _, err := symtile.Analyze(t.Context(), fusion); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// What the fusions compute is what they are called.
func TestCasesMean(t *testing.T) {
	datadriven.RunTest(t, "testdata/meaning.txt", func(t *testing.T, d *datadriven.TestData) string {
		c, err := readCase([]string{
			d.Cmd, d.CmdArgs[0].String(), "1", "0", "0", "",
		})
		if err != nil {
			return err.Error()
		}
		fusion, err := parse(c.testCase)
		if err != nil {
			return err.Error()
		}
		in, err := check.Inputs(fusion, check.Integers, 1)
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for k, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			for at, word := range strings.Fields(line) {
				var v float64
				if _, err := fmt.Sscan(word, &v); err != nil {
					return err.Error()
				}
				if in[k].Shape.DType.IsFloat() {
					in[k].SetFloat(int64(at), v)
				} else {
					in[k].SetInt(int64(at), int64(v))
				}
			}
		}
		out, err := reference.Interpret(fusion, in)
		if err != nil {
			return err.Error()
		}
		for _, o := range out {
			for at := range o.Shape.Elements() {
				if o.Shape.DType.IsFloat() {
					fmt.Fprintf(&b, "%.4g ", o.Float(at))
				} else {
					fmt.Fprintf(&b, "%d ", o.Int(at))
				}
			}
		}
		return strings.TrimSpace(b.String()) + "\n"
	})
}

func TestTables(t *testing.T) {
	datadriven.RunTest(t, "testdata/tables.txt", func(t *testing.T, d *datadriven.TestData) string {
		r, err := readResults(strings.NewReader(strings.ReplaceAll(d.Input, "  ", "\t")))
		if err != nil {
			return err.Error() + "\n"
		}
		if d.Cmd == "raw" {
			var b bytes.Buffer
			r.write(&b)
			return strings.ReplaceAll(b.String(), "\t", "  ")
		}
		if d.Cmd == "searched" {
			return r.searched()
		}
		return r.markdown()
	})
}

// The page in the repository is the one its samples make.
func TestResultsAreRendered(t *testing.T) {
	files, err := filepath.Glob("results/*.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readProcessors(files)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if document(all) != string(page) {
		t.Error("RESULTS.md is not made from the samples: go run ./bench/peers -render")
	}
	readme, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), summaryBegins+summary(all)+summaryEnds) {
		t.Error("The table of docs/performance.md is not made from the samples: go run ./bench/peers -render")
	}
}

// A driver's answers, as the Go side takes them.
func TestAnswers(t *testing.T) {
	datadriven.RunTest(t, "testdata/answers.txt", func(t *testing.T, d *datadriven.TestData) string {
		var asked bytes.Buffer
		answers := ""
		if d.Input != "" {
			answers = d.Input + "\n"
		}
		p := &driver{name: "peer", in: &asked, out: bufio.NewReader(strings.NewReader(answers))}
		var err error
		result := "ok"
		switch d.Cmd {
		case "open":
			err = p.open("sgemm", 2, []int64{3, 4, 5})
		case "time":
			var s float64
			s, err = p.sample(context.Background(), 7)
			result = fmt.Sprint(s)
		case "twice":
			p.check("out")
			err = p.check("out")
		}
		if err != nil {
			result = err.Error()
		}
		return asked.String() + result + "\n"
	})
}

// The C side of the protocol, by the driver that needs no library.
func TestProtocol(t *testing.T) {
	dir := t.TempDir()
	buildMemory(t, dir)
	floats := make([]byte, 4*70)
	for k := range 70 {
		binary.LittleEndian.PutUint32(floats[4*k:], uint32(k)<<20)
	}
	if err := os.WriteFile(filepath.Join(dir, "in"), floats, 0o600); err != nil {
		t.Fatal(err)
	}
	varying := regexp.MustCompile(`(seconds|version) .*`)
	datadriven.RunTest(t, "testdata/protocol.txt", func(t *testing.T, d *datadriven.TestData) string {
		cmd := exec.Command(filepath.Join(dir, "memory"))
		cmd.Dir, cmd.Env = dir, append(
			os.Environ(), "OMP_NUM_THREADS="+d.CmdArgs[0].String(),
		)
		cmd.Stdin = strings.NewReader(d.Input + "\n")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%s%v\n", out, err)
		}
		return varying.ReplaceAllString(string(out), "$1 …") + copied(filepath.Join(dir, "out"), floats)
	})
}

// copied says what a session left in a file, and takes it away.
func copied(file string, loaded []byte) string {
	got, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	os.Remove(file)
	if bytes.Equal(got, loaded) {
		return "the copy is what was loaded\n"
	}
	return fmt.Sprintf("the copy is other %d bytes\n", len(got))
}

func buildMemory(t *testing.T, dir string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	args := []string{
		"-O1", "-Wall", "-Werror", "-pthread", "-o",
		filepath.Join(dir, "memory"), "drivers/memory.c", "drivers/protocol.c", "-lm",
	}
	if runtime.GOARCH == "amd64" {
		args = append(args, "-march=native") // streaming stores
	}
	out, err := exec.Command(cc, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A whole run with the one driver that can be built everywhere, stopped and
// resumed between turns.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	buildMemory(t, dir)
	var out, status bytes.Buffer
	args := []string{
		"-quick", "-drivers", dir, "-raw", filepath.Join(dir, "raw.tsv"), "-table",
		filepath.Join(dir, "table.md"),
		"-only", "^add", "-budget", "100ms", "-try", "2",
	}
	if code := run(args, &out, &status); code != 0 {
		t.Fatalf("exit status %d\n%s", code, status.String())
	}
	for _, want := range []string{"scipy-openblas32 of PyPI", "onednn-devel of PyPI", "of the roof"} {
		if !strings.Contains(status.String(), want) {
			t.Errorf("status does not say %q:\n%s", want, status.String())
		}
	}
	if !strings.Contains(out.String(), "| add 512×1024 | 1 |") {
		t.Errorf("no table:\n%s", out.String())
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-only", "("}, {"extra"}, {"-rounds", "x"}, {"-threads"},
	} {
		var out, status bytes.Buffer
		if code := run(args, &out, &status); code != 2 || out.Len() > 0 {
			t.Errorf("%v: exit status %d, output %q", args, code, out.String())
		}
	}
}

// Samples of one processor are not followed by those of another, and a case that was
// measured with the present revision is not measured again.
func TestGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "raw.tsv")
	a := &arguments{raw: file}
	if r, err := a.earlier(); err != nil || r.machine != machine() {
		t.Errorf("without a file: %v, %v", r, err)
	}
	c := testCase{family: "add", dims: []int64{8, 8}}
	r := &results{machine: machine()}
	r.put(&caseResult{testCase: c, threads: 1, revision: "old"})
	if r.has(c, 1) {
		t.Error("a case of another revision counts")
	}
	r.put(&caseResult{testCase: c, threads: 1, revision: revision()})
	if !r.has(c, 1) || r.has(c, 2) || len(r.cases) != 1 {
		t.Errorf("%d cases", len(r.cases))
	}
	if err := r.writeFile(file); err != nil {
		t.Fatal(err)
	}
	if r, err := a.earlier(); err != nil || !r.has(c, 1) {
		t.Errorf("with the file: %v, %v", r, err)
	}
	r.machine = "another"
	r.writeFile(file)
	if _, err := a.earlier(); err == nil {
		t.Error("samples of another processor are accepted")
	}
}

// A library chooses its kernels itself, whatever the environment says.
func TestEnvironment(t *testing.T) {
	got := environment([]string{
		"PATH=/bin", "OPENBLAS_CORETYPE=Haswell", "OPENBLAS_L2_SIZE=512",
		"MKL_ENABLE_INSTRUCTIONS=AVX2", "ONEDNN_MAX_CPU_ISA=AVX2", "HOME=/",
	})
	if want := []string{"PATH=/bin", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

// A driver that does not answer in time is ended, and started again for the next case.
func TestLateAnswer(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nread hello; echo version none; read text; exec sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "tvm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSession(options{folder: dir}, 1, dir, io.Discard)
	defer s.close()
	d := s.driver("tvm")
	if d == nil {
		t.Skip("no shell")
	}
	d.patience = 10 * time.Millisecond
	if err := d.tell("case.hlo"); !errors.Is(err, errTooLong) {
		t.Errorf("error = %v, want %v", err, errTooLong)
	}
	if again := s.driver("tvm"); again == nil || again == d || again.broken != nil {
		t.Errorf("the driver was not started again: %+v", again)
	}
}

// All competitors of a round have the same processors, and rounds use all of them.
func TestInTurn(t *testing.T) {
	usable := []int{2, 5, 7}
	for round, want := range [][]int{{2, 5}, {5, 7}, {7, 2}, {2, 5}} {
		if got := inTurn(usable, 2, round); !slices.Equal(got, want) {
			t.Errorf("round %d is on processors %v, want %v", round, got, want)
		}
	}
}
