package hlo

func (m *Module) String() string      { panic("hlo room") } // parses back to the same module
func (c *Computation) String() string { panic("hlo room") }
func (i *Instr) String() string       { panic("hlo room") } // one line
func (s Shape) String() string        { panic("hlo room") } // f32[8,16]{1,0}; layout omitted when default
func (d DType) String() string        { panic("hlo room") }

// Fusions lists the computations to tune: those called by fusion instructions
// of the entry (and of what it calls), in order, each once; the entry itself
// when there are none.
func (m *Module) Fusions() []*Computation { panic("hlo room") }

// Fingerprint is the SHA-256 of the canonical text (see doc.go).
func (c *Computation) Fingerprint() [32]byte { panic("hlo room") }

func (s Shape) Rank() int           { return len(s.Dims) }
func (s Shape) Elements() int64     { panic("hlo room") } // product of Dims
func (s Shape) Bytes() int64        { panic("hlo room") } // Elements · DType.Size
func (s Shape) Equal(t Shape) bool  { panic("hlo room") } // type, dims and layout
func (s Shape) MinorToMajor() []int { panic("hlo room") } // never nil
func (s Shape) Strides() []int64    { panic("hlo room") } // elements, per logical dimension, from MinorToMajor
func (d DType) Size() int64         { panic("hlo room") } // bytes of an element in a buffer; 0 for tuple, token, opaque
func (d DType) IsFloat() bool       { panic("hlo room") }
func (d DType) IsInteger() bool     { panic("hlo room") } // signed or unsigned, not pred
func (o Opcode) Elementwise() bool  { panic("hlo room") } // pointwise ops incl. compare, select, clamp, convert, copy
