//go:build !linux

package aliased

import "errors"

// A Pool is memory that arrays repeat. It must be closed, after its arrays.
type Pool struct{ Bytes []byte }

// NewPool is an error on this system.
func NewPool(int64) (*Pool, error) {
	return nil, errors.ErrUnsupported
}

// Close gives the memory back.
func (p *Pool) Close() error { return nil }

// Release does nothing on this system.
func (p *Pool) Release() error { return nil }

// An Array is a range of addresses that repeats a pool. It must be closed.
type Array struct{ Data []byte }

// Array is an error on this system.
func (p *Pool) Array(n, first int64) (*Array, error) {
	return nil, errors.ErrUnsupported
}

// InPool is its argument on this system.
func (a *Array) InPool(at int64) int64 { return at }

// Own is an error on this system.
func (a *Array) Own(part, of int64) error {
	return errors.ErrUnsupported
}

// Release does nothing on this system.
func (a *Array) Release() error { return nil }

// Owns reports whether a byte of the array has a page of its own.
func (a *Array) Owns(at int64) bool { return true }

// Zones are the bytes in front of and behind the array.
func (a *Array) Zones() (before, after []byte) {
	return nil, nil
}

// Close gives the memory back.
func (a *Array) Close() error { return nil }
