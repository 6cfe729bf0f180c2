package sim

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels/ptx"
)

// memory decodes ld, st, atom and red: the memory operand, and the strength and
// order of the access.
func (d *decoder) memory(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	t := code.Type(0)
	in.space = spaceOf(code.Space())
	in.size = uint8(t.Bytes())
	in.signed = t.Signed()
	if t.Bytes() == 0 || t.Bytes() > 8 {
		return errNotModelled
	}
	op := in.mods
	op.strong = code.Has(ptx.ModVolatile) ||
		code.Has(ptx.ModRelaxed) ||
		code.Has(ptx.ModAcquire) ||
		code.Has(ptx.ModRelease) ||
		code.Has(ptx.ModMmio)
	op.acquire = code.Has(ptx.ModAcquire) ||
		code.Has(ptx.ModAcqRel)
	op.release = code.Has(ptx.ModRelease) ||
		code.Has(ptx.ModAcqRel)
	var err error
	at := 0
	if code.Op == ptx.OpLd || code.Op == ptx.OpAtom {
		in.list = d.destinations(&ops[0])
		at = 1
	}
	if in.at, err = d.place(&ops[at]); err != nil {
		return err
	}
	// Loads from the parameter block read the same bytes in every lane.
	switch code.Op {
	case ptx.OpLd:
		in.run = ld
		if in.space == param {
			in.run = ldParam
		}
		return nil
	case ptx.OpSt:
		in.list, err = d.sources(&ops[1], t)
		in.run = st
		return err
	}
	return d.atomic(in, src, ops[at+1:])
}

// atomic decodes the values of atom and red. A cache hint, the last operand, has
// no effect here.
func (d *decoder) atomic(
	in *instr, src *ptx.Instr, values []ptx.Operand,
) error {
	code := &src.Opcode
	t := code.Type(0)
	if code.Has(ptx.ModL2CacheHint) {
		values = values[:len(values)-1]
	}
	for i := range values {
		list, err := d.sources(&values[i], t)
		if err != nil {
			return err
		}
		in.mods.more = append(in.mods.more, list...)
	}
	if code.Op == ptx.OpRed {
		in.list = make([]register, len(in.mods.more))
	}
	if in.mods.atomic = atomicOperation(code); in.mods.atomic == nil {
		return errNotModelled
	}
	in.run = atom
	return nil
}

// sourceIndexes reads up to three operands into a, b and c.
func (d *decoder) sourceIndexes(
	in *instr, ops []ptx.Operand, t ptx.Type,
) error {
	for i, field := range []*int32{&in.a, &in.b, &in.c} {
		if i >= len(ops) {
			break
		}
		r, err := d.source(&ops[i], t)
		if err != nil {
			return err
		}
		*field = r.index
	}
	return nil
}

// listed appends operands to list, behind the destinations. The last type stands
// for all further operands.
func (d *decoder) listed(
	in *instr, ops []ptx.Operand, types ...ptx.Type,
) error {
	for i := range ops {
		r, err := d.source(
			&ops[i],
			types[min(i, len(types)-1)],
		)
		if err != nil {
			return err
		}
		in.list = append(in.list, r)
	}
	return nil
}

// synchronise decodes barriers, fences, exchanges between lanes, asynchronous
// copies and mbarriers.
func (d *decoder) synchronise(in *instr, src *ptx.Instr) error {
	ops := src.Operands
	switch src.Opcode.Op {
	case ptx.OpBarSync, ptx.OpBarrierSync:
		in.flow, in.run = waiting, barSync
		return d.sourceIndexes(in, ops, ptx.U32)
	case ptx.OpBarArrive, ptx.OpBarrierArrive:
		in.flow, in.run = waiting, barArrive
		return d.sourceIndexes(in, ops, ptx.U32)
	case ptx.OpBarRed, ptx.OpBarrierRed:
		return d.barRed(in, src)
	case ptx.OpBarWarpSync:
		in.run = warpSync
		return d.sourceIndexes(in, ops, ptx.U32)
	case ptx.OpMembar, ptx.OpFence:
		in.run = func(w *warp, _ *instr) { w.fence() }
		return nil
	case ptx.OpFenceProxy, ptx.OpFenceMbarrierInit:
		in.run = func(w *warp, _ *instr) { w.proxyFence() }
		return nil
	case ptx.OpBarrierClusterArrive:
		in.run = clusterArrive
		return nil
	case ptx.OpBarrierClusterWait:
		in.flow, in.run = waiting, clusterWait
		return nil
	case ptx.OpMapa, ptx.OpGetctarank:
		in.list = d.destinations(&ops[0])
		if err := d.listed(
			in, ops[1:2], src.Opcode.Type(0),
		); err != nil {
			return err
		}
		in.run = getctarank
		if src.Opcode.Op == ptx.OpMapa {
			r, err := d.source(&ops[2], ptx.U32)
			in.run = mapa
			in.b = r.index
			return err
		}
		return nil
	case ptx.OpSetmaxnreg:
		in.run, in.c = setmaxnreg, int32(ops[0].Int())
		return nil
	case ptx.OpWgmmaFence:
		in.run = wgmmaFence
		return nil
	case ptx.OpWgmmaCommitGroup:
		in.run = wgmmaCommit
		return nil
	case ptx.OpWgmmaWaitGroup:
		in.run, in.c = wgmmaWait, int32(ops[0].Int())
		return nil
	}
	switch in.class {
	case Exchange:
		return d.exchange(in, src)
	case AsyncCopy:
		return d.asyncCopy(in, src)
	}
	return d.mbarrier(in, src)
}

// barRed decodes bar.red: list holds the result and the predicate.
func (d *decoder) barRed(in *instr, src *ptx.Instr) error {
	ops := src.Operands
	last := &ops[len(ops)-1]
	in.list = d.destinations(&ops[0])
	err := d.sourceIndexes(
		in, ops[1:len(ops)-1], ptx.U32,
	)
	if err != nil {
		return err
	}
	if last.Neg {
		// All bits of the offset are set to flip the predicate.
		in.at.offset = -1
	}
	in.flow, in.run = waiting, barRed
	return d.listed(in, []ptx.Operand{*last}, ptx.Pred)
}

// exchange decodes the exchanges between lanes: shfl, vote, match, redux,
// activemask and elect.
func (d *decoder) exchange(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	if len(ops) > 0 {
		// The destination may be a pair: a value and a predicate.
		p, q := d.pair(&ops[0])
		in.list = []register{p, q}
	}
	switch code.Op {
	case ptx.OpShflSync:
		in.run = shfl
		for mode, m := range []ptx.Mod{ptx.ModUp, ptx.ModDown, ptx.ModBfly, ptx.ModIdx} {
			if code.Has(m) {
				in.mods.matrices = mode
			}
		}
		err := d.sourceIndexes(in, ops[1:4], ptx.B32)
		if err != nil {
			return err
		}
		return d.listed(in, ops[4:5], ptx.B32)
	case ptx.OpVoteSync:
		in.run = vote
		in.list = in.list[:1]
		if ops[1].Neg {
			// All bits of the offset are set to flip the predicate.
			in.at.offset = -1
		}
		err := d.sourceIndexes(in, ops[1:2], ptx.Pred)
		if err != nil {
			return err
		}
		return d.listed(in, ops[2:3], ptx.B32)
	case ptx.OpMatchAnySync, ptx.OpMatchAllSync:
		in.run = match
		return d.listed(
			in, ops[1:3],
			code.Type(0), ptx.B32,
		)
	case ptx.OpReduxSync:
		in.run = redux
		in.list = in.list[:1]
		in.mods.atomic = reducing(code, code.Type(0))
		if in.mods.atomic == nil || code.Type(0).Float() {
			return errNotModelled
		}
		err := d.sourceIndexes(in, ops[1:2], code.Type(0))
		if err != nil {
			return err
		}
		return d.listed(in, ops[2:3], ptx.B32)
	case ptx.OpActivemask:
		in.run = activemask
		return nil
	}
	in.run = elect
	return d.listed(in, ops[1:2], ptx.B32)
}

// mbarrier decodes the operations on mbarriers: the address, the count or phase,
// and the destination of those with a result.
func (d *decoder) mbarrier(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	in.space = spaceOf(code.Space())
	at := 0
	var err error
	switch code.Op {
	case ptx.OpMbarrierArrive, ptx.OpMbarrierArriveDrop, ptx.OpMbarrierTestWait, ptx.OpMbarrierTryWait:
		in.list = d.destinations(&ops[0])
		at = 1
	case ptx.OpMbarrierInit, ptx.OpMbarrierInval, ptx.OpMbarrierExpectTx, ptx.OpMbarrierCompleteTx:
	default:
		return errNotModelled
	}
	if in.at, err = d.place(&ops[at]); err != nil {
		return err
	}
	// The remaining operand is a count, a number of bytes, a parity, or a state
	// of 64 bits.
	t := ptx.U32
	switch code.Op {
	case ptx.OpMbarrierInit:
		in.run = mbarrierInit
	case ptx.OpMbarrierInval:
		in.run = mbarrierInval
	case ptx.OpMbarrierExpectTx, ptx.OpMbarrierCompleteTx:
		in.run = mbarrierTx
		in.signed = code.Op == ptx.OpMbarrierCompleteTx
	case ptx.OpMbarrierTestWait, ptx.OpMbarrierTryWait:
		in.flow = waiting
		in.run = mbarrierWait
		in.size = 4
		in.signed = code.Op == ptx.OpMbarrierTestWait
		if !code.Has(ptx.ModParity) {
			in.size, t = 8, ptx.B64
		}
	default:
		in.run, in.signed = mbarrierArrive, code.Has(ptx.ModExpectTx)
		if code.Op == ptx.OpMbarrierArriveDrop {
			in.size = 1
		}
		if len(ops) > at+1 &&
			ops[at+1].IsImm() &&
			ops[at+1].Bits == 1 && !in.signed {
			return nil // one arrival is what no count means
		}
	}
	return d.sourceIndexes(
		in, ops[at+1:min(at+2, len(ops))], t,
	)
}

// asyncCopy decodes the asynchronous copies with the operations that commit them
// and wait for them.
func (d *decoder) asyncCopy(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	// The numbers of groups to wait for are immediates.
	switch code.Op {
	case ptx.OpCpAsyncCommitGroup:
		in.run = cpCommit
	case ptx.OpCpAsyncWaitGroup:
		in.run, in.c = cpWait, int32(ops[0].Int())
	case ptx.OpCpAsyncWaitAll:
		in.run = cpWaitAll
	case ptx.OpCpAsyncBulkCommitGroup:
		in.run = bulkCommit
	case ptx.OpCpAsyncBulkWaitGroup:
		in.run, in.c = bulkWait, int32(ops[0].Int())
	case ptx.OpCpAsyncMbarrierArrive:
		in.run, in.signed = cpAsyncArrive, code.Has(ptx.ModNoinc)
		var err error
		in.at, err = d.place(&ops[0])
		return err
	case ptx.OpCpAsync:
		return d.cpAsync(in, src)
	case ptx.OpCpAsyncBulk, ptx.OpCpReduceAsyncBulk:
		return d.bulk(in, src)
	case ptx.OpCpAsyncBulkTensor, ptx.OpCpReduceAsyncBulkTensor:
		return d.tensor(in, src)
	}
	return nil
}

// cpAsync decodes cp.async. The optional operand is the number of bytes to read
// or a predicate; an immediate 0 is a copy of zeros.
func (d *decoder) cpAsync(in *instr, src *ptx.Instr) error {
	ops := src.Operands
	if src.Opcode.Has(ptx.ModL2CacheHint) {
		ops = ops[:len(ops)-1]
	}
	var err error
	if in.at, err = d.place(&ops[0]); err != nil {
		return err
	}
	if in.mods.src, err = d.place(&ops[1]); err != nil {
		return err
	}
	in.run, in.size = cpAsync, uint8(ops[2].Int())
	if len(ops) < 4 {
		return nil
	}
	r, err := d.source(&ops[3], ptx.U32)
	switch {
	case ops[3].Kind == ptx.KindReg &&
		r.bank == bankPred:
		in.mods.ignore = r.index
	// Register 0 stands for an absent operand, so that the constant 0 has a flag.
	case ops[3].IsImm() && ops[3].Bits == 0:
		in.mods.zeros = true
	default:
		in.a = r.index
	}
	return err
}

// bulk decodes cp.async.bulk and cp.reduce.async.bulk.
func (d *decoder) bulk(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	var err error
	if in.at, err = d.place(&ops[0]); err != nil {
		return err
	}
	if in.mods.src, err = d.place(&ops[1]); err != nil {
		return err
	}
	if err := d.sourceIndexes(in, ops[2:3], ptx.U32); err != nil {
		return err
	}
	// Reductions into shared memory are not modelled.
	if code.Op == ptx.OpCpReduceAsyncBulk {
		if spaceOf(code.Space()) != global {
			return errNotModelled
		}
		in.size = uint8(code.Type(0).Bytes())
		if in.mods.atomic = atomicOperation(code); in.mods.atomic == nil {
			return errNotModelled
		}
	}
	if spaceOf(code.Space()) == global {
		in.run = bulkStore
		return nil
	}
	in.run, in.space = bulkLoad, global
	if !code.Has(ptx.ModGlobal) {
		in.space = shared
	}
	return d.arrival(in, code, ops[3:])
}

// arrival decodes the mbarrier and the multicast mask of a bulk load.
func (d *decoder) arrival(
	in *instr, code *ptx.Opcode, ops []ptx.Operand,
) error {
	var err error
	if in.mods.barrier, err = d.place(&ops[0]); err != nil {
		return err
	}
	if code.Has(ptx.ModMulticastCluster) {
		r, err := d.source(&ops[1], ptx.B16)
		if err != nil {
			return err
		}
		in.mods.ignore = r.index
	}
	return nil
}

// tensor decodes cp.async.bulk.tensor in both directions; list holds the
// coordinates.
func (d *decoder) tensor(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	if code.Has(ptx.ModIm2col) ||
		code.Has(ptx.ModIm2colNoOffs) {
		return errNotModelled
	}
	mapAt := &ops[1]
	other := &ops[0]
	in.run = tensorLoad
	// Stores have the tensor map as their destination.
	if spaceOf(code.Space()) == global {
		mapAt, other = &ops[0], &ops[1]
		in.run = tensorStore
	}
	if mapAt.Kind != ptx.KindTensor {
		return fmt.Errorf("needs a tensor map with coordinates")
	}
	m, err := d.place(mapAt)
	if err != nil {
		return err
	}
	s, err := d.place(other)
	if err != nil {
		return err
	}
	in.list, err = d.sources(&mapAt.List[1], ptx.S32)
	if err != nil {
		return err
	}
	if spaceOf(code.Space()) == global {
		in.at = m
		in.mods.src = s
		in.mods.reduces = code.Op == ptx.OpCpReduceAsyncBulkTensor
		return nil
	}
	in.at = s
	in.mods.src = m
	return d.arrival(in, code, ops[2:])
}

// matrix decodes ldmatrix, stmatrix, movmatrix, mma and wgmma.mma_async.
func (d *decoder) matrix(in *instr, src *ptx.Instr) error {
	code := &src.Opcode
	ops := src.Operands
	var err error
	switch code.Op {
	case ptx.OpMovmatrix:
		in.run, in.list = movmatrix, d.destinations(&ops[0])
		in.d = in.list[0].index
		return d.sourceIndexes(in, ops[1:2], ptx.B32)
	case ptx.OpMMA:
		return d.mma(in, src)
	case ptx.OpWgmmaMMAAsync:
		return d.wgmma(in, src)
	case ptx.OpLdmatrix:
		in.run, in.list = ldmatrix, d.destinations(&ops[0])
		in.at, err = d.place(&ops[1])
	default:
		in.run = stmatrix
		in.list, err = d.sources(&ops[1], ptx.B32)
		if err != nil {
			return err
		}
		in.at, err = d.place(&ops[0])
	}
	in.space = spaceOf(code.Space())
	in.size = 16
	in.mods.matrices = len(in.list)
	in.mods.trans = code.Has(ptx.ModTrans)
	return err
}

// mma decodes mma.sync; list holds the registers of D, A, B and C.
func (d *decoder) mma(in *instr, src *ptx.Instr) error {
	p := newProduct(&src.Opcode)
	if p == nil {
		return errNotModelled
	}
	in.mods.product = p
	// The registers are listed in the order D, A, B, C.
	in.list = d.destinations(&src.Operands[0])
	for i, t := range []ptx.Type{
		p.a.typ, p.b.typ, p.c.typ,
	} {
		list, err := d.sources(&src.Operands[1+i], t)
		if err != nil {
			return err
		}
		in.list = append(in.list, list...)
	}
	in.run = mma
	if p.a.typ == ptx.F64 {
		in.run = mmaF64
	}
	return nil
}

// wgmma decodes wgmma.mma_async; list is described at wgmmaShape.
func (d *decoder) wgmma(in *instr, src *ptx.Instr) error {
	ops := src.Operands
	s := newWgmma(&src.Opcode)
	if s == nil {
		return errNotModelled
	}
	in.mods.wg = s
	in.run = wgmma
	in.list = d.destinations(&ops[0])
	s.fromRegs = ops[1].Kind == ptx.KindVec
	for i, t := range []ptx.Type{ptx.B64, ptx.B64, ptx.Pred} {
		if i == 0 && s.fromRegs {
			t = ptx.B32
		}
		list, err := d.sources(&ops[1+i], t)
		if err != nil {
			return err
		}
		in.list = append(in.list, list...)
	}
	// The immediate operands behind scale-d negate and transpose A and B;
	// integer types have none.
	imm := func(i int) int64 {
		if i < len(ops) {
			return ops[i].Int()
		}
		return 0
	}
	s.negA, s.negB = imm(4) == -1, imm(5) == -1
	if s.fromRegs {
		s.transB = imm(6) == 1
	} else {
		s.transA, s.transB = imm(6) == 1, imm(7) == 1
	}
	return nil
}
