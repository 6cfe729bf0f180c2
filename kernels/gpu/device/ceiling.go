package device

import (
	"context"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Ceiling is a rate that kernels are compared with: the rate of the matrix units
// when they do nothing but multiply.
type Ceiling struct {
	Name  string  `json:"name"`            // "mma.sync bf16"
	FLOPS float64 `json:"flops,omitempty"` // flop/s, the best of some runs; 0 from a device that cannot time
}

const (
	// The best of 7 runs counts.
	ceilingRuns = 7
	// Iterations of the loop, some 0.5 ms of an H100.
	ceilingSteps   = 1 << 11
	ceilingThreads = 256 // a block
	// Accumulators of a warp, whose products do not depend on each other.
	ceilingSums = 8
)

// A matrixLoop is a kernel that only multiplies matrices.
type matrixLoop struct {
	name string
	// Blocks of an SM.
	blocks int
	// Flops of a block in one iteration of the loop.
	flops float64
	// Shared memory of a block, in bytes.
	shared int
	body   func(c *ptx.Code, steps ptx.Operand) (sum ptx.Operand)
}

// matrixLoops are the loops that a device can run. All multiply bf16 and accumulate
// f32. The operands are between 1 and 2 with either sign, because zeros draw less
// power and so run at higher clocks.
func matrixLoops(s Spec) []matrixLoop {
	const warps = ceilingThreads / WarpThreads
	loops := []matrixLoop{
		{name: "mma.sync bf16", blocks: 2, flops: warps *
			ceilingSums * 2 * 16 * 8 * 16, body: mmaLoop},
	}
	if s.Warpgroups() {
		loops = append(loops, matrixLoop{
			name:   "wgmma bf16",
			blocks: 1,
			flops:  2 * wgmmaSteps * 2 * 64 * 256 * 16,
			shared: wgmmaShared,
			body:   wgmmaLoop,
		})
	}
	return loops
}

// MatrixCeilings times the matrix loops of a device. Their results are not checked
// here; tests on the simulator check the kernels.
func (s *Session) MatrixCeilings(ctx context.Context) (all []Ceiling, err error) {
	for _, l := range matrixLoops(s.spec) {
		steps := ceilingSteps
		if s.spec.Simulated {
			steps = 1
		}
		w, out, err := l.work(s.spec, steps)
		if err != nil {
			return nil, err
		}
		best := time.Duration(0)
		for range ceilingRuns {
			took, err := s.Run(ctx, w, nil, out)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			if best == 0 || took < best {
				best = took
			}
			if took == 0 {
				break
			}
		}
		c := Ceiling{Name: l.name}
		if best > 0 {
			c.FLOPS = float64(l.blocks*s.spec.SMs) *
				l.flops * float64(steps) / best.Seconds()
		}
		all = append(all, c)
	}
	return all, nil
}

// work is a loop on all SMs, with an output of one number a thread.
func (l matrixLoop) work(s Spec, steps int) (*Executable, []kernels.Buffer, error) {
	b := ptx.NewBuilder(
		ptx.Version{Major: 8}, PTXTarget(s),
	)
	if l.shared > 0 {
		b.DynamicShared("smem", 1024)
	}
	c := b.Entry("ceiling")
	c.Entry.ReqNTid = [3]int{ceilingThreads, 1, 1}
	c.Param(ptx.U64, "out")
	c.Param(ptx.U32, "steps")
	out := c.LoadParam("out")
	n := c.LoadParam("steps")
	sum := l.body(c, n)
	at := c.Let(
		"mad.lo.u32", c.Special(ptx.CTAidX),
		ptx.Int(ceilingThreads), c.Special(ptx.TidX),
	)
	c.Emit(
		"st.global.f32",
		ptx.Mem(c.Add(out, c.Let(
			"mul.wide.u32", at, ptx.Int(4),
		)), 0),
		sum,
	)
	m, err := b.Module()
	if err != nil {
		return nil, nil, err
	}
	blocks := l.blocks * s.SMs
	step := Step{
		Entry:       "ceiling",
		Grid:        Dim3{X: blocks},
		Block:       Dim3{X: ceilingThreads},
		SharedBytes: l.shared,
		Args:        []Operand{Output(0), Value(U32Arg(uint32(steps)))},
	}
	results, err := kernels.NewBuffer(hlo.Shape{
		DType: hlo.F32,
		Dims:  []int64{int64(blocks * ceilingThreads)},
	})
	return &Executable{
		PTX:   string(m.Text()),
		Steps: []Step{step},
	}, []kernels.Buffer{results}, err
}

// numbers are two bf16 numbers in a register, each between 1 and 2 with either sign,
// from the bits of x·odd.
func numbers(c *ptx.Code, x ptx.Operand, odd uint32) ptx.Operand {
	h := c.Let("mul.lo.u32", x, ptx.Int(odd))
	h = c.Let(
		"xor.b32", h, c.Let("shr.u32", h, ptx.Int(15)),
	)
	return c.Let(
		"or.b32",
		c.Let("and.b32", h, ptx.Int(uint32(0x807F807F))),
		ptx.Int(0x3F803F80),
	)
}

// mmaLoop multiplies fragments in registers into several accumulators a warp.
func mmaLoop(c *ptx.Code, steps ptx.Operand) ptx.Operand {
	x := c.Add(c.Special(ptx.TidX), ptx.Int(1))
	var a, b []ptx.Operand
	for n := range 4 {
		a = append(
			a, numbers(c, x, 0x9E3779B1+uint32(2*n)),
		)
	}
	for n := range 2 {
		b = append(
			b, numbers(c, x, 0x85EBCA6B+uint32(2*n)),
		)
	}
	sums := make([][]ptx.Operand, ceilingSums)
	for n := range sums {
		for range 4 {
			sums[n] = append(
				sums[n],
				c.Var(ptx.F32, ptx.F32Imm(0)),
			)
		}
	}
	c.For(ptx.Int(0), steps, 1, func(ptx.Operand) {
		for _, d := range sums {
			c.Emit(
				"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
				ptx.Vec(d...), ptx.Vec(a...),
				ptx.Vec(b...), ptx.Vec(d...),
			)
		}
	})
	return added(c, sums...)
}

const (
	// Instructions of k = 16 along the 64 columns in shared memory.
	wgmmaSteps = 4
	// Rows of the first operands of both warpgroups and of the second operand.
	wgmmaRows   = 2*64 + 256
	wgmmaShared = wgmmaRows * rowInBytes // bytes
	rowInBytes  = 128
)

// wgmmaLoop multiplies 64×64 by 64×256 in shared memory, in each of two warpgroups.
func wgmmaLoop(c *ptx.Code, steps ptx.Operand) ptx.Operand {
	tid := c.Special(ptx.TidX)
	smem := c.Let("mov.u32", ptx.Sym("smem"))
	word := c.Add(
		smem, c.Let("shl.b32", tid, ptx.Int(2)),
	)
	x := c.Add(tid, ptx.Int(1))
	for at := 0; at < wgmmaShared; at += 4 * ceilingThreads {
		c.Emit(
			"st.shared.u32",
			ptx.Mem(word, at),
			numbers(c, x, 0x9E3779B1+uint32(at)),
		)
	}
	c.Emit("fence.proxy.async")
	c.Emit("bar.sync", ptx.Int(0))
	group := c.Let("shr.u32", tid, ptx.Int(7))
	a := ringDescriptor(
		c,
		c.Let("mad.lo.u32", group, ptx.Int(64*rowInBytes), smem),
	)
	b := ringDescriptor(
		c,
		c.Add(smem, ptx.Int(2*64*rowInBytes)),
	)
	var sums []ptx.Operand
	for range 128 {
		sums = append(sums, c.Var(ptx.F32, ptx.F32Imm(0)))
	}
	yes := c.Let("setp.eq.s32", steps, steps)
	c.For(ptx.Int(0), steps, 1, func(ptx.Operand) {
		c.Emit("wgmma.fence.sync.aligned")
		for k := range wgmmaSteps { // 32 bytes further, in 16s
			c.Emit(
				"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
				ptx.Vec(sums...),
				c.Add(a, ptx.Int(2*k)),
				c.Add(b, ptx.Int(2*k)),
				yes,
				ptx.Int(1), ptx.Int(1),
				ptx.Int(0), ptx.Int(0),
			)
		}
		c.Emit("wgmma.commit_group.sync.aligned")
		c.Emit("wgmma.wait_group.sync.aligned", ptx.Int(1))
	})
	c.Emit("wgmma.wait_group.sync.aligned", ptx.Int(0))
	return added(c, sums)
}

// ringDescriptor describes rows of 128 bytes at an address in shared memory with a
// swizzle of 128 bytes, where eight rows are 1024 bytes (PTX ISA, "matrix
// descriptor").
func ringDescriptor(c *ptx.Code, at ptx.Operand) ptx.Operand {
	start := c.Let(
		"and.b32",
		c.Let("shr.u32", at, ptx.Int(4)),
		ptx.Int(0x3fff),
	)
	return c.Let(
		"or.b64",
		c.Let("cvt.u64.u32", start),
		ptx.Int(
			int64(1)<<62|int64(8*rowInBytes>>4)<<32|1<<16,
		),
	)
}

// added is the sum of all operands, so that none of them is unused.
func added(c *ptx.Code, lists ...[]ptx.Operand) ptx.Operand {
	total := c.Var(ptx.F32, ptx.F32Imm(0))
	for _, list := range lists {
		for _, x := range list {
			c.Emit("add.f32", total, total, x)
		}
	}
	return total
}
