//go:build cuda && cgo && linux

package cuda

/*
#cgo LDFLAGS: -lcuda
#include <string.h>
#include <cuda.h>

// Only our own libcuda has it: it says why there is no driver.
extern const char *tilewright_cuda_absent(void) __attribute__((weak));

// Only the driver in Go has it: there is no GPU behind it.
extern int tilewright_cuda_simulated(void) __attribute__((weak));

static int simulated(void) { return tilewright_cuda_simulated != NULL; }

static const char *absent(void) {
	return tilewright_cuda_absent ? tilewright_cuda_absent() : "";
}

#if CUDA_VERSION >= 11080
// A launch in clusters where the x of cluster is not 0, which may begin before the launch
// before it has ended where it is dependent. There is room for two attributes.
static void configure(CUlaunchConfig *config, CUlaunchAttribute *attributes, const unsigned *grid, const unsigned *block, const unsigned *cluster, unsigned shared, int dependent) {
	CUlaunchAttribute *a = attributes;
	memset(attributes, 0, 2 * sizeof *attributes);
	memset(config, 0, sizeof *config);
	if (cluster[0] > 0) {
		a->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
		a->value.clusterDim.x = cluster[0];
		a->value.clusterDim.y = cluster[1];
		a->value.clusterDim.z = cluster[2];
		a++;
	}
	if (dependent) {
		a->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
		a->value.programmaticStreamSerializationAllowed = 1;
		a++;
	}
	config->gridDimX = grid[0], config->gridDimY = grid[1], config->gridDimZ = grid[2];
	config->blockDimX = block[0], config->blockDimY = block[1], config->blockDimZ = block[2];
	config->sharedMemBytes = shared;
	config->attrs = attributes;
	config->numAttrs = a - attributes;
}
#endif

// Launches with parameters of any size, with clusters where x > 0, and dependent on the
// launch before. The parameters are in bytes, each ending before the next one's offset.
static CUresult launch(void *f, const unsigned *grid, const unsigned *block, const unsigned *cluster, unsigned shared, int dependent,
                       void *stream, const char *bytes, size_t size, const size_t *offsets, size_t n) {
	// All a kernel may have before PTX 8.1.
	_Alignas(64) char copy[4096];
	void *params[512];
	if (size > sizeof copy || n > 512) return CUDA_ERROR_INVALID_VALUE;
	memcpy(copy, bytes, size);
	for (size_t k = 0; k < n; k++) params[k] = copy + offsets[k];
	if (cluster[0] == 0 && !dependent)
		return cuLaunchKernel((CUfunction)f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, (CUstream)stream, params, NULL);
#if CUDA_VERSION < 11080
	// Built with a toolkit that has no clusters and no dependent launches.
	return CUDA_ERROR_NOT_SUPPORTED;
#else
	CUlaunchAttribute attributes[2];
	CUlaunchConfig config;
	configure(&config, attributes, grid, block, cluster, shared, dependent);
	config.hStream = (CUstream)stream;
	return cuLaunchKernelEx(&config, (CUfunction)f, params, NULL);
#endif
}

// How many clusters of a launch the device holds at once.
static CUresult clusters(int *count, void *f, const unsigned *grid, const unsigned *block, const unsigned *cluster, unsigned shared) {
#if CUDA_VERSION < 11080
	return CUDA_ERROR_NOT_SUPPORTED;
#else
	CUlaunchAttribute attributes[2];
	CUlaunchConfig config;
	configure(&config, attributes, grid, block, cluster, shared, 0);
	return cuOccupancyMaxActiveClusters(count, (CUfunction)f, &config);
#endif
}

// The UUID of the MIG slice where the device is one, as opposed to cuDeviceGetUuid.
static CUresult uuid(int device, char *out) {
	CUuuid id;
	CUresult r = cuDeviceGetUuid_v2(&id, (CUdevice)device);
	if (r == CUDA_SUCCESS) memcpy(out, id.bytes, sizeof id.bytes);
	return r;
}

static CUresult hostAlloc(void **p, size_t n) { return cuMemHostAlloc(p, n, 0); }

static CUresult allowShared(void *f, int bytes) {
	return cuFuncSetAttribute((CUfunction)f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

static CUresult beginCapture(void *stream) {
	return cuStreamBeginCapture((CUstream)stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

// Ends the capture and makes a graph that can be launched; NULL where it cannot.
static CUresult endCapture(void *stream, void **exec) {
	CUgraph graph = NULL;
	CUgraphExec made = NULL;
	CUresult r = cuStreamEndCapture((CUstream)stream, &graph);
	if (r == CUDA_SUCCESS) r = cuGraphInstantiateWithFlags(&made, graph, 0);
	if (graph) cuGraphDestroy(graph);
	*exec = made;
	return r;
}

static CUresult launchGraph(void *exec, void *stream) { return cuGraphLaunch((CUgraphExec)exec, (CUstream)stream); }
static CUresult destroyGraph(void *exec) { return cuGraphExecDestroy((CUgraphExec)exec); }

static CUresult encodeTiled(char *out, int type, unsigned rank, unsigned long long base, const uint64_t *dims,
                            const uint64_t *strides, const uint32_t *box, int swizzle) {
#if CUDA_VERSION < 12000
	// Built with a toolkit that has no tensor maps.
	return CUDA_ERROR_NOT_SUPPORTED;
#else
	// Aligned to 64 bytes.
	CUtensorMap map;
	cuuint32_t ones[5] = {1, 1, 1, 1, 1};
	CUresult r = cuTensorMapEncodeTiled(&map, (CUtensorMapDataType)type, rank, (void *)(uintptr_t)base, (const cuuint64_t *)dims,
		(const cuuint64_t *)strides, (const cuuint32_t *)box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle,
		CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (r == CUDA_SUCCESS) memcpy(out, &map, sizeof map);
	return r;
#endif
}

static const char *errorName(int code) {
	const char *s = NULL;
	cuGetErrorName((CUresult)code, &s);
	return s ? s : "";
}

static const char *errorText(int code) {
	const char *s = NULL;
	cuGetErrorString((CUresult)code, &s);
	return s ? s : "";
}
*/
import "C"

import (
	"reflect"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// The functions of this file are the driver calls that gorgonia.org/cu does not
// bind: launches with clusters, with tensor maps as parameters or dependent on the one
// before, shared memory above 48 KiB, pinned memory, graphs from captured streams, the encoding of
// tensor maps, and the driver's descriptions of its errors.

// absence is the reason for which there is no driver, or "".
func absence() string { return C.GoString(C.absent()) }

// withoutGPU reports whether the driver is the simulator of cudasim, which has no
// times.
func withoutGPU() bool { return C.simulated() != 0 }

// stickyErrors are the results after which the context is unusable (CUDA Driver
// API, CUresult: "the process must be terminated and relaunched").
var stickyErrors = []int{
	4,   // deinitialized
	214, // ECC uncorrectable
	220, // NVLink uncorrectable
	226, // ECC error that was contained
	700, // illegal address
	702, // launch timeout
	709, // context is destroyed
	710, // device assertion
	714, // hardware stack error
	715, // illegal instruction
	716, // misaligned address
	717, // invalid address space
	718, // invalid program counter
	719, // launch failed
	721, // launch failed because of tensor memory
	999, // unknown
}

// failure is the error of the result of a call; nil for success.
func failure(call string, code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	n := int(code)
	e := &device.Error{
		Call:   call,
		Code:   C.GoString(C.errorName(C.int(n))),
		Text:   C.GoString(C.errorText(C.int(n))),
		Sticky: slices.Contains(stickyErrors, n),
	}
	if e.Text == "" {
		e.Text = "failed"
	}
	return e
}

// failed is the error of a call of cu, whose errors are numbers of a type that is
// not exported.
func failed(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return failure(call, C.CUresult(v.Int()))
	}
	return &device.Error{
		Call: call,
		Text: err.Error(),
		Err:  err,
	}
}

// handle is the driver's handle in a cu.Function, a structure of one pointer.
func handle(f cu.Function) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f))
}

// uuid is the UUID of a device, or of the MIG slice that it is.
func uuid(d cu.Device) (id [16]byte, err error) {
	err = failure(
		"cuDeviceGetUuid",
		C.uuid(C.int(d), (*C.char)(unsafe.Pointer(&id[0]))),
	)
	return id, err
}

// streamHandle is the driver's handle of a stream.
func streamHandle(s cu.Stream) unsafe.Pointer {
	return unsafe.Pointer(s.C())
}

// hostAlloc allocates n bytes of page-locked memory of the host, which
// cu.MemFreeHost releases.
func hostAlloc(n int) (p unsafe.Pointer, err error) {
	err = failure(
		"cuMemHostAlloc", C.hostAlloc(&p, C.size_t(n)),
	)
	return p, err
}

// allowShared raises the limit of a function's dynamic shared memory.
func allowShared(f cu.Function, bytes int) error {
	return failure(
		"cuFuncSetAttribute",
		C.allowShared(handle(f), C.int(bytes)),
	)
}

// launchAny launches a kernel with clusters, with parameters of more than 8 bytes or
// dependent on the launch before, which cu does not support. The parameters are laid out in one array,
// each at a multiple of its alignment.
func launchAny(f cu.Function, l device.Launch, s cu.Stream) error {
	var bytes []byte
	offsets := make([]C.size_t, 0, len(l.Args)+1)
	for _, a := range l.Args {
		for len(bytes)%a.Align() != 0 {
			bytes = append(bytes, 0)
		}
		offsets = append(offsets, C.size_t(len(bytes)))
		bytes = a.AppendTo(bytes)
	}
	n := len(offsets)
	// C takes the address of the first element: neither array may be empty.
	bytes = append(bytes, 0)
	offsets = append(offsets, 0)
	grid := cells(l.Grid.Full())
	block := cells(l.Block.Full())
	cluster := [3]C.uint{}
	if l.Cluster != (device.Dim3{}) {
		cluster = cells(l.Cluster.Full())
	}
	dependent := C.int(0)
	if l.Dependent {
		dependent = 1
	}
	return failure(
		"cuLaunchKernelEx",
		C.launch(
			handle(f), &grid[0],
			&block[0], &cluster[0],
			C.uint(l.SharedBytes), dependent, streamHandle(s),
			(*C.char)(unsafe.Pointer(&bytes[0])),
			C.size_t(len(bytes)-1),
			&offsets[0], C.size_t(n),
		),
	)
}

// clusters is the number of clusters of a launch that are resident at once.
func clusters(f cu.Function, l device.Launch) (int, error) {
	var n C.int
	grid := cells(l.Grid.Full())
	block := cells(l.Block.Full())
	cluster := cells(l.Cluster.Full())
	err := failure(
		"cuOccupancyMaxActiveClusters",
		C.clusters(
			&n, handle(f), &grid[0],
			&block[0], &cluster[0],
			C.uint(l.SharedBytes),
		),
	)
	return int(n), err
}

// cells converts dimensions to C.
func cells(d device.Dim3) [3]C.uint {
	return [3]C.uint{
		C.uint(d.X),
		C.uint(d.Y),
		C.uint(d.Z),
	}
}

// graph is a captured stream that can be launched again.
type graph struct{ exec unsafe.Pointer }

// capture records what launches queue on s instead of running it.
func capture(s cu.Stream, launches func() error) (graph, error) {
	if err := failure("cuStreamBeginCapture", C.beginCapture(streamHandle(s))); err != nil {
		return graph{}, err
	}
	err := launches()
	var g graph
	ended := failure(
		"cuGraphInstantiate", C.endCapture(streamHandle(s), &g.exec),
	)
	if err == nil {
		err = ended
	}
	if err != nil {
		g.destroy()
		return graph{}, err
	}
	return g, nil
}

// launch queues the graph on a stream.
func (g graph) launch(s cu.Stream) error {
	return failure(
		"cuGraphLaunch", C.launchGraph(g.exec, streamHandle(s)),
	)
}

// destroy releases the graph.
func (g graph) destroy() {
	if g.exec != nil {
		C.destroyGraph(g.exec)
	}
}

// tensorTypes are the values of CUtensorMapDataType, as numbers because toolkits
// before 12 have no names for them.
var tensorTypes = map[hlo.DType]C.int{
	hlo.S32:  3,
	hlo.S64:  5,
	hlo.F16:  6,
	hlo.F32:  7,
	hlo.F64:  8,
	hlo.BF16: 9,
}

// roundedToTF32 is CU_TENSOR_MAP_DATA_TYPE_TFLOAT32.
const roundedToTF32 C.int = 11

// unsignedTypes are the values for types that are only moved, by their bytes.
var unsignedTypes = map[int64]C.int{
	1: 0,
	2: 1,
	4: 2,
	8: 4,
}

// swizzles are the values of CUtensorMapSwizzle.
var swizzles = map[device.Swizzle]C.int{
	device.NoSwizzle:  0,
	device.Swizzle32:  1,
	device.Swizzle64:  2,
	device.Swizzle128: 3,
}

// encodeTiled encodes a tensor map by the driver. Elements out of bounds are
// zeros, and L2 fetches 128 bytes at a time.
func encodeTiled(spec device.TensorMapSpec) (device.TensorMap, error) {
	var m device.TensorMap
	kind, ok := tensorTypes[spec.DType]
	if !ok {
		// Types without arithmetic are moved as unsigned integers of their
		// size.
		kind = unsignedTypes[spec.DType.Size()]
	}
	if spec.TF32 {
		kind = roundedToTF32
	}
	dims := slices.Clone(spec.Dims)
	box := slices.Clone(spec.Box)
	strides := append(slices.Clone(spec.Strides), 0) // never empty
	err := failure(
		"cuTensorMapEncodeTiled",
		C.encodeTiled(
			(*C.char)(
				unsafe.Pointer(&m[0]),
			),
			kind, C.uint(len(dims)),
			C.ulonglong(spec.Base),
			(*C.uint64_t)(unsafe.Pointer(&dims[0])),
			(*C.uint64_t)(unsafe.Pointer(&strides[0])),
			(*C.uint32_t)(unsafe.Pointer(&box[0])),
			swizzles[spec.Swizzle],
		),
	)
	return m, err
}
