//go:build amd64 && !noasm

package products

import "golang.org/x/sys/cpu"

// Fast reports whether the processor has code for blocks.
func Fast() bool { return cpu.X86.HasAVX2 }

// sums512 computes a block in registers of 512 bits. Lines are k numbers long.
//
//go:noescape
func sums512(k int, lines, packed, sums *float64)

// sums256 computes four rows and eight columns of a block in registers of 256 bits. Lines are k numbers long.
//
//go:noescape
func sums256(k int, lines, packed, sums *float64)

// The part of a block that sums256 computes.
const (
	rows256    = 4
	columns256 = 8
)

// sum is Sum in the widest registers.
func (b *Block) sum(lines, packed []float64, k int) {
	if cpu.X86.HasAVX512F {
		sums512(k, &lines[0], &packed[0], &b[0])
		return
	}
	b.sumNarrow(lines, packed, k)
}

// sumNarrow is Sum in registers of 256 bits.
func (b *Block) sumNarrow(lines, packed []float64, k int) {
	for row := 0; row < Rows; row += rows256 {
		for column := 0; column < Columns; column += columns256 {
			sums256(k, &lines[row*k], &packed[column], &b[row*Columns+column])
		}
	}
}
