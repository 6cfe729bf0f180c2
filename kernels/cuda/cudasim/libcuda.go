//go:build cuda && cudasim && cgo && linux

package cudasim

/*
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The launch description, as the driver's interface lays it out.
typedef struct { unsigned id; char pad[4]; unsigned x, y, z; char rest[52]; } launchAttribute;
typedef struct {
	unsigned grid[3], block[3], shared;
	void *stream;
	launchAttribute *attributes;
	unsigned count;
} launchConfig;
*/
import "C"

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The functions below are the driver's, under the names of their symbols; the
// CUDA Driver API says what each does. A pointer's target is set only where the
// result is 0.

// tilewright_cuda_absent is the reason for which there is no device, "" if
// there is one.
//
//export tilewright_cuda_absent
func tilewright_cuda_absent() *C.char {
	libcuda.Lock()
	defer libcuda.Unlock()
	if libcuda.device == nil {
		return word("no simulated GPU was started")
	}
	return word("")
}

// tilewright_cuda_simulated tells kernels/cuda that no GPU is behind the
// driver.
//
//export tilewright_cuda_simulated
func tilewright_cuda_simulated() C.int { return 1 }

// cuInit succeeds always: gorgonia.org/cu calls it before main, and thus before
// any Start.
//
//export cuInit
func cuInit(flags C.uint) C.int { return 0 }

// cuDriverGetVersion is the version of the interface that is implemented.
//
//export cuDriverGetVersion
func cuDriverGetVersion(version *C.int) C.int {
	*version = 12000
	return 0
}

// cuGetErrorName is the name of a result.
//
//export cuGetErrorName
func cuGetErrorName(code C.int, s **C.char) C.int {
	return describe(code, s, 0)
}

// cuGetErrorString is the description of a result, with the detail of the
// latest such error.
//
//export cuGetErrorString
func cuGetErrorString(code C.int, s **C.char) C.int {
	return describe(code, s, 1)
}

// describe is the name (0) or the description (1) of a result.
func describe(code C.int, s **C.char, which int) C.int {
	libcuda.Lock()
	defer libcuda.Unlock()
	text := results[int(code)][which]
	if text == "" {
		return invalidValue
	}
	d := libcuda.device
	if which == 1 && d != nil &&
		d.detail[int(code)] != "" {
		text += ": " + d.detail[int(code)]
	}
	*s = word(text)
	return 0
}

// cuDeviceGetCount is 1: there is one device.
//
//export cuDeviceGetCount
func cuDeviceGetCount(n *C.int) C.int {
	return call("cuDeviceGetCount", func(*cudaDevice) int {
		*n = 1
		return 0
	})
}

// cuDeviceGet returns device 0.
//
//export cuDeviceGet
func cuDeviceGet(id *C.int, ordinal C.int) C.int {
	return call("cuDeviceGet", func(*cudaDevice) int {
		if ordinal != 0 {
			return invalidDevice
		}
		*id = 0
		return 0
	})
}

// cuDeviceGetName copies the name as a C string, cut to n bytes.
//
//export cuDeviceGetName
func cuDeviceGetName(name *C.char, n, id C.int) C.int {
	return call("cuDeviceGetName", func(d *cudaDevice) int {
		to := unsafe.Slice(
			(*byte)(unsafe.Pointer(name)), int(n),
		)
		to[copy(to[:n-1], d.Spec().Name+" (simulated)")] = 0
		return 0
	})
}

// cuDeviceGetUuid_v2 counts from 0: the bytes 00 01 02 … 0f.
//
//export cuDeviceGetUuid_v2
func cuDeviceGetUuid_v2(uuid *C.char, id C.int) C.int {
	return call("cuDeviceGetUuid", func(d *cudaDevice) int {
		to := unsafe.Slice((*byte)(unsafe.Pointer(uuid)), 16)
		for k := range to {
			to[k] = byte(k)
		}
		return 0
	})
}

// cuDeviceTotalMem_v2 is the size of the device's memory.
//
//export cuDeviceTotalMem_v2
func cuDeviceTotalMem_v2(bytes *C.size_t, id C.int) C.int {
	return call("cuDeviceTotalMem", func(d *cudaDevice) int {
		*bytes = C.size_t(d.Spec().Memory)
		return 0
	})
}

// cuDeviceGetAttribute is an attribute that kernels/cuda asks for; others are
// invalid.
//
//export cuDeviceGetAttribute
func cuDeviceGetAttribute(value *C.int, attribute, id C.int) C.int {
	return call("cuDeviceGetAttribute", func(d *cudaDevice) int {
		v, known := attributes(d.Spec())[int(attribute)]
		if !known {
			return invalidValue
		}
		*value = C.int(v)
		return 0
	})
}

// attributes are the values of CUdevice_attribute for a device. Those of the
// memory are of a bus that gives its bandwidth.
func attributes(s device.Spec) map[int]int {
	var major, minor int
	fmt.Sscanf(s.Target, "sm_%1d%1d", &major, &minor)
	clusters := 0
	if s.Cluster > 0 {
		clusters = 1
	}
	return map[int]int{
		1: s.BlockThreads, 12: s.BlockRegisters,
		13: int(s.Clock / 1e3), 16: s.SMs,
		36: int(s.Bandwidth / 2 / 512 / 1e3), 37: 4096,
		38: int(s.L2),
		39: s.Warps * device.WarpThreads, 75: major, 76: minor,
		81: s.SMShared, 82: s.Registers, 97: s.BlockShared,
		106: s.Blocks, 111: s.ReservedShared, 120: clusters,
	}
}

// cuDevicePrimaryCtxRetain counts a use of the context.
//
//export cuDevicePrimaryCtxRetain
func cuDevicePrimaryCtxRetain(ctx *unsafe.Pointer, id C.int) C.int {
	return call("cuDevicePrimaryCtxRetain", func(d *cudaDevice) int {
		d.contexts++
		// Any address that stays.
		*ctx = unsafe.Pointer(word("the primary context"))
		return 0
	})
}

// cuDevicePrimaryCtxRelease_v2 ends a use of the context.
//
//export cuDevicePrimaryCtxRelease_v2
func cuDevicePrimaryCtxRelease_v2(id C.int) C.int {
	return call("cuDevicePrimaryCtxRelease", func(d *cudaDevice) int {
		d.contexts--
		return 0
	})
}

// cuCtxSetCurrent has no effect: the context is the same on every thread.
//
//export cuCtxSetCurrent
func cuCtxSetCurrent(ctx unsafe.Pointer) C.int {
	return call("cuCtxSetCurrent", func(*cudaDevice) int { return 0 })
}

// cuMemAlloc_v2 allocates memory of the device.
//
//export cuMemAlloc_v2
func cuMemAlloc_v2(p *C.ulonglong, n C.size_t) C.int {
	return call("cuMemAlloc", func(d *cudaDevice) int {
		a, err := d.Alloc(int64(n))
		if err != nil {
			return d.explain(outOfMemory, err)
		}
		d.memory[a] = true
		*p = C.ulonglong(a)
		return 0
	})
}

// cuMemFree_v2 releases memory, which must be allocated.
//
//export cuMemFree_v2
func cuMemFree_v2(p C.ulonglong) C.int {
	return call("cuMemFree", func(d *cudaDevice) int {
		delete(d.memory, device.Address(p))
		return d.explain(
			invalidValue, d.Free(device.Address(p)),
		)
	})
}

// cuMemcpyHtoD_v2 waits for the queued work and copies to the device.
//
//export cuMemcpyHtoD_v2
func cuMemcpyHtoD_v2(to C.ulonglong, from unsafe.Pointer, n C.size_t) C.int {
	return waiting("cuMemcpyHtoD", func(d *cudaDevice) int {
		return d.explain(
			invalidValue,
			d.CopyIn(device.Address(to), unsafe.Slice(
				(*byte)(from), int(n),
			)),
		)
	})
}

// cuMemcpyDtoH_v2 waits for the queued work and copies from the device.
//
//export cuMemcpyDtoH_v2
func cuMemcpyDtoH_v2(to unsafe.Pointer, from C.ulonglong, n C.size_t) C.int {
	return waiting("cuMemcpyDtoH", func(d *cudaDevice) int {
		return d.explain(
			invalidValue,
			d.CopyOut(unsafe.Slice(
				(*byte)(to), int(n),
			), device.Address(from)),
		)
	})
}

// waiting executes a call that waits for all queued work: for ever, behind a
// kernel that does not end.
func waiting(name string, f func(d *cudaDevice) int) C.int {
	hung := false
	r := call(name, func(d *cudaDevice) int {
		for _, h := range d.handles {
			s, is := h.(*stream)
			if is && s.failed != 0 {
				return s.failed
			}
			hung = hung || is && s.hung
		}
		if hung {
			return 0
		}
		return f(d)
	})
	if hung {
		select {}
	}
	return r
}

// cuMemHostAlloc allocates memory of the host, which counts as page-locked.
//
//export cuMemHostAlloc
func cuMemHostAlloc(p *unsafe.Pointer, n C.size_t, flags C.uint) C.int {
	return call("cuMemHostAlloc", func(d *cudaDevice) int {
		*p = C.malloc(n)
		d.pinned++
		return 0
	})
}

// cuMemFreeHost releases page-locked memory.
//
//export cuMemFreeHost
func cuMemFreeHost(p unsafe.Pointer) C.int {
	return call("cuMemFreeHost", func(d *cudaDevice) int {
		C.free(p)
		d.pinned--
		return 0
	})
}

// cuMemcpyHtoDAsync_v2 queues a copy to the device.
//
//export cuMemcpyHtoDAsync_v2
func cuMemcpyHtoDAsync_v2(
	to C.ulonglong, from unsafe.Pointer,
	n C.size_t, s unsafe.Pointer,
) C.int {
	return queued("cuMemcpyHtoDAsync", s, func(d *cudaDevice) int {
		return d.explain(
			invalidValue,
			d.CopyIn(device.Address(to), unsafe.Slice(
				(*byte)(from), int(n),
			)),
		)
	})
}

// cuMemcpyDtoHAsync_v2 queues a copy from the device.
//
//export cuMemcpyDtoHAsync_v2
func cuMemcpyDtoHAsync_v2(
	to unsafe.Pointer, from C.ulonglong,
	n C.size_t, s unsafe.Pointer,
) C.int {
	return queued("cuMemcpyDtoHAsync", s, func(d *cudaDevice) int {
		return d.explain(
			invalidValue,
			d.CopyOut(unsafe.Slice(
				(*byte)(to), int(n),
			), device.Address(from)),
		)
	})
}

// queued executes a call in the order of a stream: at once, or never behind a
// kernel that does not end.
func queued(name string, p unsafe.Pointer, f func(d *cudaDevice) int) C.int {
	return with(name, p, func(d *cudaDevice, s *stream) int {
		if s.failed != 0 || s.hung {
			return s.failed
		}
		return f(d)
	})
}

// cuMemsetD8Async queues the filling of memory.
//
//export cuMemsetD8Async
func cuMemsetD8Async(
	to C.ulonglong, value C.uchar,
	n C.size_t, s unsafe.Pointer,
) C.int {
	return call("cuMemsetD8Async", func(d *cudaDevice) int {
		return d.explain(
			invalidValue,
			d.Fill(device.Address(to), byte(value), int64(n)),
		)
	})
}

// with executes a call on the object of a handle.
func with[T any](
	name string, p unsafe.Pointer,
	f func(d *cudaDevice, object T) int,
) C.int {
	return call(name, func(d *cudaDevice) int {
		object, is := d.handles[p].(T)
		if !is {
			return invalidHandle
		}
		return f(d, object)
	})
}

// jitOptions are those of cuModuleLoadDataEx that count here, as CUjit_option.
const (
	jitMaxRegisters = 0
	jitInfoLog      = 3
	jitErrorLog     = 5
)

// cuModuleLoadDataEx parses and checks PTX text, and writes the error to the
// log of the options.
//
//export cuModuleLoadDataEx
func cuModuleLoadDataEx(
	m *unsafe.Pointer, image unsafe.Pointer, n C.uint,
	options *C.int, values *unsafe.Pointer,
) C.int {
	set := map[int]uintptr{}
	for k := range int(n) {
		// Values are numbers or addresses, both as wide as a pointer.
		set[int(unsafe.Slice(options, int(n))[k])] = unsafe.Slice(
			(*uintptr)(unsafe.Pointer(values)), int(n),
		)[k]
	}
	text := C.GoString((*C.char)(image))
	load := func(d *cudaDevice) int {
		parsed, err := ptx.Parse("ptx", []byte(text))
		if err != nil {
			writeLog(set, jitErrorLog, err.Error())
			return invalidPTX
		}
		made, err := d.Load(context.Background(), text, device.LoadOptions{
			MaxRegisters: int(set[jitMaxRegisters]),
		})
		if err != nil {
			writeLog(set, jitErrorLog, err.Error())
			return invalidPTX
		}
		writeLog(set, jitInfoLog, d.AssemblerSays)
		*m = d.handle(&loaded{made, parsed})
		return 0
	}
	return callLogged("cuModuleLoadDataEx", load, func(log string) {
		writeLog(set, jitErrorLog, log)
	})
}

// writeLog writes the messages of the assembler to the buffer that an option names; its
// length is the next option.
func writeLog(set map[int]uintptr, log int, text string) {
	at := set[log]
	n := int(set[log+1])
	if at == 0 || n == 0 {
		return
	}
	// It came as a number.
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at))
	to := unsafe.Slice((*byte)(p), n)
	to[copy(to[:n-1], text)] = 0
}

// cuModuleUnload releases a module with its functions.
//
//export cuModuleUnload
func cuModuleUnload(m unsafe.Pointer) C.int {
	return with("cuModuleUnload", m, func(d *cudaDevice, l *loaded) int {
		for p, h := range d.handles {
			e, is := h.(*entry)
			if is && e.of == l {
				release[*entry](d, p)
			}
		}
		release[*loaded](d, m)
		return d.explain(invalidValue, l.Close())
	})
}

// cuModuleGetFunction looks up an entry of a module.
//
//export cuModuleGetFunction
func cuModuleGetFunction(f *unsafe.Pointer, m unsafe.Pointer, name *C.char) C.int {
	return with("cuModuleGetFunction", m, func(d *cudaDevice, l *loaded) int {
		made, err := l.Function(C.GoString(name))
		if err != nil {
			return d.explain(notFound, err)
		}
		*f = d.handle(&entry{
			Function: made,
			of:       l,
			params:   parameterBytes(l.text, C.GoString(name)),
			shared:   device.StaticShared - made.Resources().SharedBytes,
		})
		return 0
	})
}

// cuFuncGetAttribute is a property of a function as it was assembled.
//
//export cuFuncGetAttribute
func cuFuncGetAttribute(value *C.int, attribute C.int, f unsafe.Pointer) C.int {
	return with("cuFuncGetAttribute", f, func(d *cudaDevice, e *entry) int {
		r := e.Resources()
		v, known := map[C.int]int{
			0: max(r.MaxThreads, 1),
			1: r.SharedBytes,
			3: r.LocalBytes,
			4: r.Registers,
		}[attribute]
		if attribute == 0 && r.MaxThreads == 0 {
			v = d.Spec().BlockThreads
		}
		if !known {
			return invalidValue
		}
		*value = C.int(v)
		return 0
	})
}

// cuFuncSetAttribute permits dynamic shared memory.
//
//export cuFuncSetAttribute
func cuFuncSetAttribute(f unsafe.Pointer, attribute, value C.int) C.int {
	return with("cuFuncSetAttribute", f, func(d *cudaDevice, e *entry) int {
		if attribute != 8 ||
			int(value)+e.Resources().SharedBytes > d.Spec().BlockShared {
			return invalidValue
		}
		e.shared = int(value)
		return 0
	})
}

// cuLaunchKernel launches a kernel without clusters.
//
//export cuLaunchKernel
func cuLaunchKernel(
	f unsafe.Pointer,
	gx, gy, gz, bx, by, bz, shared C.uint,
	s unsafe.Pointer, params, extra *unsafe.Pointer,
) C.int {
	l := device.Launch{
		Grid:        dim3(gx, gy, gz),
		Block:       dim3(bx, by, bz),
		SharedBytes: int(shared),
	}
	return launch("cuLaunchKernel", f, s, l, params)
}

// cuLaunchKernelEx launches a kernel with attributes.
//
//export cuLaunchKernelEx
func cuLaunchKernelEx(
	config *C.launchConfig, f unsafe.Pointer, params, extra *unsafe.Pointer,
) C.int {
	l, ok := configured(config)
	if !ok {
		return notSupported
	}
	return launch("cuLaunchKernelEx", f, config.stream, l, params)
}

// cuOccupancyMaxActiveClusters is the number of clusters of a launch that the
// device holds at once.
//
//export cuOccupancyMaxActiveClusters
func cuOccupancyMaxActiveClusters(n *C.int, f unsafe.Pointer, config *C.launchConfig) C.int {
	return with("cuOccupancyMaxActiveClusters", f, func(d *cudaDevice, e *entry) int {
		l, ok := configured(config)
		if !ok || l.SharedBytes > e.shared {
			return invalidValue
		}
		l.Function = e.Function
		held, err := d.Clusters(l)
		if err != nil {
			return invalidValue
		}
		*n = C.int(held)
		return 0
	})
}

// configured is a launch without its function and arguments; clusters and
// programmatic stream serialization are the only attributes.
func configured(config *C.launchConfig) (l device.Launch, ok bool) {
	g, b := config.grid, config.block
	l = device.Launch{
		Grid:        dim3(g[0], g[1], g[2]),
		Block:       dim3(b[0], b[1], b[2]),
		SharedBytes: int(config.shared),
	}
	for _, a := range unsafe.Slice(config.attributes, int(config.count)) {
		switch a.id {
		case 4: // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
			l.Cluster = dim3(a.x, a.y, a.z)
		case 6: // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
			l.Dependent = a.x == 1
		default:
			return l, false
		}
	}
	return l, true
}

// dim3 converts dimensions from C.
func dim3(x, y, z C.uint) device.Dim3 {
	return device.Dim3{X: int(x), Y: int(y), Z: int(z)}
}

// launch executes a launch with the given parameters.
func launch(
	name string, f, s unsafe.Pointer,
	l device.Launch, params *unsafe.Pointer,
) C.int {
	return with(name, f, func(d *cudaDevice, e *entry) int {
		on, is := d.handles[s].(*stream)
		if !is {
			return invalidHandle
		}
		if l.SharedBytes > e.shared {
			return invalidValue // more than was asked for with cuFuncSetAttribute
		}
		l.Function = e.Function
		if l.Args = arguments(e.params, params); l.Args == nil {
			return invalidValue
		}
		return d.execute(on, l)
	})
}

// arguments reads the values that the parameters point to; nil for a size that no
// argument has.
func arguments(sizes []int, params *unsafe.Pointer) []device.Arg {
	all := make([]device.Arg, 0, len(sizes))
	for k, n := range sizes {
		b := unsafe.Slice(
			(*byte)(unsafe.Slice(params, len(sizes))[k]), n,
		)
		switch n {
		case 4:
			all = append(
				all, device.U32Arg(binary.LittleEndian.Uint32(b)),
			)
		case 8:
			all = append(
				all, device.U64Arg(binary.LittleEndian.Uint64(b)),
			)
		case len(device.TensorMap{}):
			all = append(all, device.TensorMapArg(device.TensorMap(b)))
		default:
			return nil
		}
	}
	return all
}

// cuStreamCreate makes a stream.
//
//export cuStreamCreate
func cuStreamCreate(s *unsafe.Pointer, flags C.uint) C.int {
	return call("cuStreamCreate", func(d *cudaDevice) int {
		*s = d.handle(&stream{})
		return 0
	})
}

// cuStreamDestroy_v2 releases a stream.
//
//export cuStreamDestroy_v2
func cuStreamDestroy_v2(s unsafe.Pointer) C.int {
	return call("cuStreamDestroy", func(d *cudaDevice) int {
		return release[*stream](d, s)
	})
}

// cuStreamQuery is the state of the queued work: finished, failed, or not ready
// for ever if a kernel hangs.
//
//export cuStreamQuery
func cuStreamQuery(s unsafe.Pointer) C.int {
	return with("cuStreamQuery", s, func(d *cudaDevice, on *stream) int {
		if on.hung {
			return notReady
		}
		return on.failed
	})
}

// cuStreamBeginCapture_v2 begins to record launches instead of running them.
//
//export cuStreamBeginCapture_v2
func cuStreamBeginCapture_v2(s unsafe.Pointer, mode C.int) C.int {
	return with("cuStreamBeginCapture", s, func(d *cudaDevice, on *stream) int {
		on.capturing = &recording{}
		return 0
	})
}

// cuStreamEndCapture returns the recorded launches as a graph.
//
//export cuStreamEndCapture
func cuStreamEndCapture(s unsafe.Pointer, graph *unsafe.Pointer) C.int {
	return with("cuStreamEndCapture", s, func(d *cudaDevice, on *stream) int {
		if on.capturing == nil {
			return invalidValue
		}
		*graph = d.handle(on.capturing)
		on.capturing = nil
		return 0
	})
}

// cuGraphInstantiateWithFlags makes an executable graph, which is a copy of the
// recording.
//
//export cuGraphInstantiateWithFlags
func cuGraphInstantiateWithFlags(exec *unsafe.Pointer, graph unsafe.Pointer, flags C.ulonglong) C.int {
	return with("cuGraphInstantiateWithFlags", graph, func(d *cudaDevice, r *recording) int {
		*exec = d.handle(&recording{r.launches})
		return 0
	})
}

// cuGraphLaunch executes the launches of a graph.
//
//export cuGraphLaunch
func cuGraphLaunch(exec, s unsafe.Pointer) C.int {
	return with("cuGraphLaunch", exec, func(d *cudaDevice, r *recording) int {
		on, is := d.handles[s].(*stream)
		if !is {
			return invalidHandle
		}
		for _, l := range r.launches {
			if code := d.execute(on, l); code != 0 {
				return code
			}
		}
		return 0
	})
}

// cuGraphDestroy releases a graph.
//
//export cuGraphDestroy
func cuGraphDestroy(graph unsafe.Pointer) C.int {
	return call("cuGraphDestroy", func(d *cudaDevice) int {
		return release[*recording](d, graph)
	})
}

// cuGraphExecDestroy releases an executable graph.
//
//export cuGraphExecDestroy
func cuGraphExecDestroy(exec unsafe.Pointer) C.int {
	return call("cuGraphExecDestroy", func(d *cudaDevice) int {
		return release[*recording](d, exec)
	})
}

// cuEventCreate makes an event.
//
//export cuEventCreate
func cuEventCreate(e *unsafe.Pointer, flags C.uint) C.int {
	return call("cuEventCreate", func(d *cudaDevice) int {
		*e = d.handle(&event{})
		return 0
	})
}

// cuEventDestroy_v2 releases an event.
//
//export cuEventDestroy_v2
func cuEventDestroy_v2(e unsafe.Pointer) C.int {
	return call("cuEventDestroy", func(d *cudaDevice) int {
		return release[*event](d, e)
	})
}

// cuEventRecord notes how many kernels have run on the stream.
//
//export cuEventRecord
func cuEventRecord(e, s unsafe.Pointer) C.int {
	return with("cuEventRecord", e, func(d *cudaDevice, at *event) int {
		on, is := d.handles[s].(*stream)
		if !is {
			return invalidHandle
		}
		at.kernels = on.kernels
		return 0
	})
}

// cuEventElapsedTime is Options.Milliseconds for each kernel between two
// events.
//
//export cuEventElapsedTime
func cuEventElapsedTime(ms *C.float, from, to unsafe.Pointer) C.int {
	return with("cuEventElapsedTime", from, func(d *cudaDevice, begin *event) int {
		end, is := d.handles[to].(*event)
		switch {
		case !is:
			return invalidHandle
		case d.Milliseconds == 0:
			return notSupported
		}
		*ms = C.float(d.Milliseconds * float64(end.kernels-begin.kernels))
		return 0
	})
}

// cuTensorMapEncodeTiled encodes a tensor map for the device.
//
//export cuTensorMapEncodeTiled
func cuTensorMapEncodeTiled(
	m unsafe.Pointer, kind C.int, rank C.uint,
	base unsafe.Pointer, dims, strides *C.ulonglong,
	box, elementStrides *C.uint,
	interleave, swizzle, promotion, fill C.int,
) C.int {
	return call("cuTensorMapEncodeTiled", func(d *cudaDevice) int {
		types := map[C.int]hlo.DType{
			0: hlo.U8,
			1: hlo.U16,
			2: hlo.U32,
			3: hlo.S32,
			4: hlo.U64,
			5: hlo.S64,
			6: hlo.F16,
			7: hlo.F32,
			8: hlo.F64,
			9: hlo.BF16,
			// CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
			11: hlo.F32,
		}
		n := int(rank)
		spec := device.TensorMapSpec{
			DType:   types[kind],
			TF32:    kind == 11,
			Base:    device.Address(uintptr(base)),
			Swizzle: []device.Swizzle{device.NoSwizzle, device.Swizzle32, device.Swizzle64, device.Swizzle128}[swizzle],
		}
		for k := range n {
			spec.Dims = append(
				spec.Dims,
				uint64(unsafe.Slice(dims, n)[k]),
			)
			spec.Box = append(
				spec.Box,
				uint32(unsafe.Slice(box, n)[k]),
			)
			if k > 0 {
				spec.Strides = append(
					spec.Strides,
					uint64(unsafe.Slice(strides, n-1)[k-1]),
				)
			}
		}
		encoded, err := d.EncodeTensorMap(spec)
		if err != nil {
			return d.explain(invalidValue, err)
		}
		copy(
			unsafe.Slice((*byte)(m), len(encoded)),
			encoded[:],
		)
		return 0
	})
}
