//go:build !linux

package main

import "time"

// processorTime is 0: processor time is read on Linux only.
func processorTime() time.Duration { return 0 }
