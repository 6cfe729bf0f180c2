package tuner_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

func parse(text string) *hlo.Computation {
	m, err := hlo.Parse("example.hlo", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	return m.Entry
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "tuner")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// Tune measures a fusion once; afterwards it answers from the database. The events
// tell what happens.
func ExampleTuner_Tune() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	fusion := parse(`
		x = f32[512,64] parameter(0)
		ROOT y = f32[512,64] negate(x)`)

	t := &tuner.Tuner{
		Backend: cpu.New(),
		Cache:   cache.Open(filepath.Join(dir, "winners.db")),
		Options: tuner.Options{
			Candidates: 2,
			Budget:     200 * time.Millisecond,
			Observe: func(e tuner.Event) {
				switch e := e.(type) {
				case tuner.Started:
					fmt.Println("candidates:", e.Candidates)
				case tuner.Found:
					fmt.Println("the winner of", e.Fusion, "is known")
				}
			},
		},
	}
	for range 2 {
		r, err := t.Tune(context.Background(), fusion)
		if err != nil {
			log.Fatal(err)
		}
		plan, err := r.Plan()
		fmt.Println("known:", r.Hit, "tile sizes:", len(plan.Tiles), "checked:", r.Record.Checked, err)
	}
	// Output:
	// candidates: 2
	// known: false tile sizes: 2 checked: true <nil>
	// the winner of main is known
	// known: true tile sizes: 2 checked: true <nil>
}

// The error of a fusion that cannot be tiled names the instruction.
func ExampleTuner_Tune_untileable() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	t := &tuner.Tuner{Backend: cpu.New(), Cache: cache.Open(filepath.Join(dir, "winners.db"))}
	_, err := t.Tune(context.Background(), parse(`
		x = f32[16] parameter(0)
		ROOT y = f32[16] sort(x), dimensions={0}`))
	var no *symtile.Untileable
	switch {
	case errors.As(err, &no):
		fmt.Println("keep", no.Instr.Name, "as it is:", no.Reason)
	case errors.Is(err, tuner.ErrNothingRan):
		fmt.Println("not even the default plan ran")
	}
	// Output:
	// keep y as it is: every result depends on every element
}

// A compiler asks for the winner of a fusion on a device that it does not have,
// by an identity that was written down.
func ExampleLookup() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	fusion := parse(`
		x = f32[512,64] parameter(0)
		ROOT y = f32[512,64] negate(x)`)
	id, err := kernels.ParseIdentity([]byte(`{
		"device": "cuda:H100", "backend": "cuda", "revision": "ptx7", "safe": {"driver": "575"}}`))
	if err != nil {
		log.Fatal(err)
	}

	db := cache.Open(filepath.Join(dir, "winners.db"))
	_, err = db.Put(cache.Record{ // usually by Tune, on a machine with the device
		Key:     tuner.Key(fusion, id),
		Plan:    "64,64 warps=4",
		Seconds: 2e-6,
		Safe:    map[string]string{"driver": "570"},
	})
	if err != nil {
		log.Fatal(err)
	}

	r, found, err := tuner.Lookup(db, fusion, id)
	fmt.Println(found, r.Record.Plan, err)
	fmt.Println(r.SafeGap)
	// Output:
	// true 64,64 warps=4 <nil>
	// [driver: measured with 570, now 575]
}

// A snapshot answers from a mapped file. A caller that keeps the key of a fusion
// asks without any allocation.
func ExampleSnapshot() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	fusion := parse(`
		x = f32[512,64] parameter(0)
		ROOT y = f32[512,64] negate(x)`)
	id := kernels.Identity{Device: "cuda:H100", Backend: "cuda", Revision: "ptx7"}
	db := cache.Open(filepath.Join(dir, "winners.db"))
	key := tuner.Key(fusion, id)
	if _, err := db.Put(cache.Record{Key: key, Plan: "64,64 warps=4", Seconds: 2e-6}); err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "winners.snapshot")
	if _, err := db.Publish(path); err != nil {
		log.Fatal(err)
	}

	s, err := tuner.OpenSnapshot(path)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	winner, found, err := s.Lookup(fusion, id)
	fmt.Println(found, winner.Plan.Tiles, winner.Plan.Knob("warps", 0), err)
	var hit cache.Hit
	found, err = s.Get(&key, &hit)
	fmt.Println(found, string(hit.Plan), err)
	// Output:
	// true [64 64] 4 <nil>
	// true 64,64 warps=4 <nil>
}
