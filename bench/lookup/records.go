package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
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
// its own, its winner, and a race of two plans.
func recordOf(n int) cache.Record {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	rows, columns := 1+rng.IntN(1<<14), 1+rng.IntN(1<<14)
	r := cache.Record{
		Key:       cache.Key{Device: device, Backend: backend, Codegen: codegen},
		Name:      fmt.Sprintf("fusion.%d", n),
		Canonical: canonical(n%16, rows, columns, n),
		Safe:      map[string]string{"go": "go1.26", "os": "linux/amd64"},
		Plan:      fmt.Sprintf("%d,%d threads=2", 1+rows/2, 1+columns/3),
		Default:   "16,16",
		Seconds:   1e-6 * (1 + rng.Float64()), DefaultSeconds: 3e-6,
		Speedup: [3]float64{1.5, 1.4, 1.6}, Regret: rng.Float64(),
		Ties: []string{"8,8", "4,4 threads=2"}[:n%3],
		When: time.Unix(1.7e9+int64(n), 0).UTC(), By: "bench/lookup",
		Untimed: n%7 == 0, Provisional: n%5 == 0,
	}
	r.Fusion = sha256.Sum256([]byte(r.Canonical))
	if n%50 == 49 {
		r.Device = "cpu:other"
	}
	for k, plan := range []string{r.Plan, r.Default} {
		t := cache.Trial{Plan: plan, Predicted: 1e-6}
		for b := range 8 {
			t.Add(1e-6*(1+float64(k)+rng.Float64()), 0, b)
		}
		r.Trials = append(r.Trials, t)
	}
	return r
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
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for part := range slices.Chunk(order, importedAtOnce) {
		var lines bytes.Buffer
		for _, k := range part {
			line, err := json.Marshal(recordOf(k))
			if err != nil {
				return nil, err
			}
			lines.Write(append(line, '\n'))
		}
		begin := time.Now()
		if _, _, err := db.Import(&lines, nil); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	return took, nil
}

// keysOf are the keys of n records in random order, of the device that is asked for.
func keysOf(n int) []cache.Key {
	var all []cache.Key
	for _, k := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
		if r := recordOf(k); r.Device == device {
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

// answer writes what a snapshot says of keys, as testdata/reader.c of libtilewright
// does.
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
		fmt.Fprintf(w, "%s|%s|%.17g|%.17g|%.17g %.17g %.17g|%.17g|%d|%d%d%d|%s|%s",
			hit.Plan, hit.Default, hit.Seconds, hit.DefaultSeconds,
			hit.Speedup[0], hit.Speedup[1], hit.Speedup[2], hit.Regret, hit.Unix,
			digit(hit.Checked), digit(hit.Untimed), digit(hit.Provisional), hit.Safe, hit.By)
		for _, tie := range hit.Ties() {
			fmt.Fprintf(w, "|%s", tie)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// digit is 1 for true.
func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}
