package kernels

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// reservedShare is the part of all memory that is left to others and to small things.
const reservedShare = 1. / 8

// freeMemory is how many bytes processes can still take without swapping, by the
// kernel's estimate (proc(5), MemAvailable) and the limit of the control group
// (cgroup-v2, memory.max), less a part of all; all there are where neither says.
func freeMemory() int64 {
	least := int64(maxBuffer)
	total, _ := field("/proc/meminfo", "MemTotal:")
	if n, ok := field("/proc/meminfo", "MemAvailable:"); ok {
		least = min(
			least, n<<10-int64(reservedShare*float64(total<<10)),
		)
	}
	const group = "/sys/fs/cgroup/memory."
	limit, ok := field(group+"max", "")
	used, known := field(group+"current", "")
	if ok && known {
		cached, _ := field(group+"stat", "inactive_file")
		least = min(
			least, limit-used+cached-int64(reservedShare*float64(limit)),
		)
	}
	return max(0, least)
}

// field is the number that follows a name at the beginning of a line of a file.
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
