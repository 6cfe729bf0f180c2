// Package hlo reads and prints HLO text, the form XLA dumps, and gives every
// computation a fingerprint.
//
// Parse takes whole modules, single computations and bare lists of
// instructions, separated by new lines or semicolons. Every declared shape is
// checked against the shape rule of its operation, so that what comes out can
// be trusted; errors say file, line and column, show the line and put a caret
// under the place. Operations without a row in the table of opcodes are an
// error; those only known by name are parsed with their attributes as text.
//
// # Canonical form
//
// Canonical prints a computation so that two of them have the same text
// exactly when they compute the same thing in the same way, and the fingerprint
// is the SHA-256 of that text:
//
//   - parameters come first, by number; then what the root needs, in the
//     depth-first order of operands. Instructions nobody needs are gone.
//   - instructions are named v0, v1, … by position, computations c0, c1, … as
//     they are met, callees after callers; equal callees are one.
//   - metadata, frontend_attributes, sharding, ids, a fusion's kind and
//     backend_config are gone; a custom-call's backend_config is what it is,
//     and stays. Every other attribute stays, typed ones in a fixed order,
//     the rest by name.
//   - a layout is printed when it is not the default, numbers in the shortest
//     form that reads back.
//
// So renaming, or re-ordering independent instructions, changes nothing, and
// changing a shape, type, layout, literal, attribute or the order of operands
// does. The canonical text is HLO and parses back to itself.
package hlo
