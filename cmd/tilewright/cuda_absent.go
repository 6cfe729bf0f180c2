//go:build !(cuda && cgo && linux)

package main

// cudaDriver says that this build has no GPUs.
func cudaDriver() driver {
	return driver{name: "cuda", about: aboutCUDA, absent: "this build does not drive GPUs; `make cuda` makes one that does"}
}

// cudaCommands is empty without the tag cuda.
func cudaCommands() []command { return nil }
