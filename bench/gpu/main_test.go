package main

import "testing"

// known.txt is read, and its shares are those of this command.
func TestKnown(t *testing.T) {
	all, err := shortfalls(knownText)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"registers": true, "blocks": true, "shared": true}
	for _, p := range promises() {
		names[p] = true
	}
	for _, s := range all {
		if !names[s.promise] || s.cause == "" {
			t.Errorf("%s: %q", s.promise, s.cause)
		}
	}
	f := finding{Promise: "registers", Kernel: "all", Value: -85}
	if excuse(all, f) == nil {
		t.Error("a share above the one that is tolerated is broken")
	}
	if f.Value = -20; excuse(all, f) != nil {
		t.Error("a share below the one that is tolerated is excused")
	}
}
