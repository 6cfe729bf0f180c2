package hlo

// Parse reads a module from text: HLO (what XLA dumps, a bare computation, or
// a bare list of instructions) or StableHLO (MLIR, as JAX and PyTorch/XLA print
// it); the first token tells which. file is used in errors, which are *Error.
func Parse(file string, src []byte) (*Module, error) {
	if isStableHLO(src) {
		return parseStableHLO(file, src)
	}
	return parseHLO(file, src)
}
