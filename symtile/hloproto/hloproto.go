// Package hloproto reads HLO from the protocol messages in which XLA stores it:
// HloModuleProto, HloProto and HloSnapshot, in binary form (.pb) or as text
// (.pbtxt). A message becomes HLO text, so that there is one reader that checks
// shapes and reports errors.
//
// Descriptors are written by hand (schema.txt): XLA publishes none for Go, and a
// module needs a tenth of them. Fields that are not known are passed over, as the
// format asks for, but for misspelt ones in a text; so are those that say nothing about what a module computes, such as
// shardings, schedules and buffer assignments. What an instruction is made of
// (metadata), backend_config and frontend_attributes are kept.
//
// A message is made of what hlo.proto calls computations and instructions. An
// instruction has a field for every attribute that some operation has, names its
// operands and the computations that it calls by numbers, and has its value in place
// if it is a constant. The table attrs says which field is which attribute of HLO text.
//
// A file does not say which message it holds. The three differ in their first field,
// and the right one has computations.
//
// The oracle is XLA: the tests have modules as messages and as the text that the same
// version printed, and both have to be one module, computation by computation.
package hloproto

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// textStart is how the text form begins: a field of one of the messages, after
// comments. HLO text begins with a word and a blank or =, MLIR with a word or a symbol.
var textStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\s|#[^\n]*\n)*(?:name|hlo|hlo_module|computations|entry_computation_name|id)\s*[:{]`)
})

// Detected reports whether src is a message rather than HLO or MLIR text: bytes that
// no text has, or a field at its start.
func Detected(src []byte) bool {
	return !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 ||
		bytes.IndexByte(src, 1) >= 0 || textStart().Match(src)
}

// bytecode is how MLIR bytecode begins.
var bytecode = []byte("ML\xefR")

// A form of MLIR bytecode has marks, words of which one is in it: the name of its producer,
// behind the number of the version, or those of dialects, which are strings that a zero
// ends. A printer makes text of it.
type form struct {
	marks          []string
	about, printer string
}

// forms are the forms of bytecode, the first that a file has is its own. A portable artifact
// of StableHLO is in the dialect VHLO, of which stablehlo-opt makes text that is not
// StableHLO (openxla.org/stablehlo/vhlo); serializers name themselves as its producer.
var forms = []form{
	{[]string{"StableHLO_v", "vhlo\x00"}, "a portable artifact of StableHLO (MLIR bytecode)", "stablehlo-translate --deserialize"},
	{[]string{"stablehlo\x00", "chlo\x00"}, "StableHLO as MLIR bytecode", "stablehlo-opt"},
	{[]string{""}, "MLIR bytecode", "mlir-opt"},
}

// bytecodeForm is the form of bytecode.
func bytecodeForm(src []byte) form {
	for _, f := range forms {
		for _, mark := range f.marks {
			if bytes.Contains(src, []byte(mark)) {
				return f
			}
		}
	}
	return form{}
}

// Text is the HLO text of the module in a message. The error says what src is
// instead, and names file.
func Text(file string, src []byte) ([]byte, error) {
	if bytes.HasPrefix(src, bytecode) {
		form := bytecodeForm(src)
		from := file
		if file == "-" { // the standard input, of which only the beginning may be here
			from = "FILE"
		}
		return nil, fmt.Errorf("%s is %s, which is not read; `%s %s -o %[4]s.mlir` makes text of it", file, form.about, form.printer, from)
	}
	module, err := read(file, src)
	if err != nil {
		return nil, err
	}
	w := &writer{
		names:        map[int64]string{},
		computations: map[int64]string{},
	}
	if err := w.module(module); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return w.out.Bytes(), nil
}

// containers are the messages that may be in a file, each with the fields that lead to
// the module.
var containers = []struct {
	message protoreflect.Name
	path    []string
}{
	{"HloModuleProto", nil},
	{"HloProto", []string{"hlo_module"}},
	{"HloSnapshot", []string{"hlo", "hlo_module"}},
}

// read finds the module in a message whose type the file does not say: it is the
// one that has computations. HloUnoptimizedSnapshot has its module where HloProto has
// it.
func read(file string, src []byte) (message, error) {
	isText := textStart().Match(src)
	// failed is why the last of the containers was not read.
	var failed error
	for _, c := range containers {
		m := dynamicpb.NewMessage(messages().ByName(c.message))
		var err error
		if isText {
			err = prototext.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(src, m)
		} else {
			err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(src, m)
		}
		if err != nil {
			failed = err
			continue
		}
		found := message{m}
		for _, field := range c.path {
			found = found.message(field)
		}
		if len(found.list("computations")) > 0 {
			if isText {
				return found, misspelt(file, src, m.Descriptor())
			}
			return found, nil
		}
	}
	if failed != nil {
		return message{}, fmt.Errorf("%s is neither text nor an HloModuleProto, HloProto or HloSnapshot: %w", file, failed)
	}
	return message{}, fmt.Errorf("%s is neither text nor an HloModuleProto, HloProto or HloSnapshot with computations", file)
}
