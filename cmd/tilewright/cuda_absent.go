//go:build !(cuda && cgo && linux)

package main

func cudaDriver() driver {
	return driver{name: "cuda", about: aboutCUDA, absent: "this build does not drive GPUs; `make cuda` makes one that does"}
}

func cudaCommands() []command { return nil }
