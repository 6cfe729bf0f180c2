// Gen writes the assembly of package gemm. From this directory:
//
//	go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg gemm
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	ConstraintExpr("!noasm")
	for _, f := range families {
		for rows := 1; rows <= f.rows; rows++ {
			panel{family: f, rows: rows, vecs: 2}.emit()
			panel{family: f, rows: rows, vecs: 1, masked: true}.emit()
		}
		if f.fma != nil {
			stream(f)
		}
	}
	upright("uprightF32", 2)
	upright("uprightF32Half", 1)
	copyPanels(1)
	copyPanels(4)
	transpose32()
	transpose64()
	pairRows()
	pairTerms()
	Generate()
}

// at is the memory row strides and disp bytes behind base, where base3 is three
// strides behind it.
func at(base, base3, stride reg.Register, row, disp int) Mem {
	m := Mem{Base: base, Disp: disp}
	if row >= 3 {
		m.Base, row = base3, row-3
	}
	if row > 0 {
		m.Index = stride
		m.Scale = uint8(row)
	}
	return m
}

// third is the register three strides behind base.
func third(base, stride reg.Register) reg.GPVirtual {
	r := GP64()
	LEAQ(Mem{Base: base, Index: stride, Scale: 2}, r)
	ADDQ(stride, r)
	return r
}
