//go:build !amd64 || noasm

package gemm

// ReadsByteWindows reports whether MultiplyInt8 reads windows of bytes.
func ReadsByteWindows() bool { return false }

// windowScratch is the bytes that a product of windows needs.
func (x Product[T]) windowScratch() int { return 0 }

// HasLanes reports whether there are kernels for lanes.
func HasLanes() bool { return false }

// Multiply is not called without kernels.
func (x *Lanes) Multiply(c, a, w []float32, ws int, fresh bool) {}
