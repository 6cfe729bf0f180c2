package hloproto

import (
	_ "embed" // schema.txt
	"fmt"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schema is the part of XLA's hlo.proto and xla_data.proto that HLO text is made of:
// messages with their fields "name number type", * before the type of a repeated
// one, and enumerations. What is not listed is skipped when it is read.
//
//go:embed schema.txt
var schema string

// scalarTypes are the types of fields that are neither messages nor enumerations.
var scalarTypes = map[string]descriptorpb.FieldDescriptorProto_Type{
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
	"bytes":  descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	"bool":   descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"int32":  descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"int64":  descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	"uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	"float":  descriptorpb.FieldDescriptorProto_TYPE_FLOAT,
	"double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
}

// messages are the descriptors of the schema. They are made when the first message is
// read, and a mistake in the schema panics, which every test of the package would show.
var messages = sync.OnceValue(func() protoreflect.MessageDescriptors {
	file := &descriptorpb.FileDescriptorProto{
		Name:    proto.String("hlo.proto"),
		Package: proto.String("xla"),
		Syntax:  proto.String("proto3"),
	}
	// enums are the types that are enumerations, which come last in the schema.
	enums := map[string]bool{}
	for line := range strings.Lines(schema) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, body, _ := strings.Cut(rest, ": ")
		if kind == "enum" {
			enums[name] = true
			e := enumOf(name, strings.Fields(body))
			file.MessageType = append(file.MessageType, e)
		}
	}
	for line := range strings.Lines(schema) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, body, _ := strings.Cut(rest, ": ")
		if kind == "message" {
			fields := strings.Split(body, "; ")
			m := messageOf(name, fields, enums)
			file.MessageType = append(file.MessageType, m)
		}
	}
	built, err := protodesc.NewFile(file, nil)
	if err != nil {
		panic(err) // the schema above is a constant
	}
	return built.Messages()
})

// enumOf is the descriptor of an enumeration, whose values count from 0, in a message
// of its own: the values of all enumerations of a file share a scope otherwise. The
// names are those of XLA, which the text form has.
func enumOf(name string, values []string) *descriptorpb.DescriptorProto {
	e := &descriptorpb.EnumDescriptorProto{Name: proto.String(name)}
	for k, v := range values {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{
			Name:   proto.String(v),
			Number: proto.Int32(int32(k)),
		})
	}
	return &descriptorpb.DescriptorProto{
		Name:     proto.String(name + "Scope"),
		EnumType: []*descriptorpb.EnumDescriptorProto{e},
	}
}

// messageOf is the descriptor of a message with the fields "name number type"; a type
// that is neither a scalar nor an enumeration is another message of the schema.
func messageOf(name string, fields []string, enums map[string]bool) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: proto.String(name)}
	for _, text := range fields {
		words := strings.Fields(text)
		number, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", text, err)) // the schema is a constant
		}
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		kind, repeated := strings.CutPrefix(words[2], "*")
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		f := &descriptorpb.FieldDescriptorProto{
			Name:   proto.String(words[0]),
			Number: proto.Int32(int32(number)),
			Label:  &label,
		}
		scalar, ok := scalarTypes[kind]
		switch {
		case ok:
		case enums[kind]:
			scalar = descriptorpb.FieldDescriptorProto_TYPE_ENUM
		default:
			scalar = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		}
		f.Type = &scalar
		switch {
		case enums[kind]:
			f.TypeName = proto.String(".xla." + kind + "Scope." + kind)
		case !ok:
			f.TypeName = proto.String(".xla." + kind)
		}
		m.Field = append(m.Field, f)
	}
	return m
}
