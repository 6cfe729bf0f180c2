package device

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Every built-in sheet has a source, and the sheet of its device is read as the same
// device.
func TestSheets(t *testing.T) {
	for k, s := range Priced() {
		if sheets()[k].Sources["*"] == "" {
			t.Errorf("%s has no source", s.Name)
		}
		text, err := json.Marshal(SheetOf(s))
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadSheet(bytes.NewReader(text))
		if err != nil || again != s {
			t.Errorf("%s: %+v instead of %+v, %v", s.Name, again, s, err)
		}
	}
}

// What is no sheet, and what no device has, is refused with the reason.
func TestBadSheets(t *testing.T) {
	const good = `"name":"x","target":"sm_80","sms":4,"sm_clock_hz":1,"l2_bytes":1,"memory_bytes_per_second":1`
	for text, want := range map[string]string{
		``:                                 "EOF",
		`{` + good + `} {}`:                "more after its end",
		`{` + good + `,"clock_hz":1}`:      "unknown field",
		`{"name":"x","target":"gfx9"}`:     "no target",
		`{"name":"x","target":"sm_80"}`:    "sms is 0",
		`{` + good + `,"warps_per_sm":-1}`: "warps_per_sm is -1",
		`{` + strings.Replace(good, `"x"`, `""`, 1) + `}`: "no name",
		strings.Repeat(" ", maxSheetBytes+1):              "longer",
	} {
		_, err := ReadSheet(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	if _, err := ReadSheet(strings.NewReader(`{` + good + `}`)); err != nil {
		t.Error(err)
	}
}
