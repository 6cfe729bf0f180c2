package index

import (
	"slices"
	"strconv"
	"strings"
)

// String prints m in XLA's syntax,
//
//	(d0, d1)[s0]{rt0} -> (d1, s0), domain: d0 in [0, 9], ..., <constraints>
//
// the constraints sorted, then ", replica id: s0" for a map of a collective; it is
// KNOWN EMPTY for a map without points and "unknown indexing" for one that is
// undefined. Variables are numbered d0.., s0.., rt0.. by their place, unless they
// have names of another kind. Ring.ParseMap reads it back.
func (m Map) String() string {
	switch m.State {
	case StateEmpty:
		return "KNOWN EMPTY"
	case StateUndefined:
		return "unknown indexing"
	}
	n := m.naming()
	var b strings.Builder
	b.WriteString("(" + strings.Join(n.dims, ", ") + ")")
	if len(n.ranges) > 0 {
		b.WriteString("[" + strings.Join(n.ranges, ", ") + "]")
	}
	if len(n.runtime) > 0 {
		b.WriteString("{" + strings.Join(n.runtime, ", ") + "}")
	}
	texts := make([]string, len(m.Results))
	for i, e := range m.Results {
		texts[i] = n.text(e)
	}
	b.WriteString(" -> (" + strings.Join(texts, ", ") + ")")
	domain := n.domain(m)
	if len(domain) > 0 {
		b.WriteString(", domain: " + strings.Join(domain, ", "))
	}
	if m.Replicated() {
		b.WriteString(", replica id: " + n.text(m.Replica))
	}
	return b.String()
}

// A naming gives the variables of a map the names they print with. Variables are
// known by their fields, so that constraints and origins, which mention the same
// variables, are written alike.
type naming struct {
	dims, ranges, runtime []string            // in the order of the map
	by                    map[Variable]string // the same, by variable
}

// naming numbers the variables of m.
func (m Map) naming() *naming {
	n := &naming{by: map[Variable]string{}}
	written := m.names
	if len(written) != len(m.Dims)+len(m.Ranges)+len(m.Runtime) {
		written = nil
	}
	for _, group := range []struct {
		names *[]string
		vars  []Expr
		stem  string
	}{
		{&n.dims, m.Dims, "d"},
		{&n.ranges, m.Ranges, "s"},
		{&n.runtime, m.Runtime, "rt"},
	} {
		*group.names = n.name(group.vars, group.stem, written)
		written = written[min(len(written), len(group.vars)):]
	}
	return n
}

// name are the names of vars, which are numbered after stem; of constants among
// them the name that is written, if any.
func (n *naming) name(vars []Expr, stem string, written []string) []string {
	out := make([]string, len(vars))
	for i, e := range vars {
		out[i] = stem + strconv.Itoa(i)
		v, ok := e.Variable()
		if !ok {
			if i < len(written) && !isDefaultName(written[i]) {
				out[i] = written[i]
			}
			continue
		}
		if !isDefaultName(v.Name) {
			out[i] = v.Name
		}
		n.by[v] = out[i]
	}
	return out
}

// isDefaultName reports whether name is d, s or rt and a number.
func isDefaultName(name string) bool {
	stem := trimDigits(name)
	return stem != name &&
		slices.Contains([]string{"d", "s", "rt"}, stem)
}

// text prints e with the names of the map.
func (n *naming) text(e Expr) string {
	defer e.lock().Unlock()
	return e.r.text(e.lin(), n.by)
}

// domain lists the ranges, then the constraints sorted.
func (n *naming) domain(m Map) []string {
	var out []string
	for i, name := range slices.Concat(n.dims, n.ranges, n.runtime) {
		in := m.Vars()[i].Range()
		out = append(out, name+" in "+in.String())
	}
	var where []string
	for _, x := range m.Where {
		where = append(where, x.text(n.text))
	}
	slices.Sort(where)
	return append(out, where...)
}

// RuntimeText says where each run-time variable of m is read, in XLA's syntax:
// "rt0: indices; (d0, d1) -> (d0, 0)". Ranges and other run-time variables that
// the place depends on are listed as in a map.
func (m Map) RuntimeText() []string {
	n := m.naming()
	out := make([]string, 0, len(m.Runtime))
	for k, e := range m.Runtime {
		v, ok := e.Variable()
		if ok && v.Origin != nil {
			origin := m.originText(n, e, v.Origin)
			out = append(out, n.runtime[k]+": "+origin)
		}
	}
	return out
}

// originText prints the origin o of e as a map from the variables that it depends
// on to the place.
func (m Map) originText(n *naming, e Expr, o *Origin) string {
	if o.Source.VariableName() != "" {
		return o.Source.String()
	}
	at := make([]string, len(o.At))
	for i, x := range o.At {
		at[i] = n.text(x)
	}
	uses := originVars(e)
	list := func(
		open string, vars []Expr, names []string, close string,
	) string {
		var in []string
		for k, v := range vars {
			if slices.Contains(uses, v) {
				in = append(in, names[k])
			}
		}
		if len(in) == 0 {
			return ""
		}
		return open + strings.Join(in, ", ") + close
	}
	return o.Source.String() + "; (" +
		strings.Join(n.dims, ", ") + ")" +
		list("[", m.Ranges, n.ranges, "]") +
		list("{", m.Runtime, n.runtime, "}") +
		" -> (" + strings.Join(at, ", ") + ")"
}
