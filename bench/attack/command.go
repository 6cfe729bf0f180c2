//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// smallFusion is a fusion that is tuned in no time, and otherFusion another one.
const (
	smallFusion = "testdata/hlo/row_reduce.hlo"
	otherFusion = "testdata/hlo/softmax.hlo"
)

// Limits of a command that is fed something that it should refuse.
const (
	maxCommandTime   = time.Minute // wall time, on a loaded machine
	maxCommandMemory = 1 << 20     // KB that are resident
	maxMessage       = 4 << 10     // bytes that are kept of what it says
)

// An outcome is how a command ended.
type outcome struct {
	// The exit status: 0 done, 1 an error, 2 wrong usage, 3 a lookup that finds
	// nothing, -1 ended by a signal.
	code int
	// The beginnings of what it wrote to the standard output and error.
	out, err string
	// The most memory that was resident, in KB, and the processor time.
	memory  int64
	seconds float64
	// It did not end within maxCommandTime and was killed.
	timedOut bool
	// The command did not start at all.
	couldStart error
}

// tilewright runs the program with a time limit.
func (s *session) tilewright(args ...string) outcome {
	return s.shell(`exec "$@"`, args...)
}

// shell runs a script whose arguments are the program and args. The process group
// is the command's own, so that after the time limit what it has started ends with
// it.
func (s *session) shell(script string, args ...string) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), maxCommandTime)
	defer cancel()
	all := append([]string{"-c", script, "sh", s.program}, args...)
	cmd := exec.CommandContext(ctx, "sh", all...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, complaint strings.Builder
	cmd.Stdout = &limitedWriter{&out, maxMessage}
	cmd.Stderr = &limitedWriter{&complaint, maxMessage}
	err := cmd.Run()
	o := outcome{out: out.String(), err: complaint.String(), timedOut: ctx.Err() != nil}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		o.couldStart = err
		return o
	}
	o.code = cmd.ProcessState.ExitCode()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.memory = u.Maxrss
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	o.seconds = used.Seconds()
	return o
}

// traces are signs of a program that did not expect what it met.
var traces = regexp.MustCompile(`goroutine \d|panic:|fatal error|SIG[A-Z]+:|internal error`)

// harm is what is wrong with an outcome whatever the command was asked to do.
func (o outcome) harm() string {
	switch {
	case o.couldStart != nil:
		return o.couldStart.Error()
	case o.timedOut:
		return fmt.Sprintf("it runs after %v", maxCommandTime)
	case traces.MatchString(o.err):
		return "it crashes: " + o.err
	case o.code < 0 || o.code > 3:
		return fmt.Sprintf("status %d: %s", o.code, o.err)
	case o.code%3 != 0 && strings.TrimSpace(o.err) == "":
		return fmt.Sprintf("status %d without a word", o.code)
	case o.memory > maxCommandMemory:
		return fmt.Sprintf("%d MB are resident", o.memory>>10)
	}
	return ""
}

// A store is a database whose content must survive what commands are told.
type store struct {
	// The file; the snapshot is beside it, as path.snapshot.
	path string
	// The number of records, record(0, 1) and so on.
	records int
}

// newStore makes a database with some records and the snapshot of it, beside it.
func (s *session) newStore(name string) (store, error) {
	d := store{
		filepath.Join(s.dir, name),
		storedRecords,
	}
	db := cache.Open(d.path)
	for n := range d.records {
		if _, err := db.Put(record(n, 1)); err != nil {
			return d, err
		}
	}
	_, err := db.Publish(d.path + ".snapshot")
	return d, err
}

// harm says if records of the database are gone.
func (d store) harm() string {
	db := cache.Open(d.path)
	if _, err := db.Verify(); err != nil {
		return fmt.Sprintf("the database suffers: %v", err)
	}
	for n := range d.records {
		want := record(n, 1)
		if r, found, err := db.Get(want.Key); !found || err != nil || r.Plan != want.Plan {
			return fmt.Sprintf("record %d of the database: found is %t, its plan %q, %v", n, found, r.Plan, err)
		}
	}
	return ""
}
