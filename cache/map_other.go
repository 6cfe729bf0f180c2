//go:build !unix

package cache

import (
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// mapFile reads a file of a size where mapping is not portable.
func mapFile(f *os.File, size int) (data []byte, unmap func([]byte) error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data)
	return data, func([]byte) error { return nil }, err
}

// adviseHugePages does nothing where mapping is not portable.
func adviseHugePages([]byte) {}

// forgetPages does nothing where mapping is not portable.
func forgetPages(*bbolt.Tx) {}
