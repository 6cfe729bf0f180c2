// Package gpu is the backend for NVIDIA GPUs: what it generates is PTX text,
// and what runs it is a Driver, the real one (kernels/cuda) or the simulator
// (kernels/ptx/sim).
package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Driver is one device with its memory and one queue of work: launches and
// copies take effect in the order they are called. It is used from one
// goroutine at a time. After an error that is Sticky every call fails; only
// Close is left.
type Driver interface {
	// Sheet is what the device is and has.
	Spec() Spec

	// Load assembles PTX text. An *Error carries the assembler's log.
	Load(ctx context.Context, ptx string, o LoadOptions) (Module, error)

	// Alloc returns device memory aligned to at least 256 bytes, its contents
	// unspecified. 0 bytes are an error.
	Alloc(bytes int64) (Address, error)
	Free(Address) error
	// CopyIn and CopyOut return when the bytes are there.
	CopyIn(to Address, from []byte) error
	CopyOut(to []byte, from Address) error
	Fill(to Address, value byte, bytes int64) error

	// EncodeTensorMap describes an array for bulk tensor copies; an error on
	// devices without them.
	EncodeTensorMap(TensorMapSpec) (TensorMap, error)

	// Clusters is how many clusters of a launch that has them the device holds at
	// once; 0: it cannot run.
	Clusters(Launch) (int, error)

	// Launch queues a kernel. What goes wrong while it runs is reported here
	// or by a later Sync.
	Launch(context.Context, Launch) error
	// Sync waits for all that is queued, or for ctx; a kernel that is still
	// running when ctx ends makes a Sticky error that unwraps to ctx.Err().
	Sync(context.Context) error
	// Time runs a burst once to warm up and then replays times, and returns the
	// device's own seconds for the launches of each of these replays. A
	// simulator has no such seconds: ErrUntimed.
	Time(ctx context.Context, b Burst, replays int) ([]float64, error)

	// Close releases everything allocated and loaded.
	Close() error
}

// ErrUntimed is returned by drivers that can run kernels but not time them.
var ErrUntimed = errors.New("this device runs kernels but cannot time them: it is a simulator")

// An Address is a place in the device's global memory; 0 is none.
type Address uint64

// LoadOptions are what the assembler is told beside the text.
type LoadOptions struct {
	MaxRegisters int // a thread; 0: the assembler's choice or .maxnreg
}

// A Module is assembled PTX on the device.
type Module interface {
	// Function finds an .entry by name.
	Function(name string) (Function, error)
	Close() error // its functions may not be used any more
}

// A Function is an entry of a Module.
type Function interface {
	Resources() Resources
}

// Resources are what the assembler gave a function.
type Resources struct {
	Registers   int // a thread; 0 when unknown (a simulator allocates none)
	LocalBytes  int // a thread: spilled registers and local arrays
	SharedBytes int // a block, declared with a size in the text ("static")
	MaxThreads  int // a block, as .maxntid or the registers allow; 0 when unknown
}

// Dim3 counts along x, y and z; 0 counts as 1.
type Dim3 struct{ X, Y, Z int }

// Count is the number of all.
func (d Dim3) Count() int {
	return max(1, d.X) *
		max(1, d.Y) *
		max(1, d.Z)
}

// Full is d with 1 for every 0.
func (d Dim3) Full() Dim3 {
	return Dim3{
		max(1, d.X),
		max(1, d.Y),
		max(1, d.Z),
	}
}

// A Launch is one run of a function.
type Launch struct {
	Function    Function
	Grid        Dim3 // blocks
	Block       Dim3 // threads
	Cluster     Dim3 // blocks of a cluster; zero: no clusters
	SharedBytes int  // a block, beside the static: what .extern .shared has
	Args        []Arg
}

// A Burst is launches that are timed together, as one graph. Those before and
// after them run next to them each time, and are not in what is timed.
type Burst struct{ Before, Launches, After []Launch }

// An Arg is the value of one kernel parameter.
type Arg struct {
	kind argKind
	bits uint64
	maps *TensorMap
}

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

// A TensorMap is an array's description as the bulk copy unit reads it; only
// the driver that made it knows what its bytes mean. It lies at a multiple of
// 64 bytes.
type TensorMap [128]byte

// A Swizzle permutes 16-byte chunks within rows of this many bytes, so that
// columns of a tile in shared memory lie in different banks.
type Swizzle int

// The swizzles a bulk tensor copy can do.
const (
	NoSwizzle  Swizzle = 0
	Swizzle32  Swizzle = 32
	Swizzle64  Swizzle = 64
	Swizzle128 Swizzle = 128
)

// TensorMapSpec is a strided array in global memory and the box that is copied
// of it at once. Dimensions are innermost first. The rules are those of
// cuTensorMapEncodeTiled (CUDA driver API, Tensor Map Object Management).
type TensorMapSpec struct {
	DType   hlo.DType
	Base    Address  // a multiple of 16
	Dims    []uint64 // elements; 1 to 5 dimensions, each of 1 to 2^32
	Strides []uint64 // bytes, of dimensions 1 and up: multiples of 16 below 2^40
	Box     []uint32 // elements, each of 1 to 256; the innermost a multiple of 16 bytes
	Swizzle Swizzle  // the box's innermost dimension fits in it
}

// Check says which rule a spec breaks.
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

// An Error is what a driver refused or found.
type Error struct {
	Call   string // what was asked: "cuModuleLoadDataEx", "sim: load"
	Code   string // its name for the failure: "CUDA_ERROR_INVALID_PTX"
	Text   string // the failure in words
	Log    string // what the assembler said, if it was asked
	Sticky bool   // the device's state is lost: every later call fails too
	Err    error  // the cause, where it is one of Go's
}

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

func (e *Error) Unwrap() error { return e.Err }

// IsSticky reports whether err means that the driver has to be given up.
func IsSticky(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Sticky
}
