package sim

import (
	"fmt"
	"strings"
)

// gemmTile is one candidate of the sm_80 path.
type gemmTile struct{ BM, BN, BK, WM, WN, Stages int }

func (t gemmTile) Threads() int { return 32 * (t.BM / t.WM) * (t.BN / t.WN) }
func (t gemmTile) Smem() int    { return t.Stages * (t.BM + t.BN) * t.BK * 2 }
func (t gemmTile) Valid() string {
	ch := t.BK / 8
	switch {
	case t.BM%t.WM != 0 || t.BN%t.WN != 0 || t.WM%16 != 0 || t.WN%16 != 0:
		return "shape"
	case t.Threads() > 1024 || t.Threads() < 64:
		return "threads"
	case t.BM*ch%t.Threads() != 0 || t.BN*ch%t.Threads() != 0:
		return "copy split"
	case t.Threads()/ch%8 != 0:
		return "swizzle period"
	case t.Smem() > 227*1024:
		return "smem"
	case t.WM*t.WN/32+t.WM/16*4+t.WN/8*2+40 > 255:
		return "regs"
	}
	return ""
}

type asm struct {
	b              strings.Builder
	nr, nd, nf, np int
}

func (a *asm) o(f string, v ...any) { fmt.Fprintf(&a.b, "\t"+f+";\n", v...) }
func (a *asm) r() string            { a.nr++; return fmt.Sprintf("%%r%d", a.nr-1) }
func (a *asm) d() string            { a.nd++; return fmt.Sprintf("%%rd%d", a.nd-1) }
func (a *asm) f() string            { a.nf++; return fmt.Sprintf("%%f%d", a.nf-1) }
func (a *asm) p() string            { a.np++; return fmt.Sprintf("%%p%d", a.np-1) }
func (a *asm) op(op string, s ...any) string {
	d := a.r()
	x := make([]string, len(s))
	for i := range s {
		x[i] = fmt.Sprint(s[i])
	}
	a.o("%s %s, %s", op, d, strings.Join(x, ", "))
	return d
}
func (a *asm) dop(op string, s ...any) string {
	d := a.d()
	x := make([]string, len(s))
	for i := range s {
		x[i] = fmt.Sprint(s[i])
	}
	a.o("%s %s, %s", op, d, strings.Join(x, ", "))
	return d
}
func log2(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}

// emitGEMM emits C[M,N] f32 = A[M,K] f16 * B[N,K]^T f16.
func emitGEMM(t gemmTile) string {
	a := &asm{}
	ch := t.BK / 8
	pitch := t.BK * 2
	stage := (t.BM + t.BN) * pitch
	T := t.Threads()
	R := T / ch
	lp := func(ty, n string) string {
		var d string
		if ty == "u64" {
			d = a.d()
		} else {
			d = a.r()
		}
		a.o("ld.param.%s %s, [%s]", ty, d, n)
		return d
	}
	A, B, C := lp("u64", "pA"), lp("u64", "pB"), lp("u64", "pC")
	N, K := lp("u32", "pN"), lp("u32", "pK")
	tid := a.op("mov.u32", "%tid.x")
	bx, by := a.op("mov.u32", "%ctaid.x"), a.op("mov.u32", "%ctaid.y")
	lane := a.op("and.b32", tid, 31)
	w := a.op("shr.u32", tid, 5)
	sm := a.op("mov.u32", "smem")
	swz := func(chunk, row string) string { // physical chunk of a row
		m := row
		if ch == 4 {
			m = a.op("shr.u32", row, 1)
		}
		return a.op("xor.b32", chunk, a.op("and.b32", m, ch-1))
	}
	// global->shared copy addresses
	row0 := a.op("shr.u32", tid, log2(ch))
	c0 := a.op("and.b32", tid, ch-1)
	sw := a.op("add.s32", a.op("mul.lo.s32", row0, pitch), a.op("shl.b32", swz(c0, row0), 4))
	sw = a.op("add.s32", sw, sm)
	gaddr := func(base, blk string, bt int) string {
		row := a.op("mad.lo.s32", blk, bt, row0)
		e := a.dop("mul.wide.u32", row, K)
		e = a.dop("add.s64", e, a.dop("mul.wide.u32", c0, 8))
		return a.dop("add.s64", base, a.dop("shl.b64", e, 1))
	}
	gA, gB := gaddr(A, by, t.BM), gaddr(B, bx, t.BN)
	step := a.dop("mul.wide.u32", K, R*2)
	kt := a.op("shr.u32", K, log2(t.BK))
	nxt := a.op("mov.u32", 0) // next k tile to load
	wr := a.op("mov.u32", sw) // shared write address
	smEnd := a.op("add.s32", sw, t.Stages*stage)
	pk, pw := a.p(), a.p()
	load := func() {
		a.o("setp.lt.s32 %s, %s, %s", pk, nxt, kt)
		for _, x := range []struct {
			g        string
			rows, so int
		}{{gA, t.BM, 0}, {gB, t.BN, t.BM * pitch}} {
			g := x.g
			for j := 0; j < x.rows/R; j++ {
				if j > 0 {
					g = a.dop("add.s64", g, step)
				}
				a.o("@%s cp.async.cg.shared.global [%s+%d], [%s], 16", pk, wr, x.so+j*R*pitch, g)
			}
			a.o("add.s64 %s, %s, %d", x.g, x.g, t.BK*2)
		}
		a.o("cp.async.commit_group")
		a.o("add.s32 %s, %s, 1", nxt, nxt)
		a.o("add.s32 %s, %s, %d", wr, wr, stage)
		a.o("setp.ge.s32 %s, %s, %s", pw, wr, smEnd)
		a.o("@%s mov.u32 %s, %s", pw, wr, sw)
	}
	// fragment addresses
	wn := t.BN / t.WN
	wm0 := a.op("mul.lo.s32", a.op("shr.u32", w, log2(wn)), t.WM)
	wn0 := a.op("mul.lo.s32", a.op("and.b32", w, wn-1), t.WN)
	rA := a.op("and.b32", lane, 15)
	hA := a.op("shr.u32", lane, 4)
	rB := a.op("add.s32", a.op("and.b32", lane, 7), a.op("shl.b32", hA, 3))
	hB := a.op("and.b32", a.op("shr.u32", lane, 3), 1)
	var aoff, boff []string
	for k := 0; k < t.BK/16; k++ {
		x := a.op("shl.b32", swz(a.op("add.s32", hA, 2*k), rA), 4)
		x = a.op("mad.lo.s32", a.op("add.s32", wm0, rA), pitch, x)
		aoff = append(aoff, x)
		y := a.op("shl.b32", swz(a.op("add.s32", hB, 2*k), rB), 4)
		y = a.op("mad.lo.s32", a.op("add.s32", wn0, rB), pitch, y)
		boff = append(boff, y)
	}
	mi, nj := t.WM/16, t.WN/8
	acc := make([][4]string, mi*nj)
	for i := range acc {
		for q := range acc[i] {
			acc[i][q] = a.f()
			a.o("mov.f32 %s, 0f00000000", acc[i][q])
		}
	}
	for s := 0; s < t.Stages-1; s++ {
		load()
	}
	rd := a.op("mov.u32", sm)
	rdEnd := a.op("add.s32", sm, t.Stages*stage)
	it := a.op("mov.u32", 0)
	pl := a.p()
	fa := make([][4]string, mi)
	for i := range fa {
		for q := range fa[i] {
			fa[i][q] = a.r()
		}
	}
	fb := make([][2]string, nj)
	for j := range fb {
		fb[j] = [2]string{a.r(), a.r()}
	}
	a.b.WriteString("LOOP:\n")
	a.o("cp.async.wait_group %d", t.Stages-2)
	a.o("bar.sync 0")
	load()
	for k := 0; k < t.BK/16; k++ {
		pa, pb := a.op("add.s32", rd, aoff[k]), a.op("add.s32", rd, boff[k])
		for i := range fa {
			a.o("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%s, %s, %s, %s}, [%s+%d]", fa[i][0], fa[i][1], fa[i][2], fa[i][3], pa, i*16*pitch)
		}
		for j := 0; j < nj; j += 2 {
			a.o("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%s, %s, %s, %s}, [%s+%d]", fb[j][0], fb[j][1], fb[j+1][0], fb[j+1][1], pb, t.BM*pitch+j*8*pitch)
		}
		for i := 0; i < mi; i++ {
			for jj := 0; jj < nj; jj++ {
				j := jj
				if i&1 == 1 {
					j = nj - 1 - jj // serpentine
				}
				c := acc[i*nj+j]
				l := fmt.Sprintf("{%s, %s, %s, %s}", c[0], c[1], c[2], c[3])
				a.o("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 %s, {%s, %s, %s, %s}, {%s, %s}, %s", l, fa[i][0], fa[i][1], fa[i][2], fa[i][3], fb[j][0], fb[j][1], l)
			}
		}
	}
	a.o("add.s32 %s, %s, %d", rd, rd, stage)
	a.o("setp.ge.s32 %s, %s, %s", pw, rd, rdEnd)
	a.o("@%s mov.u32 %s, %s", pw, rd, sm)
	a.o("add.s32 %s, %s, 1", it, it)
	a.o("setp.lt.s32 %s, %s, %s", pl, it, kt)
	a.o("@%s bra LOOP", pl)
	// epilogue
	g, q := a.op("shr.u32", lane, 2), a.op("shl.b32", a.op("and.b32", lane, 3), 1)
	rr := a.op("add.s32", a.op("mad.lo.s32", by, t.BM, wm0), g)
	cc := a.op("add.s32", a.op("mad.lo.s32", bx, t.BN, wn0), q)
	e := a.dop("mul.wide.u32", rr, N)
	e = a.dop("add.s64", e, a.dop("mul.wide.u32", cc, 1))
	pc := a.dop("add.s64", C, a.dop("shl.b64", e, 2))
	rs := a.dop("mul.wide.u32", N, 32)
	for i := 0; i < mi; i++ {
		for h := 0; h < 2; h++ {
			for j := 0; j < nj; j++ {
				c := acc[i*nj+j]
				a.o("st.global.v2.f32 [%s+%d], {%s, %s}", pc, j*32, c[h*2], c[h*2+1])
			}
			if i < mi-1 || h < 1 {
				pc = a.dop("add.s64", pc, rs)
			}
		}
	}
	a.o("ret")
	var h strings.Builder
	fmt.Fprintf(&h, ".version 7.8\n.target sm_80\n.address_size 64\n.extern .shared .align 128 .b8 smem[];\n.visible .entry gemm(.param .u64 pA, .param .u64 pB, .param .u64 pC, .param .u32 pM, .param .u32 pN, .param .u32 pK)\n.maxntid %d, 1, 1\n{\n", T)
	fmt.Fprintf(&h, "\t.reg .pred %%p<%d>;\n\t.reg .b32 %%r<%d>;\n\t.reg .f32 %%f<%d>;\n\t.reg .b64 %%rd<%d>;\n", a.np, a.nr, a.nf, a.nd)
	return h.String() + a.b.String() + "}\n"
}
