package hloproto

import (
	_ "embed" // schema.txt
	"fmt"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// schema is the part of XLA's hlo.proto and xla_data.proto that HLO text is made of:
// messages with their fields "name number type", * before the type of a repeated
// one, and enumerations. What is not listed is skipped when it is read.
//
//go:embed schema.txt
var schema string

// scalarTypes are the types of fields that are neither messages nor enumerations.
var scalarTypes = map[string]protoreflect.Kind{
	"string": protoreflect.StringKind,
	"bytes":  protoreflect.BytesKind,
	"bool":   protoreflect.BoolKind,
	"int32":  protoreflect.Int32Kind,
	"int64":  protoreflect.Int64Kind,
	"uint32": protoreflect.Uint32Kind,
	"uint64": protoreflect.Uint64Kind,
	"float":  protoreflect.FloatKind,
	"double": protoreflect.DoubleKind,
}

// Numbers of the fields of descriptors (descriptor.proto): of a file, a message, a field, an
// enumeration and its values. All have their name first.
const (
	nameField = 1

	filePackage, fileMessage, fileSyntax = 2, 4, 12

	messageField, messageEnum = 2, 4

	fieldNumber, fieldLabel, fieldType, fieldTypeName = 3, 4, 5, 6

	enumValue, valueNumber = 2, 2
)

// A descriptor is one of descriptor.proto on the wire. It is written here, because the package
// that has these messages takes longer to start than most commands take for their work.
type descriptor []byte

// describe begins with a name.
func describe(name string) descriptor { return descriptor(nil).bytes(nameField, name) }

// bytes appends a field of text, or of another descriptor.
func (d descriptor) bytes(field protowire.Number, value string) descriptor {
	return protowire.AppendString(protowire.AppendTag(d, field, protowire.BytesType), value)
}

// varint appends a field of a number.
func (d descriptor) varint(field protowire.Number, value uint64) descriptor {
	return protowire.AppendVarint(protowire.AppendTag(d, field, protowire.VarintType), value)
}

// messages are the descriptors of the schema. They are made when the first message is
// read, and a mistake in the schema panics, which every test of the package would show.
var messages = sync.OnceValue(func() protoreflect.MessageDescriptors {
	file := describe("hlo.proto").bytes(filePackage, "xla").bytes(fileSyntax, "proto3")
	// enums are the types that are enumerations, which come last in the schema.
	enums := map[string]bool{}
	for line := range strings.Lines(schema) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, body, _ := strings.Cut(rest, ": ")
		if kind == "enum" {
			enums[name] = true
			file = file.bytes(fileMessage, string(enumOf(name, strings.Fields(body))))
		}
	}
	for line := range strings.Lines(schema) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, body, _ := strings.Cut(rest, ": ")
		if kind == "message" {
			fields := strings.Split(body, "; ")
			file = file.bytes(fileMessage, string(messageOf(name, fields, enums)))
		}
	}
	built := protoimpl.DescBuilder{
		RawDescriptor: file,
		FileRegistry:  new(protoregistry.Files),
	}.Build()
	return built.File.Messages()
})

// enumOf is the descriptor of an enumeration, whose values count from 0, in a message
// of its own: the values of all enumerations of a file share a scope otherwise. The
// names are those of XLA, which the text form has.
func enumOf(name string, values []string) descriptor {
	e := describe(name)
	for k, v := range values {
		value := describe(v).varint(valueNumber, uint64(k))
		e = e.bytes(enumValue, string(value))
	}
	return describe(name+"Scope").bytes(messageEnum, string(e))
}

// messageOf is the descriptor of a message with the fields "name number type"; a type
// that is neither a scalar nor an enumeration is another message of the schema.
func messageOf(name string, fields []string, enums map[string]bool) descriptor {
	m := describe(name)
	for _, text := range fields {
		words := strings.Fields(text)
		number, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", text, err)) // the schema is a constant
		}
		cardinality := protoreflect.Optional
		kind, repeated := strings.CutPrefix(words[2], "*")
		if repeated {
			cardinality = protoreflect.Repeated
		}
		f := describe(words[0]).varint(fieldNumber, uint64(number)).
			varint(fieldLabel, uint64(cardinality))
		scalar, ok := scalarTypes[kind]
		switch {
		case ok:
			f = f.varint(fieldType, uint64(scalar))
		case enums[kind]:
			f = f.varint(fieldType, uint64(protoreflect.EnumKind)).
				bytes(fieldTypeName, ".xla."+kind+"Scope."+kind)
		default:
			f = f.varint(fieldType, uint64(protoreflect.MessageKind)).
				bytes(fieldTypeName, ".xla."+kind)
		}
		m = m.bytes(messageField, string(f))
	}
	return m
}
