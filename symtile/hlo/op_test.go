package hlo

import (
	"slices"
	"strings"
	"testing"
)

// compositions are the MLIR operations that are read as a few operations of HLO,
// or as the operand itself; every other one is named by a row of opTable.
var compositions = []string{
	"arith.constant", "chlo.atan", "chlo.digamma", "chlo.erfc", "chlo.is_inf", "chlo.is_neg_inf", "chlo.is_pos_inf", "chlo.lgamma", "chlo.next_after",
	"chlo.square", "linalg.pack", "linalg.unpack", "tensor.empty", "tensor.pack", "tensor.unpack", "sdy.constant", "sdy.manual_computation", "sdy.named_computation", "sdy.propagation_barrier",
	"sdy.reshard", "sdy.sharding_constraint", "sdy.sharding_group",
}

// Each MLIR operation that a row names is read, and each that is read is named by
// one row: the reader and the table say the same.
func TestMLIRNames(t *testing.T) {
	rows := map[string]Opcode{}
	for _, op := range Opcodes() {
		for _, full := range op.MLIR() {
			if other, taken := rows[full]; taken {
				t.Errorf("rows %s and %s both name %s", other, op, full)
			}
			rows[full] = op
			dialect, name, _ := strings.Cut(full, ".")
			if _, read := dialects[dialect][name]; !read {
				t.Errorf("row %s names %s, which the StableHLO reader does not read", op, full)
			}
			if dialect == "chlo" && chloDecomposed[name] {
				t.Errorf("row %s names %s, which the StableHLO reader refuses", op, full)
			}
		}
	}
	for dialect, names := range dialects {
		for name := range names {
			full := dialect + "." + name
			if dialect == "mhlo" || strings.HasPrefix(full, "chlo.broadcast_") {
				continue // as stablehlo; broadcasting before the operation
			}
			_, named := rows[full]
			_, other := rows["mhlo."+name]
			if !named && !other && !slices.Contains(compositions, full) {
				t.Errorf("the StableHLO reader reads %s, which no row of opTable names", full)
			}
		}
	}
}

// A row is complete and does not contradict itself.
func TestOpRows(t *testing.T) {
	for _, op := range Opcodes() {
		row := opTable[op]
		switch {
		case row.class == ClassElementwise && row.check == nil:
			t.Errorf("%s has no shape rule", op)
		case row.class == ClassOpaque && (row.flops != 0 || row.traits != 0):
			t.Errorf("%s is opaque and has a weight or traits", op)
		case row.traits&plain != 0 && row.mlir == noMLIR:
			t.Errorf("%s is plain and has no MLIR operation", op)
		case row.traits&Monoid != 0 && row.maxOperands != 2:
			t.Errorf("%s is a monoid of %d operands", op, row.maxOperands)
		case row.maxOperands != many && row.minOperands > row.maxOperands:
			t.Errorf("%s takes %d to %d operands", op, row.minOperands, row.maxOperands)
		}
		if op.Elementwise() && op != OpCopy && row.flops == 0 {
			t.Errorf("%s has no weight in flop", op)
		}
	}
}
