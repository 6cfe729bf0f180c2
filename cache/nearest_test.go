package cache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestStructureOf(t *testing.T) {
	dot := func(m, k int) string {
		return fmt.Sprintf("ENTRY %%c0 {\n  %%v0 = f32[%d,%d]{0,1} parameter(0)\n"+
			"  ROOT %%v1 = bf16[1,%d] dynamic-slice(%%v0), dynamic_slice_sizes={1,%d}, slice={[0:%d]}, padding=0_0x1_1\n}\n", m, k, k, k, m)
	}
	s := StructureOf(dot(128, 7))
	if !slices.Equal(s.Extents, []uint64{128, 7, 1, 7, 1, 7, 0, 128}) {
		t.Errorf("extents %v", s.Extents)
	}
	if s.Print != StructureOf(dot(9, 100)).Print {
		t.Error("other extents have another structure")
	}
	for _, text := range []string{"{1,0} parameter(0)", "parameter(1)", "0_0x1_2"} {
		old := map[string]string{"{1,0} parameter(0)": "{0,1} parameter(0)", "parameter(1)": "parameter(0)", "0_0x1_2": "0_0x1_1"}[text]
		if s.Print == StructureOf(replace(dot(128, 7), old, text)).Print {
			t.Errorf("%s has the structure of %s", text, old)
		}
	}
}

func replace(s, old, text string) string {
	for k := 0; k+len(old) <= len(s); k++ {
		if s[k:k+len(old)] == old {
			return s[:k] + text + s[k+len(old):]
		}
	}
	panic("not there: " + old)
}

// TestNearest compares with all records, one by one.
func TestNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := func() Record {
			r := record(rapid.IntRange(0, 1000).Draw(t, "n"))
			dims := rapid.SliceOfN(rapid.IntRange(1, 300), 1, 2).Draw(t, "dims")
			r.Canonical = fmt.Sprintf("f32%v", dims)
			r.Device = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "device")
			r.Codegen = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "codegen")
			r.Backend = rapid.SampledFrom([]string{"cpu", "gpu"}).Draw(t, "backend")
			return r
		}
		all := map[Key]Record{}
		var records []Record
		for range rapid.IntRange(0, kinExamined).Draw(t, "records") {
			if r := shape(); all[r.Key].Plan == "" {
				all[r.Key] = r
				records = append(records, r)
			}
		}
		s, err := newSnapshot(snapshotBytes(records))
		if err != nil {
			t.Fatal(err)
		}
		asked := shape()
		q := Question{
			Key: asked.Key, Structure: StructureOf(asked.Canonical),
			DeviceDistance: func(device []byte) float64 {
				if string(device) == "c" {
					return math.Inf(1)
				}
				return 0.5
			},
		}
		want := math.Inf(1)
		for k := range records {
			want = min(want, plainDistance(&q, &records[k]))
		}
		var hit Hit
		found, distance, err := s.Nearest(&q, &hit)
		if err != nil || found != !math.IsInf(want, 1) || found && math.Abs(distance-want) > 1e-7 {
			t.Fatalf("%v: found is %t, at %v, not %v, %v", asked.Key, found, distance, want, err)
		}
		if found && !slices.ContainsFunc(records, func(r Record) bool {
			return hit.is(&r.Key) && string(hit.Plan) == r.Plan && math.Abs(plainDistance(&q, &r)-want) < 1e-7
		}) {
			t.Fatalf("%v answers, which is not the nearest", hit)
		}
	})
}

// TestNearestStored: a database compares with all records that it has now, whoever stored
// or removed them.
func TestNearestStored(t *testing.T) {
	db := Open(filepath.Join(t.TempDir(), "t.db"))
	writers := []*DB{db, Open(db.Path())}
	stored := map[Key]Record{}
	random := rand.New(rand.NewPCG(1, 2))
	shape := func() Record {
		r := record(random.IntN(40))
		rows := r.Fusion[0] % 7 * 9
		columns := 1 + random.IntN(100)
		r.Canonical = fmt.Sprintf("f32[%d,%d]", rows, columns)
		r.Device = []string{"a", "b"}[random.IntN(2)]
		return r
	}
	for range 200 {
		r := shape()
		w := writers[random.IntN(2)]
		var err error
		if random.IntN(4) > 0 {
			stored[r.Key] = r
			err = w.Replace(r)
		} else {
			delete(stored, r.Key)
			_, err = w.Delete(r.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
		demandNearest(t, db, stored, shape())
		demandNearest(t, db, stored, shape()) // of what was read
	}
}

// demandNearest demands the nearest of all records that are stored.
func demandNearest(
	t *testing.T, db *DB, stored map[Key]Record, asked Record,
) {
	t.Helper()
	q := Question{
		Key:            asked.Key,
		Structure:      StructureOf(asked.Canonical),
		DeviceDistance: func([]byte) float64 { return 0.5 },
	}
	want := math.Inf(1)
	for _, r := range stored {
		want = min(want, plainDistance(&q, &r))
	}
	r, found, distance, err := db.Nearest(&q)
	if err != nil || found == math.IsInf(want, 1) {
		t.Fatalf("found is %t, %v", found, err)
	}
	if !found {
		return
	}
	plain := plainDistance(&q, &r)
	if math.Abs(distance-want) > 1e-6 ||
		math.Abs(plain-want) > 1e-6 {
		t.Fatalf("%v at %v, not %v", r.Key, distance, want)
	}
	if r.Plan != stored[r.Key].Plan {
		t.Fatalf("%v: plan %s", r.Key, r.Plan)
	}
}

// plainDistance is the distance of a record by its definition.
func plainDistance(q *Question, r *Record) float64 {
	s := StructureOf(r.Canonical)
	if s.Print != q.Print || r.Backend != q.Backend {
		return math.Inf(1)
	}
	sum := 0.0
	for k, n := range s.Extents {
		sum += math.Abs(math.Log2(float64(max(1, n))) - math.Log2(float64(max(1, q.Extents[k]))))
	}
	sum /= float64(max(1, len(s.Extents)))
	if r.Codegen != q.Codegen {
		sum += 0.25
	}
	if r.Device != q.Device {
		sum += q.DeviceDistance([]byte(r.Device))
	}
	return sum
}
