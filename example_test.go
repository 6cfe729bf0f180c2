package tilewright_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner"
)

// A module is parsed and partitioned, its fusions are tuned on this machine, and a
// compiler finds the winners in a snapshot.
func Example() {
	dir, err := os.MkdirTemp("", "tilewright")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	module, err := hlo.Parse("scale.hlo", []byte(`
		x = f32[256,64] parameter(0)
		two = f32[] constant(2)
		twos = f32[256,64] broadcast(two), dimensions={}
		ROOT y = f32[256,64] multiply(x, twos)`))
	if err != nil {
		log.Fatal(err)
	}
	split, err := partition.Module(context.Background(), module, partition.Options{})
	if err != nil {
		log.Fatal(err)
	}
	module, unfused := split.Module, split.Outside
	fmt.Println(len(module.Fusions()), "fusions,", len(unfused), "instructions outside")

	db := cache.Open(filepath.Join(dir, "winners.db"))
	backend := cpu.New()
	t := &tuner.Tuner{
		Backend: backend,
		Cache:   db,
		Options: tuner.Options{Candidates: 2, Budget: 200 * time.Millisecond},
	}
	for _, fusion := range module.Fusions() {
		if _, err := t.Tune(context.Background(), fusion); err != nil {
			log.Fatal(err)
		}
	}
	path := filepath.Join(dir, "winners.snapshot")
	if _, err := db.Publish(path); err != nil {
		log.Fatal(err)
	}

	snapshot, err := tuner.OpenSnapshot(path)
	if err != nil {
		log.Fatal(err)
	}
	defer snapshot.Close()
	id := kernels.IdentityOf(backend)
	winner, found, err := snapshot.Lookup(module.Fusions()[0], id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("found:", found, "with", len(winner.Plan.Tiles), "tile sizes")

	// Output:
	// 1 fusions, 0 instructions outside
	// found: true with 2 tile sizes
}
