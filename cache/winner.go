package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// A winnerReader reads stored records as far as a snapshot needs them: without samples
// and evidence, which are as their checksum says. It knows the form that encodeJSON
// gives a record, members in the order of the struct and ASCII; a record of any other
// form is left to encoding/json, which takes six times as long. It is used for one
// record after the other, which share what they have in common.
type winnerReader struct {
	text  []byte
	at    int
	other bool   // the text has another form
	check int    // where the text says whether the record is checked
	room  []byte // for texts with escapes
	key   []byte // for encoded keys

	structures structureReader

	safe           []byte // safe context of the last record, as JSON
	safeText       string // SafeText of it
	safeOf         map[string]string
	device, by     string // of the last record
	backend, codes string
}

// winner is readRecord without samples.
func (w *winnerReader) winner(k, value []byte) (Record, error) {
	text, err := checkedText(value)
	var r Record
	if err == nil && !w.scan(text, &r) {
		r, err = decodeWinner(text)
		w.safeText = SafeText(r.Safe)
		w.safe = nil
	}
	w.key = r.Key.append(w.key[:0])
	if err == nil && !bytes.Equal(w.key, k) {
		err = errors.New("it holds the record of another key")
	}
	if err == nil {
		err = r.plausible()
	}
	if err == nil {
		return r, nil
	}
	stored, keyErr := parseKey(k)
	if keyErr != nil {
		err = keyErr
	}
	return Record{Key: stored}, newDamaged(k, stored, err)
}

// A winnerOnly is a record of which the members that a snapshot has no use for are not read.
type winnerOnly struct {
	Record
	Certificate skipped `json:"certificate"`
	Trials      skipped `json:"trials"`
	Evidence    skipped `json:"evidence"`
	Roof        skipped `json:"roof"`
	Prices      skipped `json:"prices"`
}

// A skipped value of JSON is checked for its form only.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// decodeWinner reads a record of any form.
func decodeWinner(text []byte) (Record, error) {
	var r winnerOnly
	err := json.Unmarshal(text, &r)
	return r.Record, err
}

// winnerFields are the members of a stored record in their order; nil: skipped.
var winnerFields = [...]struct {
	name string
	read func(w *winnerReader, r *Record)
}{
	{"fusion", func(w *winnerReader, r *Record) {
		w.expect(r.Fusion.UnmarshalText(w.string()) == nil)
	}},
	{"device", func(w *winnerReader, r *Record) {
		r.Device = w.same(&w.device)
	}},
	{"backend", func(w *winnerReader, r *Record) {
		r.Backend = w.same(&w.backend)
	}},
	{"codegen", func(w *winnerReader, r *Record) {
		r.Codegen = w.same(&w.codes)
	}},
	{"name", nil},
	{"source", nil},
	{"otherSources", nil},
	{"canonical", func(w *winnerReader, r *Record) {
		r.Canonical = string(w.string())
	}},
	{"safe", func(w *winnerReader, r *Record) {
		r.Safe = w.safeContext()
	}},
	{"plan", func(w *winnerReader, r *Record) {
		r.Plan = string(w.string())
	}},
	{"default", func(w *winnerReader, r *Record) {
		r.Default = string(w.string())
	}},
	{"dims", func(w *winnerReader, r *Record) {
		r.Dims = w.strings()
	}},
	{"seconds", func(w *winnerReader, r *Record) {
		r.Seconds = w.number()
	}},
	{"defaultSeconds", func(w *winnerReader, r *Record) {
		r.DefaultSeconds = w.number()
	}},
	{"speedup", func(w *winnerReader, r *Record) {
		w.numbers(r.Speedup[:])
	}},
	{"regret", func(w *winnerReader, r *Record) {
		r.Regret = w.number()
	}},
	{"certificate", nil},
	{"ties", func(w *winnerReader, r *Record) {
		r.Ties = w.strings()
	}},
	{"trials", func(w *winnerReader, r *Record) {
		w.skipTrials()
	}},
	{"checked", func(w *winnerReader, r *Record) {
		w.check = w.at
		r.Checked = w.bool()
	}},
	{"untimed", func(w *winnerReader, r *Record) {
		r.Untimed = w.bool()
	}},
	{"provisional", func(w *winnerReader, r *Record) {
		r.Provisional = w.bool()
	}},
	{"like", nil},
	{"evidence", nil},
	{"roof", nil},
	{"prices", nil},
	{"legal", func(w *winnerReader, r *Record) {
		r.Legal = w.count()
	}},
	{"tilings", func(w *winnerReader, r *Record) {
		r.Tilings = w.count()
	}},
	{"plans", func(w *winnerReader, r *Record) {
		r.Plans = w.count()
	}},
	{"morePlans", func(w *winnerReader, r *Record) {
		r.MorePlans = w.bool()
	}},
	{"proven", func(w *winnerReader, r *Record) {
		r.Proven = w.count()
	}},
	{"when", func(w *winnerReader, r *Record) {
		w.expect(r.When.UnmarshalJSON(w.skip()) == nil)
	}},
	{"by", func(w *winnerReader, r *Record) {
		r.By = w.same(&w.by)
	}},
	{"note", nil},
}

// scan reads a text; it is false for one of another form.
func (w *winnerReader) scan(text []byte, r *Record) bool {
	w.text, w.at, w.other = text, 0, false
	w.expect(w.byte() == '{')
	field := 0
	for !w.other {
		name := w.string()
		field = fieldFrom(field, name)
		w.expect(w.byte() == ':')
		if w.other || field == len(winnerFields) {
			return false
		}
		if read := winnerFields[field].read; read != nil {
			read(w, r)
		} else {
			w.skip()
		}
		field++
		if end := w.byte(); end == '}' {
			return !w.other && w.at == len(text)
		} else {
			w.expect(end == ',')
		}
	}
	return false
}

// fieldFrom is the next field of a name, from a number on.
func fieldFrom(n int, name []byte) int {
	for n < len(winnerFields) {
		if winnerFields[n].name == string(name) {
			break
		}
		n++
	}
	return n
}

// expect makes the text one of another form unless something is true.
func (w *winnerReader) expect(is bool) {
	w.other = w.other || !is
}

// byte is the next byte, 0 at the end.
func (w *winnerReader) byte() byte {
	if w.at >= len(w.text) {
		w.other = true
		return 0
	}
	w.at++
	return w.text[w.at-1]
}

// ahead reports whether a byte is the next.
func (w *winnerReader) ahead(c byte) bool {
	return w.at < len(w.text) && w.text[w.at] == c
}

// skip passes a value, which it returns.
func (w *winnerReader) skip() []byte {
	first := w.at
	for depth := 0; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '"':
			w.skipString()
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return w.text[first:w.at]
			}
			depth--
		case ',':
			if depth == 0 {
				return w.text[first:w.at]
			}
		}
	}
	w.other = true
	return nil
}

// behindTrials is the end of a list with the next member: it is nowhere in a string, where
// its quotation marks would be behind backslashes. In features that have a list and then
// such a member of their own, what follows is not the rest of a record, and the text is
// one of another form.
var behindTrials = []byte(`],"checked":`)

// skipTrials passes the list of trials, which is most of a record.
func (w *winnerReader) skipTrials() {
	n := bytes.Index(w.text[w.at:], behindTrials)
	if n < 0 || !w.ahead('[') {
		w.skip()
		return
	}
	w.at += n + 1
}

// skipString goes to the quotation mark that ends a string.
func (w *winnerReader) skipString() {
	for {
		n := bytes.IndexByte(w.text[w.at+1:], '"')
		if n < 0 {
			w.at = len(w.text)
			return
		}
		begin := w.at
		w.at += n + 1
		escapes := 0
		for before := w.at - 1; before > begin && w.text[before] == '\\'; before-- {
			escapes++
		}
		if escapes%2 == 0 {
			return
		}
	}
}

// escapes are the characters that stand behind a backslash.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/',
	'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// string is a string of ASCII, valid until the next.
func (w *winnerReader) string() []byte {
	w.expect(w.byte() == '"')
	w.room = w.room[:0]
	for w.at < len(w.text) {
		plain := plainBeginning(w.text[w.at:])
		w.at += len(plain)
		end := w.byte()
		if end == '"' && len(w.room) == 0 {
			return plain
		}
		w.room = append(w.room, plain...)
		switch {
		case end == '"':
			return w.room
		case end != '\\':
			w.other = true
			return nil
		}
		w.room = append(w.room, w.escape())
	}
	w.other = true
	return nil
}

// plainBeginning is the beginning of a text in which characters stand for themselves.
func plainBeginning(text []byte) []byte {
	for n, c := range text {
		if !isPlain[c] {
			return text[:n]
		}
	}
	return text
}

// isPlain holds of the characters that stand for themselves.
var isPlain = func() (is [256]bool) {
	for c := ' '; c < 0x80; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// escape is what stands behind a backslash, of ASCII.
func (w *winnerReader) escape() byte {
	c := w.byte()
	if c != 'u' {
		w.expect(escapes[c] != 0)
		return escapes[c]
	}
	if w.at+4 > len(w.text) {
		w.other = true
		return 0
	}
	digits := string(w.text[w.at : w.at+4])
	n, err := strconv.ParseUint(digits, 16, 7)
	w.at += 4
	w.expect(err == nil)
	return byte(n)
}

// same is a string that the last record had, too, as a rule.
func (w *winnerReader) same(last *string) string {
	text := w.string()
	if *last != string(text) {
		*last = string(text)
	}
	return *last
}

// safeContext is that of the last record, if it is the same.
func (w *winnerReader) safeContext() map[string]string {
	text := w.skip()
	if w.safe != nil && bytes.Equal(text, w.safe) {
		return w.safeOf
	}
	w.safeOf = nil
	err := json.Unmarshal(text, &w.safeOf)
	w.expect(err == nil)
	w.safe = append(w.safe[:0], text...)
	w.safeText = SafeText(w.safeOf)
	return w.safeOf
}

// number is a number.
func (w *winnerReader) number() float64 {
	text := w.skip()
	for _, c := range text {
		w.expect(isDigit(c) || c == '.' || c == '-' || c == '+' || c|' ' == 'e')
	}
	x, err := strconv.ParseFloat(string(text), 64)
	w.expect(err == nil)
	return x
}

// numbers reads a list of as many numbers as there is room for.
func (w *winnerReader) numbers(to []float64) {
	end := byte('[')
	for k := range to {
		w.expect(w.byte() == end)
		to[k] = w.number()
		end = ','
	}
	w.expect(w.byte() == ']')
}

// strings is a list of strings, or null.
func (w *winnerReader) strings() (all []string) {
	if !w.ahead('[') {
		w.expect(string(w.skip()) == "null")
		return nil
	}
	all = []string{}
	for end := w.byte(); end != ']' && !w.other; end = w.byte() {
		w.expect(end == '[' || end == ',')
		if end == '[' && w.ahead(']') {
			continue
		}
		all = append(all, string(w.string()))
	}
	return all
}

// count is a number without a fraction.
func (w *winnerReader) count() int64 {
	n, err := strconv.ParseInt(string(w.skip()), 10, 64)
	w.expect(err == nil)
	return n
}

// bool is true or false.
func (w *winnerReader) bool() bool {
	text := w.skip()
	is := string(text) == "true"
	w.expect(is || string(text) == "false")
	return is
}
