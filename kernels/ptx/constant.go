package ptx

// Global declares bytes in global memory with their values and is its address.
func (b *Builder) Global(name string, align int, data []byte) Operand {
	v := Var{
		Space: ModGlobal,
		Align: align,
		Type:  B8,
		Name:  name,
		Array: true,
		Count: len(data),
	}
	for _, x := range data {
		v.Init = append(v.Init, int64(x))
	}
	b.m.Vars = append(b.m.Vars, v)
	return Sym(name)
}
