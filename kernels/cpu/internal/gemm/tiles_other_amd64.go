//go:build !linux && !noasm

package gemm

// permitTiles is false where nobody knows how to ask.
func permitTiles() bool { return false }
