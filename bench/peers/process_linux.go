package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// suspend stops a process; nil is none.
func suspend(p *os.Process) {
	if p != nil {
		p.Signal(syscall.SIGSTOP)
	}
}

// resume lets a stopped process go on.
func resume(p *os.Process) {
	if p != nil {
		p.Signal(syscall.SIGCONT)
	}
}

// dieWithParent has the kernel kill the process when the thread that starts it
// ends: a stopped one would not notice that its input closed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// processors are those that this process may use.
func processors() (all []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for n := range len(set) * strconv.IntSize {
		if set.IsSet(n) {
			all = append(all, n)
		}
	}
	return all
}

// place lets all threads of a process, nil is this one, run on some processors only. Threads
// that it starts later do as those that start them.
func place(p *os.Process, on []int) {
	var set unix.CPUSet
	for _, n := range on {
		set.Set(n)
	}
	pid := os.Getpid()
	if p != nil {
		pid = p.Pid
	}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			unix.SchedSetaffinity(tid, &set) // one that has ended needs no place
		}
	}
}
