package kernels

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// reservedShare is the share of all memory that is left to other processes and to
// small allocations.
const reservedShare = 1. / 8

// freeMemory is the number of bytes that can be allocated without swapping: the
// smaller of the kernel's estimate (proc(5), MemAvailable) and what the control group
// allows (cgroup-v2, memory.max), less the reserved share. It is maxBuffer where
// neither is known.
func freeMemory() int64 {
	available := int64(maxBuffer)
	total, _ := field("/proc/meminfo", "MemTotal:")
	if n, ok := field("/proc/meminfo", "MemAvailable:"); ok {
		available = min(
			available, n<<10-int64(reservedShare*float64(total<<10)),
		)
	}
	const group = "/sys/fs/cgroup/memory."
	limit, ok := field(group+"max", "")
	used, known := field(group+"current", "")
	if ok && known {
		cached, _ := field(group+"stat", "inactive_file")
		available = min(
			available, limit-used+cached-int64(reservedShare*float64(limit)),
		)
	}
	return max(0, available)
}

// field is the number after a name at the start of a line of a file.
func field(file, name string) (int64, bool) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, found := strings.CutPrefix(s.Text(), name); found {
			n, err := strconv.ParseInt(
				strings.Fields(rest + " -")[0], 10, 64,
			)
			return n, err == nil
		}
	}
	return 0, false
}
