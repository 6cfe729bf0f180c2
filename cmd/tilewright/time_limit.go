package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A command ends in one of three ways before its work is done: -timeout, which every
// command has; a signal, where the command stores what it has measured; and the
// default action of a signal elsewhere. The first two end the context of the call.
// Code that does not look at it, the analysis of a large fusion or a kernel that
// hangs, is abandoned after a grace: the process ends around it.

// endingGrace is how long a command has to end once its context has: a kernel that
// hangs is abandoned before (check.HangGrace).
const endingGrace = 1500 * time.Millisecond

// errTimeout is the cause of a context that -timeout ended.
var errTimeout = errors.New("-timeout")

// errAbandoned ends a command that has not ended by itself.
var errAbandoned = errors.New("abandoned")

// An ending is how a call can be ended from outside.
type ending struct {
	// The value of -timeout.
	limit time.Duration
	// The context of all work of the call. It never ends before parse.
	ctx    context.Context
	cancel context.CancelFunc
	// Closed when the command has to be abandoned.
	overdue chan struct{}
	close   func()
}

// newEnding is that of a call whose flags are not parsed.
func newEnding() *ending {
	e := &ending{
		ctx:     context.Background(),
		cancel:  func() {},
		overdue: make(chan struct{}),
	}
	e.close = sync.OnceFunc(func() { close(e.overdue) })
	return e
}

// timeoutFlag defines -timeout.
func (c *call) timeoutFlag() {
	c.DurationVar(
		&c.limit, "timeout", 0,
		"end after this `time`, with exit status 4; what was stored before stays (0: no limit)",
	)
}

// start begins the time of -timeout.
func (e *ending) start() error {
	if e.limit < 0 {
		return usagef("-timeout %v: not less than 0", e.limit)
	}
	if e.limit > 0 {
		end := cmp.Or(firstProcess().began, time.Now()).Add(e.limit)
		e.ctx, e.cancel = context.WithDeadlineCause(e.ctx, end, errTimeout)
		e.abandonAfter(e.ctx)
	}
	return nil
}

// abandonAfter abandons the command when it has not ended a grace after ctx did.
func (e *ending) abandonAfter(ctx context.Context) {
	context.AfterFunc(ctx, func() { time.AfterFunc(endingGrace, e.close) })
}

// catchSignals makes signals end the context of the call, so that the command can
// store what it has. The second signal ends the process at once.
func (e *ending) catchSignals() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(e.ctx, interrupts()...)
	context.AfterFunc(ctx, stop)
	e.ctx = ctx
	e.abandonAfter(ctx)
	return ctx, stop
}

// interrupts are the signals that end a command with what was measured kept: also the
// end of a terminal, unless the program was started to survive that (nohup).
func interrupts() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// timedOut reports whether -timeout has ended the call.
func (e *ending) timedOut() bool { return context.Cause(e.ctx) == errTimeout }

// reason says what ended the call, for people.
func (e *ending) reason() string {
	if e.timedOut() {
		return fmt.Sprintf("ended by -timeout %v", e.limit)
	}
	return "interrupted"
}

// A panicError is a panic of a command, with the stack of its goroutine.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("internal error: %v\nThis is a bug in tilewright: please report it with the input that caused it.\n\n%s", e.value, e.stack)
}

// work runs the command until it ends or has to be abandoned.
func (c *call) work() error {
	defer func() { c.cancel() }()
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- &panicError{p, debug.Stack()}
			}
		}()
		ended <- c.command.run(c)
	}()
	select {
	case err := <-ended:
		return err
	case <-c.overdue:
		return errAbandoned
	}
}

// endedStatus is the exit status of a command that was ended from outside.
func (e *ending) endedStatus() int {
	if e.timedOut() {
		return exitTimeout
	}
	return exitBad
}

// A kernel that hangs in this process cannot be stopped, but the process can be
// replaced (execve), which ends all of its threads: the new one has the same
// number, arguments and streams, and goes on where the stored samples end.

// restartVariable tells a process that replaces another how many there were, and when
// the first began, in nanoseconds since 1970.
const restartVariable = "TILEWRIGHT_RESTARTED"

// maxRestarts bounds the plans of a command that may hang.
const maxRestarts = 16

// A lineage is what a process knows of those that it has replaced.
type lineage struct {
	restarts int
	began    time.Time // zero where there were none
}

// firstProcess reads the lineage of this process.
func firstProcess() (l lineage) {
	count, nanoseconds, _ := strings.Cut(os.Getenv(restartVariable), ":")
	n, err := strconv.Atoi(count)
	at, err2 := strconv.ParseInt(nanoseconds, 10, 64)
	if err != nil || err2 != nil {
		return l
	}
	return lineage{n, time.Unix(0, at)}
}

// next is the environment of a process that replaces this one. began is when the
// command began, if this is the first process. A variable that is there twice
// would keep its first value.
func (l lineage) next(environ []string, began time.Time) []string {
	if !l.began.IsZero() {
		began = l.began
	}
	environ = slices.DeleteFunc(slices.Clone(environ), func(s string) bool {
		return strings.HasPrefix(s, restartVariable+"=")
	})
	return append(environ, fmt.Sprintf("%s=%d:%d", restartVariable, l.restarts+1, began.UnixNano()))
}
