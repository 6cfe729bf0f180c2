package aliased

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Pool is memory that arrays repeat. It must be closed, after its arrays.
type Pool struct {
	// Bytes is the pool as one range.
	Bytes []byte
	file  int
	whole reservation
}

// A reservation is a range of addresses with a start at a multiple of Block.
type reservation struct {
	base   unsafe.Pointer
	length uintptr
	start  unsafe.Pointer
}

const (
	readWrite    = unix.PROT_READ | unix.PROT_WRITE
	anonymous    = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
	madvCollapse = 25 // linux/include/uapi/asm-generic/mman-common.h, since Linux 6.1
)

// reserve reserves n bytes of addresses. Pages take memory when they are written.
func reserve(n int64) (r reservation, err error) {
	r.length = uintptr(n + Block)
	r.base, err = unix.MmapPtr(
		-1, 0, nil, r.length,
		readWrite, anonymous,
	)
	if err != nil {
		return r, fmt.Errorf("mmap: %w", err)
	}
	skip := -uintptr(r.base) & (Block - 1)
	r.start = unsafe.Add(r.base, skip)
	return r, nil
}

// close gives the addresses back.
func (r reservation) close() error {
	return unix.MunmapPtr(r.base, r.length)
}

// at is the range of addresses [from, to) of a reservation.
func (r reservation) at(from, to int64) []byte {
	start := unsafe.Add(r.start, from)
	return unsafe.Slice((*byte)(start), to-from)
}

// NewPool makes a pool of a number of blocks, in large pages where the system has them.
func NewPool(n int64) (*Pool, error) {
	file, err := unix.MemfdCreate("tilewright", unix.MFD_CLOEXEC)
	if err != nil {
		err = fmt.Errorf("memfd_create: %w", err)
		return nil, errors.Join(errors.ErrUnsupported, err) // a sandbox may forbid it
	}
	p := &Pool{file: file}
	if err := unix.Ftruncate(file, n*Block); err != nil {
		return nil, errors.Join(err, unix.Close(file))
	}
	if p.whole, err = reserve(n * Block); err != nil {
		return nil, errors.Join(err, unix.Close(file))
	}
	p.Bytes = p.whole.at(0, n*Block)
	if err := p.mapAt(p.whole, 0, n, 0); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for at := 0; at < len(p.Bytes); at += Block {
		p.Bytes[at] = 1
	}
	_ = unix.Madvise(p.Bytes, madvCollapse) // else it has pages of the usual size
	return p, nil
}

// Close gives the memory back, which arrays may not be using any more.
func (p *Pool) Close() error {
	return errors.Join(
		p.whole.close(),
		unix.Close(p.file),
	)
}

// Release takes the pages from the addresses of Bytes. They stay in the pool, and the next
// access to an address finds its page again, for a few microseconds a block.
func (p *Pool) Release() error {
	return release(p.Bytes)
}

// release takes shared pages from addresses, which they would be lost at if they were not
// those of a pool.
func release(shared []byte) error {
	if err := unix.Madvise(shared, unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("madvise: %w", err)
	}
	return nil
}

// mapAt makes the blocks [from, to) of a reservation those of the pool, the first of
// them block first.
func (p *Pool) mapAt(
	r reservation, from, to, first int64,
) error {
	all := int64(len(p.Bytes)) / Block
	for from < to {
		first %= all
		n := min(to-from, all-first)
		at := unsafe.Add(r.start, from*Block)
		_, err := unix.MmapPtr(
			p.file, first*Block, at, uintptr(n*Block),
			readWrite, unix.MAP_SHARED|unix.MAP_FIXED,
		)
		if err != nil {
			return fmt.Errorf("mmap: %w", err)
		}
		from += n
		first += n
	}
	return nil
}

// An Array is a range of addresses that repeats a pool. It must be closed.
type Array struct {
	// Data is the array.
	Data   []byte
	pool   *Pool
	memory reservation
	first  int64 // block of the pool that is the first of the array

	mu     sync.Mutex // of part and of, while blocks change their pages
	closed bool
	part   int64 // of every so many blocks, the one with pages of its own
	of     int64 // 0: all blocks are those of the pool
}

// Array makes an array of n bytes. Its first block is a certain one of the pool.
func (p *Pool) Array(n, first int64) (*Array, error) {
	all := 1 + blocks(n+Zone)
	whole, err := reserve(all * Block)
	if err != nil {
		return nil, err
	}
	memory := whole
	memory.start = unsafe.Add(whole.start, Block)
	a := &Array{
		Data:   memory.at(0, n),
		pool:   p,
		memory: memory,
		first:  first,
	}
	if err := p.mapAt(memory, 0, blocks(n), first); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// InPool is the place in the pool's Bytes of a byte of the array, as long as that has no page
// of its own.
func (a *Array) InPool(at int64) int64 {
	all := int64(len(a.pool.Bytes)) / Block
	return (a.first+at/Block)%all*Block + at%Block
}

// Own gives one of every so many blocks, number part, new pages of their own, and the
// last one, and the others those of the pool. There are zones in front of and behind the
// array then.
func (a *Array) Own(part, of int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := blocks(int64(len(a.Data))) - 1
	if a.of == 0 {
		if err := a.own(end, end+1); err != nil {
			return err
		}
	}
	a.part, a.of = part, of
	err := a.pool.mapAt(a.memory, 0, end, a.first)
	if err != nil {
		return err
	}
	for at := part; at < end; at += of {
		if err := a.own(at, at+1); err != nil {
			return err
		}
	}
	return nil
}

// Release takes the pages of the pool from the addresses of the array, as Pool.Release
// does, while other goroutines read and write it. Blocks with pages of their own keep them.
func (a *Array) Release() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	from, end := int64(0), blocks(int64(len(a.Data)))
	for at := range end + 1 {
		if at < end && !a.Owns(at*Block) {
			continue
		}
		if from < at {
			shared := a.memory.at(from*Block, at*Block)
			if err := release(shared); err != nil {
				return err
			}
		}
		from = at + 1
	}
	return nil
}

// own gives blocks pages of their own.
func (a *Array) own(from, to int64) error {
	at := unsafe.Add(a.memory.start, from*Block)
	n := uintptr((to - from) * Block)
	_, err := unix.MmapPtr(
		-1, 0, at, n,
		readWrite, anonymous|unix.MAP_FIXED,
	)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	pages := unsafe.Slice((*byte)(at), n)
	_ = unix.Madvise(pages, unix.MADV_HUGEPAGE) // a system without them says so
	return nil
}

// Owns reports whether a byte of the array has a page of its own.
func (a *Array) Owns(at int64) bool {
	if a.of == 0 {
		return false
	}
	block := at / Block
	last := blocks(int64(len(a.Data))) - 1
	return block == last ||
		block%a.of == a.part
}

// Zones are the bytes in front of and behind the array.
func (a *Array) Zones() (before, after []byte) {
	n := int64(len(a.Data))
	before = a.memory.at(-Zone, 0)
	return before, a.memory.at(n, n+Zone)
}

// Close gives the addresses and the pages back; once more, it does nothing.
func (a *Array) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	return a.memory.close()
}
