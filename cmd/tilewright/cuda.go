//go:build cuda && cgo && linux

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cuda"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
)

// cudaDriver is the way to NVIDIA's GPUs in a build with the tag cuda.
func cudaDriver() driver {
	return driver{
		name:  "cuda",
		about: aboutCUDA + ", by number as cuda:0, cuda:1 …; just cuda is the first",
		open:  func() (kernels.Backend, error) { return openCUDA("0") },
		named: openCUDA,
	}
}

// openCUDA opens GPU number what in a process of its own, so that a kernel that
// hangs or faults ends that process and not this one.
func openCUDA(what string) (kernels.Backend, error) {
	if _, err := strconv.Atoi(what); err != nil {
		return nil, usagef("device cuda:%s: GPUs have numbers, from 0", what)
	}
	if err := startCUDA(); err != nil {
		return nil, err
	}
	if _, err := cuda.Count(); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := device.ChildOptions{
		Command: func() *exec.Cmd { return exec.Command(program, gpuProcessCommand.name, what) },
	}
	s, err := device.NewSession(context.Background(), func(ctx context.Context) (device.Driver, error) {
		return device.OpenChild(ctx, o)
	})
	if err != nil {
		return nil, err
	}
	return gpu.New(s), nil
}

// cudaCommands are the commands that only such a build has.
func cudaCommands() []command { return []command{gpuProcessCommand} }

// gpuProcessCommand is the process that openCUDA starts for a GPU; people do
// not call it.
var gpuProcessCommand = command{
	name: "gpu-process", args: "NUMBER", short: "drives a GPU for another process of this program, which starts it",
	long: "Reads calls of a GPU driver from standard input and writes what they return to standard output,\nin a form that changes with the program.",
	run:  runGPUProcess,
}

// runGPUProcess opens the GPU and serves requests on the standard streams.
func runGPUProcess(c *call) error {
	args, err := c.parse(1, 1)
	if err != nil {
		return err
	}
	ordinal, err := strconv.Atoi(args[0])
	if err != nil {
		return usagef("%q is not a number", args[0])
	}
	if err := startCUDA(); err != nil {
		return err
	}
	return device.Serve(
		func(context.Context) (device.Driver, error) { return cuda.Open(ordinal) },
		c.in,
		raw(c.out),
	)
}

// raw is what a printer writes to: the protocol of the child process is binary,
// and a printer would spell its control characters.
func raw(w io.Writer) io.Writer {
	if p, ok := w.(*printer); ok {
		return p.to
	}
	return w
}
