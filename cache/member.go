package cache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// repeatedMember is an error for a JSON object, at any depth, that has two members of one
// name: readers disagree which of them counts. The members of the record itself are read
// whatever the case of their names, and those of objects in it as they are written. The
// text is one valid value.
func repeatedMember(text []byte) error {
	var names [][]byte // of the objects that are open
	var begins []int   // of each of them in names
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '{':
			begins = append(begins, len(names))
		case '}':
			last := len(begins) - 1
			if err := repeated(names[begins[last]:]); err != nil {
				return err
			}
			names, begins = names[:begins[last]], begins[:last]
		case '"':
			value := jsonString(text[at:])
			at += len(value) - 1
			if rest := bytes.TrimLeft(text[at+1:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
				names = append(names, memberName(value, len(begins) == 1))
			}
		}
	}
	return nil
}

// jsonString is the string that a text begins with.
func jsonString(text []byte) []byte {
	for n := 1; n < len(text); n++ {
		switch text[n] {
		case '\\':
			n++
		case '"':
			return text[:n+1]
		}
	}
	return text
}

// memberName is the name that a string is, in small letters where folded.
func memberName(value []byte, folded bool) []byte {
	name := value[1 : len(value)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var text string
		if json.Unmarshal(value, &text) == nil {
			name = []byte(text)
		}
	}
	if folded {
		return bytes.ToLower(name)
	}
	return name
}

// repeated is an error where two names are the same. It sorts them.
func repeated(names [][]byte) error {
	slices.SortFunc(names, bytes.Compare)
	for k := 1; k < len(names); k++ {
		if bytes.Equal(names[k-1], names[k]) {
			return fmt.Errorf("the member %.60q is there twice", names[k])
		}
	}
	return nil
}
