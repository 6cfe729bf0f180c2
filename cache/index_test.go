package cache

import (
	"fmt"
	"testing"
)

// TestIndexFirstSeed: hashes of keys and of structures have an index with the first
// seed, however few they are and however little their texts differ.
func TestIndexFirstSeed(t *testing.T) {
	sets, failed := 0, 0
	for n := 1; n <= 64; n++ {
		for set := range 20 {
			keys, structures := make([]target, n), make([]target, n)
			for k := range keys {
				key := Key{Device: fmt.Sprint(set), Backend: fmt.Sprint(k)}
				keys[k] = target{key.hash(0), uint32(k)}
				hash := structureHash(&Fingerprint{byte(set)}, key.Backend)
				structures[k] = target{mix(hash), uint32(k)}
			}
			for _, targets := range [][]target{keys, structures} {
				sets++
				if !newFilling(n, 0, 1, 0).fill(targets) {
					failed++
				}
			}
		}
	}
	if failed*200 > sets {
		t.Errorf("%d of %d sets have no index with the first seed", failed, sets)
	}
}
