package cache

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// Merge puts every record of another database into this one by the rule of Put,
// and joins the trials of unfinished races. What is damaged in the other is left
// out, with a *LeftOutError. It returns how many of the other's records were kept,
// and how many sound ones there were.
func (db *DB) Merge(from *DB) (kept, total int, err error) {
	all, entries, err := from.entries()
	if err != nil {
		return 0, 0, err
	}
	if len(entries)+len(all.races) == 0 {
		return 0, 0, leftOut(all.damaged)
	}
	err = db.updateMany(entries, func(tx *bbolt.Tx) error {
		if kept, err = putAll(tx, entries); err != nil {
			return err
		}
		for _, u := range all.races {
			if err := putTrials(tx, u.key, u.trials); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return kept, len(entries), leftOut(all.damaged)
}

// Export writes records as JSON lines, in key order: the same records give the
// same bytes. The last member of a line is a digest of those before it, by which Import
// sees that nobody has edited it. All that are sound are written; the others are a
// *LeftOutError.
func (db *DB) Export(w io.Writer) (n int, err error) {
	all, err := db.contents()
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(w)
	for k := range all.records {
		line, err := all.records[k].ExportLine()
		if err != nil {
			return n, err
		}
		_, _ = out.Write(line) // Flush has the error
		n++
	}
	if err := out.Flush(); err != nil {
		return n, err
	}
	return n, leftOut(all.damagedRecords())
}

// digestFormat ends a line of an export: the CRC-32C of what stands before it.
const (
	digestFormat = `,"digest":"%08x"}`
	digestBytes  = len(`,"digest":"01234567"}`)
)

// ExportLine is the line of a record in an export.
func (r *Record) ExportLine() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	text = text[:len(text)-1]
	sum := crc32.Checksum(text, castagnoli())
	return fmt.Appendf(text, digestFormat+"\n", sum), nil
}

// unedited is the text of a record in a line that is as ExportLine made it. It is a part
// of the line, which is changed.
func unedited(line []byte) (text []byte, ok bool) {
	at := len(line) - digestBytes
	if at < 0 {
		return nil, false
	}
	sum := crc32.Checksum(line[:at], castagnoli())
	end := fmt.Appendf(nil, digestFormat, sum)
	if !bytes.Equal(line[at:], end) {
		return nil, false
	}
	line[at] = '}'
	return line[:at+1], true
}

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
