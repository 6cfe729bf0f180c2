package main

import (
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A process runs on the processors it is placed on, with all its threads.
func TestPlace(t *testing.T) {
	usable := processors()
	if len(usable) == 0 {
		t.Fatal("no processors")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer cmd.Process.Kill()
	last := usable[len(usable)-1:]
	place(cmd.Process, last)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(cmd.Process.Pid, &set); err != nil || set.Count() != 1 || !set.IsSet(last[0]) {
		t.Errorf("the process has %d processors: %v", set.Count(), err)
	}
	place(nil, last)
	if now := processors(); !slices.Equal(now, last) {
		t.Errorf("this process has processors %v, want %v", now, last)
	}
	place(nil, usable)
	if now := processors(); !slices.Equal(now, usable) {
		t.Errorf("this process has processors %v again, want %v", now, usable)
	}
}
