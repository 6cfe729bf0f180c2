//go:build amd64 && !noasm

package products

import "golang.org/x/sys/cpu"

// widths are the ways to compute a block that this processor has.
func widths() map[string]func(b *Block, lines, packed []float64, k int) {
	all := map[string]func(b *Block, lines, packed []float64, k int){
		"256 bits": (*Block).sumNarrow,
	}
	if cpu.X86.HasAVX512F {
		all["512 bits"] = (*Block).sum
	}
	return all
}
