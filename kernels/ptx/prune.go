package ptx

// Prune removes from all bodies instructions whose results are never read.
func (m *Module) Prune() {
	for k := range m.Entries {
		m.Entries[k].Body = prune(m.Entries[k].Body)
	}
	m.number()
}

// prune leaves out what is computed and never read: instructions without
// effects whose results no other instruction has among its operands.
func prune(body []Stmt) []Stmt {
	read := map[Reg]int{}
	for i := range body {
		countReads(&body[i], read, 1)
	}
	drop := make([]bool, len(body))
	for i := len(body) - 1; i >= 0; i-- { // sources are computed before
		if drop[i] = idle(&body[i], read); drop[i] {
			countReads(&body[i], read, -1)
		}
	}
	kept := make([]Stmt, 0, len(body))
	for i := range body {
		if !drop[i] {
			kept = append(kept, body[i])
		}
	}
	return kept
}

// countReads adds n for each operand s reads.
func countReads(s *Stmt, read map[Reg]int, n int) {
	if s.Kind != StmtInstr {
		return
	}
	read[s.Instr.Guard.Reg] += n
	sources := s.Instr.Operands
	if pure(&s.Instr.Opcode) && len(sources) > 0 {
		sources = sources[1:]
	}
	for k := range sources {
		each(&sources[k], func(r Reg) bool {
			read[r] += n
			return true
		})
	}
}

// idle reports whether the results of s are not read, and s has no other effect.
func idle(s *Stmt, read map[Reg]int) bool {
	if s.Kind != StmtInstr ||
		!pure(&s.Instr.Opcode) ||
		len(s.Instr.Operands) == 0 {
		return false
	}
	return each(&s.Instr.Operands[0], func(r Reg) bool {
		return read[r] == 0
	})
}

// each calls f with the registers of an operand until f returns false.
func each(o *Operand, f func(Reg) bool) bool {
	if !o.Reg.None() && !f(o.Reg) {
		return false
	}
	for k := range o.List {
		if !each(&o.List[k], f) {
			return false
		}
	}
	return true
}
