//go:build amd64 && !noasm

package m16n8k16

import "golang.org/x/sys/cpu"

// add256 is Add with a row of sums in a register of 256 bits.
//
//go:noescape
func add256(c *C, a *A, b *B)

// add is Add in the widest registers.
func (c *C) add(a *A, b *B) {
	if cpu.X86.HasAVX2 {
		add256(c, a, b)
		return
	}
	c.addPlain(a, b)
}
