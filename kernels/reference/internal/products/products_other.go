//go:build !amd64 || noasm

package products

// Fast reports whether the processor has code for blocks.
func Fast() bool { return false }

// sum is never called.
func (b *Block) sum(_, _ []float64, _ int) { panic("no code for blocks") }
