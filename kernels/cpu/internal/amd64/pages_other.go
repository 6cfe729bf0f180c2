//go:build !linux || !amd64 || noasm

package amd64

import (
	"errors"
	"unsafe"
)

var errUnsupported = errors.New("machine code: this build cannot run it (it needs linux/amd64 and no tag noasm)")

// Code is machine code that can be executed; this build has none.
type Code struct{}

// Supported says that generated code cannot run in this build.
func Supported() error { return errUnsupported }

// RunsWide is false: generated code cannot run in this build.
func RunsWide() bool { return false }

// RoundsHalves reports that they have no instructions for bf16.
func RoundsHalves() bool { return false }

// Load says that generated code cannot run in this build.
func Load([]byte) (*Code, error) { return nil, errUnsupported }

// Pages loads code; this build has none.
type Pages struct{}

// NewPages returns a Pages.
func NewPages() *Pages { return nil }

// Load says that generated code cannot run in this build.
func (*Pages) Load([]byte) (*Code, error) { return nil, errUnsupported }

// Func says that generated code cannot run in this build.
func (*Code) Func(int) (Func, error) { return Func{}, errUnsupported }

// Close does nothing.
func (*Code) Close() error { return nil }

// call is never reached: there is no way to a Func.
func call(uintptr, unsafe.Pointer) { panic(errUnsupported) }
