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

// Options are what a test may choose.
type Options struct {
	Faults []Fault
	// Milliseconds is what an event pair measures for each kernel between
	// them, so that code that times can be tested. 0: events measure nothing,
	// CUDA_ERROR_NOT_SUPPORTED; a simulator's times are no GPU's.
	Milliseconds float64
}

// libcuda is the state behind the exported functions, which C gives no place
// to pass it through: one device a process.
var libcuda struct {
	sync.Mutex
	device *cudaDevice
	words  map[string]*C.char // handed out as static strings
}

type cudaDevice struct {
	device.Driver
	Options
	faults   faults
	contexts int
	pinned   int                    // arrays of the host
	handles  map[unsafe.Pointer]any // *loaded, *entry, *stream, *event, *recording
	memory   map[device.Address]bool
	detail   map[int]string // more words for a result
	lost     int            // the result of every call once the context is broken
}

type loaded struct {
	device.Module
	text *ptx.Module
}

type entry struct {
	device.Function
	of     *loaded
	params []int // bytes of each
	shared int   // dynamic bytes allowed
}

type stream struct {
	capturing *recording
	failed    int  // what the queued work ended with
	hung      bool // the queued work never ends
	kernels   int  // that ran
}

type event struct{ kernels int }

// A recording is a graph and a graph that can be launched.
type recording struct{ launches []device.Launch }

// Start puts a device behind libcuda: what d is, with faults. It ends the one
// before.
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

// Held says what has not been given back, "" for nothing.
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

// call runs one of the driver's functions under the lock, unless a fault or a
// broken context answers for it.
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

func (d *cudaDevice) note(code int) int {
	if broken(code) {
		d.lost = code
	}
	return code
}

// explain adds the words of err to a result.
func (d *cudaDevice) explain(code int, err error) int {
	if err == nil {
		return 0
	}
	d.detail[code] = err.Error()
	return code
}

// handle makes a pointer that C may keep; release ends it.
func (d *cudaDevice) handle(object any) unsafe.Pointer {
	p := C.malloc(1)
	d.handles[p] = object
	return p
}

// release is 0 and frees the handle p, or it is invalidHandle for a pointer that is no T.
func release[T any](d *cudaDevice, p unsafe.Pointer) int {
	if _, is := d.handles[p].(T); !is {
		return invalidHandle
	}
	delete(d.handles, p)
	C.free(p)
	return 0
}

// execute runs a launch, or records it. What goes wrong while a kernel runs is
// told by the next call that waits for it.
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

// parameterBytes is the size of each parameter of an entry, which C does not
// say with a launch.
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
