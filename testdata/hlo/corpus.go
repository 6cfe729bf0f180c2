// Package corpus is the fusions that the tests of all rooms share, embedded so
// that a program carried to another machine has them.
package corpus

import "embed"

// Files are the texts, by name.
//
//go:embed *.hlo
var Files embed.FS
