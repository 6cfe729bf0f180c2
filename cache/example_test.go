package cache_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tilewright/tilewright/cache"
)

// record is a winner of some fusion that was measured under a driver.
func record(driver string) cache.Record {
	return cache.Record{
		Key: cache.Key{
			Fusion:  sha256.Sum256([]byte("the canonical text of a fusion")),
			Device:  "cuda:H100",
			Backend: "cuda",
			Codegen: "ptx7",
		},
		Plan:    "64,128 warps=4",
		Seconds: 12e-6,
		Safe:    map[string]string{"driver": driver},
		Checked: true,
	}
}

// A record is stored, and found by its key.
func ExampleDB() {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db := cache.Open(filepath.Join(dir, "winners.db"))
	r := record("570")
	kept, err := db.Put(r)
	if err != nil {
		log.Fatal(err)
	}
	stored, found, err := db.Get(r.Key)
	fmt.Println(kept, stored.Plan, found, err)

	r.Key.Codegen = "ptx8" // another revision of the code generator
	_, found, err = db.Get(r.Key)
	fmt.Println(found, err)
	// Output:
	// true 64,128 warps=4 true <nil>
	// false <nil>
}

// A snapshot answers in a compiler's hot path. What differs in the safe context is
// the caller's to judge.
func ExampleSnapshot() {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db := cache.Open(filepath.Join(dir, "winners.db"))
	r := record("570")
	if _, err := db.Put(r); err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "winners.snapshot")
	n, err := db.Publish(path)
	if err != nil {
		log.Fatal(err)
	}
	snapshot, err := cache.OpenSnapshot(path)
	if err != nil {
		log.Fatal(err)
	}
	defer snapshot.Close()

	var hit cache.Hit // one for each goroutine, used again and again
	found, err := snapshot.Get(&r.Key, &hit)
	fmt.Println(n, found, string(hit.Plan), err)
	fmt.Println(hit.SafeDiff(map[string]string{"driver": "575"}))
	// Output:
	// 1 true 64,128 warps=4 <nil>
	// [driver: measured with 570, now 575]
}

// errors.Is tells what is wrong with a file.
func ExampleErrForeign() {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	_, _, err = cache.Open(dir).Get(record("570").Key)
	fmt.Println(errors.Is(err, cache.ErrForeign), errors.Is(err, cache.ErrBusy))
	// Output:
	// true false
}
