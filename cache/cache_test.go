package cache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestText runs testdata/text. Databases are called by one name a case:
//
//	put DB     one record an input: "plan=64 sec=2 when=1 checked default=1
//	           speedup=2,1.9,2.1 safe=go:1 fusion=7 name=gemm"; then trials, one
//	           a line: "64: 0=2.0 1=2.1 wrong", block=sample and a failure
//	trials DB  the same with the key and the trials only: PutTrials
//	delete DB  fusion=7
//	merge DB from=DB · show DB · export DB · copy DB from=DB (export, import)
//	import DB  lines as they are
func TestText(t *testing.T) {
	datadriven.Walk(t, "testdata/text", func(t *testing.T, path string) {
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			db := func(name string) *DB { return Open(filepath.Join(dir, name+".db")) }
			return textCase(t, d, db)
		})
	})
}

func textCase(t *testing.T, d *datadriven.TestData, open func(string) *DB) string {
	var from string
	d.MaybeScanArgs(t, "from", &from)
	db := open(d.CmdArgs[0].Key)
	switch d.Cmd {
	case "put":
		kept, err := db.Put(parseRecord(t, d.Input))
		return say(err, "kept %t", kept)
	case "trials":
		r := parseRecord(t, d.Input)
		err := db.PutTrials(r.Key, r.Trials)
		ts, _ := db.Trials(r.Key)
		return say(err, "%s", showTrials(ts))
	case "delete":
		found, err := db.Delete(parseRecord(t, d.Input).Key)
		return say(err, "found %t", found)
	case "merge":
		kept, total, err := db.Merge(open(from))
		return say(err, "kept %d of %d", kept, total)
	case "copy":
		var lines bytes.Buffer
		if _, err := open(from).Export(&lines); err != nil {
			return say(err, "")
		}
		kept, total, err := db.Import(&lines, nil)
		return say(err, "kept %d of %d", kept, total)
	case "import":
		kept, total, err := db.Import(strings.NewReader(d.Input), nil)
		return say(err, "kept %d of %d", kept, total)
	case "export":
		var lines bytes.Buffer
		_, err := db.Export(&lines)
		return say(err, "%s", lines.String())
	case "show":
		return show(t, db)
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return ""
}

func say(err error, format string, args ...any) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	return strings.TrimSuffix(fmt.Sprintf(format, args...), "\n") + "\n"
}

func show(t *testing.T, db *DB) string {
	var b strings.Builder
	for r, err := range db.All() {
		if err != nil {
			return say(err, "")
		}
		fmt.Fprintf(
			&b, "fusion=%d plan=%s sec=%v when=%d\n%s",
			r.Fusion[0], r.Plan, r.Seconds,
			r.When.Unix(), showTrials(r.Trials),
		)
	}
	if n, err := db.Verify(); err != nil {
		t.Errorf("%d records: %v", n, err)
	}
	return b.String()
}

func showTrials(ts []Trial) string {
	var b strings.Builder
	for _, x := range ts {
		fmt.Fprintf(&b, "  %s:", x.Plan)
		for k, s := range x.Samples {
			fmt.Fprintf(&b, " %d=%v", x.Blocks[k], s)
			if len(x.Clocks) > 0 {
				fmt.Fprintf(&b, "@%v", x.Clocks[k])
			}
		}
		if x.Failure != "" {
			b.WriteString(" " + x.Failure)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func parseRecord(t *testing.T, text string) Record {
	head, trials, _ := strings.Cut(text, "\n")
	r := Record{Key: Key{Device: "cpu:test", Backend: "cpu", Codegen: "1"}}
	for _, word := range strings.Fields(head) {
		name, value, _ := strings.Cut(word, "=")
		r.set(t, name, value)
	}
	for line := range strings.Lines(trials) {
		plan, rest, _ := strings.Cut(line, ":")
		x := Trial{Plan: plan}
		for _, word := range strings.Fields(rest) {
			block, seconds, ok := strings.Cut(word, "=")
			if !ok {
				x.Failure = word
				continue
			}
			seconds, hertz, clocked := strings.Cut(seconds, "@")
			x.Samples = append(x.Samples, number(t, seconds))
			if clocked {
				x.Clocks = append(x.Clocks, number(t, hertz))
			}
			if block != "" {
				x.Blocks = append(x.Blocks, int(number(t, block)))
			}
		}
		r.Trials = append(r.Trials, x)
	}
	return r
}

func (r *Record) set(t *testing.T, name, value string) {
	switch name {
	case "fusion":
		r.Fusion[0] = byte(number(t, value))
	case "device":
		r.Device = value
	case "name":
		r.Name = value
	case "plan":
		r.Plan = value
	case "default":
		r.Default = value
	case "sec":
		r.Seconds = number(t, value)
	case "when":
		r.When = time.Unix(int64(number(t, value)), 0).UTC()
	case "checked":
		r.Checked = true
	case "safe":
		k, v, _ := strings.Cut(value, ":")
		r.Safe = map[string]string{k: v}
	case "speedup":
		for k, v := range strings.Split(value, ",") {
			r.Speedup[k] = number(t, v)
		}
	default:
		t.Fatalf("unknown field %s", name)
	}
}

func number(t *testing.T, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// genTrials draws trials of few plans with distinct samples, from least up.
func genTrials(t *rapid.T, label string, least float64) []Trial {
	var ts []Trial
	for _, plan := range []string{
		"1", "2", "3",
	}[:rapid.IntRange(0, 3).Draw(t, label)] {
		x := Trial{Plan: plan}
		blocks := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 6, rapid.ID).Draw(t, label)
		slices.Sort(blocks)
		for _, b := range blocks {
			x.Blocks = append(x.Blocks, b)
			least++
			x.Samples = append(x.Samples, least)
		}
		if rapid.Bool().Draw(t, label) {
			for _, s := range x.Samples {
				x.Clocks = append(x.Clocks, 1e9+s)
			}
		}
		if rapid.Bool().Draw(t, label) {
			x.Blocks = nil
		}
		ts = append(ts, x)
	}
	return ts
}

type pair struct{ p, q string }

// pairs counts the samples of plans that are in one block.
func pairs(ts []Trial) map[pair]map[[2]float64]int {
	out := map[pair]map[[2]float64]int{}
	for _, x := range ts {
		for _, y := range ts {
			for i, b := range x.Blocks {
				for j, c := range y.Blocks {
					if b == c {
						m := out[pair{x.Plan, y.Plan}]
						if m == nil {
							m = map[[2]float64]int{}
							out[pair{x.Plan, y.Plan}] = m
						}
						m[[2]float64{x.Samples[i], y.Samples[j]}]++
					}
				}
			}
		}
	}
	return out
}

func TestUnionLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genTrials(t, "a", 0), genTrials(t, "b", 100)
		u := union(a, b)
		if err := plausible(u); err != nil {
			t.Fatal(err)
		}
		for _, side := range [][]Trial{a, b} {
			for _, x := range side {
				k := slices.IndexFunc(u, func(y Trial) bool { return y.Plan == x.Plan })
				if k < 0 {
					t.Fatalf("plan %s is lost", x.Plan)
				}
				for _, s := range x.Samples {
					at := slices.Index(u[k].Samples, s)
					if at < 0 {
						t.Fatalf("sample %v of plan %s is lost", s, x.Plan)
					}
					got := u[k].clock(at)
					if len(x.Clocks) > 0 && got != 1e9+s || len(x.Clocks) == 0 && got != 0 {
						t.Fatalf("sample %v of plan %s was taken at %v Hz", s, x.Plan, got)
					}
				}
			}
			joint := pairs(u)
			for p, m := range pairs(side) {
				for xy, n := range m {
					if joint[p][xy] < n {
						t.Fatalf("%v and %v of plans %v are no longer paired", xy[0], xy[1], p)
					}
				}
			}
		}
		if again := union(u, b); showTrials(again) != showTrials(u) {
			t.Fatalf("a second union adds\n%swas\n%s", showTrials(again), showTrials(u))
		}
		if again := union(u, a); showTrials(again) != showTrials(u) {
			t.Fatalf("a second union adds\n%swas\n%s", showTrials(again), showTrials(u))
		}
	})
}

// TestUnionOfStates is a race that is stored again and again as it goes on.
func TestUnionOfStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		late := genTrials(t, "late", 0)
		cut := rapid.IntRange(0, 9).Draw(t, "cut")
		early := slices.Clone(late)
		for k, x := range late {
			if len(x.Blocks) == 0 {
				late[k].Samples, late[k].Clocks = nil, nil
			}
			n, _ := slices.BinarySearch(x.Blocks, cut)
			early[k].Samples, early[k].Blocks = late[k].Samples[:n],
				x.Blocks[:n]
			early[k].Clocks = late[k].Clocks[:min(n, len(late[k].Clocks))]
		}
		if got, want := showTrials(union(late, early)), showTrials(late); got != want {
			t.Fatalf("got\n%swant\n%s", got, want)
		}
		if got, want := showTrials(union(early, late)), showTrials(late); got != want {
			t.Fatalf("got\n%swant\n%s", got, want)
		}
	})
}

func genRecord(t *rapid.T, label string) Record {
	draw := func(hi int) int { return rapid.IntRange(0, hi).Draw(t, label) }
	r := Record{
		Key:     Key{Device: "d", Backend: "b"},
		Plan:    strconv.Itoa(1 + draw(1)),
		Default: strconv.Itoa(draw(1)),
		Seconds: float64(1 + draw(2)),
		Checked: draw(1) > 0,
		When:    time.Unix(int64(draw(2)), 0).UTC(),
		Trials:  genTrials(t, label, 0),
	}
	if draw(2) == 0 {
		r.Safe = map[string]string{"go": "1"}
	}
	if lo := float64(draw(4)); lo > 0 {
		r.Speedup = [3]float64{lo + 0.2, lo, lo + 0.4}
	}
	return r
}

// TestEvidenceIsOneSided: of two different records, exactly one beats the other.
func TestEvidenceIsOneSided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genRecord(t, "a"), genRecord(t, "b")
		for k, rule := range precedence {
			if rule(&a, &b) != -rule(&b, &a) {
				t.Fatalf("rule %d prefers both", k)
			}
		}
		same := a.Plan == b.Plan && a.Seconds == b.Seconds && a.When.Equal(b.When)
		if !same && a.supersedes(b) == b.supersedes(a) {
			t.Fatalf("both or neither beat the other: %t", a.supersedes(b))
		}
	})
}

func TestKeyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Key{
			Device:  rapid.String().Draw(t, "device"),
			Backend: rapid.String().Draw(t, "backend"),
			Codegen: rapid.String().Draw(t, "codegen"),
		}
		copy(
			k.Fusion[:],
			rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "fusion"),
		)
		b := k.bytes()
		if got, err := parseKey(b); err != nil || got != k {
			t.Fatalf("%v, %v; want %v", got, err, k)
		}
		if _, err := parseKey(append(b, 0)); err == nil {
			t.Fatal("a byte too many is read")
		}
		_, err := parseKey(
			b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")],
		)
		if err == nil {
			t.Fatal("a cut key is read")
		}
	})
}

func TestSafeDiff(t *testing.T) {
	old := map[string]string{"go": "1.25", "driver": "580", "os": "linux"}
	now := map[string]string{"go": "1.26", "os": "linux", "power": "300 W"}
	want := "driver: measured with 580, now none; go: measured with 1.25, now 1.26; power: measured with none, now 300 W"
	if got := strings.Join(SafeDiff(old, now), "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	hit := Hit{Safe: []byte(SafeText(old))}
	if d := hit.SafeDiff(now); strings.Join(d, "; ") != want {
		t.Errorf("of a hit: %v", d)
	}
	if d := SafeDiff(now, now); d != nil {
		t.Errorf("of itself: %v", d)
	}
}

// A record as a tuner stores it, for tests and benchmarks.
func record(n int) Record {
	r := Record{
		Key:  Key{Device: "cpu:AMD EPYC 7763 2c", Backend: "cpu", Codegen: "cpu-1"},
		Name: fmt.Sprintf("fusion.%d", n), Canonical: strings.Repeat("p0 = f32[64,64]{1,0} parameter(0)\n", 8),
		Safe: map[string]string{"go": "go1.26.0", "os": "linux/amd64"},
		Plan: fmt.Sprintf("64,32,%d threads=2", n+1), Default: "16,16,16", Dims: []string{"m", "n", "k"}[:n%4],
		Seconds: 1e-3 + float64(n)*1e-9, DefaultSeconds: 2e-3, Speedup: [3]float64{2, 1.9, 2.1},
		Checked: true, Legal: 1000, Tilings: 100, Plans: 2000, MorePlans: n%2 == 1, Proven: 10, When: time.Unix(int64(n), 0).UTC(), By: "test",
	}
	for k := range r.Fusion {
		r.Fusion[k] = byte(splitmix(uint64(n)*32 + uint64(k)))
	}
	for k := range 8 {
		x := Trial{Plan: fmt.Sprintf("%d,32,%d threads=2", 8<<k, n+1), Predicted: 1e-3}
		for b := range 12 {
			x.Samples = append(
				x.Samples,
				1e-3+float64(splitmix(uint64(n*100+k*12+b))>>40)*1e-9,
			)
			x.Blocks = append(x.Blocks, b)
		}
		r.Trials = append(r.Trials, x)
	}
	return r
}

// splitmix is Steele, Lea and Flood's generator, OOPSLA 2014.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// filled is a database of n records.
func filled(t testing.TB, n int) *DB {
	db := Open(filepath.Join(t.TempDir(), "t.db"))
	for k := range n {
		if _, err := db.Put(record(k)); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestMissing(t *testing.T) {
	db := Open(filepath.Join(t.TempDir(), "none.db"))
	if _, found, err := db.Get(record(1).Key); found || err != nil {
		t.Errorf("Get: %t, %v", found, err)
	}
	if found, err := db.Delete(record(1).Key); found || err != nil {
		t.Errorf("Delete: %t, %v", found, err)
	}
	if ts, err := db.Trials(record(1).Key); len(ts) > 0 || err != nil {
		t.Errorf("Trials: %v, %v", ts, err)
	}
	if n, err := db.Verify(); n != 0 || err != nil {
		t.Errorf("Verify: %d, %v", n, err)
	}
}

// TestImplausible: what cannot be true is not stored.
func TestImplausible(t *testing.T) {
	db := filled(t, 1)
	for name, spoil := range map[string]func(*Record){
		"no device":   func(r *Record) { r.Device = "" },
		"long device": func(r *Record) { r.Device = strings.Repeat("x", 1<<16) },
		"no plan":     func(r *Record) { r.Plan = "" },
		"no time":     func(r *Record) { r.Seconds = 0 },
		"negative":    func(r *Record) { r.DefaultSeconds = -1 },
		"speedup":     func(r *Record) { r.Speedup[1] = -1 },
		"regret":      func(r *Record) { r.Regret = -2 },
		"legal":       func(r *Record) { r.Legal = -1 },
		"tilings":     func(r *Record) { r.Tilings = -1 },
		"plans":       func(r *Record) { r.Plans = -1 },
		"proven":      func(r *Record) { r.Proven = r.Legal + 1 },
		"far future": func(r *Record) {
			r.When = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		"sample": func(r *Record) { r.Trials[1].Samples[2] = 0 },
		"blocks": func(r *Record) {
			r.Trials[1].Blocks = r.Trials[1].Blocks[:3]
		},
		"block":  func(r *Record) { r.Trials[1].Blocks[0] = -1 },
		"clocks": func(r *Record) { r.Trials[1].Clocks = []float64{1e9} },
		"clock": func(r *Record) {
			r.Trials[1].Clocks = make([]float64, len(r.Trials[1].Samples))
			r.Trials[1].Clocks[1] = -1
		},
		"features":      func(r *Record) { r.Trials[1].Features = []byte("{") },
		"trial no plan": func(r *Record) { r.Trials[1].Plan = "" },
	} {
		r := record(0)
		spoil(&r)
		if kept, err := db.Put(r); kept || err == nil {
			t.Errorf("%s: kept %t, %v", name, kept, err)
		}
	}
	got, found, err := db.Get(record(0).Key)
	if !found || err != nil || got.Plan != record(0).Plan {
		t.Errorf("the stored record suffered: %t, %v", found, err)
	}
}

func BenchmarkPut(b *testing.B) {
	db := filled(b, 200)
	for n := 0; b.Loop(); n++ {
		if _, err := db.Put(record(n % 200)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	db := filled(b, 200)
	for n := 0; b.Loop(); n++ {
		if _, found, err := db.Get(record(n % 200).Key); !found || err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGetCold looks the whole file over before each Get, as a new process does.
func BenchmarkGetCold(b *testing.B) {
	path := filled(b, 200).path
	for n := 0; b.Loop(); n++ {
		if _, found, err := Open(path).Get(record(n % 200).Key); !found ||
			err != nil {
			b.Fatal(err)
		}
	}
}

// TestImportNamesTheLine: the number of a refused line counts the lines of the
// batches before it.
func TestImportNamesTheLine(t *testing.T) {
	var one bytes.Buffer
	if err := json.NewEncoder(&one).Encode(record(1)); err != nil {
		t.Fatal(err)
	}
	before := 4*lineBatchBytes/one.Len() + 1
	lines := strings.Repeat(one.String(), before) + "{\n"
	_, _, err := Open(filepath.Join(t.TempDir(), "t.db")).Import(strings.NewReader(lines), nil)
	want := fmt.Sprintf("line %d: ", before+1)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestImportIsLinear imports 20,000 samples of one plan in one block twice, which
// took 7 s when a block was searched for each; 1,000 lines of one key, which took
// as long when each was united with all before; and records under random keys. What
// is not linear again ends by the time limit of go test.
func TestImportIsLinear(t *testing.T) {
	keys := 20_000
	if testing.Short() {
		keys = 5_000
	}
	const samples, sessions = 20_000, 1_000
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	r := record(1)
	session := func(first, n, blocks int) {
		r.Trials = []Trial{{Plan: r.Plan}}
		for k := first; k < first+n; k++ {
			r.Trials[0].Add(1e-3+float64(k)*1e-9, 0, k%blocks)
		}
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	session(0, samples, 1)
	session(0, samples, 1)
	for k := range sessions {
		session(samples+k*100, 100, 100)
	}
	long := r.Key
	r = record(2)
	r.Trials = nil
	for n := range keys {
		r.Device = fmt.Sprintf("%016x", splitmix(uint64(n)))
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	db := Open(filepath.Join(t.TempDir(), "t.db"))
	begin := time.Now()
	_, n, err := db.Import(&lines, nil)
	t.Logf("%d records in %v", n, time.Since(begin))
	if n != keys+2+sessions || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
	r, _, err = db.Get(long)
	if err != nil || len(r.Trials[0].Samples) != samples+100*sessions {
		t.Errorf("%d samples, %v", len(r.Trials[0].Samples), err)
	}
}
