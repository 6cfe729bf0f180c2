package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math/rand"
	"strconv"
	"testing"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// TestDrawAccess: pictures of random blocks, warps and lanes are well-formed and
// stay on their page.
func TestDrawAccess(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	power := func(n int) int64 { return 1 << rnd.Intn(n) }
	shapes := []string{"f32[9,7]", "f32[5,8]{0,1}", "f32[3,5]{1,0:T(2,2)}", "bf16[32,56]{1,0:T(8,128)(2,1)}", "s8[17,40]{1,0:T(4,4)}"}
	drawn := 0
	for range 200 {
		l, err := layout.Parse(shapes[rnd.Intn(len(shapes))])
		if err != nil {
			t.Fatal(err)
		}
		a := coalesce.Assignment{Warp: int64(1 + rnd.Intn(8))}
		for range l.Shape.Rank() {
			a.Threads, a.Elements = append(a.Threads, power(4)),
				append(a.Elements, power(3))
			a.Tile = append(a.Tile, int64(1+rnd.Intn(12)))
		}
		x, err := a.Of(index.NewRing(), l)
		if err != nil {
			t.Fatal(err)
		}
		p := pick{Block: make([]int64, len(x.Blocks)), Warp: -1, Lane: -1}
		for d := range p.Block {
			p.Block[d] = rnd.Int63n(x.Blocks[d].Range().Len())
		}
		if rnd.Intn(3) > 0 {
			p.Warp = rnd.Int63n(x.Warp.Range().Len())
			p.Lane = rnd.Int63n(x.Lane.Range().Len()+1) - 1
		}
		if page, err := drawAccess(x, p, 1); err == nil { // masks may leave nothing
			drawn++
			checkPage(t, page)
		}
	}
	if drawn < 100 {
		t.Errorf("%d of 200 accesses drawn", drawn)
	}
}

func checkPage(t *testing.T, page []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	for width, height := 0.0, 0.0; ; {
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
			width, height = at["width"], at["height"]
		}
		if at["x"] < 0 || at["x"]+at["width"] > width ||
			at["y"]+at["height"] > height || at["width"] < 0 {
			t.Fatalf("%v %v leaves the page of %v\n%s", e.Name.Local, at, height, page)
		}
	}
}

// TestDrawAccessRefuses: what cannot be drawn says why.
func TestDrawAccessRefuses(t *testing.T) {
	l, err := layout.Parse("f32[1024,1024]")
	if err != nil {
		t.Fatal(err)
	}
	x, err := coalesce.Assignment{
		Tile:    []int64{1024, 1024},
		Threads: []int64{8, 32},
	}.Of(index.NewRing(), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []pick{
		{Block: []int64{0, 0}, Warp: -1, Lane: -1},
		{Block: []int64{1, 0}, Lane: -1},
		{Block: []int64{0}},
		{Block: []int64{0, 0}, Warp: 8},
		{Block: []int64{0, 0}, Lane: 32},
	} {
		if _, err := drawAccess(x, p, 1); err == nil {
			t.Errorf("%+v is drawn", p)
		}
	}
}
