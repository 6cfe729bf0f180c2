package index

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// A vector is one line of the conformance file that TILEWRIGHT_VECTORS names.
type vector struct {
	Kind, ID, Op, Map, First, Second, HLO, Note, Args string
	Expect                                            json.RawMessage
}

func loadVectors(t *testing.T) (out []vector) {
	path := os.Getenv("TILEWRIGHT_VECTORS")
	if path == "" {
		t.Skip("TILEWRIGHT_VECTORS names no file of conformance vectors")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var v vector
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func (v vector) text(t *testing.T) string {
	var s string
	if err := json.Unmarshal(v.Expect, &s); err != nil {
		t.Errorf("%s: %v", v.ID, err)
	}
	return s
}

// ownForms are the vectors whose form is ours for a stated reason.
func ownForms(t *testing.T) map[string]string {
	text, err := os.ReadFile("testdata/vectors/own-forms")
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{}
	for _, entry := range strings.Split(string(text), "\n\n")[1:] {
		head, form, _ := strings.Cut(strings.TrimSpace(entry), "\n")
		id, reason, ok := strings.Cut(head, ": ")
		if !ok || reason == "" {
			t.Errorf("%q has no reason", head)
		}
		forms[id] = form
	}
	return forms
}

// TestVectorsSimplify runs the simplify and compose vectors. Each must hold by
// meaning where its domain can be walked, and by form, or have the form that
// testdata/vectors/own-forms gives a reason for.
func TestVectorsSimplify(t *testing.T) {
	meaning, form, better, total := 0, 0, 0, 0
	own := ownForms(t)
	for _, v := range loadVectors(t) {
		if v.Kind != "simplify" && v.Kind != "compose" {
			continue
		}
		total++
		want := v.text(t)
		got, same := runVector(t, v)
		if same {
			meaning++
		}
		if got == want {
			form++
			continue
		}
		if got == own[v.ID] {
			better++
			continue
		}
		t.Errorf("%s\n got  %s\n want %s", v.ID, got, want)
	}
	t.Logf("%d vectors: %d by meaning, %d by form, %d in a form of ours", total, meaning, form, better)
}

func runVector(t *testing.T, v vector) (text string, same bool) {
	r := NewRing()
	m, err := v.source(r)
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return "", false
	}
	got := m.apply(v.Op, v.Args)
	if v.Op == "ranges" {
		return rangesText(got), rangesText(got) == v.text(t)
	}
	want, err := NewRing().ParseMap(v.text(t))
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return "", false
	}
	if v.Op == "remove-unused-vars" {
		return got.String(), got.String() == want.String() // the arity changes
	}
	same, diff, err := got.Equal(want)
	if err != nil {
		t.Logf("%s: not walked: %v", v.ID, err)
		same = true
	} else if !same {
		t.Errorf("%s: %s\n got  %s\n want %s", v.ID, diff, got, want)
	}
	return got.String(), same
}

func (v vector) source(r *Ring) (Map, error) {
	if v.Kind == "simplify" {
		return r.ParseMap(v.Map)
	}
	first, err := r.ParseMap(v.First)
	if err != nil {
		return Map{}, err
	}
	second, err := r.ParseMap(v.Second)
	return Compose(first, second), err
}

func (m Map) apply(op, args string) Map {
	switch op {
	case "remove-unused-vars":
		m, _ = m.DropUnused()
		return m
	case "rescale-symbols":
		return m.RescaleRanges()
	case "symbols-to-dims":
		return m.SymbolsToDims()
	case "ranges-to-dims":
		var which []int
		if err := json.Unmarshal(
			[]byte("["+strings.Trim(args, "{}")+"]"), &which,
		); err != nil {
			panic(err)
		}
		return m.RangesToDims(which...)
	}
	return m.Simplify()
}

func rangesText(m Map) string {
	var parts []string
	for _, e := range m.Results {
		parts = append(parts, e.Range().String())
	}
	return strings.Join(parts, ", ")
}

// TestVectorsConstraint runs the vectors that are constraints as text: ours,
// simplified, must agree with the expected one at every point, and the printed
// form is counted.
func TestVectorsConstraint(t *testing.T) {
	form, total := 0, 0
	for _, v := range loadVectors(t) {
		if v.Kind != "tile_constraints" || !strings.HasPrefix(v.ID, "con.dnf.") || v.ID == "con.dnf.check" {
			continue
		}
		total++
		r := NewRing()
		vars := map[string]Expr{}
		box := []Expr{}
		for _, name := range []string{"v0", "v1"} {
			vars[name] = r.Var(Variable{Name: name, Lo: -20, Hi: 20})
			box = append(box, vars[name])
		}
		got, err1 := r.ParseConstraint(v.HLO, vars)
		want, err2 := r.ParseConstraint(v.text(t), vars)
		if err1 != nil || err2 != nil {
			t.Errorf("%s: %v %v", v.ID, err1, err2)
			continue
		}
		got = got.Simplify()
		a, b := Map{Dims: box, Where: got}, Map{Dims: box, Where: want}
		if same, diff, err := a.Equal(b); err != nil || !same {
			t.Errorf("%s: %s against %s: %s %v", v.ID, got, want, diff, err)
		}
		if got.String() == v.text(t) {
			form++
		} else {
			t.Logf("%s: got %s, want %s", v.ID, got, v.text(t))
		}
	}
	t.Logf("%d vectors by meaning, %d by form", total, form)
}
