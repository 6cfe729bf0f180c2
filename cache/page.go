package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// bbolt trusts its pages: a wrong page number makes it panic, fault, loop or
// recurse for ever, and a wrong free list makes it overwrite pages in use. This
// file therefore walks the page structure of a file before bbolt reads it, under
// bbolt's lock: everything but the values, which have checksums of their own.
// The walk reads each page once, so its cost is linear in the size of the file;
// DB.verified saves it while the file does not change.
//
// The format is that of go.etcd.io/bbolt, internal/common (page.go, meta.go,
// bucket.go), in the byte order of the machine.
//
//	page    id u64, flags u16, count u16, overflow u32, elements…
//	meta    magic u32, version u32, page size u32, flags u32, root bucket 16,
//	        free list page u64, high-water page u64, transaction u64, FNV-64a u64
//	branch  position u32 (from the element), key size u32, page u64
//	leaf    flags u32 (1: a bucket), position u32, key size u32, value size u32
//	bucket  root page u64 (0: a page follows in the value), sequence u64
//	free    page u64 …; a count of 0xFFFF says that the first is the count
const (
	pageHeader = 16
	metaSize   = 64
	metaMagic  = 0xED0CDAED

	flagBranch   = 1
	flagLeaf     = 2
	flagFreeList = 16

	noFreeList = ^uint64(0)
	maxDepth   = 64 // levels of pages, and of buckets in buckets
)

// native is the byte order of a file: that of the machine that made it.
var native = binary.NativeEndian

// A fileState identifies one committed state of a file.
type fileState struct {
	size     int64
	modified time.Time
	meta     [2][metaSize]byte
	torn     bool // one of the two meta pages is not whole
	// A page whose first key is not the one that the branch above has for it; 0 for
	// none. Its entries can be read, but bbolt, which looks for a page under its first
	// key when it writes, would leave two pages in its place.
	misfit uint64
}

// misfitError refuses to write to a file with a misfit.
func (s *fileState) misfitError() error {
	if s == nil || s.misfit == 0 {
		return nil
	}
	return kindf(ErrDamaged, "a key of page %d is damaged: it can be read, but not written; `cache export` what is sound, and import it into a new file", s.misfit)
}

// A State identifies one committed state of a database's file. States of one file are
// equal (==) only while nothing was stored in between; the zero State is that of a file
// that is not there.
type State struct{ file fileState }

// A Watch tells the states of a database's file, without a lock and in some microseconds:
// it holds the file open. What was read between two equal states is what the database
// still says: a program that asks often keeps its answers while the state stays the same,
// whoever writes. Any number of goroutines may use it.
type Watch struct {
	mu   sync.Mutex
	path string
	file *os.File // nil before the first State, and where there is none
	info fs.FileInfo
	room [8 << 10]byte // pages 0 and 1 of usual size, in one read
}

// Watch is the watch of a database, which need not be there yet.
func (db *DB) Watch() *Watch { return &Watch{path: db.path} }

// State is the state of the file that is at the path now.
func (w *Watch) State() (State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	info, err := os.Stat(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, w.leave()
	}
	if err == nil && !info.Mode().IsRegular() {
		err = checkRegularFile(w.path)
	}
	if err == nil && (w.file == nil || !os.SameFile(info, w.info)) {
		err = w.reopen()
	}
	if err != nil {
		return State{}, err
	}
	s := fileState{size: info.Size(), modified: info.ModTime()}
	n, err := w.file.ReadAt(w.room[:], 0)
	if err == io.EOF {
		err = nil
	}
	if err == nil {
		err = s.readMetas(firstBytes{w.room[:n], w.file})
	}
	return State{s}, err
}

// firstBytes is a file of which the first bytes were read.
type firstBytes struct {
	read []byte
	rest io.ReaderAt
}

// ReadAt reads what was read again, and the rest from the file.
func (f firstBytes) ReadAt(b []byte, at int64) (n int, err error) {
	if at+int64(len(b)) <= int64(len(f.read)) {
		return copy(b, f.read[at:]), nil
	}
	return f.rest.ReadAt(b, at)
}

// reopen opens the file that is at the path now.
func (w *Watch) reopen() error {
	err := w.leave()
	if err == nil {
		w.file, err = os.Open(w.path)
	}
	if err == nil {
		w.info, err = w.file.Stat()
	}
	return err
}

// leave closes the file.
func (w *Watch) leave() error {
	f := w.file
	w.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}

// Close closes the file. A State afterwards opens it again.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leave()
}

// readMetas reads both meta pages, of which one may be torn.
func (s *fileState) readMetas(r io.ReaderAt) error {
	for k, at := range []int64{0, secondMeta(r, s.size)} {
		_, err := r.ReadAt(s.meta[k][:], at+pageHeader)
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// verifyFile walks the file unless this DB has walked the same state before.
func (db *DB) verifyFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s := fileState{size: info.Size(), modified: info.ModTime()}
	w, err := newWalk(f, info.Size(), &s)
	if err != nil {
		return err
	}
	if known := db.verified.Load(); known != nil {
		s.misfit = known.misfit
		if *known == s {
			return nil
		}
	}
	if err := w.walk(); err != nil {
		return kindf(ErrDamaged, "it is damaged: %w; restore a copy, or `cache export` what can be read", err)
	}
	s.misfit = w.misfit
	db.verified.Store(&s)
	return nil
}

// markVerified records the state of a file after bbolt has committed a
// transaction to a verified one, so that it need not be walked again.
func (db *DB) markVerified(f *os.File) {
	if info, err := f.Stat(); err == nil {
		s := fileState{size: info.Size(), modified: info.ModTime()}
		_, err := newWalk(f, info.Size(), &s)
		if err == nil {
			db.verified.Store(&s)
		}
	}
}

// A walk visits every page of a file that is reachable from its root bucket.
type walk struct {
	r        io.ReaderAt
	rooms    [][]byte // pages that are being read, by their depth
	pageSize int64
	pages    uint64 // the high-water mark
	root     uint64
	freeList uint64
	used     []bool // pages reached so far
	misfit   uint64 // the last page that is one
}

// newWalk reads both meta pages. The one with the newer transaction is valid, as
// in bbolt; it gives the page size, the root and the number of pages.
func newWalk(r io.ReaderAt, size int64, s *fileState) (*walk, error) {
	w := &walk{r: &readAhead{r: r}}
	if err := s.readMetas(r); err != nil {
		return nil, err
	}
	newest := uint64(0)
	for k := range s.meta {
		m := s.meta[k][:]
		txid := native.Uint64(m[48:])
		if !validMeta(m) {
			s.torn = true
			continue
		}
		if w.pageSize != 0 && txid < newest {
			continue
		}
		newest = txid
		w.pageSize = int64(native.Uint32(m[8:]))
		w.root = native.Uint64(m[16:])
		w.freeList = native.Uint64(m[32:])
		w.pages = native.Uint64(m[40:])
	}
	switch {
	case w.pageSize == 0:
		return nil, kindf(ErrDamaged, "it is damaged: neither of its first pages is whole")
	case w.pageSize < 512 || w.pageSize > 1<<24 ||
		w.pages < 4 || w.pages > 1<<40:
		return nil, kindf(ErrDamaged, "it is damaged: its first page is implausible")
	case size/w.pageSize < int64(w.pages):
		return nil, kindf(
			ErrDamaged, "it is cut short: it has %d bytes of %d; restore a copy, or move it away and `cache import` an export",
			size, int64(w.pages)*w.pageSize,
		)
	}
	w.used = make([]bool, w.pages)
	w.used[0], w.used[1] = true, true
	return w, nil
}

// secondMeta is the position of page 1. It is the page size, which page 0 states;
// if page 0 is not whole, page 1 is searched at every possible page size.
func secondMeta(r io.ReaderAt, size int64) int64 {
	var m [metaSize]byte
	if _, err := r.ReadAt(m[:], pageHeader); err == nil &&
		validMeta(m[:]) {
		return int64(native.Uint32(m[8:]))
	}
	for at := int64(1024); at <= 1<<24 && at < size; at *= 2 {
		_, err := r.ReadAt(m[:], at+pageHeader)
		if err == nil && validMeta(m[:]) {
			return at
		}
	}
	return size
}

// validMeta checks the magic number and the checksum of a meta page.
func validMeta(m []byte) bool {
	h := fnv.New64a()
	h.Write(m[:56])
	return native.Uint32(m) == metaMagic &&
		native.Uint64(m[56:]) == h.Sum64()
}

// walk visits all buckets and then the free list.
func (w *walk) walk() error {
	if err := w.bucket(w.root, 0); err != nil {
		return err
	}
	if w.freeList == noFreeList {
		return nil
	}
	return w.free()
}

// A readAhead reads a file in larger pieces where it is asked for one range behind the
// other, as a walk asks for the pages of a file that was filled in the order of its keys.
type readAhead struct {
	r    io.ReaderAt
	next int64  // the end of what was asked for last
	at   int64  // of the piece
	data []byte // the piece
}

const readAheadBytes = 64 << 10

// ReadAt reads from the piece, from the next piece, or from the file.
func (a *readAhead) ReadAt(b []byte, at int64) (int, error) {
	behind := at - a.next
	a.next = at + int64(len(b))
	if a.copied(b, at) {
		return len(b), nil
	}
	if behind >= 0 && behind < readAheadBytes && len(b) < readAheadBytes {
		a.data = slices.Grow(a.data[:0], readAheadBytes)[:readAheadBytes]
		n, _ := a.r.ReadAt(a.data, at) // what is missing is read from the file
		a.at, a.data = at, a.data[:n]
		if a.copied(b, at) {
			return len(b), nil
		}
	}
	return a.r.ReadAt(b, at)
}

// copied copies a range that lies in the piece.
func (a *readAhead) copied(b []byte, at int64) bool {
	first := at - a.at
	if first < 0 || first+int64(len(b)) > int64(len(a.data)) {
		return false
	}
	copy(b, a.data[first:])
	return true
}

// A page is the header of a page and the bytes of its first part; large values
// overflow into the pages that follow.
type page struct {
	id       uint64
	flags    uint16
	count    int
	data     []byte // of the first page only
	complete int64  // bytes, overflow included
}

// page reads a page and marks it as used; a page that is reached twice is an
// error, which also ends every cycle. Its data are valid until the next page of the
// same depth.
func (w *walk) page(id uint64, depth int) (page, error) {
	if id < 2 || id >= w.pages {
		return page{}, fmt.Errorf("page %d of %d is referred to", id, w.pages)
	}
	for len(w.rooms) <= depth {
		w.rooms = append(w.rooms, make([]byte, w.pageSize))
	}
	p := page{data: w.rooms[depth]}
	_, err := w.r.ReadAt(p.data, int64(id)*w.pageSize)
	if err != nil {
		return page{}, err
	}
	if p.header(); p.id != id {
		return page{}, fmt.Errorf("page %d says that it is page %d", id, p.id)
	}
	overflow := uint64(native.Uint32(p.data[12:]))
	if overflow >= w.pages-id {
		return page{}, fmt.Errorf("page %d goes on past the end", id)
	}
	for n := id; n <= id+overflow; n++ {
		if w.used[n] {
			return page{}, fmt.Errorf("page %d is referred to twice", n)
		}
		w.used[n] = true
	}
	p.complete = int64(overflow+1) * w.pageSize
	return p, nil
}

// header reads the first pageHeader bytes.
func (p *page) header() {
	p.id = native.Uint64(p.data)
	p.flags = native.Uint16(p.data[8:])
	p.count = int(native.Uint16(p.data[10:]))
}

// bucket walks the tree of a bucket whose first page is root.
func (w *walk) bucket(root uint64, depth int) error {
	return w.tree(root, depth, &keyOrder{})
}

// A keyOrder checks that the keys of a bucket ascend over all its leaves and agree
// with the keys of the branches above them.
type keyOrder struct {
	last  []byte // largest key so far
	floor []byte // lower bound of the next key, from the branch above
	first []byte // what the branch above has as the first key of the page; nil: nothing
}

// fit compares the first key of a page with that of the branch above.
func (w *walk) fit(p page, key []byte, o *keyOrder) {
	if o.first != nil && !bytes.Equal(key, o.first) {
		w.misfit = p.id
	}
}

// allows reports whether key may come next.
func (o *keyOrder) allows(key []byte) bool {
	return (o.last == nil || bytes.Compare(key, o.last) > 0) &&
		bytes.Compare(key, o.floor) >= 0
}

// tree walks a page and the pages below it.
func (w *walk) tree(id uint64, depth int, o *keyOrder) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d is too deep", id)
	}
	p, err := w.page(id, depth)
	if err != nil {
		return err
	}
	switch p.flags {
	case flagLeaf:
		return w.leaf(p, depth, o)
	case flagBranch:
		return w.branch(p, depth, o)
	}
	return fmt.Errorf("page %d has the kind %#x", id, p.flags)
}

// branch walks the children of a branch page.
func (w *walk) branch(p page, depth int, o *keyOrder) error {
	if p.count == 0 {
		return fmt.Errorf("branch page %d is empty", p.id)
	}
	next := offset(p.count)
	for n := range p.count {
		e, err := w.element(p, n)
		if err != nil {
			return err
		}
		child := native.Uint64(e[8:])
		at := native.Uint32(e)
		size := native.Uint32(e[4:])
		key, err := w.bytes(p, n, at, size)
		if err != nil {
			return err
		}
		if err := p.follows(n, at, &next, int64(size)); err != nil {
			return err
		}
		if !o.allows(key) {
			return fmt.Errorf("page %d is out of order", p.id)
		}
		if n == 0 {
			w.fit(p, key, o)
		}
		o.floor = key
		o.first = key
		if err := w.tree(child, depth+1, o); err != nil {
			return err
		}
	}
	return nil
}

// follows checks that the bytes of element n begin at next, and moves that behind
// them: bbolt writes those of all elements without gaps behind the headers, so that
// a page whose count is damaged does not fit.
func (p *page) follows(n int, at uint32, next *int64, size int64) error {
	if offset(n)+int64(at) != *next {
		return fmt.Errorf("element %d of page %d is not where it should be", n, p.id)
	}
	*next += size
	return nil
}

// leaf checks the elements of a leaf page and walks its nested buckets.
func (w *walk) leaf(p page, depth int, o *keyOrder) error {
	next := offset(p.count)
	for n := range p.count {
		e, err := w.element(p, n)
		if err != nil {
			return err
		}
		at := native.Uint32(e[4:])
		keySize := native.Uint32(e[8:])
		valueSize := native.Uint32(e[12:])
		key, err := w.bytes(p, n, at, keySize)
		if err != nil {
			return err
		}
		err = p.follows(n, at, &next, int64(keySize)+int64(valueSize))
		if err != nil {
			return err
		}
		if !o.allows(key) {
			return fmt.Errorf("page %d is out of order", p.id)
		}
		if n == 0 {
			w.fit(p, key, o)
		}
		o.last = append(o.last[:0], key...)
		end := offset(n) + int64(at) + int64(keySize) + int64(valueSize)
		if end > p.complete {
			return fmt.Errorf("a value of page %d goes on past its end", p.id)
		}
		if native.Uint32(e)&1 != 0 {
			err := w.nested(p, n, at+keySize, valueSize, depth)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// nested walks the bucket that is element n of a leaf.
func (w *walk) nested(p page, n int, at, size uint32, depth int) error {
	value, err := w.bytes(p, n, at, size)
	if err != nil {
		return err
	}
	if len(value) < 16 {
		return fmt.Errorf("a bucket of page %d is cut short", p.id)
	}
	if root := native.Uint64(value); root != 0 {
		return w.bucket(root, depth+1)
	}
	in := page{
		data:     value[16:],
		complete: int64(len(value) - 16),
	}
	if in.complete < pageHeader {
		return fmt.Errorf("a bucket inside page %d is cut short", p.id)
	}
	if in.header(); in.flags != flagLeaf {
		return fmt.Errorf("a bucket inside page %d has the kind %#x", p.id, in.flags)
	}
	in.id = p.id
	return w.leaf(in, depth+1, &keyOrder{})
}

// offset is the position of the header of element n in its page.
func offset(n int) int64 { return pageHeader + 16*int64(n) }

// element is the header of element n.
func (w *walk) element(p page, n int) ([]byte, error) {
	return w.slice(p, offset(n), 16)
}

// bytes is a key or value of element n; at counts from the element's header.
func (w *walk) bytes(
	p page, n int, at, size uint32,
) ([]byte, error) {
	if size == 0 {
		return nil, fmt.Errorf("an empty key in page %d", p.id)
	}
	return w.slice(p, offset(n)+int64(at), int64(size))
}

// slice is a range of a page's bytes; in the overflow it is read from the file.
func (w *walk) slice(p page, at, size int64) ([]byte, error) {
	switch {
	case at+size > p.complete:
		return nil, fmt.Errorf("an element of page %d goes on past its end", p.id)
	case at+size <= int64(len(p.data)):
		return p.data[at : at+size], nil
	}
	out := make([]byte, size)
	_, err := w.r.ReadAt(out, int64(p.id)*w.pageSize+at)
	return out, err
}

// free checks that no page on the list of free pages is in use or listed twice.
func (w *walk) free() error {
	p, err := w.page(w.freeList, 0)
	if err != nil {
		return fmt.Errorf("the free list: %w", err)
	}
	if p.flags != flagFreeList {
		return errors.New("the free list is something else")
	}
	count := int64(p.count)
	at := int64(pageHeader)
	if count == 0xFFFF {
		first, err := w.slice(p, at, 8)
		if err != nil {
			return err
		}
		count = int64(native.Uint64(first))
		at = at + 8
	}
	if count < 0 || count > p.complete/8 {
		return errors.New("the free list is longer than its page")
	}
	ids, err := w.slice(p, at, 8*count)
	if err != nil {
		return err
	}
	for ; len(ids) > 0; ids = ids[8:] {
		id := native.Uint64(ids)
		if id < 2 || id >= w.pages || w.used[id] {
			return fmt.Errorf("page %d is on the free list and in use", id)
		}
		w.used[id] = true
	}
	return nil
}
