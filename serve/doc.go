// Package serve answers questions about fusions over a stream: a request is a line of
// JSON, and so is its response, which carries the same id. Many requests may be in
// flight, and responses come in the order in which they are done. docs/formats.md
// describes the protocol, and [Schema] is its JSON schema.
//
//	{"id": 1, "op": "get", "fingerprint": "8b12…"}
//	{"id": 1, "result": {"answer": "exact", "plan": "64,256", …}}
//
// [Answer] is the door for programs that have no stream, such as the C library.
package serve
