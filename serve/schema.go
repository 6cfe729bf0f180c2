package serve

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema is the JSON schema (draft 2020-12) of the protocol, made of the Go structs:
// $defs has Request, Response and, under the name of each operation, its result.
func Schema() map[string]any {
	g := generator{defs: map[string]any{}}
	for _, v := range []any{Request{}, Response{}} {
		g.of(reflect.TypeOf(v))
	}
	results := map[string]any{}
	for _, op := range Ops() {
		results[op.Name] = map[string]any{
			"description": op.About,
			"needs":       op.Needs,
			"takes":       op.Takes,
			"result":      g.of(reflect.TypeOf(op.Result)),
		}
	}
	return map[string]any{
		"$schema":    "https://json-schema.org/draft/2020-12/schema",
		"title":      "tilewright serve: a request and a response a line",
		"protocol":   Protocol,
		"operations": results,
		"$defs":      g.defs,
	}
}

// A generator collects the schemas of named structs.
type generator struct{ defs map[string]any }

// scalars are the schemas of kinds without parts.
var scalars = map[reflect.Kind]string{
	reflect.String:  "string",
	reflect.Bool:    "boolean",
	reflect.Int:     "integer",
	reflect.Int64:   "integer",
	reflect.Float64: "number",
}

// of is the schema of a type. A pointer may be null; an interface is any value; fields
// with omitempty may be left out, all others are required.
func (g generator) of(t reflect.Type) map[string]any {
	if t == reflect.TypeFor[json.RawMessage]() {
		return map[string]any{"type": []string{"number", "string", "null"}}
	}
	if name, ok := scalars[t.Kind()]; ok {
		return map[string]any{"type": name}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{g.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice, reflect.Array:
		s := map[string]any{"type": "array", "items": g.of(t.Elem())}
		if t.Kind() == reflect.Array {
			s["minItems"], s["maxItems"] = t.Len(), t.Len()
		}
		return s
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return g.reference(t)
	}
	return map[string]any{} // an interface: any value
}

// reference is a reference to the schema of a struct, which it adds.
func (g generator) reference(t reflect.Type) map[string]any {
	ref := map[string]any{"$ref": "#/$defs/" + t.Name()}
	if _, known := g.defs[t.Name()]; known {
		return ref
	}
	g.defs[t.Name()] = nil // a struct may contain itself
	properties := map[string]any{}
	required := []string{}
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = g.of(f.Type)
		if options == "" {
			required = append(required, name)
		}
	}
	g.defs[t.Name()] = map[string]any{
		"type":       "object",
		"properties": properties,
		"required":   required,
	}
	return ref
}
