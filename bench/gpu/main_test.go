package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
)

// beside.txt, which a command writes, has a line of each row of beside.json.
func TestBesideTable(t *testing.T) {
	var rows []comparison
	if err := json.Unmarshal(besideRows, &rows); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("beside.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if _, err := kernels.ParsePlan(r.Plan); err != nil && r.Plan != "" {
			t.Errorf("%s: %v", r.Name, err)
		}
		found := false
		for line := range strings.Lines(string(table)) {
			found = found || strings.HasPrefix(line, r.Name+"  ") && strings.Contains(line, " "+r.Arch+" ")
		}
		if !found {
			t.Errorf("beside.txt has no line of %s for %s: make judge-triton", r.Name, r.Arch)
		}
	}
}

// known.txt is read, and its shares are those of this command.
func TestKnown(t *testing.T) {
	all, err := shortfalls(knownText)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"registers": true, "blocks": true, "shared": true}
	for _, p := range promises() {
		names[p] = true
	}
	for _, s := range all {
		if !names[s.promise] || s.cause == "" {
			t.Errorf("%s: %q", s.promise, s.cause)
		}
	}
	f := finding{Promise: "registers", Kernel: "all", Value: -87}
	if excuse(all, f) == nil {
		t.Error("a share above the one that is tolerated is broken")
	}
	if f.Value = -20; excuse(all, f) != nil {
		t.Error("a share below the one that is tolerated is excused")
	}
}

// The instructions of a whole kernel are counted by class, from what nvdisasm prints.
func TestBody(t *testing.T) {
	lines := []string{
		"/*0000*/ LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;",
		"/*0010*/ MUFU.EX2 R7, R7 ;",
		"/*0020*/ @!P0 LDG.E.64 R8, [R2.64+0x400] ;",
		"/*0030*/ CALL.REL.NOINC `($slow) ;",
		"/*0040*/ STG.E.128 desc[UR4][R2.64], R4 ;",
		"/*0050*/ STG.E.U16 desc[UR4][R2.64], R4 ;",
	}
	got := bodyOf("        " + strings.Join(lines, "\n        ") + "\n")
	want := body{Instructions: 6, Special: 1, Calls: 1, Narrow: 2, Stored: 18}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The slow path of a wait stands behind the end of the kernel and goes back into the loop, which
// is what a branch before the end repeats.
func TestLoopsOfSlowPaths(t *testing.T) {
	lines := []string{
		".L_x_1:",
		"/*0000*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R2 ;",
		"/*0010*/ @!P1 BRA `(.L_x_3) ;",
		".L_x_2:",
		"/*0020*/ QGMMA.64x128x32.F32.E4M3.E4M3 R24, R8, gdesc[UR4], R24, gsb0 ;",
		"/*0030*/ @P0 BRA `(.L_x_1) ;",
		"/*0040*/ EXIT ;",
		".L_x_3:",
		"/*0050*/ @P1 BRA `(.L_x_2) ;",
	}
	all := loops(strings.Join(lines, "\n") + "\n")
	if len(all) != 1 || all[0].Instructions != 4 || all[0].Wide != 1 {
		t.Errorf("%+v, want one loop of 4 instructions", all)
	}
}
