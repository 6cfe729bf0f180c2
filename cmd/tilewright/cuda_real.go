//go:build cuda && !cudasim && cgo && linux

package main

// startCUDA has nothing to do: the driver is the system's.
func startCUDA() error { return nil }
