package gemm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// heldBy says what holds each routine of kernels_amd64.s: the tests that emulate it, which run
// on any processor, or, of routines that need AVX2 and no more, and have no part in builds
// without it, the tests that compare it with loops in Go where there is AVX2.
var heldBy = []struct {
	routines string // an expression for their names
	emulated bool
	tests    []string
}{
	{`multiply(F32|F64|I32|I16)(Wide|VNNI)?(Masked|Pair|Fill)?Rows\d`, true, []string{"TestEveryKernel"}},
	{`multiplyQuads(US|SU)(Narrow)?(Masked)?Rows\d`, true, []string{"TestQuadKernels"}},
	{`multiplyTiles[SU][SU](Low)?`, true, []string{"TestTileKernels"}},
	{`multiplyTilesBF16(Low)?`, true, []string{"TestBF16Tiles"}},
	{`multiplyTilesF16(Low)?`, true, []string{"TestF16Tiles"}},
	{`multiplyBF16Pairs(Masked)?Rows\d+`, true, []string{"TestBF16Pairs"}},
	{`gemvF(32|64)`, false, []string{"TestEndsOfStreams", "TestEveryRemainder"}},
	{`fetchingGemvF(32|64)`, false, []string{"TestFetchedRows"}},
	{`transposedGemvF32(Half)?`, false, []string{"TestStandingColumns", "TestEveryRemainder"}},
	{`standingF32(Four)?`, false, []string{"TestPartialSums"}},
	{`fetchingStandingF32Four`, false, []string{"TestFetchedColumns"}},
	{`bytePanels(Signed|Unsigned)[12]|wordPanel`, true, []string{"TestBytePanels"}},
	{`copyWidePanels`, true, []string{"TestWideCopies"}},
	{`copyPanels[14]`, false, []string{"TestPanels", "TestEveryRemainder"}},
	{`transpose(32|64)`, false, []string{"TestEveryRemainder", "TestPageEnds"}},
	{`pair(Rows|Terms)`, false, []string{"TestWidePairs", "TestPageEnds"}},
	{`quad(Rows|Terms|Sums)|byte(Rows|Terms)`, false, []string{"TestQuads", "TestQuadPageEnds"}},
	{`pair(Rows|Terms)BF16`, false, []string{"TestBF16Rounding", "TestBF16"}},
	{`pair(Rows|Terms)F16`, false, []string{"TestF16Rounding", "TestBF16"}},
	{`lanesF32Rows[14]Vecs[12]`, false, []string{"TestLanes"}},
	{`packRuns`, false, []string{"TestWindows", "TestWindowsOutside"}},
	{`wordRows`, false, []string{"TestBF16"}},
	{`cpuid`, false, []string{"TestEmulateHalves"}},
}

// beyondAVX2 are the instructions of routines that few processors run: wide vectors, masks,
// tiles, and what has no name in the assembler.
var beyondAVX2 = regexp.MustCompile(`(?m)\bZ\d|\bK\d|^\s*BYTE|VPDP`)

// TestRoutinesAreHeld: every routine has a row, the tests of a row exist, and what needs more
// than AVX2 is emulated.
func TestRoutinesAreHeld(t *testing.T) {
	tests := testNames(t)
	used := map[string]bool{}
	for name, text := range routineTexts(t) {
		rows := 0
		for _, row := range heldBy {
			if !regexp.MustCompile(`^(` + row.routines + `)$`).MatchString(name) {
				continue
			}
			rows++
			used[row.routines] = true
			if beyondAVX2.MatchString(text) && !row.emulated {
				t.Errorf("%s needs more than AVX2 and is not emulated", name)
			}
		}
		if rows != 1 {
			t.Errorf("%s has %d rows, not one", name, rows)
		}
	}
	for _, row := range heldBy {
		if !used[row.routines] {
			t.Errorf("there is no %s", row.routines)
		}
		for _, name := range row.tests {
			if !tests[name] {
				t.Errorf("%s: there is no %s", row.routines, name)
			}
		}
	}
}

// testNames are the tests of this package.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}

// routineTexts are the bodies of routines by their names.
func routineTexts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, part := range strings.Split(string(text), "\nTEXT ·")[1:] {
		name, body, _ := strings.Cut(part, "(SB)")
		texts[name] = body
	}
	return texts
}
