package device

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Child is a Driver in a process of its own. A kernel that hangs or faults ends that
// process and nothing else: a call that does not return in time is answered with
// SIGKILL, and the child is lost. Results and errors of the driver in the process are
// passed on unchanged. Requests and replies are gob values on the process's standard
// input and output.
type Child struct {
	command *exec.Cmd
	send    *gob.Encoder
	pipe    io.Closer
	replies chan reply
	// Stderr has the last output of the process, for errors.
	stderr  *tail
	spec    Spec
	options ChildOptions
	// Lost is the error of all further calls.
	lost  error
	ended sync.Once
}

// ChildOptions are how a child is started and how long its calls may take.
type ChildOptions struct {
	// Command is a process that calls Serve on its standard input and output.
	Command func() *exec.Cmd
	// Timeout bounds calls whose context has no deadline. 0 is 30 s.
	Timeout time.Duration
	// Grace is the time from a call's deadline until the process is killed, in which
	// it may still report the deadline itself. 0 is 500 ms.
	Grace time.Duration
}

// timeout is Timeout or its default.
func (o ChildOptions) timeout() time.Duration {
	return orElse(o.Timeout, 30*time.Second)
}

// grace is Grace or its default.
func (o ChildOptions) grace() time.Duration {
	return orElse(o.Grace, 500*time.Millisecond)
}

// orElse is d, or a default for 0.
func orElse(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}

// A request is one call of a Driver, a Module or a Function.
type request struct {
	Call     string
	Text     string
	Load     LoadOptions
	Module   int
	Address  Address
	Bytes    int64
	Data     []byte
	Value    byte
	Spec     TensorMapSpec
	Launches []wireLaunch
	// Burst has the launches before, of and after a burst.
	Burst   [3][]wireLaunch
	Replays int
	// Wait is the time until the call's deadline, from when the request is read.
	Wait time.Duration
}

// A reply has the results of a call.
type reply struct {
	Error    *wireError
	Sheet    Spec
	Module   int
	Function int
	Takes    Resources
	Address  Address
	Data     []byte
	Map      TensorMap
	Seconds  []float64
	Clusters int
}

// A wireLaunch is a Launch whose function is a number.
type wireLaunch struct {
	Function             int
	Grid, Block, Cluster Dim3
	SharedBytes          int
	Args                 []wireArg
	Dependent            bool
}

// A wireArg is an Arg with exported fields.
type wireArg struct {
	Kind argKind
	Bits uint64
	Map  *TensorMap
}

// A wireError is the text of an error, and which of the errors that callers
// distinguish it is.
type wireError struct {
	Text string
	// Driver is an *Error without its cause.
	Driver   *Error
	Untimed  bool
	Deadline bool
	Canceled bool
}

// toWire encodes an error.
func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{
		Text:     err.Error(),
		Untimed:  errors.Is(err, ErrUntimed),
		Deadline: errors.Is(err, context.DeadlineExceeded),
		Canceled: errors.Is(err, context.Canceled),
	}
	var e *Error
	if errors.As(err, &e) {
		plain := *e
		plain.Err = nil
		w.Driver = &plain
	}
	return w
}

// cause is the error of the context that an error wraps.
func (w *wireError) cause() error {
	switch {
	case w.Deadline:
		return context.DeadlineExceeded
	case w.Canceled:
		return context.Canceled
	}
	return nil
}

// error decodes an error.
func (w *wireError) error() error {
	switch {
	case w == nil:
		return nil
	case w.Untimed:
		return ErrUntimed
	case w.Driver != nil:
		w.Driver.Err = w.cause()
		return w.Driver
	}
	return &Error{Text: w.Text, Err: w.cause()}
}

// OpenChild starts a process and opens the driver in it.
func OpenChild(ctx context.Context, o ChildOptions) (*Child, error) {
	cmd := o.Command()
	said := &tail{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the process for the GPU does not start: %w", err)
	}
	c := &Child{
		command: cmd,
		send:    gob.NewEncoder(in),
		pipe:    in,
		replies: make(chan reply),
		stderr:  said,
		options: o,
	}
	go c.receive(gob.NewDecoder(out))
	r, err := c.call(ctx, request{Call: "open"})
	if err != nil {
		c.kill()
		return nil, err
	}
	c.spec = r.Sheet
	return c, nil
}

// receive forwards replies until the process ends.
func (c *Child) receive(from *gob.Decoder) {
	defer close(c.replies)
	for {
		var r reply
		if err := from.Decode(&r); err != nil {
			return
		}
		c.replies <- r
	}
}

// call sends a request and waits for the reply until the deadline of ctx, or for the
// options' timeout, and then for the grace period.
func (c *Child) call(ctx context.Context, q request) (reply, error) {
	if c.lost != nil {
		return reply{}, c.lost
	}
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	q.Wait = c.options.timeout()
	if end, has := ctx.Deadline(); has {
		q.Wait = time.Until(end)
	}
	late := time.NewTimer(q.Wait + c.options.grace())
	defer late.Stop()
	sent := make(chan error, 1)
	go func() { sent <- c.send.Encode(q) }() // a process that hangs does not read either
	canceled := ctx.Done()
	for {
		select {
		case err := <-sent:
			if err != nil {
				return reply{}, c.lose(q.Call, nil)
			}
			sent = nil
		case r, more := <-c.replies:
			if !more {
				return reply{}, c.lose(q.Call, nil)
			}
			err := r.Error.error()
			if IsSticky(err) {
				c.lost = err
			}
			return r, err
		case <-canceled:
			if ctx.Err() != context.DeadlineExceeded {
				return reply{}, c.lose(q.Call, ctx.Err())
			}
			canceled = nil // the process may say so itself
		case <-late.C:
			return reply{}, c.lose(q.Call, context.DeadlineExceeded)
		}
	}
}

// lose kills the process and makes all further calls fail. Without a cause the process
// has ended by itself.
func (c *Child) lose(call string, cause error) error {
	state := c.kill()
	e := &Error{
		Call:   call,
		Sticky: true,
		Err:    cause,
		Text:   "the process for the GPU ended: " + state,
	}
	if cause != nil {
		e.Text = "the process for the GPU was killed: " + cause.Error()
	}
	if e.Log = c.stderr.String(); e.Log != "" {
		e.Log = "it said: " + e.Log
	}
	c.lost = e
	return e
}

// kill ends the process and returns how it ended.
func (c *Child) kill() string {
	c.ended.Do(func() {
		c.command.Process.Kill()
		c.pipe.Close()
		go func() { // a reply that nobody waits for
			for range c.replies {
			}
		}()
		c.command.Wait()
	})
	return c.command.ProcessState.String()
}

// Close closes the driver in the process and ends the process.
func (c *Child) Close() error {
	var err error
	if c.lost == nil {
		_, err = c.call(
			context.Background(), request{Call: "close"},
		)
	}
	c.kill()
	c.lost = errors.New("the driver is closed")
	return err
}

// Spec describes the device.
func (c *Child) Spec() Spec { return c.spec }

// A childModule is a module in the process, by number.
type childModule struct {
	c  *Child
	id int
}

// A childFunction is a function in the process, by number.
type childFunction struct {
	c     *Child
	id    int
	takes Resources
}

// Load implements Driver.
func (c *Child) Load(ctx context.Context, text string, o LoadOptions) (Module, error) {
	r, err := c.call(ctx, request{
		Call: "load",
		Text: text,
		Load: o,
	})
	if err != nil {
		return nil, err
	}
	return &childModule{c, r.Module}, nil
}

// Function implements Module.
func (m *childModule) Function(name string) (Function, error) {
	r, err := m.c.call(context.Background(), request{
		Call:   "function",
		Module: m.id,
		Text:   name,
	})
	if err != nil {
		return nil, err
	}
	return &childFunction{m.c, r.Function, r.Takes}, nil
}

// Close implements Module.
func (m *childModule) Close() error {
	_, err := m.c.call(context.Background(), request{
		Call:   "unload",
		Module: m.id,
	})
	return err
}

// Resources implements Function.
func (f *childFunction) Resources() Resources { return f.takes }

// Alloc implements Driver.
func (c *Child) Alloc(n int64) (Address, error) {
	r, err := c.call(
		context.Background(), request{Call: "alloc", Bytes: n},
	)
	return r.Address, err
}

// Free implements Driver.
func (c *Child) Free(a Address) error {
	_, err := c.call(
		context.Background(), request{Call: "free", Address: a},
	)
	return err
}

// chunk bounds the bytes of one message.
const chunk = 16 << 20

// CopyIn implements Driver, a chunk at a time.
func (c *Child) CopyIn(to Address, from []byte) error {
	for len(from) > 0 {
		n := min(len(from), chunk)
		_, err := c.call(context.Background(), request{
			Call:    "copy in",
			Address: to,
			Data:    from[:n],
		})
		if err != nil {
			return err
		}
		from, to = from[n:], to+Address(n)
	}
	return nil
}

// CopyOut implements Driver, a chunk at a time.
func (c *Child) CopyOut(to []byte, from Address) error {
	for len(to) > 0 {
		n := min(len(to), chunk)
		r, err := c.call(context.Background(), request{
			Call:    "copy out",
			Address: from,
			Bytes:   int64(n),
		})
		if err != nil {
			return err
		}
		copy(to, r.Data)
		to, from = to[n:], from+Address(n)
	}
	return nil
}

// Fill implements Driver.
func (c *Child) Fill(to Address, value byte, n int64) error {
	_, err := c.call(context.Background(), request{
		Call:    "fill",
		Address: to,
		Value:   value,
		Bytes:   n,
	})
	return err
}

// EncodeTensorMap implements Driver.
func (c *Child) EncodeTensorMap(spec TensorMapSpec) (TensorMap, error) {
	r, err := c.call(
		context.Background(), request{Call: "tensor map", Spec: spec},
	)
	return r.Map, err
}

// Clusters implements Driver.
func (c *Child) Clusters(l Launch) (int, error) {
	all, err := c.wire([]Launch{l})
	if err != nil {
		return 0, err
	}
	r, err := c.call(
		context.Background(), request{Call: "clusters", Launches: all},
	)
	return r.Clusters, err
}

// Launch implements Driver.
func (c *Child) Launch(ctx context.Context, l Launch) error {
	all, err := c.wire([]Launch{l})
	if err != nil {
		return err
	}
	_, err = c.call(
		ctx, request{Call: "launch", Launches: all},
	)
	return err
}

// Sync implements Driver.
func (c *Child) Sync(ctx context.Context) error {
	_, err := c.call(ctx, request{Call: "sync"})
	return err
}

// Time implements Driver.
func (c *Child) Time(
	ctx context.Context, b Burst, replays int,
) ([]float64, error) {
	q := request{Call: "time", Replays: replays}
	for k, part := range [...][]Launch{b.Before, b.Launches, b.After} {
		var err error
		if q.Burst[k], err = c.wire(part); err != nil {
			return nil, err
		}
	}
	r, err := c.call(ctx, q)
	return r.Seconds, err
}

// wire encodes launches after checking them against the device.
func (c *Child) wire(launches []Launch) ([]wireLaunch, error) {
	all := make([]wireLaunch, len(launches))
	for k, l := range launches {
		if err := c.spec.Check(l); err != nil {
			return nil, err
		}
		f, ours := l.Function.(*childFunction)
		if !ours || f.c != c {
			return nil, errors.New("launch: a function of another driver")
		}
		w := wireLaunch{
			f.id, l.Grid, l.Block,
			l.Cluster, l.SharedBytes, nil,
			l.Dependent,
		}
		for _, a := range l.Args {
			w.Args = append(w.Args, wireArg{
				a.kind, a.bits, a.maps,
			})
		}
		all[k] = w
	}
	return all, nil
}

// A tail is a writer that keeps the last tailBytes bytes.
type tail struct {
	sync.Mutex
	buffer bytes.Buffer
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	t.buffer.Write(p)
	if over := t.buffer.Len() - tailBytes; over > 0 {
		t.buffer.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.Lock()
	defer t.Unlock()
	return strings.TrimSpace(t.buffer.String())
}
