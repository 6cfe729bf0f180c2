package sheet

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed sheets/*.json
var files embed.FS

// order has the files of the built-in sheets.
var order = strings.Fields(`zen2 zen3 zen4 zen4c zen5 skylake-sp cascade-lake ice-lake-sp sapphire-rapids
	emerald-rapids granite-rapids graviton3 graviton4 m1 m2 m3 m4`)

// built are the sheets of the program.
var built = sync.OnceValue(func() (all []Sheet) {
	for _, name := range order {
		all = append(all, *read(name))
	}
	return all
})

// typical is the core whose numbers stand for those that a sheet does not have.
var typical = sync.OnceValue(func() *Sheet { return readUnchecked("typical") })

// Typical is the sheet of a core of no family: x86 cores of servers of the last ten
// years, with AVX2.
func Typical() Sheet { return *typical() }

// Known are the built-in sheets.
func Known() []Sheet { return slices.Clone(built()) }

// read reads a built-in sheet.
func read(name string) *Sheet {
	s := readUnchecked(name)
	if err := s.check(); err != nil {
		panic(name + ": " + err.Error())
	}
	return s
}

// textOf is the text of a built-in sheet.
func textOf(name string) []byte {
	text, err := files.ReadFile("sheets/" + name + ".json")
	if err != nil {
		panic(err)
	}
	return text
}

// readUnchecked reads a built-in sheet and does not compare its levels.
func readUnchecked(name string) *Sheet {
	s, err := decode(textOf(name))
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return &s
}

// Find finds a built-in sheet by its name or an alias, in any case.
func Find(name string) (Sheet, error) {
	want := strings.TrimSpace(name)
	var known []string
	for _, s := range built() {
		is := func(n string) bool { return strings.EqualFold(n, want) }
		if is(s.Name) || slices.ContainsFunc(s.Aliases, is) {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Sheet{}, fmt.Errorf("no CPU %q; there are %s", name, strings.Join(known, ", "))
}

// Of is the built-in sheet of a processor; false where there is none. Every command asks for
// that of this machine, so that the sheets of other processors are not decoded.
func Of(p Processor) (Sheet, bool) {
	for _, name := range order {
		if !mentions(textOf(name), p) {
			continue
		}
		if s := read(name); s.Describes(p) {
			return *s, true
		}
	}
	return Sheet{}, false
}

// mentions reports whether the text of a sheet may be that of one that describes a processor:
// it has the vendor and the number of the model somewhere.
func mentions(text []byte, p Processor) bool {
	return p.Vendor == "" ||
		bytes.Contains(text, []byte(p.Vendor)) &&
			bytes.Contains(text, strconv.AppendInt(nil, int64(p.Model), 10))
}
