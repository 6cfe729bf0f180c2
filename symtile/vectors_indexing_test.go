package symtile

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestVectorsIndexing holds indexing maps against conformance vectors kept
// outside the repository, by printed form.
func TestVectorsIndexing(t *testing.T) {
	path := os.Getenv("TILEWRIGHT_VECTORS")
	if path == "" {
		t.Skip("TILEWRIGHT_VECTORS names no file")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	held, total := 0, 0
	for lines.Scan() {
		var v struct {
			Kind, ID, Dir, HLO string
			Expect             map[string]json.RawMessage
		}
		if json.Unmarshal(lines.Bytes(), &v) != nil || v.Kind != "indexing" {
			continue
		}
		total++
		if why := checkIndexing(v.HLO, v.Dir, v.Expect); why != "" {
			t.Logf("%s (%s): %s", v.ID, v.Dir, why)
		} else {
			held++
		}
	}
	t.Logf("%d of %d hold by form", held, total)
}

func checkIndexing(text, dir string, expect map[string]json.RawMessage) string {
	m, err := hlo.Parse("vector", []byte(text))
	if err != nil {
		return "parse: " + err.Error()
	}
	if dir != "output_to_input" {
		return "direction not compared"
	}
	r := NewRing()
	maps, err := ParamMaps(r, m.Entry, 0)
	if err != nil {
		return err.Error()
	}
	for name, raw := range expect {
		var want []string
		if json.Unmarshal(raw, &want) != nil {
			var one string
			if json.Unmarshal(raw, &one) != nil {
				continue
			}
			want = []string{one}
		}
		k := slices.IndexFunc(m.Entry.Params, func(p *hlo.Instr) bool { return p.Name == name })
		if k < 0 {
			continue
		}
		var got []string
		for _, x := range maps[k] {
			got = append(got, x.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return name + ":\n   got  " + strings.Join(got, "\n        ") + "\n   want " + strings.Join(want, "\n        ")
		}
	}
	return ""
}
