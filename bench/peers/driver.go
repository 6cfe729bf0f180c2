package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// drivers are the programs of the folder that bench/peers/install fills: what each of
// them measures, and what it is made of.
var drivers = []struct{ name, title, needs string }{
	{"openblas", "OpenBLAS", "scipy-openblas32 of PyPI"},
	{"mkl", "MKL", "mkl-devel of PyPI"},
	{"onednn", "oneDNN", "onednn-devel of PyPI"},
	{"xla", "XLA:CPU", "jax of PyPI"},
	{"torch", "torch, eager", "torch of PyPI"},
	{"inductor", "torch.compile", "torch of PyPI"},
	{"tvm", "TVM MetaSchedule", "apache-tvm of PyPI"},
	{"memory", "the memory's roof", "a C compiler"},
}

// A driver is a process that times another library. It reads commands and
// writes answers, one a line:
//
//	hello               version TEXT
//	text FILE           ok         the HLO of what is opened next
//	spend SECONDS       ok         how long to tune what is opened next
//	open OP SETS DIM…   ok N_IN    buffers for SETS runs, used in turn
//	load I FILE         ok         input I of every set, raw, as the case stores it
//	check FILE          ok         one run on the first set, and its outputs
//	time N              seconds S  the median of N runs
//	close               ok
//
// A driver answers "error TEXT" to what it cannot do. It is suspended whenever
// it has no command, so that no thread of its library disturbs the other
// competitors.
type driver struct {
	// The program, and the version of the library that it reports.
	name, version string
	// The pipes to the process.
	in  io.Writer
	out *bufio.Reader
	// The process; nil in tests.
	process *os.Process
	// Waits for the end of the process.
	wait func() error
	// How long an answer may take; 0 is longestAnswer.
	patience time.Duration
	// Why the process does not answer any more.
	broken error
}

// errDriverMissing is the error of a driver that was not built.
var errDriverMissing = errors.New("not built: its library is not installed")

// start runs the driver of a folder with some number of threads.
func start(folder, name string, threads int) (*driver, error) {
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, errDriverMissing
	}
	cmd := exec.Command(path)
	cmd.Env = append(environment(os.Environ()), keptMemory...)
	cmd.Env = append(cmd.Env, threadVariables(name, threads)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	wait, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	d := &driver{
		name:    name,
		in:      in,
		out:     bufio.NewReader(out),
		process: cmd.Process,
		wait:    wait,
	}
	if d.version, err = d.ask("version", "hello"); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// environment leaves out what would make a library take kernels of another processor, or
// other sizes of caches, than it finds itself.
func environment(variables []string) []string {
	return slices.DeleteFunc(variables, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}, name) ||
			strings.HasPrefix(name, "MKL_") || strings.HasPrefix(name, "ONEDNN_") || strings.HasPrefix(name, "DNNL_")
	})
}

// keptMemory has glibc keep what a library frees, on large pages, as our own buffers are:
// the first touch of pages is timed on neither side.
var keptMemory = []string{
	"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1099511627776", "MALLOC_ARENA_MAX=1",
	"GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
}

// threadVariables are what tells the libraries of a driver how many threads to use. A
// driver whose library has no such setting limits its own processors instead.
func threadVariables(name string, threads int) []string {
	n := strconv.Itoa(threads)
	all := []string{
		"OPENBLAS_NUM_THREADS=" + n, "MKL_NUM_THREADS=" + n, "OMP_NUM_THREADS=" + n,
		"TVM_NUM_THREADS=" + n, "NPROC=" + n, "OMP_DYNAMIC=false", "MKL_DYNAMIC=false",
	}
	if name == "openblas" {
		all = append(all, "OMP_WAIT_POLICY=passive") // its two pools would spin against each other
	}
	return all
}

// launch starts a command from an operating-system thread that lives until the
// command has ended: dieWithParent ends the command when that thread ends.
func launch(cmd *exec.Cmd) (wait func() error, err error) {
	dieWithParent(cmd)
	started := make(chan error)
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			ended <- cmd.Wait()
		}
	}()
	return func() error { return <-ended }, <-started
}

// ask sends a command and returns the text behind the expected first word of
// the answer. A driver that does not answer is broken, and further commands
// return the same error; one that answers something else goes on.
func (d *driver) ask(want, format string, args ...any) (string, error) {
	if d.broken != nil {
		return "", d.broken
	}
	resume(d.process)
	defer suspend(d.process)
	if _, err := fmt.Fprintf(d.in, format+"\n", args...); err != nil {
		d.broken = fmt.Errorf("%s: %w", d.name, err)
		return "", d.broken
	}
	line, err := d.line()
	if err != nil {
		d.broken = fmt.Errorf(
			"%s ended at %q: %w", d.name, fmt.Sprintf(format, args...), err,
		)
		return "", d.broken
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if word != want {
		return "", fmt.Errorf("%s: %s %s", d.name, word, rest)
	}
	return rest, nil
}

// longestAnswer is how long a driver may take for an answer.
const longestAnswer = 3 * time.Minute

// errTooLong is the error of a driver that has not answered in time, and was ended.
var errTooLong = errors.New("no answer in time")

// line reads an answer. A process that takes too long for it is killed: a candidate of a
// search may run for hours, and cannot be stopped from inside.
func (d *driver) line() (string, error) {
	limit := cmp.Or(d.patience, longestAnswer)
	var late atomic.Bool
	timer := time.AfterFunc(limit, func() {
		if late.Store(true); d.process != nil {
			d.process.Kill()
		}
	})
	defer timer.Stop()
	line, err := d.out.ReadString('\n')
	if err != nil && late.Load() {
		err = fmt.Errorf("%w: %v", errTooLong, limit)
	}
	return line, err
}

// lacks is a driver's answer to a case that it has no operation for.
const lacks = "not an operation of this driver"

// tell names the file with the HLO of the next case.
func (d *driver) tell(file string) error {
	_, err := d.ask("ok", "text %s", file)
	return err
}

// tunes says which driver tunes what it opens.
func (d *driver) tunes() bool { return d.name == "tvm" }

// spend says how long a driver that tunes may tune the next case. It is waited for five
// times as long, and 20 seconds, since it ends with a whole run of a candidate.
func (d *driver) spend(seconds float64) error {
	if !d.tunes() {
		return nil
	}
	d.patience = time.Duration((20 + 5*seconds) * float64(time.Second))
	_, err := d.ask("ok", "spend %g", seconds)
	return err
}

// open prepares an operation on several sets of buffers.
func (d *driver) open(op string, sets int, dims []int64) error {
	_, err := d.ask(
		"ok",
		"open %s %d %s", op, sets,
		strings.Trim(fmt.Sprint(dims), "[]"),
	)
	return err
}

// load fills an input from a file.
func (d *driver) load(input int, file string) error {
	_, err := d.ask("ok", "load %d %s", input, file)
	return err
}

// check runs the operation once and writes its output to a file.
func (d *driver) check(file string) error {
	_, err := d.ask("ok", "check %s", file)
	return err
}

// sample is the median seconds of n runs.
func (d *driver) sample(_ context.Context, n int) (float64, error) {
	text, err := d.ask("seconds", "time %d", n)
	if err != nil {
		return 0, err
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || s <= 0 {
		return 0, fmt.Errorf("%s: %q is not a time", d.name, text)
	}
	return s, nil
}

// close ends the process: by the end of its input, and after a second by force.
func (d *driver) close() {
	if d.process == nil {
		return
	}
	resume(d.process)
	if c, ok := d.in.(io.Closer); ok {
		c.Close() // the end of its input ends it
	}
	t := time.AfterFunc(time.Second, func() { d.process.Kill() })
	d.wait()
	t.Stop()
}
