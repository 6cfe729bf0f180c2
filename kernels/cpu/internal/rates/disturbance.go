package rates

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// Disturbance reads what Linux has counted of other work on the processors since it
// started (proc(5)); elsewhere it is zero.
func Disturbance() (d kernels.Disturbance) {
	// Every thread has a file; the sum of those that have ended is not kept, which makes
	// a difference too small at most.
	tasks, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err == nil { // else the thread has ended
			d.Waited += waitedOf(string(text))
		}
	}
	text, err := os.ReadFile("/proc/stat")
	if err == nil {
		d.Stolen = stolenOf(string(text))
	}
	return d
}

// waitedOf is the second number of a schedstat: nanoseconds that the thread could have run
// and did not.
func waitedOf(text string) time.Duration {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n)
}

// jiffy is the unit of /proc/stat, USER_HZ, on all architectures that Go runs on.
const jiffy = 10 * time.Millisecond

// stolenOf is the eighth number of the first line of /proc/stat: the time of all
// processors that a hypervisor gave to others.
func stolenOf(text string) time.Duration {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const steal = 8
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0
	}
	n, err := strconv.ParseInt(fields[steal], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * jiffy
}
