// Package aliased makes arrays of which the memory repeats: many ranges of addresses
// with the same pages, the pool. An array of gigabytes then takes the memory of its
// pool, and a program that goes through it finds other lines of memory for as long as
// the pool is, and in a cache none that is much smaller. Some blocks of an array may have
// pages of their own, in which nothing else is written.
//
// Only Linux has such arrays here (memfd_create(2), mmap(2) with MAP_FIXED).
package aliased

import "iter"

// Block is the granularity of pools and arrays in bytes: a large page.
const Block = 2 << 20

// Zone is the number of bytes in front of and behind an array that are not used, once
// Own was called.
const Zone = 256

// Blocks are the blocks of an array that have pages of their own, as ranges of bytes.
func (a *Array) Blocks() iter.Seq2[int64, int64] {
	return func(yield func(lo, hi int64) bool) {
		n := int64(len(a.Data))
		for lo := int64(0); lo < n; lo += Block {
			if !a.Owns(lo) {
				continue
			}
			if !yield(lo, min(n, lo+Block)) {
				return
			}
		}
	}
}

// blocks is the number of blocks that have n bytes.
func blocks(n int64) int64 {
	return (n + Block - 1) / Block
}
