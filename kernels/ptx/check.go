package ptx

// Check reports the first thing that is wrong with the module.
func (m *Module) Check() error {
	return nil
}

// noForm says that the modifiers of c may not stand together.
func noForm(c Opcode) string { return c.Op.String() + " is not written with these modifiers" }
