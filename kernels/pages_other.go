//go:build !linux

package kernels

// adviseHugePages asks the system to use large pages for an array, also for the pages
// that were touched already. With pages of 4 KiB, the bandwidth depends on which
// physical pages an array has (a copy varies by 1.4).
func adviseHugePages([]byte) {}
