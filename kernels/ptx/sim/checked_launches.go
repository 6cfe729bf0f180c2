package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// checkedLaunches are the launches of an entry that were checked and in which nothing
// was found. Where influences proves an entry steady, another launch that
// differs in data and in where its arrays lie has the same accesses in the same
// order: bounds are still checked, but races and uninitialised reads cannot be
// other than they were.
type checkedLaunches map[*Program]map[string]bool

const maxCheckedPrograms = 64 // programs

// launchKey is all that a steady entry's accesses depend on, false where that
// is not known.
func (m *Machine) launchKey(g *grid, l *Launch) (string, bool) {
	if !g.entry.launchInvariant ||
		!g.opt.Races && !g.opt.Uninitialised {
		return "", false
	}
	key := fmt.Appendf(
		nil, "%s %v %v %v %d %t %t",
		l.Entry, g.size, g.block, g.cluster,
		l.Shared, g.opt.Races, g.opt.Uninitialised,
	)
	var arrays []*allocation
	for _, a := range l.Args {
		var ok bool
		if key, arrays, ok = m.argumentKey(key, arrays, a); !ok {
			return "", false
		}
	}
	return string(key), true
}

// argumentKey appends an argument: an address as the number of the array it lies
// in, how large that is and whether it is written, and the offset.
func (m *Machine) argumentKey(key []byte, arrays []*allocation, arg []byte) (
	[]byte, []*allocation, bool,
) {
	at := -1
	switch {
	case len(arg) == 8:
		at = 0
	case len(arg) == tensorMapBytes &&
		binary.LittleEndian.Uint32(arg) == tensorMapMagic:
		at = tensorMapAddress
	case len(arg) > 8:
		return nil, nil, false // there may be addresses in it
	}
	if at < 0 {
		return fmt.Appendf(key, " %x", arg), arrays, true
	}
	address := binary.LittleEndian.Uint64(arg[at:])
	a := m.mem.owner(address)
	if a == nil || a.freed {
		return fmt.Appendf(key, " %x", arg), arrays, true
	}
	written := bytes.IndexByte(a.written, 1) >= 0
	unwritten := bytes.IndexByte(a.written, 0) >= 0
	n := slices.Index(arrays, a)
	if n < 0 {
		n = len(arrays)
		arrays = append(arrays, a)
	}
	key = fmt.Appendf(
		key, " %x array %d of %d %t at %d %x",
		arg[:at], n, a.size, written,
		address-a.start, arg[at+8:],
	)
	return key, arrays, !written || !unwritten
}

func (r checkedLaunches) add(p *Program, key string) {
	if r[p] == nil {
		if len(r) >= maxCheckedPrograms {
			clear(r)
		}
		r[p] = map[string]bool{}
	}
	r[p][key] = true
}
