package hlo

// Reads reports whether output, an element of the root tuple or 0 for the root
// itself, is made from parameter param.
func (c *Computation) Reads(output, param int) bool {
	root := c.Root
	if root.Op == OpTuple && output < len(root.Operands) {
		root = root.Operands[output]
	}
	seen := map[*Instr]bool{}
	var reads func(i *Instr) bool
	reads = func(i *Instr) bool {
		if seen[i] {
			return false
		}
		seen[i] = true
		for _, o := range i.Operands {
			if reads(o) {
				return true
			}
		}
		return i.Op == OpParameter && i.Attrs.Param == param
	}
	return reads(root)
}
