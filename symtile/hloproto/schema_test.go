package hloproto

import (
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The descriptors that are written here are valid by the rules of the library, which are not
// checked at start-up, and every type that a field names is there.
func TestSchemaIsValid(t *testing.T) {
	all := messages()
	if all.Len() < 20 {
		t.Fatalf("%d messages", all.Len())
	}
	file := protodesc.ToFileDescriptorProto(all.Get(0).ParentFile())
	valid, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := valid.Messages().Len(); got != all.Len() {
		t.Errorf("%d messages of %d", got, all.Len())
	}
	for k := range all.Len() {
		fields := all.Get(k).Fields()
		for j := range fields.Len() {
			if !resolved(fields.Get(j)) {
				t.Errorf("%s names a type that is not there", fields.Get(j).FullName())
			}
		}
	}
}

// resolved reports whether the type of a field is in the schema.
func resolved(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.EnumKind:
		return !f.Enum().IsPlaceholder()
	case protoreflect.MessageKind:
		return !f.Message().IsPlaceholder()
	}
	return true
}
