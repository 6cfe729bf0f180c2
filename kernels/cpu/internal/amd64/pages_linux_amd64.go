//go:build !noasm

package amd64

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// call calls pc with args in RDI and clears the upper halves of the vector
// registers.
//
//go:noescape
func call(pc uintptr, args unsafe.Pointer)

// Code is machine code in pages that can be executed and not written.
type Code struct {
	pages  []byte
	length int
}

// Supported returns nil if generated code runs here, or says why it cannot.
func Supported() error {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA || !x.HasF16C {
		return errors.New("machine code: this CPU lacks AVX2, FMA or F16C")
	}
	code, err := Load([]byte{0xc3})
	if err != nil {
		return err
	}
	return code.Close()
}

// RunsWide reports whether this CPU, and system, runs chains that are emitted wide.
func RunsWide() bool {
	return cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW
}

// Load copies code, of any length but 0, into pages of its own. They are
// writable while it does and executable afterwards, never both. The error says
// if the system does not allow that.
func Load(code []byte) (*Code, error) {
	if len(code) == 0 {
		return nil, errors.New("machine code: there is none to load")
	}
	page := unix.Getpagesize()
	size := (len(code) + page - 1) &^ (page - 1)
	pages, err := unix.Mmap(
		-1, 0, size,
		unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE,
	)
	if err != nil {
		return nil, fmt.Errorf("machine code: no memory for %d bytes: %w", size, err)
	}
	n := copy(pages, code)
	for k := n; k < size; k++ {
		pages[k] = 0xcc // int3
	}
	if err := unix.Mprotect(pages, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return nil, errors.Join(
			fmt.Errorf("machine code: this system does not let the process make pages executable: %w", err), unix.Munmap(pages),
		)
	}
	return &Code{pages, n}, nil
}

// Func returns the function that starts offset bytes into the code.
func (c *Code) Func(offset int) (Func, error) {
	if offset < 0 || offset >= c.length || c.pages == nil {
		return Func{}, fmt.Errorf("machine code: no function at %d in %d bytes", offset, c.length)
	}
	return Func{
		uintptr(unsafe.Pointer(&c.pages[offset])),
	}, nil
}

// Close gives the pages back. No function of c may be running or called later.
// A second Close does nothing.
func (c *Code) Close() error {
	pages := c.pages
	c.pages, c.length = nil, 0
	if pages == nil {
		return nil
	}
	return unix.Munmap(pages)
}
