package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// The origin of the records that are asked for; another device has a few, too.
const (
	device  = "cpu:test"
	backend = "cpu"
	codegen = "go1"
)

// recordOf is the record of a number: a fusion of one of 16 structures with extents of
// its own, its winner, and a race of two plans. One in 50 is of another device, which
// readers must not take for the one that is asked for; flags and ties differ from
// record to record, so that a reader that mixes them up is found.
func recordOf(n int) cache.Record {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	rows := 1 + rng.IntN(1<<14)
	columns := 1 + rng.IntN(1<<14)
	r := cache.Record{
		Key:  cache.Key{Device: device, Backend: backend, Codegen: codegen},
		Name: fmt.Sprintf("fusion.%d", n),
		// Numbers between brackets are extents; that of the kind is structure.
		Canonical: canonical(n%16, rows, columns, n),
		Plan:      fmt.Sprintf("%d,%d threads=2", 1+rows/2, 1+columns/3),
		Default:   "16,16",
		Dims:      []string{"row", "column"}[:n%3],
		Ties:      []string{"8,8", "4,4 threads=2"}[:n%3],
		// Times of a microsecond and some, in full precision.
		Seconds:        1e-6 * (1 + rng.Float64()),
		DefaultSeconds: 3e-6,
		Speedup:        [3]float64{1.5, 1.4, 1.6},
		Regret:         rng.Float64(),
		Untimed:        n%7 == 0,
		Provisional:    n%5 == 0,
		// The origin, which records share.
		Safe: map[string]string{"go": "go1.26", "os": "linux/amd64"},
		By:   "bench/lookup",
		When: time.Unix(1.7e9+int64(n), 0).UTC(),
	}
	if n%20 == 3 { // longer than a slot
		r.Plan += strings.Repeat(" producer=4", 20)
	}
	r.Fusion = sha256.Sum256([]byte(r.Canonical))
	if n%50 == 49 {
		r.Device = "cpu:other"
	}
	r.Trials = []cache.Trial{trial(r.Plan, 1, rng), trial(r.Default, 2, rng)}
	return r
}

// trial is a plan of about some microseconds, with samples of one race.
func trial(plan string, micros float64, rng *rand.Rand) cache.Trial {
	t := cache.Trial{Plan: plan, Predicted: 1e-6}
	for block := range 8 {
		seconds := 1e-6 * (micros + rng.Float64())
		t.Add(seconds, 0, block)
	}
	return t
}

// canonical is a text with the numbers of arrays where HLO has them.
func canonical(kind, rows, columns, n int) string {
	return fmt.Sprintf(`fusion {
  %%v0 = f32[%d,%d]{1,0} parameter(0)
  %%v1 = f32[%d]{0} parameter(1)
  %%v2 = f32[%d,%d]{1,0} broadcast(%%v1), dimensions={%d}
  ROOT %%v3 = f32[%d,%d]{1,0} add(%%v0, %%v2), of={[0:%d]}
}
`, rows, columns, columns, rows, columns, kind, rows, columns, n)
}

// importedAtOnce is how many records one transaction takes.
const importedAtOnce = 100_000

// fill imports n records in random order, some at a time, and returns the seconds of
// each import.
func fill(db *cache.DB, n int) (took []float64, err error) {
	order := shuffled(n)
	for part := range slices.Chunk(order, importedAtOnce) {
		lines, err := linesOf(part)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		_, _, err = db.Import(bytes.NewReader(lines), nil)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	return took, nil
}

// shuffled are the numbers below n in an order that is random and always the same.
func shuffled(n int) []int {
	return rand.New(rand.NewPCG(1, 2)).Perm(n)
}

// linesOf is the text of records as cache export writes it, from the numbers of the
// records.
func linesOf(numbers []int) ([]byte, error) {
	var lines bytes.Buffer
	for _, k := range numbers {
		r := recordOf(k)
		line, err := r.ExportLine()
		if err != nil {
			return nil, err
		}
		lines.Write(line)
	}
	return lines.Bytes(), nil
}

// keysOf are the keys of n records in random order, of the device that is asked for.
func keysOf(n int) []cache.Key {
	var all []cache.Key
	for _, k := range shuffled(n) {
		r := recordOf(k)
		if r.Device == device {
			all = append(all, r.Key)
		}
	}
	return all
}

// writePrints writes the fingerprints of keys, a line each.
func writePrints(path string, keys []cache.Key) error {
	var b bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&b, "%x\n", k.Fusion[:])
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// answer writes what a snapshot says of keys, a line each, as testdata/reader.c of
// libtilewright does: the two are compared byte by byte. Numbers have 17 digits, which
// are all of a float64.
func answer(w io.Writer, s *cache.Snapshot, keys []cache.Key) error {
	var hit cache.Hit
	for k := range keys {
		found, err := s.Get(&keys[k], &hit)
		if err != nil {
			return err
		}
		if !found {
			fmt.Fprintln(w, "nothing is stored")
			continue
		}
		fmt.Fprintf(w, "%s|%s|%s|", hit.Plan, hit.Default, hit.Dims)
		fmt.Fprintf(w, "%.17g|%.17g|", hit.Seconds, hit.DefaultSeconds)
		for _, x := range hit.Speedup[:2] {
			fmt.Fprintf(w, "%.17g ", x)
		}
		fmt.Fprintf(w, "%.17g|%.17g|%d|", hit.Speedup[2], hit.Regret, hit.Unix)
		fmt.Fprint(w, digit(hit.Checked), digit(hit.Untimed), digit(hit.Provisional))
		fmt.Fprintf(w, "|%s|%s", hit.Safe, hit.By)
		for _, tie := range hit.Ties() {
			fmt.Fprintf(w, "|%s", tie)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// digit is 1 for true.
func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
