// Gen writes the assembly of package gemm, its stubs, and the tables of its
// kernels by element type and number of rows. From this directory:
//
//	go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -tables ../tables_amd64.go -pkg gemm
//
// A family is the kernels of one element type and vector width. Each has kernels
// for one to six rows: six rows of two vectors are twelve accumulators, which with
// two vectors of b, a broadcast element of a and a spare are the sixteen registers
// of AVX2. The same shape serves vectors of 512 bits. Pairs of bf16, whose sums wait longer
// for each other, have one of twelve rows, of 27 of the 32 registers of AVX-512.
//
// Kernels take strides in bytes, so that they read packed slabs and panels as well
// as matrices in place. Addresses of up to six rows are formed of two registers,
// that of a row and that of the third row after it, and one stride, scaled by 0, 1
// or 2; at and third below make them.
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tables is the file of the tables of kernels.
var tables = flag.String("tables", "", "the file of the tables of kernels")

// main emits all kernels. Panels are generated for every number of rows, so
// that the edges of a matrix run the same code as its interior.
func main() {
	ConstraintExpr("amd64")
	ConstraintExpr("!noasm")
	for _, f := range families {
		for rows := 1; rows <= f.rows; rows++ {
			panel{family: f, rows: rows, vecs: 2}.emit()
			panel{family: f, rows: rows, vecs: 1, masked: true}.emit()
			if f.pairs {
				panel{family: f, rows: rows, vecs: 4, pair: true}.emit()
			}
			if f.fills {
				panel{family: f, rows: rows, vecs: 2, fill: true}.emit()
			}
		}
		if f.tall > 0 {
			panel{family: f, rows: f.tall, vecs: 2}.emit()
		}
		if f.fma != nil {
			gemv("gemv"+f.name, f, false)
			gemv("fetchingGemv"+f.name, f, true)
		}
	}
	transposedGemv("transposedGemvF32", 2)
	transposedGemv("transposedGemvF32Half", 1)
	standing("standingF32", 1, 0)
	standing("standingF32Four", 4, 0)
	standing("fetchingStandingF32Four", 4, standingAhead)
	copyPanels(1)
	copyPanels(4)
	copyWidePanels()
	transpose32()
	transpose64()
	pairRows()
	pairTerms()
	for _, k := range tileKernels {
		k.emit(1)
		k.emit(2)
	}
	quadTerms()
	quadRows()
	quadSums()
	byteTerms()
	packRuns()
	for _, rows := range []int{1, 4} {
		lanes(rows, 1)
		lanes(rows, 2)
	}
	byteRows()
	for panels := 1; panels <= 2; panels++ {
		bytePanels(panels, false)
		bytePanels(panels, true)
	}
	pairRowsBF16()
	pairTermsBF16()
	wordRows()
	wordPanel()
	pairRowsF16()
	pairTermsF16()
	cpuid()
	Generate()
	if *tables != "" {
		if err := os.WriteFile(*tables, tableText(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// at is the memory disp bytes behind a row of base, where base3 is row number
// 3: an address has one scaled index, and rows 1 and 2 behind either register
// have the scales 1 and 2.
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

// rowAt is the memory disp bytes behind a row, where bases are the addresses of every
// third one.
func rowAt(bases []reg.Register, stride reg.Register, row, disp int) Mem {
	base := bases[row/3]
	return at(base, base, stride, row%3, disp)
}

// third is a register with the address three strides behind base.
func third(base, stride reg.Register) reg.GPVirtual {
	r := GP64()
	LEAQ(Mem{Base: base, Index: stride, Scale: 2}, r)
	ADDQ(stride, r)
	return r
}
