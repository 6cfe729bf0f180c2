package index

// A script is expressions as they are written: operations on earlier values,
// equal ones once. Running it in a ring is what simplifies.
type script struct {
	ops   []scriptOp
	index map[scriptOp]int32
}

type scriptCode uint8

const (
	scriptConst scriptCode = iota // c
	scriptVar                     // variable number c
	scriptAdd
	scriptSub
	scriptMul
	scriptDiv
	scriptCeilDiv
	scriptMod
	scriptMin
	scriptMax
)

// A scriptOp combines the values x and y, which are earlier.
type scriptOp struct {
	code scriptCode
	x, y int32
	c    int64
}

func (s *script) add(op scriptOp) int32 {
	if id, ok := s.index[op]; ok {
		return id
	}
	if s.index == nil {
		s.index = map[scriptOp]int32{}
	}
	s.ops = append(s.ops, op)
	id := int32(len(s.ops) - 1)
	s.index[op] = id
	return id
}

func (s *script) constant(c int64) int32 {
	return s.add(scriptOp{code: scriptConst, c: c})
}

// negative is −x.
func (s *script) negative(x int32) int32 {
	return s.add(scriptOp{
		code: scriptSub,
		x:    s.constant(0),
		y:    x,
	})
}

// run computes the values from up to to; env holds the variables' forms.
func (s *script) run(r *Ring, env, vals []lin, from, to int32) {
	for i := from; i < to; i++ {
		vals[i] = s.ops[i].value(r, env, vals)
	}
}

func (op *scriptOp) value(r *Ring, env, vals []lin) lin {
	switch op.code {
	case scriptConst:
		return konst(op.c)
	case scriptVar:
		return env[op.c]
	}
	x := vals[op.x]
	y := vals[op.y]
	switch op.code {
	case scriptAdd:
		return r.addmul(x, 1, y)
	case scriptSub:
		return r.addmul(x, -1, y)
	case scriptMul:
		return r.mul(x, y)
	case scriptDiv:
		return r.anyDiv(x, y)
	case scriptCeilDiv:
		return r.scale(r.anyDiv(r.scale(x, -1), y), -1)
	case scriptMod:
		return r.anyMod(x, y)
	case scriptMin:
		return r.min(x, y)
	}
	return r.max(x, y)
}

// anyDiv is ⌊x/y⌋, y a constant of either sign or positive.
func (r *Ring) anyDiv(x, y lin) lin {
	if len(y.t) == 0 {
		return r.div(x, y.c)
	}
	return r.quot(x, y)
}

func (r *Ring) anyMod(x, y lin) lin {
	if len(y.t) == 0 {
		return r.mod(x, y.c)
	}
	return r.addmul(x, -1, r.mul(y, r.quot(x, y)))
}
