package serve

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/tilewright/tilewright/query"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// A Request is one question, a line of JSON. A field that its operation does not name
// has to be absent.
type Request struct {
	// ID is a number or a string; the response has the same.
	ID json.RawMessage `json:"id,omitempty"`
	// Op is the operation: a name of Ops.
	Op string `json:"op"`
	// Text of a module, HLO or StableHLO; one without fusions is split into some.
	Text string `json:"text,omitempty"`
	// Shape is the extents of the parameters that the text leaves open, by name; those
	// of "?", one number, are every open extent.
	Shape hlo.Extents `json:"shape,omitempty"`
	// Fusion is the name of the one that is meant; empty: all.
	Fusion string `json:"fusion,omitempty"`
	// Fingerprint of the canonical form of a fusion, hexadecimal.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Sizes of tiles, one for each dimension; without them tiles are symbolic.
	Sizes []int64 `json:"sizes,omitempty"`
	// Tile is the ids of one tile, in the order of the dimensions; needs Sizes.
	Tile []int64 `json:"tile,omitempty"`
	// Require "exact" answers "none" where nothing is stored.
	Require string `json:"require,omitempty"`
}

// A Response is the answer to one request, a line of JSON: Result or Error.
type Response struct {
	// ID of the request; null where it could not be read.
	ID json.RawMessage `json:"id"`
	// Result is the document of the operation.
	Result any `json:"result,omitempty"`
	// Error is why there is none.
	Error *Error `json:"error,omitempty"`
}

// An Error is why a request has no result.
type Error struct {
	// Kind is "request" (the line is no request), "input" (its text cannot be read
	// or analysed), "store" (the database or snapshot) or "internal" (a bug).
	Kind string `json:"kind"`
	// Message for people.
	Message string `json:"message"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// requestf makes an error of kind "request".
func requestf(format string, args ...any) error {
	return &Error{"request", fmt.Sprintf(format, args...)}
}

// An Op is one operation of the protocol.
type Op struct {
	// Name in a request, and a line for people.
	Name, About string
	// Fields that a request has to have, and those that it may have.
	Needs, Takes []string
	// Result is a value of the type of the result.
	Result any

	answer func(context.Context, *query.Store, Request) (any, error)
}

// A Version names the program that answers.
type Version struct {
	// Version of the program: "tilewright v1.2.3".
	Version string `json:"version"`
	// Protocol is the number of the protocol that it speaks.
	Protocol int `json:"protocol"`
}

// Protocol is the number of the protocol; a request that one number answers is
// answered by later ones.
const Protocol = 1

// Prints is the result of the operation fingerprint.
type Prints struct {
	// Fusions in the order in which they run.
	Fusions []query.Print `json:"fusions"`
}

// Tiles is the result of the operation tiles.
type Tiles struct {
	// Fusions in the order in which they run, as show -json prints them.
	Fusions []*query.Fusion `json:"fusions"`
	// Outside are the instructions in no fusion, with the reasons.
	Outside []query.Outside `json:"outside,omitempty"`
}

// Ops lists the operations of the protocol. "region" is reserved.
func Ops() []Op {
	return []Op{
		{
			Name: "lookup", About: "the plan of every fusion of a text",
			Needs:  []string{"text"},
			Takes:  []string{"shape", "fusion", "require"},
			Result: query.Lookup{}, answer: lookup,
		},
		{
			Name: "get", About: "the plan of a fingerprint",
			Needs:  []string{"fingerprint"},
			Result: query.Winner{}, answer: get,
		},
		{
			Name: "plan", About: "the default plan of every fusion, whatever is stored",
			Needs:  []string{"text"},
			Takes:  []string{"shape", "fusion"},
			Result: query.Lookup{}, answer: plan,
		},
		{
			Name: "fingerprint", About: "the fingerprint of every fusion",
			Needs:  []string{"text"},
			Takes:  []string{"shape"},
			Result: Prints{}, answer: fingerprint,
		},
		{
			Name: "partition", About: "how a module is split into fusions",
			Needs:  []string{"text"},
			Takes:  []string{"shape"},
			Result: query.Partition{}, answer: partition,
		},
		{
			Name: "tiles", About: "indexing maps, tiles and constraints",
			Needs:  []string{"text"},
			Takes:  []string{"shape", "fusion", "sizes", "tile"},
			Result: Tiles{}, answer: tiles,
		},
		{
			Name: "version", About: "the version of the program and of the protocol",
			Result: Version{}, answer: version,
		},
	}
}

// ops are the operations by name.
var ops = func() map[string]Op {
	m := map[string]Op{}
	for _, op := range Ops() {
		m[op.Name] = op
	}
	return m
}()

// Answer answers a request. It never panics: what fails inside is an Error of kind
// "internal". A request whose ctx ends before it is answered has its cause as the error,
// of kind "input".
func Answer(
	ctx context.Context, s *query.Store, r Request,
) (resp Response) {
	resp.ID = r.ID
	if resp.ID == nil {
		resp.ID = json.RawMessage("null")
	}
	defer func() {
		if p := recover(); p != nil {
			resp.Result = nil
			resp.Error = &Error{"internal", fmt.Sprintf("internal error: %v; this is a bug in tilewright\n%s", p, debug.Stack())}
		}
	}()
	result, err := r.answer(ctx, s)
	if err != nil {
		resp.Error = kindOf(err)
		return resp
	}
	resp.Result = inFields(result)
	return resp
}

// flagged is how the readers of texts ask for extents, as the command line takes them.
var flagged = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-shape (\S+)=([0-9]+(?:x[0-9]+)*)`) })

// inField asks for extents as the field shape of a request takes them: {"x": [8, 128]}
// where the flag is -shape x=8x128. The reader of a text does not know who asks, and its
// reason is a part of the module that it made.
func inField(text string) string {
	if !strings.Contains(text, "-shape ") {
		return text
	}
	return flagged().ReplaceAllStringFunc(text, func(flag string) string {
		m := flagged().FindStringSubmatch(flag)
		return fmt.Sprintf("shape {%q: [%s]}", m[1], strings.ReplaceAll(m[2], "x", ", "))
	})
}

// inFields does so in the reasons of a result, wherever it has some: of what is in no
// fusion, of fusions without a plan and of those without tiles. What several answers share,
// as the list of what is outside of a text that is remembered, is not changed.
func inFields(result any) any {
	switch r := result.(type) {
	case *query.Lookup:
		r.Outside = reasonsInFields(r.Outside)
		for k := range r.Fusions {
			r.Fusions[k].Reason = inField(r.Fusions[k].Reason)
		}
	case *query.Partition:
		r.Outside = reasonsInFields(r.Outside)
	case *Tiles:
		r.Outside = reasonsInFields(r.Outside)
		for _, f := range r.Fusions {
			f.EachReason(inField)
		}
	}
	return result
}

// reasonsInFields is a copy of a list of instructions outside of fusions, with its reasons
// so.
func reasonsInFields(all []query.Outside) []query.Outside {
	all = slices.Clone(all)
	for k := range all {
		all[k].Reason = inField(all[k].Reason)
	}
	return all
}

// AnswerLine answers a line; one that is no request is answered by an Error.
func AnswerLine(
	ctx context.Context, s *query.Store, line []byte,
) Response {
	r, err := Parse(line)
	return answerParsed(ctx, s, r, err)
}

// answerParsed answers a request, or the error of a line that is none.
func answerParsed(
	ctx context.Context, s *query.Store, r Request, err error,
) Response {
	if err == nil {
		return Answer(ctx, s, r)
	}
	if r.ID == nil {
		r.ID = json.RawMessage("null")
	}
	return Response{ID: r.ID, Error: kindOf(err)}
}

// answer checks the fields and calls the operation.
func (r Request) answer(ctx context.Context, s *query.Store) (any, error) {
	op, ok := ops[r.Op]
	if !ok {
		var names []string
		for _, o := range Ops() {
			names = append(names, o.Name)
		}
		return nil, requestf("there is no operation %.40q; there are %s", r.Op, strings.Join(names, ", "))
	}
	for _, f := range r.fields() {
		needed := slices.Contains(op.Needs, f.name)
		switch {
		case needed && !f.set:
			return nil, requestf("%s needs the field %q", r.Op, f.name)
		case f.set && !needed && !slices.Contains(op.Takes, f.name):
			return nil, requestf("%s takes no field %q", r.Op, f.name)
		}
	}
	if r.Require != "" && r.Require != "exact" {
		return nil, requestf("require is \"exact\" or absent, not %.40q", r.Require)
	}
	if r.Shape != nil {
		text, err := query.Closed("text", []byte(r.Text), r.Shape)
		if err != nil {
			return nil, err
		}
		r.Text = text
	}
	return op.answer(ctx, s, r)
}

// A field is a field of a request but for ID and Op.
type field struct {
	name string
	set  bool
}

// fields lists the fields and whether they are set.
func (r Request) fields() []field {
	return []field{
		{"text", r.Text != ""},
		{"shape", r.Shape != nil},
		{"fusion", r.Fusion != ""},
		{"fingerprint", r.Fingerprint != ""},
		{"sizes", r.Sizes != nil},
		{"tile", r.Tile != nil},
		{"require", r.Require != ""},
	}
}

// kindOf sorts an error: errors of a text are "input" unless they say otherwise.
func kindOf(err error) *Error {
	var of *Error
	var store *query.StoreError
	switch {
	case errors.As(err, &of):
		return of
	case errors.As(err, &store):
		return &Error{"store", err.Error()}
	}
	return &Error{"input", inField(err.Error())}
}

// Parse reads a request from a line. Its ID is there even with an error, if it could
// be read.
func Parse(line []byte) (r Request, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err = dec.Decode(&r)
	if err == nil && dec.More() {
		err = errors.New("there is text after its end")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.HasPrefix(wrong.Field, "shape") {
		return r, requestf(`shape: one value a parameter, as {"arg0": [8, 128]}; several values are as many requests`)
	}
	if err != nil {
		return r, requestf("not a request: %v", err)
	}
	if len(r.ID) > 0 && strings.IndexByte(`"-0123456789`, r.ID[0]) < 0 {
		r.ID = nil
		return r, requestf("an id is a number or a string")
	}
	return r, nil
}

// lookup answers from the store, with the nearest winner or the default plan where
// nothing is stored, unless the request wants exact answers only.
func lookup(
	ctx context.Context, s *query.Store, r Request,
) (any, error) {
	return s.Lookup(ctx, r.Text, r.Fusion, r.Require == "exact")
}

// get answers by fingerprint. A compiler that keeps the fingerprints of its fusions asks
// this way: no text is parsed.
func get(
	_ context.Context, s *query.Store, r Request,
) (any, error) {
	var print [32]byte
	if len(r.Fingerprint) != hex.EncodedLen(len(print)) {
		return nil, requestf("a fingerprint has 64 hexadecimal digits")
	}
	if _, err := hex.Decode(print[:], []byte(r.Fingerprint)); err != nil {
		return nil, requestf("a fingerprint has 64 hexadecimal digits: %v", err)
	}
	return s.Get(print)
}

// plan answers with default plans, whatever is stored: what a compiler takes that must
// not depend on the contents of a cache.
func plan(
	ctx context.Context, s *query.Store, r Request,
) (any, error) {
	split, err := query.Read(ctx, "text", []byte(r.Text), s.Target())
	if err != nil {
		return nil, err
	}
	all, err := named(split.Module, r.Fusion)
	if err != nil {
		return nil, err
	}
	l := query.Lookup{Fusions: []query.Winner{}, Outside: query.NewOutside(split.Outside)}
	for _, c := range all {
		w := s.Default(ctx, c)
		w.Source = split.Module.SourceOf(c)
		l.Fusions = append(l.Fusions, w)
	}
	return &l, nil
}

// fingerprint lists the fusions of a text, by which a client may ask get afterwards.
func fingerprint(
	ctx context.Context, s *query.Store, r Request,
) (any, error) {
	all, err := s.Prints(ctx, r.Text)
	return Prints{all}, err
}

// partition, one of the operations, says how a module is split, and what the fusions cost beside the operations
// one by one.
func partition(
	ctx context.Context, s *query.Store, r Request,
) (any, error) {
	split, err := query.Read(ctx, "text", []byte(r.Text), s.Target())
	if err != nil {
		return nil, err
	}
	return query.NewPartition(split), nil
}

// tiles, one of the operations, describes fusions: symbolic without sizes, with the numbers of a tiling, or with
// those of one of its tiles.
func tiles(
	ctx context.Context, s *query.Store, r Request,
) (any, error) {
	split, err := query.Read(ctx, "text", []byte(r.Text), s.Target())
	if err != nil {
		return nil, err
	}
	all, err := named(split.Module, r.Fusion)
	if err != nil {
		return nil, err
	}
	if r.Sizes == nil && r.Tile != nil {
		return nil, requestf("tile needs sizes")
	}
	if r.Sizes != nil && len(all) > 1 {
		return nil, requestf("there are %d fusions; choose one by the field fusion", len(all))
	}
	t := Tiles{Fusions: []*query.Fusion{}, Outside: query.NewOutside(split.Outside)}
	callers := split.Module.Callers()
	for _, c := range all {
		f, err := query.NewFusion(ctx, c, callers[c], query.Point{Sizes: symtile.Tiling(r.Sizes), IDs: r.Tile})
		if err != nil {
			return nil, err
		}
		t.Fusions = append(t.Fusions, f)
	}
	return &t, nil
}

// version names the program, so that a client can say with which one it spoke.
func version(context.Context, *query.Store, Request) (any, error) {
	return Version{tuner.Version(), Protocol}, nil
}
