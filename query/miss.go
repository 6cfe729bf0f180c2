package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Miss is a line of a queue of misses, which lookup -queue appends: a fusion that has
// no winner.
type Miss struct {
	// Fusion is its name.
	Fusion string `json:"fusion"`
	// Metadata says where it comes from, as the attribute of HLO does: {op_name="…"
	// source_file="…" source_line=…}; "" if unknown.
	Metadata string `json:"metadata,omitempty"`
	// Print is the fingerprint of the canonical text, hexadecimal.
	Print string `json:"fingerprint"`
	// Device it was asked for, by its stable name.
	Device    string    `json:"device"`
	Canonical string    `json:"canonical"`
	When      time.Time `json:"when"`
}

// isQueue reports whether a text is JSON lines, which modules are not.
func isQueue(src []byte) bool { return bytes.HasPrefix(src, []byte(`{"`)) }

// queued are the fusions of a queue of misses, each a module of its own, once. Those
// that can be read come with the errors of the other lines.
func queued(name string, src []byte, number int) (all []Part, err error) {
	seen := map[string]bool{}
	var failed []error
	lines := bytes.Split(src, []byte("\n"))
	for n, line := range lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		miss, err := readMiss(line)
		if err == nil && seen[miss.Print] {
			continue
		}
		var m *hlo.Module
		if err == nil {
			seen[miss.Print] = true
			m, err = hlo.Parse("canonical", []byte(miss.Canonical))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s:%d: %w", name, n+1, err))
			continue
		}
		m.Entry.Name = miss.Fusion
		if miss.Metadata != "" {
			root := &m.Entry.Root.Attrs
			root.Other = append(root.Other, hlo.Attr{Name: "metadata", Value: miss.Metadata})
		}
		all = append(all, Part{m, len(all) + 1, 1})
	}
	if number > len(all) {
		return nil, fmt.Errorf("%s has %d fusions; there is no %d", name, len(all), number)
	}
	if number > 0 {
		return all[number-1 : number], nil
	}
	return all, joinFew(name, failed, len(lines), "lines")
}

// readMiss reads a line of a queue.
func readMiss(line []byte) (miss Miss, err error) {
	if err := json.Unmarshal(line, &miss); err != nil {
		return miss, fmt.Errorf("no line of a queue of misses: %w", err)
	}
	if fmt.Sprintf("%x", sha256.Sum256([]byte(miss.Canonical))) != miss.Print {
		return miss, errors.New("no line of a queue of misses: the fingerprint is not that of the canonical text")
	}
	return miss, nil
}
