package origin

import (
	"fmt"
	"strconv"
	"strings"
)

// Locations are the definitions #loc3 = loc(…) of an MLIR text, which may stand
// behind what refers to them. The zero value is empty.
//
//	location = name | "unknown" | string [ "(" location ")" ]
//	         | string ":" line ":" column [ "to" [ line ] ":" column ]
//	         | "callsite" "(" location "at" location ")"
//	         | "fused" [ "<" … ">" ] "[" location { "," location } "]" .
type Locations struct {
	// defined are the texts by their names, with the #.
	defined map[string]string
	// known are the answers that were given, by their texts.
	known map[string]string
}

// Define reads a line #name = loc(…); lines that define something else are passed over.
func (l *Locations) Define(line string) {
	name, value, ok := strings.Cut(line, "=")
	value = strings.TrimSpace(value)
	if !ok || !strings.HasPrefix(value, "loc(") || !strings.HasSuffix(value, ")") {
		return
	}
	if l.defined == nil {
		l.defined = map[string]string{}
	}
	l.defined[strings.TrimSpace(name)] = value[len("loc(") : len(value)-1]
}

// Metadata is a location, the text between the parentheses of loc(…), as the
// attribute of HLO that says the same: the outermost name is the op_name, and the
// innermost callee the line of the program, as in XLA. "" when nothing is known.
func (l *Locations) Metadata(text string) string {
	if known, ok := l.known[text]; ok {
		return known
	}
	r := locationReader{locations: l, rest: text, steps: maxLocationSteps}
	r.read(true)
	metadata := r.found.Metadata()
	if l.known == nil {
		l.known = map[string]string{}
	}
	l.known[text] = metadata
	return metadata
}

// Metadata is the attribute of HLO that says the same, of which Of is the inverse; "" when
// nothing is known.
func (s Source) Metadata() string {
	var fields []string
	if s.Op != "" {
		fields = append(fields, "op_name="+quote(s.Op))
	}
	if s.File != "" {
		fields = append(fields, "source_file="+quote(s.File))
		fields = append(fields, fmt.Sprintf("source_line=%d", s.Line))
	}
	if fields == nil {
		return ""
	}
	return "{" + strings.Join(fields, " ") + "}"
}

// maxLocationSteps bounds the locations that one is made of: definitions may refer
// to each other in circles.
const maxLocationSteps = 100

// A locationReader finds the first name and the first line in a location.
type locationReader struct {
	locations *Locations
	rest      string
	steps     int
	found     Source
}

// read reads one location from the front of rest; a name counts where naming is
// set. What is not a location ends the search.
func (r *locationReader) read(naming bool) {
	r.rest = strings.TrimLeft(r.rest, " \t\r\n")
	if r.steps--; r.steps < 0 || r.rest == "" {
		r.rest = ""
		return
	}
	switch {
	case r.take("unknown"):
	case r.rest[0] == '"':
		r.quoted(naming)
	case r.rest[0] == '#':
		r.reference(naming)
	case r.take("callsite("):
		r.read(false)
	case r.take("fused"):
		if r.take("<") {
			_, r.rest, _ = strings.Cut(r.rest, ">")
		}
		for r.take("[") || r.take(",") {
			r.read(naming)
		}
	}
}

// take consumes text where it comes next.
func (r *locationReader) take(text string) bool {
	rest, ok := strings.CutPrefix(r.rest, text)
	if ok {
		r.rest = rest
	}
	return ok
}

// quoted reads "file":line:column, "name" or "name"(location).
func (r *locationReader) quoted(naming bool) {
	text := unquote(r.rest)
	r.rest = r.rest[quotedLength(r.rest):]
	switch {
	case r.take(":"):
		line, _ := strconv.Atoi(r.number())
		if r.found.File == "" {
			r.found.File, r.found.Line = text, line
		}
		r.skipRange()
	case naming && r.found.Op == "":
		r.found.Op = text
		fallthrough
	default:
		if r.take("(") {
			r.read(false)
			r.take(")")
		}
	}
}

// skipRange passes over what follows the line of a place: :column to line:column.
func (r *locationReader) skipRange() {
	for r.take(":") || r.take(" to ") {
		r.number()
	}
}

// number consumes digits.
func (r *locationReader) number() string {
	n := 0
	for n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9' {
		n++
	}
	digits := r.rest[:n]
	r.rest = r.rest[n:]
	return digits
}

// reference follows #loc3.
func (r *locationReader) reference(naming bool) {
	end := strings.IndexAny(r.rest, " ,()[]")
	if end < 0 {
		end = len(r.rest)
	}
	name := r.rest[:end]
	after := r.rest[end:]
	r.rest = r.locations.defined[name]
	r.read(naming)
	r.rest = after
}

// quotedLength is the bytes of the string in quotes that text begins with.
func quotedLength(text string) int {
	for k := 1; k < len(text); k++ {
		switch text[k] {
		case '\\':
			k++
		case '"':
			return k + 1
		}
	}
	return len(text)
}

// quote is a string of HLO: quotes, backslashes and line breaks are escaped.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(text) + `"`
}

// Under is metadata with the op_name of a caller in front of its own, as XLA writes
// it when it inlines a call; metadata as it is where the name has it already, or
// would be longer than maxName bytes.
func Under(caller, metadata string) string {
	own := textField(metadata, "op_name")
	if caller == "" || own == "" || strings.HasPrefix(own, caller) || len(caller)+len(own) > maxName {
		return metadata
	}
	at := field(metadata, "op_name")
	return metadata[:at] + quote(caller+"/"+own) + metadata[at+quotedLength(metadata[at:]):]
}

// maxName bounds the names that Under makes: calls may be nested deeply.
const maxName = 1 << 10
