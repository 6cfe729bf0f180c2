// Package corpus is the fusions that the tests of all rooms share, embedded so
// that a program carried to another machine has them.
package corpus

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Files are the texts, by name.
//
//go:embed *.hlo
var Files embed.FS

// A Fusion has the name of its file, without the ending; of those after the first
// of a file, that of their computation follows.
type Fusion struct {
	Name string
	*hlo.Computation
}

// Fusions parses all of them, in the order of their names.
func Fusions() (all []Fusion, err error) {
	files, err := fs.Glob(Files, "*.hlo")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := hlo.Parse(file, text)
		if err != nil {
			return nil, err
		}
		for k, c := range m.Fusions() {
			name := strings.TrimSuffix(file, ".hlo")
			if k > 0 {
				name += "/" + c.Name
			}
			all = append(all, Fusion{name, c})
		}
	}
	return all, nil
}
