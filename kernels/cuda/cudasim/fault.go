//go:build cuda && cudasim && cgo && linux

package cudasim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Fault makes one call of the driver fail.
type Fault struct {
	// Call is the name of the function without a version, or "kernel" for a
	// running kernel.
	Call string
	// N is the number of the call that fails, from 1; 0 makes every call fail.
	N int
	// Code is the CUresult; with Hang it is 0.
	Code int
	// Log is the message of the assembler, for cuModuleLoadDataEx.
	Log string
	// Hang makes a kernel never end; only for "kernel".
	Hang bool
}

// results are the names and descriptions of the driver's failures (CUDA Driver
// API, CUresult).
var results = map[int][2]string{
	1:   {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	2:   {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	3:   {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	100: {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	101: {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	209: {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	218: {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	400: {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	500: {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	600: {"CUDA_ERROR_NOT_READY", "device not ready"},
	700: {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	701: {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	715: {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
	719: {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	801: {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	900: {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	901: {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
}

const (
	invalidValue   = 1
	outOfMemory    = 2
	notInitialized = 3
	invalidDevice  = 101
	invalidPTX     = 218
	invalidHandle  = 400
	notFound       = 500
	notReady       = 600
	launchFailed   = 719
	notSupported   = 801
)

// broken reports whether a result leaves the context unusable, as on a GPU.
func broken(code int) bool {
	return code >= 700 && code < 720 && code != 701 || code == 999
}

// ParseFaults reads a table of faults, one a line: CALL N: CODE [LOG], where N
// is a number or "every" and CODE a CUresult's name or "hang".
//
//	cuMemAlloc 3: CUDA_ERROR_OUT_OF_MEMORY
//	cuModuleLoadDataEx 1: CUDA_ERROR_INVALID_PTX ptxas fatal: Unexpected token
//	kernel 2: hang
func ParseFaults(text string) ([]Fault, error) {
	var all []Fault
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f, err := parseFault(line)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", line, err)
		}
		all = append(all, f)
	}
	return all, nil
}

// parseFault reads one line of a table of faults.
func parseFault(line string) (f Fault, err error) {
	where, what, found := strings.Cut(line, ":")
	fields := strings.Fields(where)
	if !found || len(fields) != 2 {
		return f, fmt.Errorf("want CALL N: CODE")
	}
	f.Call = fields[0]
	if fields[1] != "every" {
		f.N, err = strconv.Atoi(fields[1])
		if err != nil || f.N < 1 {
			return f, fmt.Errorf("%s is neither a call's number, from 1, nor \"every\"", fields[1])
		}
	}
	name, log, _ := strings.Cut(
		strings.TrimSpace(what), " ",
	)
	if f.Log = strings.TrimSpace(log); name == "hang" {
		f.Hang = true
		return f, nil
	}
	for code, r := range results {
		if r[0] == name {
			f.Code = code
			return f, nil
		}
	}
	return f, fmt.Errorf("no result %q", name)
}

// faults counts calls and finds the fault of each.
type faults struct {
	table []Fault
	calls map[string]int
}

// next counts a call and returns its fault, if it has one.
func (f *faults) next(call string) (Fault, bool) {
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[call]++
	k := slices.IndexFunc(f.table, func(x Fault) bool {
		return x.Call == call &&
			(x.N == 0 || x.N == f.calls[call])
	})
	if k < 0 {
		return Fault{}, false
	}
	return f.table[k], true
}
