// Package source locates bytes of a text.
//
// A Scanner keeps the line it is on while it walks a text, a Place is a remembered position of a scanner, and an Error
// shows a place to people: file, line and column, what is wrong, the line itself and a caret under the byte. The readers of
// HLO, StableHLO, index expressions and PTX are built on it, so that errors look the same everywhere:
//
//	add.hlo:3:12: expected ")", found "]"
//	  p0 = f32[4](] parameter(0)
//	             ^
package source
