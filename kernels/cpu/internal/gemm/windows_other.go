//go:build !amd64 || noasm

package gemm

// ReadsByteWindows reports whether MultiplyInt8 reads windows of bytes.
func ReadsByteWindows() bool { return false }

// windowScratch is the bytes that a product of windows needs.
func (x Product[T]) windowScratch() int { return 0 }
