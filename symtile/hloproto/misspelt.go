package hloproto

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// token is what the text form of a message is made of: comments, strings, numbers and
// words, and marks of one character. Blanks and commas do not say what is in what.
var token = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[-+.0-9][-+.\w]*|[A-Za-z_]\w*|[^\s,;]`)
})

// shortest is the length from which names of fields are compared: s1s is no misspelt
// s2s.
const shortest = 5

// A level is a message in whose braces a place is, and the field that was named last.
// The message is nil in those of fields that are not known.
type level struct {
	message, field protoreflect.MessageDescriptor
}

// misspelt refuses a message in text form, of right syntax, with a field that is not
// known and at most two edits away from one that is: what was meant would be missing
// without a word. Other fields that are not known are passed over: they say nothing of what is
// computed, or are newer than the schema.
func misspelt(file string, src []byte, m protoreflect.MessageDescriptor) error {
	levels := []level{{message: m}}
	tokens := token().FindAllIndex(src, -1)
	for k, at := range tokens {
		last := &levels[len(levels)-1]
		switch src[at[0]] {
		case '{', '<':
			levels = append(levels, level{message: last.field})
			continue
		case '}', '>':
			if len(levels) > 1 {
				levels = levels[:len(levels)-1]
			}
			continue
		}
		if k+1 == len(tokens) || last.message == nil ||
			bytes.IndexByte([]byte(":["), src[at[0]]) >= 0 ||
			bytes.IndexByte([]byte(":{<"), src[tokens[k+1][0]]) < 0 {
			continue // a value, or a mark before one
		}
		name, known := string(src[at[0]:at[1]]), last.message.Fields()
		last.field = nil
		if f := known.ByName(protoreflect.Name(name)); f != nil {
			last.field = f.Message()
		} else if near := nearest(name, known); near != "" {
			line := 1 + bytes.Count(src[:at[0]], []byte("\n"))
			return fmt.Errorf("%s:%d: %s has no field %q (did you mean %q?)", file, line, last.message.Name(), name, near)
		}
	}
	return nil
}

// nearest is the field at most two edits away from a misspelt one; "" where there is none.
func nearest(name string, known protoreflect.FieldDescriptors) string {
	if len(name) < shortest {
		return ""
	}
	var names []string
	for k := range known.Len() {
		if n := string(known.Get(k).Name()); len(n) >= shortest {
			names = append(names, n)
		}
	}
	return hlo.Nearest(name, names)
}
