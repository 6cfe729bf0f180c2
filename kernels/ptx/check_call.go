package ptx

// function checks a function: what an entry is checked for, and that its results are
// parameters.
func (c *checker) function(f *Function) error {
	c.e = &f.Entry
	if err := c.parameters(); err != nil {
		return err
	}
	if f.Declared {
		return nil
	}
	if err := c.names(); err != nil {
		return err
	}
	for i := range f.Results {
		r := &f.Results[i]
		v := &Var{
			Space: ModParam, Align: r.Align, Type: r.Type, Name: r.Name,
			Array: r.Count > 0, Count: r.Count, Line: r.Line,
		}
		if err := c.variable(v, c.locals, new(int)); err != nil {
			return err
		}
	}
	return c.body()
}

// declare enters the functions of the module, which may be called before they are
// defined.
func (c *checker) declare() error {
	c.functions = map[string]*Function{}
	for i := range c.m.Functions {
		f := &c.m.Functions[i]
		before := c.functions[f.Name]
		switch {
		case c.vars[f.Name] != nil || before != nil && !before.Declared && !f.Declared:
			return c.at(f.Line, 1, f.Name, "%s is declared twice", f.Name)
		case before != nil && (len(before.Params) != len(f.Params) || len(before.Results) != len(f.Results)):
			return c.at(f.Line, 1, f.Name, "%s was declared with other parameters", f.Name)
		}
		if before == nil || before.Declared {
			c.functions[f.Name] = f
		}
	}
	return nil
}

// call checks a call: that the function is known, and takes so many arguments.
func (c *checker) call(in *Instr) error {
	all := in.Operands
	for _, m := range in.Opcode.Mods() {
		if m != ModUni {
			return c.fail("."+m.String(), "%s: .%s may not stand there", in.Opcode, m)
		}
	}
	if len(all) < 3 || all[0].Kind != KindVec || all[2].Kind != KindVec {
		return c.fail("", "a call has results, a function and arguments")
	}
	for _, list := range [][]Operand{all[0].List, all[2].List} {
		for i := range list {
			if err := c.argument(&list[i]); err != nil {
				return err
			}
		}
	}
	for i := range all[0].List {
		if k := all[0].List[i].Kind; k != KindReg && k != KindSym {
			return c.fail("", "a result is a variable or a register")
		}
	}
	target := &all[1]
	if target.Kind == KindReg {
		// What a register points at has a prototype, which is a label here.
		return c.visible(target.Reg)
	}
	f := c.functions[target.Sym]
	switch {
	case f == nil:
		return c.fail(target.Sym, "no function %s is declared", target.Sym)
	case len(all[2].List) != len(f.Params):
		return c.fail(target.Sym, "%s takes %d arguments, not %d", f.Name, len(f.Params), len(all[2].List))
	case len(all[0].List) > len(f.Results):
		return c.fail(target.Sym, "%s has %d results, not %d", f.Name, len(f.Results), len(all[0].List))
	}
	return nil
}

// argument checks an argument or a result: a .param variable, a register or a number.
func (c *checker) argument(o *Operand) error {
	switch o.Kind {
	case KindReg:
		return c.visible(o.Reg)
	case KindSym:
		if v := c.lookup(o.Sym); v == nil || v.Space != ModParam {
			return c.fail(o.Sym, "no .param variable %s is declared", o.Sym)
		}
		return nil
	case KindInt, KindF32, KindF64:
		return nil
	}
	return c.fail("", "an argument is a variable, a register or a number")
}

// targets checks that the labels of a .branchtargets exist.
func (c *checker) targets(s *Stmt) error {
	for _, o := range s.Instr.Operands {
		if o.Kind != KindSym || !c.labels[o.Sym] {
			return c.fail(o.Sym, "no label %s is placed in %s", o.Sym, c.e.Name)
		}
	}
	return nil
}
