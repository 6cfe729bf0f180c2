package cache

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWinnerReader: records are read as encoding/json reads them, of the usual form
// without it, and what it would refuse is not read.
func TestWinnerReader(t *testing.T) {
	var w winnerReader // for one record after the other
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~\n\t]{0,12}`), rapid.String())
		x := rapid.Float64Range(-1e9, 1e9)
		r := record(rapid.IntRange(0, 99).Draw(t, "n"))
		r.Name, r.Source, r.Note = text.Draw(t, "name"), text.Draw(t, "source"), text.Draw(t, "note")
		r.Canonical, r.Plan, r.By = text.Draw(t, "canonical"), text.Draw(t, "plan"), text.Draw(t, "by")
		r.Dims = rapid.SliceOfN(text, 1, 3).Draw(t, "dims")
		r.Ties = rapid.SliceOfN(text, -1, 3).Draw(t, "ties")
		r.Safe = rapid.MapOfN(text, text, 0, 2).Draw(t, "safe")
		r.Seconds, r.Speedup[1] = x.Draw(t, "seconds"), x.Draw(t, "speedup")
		r.Untimed = rapid.Bool().Draw(t, "untimed")
		if rapid.Bool().Draw(t, "certified") {
			r.Certificate = &Certificate{}
			r.Roof = &Roof{Seconds: 1e-9, By: text.Draw(t, "by")}
		}
		if len(r.Trials) > 0 {
			r.Trials[0].Detail = text.Draw(t, "detail")
			r.Trials[0].Features = json.RawMessage(rapid.SampledFrom([]string{`[1,2]`, `{"a":[1],"checked":true}`}).Draw(t, "features"))
		}
		r.Evidence = json.RawMessage(`{"a":[1,"]\\"]}`)
		r.When = time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "when"), 0).UTC()
		encoded, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		usual := isASCII(string(encoded)) && !strings.Contains(string(encoded), `\u`) && strings.Count(string(encoded), string(behindTrials)) == 1
		if !w.agrees(t, encoded) && usual {
			t.Fatalf("left to encoding/json: %s", encoded)
		}
		changed := []byte(string(encoded))
		at := rapid.IntRange(0, len(changed)-1).Draw(t, "at")
		changed[at] = rapid.SampledFrom([]byte(`"\,:[]{}0-ntu `)).Draw(t, "byte")
		w.agrees(t, changed)
	})
}

// TestWinnerFields: the reader knows all members of a record in their order.
func TestWinnerFields(t *testing.T) {
	var want []string
	for _, of := range []reflect.Type{reflect.TypeFor[Key](), reflect.TypeFor[Record]()} {
		for k := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(k).Tag.Get("json"), ",")
			if name != "" {
				want = append(want, name)
			}
		}
	}
	var got []string
	for _, f := range winnerFields {
		got = append(got, f.name)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// agrees compares a text that is read with what encoding/json says.
func (w *winnerReader) agrees(t *rapid.T, text []byte) (read bool) {
	var got Record
	if !w.scan(text, &got) {
		return false
	}
	want, err := decodeWinner(text)
	if err != nil && !json.Valid(text) {
		return true // in what is skipped, whose checksum is compared before
	}
	if want.Ties == nil && len(got.Ties) == 0 {
		got.Ties = nil
	}
	got.Name, got.Source, got.Note = want.Name, want.Source, want.Note
	if err != nil || !reflect.DeepEqual(got, want) || w.safeText != SafeText(want.Safe) {
		t.Fatalf("%s:\n%+v\n%+v, %v", text, got, want, err)
	}
	return true
}

// TestImportUnedited: a line as it was exported, of a checked record, is stored as it is
// but for that; every other line is given to the check.
func TestImportUnedited(t *testing.T) {
	r := record(1)
	r.Checked = true
	unchecked := record(2)
	unchecked.Checked = false
	line, err := r.ExportLine()
	if err != nil {
		t.Fatal(err)
	}
	other, err := unchecked.ExportLine()
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(line), `"plan":"`, `"plan":"1`, 1)
	for _, c := range []struct {
		name, line string
		asked      int
	}{
		{"unedited", string(line), 0},
		{"edited", edited, 1},
		{"not checked", string(other), 1},
		{"spaces", string(line[:len(line)-1]) + " \n", 1},
		{"no digest", string(line[:len(line)-digestBytes-1]) + "}\n", 1},
	} {
		db := Open(filepath.Join(t.TempDir(), "t.db"))
		asked := 0
		_, n, err := db.Import(strings.NewReader(c.line), func(r *Record) error {
			asked++
			r.Checked = false
			return nil
		})
		if n != 1 || err != nil || asked != c.asked {
			t.Errorf("%s: %d records, %v, asked %d times", c.name, n, err, asked)
		}
		want := r
		if c.name == "not checked" {
			want = unchecked
		}
		got, found, err := db.Get(want.Key)
		want.Checked = false
		if c.name == "edited" {
			want.Plan = "1" + want.Plan
		}
		if !found || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %t, %v\n%+v\n%+v", c.name, found, err, got, want)
		}
	}
}
