package cache

import (
	"strings"
	"testing"
)

func TestRepeatedMember(t *testing.T) {
	for text, name := range map[string]string{
		`{"plan": "4", "safe": {"go": "1", "Go": "2"}, "trials": [{"plan": "4"}, {"plan": "8"}]}`: "",
		`{"note": "a \"plan\": ", "plan": "{\"plan\":", "name": "\\"}`:                            "",
		`{"plan": "4", "Plan": "8"}`:                         `"plan"`,
		`{"plan": "4", "pl\u0061n" : "8"}`:                   `"plan"`,
		`{"safe": {"go": "1", "os": "x", "go": "1"}}`:        `"go"`,
		`{"trials": [{"plan": "4", "blocks":[],"plan":""}]}`: `"plan"`,
	} {
		err := repeatedMember([]byte(text))
		if (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %s", text, err, name)
		}
	}
}
