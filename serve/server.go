package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile/hlo"
)

const (
	// maxLine bounds a request: the text of the largest modules is tens of megabytes.
	maxLine = 64 << 20
	// maxInFlight bounds the requests of one client that are being answered, and
	// maxBytesInFlight their lines; one line is taken whatever its length.
	maxInFlight      = 256
	maxBytesInFlight = 64 << 20
)

// errLong ends a stream with a line of more than maxLine bytes.
var errLong = fmt.Errorf("a line of more than %d MiB", maxLine>>20)

// A Server answers the requests of clients from one store.
type Server struct {
	// Store is open while the server answers.
	Store *query.Store
}

// Stream answers the lines of in on out until in ends or ctx does. Requests are
// answered at the same time, and responses come in the order in which they are done.
// The error is one of reading or writing; a line that is no request is answered by one.
func (s *Server) Stream(ctx context.Context, in io.Reader, out io.Writer) error {
	t := &stream{server: s, out: bufio.NewWriter(out)}
	t.room.L = &t.mu
	t.ctx, t.cancel = context.WithCancel(ctx)
	defer t.cancel()
	stop := context.AfterFunc(ctx, func() { t.end(ctx.Err()) })
	defer stop()
	err := t.read(bufio.NewReaderSize(in, 1<<16))
	t.running.Wait()
	return errors.Join(err, t.failed())
}

// A stream is one client. Its context ends with it, and so does the work on what it
// asked.
type stream struct {
	ctx     context.Context
	cancel  context.CancelFunc
	server  *Server
	running sync.WaitGroup

	mu    sync.Mutex // of what follows
	room  sync.Cond  // a request is done
	out   *bufio.Writer
	count int // requests in flight
	bytes int // of their lines
	err   error
}

// end makes the stream take no more requests.
func (t *stream) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.room.Broadcast()
}

// failed is the error that ended the stream.
func (t *stream) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// read answers every line.
func (t *stream) read(in *bufio.Reader) error {
	for {
		line, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 && t.enter(len(line)) {
			t.begin(line)
		}
		if err == io.EOF || t.failed() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// begin answers a line, here if that takes no longer than to start a goroutine: what
// is asked of a snapshot by fingerprint.
func (t *stream) begin(line []byte) {
	r, err := Parse(line)
	if err == nil && r.Op == "get" && t.server.Store.Instant() {
		t.answer(r, err, len(line))
		return
	}
	t.running.Go(func() { t.answer(r, err, len(line)) })
}

// readLine reads a line of at most maxLine bytes, in memory of its own.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLong
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// enter waits for room for a request; it is false once the stream has ended.
func (t *stream) enter(size int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.err == nil && t.count > 0 &&
		(t.count >= maxInFlight || t.bytes+size > maxBytesInFlight) {
		t.room.Wait()
	}
	t.count++
	t.bytes += size
	return t.err == nil
}

// answer answers a request, or the error of a line of a size that is none.
func (t *stream) answer(r Request, err error, size int) {
	resp := answerParsed(t.ctx, t.server.Store, r, err)
	text, err := Encode(resp)
	if err != nil {
		text, _ = Encode(Response{ID: resp.ID, Error: &Error{"internal", err.Error()}})
	}
	t.write(text, size)
}

// Encode is a value as a line of JSON.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// write writes a response.
func (t *stream) write(text []byte, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count--
	t.bytes -= size
	_, err := t.out.Write(text)
	if err == nil {
		err = t.out.Flush()
	}
	if err != nil && t.err == nil {
		t.err = err
		t.cancel() // nobody reads what else was asked
	}
	t.room.Broadcast()
}

// Listen answers clients on a Unix socket until ctx ends, and removes the socket then.
// A socket that nobody answers on is replaced; another file is not. Only the user of
// this process may connect.
func (s *Server) Listen(ctx context.Context, path string) error {
	l, err := listen(path)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var clients sync.WaitGroup
	defer clients.Wait()
	defer l.Close()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many open files: a client that leaves makes room
			time.Sleep(10 * time.Millisecond)
			continue
		}
		clients.Go(func() { s.client(ctx, c) })
	}
}

// client answers one connection. What ends it is of no interest to others.
func (s *Server) client(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	s.Stream(ctx, c, c)
}

// listen opens a socket that only the user may connect to.
func listen(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStale removes a socket that nobody answers on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("%s: another server answers there", path)
	}
	return os.Remove(path)
}

// named selects the fusion of a name; "" selects all.
func named(m *hlo.Module, name string) ([]*hlo.Computation, error) {
	all := m.Fusions()
	if name == "" {
		return all, nil
	}
	for _, c := range all {
		if c.Name == name {
			return []*hlo.Computation{c}, nil
		}
	}
	return nil, fmt.Errorf("there is no fusion %q", name)
}
