// Package device is the run-time system of the GPU backend. A Driver is one device
// and does single operations: it assembles PTX text, allocates, copies and
// launches. A Session runs whole executables on a driver, checks that they write
// nothing outside their arrays, times them, and opens the device again after a
// kernel has lost it. A Spec has the properties of a product that code generation
// depends on, also of products that are not present.
//
// The package knows nothing of fusions and plans.
package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Driver is one device with its memory and one queue of work: launches and copies
// take effect in the order in which they are called. It is used from one goroutine at
// a time. After an error that is Sticky every call but Close fails.
//
// The implementations are kernels/cuda for devices, Child for a driver in a process of
// its own, and kernels/gpu/simulated for the interpreter of PTX.
type Driver interface {
	// Spec describes the device.
	Spec() Spec

	// Load assembles PTX text. An *Error has the assembler's log.
	Load(ctx context.Context, ptx string, o LoadOptions) (Module, error)

	// Alloc returns device memory that is aligned to at least 256 bytes and whose
	// contents are unspecified. It is an error to allocate 0 bytes.
	Alloc(bytes int64) (Address, error)
	// Free ends an allocation.
	Free(Address) error
	// CopyIn and CopyOut return after the bytes were copied.
	CopyIn(to Address, from []byte) error
	CopyOut(to []byte, from Address) error
	// Fill sets bytes of device memory to a value.
	Fill(to Address, value byte, bytes int64) error

	// EncodeTensorMap describes an array for bulk tensor copies. It is an error on
	// devices without them.
	EncodeTensorMap(TensorMapSpec) (TensorMap, error)

	// Clusters is the number of clusters of a launch that the device holds at the same
	// time; 0 if it cannot run one.
	Clusters(Launch) (int, error)

	// Launch queues a kernel. An error while it runs is reported here or by a later
	// Sync.
	Launch(context.Context, Launch) error
	// Sync waits for the queue to be empty, or for ctx to end. A kernel that is still
	// running when ctx ends is a Sticky error that unwraps to ctx.Err().
	Sync(context.Context) error
	// Time runs a burst once to warm up and then replays times, and returns the
	// device's own time for the timed launches of each replay, in seconds. A simulator
	// returns ErrUntimed.
	Time(ctx context.Context, b Burst, replays int) ([]float64, error)

	// Close releases everything that was allocated or loaded.
	Close() error
}

// ErrUntimed is returned by drivers that can run kernels but cannot time them.
var ErrUntimed = errors.New("this device runs kernels but cannot time them: it is a simulator")

// An Address is a byte address in the device's global memory; 0 is no address.
type Address uint64

// LoadOptions are options of the assembler.
type LoadOptions struct {
	// MaxRegisters bounds the registers of a thread; 0 leaves it to the assembler or
	// to the directive .maxnreg.
	MaxRegisters int
}

// A Module is assembled PTX on the device.
type Module interface {
	// Function finds an .entry by name.
	Function(name string) (Function, error)
	// Close unloads the module; its functions must not be used after it.
	Close() error
}

// A Function is an entry of a module.
type Function interface {
	// Resources are those that the assembler has assigned.
	Resources() Resources
}

// Resources are what a function takes, as the assembler assigned it.
type Resources struct {
	// Registers of a thread; 0 where it is not known (a simulator assigns none).
	Registers int
	// LocalBytes of a thread are spilled registers and local arrays.
	LocalBytes int
	// SharedBytes of a block are declared with a size in the text ("static").
	SharedBytes int
	// Warning is what the assembler warned of in the module, such as products that it
	// serialises; "" for nothing.
	Warning string
	// MaxThreads of a block, as .maxntid or the registers allow; 0 where it is not
	// known.
	MaxThreads int
}

// AssemblerWarnings are the lines of what NVIDIA's assembler says that warn: of products
// that it serialises (C75…), of requests that it ignores, of frames on the stack.
func AssemblerWarnings(said string) string {
	var all []string
	for line := range strings.Lines(said) {
		for _, sign := range []string{"warning", "Warning", "(C7", "Potential"} {
			if strings.Contains(line, sign) {
				all = append(all, strings.TrimSpace(line))
				break
			}
		}
	}
	return strings.Join(all, "; ")
}

// Dim3 has extents along x, y and z; 0 counts as 1.
type Dim3 struct{ X, Y, Z int }

// Count is the product of the extents.
func (d Dim3) Count() int {
	return max(1, d.X) *
		max(1, d.Y) *
		max(1, d.Z)
}

// Full is d with 1 in place of 0.
func (d Dim3) Full() Dim3 {
	return Dim3{
		max(1, d.X),
		max(1, d.Y),
		max(1, d.Z),
	}
}

// A Launch is one run of a function with its arguments.
type Launch struct {
	Function Function
	// Grid is in blocks (x a multiple of the cluster's), Block in threads.
	Grid  Dim3
	Block Dim3 // threads
	// Cluster is in blocks; the zero value launches no clusters.
	Cluster Dim3
	// SharedBytes is the dynamic shared memory of a block (.extern .shared).
	SharedBytes int
	Args        []Arg
	// Dependent launches may begin before the launch before them has ended: the kernel
	// waits by griddepcontrol.wait (CUDA C++ Programming Guide, Programmatic Dependent
	// Launch and Synchronization).
	Dependent bool
}

// A Burst is launches that are timed together, as one graph. The launches Before and
// After run next to them in each replay and are not timed.
type Burst struct{ Before, Launches, After []Launch }

// An Arg is the value of one kernel parameter.
type Arg struct {
	kind argKind
	bits uint64
	maps *TensorMap
}

// An argKind is the type of a parameter.
type argKind uint8

const (
	argAddress argKind = iota
	argU32
	argU64
	argF32
	argTensorMap
)

// AddressArg is a .u64 parameter that holds an address.
func AddressArg(a Address) Arg { return Arg{kind: argAddress, bits: uint64(a)} }

// U32Arg is a .u32, .s32 or .b32 parameter.
func U32Arg(v uint32) Arg { return Arg{kind: argU32, bits: uint64(v)} }

// U64Arg is a .u64, .s64 or .b64 parameter.
func U64Arg(v uint64) Arg { return Arg{kind: argU64, bits: v} }

// F32Arg is a .f32 parameter.
func F32Arg(v float32) Arg {
	return Arg{
		kind: argF32,
		bits: uint64(math.Float32bits(v)),
	}
}

// TensorMapArg is a .b8[128] parameter aligned to 64 bytes.
func TensorMapArg(m TensorMap) Arg { return Arg{kind: argTensorMap, maps: &m} }

// Size is the bytes of the parameter: 4, 8 or 128.
func (a Arg) Size() int {
	switch a.kind {
	case argU32, argF32:
		return 4
	case argTensorMap:
		return len(a.maps)
	}
	return 8
}

// Align is the alignment of the parameter in the parameter space: its size,
// and 64 for a tensor map.
func (a Arg) Align() int { return min(a.Size(), 64) }

// AppendTo appends the value's bytes, little endian, as the device has them.
func (a Arg) AppendTo(b []byte) []byte {
	switch a.kind {
	case argU32, argF32:
		return binary.LittleEndian.AppendUint32(b, uint32(a.bits))
	case argTensorMap:
		return append(b, a.maps[:]...)
	}
	return binary.LittleEndian.AppendUint64(b, a.bits)
}

// String is the value for people.
func (a Arg) String() string {
	switch a.kind {
	case argAddress:
		return fmt.Sprintf("%#x", a.bits)
	case argF32:
		return fmt.Sprint(math.Float32frombits(uint32(a.bits)))
	case argTensorMap:
		return "tensor map"
	}
	return fmt.Sprint(a.bits)
}

// A TensorMap describes an array in the format of the bulk copy unit. Only the driver
// that encoded it can read its bytes. It has to be aligned to 64 bytes.
type TensorMap [128]byte

// A Swizzle permutes 16-byte chunks within rows of this many bytes, so that the
// elements of a column of a tile in shared memory are in different banks.
type Swizzle int

// The swizzles a bulk tensor copy can do.
const (
	NoSwizzle  Swizzle = 0
	Swizzle32  Swizzle = 32
	Swizzle64  Swizzle = 64
	Swizzle128 Swizzle = 128
)

// TensorMapSpec is a strided array in global memory and the box of it that one copy
// moves. Dimensions are innermost first. The rules are those of cuTensorMapEncodeTiled
// (CUDA driver API, Tensor Map Object Management).
type TensorMapSpec struct {
	DType hlo.DType
	// Base is a multiple of 16.
	Base Address
	// Dims are in elements: 1 to 5 dimensions of 1 to 2^32.
	Dims []uint64
	// Strides are in bytes, of dimensions 1 and up: multiples of 16 below 2^40.
	Strides []uint64
	// Box is in elements, 1 to 256 along each dimension; the innermost extent is a
	// multiple of 16 bytes and not wider than the swizzle.
	Box     []uint32
	Swizzle Swizzle // the box's innermost dimension fits in it
	// TF32 rounds elements of f32 to tf32 on their way to shared memory. Without it
	// tensor cores ignore the low bits of what is not rounded, which moves sums towards 0.
	TF32 bool
}

// Check returns the rule that a spec breaks.
func (s TensorMapSpec) Check() error {
	switch n := len(s.Dims); {
	case n < 1 || n > 5:
		return fmt.Errorf("tensor map: %d dimensions; there may be 1 to 5", n)
	case len(s.Strides) != n-1:
		return fmt.Errorf("tensor map: %d strides for %d dimensions; the innermost has none", len(s.Strides), n)
	case len(s.Box) != n:
		return fmt.Errorf("tensor map: a box of %d dimensions in an array of %d", len(s.Box), n)
	case s.Base == 0 || s.Base%16 != 0:
		return fmt.Errorf("tensor map: base %#x is not a multiple of 16", uint64(s.Base))
	}
	if err := s.checkExtents(); err != nil {
		return err
	}
	return s.checkInner()
}

// checkExtents checks each dimension.
func (s TensorMapSpec) checkExtents() error {
	for d, n := range s.Dims {
		if n < 1 || n > 1<<32 {
			return fmt.Errorf("tensor map: dimension %d has %d elements; there may be 1 to 2^32", d, n)
		}
		b := s.Box[d]
		if b < 1 || b > 256 {
			return fmt.Errorf("tensor map: the box has %d elements along dimension %d; there may be 1 to 256", b, d)
		}
	}
	for d, n := range s.Strides {
		if n%16 != 0 || n >= 1<<40 {
			return fmt.Errorf("tensor map: stride %d of dimension %d is not a multiple of 16 below 2^40", n, d+1)
		}
	}
	return nil
}

// checkInner checks the width of the box against the element type and the swizzle.
func (s TensorMapSpec) checkInner() error {
	size := int(s.DType.Bits()+7) / 8
	inner := int(s.Box[0]) * size
	switch {
	case size != 1 && size != 2 && size != 4 && size != 8:
		return fmt.Errorf("tensor map: elements of type %s cannot be copied in bulk", s.DType)
	case inner%16 != 0:
		return fmt.Errorf("tensor map: the box is %d bytes wide, not a multiple of 16", inner)
	case s.Swizzle != 0 && s.Swizzle != 32 &&
		s.Swizzle != 64 && s.Swizzle != 128:
		return fmt.Errorf("tensor map: no swizzle of %d bytes; there are 32, 64 and 128", s.Swizzle)
	case s.Swizzle != 0 && inner > int(s.Swizzle):
		return fmt.Errorf("tensor map: the box is %d bytes wide, wider than the swizzle's %d", inner, s.Swizzle)
	}
	return nil
}

// An Error is a failure of a driver.
type Error struct {
	// Call is the function that failed: "cuModuleLoadDataEx", "sim: load".
	Call string
	// Code is the driver's name of the failure: "CUDA_ERROR_INVALID_PTX".
	Code string
	// Text describes the failure.
	Text string
	// Log is the output of the assembler, where it was called.
	Log string
	// Sticky is set where the state of the device is lost, so that every later call
	// fails.
	Sticky bool
	// Err is the cause, where it is an error of Go.
	Err error
}

// Error has the call, the failure and, on lines of its own, the assembler's log.
func (e *Error) Error() string {
	s := e.Text
	if e.Call != "" {
		s = e.Call + ": " + s
	}
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Log != "" {
		s += "\n" + e.Log
	}
	return s
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsSticky reports whether an error means that the driver has to be closed and opened
// again.
func IsSticky(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Sticky
}
