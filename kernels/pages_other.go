//go:build !linux

package kernels

// hugePages does nothing: Linux only has pages of several sizes on request.
func hugePages([]byte) {}
