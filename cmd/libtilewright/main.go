//go:build cgo

// Command libtilewright is not run: it is built as a C library, with
// -buildmode=c-shared or c-archive. tilewright.h is its documentation, abi.c has its
// functions, and this file what they call in Go. The build script is build; check
// builds and runs the examples.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include "tilewright.h"
*/
import "C"

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"unsafe"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/serve"
	"github.com/tilewright/tilewright/tuner"
)

// main is not called: the host has its own.
func main() {}

// opened are the handles of the host.
var opened stores

// unopened answers what needs no database or snapshot.
var unopened = &query.Store{}

// maxText bounds the texts of modules in bytes.
const maxText = 256 << 20

// statuses of the kinds of errors.
var statuses = map[string]C.int{
	"request":  C.TILEWRIGHT_REQUEST,
	"input":    C.TILEWRIGHT_INPUT,
	"store":    C.TILEWRIGHT_STORE,
	"internal": C.TILEWRIGHT_INTERNAL,
}

// guard makes a panic a status, with its message in result where that is not nil.
func guard(status *C.int, result **C.char) {
	if p := recover(); p != nil {
		*status = C.TILEWRIGHT_INTERNAL
		if result != nil {
			text := fmt.Sprintf("internal error: %v\n%s", p, debug.Stack())
			*result = C.CString(text)
		}
	}
}

// textOf is a text of the host in Go's memory, since answers may outlive the call.
func textOf(p *C.char, n C.size_t) string {
	start := (*byte)(unsafe.Pointer(p))
	return strings.Clone(unsafe.String(start, int(n)))
}

// nameOf is a string that may be NULL.
func nameOf(p *C.char) string {
	if p == nil {
		return ""
	}
	return C.GoString(p)
}

// answer answers a request from the store of a handle and stores the result, or the
// message.
func answer(
	s *query.Store,
	r serve.Request,
	result **C.char,
) C.int {
	if s == nil {
		return refuse(result, "this handle is not open")
	}
	resp := serve.Answer(context.Background(), s, r)
	if resp.Error != nil {
		*result = C.CString(resp.Error.Message)
		return statuses[resp.Error.Kind]
	}
	return keep(resp.Result, result)
}

// keep stores a document as JSON.
func keep(doc any, result **C.char) C.int {
	text, err := serve.Encode(doc)
	if err != nil {
		*result = C.CString(err.Error())
		return C.TILEWRIGHT_INTERNAL
	}
	*result = C.CString(string(bytes.TrimSuffix(text, []byte("\n"))))
	return C.TILEWRIGHT_OK
}

// refuse stores the message of a wrong argument.
func refuse(result **C.char, message string) C.int {
	*result = C.CString(message)
	return C.TILEWRIGHT_REQUEST
}

// ask answers a request about a text.
func ask(
	s *query.Store,
	text *C.char,
	n C.size_t,
	r serve.Request,
	result **C.char,
) C.int {
	if n > maxText {
		return refuse(result, "a text of more than 256 MiB")
	}
	r.Text = textOf(text, n)
	if r.Text == "" {
		*result = C.CString("the text is empty")
		return C.TILEWRIGHT_INPUT
	}
	return answer(s, r, result)
}

// goVersion is the name and version of the library; abi.c keeps it.
//
//export goVersion
func goVersion() *C.char { return C.CString(tuner.Version()) }

// goOpen opens a database or snapshot for a device and gives it a handle.
//
//export goOpen
func goOpen(
	path, device *C.char,
	db *C.uint64_t,
	message **C.char,
) (status C.int) {
	defer guard(&status, message)
	d, err := deviceNamed(C.GoString(device))
	if err != nil {
		why := fmt.Sprintf("the device is \"cpu\" or an identity: %v", err)
		return refuse(message, why)
	}
	s, err := query.Open(C.GoString(path), d)
	if err != nil {
		*message = C.CString(err.Error())
		return C.TILEWRIGHT_STORE
	}
	*db = C.uint64_t(opened.add(s))
	return C.TILEWRIGHT_OK
}

// goClose takes the handle away first, so that no later call finds it, and then waits
// for those that have.
//
//export goClose
func goClose(db C.uint64_t) (status C.int) {
	defer guard(&status, nil)
	s := opened.remove(uint64(db))
	if s == nil {
		return C.TILEWRIGHT_REQUEST
	}
	if s.Close() != nil {
		return C.TILEWRIGHT_STORE
	}
	return C.TILEWRIGHT_OK
}

// goGet copies the plan of a fingerprint into the memory of the host. The plan is first
// read to a buffer on the stack: the snapshot may be closed when it is copied.
//
//export goGet
func goGet(
	db C.uint64_t,
	print *C.uchar,
	plan *C.char,
	capacity C.size_t,
	seconds *C.double,
) (status C.int) {
	defer guard(&status, nil)
	s := opened.find(uint64(db))
	if s == nil {
		return C.TILEWRIGHT_REQUEST
	}
	var room [512]byte
	key := (*[32]byte)(unsafe.Pointer(print))
	text, took, found, err := s.AppendPlan(room[:0], *key)
	switch {
	case err != nil:
		return C.TILEWRIGHT_STORE
	case !found:
		return C.TILEWRIGHT_MISS
	case plan != nil && len(text) >= int(capacity):
		return C.TILEWRIGHT_SMALL
	}
	if plan != nil {
		start := (*byte)(unsafe.Pointer(plan))
		out := unsafe.Slice(start, len(text)+1)
		copy(out, text)
		out[len(text)] = 0
	}
	if seconds != nil {
		*seconds = C.double(took)
	}
	return C.TILEWRIGHT_OK
}

// goLookup answers for the fusions of a text.
//
//export goLookup
func goLookup(
	db C.uint64_t,
	text *C.char,
	n C.size_t,
	fusion *C.char,
	flags C.int,
	result **C.char,
) (status C.int) {
	defer guard(&status, result)
	r := serve.Request{Op: "lookup", Fusion: nameOf(fusion)}
	if flags&C.TILEWRIGHT_EXACT != 0 {
		r.Require = "exact"
	}
	return ask(opened.find(uint64(db)), text, n, r, result)
}

// goPlan answers with default plans.
//
//export goPlan
func goPlan(
	db C.uint64_t,
	text *C.char,
	n C.size_t,
	fusion *C.char,
	result **C.char,
) (status C.int) {
	defer guard(&status, result)
	r := serve.Request{Op: "plan", Fusion: nameOf(fusion)}
	return ask(opened.find(uint64(db)), text, n, r, result)
}

// goFingerprint lists the fingerprints of the fusions of a text. It needs no handle.
//
//export goFingerprint
func goFingerprint(
	text *C.char,
	n C.size_t,
	result **C.char,
) (status C.int) {
	defer guard(&status, result)
	return ask(unopened, text, n, serve.Request{Op: "fingerprint"}, result)
}

// goPartition says how a module is split. It needs no handle.
//
//export goPartition
func goPartition(
	text *C.char,
	n C.size_t,
	result **C.char,
) (status C.int) {
	defer guard(&status, result)
	return ask(unopened, text, n, serve.Request{Op: "partition"}, result)
}

// goTiles describes fusions: symbolic without sizes, else at a tiling, or at one tile.
//
//export goTiles
func goTiles(
	text *C.char,
	n C.size_t,
	fusion *C.char,
	sizes *C.int64_t,
	sizeCount C.size_t,
	tile *C.int64_t,
	tileCount C.size_t,
	result **C.char,
) (status C.int) {
	defer guard(&status, result)
	r := serve.Request{
		Op:     "tiles",
		Fusion: nameOf(fusion),
		Sizes:  numbers(sizes, sizeCount),
		Tile:   numbers(tile, tileCount),
	}
	return ask(unopened, text, n, r, result)
}

// numbers copies an array of the host; nil of none, wherever the host says it is.
func numbers(p *C.int64_t, n C.size_t) []int64 {
	if n == 0 {
		return nil
	}
	start := (*int64)(unsafe.Pointer(p))
	return slices.Clone(unsafe.Slice(start, n))
}

// goRequest answers an object of the protocol of package serve, errors included.
//
//export goRequest
func goRequest(
	db C.uint64_t,
	request *C.char,
	n C.size_t,
	result **C.char,
) (status C.int) {
	defer guard(&status, result)
	s := unopened
	if db != 0 {
		s = opened.find(uint64(db))
	}
	switch {
	case s == nil:
		return refuse(result, "this handle is not open")
	case n > maxText:
		return refuse(result, "a request of more than 256 MiB")
	}
	return keep(serve.AnswerLine(context.Background(), s, []byte(textOf(request, n))), result)
}
