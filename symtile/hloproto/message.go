package hloproto

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A message is a protocol message whose fields are found by name; what is absent
// reads as zero, and a message that is absent as an empty one. A name that the schema
// does not have is a mistake of this package, and panics.
type message struct{ protoreflect.Message }

// field is the descriptor of a field, which the schema has.
func (m message) field(name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

// has reports whether the field is there.
func (m message) has(name string) bool {
	return m.Has(m.field(name))
}

// text is a field that is a string or bytes.
func (m message) text(name string) string {
	f := m.field(name)
	if f.Kind() == protoreflect.BytesKind {
		return string(m.Get(f).Bytes())
	}
	return m.Get(f).String()
}

// int is a field that is a number.
func (m message) int(name string) int64 {
	return m.Get(m.field(name)).Int()
}

// float is a field that is a floating-point number.
func (m message) float(name string) float64 {
	return m.Get(m.field(name)).Float()
}

// flag is a field that is a truth value.
func (m message) flag(name string) bool {
	return m.Get(m.field(name)).Bool()
}

// word is the name of the value of an enumeration, in lower case without a prefix;
// "" for a value that the schema does not have.
func (m message) word(name, prefix string) string {
	f := m.field(name)
	return enumWord(f, m.Get(f).Enum(), prefix)
}

// enumWord is word of a number.
func enumWord(f protoreflect.FieldDescriptor, n protoreflect.EnumNumber, prefix string) string {
	v := f.Enum().Values().ByNumber(n)
	if v == nil {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
}

// message is a field that is a message.
func (m message) message(name string) message {
	return message{m.Get(m.field(name)).Message()}
}

// list are the values of a repeated field.
func (m message) list(name string) []protoreflect.Value {
	l := m.Get(m.field(name)).List()
	all := make([]protoreflect.Value, l.Len())
	for k := range all {
		all[k] = l.Get(k)
	}
	return all
}

// messages are the values of a repeated field of messages.
func (m message) messages(name string) []message {
	values := m.list(name)
	all := make([]message, len(values))
	for k, v := range values {
		all[k] = message{v.Message()}
	}
	return all
}

// ints are the values of a repeated field of numbers.
func (m message) ints(name string) []int64 {
	values := m.list(name)
	all := make([]int64, len(values))
	for k, v := range values {
		all[k] = v.Int()
	}
	return all
}
