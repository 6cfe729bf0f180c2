// Package origin reads where an instruction of HLO comes from: the attribute
// metadata={op_name="…" source_file="…" source_line=…}, which names the operation of
// the framework that the instruction was made of and a line of the user's program.
//
// Since 2025 XLA prints that line as a number, stack_frame_id=2, and what it stands
// for in four tables in front of the computations:
//
//	FileNames
//	1 "model.py"
//	FunctionNames
//	1 "loss"
//	FileLocations
//	1 {file_name_id=1 function_name_id=1 line=6 end_line=6 column=11 end_column=20}
//	StackFrames
//	1 {file_location_id=1 parent_frame_id=1}
//
// The reader of HLO replaces the number by file and line, so that an instruction
// can be moved to another module.
//
// StableHLO says the same by locations, loc("tanh"("model.py":6:11)), which Locations
// reads.
package origin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Source says where an instruction comes from; its zero value, that nothing is
// known.
type Source struct {
	// Op is the operation of the framework, such as jit(step)/dot_general.
	Op string
	// File and Line are the line of the user's program; Line 0: unknown.
	File string
	Line int
}

// String is what is known, for people: jit(step)/dot_general at model.py:6.
func (s Source) String() string {
	place := s.File
	if s.Line > 0 {
		place = fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	if s.Op != "" && place != "" {
		return s.Op + " at " + place
	}
	return s.Op + place
}

// Append adds a source to a list, unless it is there or says nothing.
func Append(all []Source, s Source) []Source {
	if s == (Source{}) || slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// First is the first source of a list as text, "" of none; others are the texts of the
// rest.
func First(all []Source) (first string, others []string) {
	for k, s := range all {
		if k == 0 {
			first = s.String()
			continue
		}
		others = append(others, s.String())
	}
	return first, others
}

// Of is what the value of the attribute metadata says.
func Of(metadata string) Source {
	return Source{
		Op:   textField(metadata, "op_name"),
		File: textField(metadata, "source_file"),
		Line: int(intField(metadata, "source_line")),
	}
}

// Tables are the names of the tables in the order in which XLA prints them.
var Tables = []string{"FileNames", "FunctionNames", "FileLocations", "StackFrames"}

// Frames are the tables of a module. The zero value is empty.
type Frames struct {
	// files are the names of FileNames by their numbers.
	files map[int64]string
	// locations are the entries of FileLocations.
	locations map[int64]location
	// locationOf is the number of the location of each entry of StackFrames.
	locationOf map[int64]int64
}

// location is a line of a file of the table.
type location struct{ file, line int64 }

// Add sets entry n of a table to its text, "…" or {name=value …}.
func (f *Frames) Add(table string, n int64, entry string) {
	if f.files == nil {
		f.files = map[int64]string{}
		f.locations = map[int64]location{}
		f.locationOf = map[int64]int64{}
	}
	switch table {
	case "FileNames":
		f.files[n] = unquote(entry)
	case "FileLocations":
		f.locations[n] = location{
			intField(entry, "file_name_id"),
			intField(entry, "line"),
		}
	case "StackFrames":
		f.locationOf[n] = intField(entry, "file_location_id")
	}
}

// Resolve is metadata with the file and line that its stack_frame_id stands for in
// its place; as it is when the tables have none.
func (f *Frames) Resolve(metadata string) string {
	id := intField(metadata, "stack_frame_id")
	place, ok := f.locations[f.locationOf[id]]
	at := field(metadata, "stack_frame_id")
	if !ok || at < 0 {
		return metadata
	}
	number := strconv.FormatInt(id, 10)
	name := at - len("stack_frame_id=")
	return metadata[:name] +
		fmt.Sprintf("source_file=%q source_line=%d", f.files[place.file], place.line) +
		strings.TrimPrefix(metadata[at:], number)
}

// field is where the value of name begins in {name=value name=value}; −1 when it
// is not there.
func field(text, name string) int {
	quoted := false
	for k := 1; k < len(text); k++ {
		switch {
		case text[k] == '\\' && quoted:
			k++
		case text[k] == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte("{ ,\t\n", text[k-1]) >= 0 && strings.HasPrefix(text[k:], name+"="):
			return k + len(name) + 1
		}
	}
	return -1
}

// intField is the number of a field; 0 when there is none.
func intField(text, name string) int64 {
	at := field(text, name)
	if at < 0 {
		return 0
	}
	end := at
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseInt(text[at:end], 10, 64) // out of range: the nearest
	return n
}

// textField is the string of a field; "" when there is none.
func textField(text, name string) string {
	at := field(text, name)
	if at < 0 {
		return ""
	}
	return unquote(text[at:])
}

// unquote is the string that text begins with, without its quotes and escapes.
func unquote(text string) string {
	if !strings.HasPrefix(text, `"`) {
		return ""
	}
	var b strings.Builder
	for k := 1; k < len(text) && text[k] != '"'; k++ {
		if text[k] == '\\' && k+1 < len(text) {
			k++
		}
		b.WriteByte(text[k])
	}
	return b.String()
}
