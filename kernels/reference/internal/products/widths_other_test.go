//go:build !amd64 || noasm

package products

// widths are the ways to compute a block that this processor has.
func widths() map[string]func(b *Block, lines, packed []float64, k int) { return nil }
