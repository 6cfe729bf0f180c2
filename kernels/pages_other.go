//go:build !linux

package kernels

// adviseHugePages does nothing: Linux only has pages of several sizes on request.
func adviseHugePages([]byte) {}
