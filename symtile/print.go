package symtile

import (
	"strconv"
	"strings"
)

type printer struct{ names map[Variable]string }

func (p *printer) reset() {}

// String prints e in XLA's spelling: "d0 * 8 + d1 floordiv 2", "(d0 mod 4) * 2".
func (e Expr) String() string {
	if e.r == nil {
		return "<no expression>"
	}
	defer e.lock().Unlock()
	return e.r.text(e.lin(), nil)
}

// text prints x, with names for variables that do not go by their own.
func (r *Ring) text(x lin, names map[Variable]string) string {
	r.print.names = names
	return r.sumText(x)
}

func (r *Ring) sumText(x lin) string {
	if len(x.t) == 0 {
		return strconv.FormatInt(x.c, 10)
	}
	var b strings.Builder
	for i, t := range x.t {
		k := t.k
		switch {
		case i == 0 && k == -1:
			b.WriteString("-")
			k = 1
		case i > 0 && k < 0:
			b.WriteString(" - ")
			k = -k
		case i > 0:
			b.WriteString(" + ")
		}
		s := r.atomText(t.a)
		if k != 1 {
			s = paren(s) + " * " + strconv.FormatInt(k, 10)
		}
		b.WriteString(s)
	}
	switch {
	case x.c > 0:
		b.WriteString(" + " + strconv.FormatInt(x.c, 10))
	case x.c < 0:
		b.WriteString(" - " + strings.TrimPrefix(strconv.FormatInt(x.c, 10), "-"))
	}
	return b.String()
}

func paren(s string) string {
	if strings.Contains(s, " ") || strings.HasPrefix(s, "-") {
		return "(" + s + ")"
	}
	return s
}

func (r *Ring) atomText(id int32) string {
	a := r.atoms[id]
	switch a.kind {
	case atomVar:
		if name, ok := r.print.names[r.vars[a.y]]; ok {
			return name
		}
		return r.vars[a.y].Name
	case atomDiv:
		return paren(r.sumText(r.forms[a.y].lin)) + " floordiv " + strconv.FormatInt(a.d, 10)
	case atomQuot:
		return paren(r.sumText(r.forms[a.y].lin)) + " floordiv " + paren(r.sumText(r.forms[a.z].lin))
	case atomMin:
		return "min(" + r.sumText(r.forms[a.y].lin) + ", 0)"
	}
	var fs []string
	for _, f := range r.factors(&a) {
		fs = append(fs, paren(r.atomText(f)))
	}
	return strings.Join(fs, " * ")
}
