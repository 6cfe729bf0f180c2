//go:build unix

package cache

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file read-only.
func mapFile(path string) ([]byte, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() ||
		info.Size() == 0 ||
		info.Size() > math.MaxInt {
		return nil, nil, fmt.Errorf("%s: not a tilewright snapshot", path)
	}
	data, err := unix.Mmap(
		int(f.Fd()),
		0,
		int(info.Size()),
		unix.PROT_READ,
		unix.MAP_SHARED,
	)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, func() error { return unix.Munmap(data) }, nil
}
