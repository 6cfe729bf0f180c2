package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/tilewright/tilewright/kernels/gpu/golden"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "judge-gpu:", err)
		os.Exit(1)
	}
}

// A judge assembles kernels.
type judge struct {
	tools tools
	// Folder is for the files that the tools read and write.
	folder string
	// Only is what the names of kernels contain that are judged.
	only string
	// Share of the kernels, from 0 to 1, and the seed that it is drawn by.
	share float64
	seed  uint64
	// Lines receives the JSON of each kernel.
	lines io.Writer
	// Mu guards lines and what follows.
	mu  sync.Mutex
	all []*verdict
}

// run judges, and prints tables.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("judge-gpu", flag.ContinueOnError)
	venv := flags.String("tools", "out/venv-gpu", "the virtual environment that has ptxas and nvdisasm")
	large := flags.String("large", "cmd/tilewright/doctor", "a folder of further programs")
	sample := flags.String("sample", "100%", "the share of the kernels that is judged")
	seed := flags.Uint64("seed", 1, "of the sample and of the random plans")
	only := flags.String("only", "", "judge kernels whose name (program, architecture, plan) contains this")
	file := flags.String("json", "out/judge-gpu.jsonl", "the file for a line of each kernel")
	triton := flags.String("beside", "", "compare with the kernels of Triton in this folder, and judge nothing")
	workers := flags.Int("workers", 2, "assemblers that run at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	digits := strings.TrimSuffix(*sample, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	if err != nil || percent <= 0 || percent > 100 {
		return fmt.Errorf("-sample %s: expected a share such as 5%%", *sample)
	}
	j := judge{
		share: percent / 100,
		seed:  *seed,
		only:  *only,
	}
	if j.tools, err = findTools(*venv); err != nil {
		return err
	}
	if *triton != "" {
		return beside(j.tools, *triton, out)
	}
	if j.folder, err = os.MkdirTemp("", "judge-gpu"); err != nil {
		return err
	}
	defer os.RemoveAll(j.folder)
	if err := os.MkdirAll(filepath.Dir(*file), 0o755); err != nil {
		return err
	}
	lines, err := os.Create(*file)
	if err != nil {
		return err
	}
	defer lines.Close()
	j.lines = lines
	list, err := programs(*large)
	if err != nil {
		return err
	}
	if err := j.judge(list, *workers); err != nil {
		return err
	}
	return j.report(out)
}

// judge takes the programs one after the other, and their kernels side by side.
func (j *judge) judge(list []program, workers int) error {
	work := make(chan *kernel)
	var wait sync.WaitGroup
	// Failed is the last error of a tool itself, not of a kernel.
	var failed error
	for n := range workers {
		wait.Go(func() {
			for k := range work {
				if err := j.kernel(k, n); err != nil {
					j.mu.Lock()
					failed = err
					j.mu.Unlock()
				}
			}
		})
	}
	err := j.emit(list, work)
	close(work)
	wait.Wait()
	if err != nil {
		return err
	}
	return failed
}

// emit sends the kernels that belong to the sample.
func (j *judge) emit(list []program, work chan<- *kernel) error {
	for _, p := range list {
		for _, t := range targets {
			name := p.name + " " + t.arch
			if !strings.Contains(name+" ", j.only) &&
				!strings.Contains(j.only, name) {
				continue
			}
			part := programShare(j.share)
			if !drawn(name, part, j.seed) {
				continue
			}
			all, err := distinct(p, t, j.share/part, j.seed)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, t.arch, err)
			}
			for _, k := range all {
				if strings.Contains(k.name(), j.only) {
					work <- k
				}
			}
		}
	}
	return nil
}

// kernel judges one kernel.
func (j *judge) kernel(k *kernel, worker int) error {
	v := &verdict{kernel: k}
	file, err := write(j.folder, fmt.Sprintf("%d.ptx", worker), k.PTX)
	if err != nil {
		return err
	}
	cubin := filepath.Join(j.folder, fmt.Sprintf("%d.cubin", worker))
	some := j.tools.assemblers
	if j.share < 1 {
		n := len(k.PTX) % len(some)
		some = some[n : n+1]
	}
	for _, a := range some {
		v.Assemblies = append(
			v.Assemblies,
			a.assemble(file, k.target.arch, cubin),
		)
	}
	// The code of the last assembler, the newest of them, is what is looked at.
	if v.Assemblies[len(v.Assemblies)-1].Failed == "" {
		text, err := j.tools.disassemble(cubin)
		if err != nil {
			return err
		}
		v.Loops, v.Body = loops(text), bodyOf(text)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, v)
	return json.NewEncoder(j.lines).Encode(line(v))
}

// line is the JSON of a kernel.
func line(v *verdict) any {
	k := v.kernel
	return struct {
		Program, Arch, Plan, Hash string
		Default                   bool
		Estimated, Priced         any
		Launched                  any
		Assemblies                []assembly
		Loops                     []loop
		Body                      body
		Findings                  []finding
	}{
		k.program.name, k.target.arch, k.plan.String(),
		golden.Hash(k.PTX), k.isDefault,
		k.Estimated, k.Priced, k.Launched,
		v.Assemblies, v.Loops, v.Body, v.findings(),
	}
}

// report prints what is kept and what is not; it is an error if something is broken
// that known.txt does not list.
func (j *judge) report(out io.Writer) error {
	known, err := shortfalls(knownText)
	if err != nil {
		return err
	}
	broken := 0
	// Findings of each promise, those that are known, and those that are not.
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	count := map[string][3]int{}
	for _, v := range j.all {
		for _, f := range v.findings() {
			c := count[f.Promise]
			c[0]++
			if excuse(known, f) != nil {
				c[1]++
			} else {
				c[2]++
				broken++
				if c[2] <= shown {
					f.print(out)
				}
			}
			count[f.Promise] = c
		}
	}
	fmt.Fprintf(w, "%d kernels\n", len(j.all))
	fmt.Fprintln(w, "promise\tfindings\tknown\tbroken")
	for _, p := range promises() {
		c := count[p]
		fmt.Fprintf(
			w, "%s\t%d\t%d\t%d\n",
			p, c[0], c[1], c[2],
		)
	}
	fmt.Fprintf(w, "promise\tkept\tdemanded\testimate too low\t\n")
	for _, s := range shares(j.all) {
		mark := ""
		// A smaller share is a larger number here, as of findings.
		f := finding{
			Promise: s.Promise,
			Kernel:  "all",
			Value:   -s.part(),
		}
		if s.part() < s.Demanded && len(j.all) >= fewKernels {
			mark = "known"
			if excuse(known, f) == nil {
				mark = "BROKEN"
				broken++
			}
		}
		fmt.Fprintf(
			w, "%s\t%.1f %% of %d\t%.0f %%\t%d\t%s\n",
			s.Promise, s.part(), s.All,
			s.Demanded, s.Under, mark,
		)
	}
	w.Flush()
	if len(j.all) == 0 {
		return fmt.Errorf("no kernel is called so")
	}
	if broken > 0 {
		return fmt.Errorf("%d promises are broken that known.txt does not list", broken)
	}
	return nil
}

// print says what is broken.
func (f finding) print(out io.Writer) {
	fmt.Fprintf(
		out, "BROKEN %s %.4g (limit %.4g): %s %s\n",
		f.Promise, f.Value, f.Limit,
		f.Kernel, f.Said,
	)
}

// shown is how many kernels are printed that break a promise.
const shown = 12

// programShare is the part of the programs that a sample is drawn from: listing plans
// takes long, so it has few programs, and more of their plans.
func programShare(share float64) float64 {
	return min(1, 4*share)
}

// fewKernels is the number from which shares of all kernels are judged.
const fewKernels = 100

// promises are the names of what is promised of a kernel.
func promises() []string {
	all := []string{"assembles", "warnings", "stack", "spills"}
	for _, l := range loopLimits {
		all = append(all, l.promise)
	}
	for _, l := range bodyLimits {
		all = append(all, l.promise)
	}
	return all
}
