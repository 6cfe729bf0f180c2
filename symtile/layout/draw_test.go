package layout

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math/rand"
	"strconv"
	"testing"

	"github.com/tilewright/tilewright/symtile"
)

// TestDraw: pictures of random layouts, and of random blocks, warps and lanes,
// are well-formed and stay on their page.
func TestDraw(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	drawn := 0
	for range 300 {
		x := randomAccess(t, rnd)
		page, err := x.Layout.Draw(Sectors{})
		if err != nil {
			t.Fatalf("%s: %v", x.Layout, err)
		}
		checkPage(t, page)
		pick := Pick{Block: make([]int64, len(x.Blocks)), Warp: -1, Lane: -1}
		for d := range pick.Block {
			pick.Block[d] = rnd.Int63n(x.Blocks[d].Range().Len())
		}
		if rnd.Intn(3) > 0 {
			pick.Warp = rnd.Int63n(x.Warp.Range().Len())
			pick.Lane = rnd.Int63n(x.Lane.Range().Len()+1) - 1
		}
		if page, err = x.Draw(pick, 1, Sectors{}); err == nil { // masks may leave nothing
			drawn++
			checkPage(t, page)
		}
	}
	t.Logf("%d accesses drawn", drawn)
}

func checkPage(t *testing.T, page []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	for height := 0.0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, page)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local == "pattern" || e.Name.Local == "circle" {
			continue
		}
		at := map[string]float64{}
		for _, a := range e.Attr {
			at[a.Name.Local], _ = strconv.ParseFloat(a.Value, 64)
		}
		if e.Name.Local == "svg" {
			height = at["height"]
		}
		if at["x"] < 0 || at["x"]+at["width"] > pageWidth || at["y"]+at["height"] > height || at["width"] < 0 {
			t.Fatalf("%v %v leaves the page of %v\n%s", e.Name.Local, at, height, page)
		}
	}
}

// TestDrawRefuses: what cannot be drawn says why.
func TestDrawRefuses(t *testing.T) {
	l, err := Parse("f32[1024,1024]")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Assignment{Tile: []int64{1024, 1024}, Threads: []int64{8, 32}}.Of(symtile.NewRing(), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, pick := range []Pick{{Block: []int64{0, 0}, Warp: -1, Lane: -1}, {Block: []int64{1, 0}, Lane: -1}, {Block: []int64{0}}, {Block: []int64{0, 0}, Warp: 8}, {Block: []int64{0, 0}, Lane: 32}} {
		if _, err := x.Draw(pick, 1, Sectors{}); err == nil {
			t.Errorf("%+v is drawn", pick)
		}
	}
	if _, err := x.Draw(Pick{Block: []int64{0, 0}}, 1, Sectors{Line: 33}); err == nil {
		t.Error("lines of 33 bytes are drawn")
	}
}
