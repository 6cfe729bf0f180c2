package device

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
)

// Serve is the other end of a Child: it opens a driver when it is asked to and
// executes calls on it until the input ends. Then it returns even if a call does not,
// so that no process with a kernel that hangs is left behind.
func Serve(
	open func(context.Context) (Driver, error),
	in io.Reader, out io.Writer,
) error {
	requests := make(chan request)
	ended := make(chan error, 1)
	done := make(chan error, 1)
	go func() {
		from := gob.NewDecoder(in)
		for {
			var q request
			if err := from.Decode(&q); err != nil {
				ended <- err
				return
			}
			requests <- q
		}
	}()
	go func() {
		s := &server{
			open:      open,
			modules:   map[int]Module{},
			functions: map[int]Function{},
		}
		to := gob.NewEncoder(out)
		for q := range requests {
			if err := to.Encode(s.answer(q)); err != nil {
				done <- err
				return
			}
		}
	}()
	select {
	case err := <-done:
		return err
	case err := <-ended:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// A server executes requests on a driver. Modules and functions are numbered.
type server struct {
	open      func(context.Context) (Driver, error)
	driver    Driver
	modules   map[int]Module
	functions map[int]Function
	// Last is the number of the latest module or function.
	last int
}

// answer executes a request; an error is part of the reply.
func (s *server) answer(q request) (r reply) {
	ctx, cancel := context.WithTimeout(context.Background(), q.Wait)
	defer cancel()
	if s.driver == nil && q.Call != "open" {
		r.Error = toWire(fmt.Errorf("%s before open", q.Call))
		return r
	}
	r.Error = toWire(s.do(ctx, q, &r))
	return r
}

// do executes a request and fills the reply.
func (s *server) do(ctx context.Context, q request, r *reply) (err error) {
	d := s.driver
	switch q.Call {
	case "open":
		if s.driver, err = s.open(ctx); err == nil {
			r.Sheet = s.driver.Spec()
		}
	case "close":
		return d.Close()
	case "load":
		return s.load(ctx, q, r)
	case "function":
		return s.function(q, r)
	case "unload":
		if m := s.modules[q.Module]; m != nil {
			delete(s.modules, q.Module)
			return m.Close()
		}
	case "alloc":
		r.Address, err = d.Alloc(q.Bytes)
	case "free":
		return d.Free(q.Address)
	case "copy in":
		return d.CopyIn(q.Address, q.Data)
	case "copy out":
		r.Data = make([]byte, q.Bytes)
		return d.CopyOut(r.Data, q.Address)
	case "fill":
		return d.Fill(q.Address, q.Value, q.Bytes)
	case "tensor map":
		r.Map, err = d.EncodeTensorMap(q.Spec)
	case "clusters":
		all, err := s.launches(q.Launches)
		if err != nil {
			return err
		}
		r.Clusters, err = d.Clusters(all[0])
		return err
	case "launch":
		all, err := s.launches(q.Launches)
		if err != nil {
			return err
		}
		return d.Launch(ctx, all[0])
	case "sync":
		return d.Sync(ctx)
	case "time":
		return s.time(ctx, q, r)
	default:
		return fmt.Errorf("no call %q", q.Call)
	}
	return err
}

// load assembles a module and numbers it.
func (s *server) load(ctx context.Context, q request, r *reply) error {
	m, err := s.driver.Load(ctx, q.Text, q.Load)
	if err != nil {
		return err
	}
	s.last++
	r.Module = s.last
	s.modules[s.last] = m
	return nil
}

// function finds a function of a module and numbers it.
func (s *server) function(q request, r *reply) error {
	m := s.modules[q.Module]
	if m == nil {
		return fmt.Errorf("no module %d", q.Module)
	}
	f, err := m.Function(q.Text)
	if err != nil {
		return err
	}
	s.last++
	r.Function, r.Takes = s.last, f.Resources()
	s.functions[s.last] = f
	return nil
}

// time times a burst.
func (s *server) time(ctx context.Context, q request, r *reply) (err error) {
	var parts [3][]Launch
	for k, part := range q.Burst {
		if parts[k], err = s.launches(part); err != nil {
			return err
		}
	}
	r.Seconds, err = s.driver.Time(
		ctx,
		Burst{parts[0], parts[1], parts[2]},
		q.Replays,
	)
	return err
}

// launches decodes launches.
func (s *server) launches(wire []wireLaunch) ([]Launch, error) {
	all := make([]Launch, len(wire))
	for k, w := range wire {
		f := s.functions[w.Function]
		if f == nil {
			return nil, fmt.Errorf("no function %d", w.Function)
		}
		all[k] = Launch{
			Function:    f,
			Grid:        w.Grid,
			Block:       w.Block,
			Cluster:     w.Cluster,
			SharedBytes: w.SharedBytes,
			Dependent:   w.Dependent,
		}
		for _, a := range w.Args {
			if a.Kind == argTensorMap && a.Map == nil {
				return nil, errors.New("a tensor map without bytes")
			}
			all[k].Args = append(all[k].Args, Arg{
				a.Kind, a.Bits, a.Map,
			})
		}
	}
	return all, nil
}
