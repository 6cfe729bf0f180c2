package filter

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// now is the time of the tests.
var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// records have two devices, three ages and three regrets.
var records = []cache.Record{
	{Name: "old", Key: cache.Key{Device: "cpu:AMD/Zen 3 2c"}, When: now.AddDate(0, 0, -40), Regret: 0},
	{Name: "month", Key: cache.Key{Device: "cuda:NVIDIA H100"}, When: now.AddDate(0, 0, -30), Regret: 0.021},
	{Name: "new", Key: cache.Key{Device: "cuda:NVIDIA H100"}, When: now.Add(-time.Hour), Regret: -1},
}

func TestKeeps(t *testing.T) {
	for flags, want := range map[string]string{
		"":                        "old month new",
		"-on cpu:*":               "old",
		"-on *":                   "old month new",
		"-on *H100":               "month new",
		"-on *h100":               "",
		"-on cpu:AMD/*":           "old",
		"-older 30d":              "old",
		"-older 29d":              "old month",
		"-newer 30d":              "month new",
		"-newer 61m":              "new",
		"-older 1w -newer 5w":     "month",
		"-regret 2%":              "month new",
		"-regret >2.1%":           "new",
		"-regret 0":               "month new",
		"-regret 0.03 -newer 90d": "new",
		"-on [":                   "error: is not a pattern",
		"-older 0d":               "error: an age is",
		"-older d":                "error: an age is",
		"-older -3h":              "error: an age is",
		"-older 99999999999w":     "error: an age is",
		"-newer x":                "error: an age is",
		"-regret -1":              "error: a ratio is",
		"-regret NaN":             "error: a ratio is",
		"-regret Inf":             "error: a ratio is",
	} {
		var f Filter
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		f.Define(set)
		err := set.Parse(strings.Fields(flags))
		if err == nil {
			err = f.Check()
		}
		var got []string
		for k := range records {
			if err == nil && f.Keeps(&records[k], now) {
				got = append(got, records[k].Name)
			}
		}
		if want, bad := strings.CutPrefix(want, "error: "); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", flags, err, want)
			}
		} else if text := strings.Join(got, " "); err != nil || text != want {
			t.Errorf("%s keeps %q, %v; want %q", flags, text, err, want)
		}
		if used := Used(set); err == nil && (used == "") != (flags == "") {
			t.Errorf("%s: used %q", flags, used)
		}
	}
}
