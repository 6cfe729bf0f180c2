package symtile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/indexing"
)

// An indexingVector is one line of the conformance file about indexing maps.
type indexingVector struct {
	Kind, ID, Dir, HLO string
	Expect             map[string]json.RawMessage
	RT                 map[string]map[string]string // parameter, run-time variable: "instr; (dims) -> (at)"
}

// missingComputations are what vectors name and do not spell out.
var missingComputations = map[string]string{
	"scan_add": "scan_add { x = f32[] parameter(0); c = f32[] parameter(1); s = f32[] add(x, c); ROOT t = (f32[], f32[]) tuple(s, s) }\n",
	"argmin": "argmin { a = f32[] parameter(0); i = s32[] parameter(1); b = f32[] parameter(2); j = s32[] parameter(3); " +
		"p = pred[] compare(a, b), direction=LT; v = f32[] select(p, a, b); k = s32[] select(p, i, j); ROOT t = (f32[], s32[]) tuple(v, k) }\n",
}

// An exception is a vector of which our map is not written the same, or that is
// wrong: ours, and why it is right.
type exception struct{ why, ours string }

// exceptions reads testdata/vectors/indexing-exceptions: blocks of "id parameter",
// why, and our maps, indented.
func exceptions(t *testing.T) map[string]exception {
	text, err := os.ReadFile("testdata/vectors/indexing-exceptions")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]exception{}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if len(lines) < 3 || strings.HasPrefix(lines[0], "#") {
			continue
		}
		for k := range lines[2:] {
			lines[2+k] = strings.TrimSpace(lines[2+k])
		}
		all[lines[0]] = exception{lines[1], strings.Join(lines[2:], "\n")}
	}
	return all
}

// TestVectorsIndexing holds indexing maps against conformance vectors kept
// outside the repository: by meaning, over the whole domain where it is small,
// and by printed form. Vectors that do not hold are listed with the reason.
func TestVectorsIndexing(t *testing.T) {
	total, tally := 0, vectorTally{except: exceptions(t)}
	for _, v := range vectorsOf[indexingVector](t) {
		if v.Kind == "indexing" {
			total++
			tally.check(t, v)
		}
	}
	t.Logf("%d vectors, %d maps: %d as written and %d otherwise once parsed, %d by meaning with a reason, %d correct the vector",
		total, tally.rows, tally.text, tally.form-tally.text, tally.meaning, tally.corrected)
}

// indexVectorRange reads the conformance file that TILEWRIGHT_VECTORS names, the lines
// that are a V.
func vectorsOf[V any](t *testing.T) (all []V) {
	path := os.Getenv("TILEWRIGHT_VECTORS")
	if path == "" {
		t.Skip("TILEWRIGHT_VECTORS names no file of conformance vectors")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var v V
		if json.Unmarshal([]byte(line), &v) == nil {
			all = append(all, v)
		}
	}
	return all
}

type vectorTally struct {
	rows, text, form, meaning, corrected int
	except                               map[string]exception
}

func (y *vectorTally) check(t *testing.T, v indexingVector) {
	for name, text := range missingComputations {
		if strings.Contains(v.HLO, "to_apply="+name) {
			v.HLO = text + v.HLO
		}
	}
	m, err := hlo.Parse("vector", []byte(v.HLO))
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v.Expect)) {
		k := slices.IndexFunc(m.Entry.Params, func(p *hlo.Instr) bool { return p.Name == name })
		if k >= 0 {
			y.row(t, v, m.Entry, k)
		}
	}
}

// row compares what is expected of one parameter.
func (y *vectorTally) row(t *testing.T, v indexingVector, c *hlo.Computation, param int) {
	y.rows++
	name := c.Params[param].Name
	r := index.NewRing()
	got, err := indexingOf(r, v.Dir, c, param)
	if err != nil {
		t.Errorf("%s %s: %v", v.ID, name, err)
		return
	}
	want := expected(t, r, v.texts(name))
	same := sameRelation(got, want, originsOf(c, v.RT[name]))
	e, listed := y.except[v.ID+" "+name]
	if form := mapTexts(got); form == mapTexts(want) {
		if listed {
			t.Errorf("%s %s holds; it is no exception", v.ID, name)
		}
		if y.form++; form == v.texts(name) {
			y.text++
		}
		if same != "" {
			t.Errorf("%s %s: the form holds, the meaning does not: %s", v.ID, name, same)
		}
		return
	}
	switch {
	case !listed || e.ours != mapTexts(got):
		t.Errorf("%s %s: got\n%s\nwant\n%s\n%s", v.ID, name, mapTexts(got), mapTexts(want), same)
	case same == "":
		y.meaning++
	case strings.HasPrefix(e.why, "The vector is wrong"):
		y.corrected++
	default:
		t.Errorf("%s %s: %s", v.ID, name, same)
	}
}

func indexingOf(
	r *index.Ring, dir string, c *hlo.Computation, param int,
) ([]index.Map, error) {
	if dir == "output_to_input" {
		all, err := indexing.ParamMaps(r, c, 0)
		if err != nil {
			return nil, err
		}
		return all[param], nil
	}
	all, err := indexing.OutputMaps(r, c, param)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// texts are the maps expected for a parameter, sorted, one a line.
func (v indexingVector) texts(name string) string {
	var texts []string
	if json.Unmarshal(v.Expect[name], &texts) != nil {
		texts = make([]string, 1)
		if err := json.Unmarshal(v.Expect[name], &texts[0]); err != nil {
			return err.Error()
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

func expected(t *testing.T, r *index.Ring, texts string) (out []index.Map) {
	for text := range strings.SplitSeq(texts, "\n") {
		m, err := r.ParseMap(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func mapTexts(ms []index.Map) string {
	var texts []string
	for _, m := range ms {
		texts = append(texts, m.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// A knownOrigin is what a vector says a run-time variable is read from.
type knownOrigin struct {
	text  string
	value *int64 // of a scalar constant
}

func originsOf(c *hlo.Computation, rt map[string]string) map[string]knownOrigin {
	out := map[string]knownOrigin{}
	for name, text := range rt {
		o := knownOrigin{text: text}
		for _, in := range c.Instrs {
			if strings.HasPrefix(text, in.Name+";") &&
				in.Literal != nil && len(in.Literal.Ints) == 1 {
				o.value = &in.Literal.Ints[0]
			}
		}
		out[name] = o
	}
	return out
}

// A keyedMap is a map whose run-time variables are known by what they read.
type keyedMap struct {
	index.Map
	keys    []string
	code    *index.Evaluator
	check   *index.Predicate
	scratch []int64
}

// compiled prepares k for many points.
func (k keyedMap) compiled() keyedMap {
	var err1, err2 error
	k.code, err1 = k.Compile()
	k.check, err2 = index.CompileConstraint(k.Vars(), k.Where)
	if err1 != nil || err2 != nil {
		panic(fmt.Sprint(err1, err2))
	}
	k.scratch = make([]int64, max(k.code.ScratchLen(), k.check.ScratchLen()))
	return k
}

// at evaluates k, nil outside its domain.
func (k keyedMap) at(vals []int64) []int64 {
	for i, e := range k.Vars() {
		if !e.Range().Contains(vals[i]) {
			return nil
		}
	}
	if !k.check.Holds(vals, k.scratch) {
		return nil
	}
	out := make([]int64, len(k.Results))
	k.code.Eval(vals, out, k.scratch)
	return out
}

func keyed(ms []index.Map, rt map[string]knownOrigin) (out []keyedMap) {
	for _, m := range ms {
		k := keyedMap{Map: m}
		for i, name := range runtimeNames(m) {
			text := rt[name].text
			if v, ok := m.Runtime[i].Variable(); ok && v.Origin != nil {
				_, text, _ = strings.Cut(m.RuntimeText()[i], ": ")
			}
			k.keys = append(k.keys, text)
		}
		if m.State == index.StateKnown {
			out = append(out, k.compiled())
		}
	}
	return out
}

const maxPoints = 100_000
const mostRanges = 4000
const samples = 300

// sameRelation says where the sets differ, "" for nowhere. Run-time variables
// are the same when they are read from the same element; one that only the
// vector has does not matter, or is a constant that has its value.
func sameRelation(got, want []index.Map, rt map[string]knownOrigin) string {
	undefined := func(m index.Map) bool { return m.State == index.StateUndefined }
	if slices.ContainsFunc(got, undefined) || slices.ContainsFunc(want, undefined) {
		if slices.ContainsFunc(got, undefined) != slices.ContainsFunc(want, undefined) {
			return "only one is undefined"
		}
		return ""
	}
	x, y := keyed(got, nil), keyed(want, rt)
	var box []index.Interval
	for _, m := range slices.Concat(x, y) {
		for k, d := range m.Dims {
			if k == len(box) {
				box = append(box, d.Range())
			}
			box[k] = box[k].Join(d.Range())
		}
	}
	limit := int64(maxPoints)
	for _, m := range slices.Concat(x, y) {
		for _, e := range m.Ranges {
			limit /= e.Range().Len()
		}
	}
	for point := range pointsOf(box, limit) {
		for run := range runtimeOf(y, rt) {
			a, b := valuesAt(x, point, run), valuesAt(y, point, run)
			if !slices.Equal(a, b) {
				return fmt.Sprintf(
					"at %v, run-time %v: got %v, want %v",
					point, run, a[:min(len(a), 8)],
					b[:min(len(b), 8)],
				)
			}
		}
	}
	return ""
}

// pointsOf yields every point of a box, or some when they are more than limit.
func pointsOf(box []index.Interval, limit int64) func(func([]int64) bool) {
	n := int64(1)
	for _, in := range box {
		n = index.SatMul(n, in.Len())
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	return func(yield func([]int64) bool) {
		steps := n
		if n > limit {
			steps = samples
		}
		for k := range steps {
			if n > limit {
				k = rnd.Int64N(n)
			}
			point := make([]int64, len(box))
			for d := len(box) - 1; d >= 0; d-- {
				point[d] = box[d].Lo + k%box[d].Len()
				k /= box[d].Len()
			}
			if !yield(point) {
				return
			}
		}
	}
}

// runtimeOf yields values of the run-time variables of want by origin.
func runtimeOf(want []keyedMap, rt map[string]knownOrigin) func(func(map[string]int64) bool) {
	var texts []string
	var box []index.Interval
	for _, m := range want {
		for k, e := range m.Runtime {
			in := e.Range()
			if v := rt[runtimeNames(m.Map)[k]].value; v != nil {
				in = index.Interval{
					Lo: min(max(*v, in.Lo), in.Hi),
					Hi: min(max(*v, in.Lo), in.Hi),
				}
			}
			texts, box = append(texts, m.keys[k]), append(box, in)
		}
	}
	return func(yield func(map[string]int64) bool) {
		for point := range pointsOf(box, 64) {
			run := map[string]int64{}
			for i, text := range texts {
				run[text] = point[i]
			}
			if !yield(run) {
				return
			}
		}
	}
}

// runtimeNames are the names that the run-time variables of m print with.
func runtimeNames(m index.Map) []string {
	_, text, ok := strings.Cut(m.String(), "{")
	if !ok {
		return nil
	}
	text, _, _ = strings.Cut(text, "}")
	return strings.Split(text, ", ")
}

// valuesAt lists the distinct results of the maps at a point, sorted.
func valuesAt(ms []keyedMap, point []int64, run map[string]int64) []string {
	set := map[string]bool{} // by the text of a result
	for _, m := range ms {
		vals := slices.Clone(point)
		var box []index.Interval
		for _, s := range m.Ranges {
			box = append(box, s.Range())
		}
		for s := range pointsOf(box, mostRanges) {
			vals = append(vals[:len(point)], s...)
			for _, key := range m.keys {
				v, ok := run[key]
				if !ok {
					set[""] = true
				}
				vals = append(vals, v)
			}
			if at := m.at(vals); at != nil {
				set[fmt.Sprint(at)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}
