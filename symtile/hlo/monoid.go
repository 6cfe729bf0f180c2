package hlo

// Monoid recognises a scalar computation that is one associative and
// commutative operation of its two parameters.
func (c *Computation) Monoid() (Opcode, bool) {
	root := c.Root
	if len(c.Params) != 2 || len(root.Operands) != 2 {
		return "", false
	}
	x := root.Operands[0]
	y := root.Operands[1]
	if !(x == c.Params[0] && y == c.Params[1] ||
		x == c.Params[1] && y == c.Params[0]) {
		return "", false
	}
	if !root.Op.Has(Monoid) {
		return "", false
	}
	return root.Op, true
}
