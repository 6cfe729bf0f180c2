package ptx

// function reads a function whose directive was read.
func (p *parser) function(link Linkage) error {
	f := Function{Entry: Entry{Linkage: link, Line: int32(p.Line)}}
	p.begin(&f.Entry)
	p.skipAttributes()
	if p.take('(') {
		p.backTo(place{At: p.At - 1, Line: p.Line, LineStart: p.LineStart})
		if err := p.params(); err != nil {
			return err
		}
		f.Results, f.Params = f.Params, nil
	}
	var err error
	if f.Name, err = p.newName("the name of the function"); err != nil {
		return err
	}
	if err := p.params(); err != nil {
		return err
	}
	if err := p.performance(); err != nil {
		return err
	}
	if f.Declared = p.take(';'); !f.Declared {
		if err := p.want('{'); err != nil {
			return err
		}
		if err := p.body(); err != nil {
			return err
		}
	}
	p.m.Functions = append(p.m.Functions, f)
	return nil
}

// skipAttributes skips .attribute(…) before the name of a function.
func (p *parser) skipAttributes() {
	mark := p.Here()
	if p.peek() == '.' && p.dotted() == "attribute" && p.take('(') {
		p.SkipTo(")")
		return
	}
	p.backTo(mark)
}

// begin makes an entry the one whose names are read.
func (p *parser) begin(e *Entry) {
	p.e = e
	p.sets = map[string]int32{}
	p.singles = map[string]int32{}
	p.labels = map[string]int{}
	p.scopes = []scope{{labels: map[string]string{}}}
}

// callOperands reads what follows call: (results), target, (arguments), prototype, of
// which the target alone is always there. The operands are those four, the lists as
// vectors; a call without a prototype has three.
func (p *parser) callOperands(in *Instr) error {
	base := len(p.stack)
	results, err := p.parenthesised()
	if err != nil {
		return err
	}
	if results.List != nil {
		if err := p.want(','); err != nil {
			return err
		}
	}
	target, err := p.named()
	if err != nil {
		return err
	}
	args := Operand{Kind: KindVec}
	var rest []Operand
	for p.take(',') {
		if p.peek() == '(' && rest == nil {
			if args, err = p.parenthesised(); err != nil {
				return err
			}
			continue
		}
		o, err := p.named()
		if err != nil {
			return err
		}
		rest = append(rest, o)
	}
	if len(rest) > 1 {
		return p.expected("; behind the prototype of a call")
	}
	p.stack = append(append(p.stack, results, target, args), rest...)
	in.Operands = p.cut(base)
	return nil
}

// parenthesised reads operands in parentheses, where there are any.
func (p *parser) parenthesised() (Operand, error) {
	v := Operand{Kind: KindVec}
	if !p.take('(') || p.take(')') {
		return v, nil
	}
	base := len(p.stack)
	for {
		o, err := p.operand()
		if err != nil {
			return v, err
		}
		if len(p.stack)-base == maxElements {
			return v, p.expected("at most 256 arguments")
		}
		p.stack = append(p.stack, o)
		if !p.take(',') {
			v.List = p.cut(base)
			return v, p.want(')')
		}
	}
}

// branchTargets reads the labels of a .branchtargets, which the label before it names.
func (p *parser) branchTargets(s Stmt) error {
	s.Kind = StmtTargets
	if err := p.operands(&s.Instr); err != nil {
		return err
	}
	p.e.Body = append(p.e.Body, s)
	return p.want(';')
}
