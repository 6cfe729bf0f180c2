//go:build cuda && cudasim && cgo && linux

// Package cudasim is libcuda in Go: the functions of the CUDA driver that
// kernels/cuda calls, exported to C, with a device.Driver that needs no GPU behind
// them. A program that imports it runs the real backend, with the real
// gorgonia.org/cu, where there is no GPU, and can be given faults.
package cudasim

// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
)

// Options configure the simulated driver.
type Options struct {
	// Faults are the calls that fail.
	Faults []Fault
	// Milliseconds is what an event pair measures for each kernel between
	// them, so that code that times can be tested. 0: events measure nothing,
	// CUDA_ERROR_NOT_SUPPORTED; a simulator's times are no GPU's.
	Milliseconds float64
	// AssemblerSays is what the assembler's log of information has of every module.
	AssemblerSays string
}

// libcuda is the state behind the exported functions, which have no parameter for
// it: a process has one device.
var libcuda struct {
	sync.Mutex
	device *cudaDevice
	words  map[string]*C.char // handed out as static strings
}

// cudaDevice is the device behind the driver, and what was allocated on it.
type cudaDevice struct {
	device.Driver
	Options
	// faults counts calls and finds those that fail.
	faults faults
	// contexts is the number of retained contexts.
	contexts int
	// pinned is the number of page-locked arrays of the host.
	pinned int
	// handles maps the pointers that C holds to their objects: *loaded, *entry,
	// *stream, *event, *recording.
	handles map[unsafe.Pointer]any
	// memory holds the allocations.
	memory map[device.Address]bool
	// detail adds text to the description of a result.
	detail map[int]string
	// lost is the result of every call once the context is broken.
	lost int
}

// loaded is a module.
type loaded struct {
	device.Module
	text *ptx.Module
}

// entry is a function of a module.
type entry struct {
	device.Function
	of *loaded
	// params is the number of bytes of each parameter.
	params []int
	// shared is the permitted number of bytes of dynamic shared memory.
	shared int
}

// stream is a stream, whose work runs when it is queued.
type stream struct {
	// capturing is the graph that is being captured, if one is.
	capturing *recording
	// failed is the result of the queued work.
	failed int
	// hung is set if the queued work never ends.
	hung bool
	// kernels is the number of kernels that ran.
	kernels int
}

// event is the number of kernels that had run when it was recorded.
type event struct{ kernels int }

// recording is a captured graph and its executable form.
type recording struct{ launches []device.Launch }

// Start puts a device behind libcuda, with faults. It replaces the one before.
func Start(d device.Driver, o Options) {
	libcuda.Lock()
	defer libcuda.Unlock()
	libcuda.device = &cudaDevice{
		Driver:  d,
		Options: o,
		faults:  faults{table: o.Faults},
		handles: map[unsafe.Pointer]any{},
		memory:  map[device.Address]bool{},
		detail:  map[int]string{},
	}
}

// Held lists what has not been released, "" for nothing.
func Held() string {
	libcuda.Lock()
	defer libcuda.Unlock()
	d := libcuda.device
	counts := map[string]int{
		"allocations":   len(d.memory),
		"contexts":      d.contexts,
		"pinned arrays": d.pinned,
	}
	for _, h := range d.handles {
		switch h.(type) {
		case *loaded:
			counts["modules"]++
		case *entry:
			counts["functions"]++
		case *stream:
			counts["streams"]++
		case *event:
			counts["events"]++
		case *recording:
			counts["graphs"]++
		}
	}
	var held []string
	for _, what := range []string{"allocations", "modules", "functions", "streams", "events", "graphs", "contexts", "pinned arrays"} {
		if n := counts[what]; n != 0 {
			held = append(held, fmt.Sprintf("%d %s", n, what))
		}
	}
	return strings.Join(held, ", ")
}

// call executes one of the driver's functions under the lock, unless a fault or a
// broken context determines its result.
func call(name string, f func(d *cudaDevice) int) C.int {
	return callLogged(name, f, func(string) {})
}

// callLogged is call for a function whose faults have a log.
func callLogged(name string, f func(d *cudaDevice) int, log func(string)) C.int {
	libcuda.Lock()
	defer libcuda.Unlock()
	d := libcuda.device
	if d == nil {
		return notInitialized
	}
	if d.lost != 0 {
		return C.int(d.lost)
	}
	if fault, hit := d.faults.next(name); hit {
		log(fault.Log)
		return C.int(d.note(fault.Code))
	}
	return C.int(d.note(f(d)))
}

// note remembers a result that breaks the context.
func (d *cudaDevice) note(code int) int {
	if broken(code) {
		d.lost = code
	}
	return code
}

// explain adds the text of err to the description of a result.
func (d *cudaDevice) explain(code int, err error) int {
	if err == nil {
		return 0
	}
	d.detail[code] = err.Error()
	return code
}

// handle makes a pointer that C may keep until release.
func (d *cudaDevice) handle(object any) unsafe.Pointer {
	p := C.malloc(1)
	d.handles[p] = object
	return p
}

// release frees the handle p and returns 0; it returns invalidHandle for a
// pointer that is no T.
func release[T any](d *cudaDevice, p unsafe.Pointer) int {
	if _, is := d.handles[p].(T); !is {
		return invalidHandle
	}
	delete(d.handles, p)
	C.free(p)
	return 0
}

// execute runs a launch, or records it. An error of a running kernel is the
// result of the next call that waits for it, as on a GPU.
func (d *cudaDevice) execute(s *stream, l device.Launch) int {
	if s.capturing != nil {
		s.capturing.launches = append(s.capturing.launches, l)
		return 0
	}
	if s.hung || s.failed != 0 {
		return 0
	}
	s.kernels++
	if fault, hit := d.faults.next("kernel"); hit {
		s.hung = fault.Hang
		s.failed = fault.Code
		return 0
	}
	if err := d.Launch(context.Background(), l); err != nil {
		return d.explain(invalidValue, err)
	}
	s.failed = d.explain(
		launchFailed, d.Sync(context.Background()),
	)
	return 0
}

// parameterBytes is the size of each parameter of an entry, which a launch in C
// does not carry.
func parameterBytes(m *ptx.Module, name string) []int {
	var sizes []int
	for _, e := range m.Entries {
		if e.Name != name {
			continue
		}
		for _, p := range e.Params {
			sizes = append(sizes, p.Bytes())
		}
	}
	return sizes
}

// word is a C string that lives as long as the process.
func word(s string) *C.char {
	if libcuda.words == nil {
		libcuda.words = map[string]*C.char{}
	}
	if libcuda.words[s] == nil {
		libcuda.words[s] = C.CString(s)
	}
	return libcuda.words[s]
}
