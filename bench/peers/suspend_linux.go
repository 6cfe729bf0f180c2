package main

import (
	"os"
	"os/exec"
	"syscall"
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
