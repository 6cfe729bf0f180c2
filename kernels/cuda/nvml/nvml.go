//go:build cuda && cgo && linux

// Package nvml asks NVIDIA's management library what the CUDA driver does not know of a
// device: the power cap that is set, and the MIG slice. The library comes with the
// driver and is looked for when it is asked (dlopen), by some lines of C: the bindings
// github.com/NVIDIA/go-nvml leave hundreds of symbols open, so that a program that was
// linked with -z now, as Debian's derivatives do, does not start without the library.
package nvml

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Of nvml.h: nvmlReturn_t is an enum, nvmlDevice_t a pointer.
typedef int result;
typedef void *handle;

// A failed result says which function, and the library's words for it.
typedef struct { result code; const char *call, *text; } failure;

static const char *notFound(failure *f, const char *call) {
	f->code = 13; // NVML_ERROR_FUNCTION_NOT_FOUND
	f->call = call, f->text = "the library does not have it";
	return NULL;
}

// Calls name with arguments; its result is in f.
#define CALL(name, types, ...) do { \
		result (*call) types = (result (*) types)dlsym(library, name); \
		if (!call) { notFound(&f, name); break; } \
		f.code = call(__VA_ARGS__), f.call = name, f.text = words(library, f.code); \
	} while (0)

static const char *words(void *library, result code) {
	const char *(*text)(result) = (const char *(*)(result))dlsym(library, "nvmlErrorString");
	return text ? text(code) : "no reason given";
}

// dlerror is the thread's, so that its text is copied here.
static void *load(const char *name, char *why, size_t size) {
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) strncpy(why, dlerror(), size - 1);
	return library;
}

static failure start(void *library) {
	failure f = {0};
	CALL("nvmlInit_v2", (void));
	return f;
}

static failure stop(void *library) {
	failure f = {0};
	CALL("nvmlShutdown", (void));
	return f;
}

static failure byUUID(void *library, const char *uuid, handle *device) {
	failure f = {0};
	CALL("nvmlDeviceGetHandleByUUID", (const char *, handle *), uuid, device);
	return f;
}

static failure name(void *library, handle device, char *text, unsigned size) {
	failure f = {0};
	CALL("nvmlDeviceGetName", (handle, char *, unsigned), device, text, size);
	return f;
}

static failure parent(void *library, handle slice, handle *device) {
	failure f = {0};
	CALL("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", (handle, handle *), slice, device);
	return f;
}

static failure enforcedLimit(void *library, handle device, unsigned *milliwatts) {
	failure f = {0};
	CALL("nvmlDeviceGetEnforcedPowerLimit", (handle, unsigned *), device, milliwatts);
	return f;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// Facts of a device.
type Facts struct {
	// Watts is the power cap that is in force, the least of all that were set; of a MIG
	// slice that of its GPU. 0 where it is not known.
	Watts float64
	// Slice is the profile of a MIG slice: "1g.10gb"; "" of a whole device.
	Slice string
}

// Library is the name of the management library.
const Library = "libnvidia-ml.so.1"

// Read asks a library, by its name or path, for the facts of the device with a UUID, as
// cuDeviceGetUuid_v2 has it: that of a MIG slice where the process sees one. Facts that
// are not there are zero, and the error has the reason.
func Read(library string, uuid [16]byte) (f Facts, err error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var why [256]C.char
	l := C.load(name, &why[0], C.size_t(len(why)))
	if l == nil {
		return f, errors.New(C.GoString(&why[0]))
	}
	defer C.dlclose(l)
	if err := failed(C.start(l)); err != nil {
		return f, err
	}
	defer C.stop(l)
	return read(l, uuid)
}

// read asks a library that was started.
func read(l unsafe.Pointer, uuid [16]byte) (f Facts, err error) {
	device, err := find(l, "GPU-", uuid)
	if err != nil {
		slice, none := find(l, "MIG-", uuid)
		if none != nil {
			return f, errors.Join(err, none)
		}
		if f.Slice, err = profile(l, slice); err != nil {
			return f, err
		}
		if err := failed(C.parent(l, slice, &device)); err != nil {
			return f, err
		}
	}
	var milliwatts C.uint
	err = failed(C.enforcedLimit(l, device, &milliwatts))
	if err == nil {
		f.Watts = float64(milliwatts) / 1e3
	}
	return f, err
}

// find is the handle of a device. A UUID is written in five groups.
func find(l unsafe.Pointer, kind string, uuid [16]byte) (h C.handle, err error) {
	u := uuid[:]
	text := C.CString(fmt.Sprintf("%s%x-%x-%x-%x-%x", kind, u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
	defer C.free(unsafe.Pointer(text))
	err = failed(C.byUUID(l, text, &h))
	return h, err
}

// profile is the end of a slice's name: "NVIDIA A100-SXM4-80GB MIG 1g.10gb".
func profile(l unsafe.Pointer, slice C.handle) (string, error) {
	var text [96]C.char // NVML_DEVICE_NAME_V2_BUFFER_SIZE
	err := failed(C.name(l, slice, &text[0], C.uint(len(text))))
	if err != nil {
		return "", err
	}
	name := C.GoString(&text[0])
	_, profile, found := strings.Cut(name, " MIG ")
	if !found {
		return "", fmt.Errorf("nvmlDeviceGetName: %q does not end in the profile of a slice", name)
	}
	return profile, nil
}

// failed is the error of a result, whose texts are constants of the library or of C.
func failed(f C.failure) error {
	if f.code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", C.GoString(f.call), C.GoString(f.text), int(f.code))
}
