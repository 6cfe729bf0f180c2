//go:build !noasm

package amd64

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
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
	from   *sparePages // What takes the pages back; nil where the system does.
}

// Pages loads code into pages of code that was closed, if it has some: mapping and unmapping
// pages, and the fault of the first write, take four fifths of Load. What it keeps
// cannot be executed. Make one by NewPages.
type Pages struct{ spare *sparePages }

// The pages that are kept are pieces of 1, 2, 4 … 1 << (pageClasses-1) pages, of each size
// as many as kernels of a race.
const (
	pageClasses   = 5
	sparesOfClass = 16
)

// sparePages are pages that can be written and not executed, by class of size.
type sparePages struct {
	mu   sync.Mutex
	free [pageClasses][][]byte
}

// NewPages returns an empty Pages. What it keeps is unmapped when nothing refers to it.
func NewPages() *Pages {
	p := &Pages{spare: new(sparePages)}
	runtime.AddCleanup(p, (*sparePages).unmap, p.spare)
	return p
}

// Load is like the function Load; that of a nil Pages is it.
func (p *Pages) Load(code []byte) (*Code, error) {
	class, size := classOfPages(len(code))
	if p == nil || len(code) == 0 || class >= pageClasses {
		return Load(code)
	}
	pages := p.spare.take(class)
	if pages == nil {
		var err error
		if pages, err = mapPages(size); err != nil {
			return nil, err
		}
	}
	c, err := fill(pages, code)
	if c != nil {
		c.from = p.spare
	}
	return c, err
}

// classOfPages is the class of pieces for n bytes of code, and their size.
func classOfPages(n int) (class, size int) {
	size = unix.Getpagesize()
	for ; size < n; size *= 2 {
		class++
	}
	return class, size
}

// take is a piece of a class, nil where there is none.
func (s *sparePages) take(class int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.free[class]
	if len(free) == 0 {
		return nil
	}
	last := len(free) - 1
	s.free[class] = free[:last]
	return free[last]
}

// put keeps pages, which can be executed no more from then on, or unmaps them.
func (s *sparePages) put(pages []byte) error {
	class, _ := classOfPages(len(pages))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free[class]) < sparesOfClass &&
		unix.Mprotect(pages, unix.PROT_READ|unix.PROT_WRITE) == nil {
		s.free[class] = append(s.free[class], pages)
		return nil
	}
	return unix.Munmap(pages)
}

// unmap gives all pages back to the system.
func (s *sparePages) unmap() {
	for _, list := range s.free {
		for _, pages := range list {
			_ = unix.Munmap(pages) // Nobody is left to hear of an error.
		}
	}
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

// RoundsHalves reports whether these have the instruction that rounds to bf16 (AVX512_BF16).
func RoundsHalves() bool { return RunsWide() && cpu.X86.HasAVX512BF16 }

// Load copies code, of any length but 0, into pages of its own. They are
// writable while it does and executable afterwards, never both. The error says
// if the system does not allow that.
func Load(code []byte) (*Code, error) {
	if len(code) == 0 {
		return nil, errors.New("machine code: there is none to load")
	}
	page := unix.Getpagesize()
	pages, err := mapPages((len(code) + page - 1) &^ (page - 1))
	if err != nil {
		return nil, err
	}
	return fill(pages, code)
}

// mapPages maps pages of size bytes that can be written.
func mapPages(size int) ([]byte, error) {
	pages, err := unix.Mmap(
		-1, 0, size,
		unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE,
	)
	if err != nil {
		return nil, fmt.Errorf("machine code: no memory for %d bytes: %w", size, err)
	}
	return pages, nil
}

// fill copies code into pages that can be written and makes them executable.
func fill(pages, code []byte) (*Code, error) {
	n := copy(pages, code)
	fillTraps(pages[n:])
	if err := unix.Mprotect(pages, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return nil, errors.Join(
			fmt.Errorf("machine code: this system does not let the process make pages executable: %w", err), unix.Munmap(pages),
		)
	}
	return &Code{pages: pages, length: n}, nil
}

// fillTraps fills memory with INT3.
func fillTraps(rest []byte) {
	if len(rest) == 0 {
		return
	}
	rest[0] = 0xcc
	for n := 1; n < len(rest); n *= 2 {
		copy(rest[n:], rest[:n])
	}
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
	switch {
	case pages == nil:
		return nil
	case c.from != nil:
		return c.from.put(pages)
	}
	return unix.Munmap(pages)
}
