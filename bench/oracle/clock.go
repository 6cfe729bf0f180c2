package main

import (
	"errors"
	"runtime"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
)

// A clock says how samples are timed: by the time that passes, or by that of the processor,
// which other programs on a busy machine disturb through the caches alone, but which says
// nothing about kernels on several lanes.
type clock struct {
	// backend says what other work took.
	backend *cpu.Backend
	// processor is set for that of the processor.
	processor bool
}

// newClock is a clock of a new backend; one of the processor makes it a backend of one lane.
func newClock(processor bool) (clock, error) {
	if processor {
		if processorTime() == 0 {
			return clock{}, errors.New("-processor needs Linux")
		}
		runtime.GOMAXPROCS(1)
	}
	return clock{cpu.New(), processor}, nil
}

// name is that of the clock in a file of samples.
func (c clock) name() string {
	if c.processor {
		return "processor"
	}
	return "elapsed"
}

// A moment is what a clock shows.
type moment struct {
	at time.Time
	// used is time of the processor since the process began.
	used time.Duration
	// disturbed is what other work took since the machine started.
	disturbed kernels.Disturbance
}

// A span is what lies between two moments: of the time of all, of the processor's that this
// process used, and of what other work took.
type span struct{ elapsed, used, disturbed time.Duration }

// look reads the clock.
func (c clock) look() moment {
	if c.processor {
		return moment{used: processorTime()}
	}
	return moment{at: time.Now(), disturbed: c.backend.Disturbance()}
}

// since is what has passed.
func (m moment) since(begin moment) span {
	return span{
		elapsed:   m.at.Sub(begin.at),
		used:      m.used - begin.used,
		disturbed: m.disturbed.Since(begin.disturbed),
	}
}
