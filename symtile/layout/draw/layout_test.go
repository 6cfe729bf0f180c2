package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strconv"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/layout"
)

// TestLayoutSVG: pictures of random layouts are well-formed and stay on their
// page.
func TestLayoutSVG(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	for range 300 {
		text, separator := "f32[", ""
		rank := 1 + rnd.Intn(3)
		for range rank {
			text += fmt.Sprint(separator, 1+rnd.Intn(9))
			separator = ","
		}
		text += "]{"
		for i, d := range rnd.Perm(rank) {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprint(d)
		}
		for i := range rnd.Intn(3) {
			if i == 0 {
				text += ":T"
			}
			text += fmt.Sprintf("(%d,%d)", 1+rnd.Intn(4), 1+rnd.Intn(8))
		}
		l, err := layout.Parse(text + "}")
		if err != nil {
			t.Fatal(err)
		}
		page, err := LayoutSVG(l, layout.Sectors{})
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		checkPage(t, page)
	}
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
		if at["x"] < 0 || at["x"]+at["width"] > pageWidth ||
			at["y"]+at["height"] > height || at["width"] < 0 {
			t.Fatalf("%v %v leaves the page of %v\n%s", e.Name.Local, at, height, page)
		}
	}
}

// TestColorsAreLiteral: programs other than browsers know no variables, and draw what
// has one for its color in black.
func TestColorsAreLiteral(t *testing.T) {
	l, err := layout.Parse("f32[3,5]{1,0:T(2,2)}")
	if err != nil {
		t.Fatal(err)
	}
	page, err := LayoutSVG(l, layout.Sectors{})
	if err != nil || strings.Contains(string(page), "var(") || !strings.Contains(string(page), ".page, .blank { fill: #ffffff }") {
		t.Errorf("%v: %.900s", err, page)
	}
}

// TestDrawRefuses: sizes of memory that make no sense are errors.
func TestDrawRefuses(t *testing.T) {
	l, err := layout.Parse("f32[8,8]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LayoutSVG(l, layout.Sectors{Line: 33}); err == nil {
		t.Error("lines of 33 bytes are drawn")
	}
}
