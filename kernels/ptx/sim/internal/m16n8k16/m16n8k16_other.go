//go:build !amd64 || noasm

package m16n8k16

// add is Add in Go.
func (c *C) add(a *A, b *B) { c.addPlain(a, b) }
