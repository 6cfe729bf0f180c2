package workers

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
			time.Sleep(2 * workerLingerTime) // The workers park.
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

// A worker that nothing is announced to parks: the process takes no processor time.
func TestIdleWorkersPark(t *testing.T) {
	region := forEach(new(Pool), runtime.GOMAXPROCS(0), 300, func(int64) {})
	defer region.Close()
	if _, err := region.Run(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * workerLingerTime)
	const span = 50 * time.Millisecond
	before := processorTime(t)
	time.Sleep(span)
	if used := processorTime(t) - before; used > span/10 {
		t.Errorf("%v of processor time in %v", used, span)
	}
}

// processorTime is what the process has used.
func processorTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A worker that lingers on the only processor keeps no timer from it.
func TestLingeringWorkersYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	region := forEach(new(Pool), 2, 300, func(int64) {})
	defer region.Close()
	least := time.Hour
	for range 50 {
		if _, err := region.Run(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.Sleep(workerSpinTime)
		least = min(least, time.Since(begin))
	}
	if least > workerLingerTime/2 {
		t.Errorf("a sleep of %v takes %v", workerSpinTime, least)
	}
}
