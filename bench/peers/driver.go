package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// drivers are the programs of drivers/: what each measures, and what it needs.
var drivers = []struct{ name, title, needs string }{
	{"openblas", "OpenBLAS", "apt-get install libopenblas-dev"},
	{"onednn", "oneDNN", "apt-get install libdnnl-dev"},
	{"memory", "the memory's roof", "apt-get install gcc libc6-dev"},
}

// A driver is a process that times another library, one command a line; see
// drivers/protocol.h. It is stopped whenever it is not its turn, so that no
// thread of its library spins through ours.
type driver struct {
	name, version string
	in            io.Writer
	out           *bufio.Reader
	process       *os.Process // nil in tests
	wait          func() error
	broken        error // the process is gone
}

var errDriverMissing = errors.New("not built: its library is not installed")

// start runs the driver of a folder with so many threads.
func start(folder, name string, threads int) (*driver, error) {
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, errDriverMissing
	}
	cmd := exec.Command(path)
	n := strconv.Itoa(threads)
	cmd.Env = append(
		os.Environ(), "OPENBLAS_NUM_THREADS="+n, "OMP_NUM_THREADS="+n, "OMP_DYNAMIC=false",
	)
	if name == "openblas" {
		cmd.Env = append(cmd.Env, "OMP_WAIT_POLICY=passive") // its two pools would spin against each other
	}
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

// launch starts cmd from a thread that lives until it has ended, which is what
// dieWithParent goes by.
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

// ask sends a command and returns the answer after the expected word.
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
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.broken = fmt.Errorf(
			"%s ended at %q: %w", d.name, fmt.Sprintf(format, args...), err,
		)
		return "", d.broken
	}
	word, rest, _ := strings.Cut(
		strings.TrimSuffix(line, "\n"), " ",
	)
	if word != want {
		return "", fmt.Errorf("%s: %s %s", d.name, word, rest)
	}
	return rest, nil
}

// open prepares an operation on sets of buffers.
func (d *driver) open(op string, sets int, dims []int64) error {
	_, err := d.ask(
		"ok", "open %s %d %s",
		op, sets,
		strings.Trim(fmt.Sprint(dims), "[]"),
	)
	return err
}

func (d *driver) load(input int, file string) error {
	_, err := d.ask("ok", "load %d %s", input, file)
	return err
}

func (d *driver) check(file string) error {
	_, err := d.ask("ok", "check %s", file)
	return err
}

// sample is the seconds of a run, the median of n.
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

// close ends the process.
func (d *driver) close() {
	if d.process == nil {
		return
	}
	resume(d.process)
	if c, ok := d.in.(io.Closer); ok {
		c.Close() // the end of its input ends it
	}
	t := time.AfterFunc(time.Second, func() {
		d.process.Kill()
	})
	d.wait()
	t.Stop()
}
