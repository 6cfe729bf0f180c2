package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/serve"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// corpus are the fusions of testdata/hlo: products, convolutions, norms, attention,
// embeddings and moves, each as XLA has fused it.
func corpus() (all []*hlo.Computation, err error) {
	files, err := filepath.Glob("testdata/hlo/*.hlo")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := hlo.Parse(file, text)
		if err != nil {
			return nil, err
		}
		all = append(all, m.Fusions()...)
	}
	return all, err
}

// ofCorpus measures what is asked of each fusion, which no number of records changes.
func ofCorpus() error {
	all, err := corpus()
	if err != nil {
		return err
	}
	// A compiler has parsed its fusions.
	fingerprint := func(c *hlo.Computation) error {
		c.Fingerprint()
		return nil
	}
	err = slowest(row{what: "Go: fingerprint of a parsed fusion, p90", goal: "5 µs"}, all, 200, fingerprint)
	if err != nil {
		return err
	}
	s, err := emptySnapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	b := cpu.New()
	// From the parsed fusion to a plan: analysis, the cheapest plan, its price.
	predicted := func(c *hlo.Computation) error {
		_, err := s.Answer(context.Background(), c, b)
		if tuner.IsUnanswered(err) {
			err = nil // it says that there are no tiles
		}
		return err
	}
	return slowest(row{what: "Go: predicted plan, from a parsed fusion, p90", goal: "1 ms"}, all, 20, predicted)
}

// emptySnapshot is one without records: every answer is predicted. Its file is removed
// while it is mapped.
func emptySnapshot() (tuner.Snapshot, error) {
	folder, err := os.MkdirTemp("", "lookup")
	if err != nil {
		return tuner.Snapshot{}, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "snap")
	_, err = cache.Open(filepath.Join(folder, "none.db")).Publish(path)
	if err != nil {
		return tuner.Snapshot{}, err
	}
	return tuner.OpenSnapshot(path)
}

// slowest prints the time of the fusion that nine tenths of the others are faster than:
// of the least and of the median of so many calls for each. The least is nearest to what
// the code takes where other programs have the processor in turns.
func slowest(r row, all []*hlo.Computation, calls int, f func(*hlo.Computation) error) error {
	var least, median []float64
	for _, c := range all {
		var took []float64
		for range calls {
			begin := time.Now()
			err := f(c)
			if err != nil {
				return err
			}
			took = append(took, float64(time.Since(begin).Nanoseconds()))
		}
		slices.Sort(took)
		least = append(least, took[0])
		median = append(median, took[calls/2])
	}
	slices.Sort(least)
	slices.Sort(median)
	r.least = inNanoseconds(least[len(least)*9/10])
	r.median = inNanoseconds(median[len(median)*9/10])
	r.print(fmt.Sprintf("%d fusions", len(all)))
	return nil
}

// served measures hits that a server gives over a Unix socket, one after the other: the
// time of a round trip, which is that of a compiler that waits for its plan. Of a database
// the first question for each key is a transaction, and the others are remembered.
func served(path, what string, keys []cache.Key, n int) error {
	d := query.Device{Identity: kernels.Identity{Device: device, Backend: backend, Revision: codegen}}
	store, err := query.Open(path, d)
	if err != nil {
		return err
	}
	defer store.Close()
	here, there, err := socketPair()
	if err != nil {
		return err
	}
	defer here.Close()
	// The server is in this process: a response is a switch of goroutines away, and
	// one of another process a switch of processes.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		server := serve.Server{Store: store}
		server.Stream(ctx, there, there)
		there.Close()
	}()
	c := &client{out: here, in: bufio.NewReader(here), keys: keys[:min(len(keys), 1000)]}
	timed(row{what: "serve: a hit of " + what + ", over a socket", goal: "50 µs"}, n, 10, c.hit)
	return c.err
}

// socketPair are both ends of a connection.
func socketPair() (here, there net.Conn, err error) {
	folder, err := os.MkdirTemp("", "lookup")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	l, err := net.Listen("unix", filepath.Join(folder, "s"))
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	here, err = net.Dial("unix", l.Addr().String())
	if err == nil {
		there, err = l.Accept()
	}
	return here, there, err
}

// A client asks a server for a thousand keys in turns; err is the first error.
type client struct {
	out  net.Conn
	in   *bufio.Reader
	keys []cache.Key
	err  error
}

// hit asks for a key and waits for the answer. The request is written as a compiler in
// another language would, and the answer is not decoded: what a client does with it is
// its own.
func (c *client) hit(k int) {
	key := &c.keys[k%len(c.keys)]
	_, err := fmt.Fprintf(c.out, `{"id":1,"op":"get","fingerprint":"%x"}`+"\n", key.Fusion[:])
	if err == nil {
		_, err = c.in.ReadSlice('\n')
	}
	if err != nil && c.err == nil {
		c.err = err
	}
}
