package workers

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// allowedCPUs counts the threads of the process by the CPUs that they may use.
func allowedCPUs(t *testing.T) map[string]int {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string]int{}
	for _, name := range tasks {
		status, err := os.ReadFile(name)
		if err != nil {
			continue // The thread has ended.
		}
		_, rest, _ := bytes.Cut(status, []byte("Cpus_allowed:"))
		set, _, _ := bytes.Cut(rest, []byte("\n"))
		sets[string(bytes.TrimSpace(set))]++
	}
	return sets
}

// After the last region is closed all threads have the CPUs that they had before, and
// those that are woken in between had no CPU that the process has not. It holds with one
// processor for Go, too, where a worker may get none until the run is over.
func TestThreadsAreGivenBack(t *testing.T) {
	before := allowedCPUs(t)
	if len(before) != 1 {
		t.Skipf("threads differ in their CPUs: %v", before)
	}
	for _, processors := range []int{1, runtime.GOMAXPROCS(0)} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		region := forEach(new(Pool), 4, 300, func(int64) {})
		for range 5 {
			if _, err := region.Run(); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * workerYieldTime) // The workers park.
		}
		region.Close()
		for sets := allowedCPUs(t); ; sets = allowedCPUs(t) {
			if len(sets) == 1 {
				for set := range sets {
					if before[set] == 0 {
						t.Errorf("threads may use %s, %v before", set, before)
					}
				}
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}
