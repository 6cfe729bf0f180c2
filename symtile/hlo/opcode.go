package hlo

// Opcode is the HLO name of an operation, e.g. "add" or "get-tuple-element".
type Opcode string
