//go:build !linux

package kernels

// available is not known on this system.
func available() int64 { return maxBuffer }
