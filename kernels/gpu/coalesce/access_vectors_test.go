package coalesce

import (
	"bufio"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// TestBandwidthVectors runs the bandwidth vectors of the file
// TILEWRIGHT_VECTORS.
func TestBandwidthVectors(t *testing.T) {
	path := os.Getenv("TILEWRIGHT_VECTORS")
	if path == "" {
		t.Skip("TILEWRIGHT_VECTORS names no file of conformance vectors")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	sc := bufio.NewScanner(f)
	for sc.Buffer(nil, 1<<24); sc.Scan(); {
		var kind struct{ Kind string }
		if json.Unmarshal(sc.Bytes(), &kind) == nil &&
			kind.Kind == "coalescing" && strings.Contains(sc.Text(), "bandwidth_utilization") {
			n++
			bandwidth(t, sc.Bytes())
		}
	}
	t.Logf("%d vectors", n)
}

// bandwidth runs a vector about the first tile of an array, as one thread that
// touches all of it: bytes asked for over bytes moved in transactions of 64.
func bandwidth(t *testing.T, line []byte) {
	var v struct {
		ID, HLO string
		Tile    []int64
		Expect  struct {
			Use string `json:"bandwidth_utilization"`
		}
	}
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatal(err)
	}
	shape, _, _ := strings.Cut(strings.TrimPrefix(v.HLO, "x = "), " ")
	l, err := layout.Parse(shape)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Assignment{
		Tile:     v.Tile,
		Threads:  []int64{1, 1},
		Elements: v.Tile,
	}.Of(index.NewRing(), l)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := index.Product(v.Tile)
	_, c, err := x.WarpOf(
		[]int64{0, 0}, 0, n, layout.Sectors{Sector: 64},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := big.NewRat(
		c.PerRequest.Bytes, c.PerRequest.Sectors*64,
	); got.RatString() != v.Expect.Use {
		t.Errorf("%s: %s of transactions used, want %s", v.ID, got.RatString(), v.Expect.Use)
	}
}
