// Package line fits text for people into lines of a width, counted in characters.
package line

import (
	"strings"
	"unicode/utf8"
)

// Width is that of a terminal that says nothing else, and of output to a file.
const Width = 80

// indent begins every line of a text but the first.
const indent = "  "

// Shorten replaces the middle of a name by … so that it has at most width characters,
// of which there is one at least.
func Shorten(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= max(width, 1) {
		return name
	}
	kept := max(width, 1) - 1
	return string(runes[:kept-kept/2]) + "…" + string(runes[len(runes)-kept/2:])
}

// Tail replaces the beginning of a name by … so that it has at most width characters, of
// which there is one at least: names of operations of a framework end in what they do.
func Tail(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= max(width, 1) {
		return name
	}
	return "…" + string(runes[len(runes)-max(width, 1)+1:])
}

// Join packs clauses into lines of at most width characters, with "; " between them and
// later lines indented. A clause that is longer than a line is broken at its spaces; a
// word that is longer, such as a path, stays whole on a line of its own.
func Join(width int, clauses ...string) string {
	var lines []string
	for _, clause := range clauses {
		if clause == "" {
			continue
		}
		if n := len(lines); n > 0 {
			joined := lines[n-1] + "; " + clause
			if utf8.RuneCountInString(joined) < width {
				lines[n-1] = joined
				continue
			}
			lines[n-1] += ";"
			clause = indent + clause
		}
		lines = append(lines, broken(clause, width-1)...) // 1: a semicolon may follow
	}
	return strings.Join(lines, "\n")
}

// Wrap breaks a text of one line at its spaces, as Join does one clause.
func Wrap(width int, text string) string {
	return strings.Join(broken(text, width), "\n")
}

// broken breaks a text at its spaces; its own indentation stays.
func broken(text string, width int) (lines []string) {
	words := strings.Split(text, " ")
	line := ""
	for k, word := range words {
		if k == 0 {
			line = word
			continue
		}
		if longer := line + " " + word; utf8.RuneCountInString(longer) <= width || strings.TrimSpace(line) == "" {
			line = longer
			continue
		}
		lines = append(lines, line)
		line = indent + word
	}
	return append(lines, line)
}
