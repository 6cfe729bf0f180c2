//go:build !unix

package cache

import "os"

// mapFile reads the file where mapping is not portable.
func mapFile(path string) ([]byte, func() error, error) {
	data, err := os.ReadFile(path)
	return data, func() error { return nil }, err
}
