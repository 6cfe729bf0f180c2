//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
)

// Limits of a mutant: processor time, and memory beyond what the process has when
// it begins.
const (
	maxMutantTime   = 10 * time.Second
	maxMutantMemory = 1 << 30
	watchInterval   = 20 * time.Millisecond
)

// work tries the mutants of a range and says what becomes of each, a line for one:
// "done", the fate, the memory in MB and, after a panic, what is known of it.
func work(o options, out io.Writer) int {
	var from, to int
	if _, err := fmt.Sscanf(o.worker, "%d:%d", &from, &to); err != nil {
		return 2
	}
	texts, err := corpus()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	backend := cpu.New()
	model, err := cost.Fit(nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := &watch{}
	go w.run()
	for n := from; n < to; n++ {
		text := mutant(texts, o.seed, n)
		w.begin()
		fate := try(backend, model, text)
		mb := w.end()
		fmt.Fprintf(out, "done %s\n", fmt.Sprintf(fate, mb))
	}
	return 0
}

// A watch ends the process when a mutant needs too much.
type watch struct {
	// A mutant is being tried; between two of them nothing is counted.
	active atomic.Bool
	// Processor time in nanoseconds, and bytes of the heap, when it began.
	cpu, heap atomic.Int64
	// The most bytes beyond those.
	peak atomic.Int64
}

// run looks at the process again and again.
func (w *watch) run() {
	for ; ; time.Sleep(watchInterval) {
		if !w.active.Load() {
			continue
		}
		heap := heapBytes() - w.heap.Load()
		w.peak.Store(max(w.peak.Load(), heap))
		used := processorTime() - time.Duration(w.cpu.Load())
		if !w.active.Load() || used < maxMutantTime && heap < maxMutantMemory {
			continue
		}
		stack := make([]byte, 1<<16)
		stack = stack[:runtime.Stack(stack, true)]
		fmt.Fprintf(os.Stderr, "%v of processor time, %d MB: %s\n", used, heap>>20, places(stack))
		os.Exit(3)
	}
}

// begin begins with the next mutant.
func (w *watch) begin() {
	w.heap.Store(heapBytes())
	w.cpu.Store(int64(processorTime()))
	w.peak.Store(0)
	w.active.Store(true)
}

// end is the memory that the mutant needed, in MB.
func (w *watch) end() int {
	w.active.Store(false)
	return int(max(w.peak.Load(), heapBytes()-w.heap.Load()) >> 20)
}

// heapBytes is the memory of the heap, garbage included.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// try takes a text through everything that does not run code: it is parsed, split
// into fusions, analysed, all plans of the CPU backend are ranked, and some compiled.
// The result is a word for its fate and a verb for the memory.
func try(b kernels.Backend, model *cost.Model, text []byte) (fate string) {
	defer func() {
		if p := recover(); p != nil {
			message := strings.ReplaceAll(fmt.Sprint(p), "%", "%%")
			fate = fmt.Sprintf("panic %%d %.200q at %s", message, places(debug.Stack()))
		}
	}()
	m, err := hlo.Parse("mutant", text)
	if err != nil {
		return "refused %d"
	}
	split, err := partition.Module(
		context.Background(),
		m, partition.Options{},
	)
	if err != nil {
		return "abandoned %d"
	}
	fate = "untileable %d"
	for _, f := range split.Module.Fusions() {
		err := rank(b, model, f)
		var not *uncompiledError
		switch {
		case errors.As(err, &not):
			return "uncompiled %d " + strings.ReplaceAll(not.Error(), "%", "%%")
		case err == nil:
			fate = "ranked %d"
		}
	}
	return fate
}

// compiledPlans is the number of ranked plans that are compiled beside the default.
const compiledPlans = 4

// An uncompiledError is about a plan that is offered and cannot be compiled.
type uncompiledError struct {
	// Names of the fusion and of its plan, which is "default" where there is none.
	fusion, plan string
	// Why the backend, or Close, refuses it.
	err error
}

// Error names the fusion and the plan.
func (e *uncompiledError) Error() string {
	return fmt.Sprintf("%s: %s: %.200q", e.fusion, e.plan, e.err.Error())
}

// compile compiles the default plan of a fusion and some of those that are ranked, the
// first and the last among them.
func compile(b kernels.Backend, p *symtile.Program, ranked []cost.Ranked) error {
	ctx := context.Background()
	plan, err := b.Default(ctx, p)
	if err != nil {
		return &uncompiledError{p.Fusion.Name, "default", err}
	}
	plans := []kernels.Plan{plan}
	for k := range compiledPlans {
		at := k * (len(ranked) - 1) / (compiledPlans - 1)
		plans = append(plans, ranked[at].Plan)
	}
	for _, plan := range plans {
		k, err := b.Compile(ctx, p, plan)
		if err != nil {
			return &uncompiledError{p.Fusion.Name, plan.String(), err}
		}
		if err := k.Close(); err != nil {
			return &uncompiledError{p.Fusion.Name, plan.String(), err}
		}
	}
	return nil
}

// rank ranks all plans of a fusion and compiles some; the error says why it has none,
// or is an *uncompiledError.
func rank(b kernels.Backend, model *cost.Model, f *hlo.Computation) error {
	ctx := context.Background()
	p, err := symtile.Analyze(ctx, f)
	if err != nil {
		return err
	}
	pricer, err := kernels.PricerOf(b, p)
	if err != nil {
		return err
	}
	plans := slices.Collect(b.Plans(ctx, p))
	if len(plans) == 0 {
		_, err = b.Default(ctx, p)
		return err
	}
	ranked, err := model.Rank(ctx, pricer, plans)
	if err != nil {
		return err
	}
	return compile(b, p, ranked)
}

// places are the source lines of a stack that are this module's, the innermost
// first: enough to tell one cause from another.
func places(stack []byte) string {
	var all []string
	for line := range strings.Lines(string(stack)) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		ours := strings.Contains(path, "tilewright") &&
			!strings.Contains(path, "bench/attack")
		if ours && strings.Contains(path, ".go:") {
			all = append(all, filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path))
		}
	}
	return strings.Join(all[:min(len(all), 8)], " < ")
}
