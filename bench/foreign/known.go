package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

//go:embed known.txt
var knownText string

// An excuse is a finding that is known to be right about a foreign kernel, or, with the
// kind "refused", a part of PTX that is known not to be read.
type excuse struct {
	kind  sim.Kind
	text  string
	cases *regexp.Regexp
	cause string
}

// excuses reads known.txt.
func excuses(text string) (all []excuse, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		// Patterns may have bars, but not between blanks.
		f := strings.Split(line, " | ")
		if len(f) != 4 {
			return nil, fmt.Errorf("known.txt: %q: expected finding | text | cases | cause", line)
		}
		cases, err := regexp.Compile(f[2])
		if err != nil {
			return nil, fmt.Errorf("known.txt: %w", err)
		}
		all = append(all, excuse{sim.Kind(f[0]), f[1], cases, f[3]})
	}
	return all, nil
}

// refused reports whether a module is known not to be taken for this reason.
func refused(all []excuse, name, reason string) bool {
	for _, e := range all {
		if e.kind == "refused" && e.cases.MatchString(name) &&
			strings.Contains(reason, e.text) {
			return true
		}
	}
	return false
}

// unexplained are the findings of a case without those that are excused.
func unexplained(all []excuse, name string, found []sim.Finding) (left []sim.Finding) {
	for _, f := range found {
		// The text is part of what the finding says; the kind is its name.
		known := false
		for _, e := range all {
			known = known || e.kind == f.Kind &&
				strings.Contains(f.Detail, e.text) &&
				e.cases.MatchString(name)
		}
		if !known {
			left = append(left, f)
		}
	}
	return left
}
