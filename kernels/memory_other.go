//go:build !linux

package kernels

// freeMemory is the number of bytes that can be allocated without swapping: the
// smaller of the kernel's estimate (proc(5), MemAvailable) and what the control group
// allows (cgroup-v2, memory.max), less the reserved share. It is maxBuffer where
// neither is known.
func freeMemory() int64 { return maxBuffer }
