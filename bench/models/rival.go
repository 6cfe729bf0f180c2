package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A rival is XLA in a Python process, which stays for all models (rival.py): one
// request a line, one answer a line. It compiles a file when that is first named,
// runs it once to warm up, and keeps it with its inputs until it is dropped. Its
// threads are XLA's own, one for each processor, and wait while ours run.
type rival struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// A request is a line that the rival reads: a file to run so many times, or one that
// is not needed any more, whose inputs are then freed.
type request struct {
	File string `json:"file"`
	Runs int    `json:"runs,omitempty"`
	Drop bool   `json:"drop,omitempty"`
}

// newRival starts the rival; nil where there is no Python of that name.
func newRival(ctx context.Context, python string) *rival {
	if _, err := os.Stat(python); err != nil {
		fmt.Fprintf(os.Stderr, "models: no JAX: %v (make models-corpus installs it)\n", err)
		return nil
	}
	c := exec.CommandContext(ctx, python, "bench/models/rival.py")
	c.Stderr = os.Stderr
	in, inErr := c.StdinPipe()
	out, outErr := c.StdoutPipe()
	if err := errors.Join(inErr, outErr, c.Start()); err != nil {
		fmt.Fprintf(os.Stderr, "models: %v\n", err)
		return nil
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &rival{c, in, lines}
}

// close ends the process.
func (r *rival) close() {
	if r != nil {
		r.in.Close()
		r.command.Wait()
	}
}

// ask times a file, or forgets it. An error is what XLA says of the file, or that
// its process has ended.
func (r *rival) ask(q request) ([]float64, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	if !r.out.Scan() {
		return nil, errors.Join(errors.New("XLA's process ended"), r.out.Err())
	}
	var answer struct {
		Seconds []float64
		Error   string
	}
	if err := json.Unmarshal(r.out.Bytes(), &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Seconds, nil
}
