package hlo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo/replicas"
)

// Attributes follow the operands as name=value. Those that passes reason about have
// a field of Attrs; which these are is the table of this file, in the order in
// which they are printed. All others are kept as text, so that a dump of a newer
// XLA reads and prints as it is.

// An attrRow is an attribute that has a field of Attrs: how its text is read and
// how it is printed back.
type attrRow struct {
	name string
	// parse sets the field from the text after =.
	parse func(a *Attrs, text string) error
	// has reports whether the attribute is there.
	has func(a *Attrs) bool
	// append appends the text of an attribute that is there.
	append func(b []byte, a *Attrs) []byte
}

// intsAttr is the row of an attribute that is a list of integers, {0,1}.
func intsAttr(name string, field func(*Attrs) *[]int64) attrRow {
	return attrRow{
		name,
		func(a *Attrs, text string) (err error) {
			*field(a), err = parseInts(text)
			return err
		},
		func(a *Attrs) bool { return *field(a) != nil },
		func(b []byte, a *Attrs) []byte { return appendList(b, *field(a)) },
	}
}

// wordAttr is the row of an attribute that is one word and kept as written.
func wordAttr(name string, field func(*Attrs) *string) attrRow {
	return attrRow{name,
		func(a *Attrs, text string) error { *field(a) = text; return nil },
		func(a *Attrs) bool { return *field(a) != "" },
		func(b []byte, a *Attrs) []byte { return append(b, *field(a)...) }}
}

// countAttr is a positive integer that is 1 when it is left out.
func countAttr(name string, field func(*Attrs) *int64) attrRow {
	return attrRow{name,
		func(a *Attrs, text string) error { return setInt(field(a), text) },
		func(a *Attrs) bool { return *field(a) > 1 },
		func(b []byte, a *Attrs) []byte { return strconv.AppendInt(b, *field(a), 10) }}
}

// attrTable lists the typed attributes in the order they are printed.
// dimensions, index and iota_dimension depend on the opcode: see printAttrs.
var attrTable = []attrRow{
	intsAttr("lhs_batch_dims", func(a *Attrs) *[]int64 { return &a.LHSBatch }),
	intsAttr("lhs_contracting_dims", func(a *Attrs) *[]int64 { return &a.LHSContract }),
	intsAttr("rhs_batch_dims", func(a *Attrs) *[]int64 { return &a.RHSBatch }),
	intsAttr("rhs_contracting_dims", func(a *Attrs) *[]int64 { return &a.RHSContract }),
	{
		"window",
		parseWindow,
		func(a *Attrs) bool { return a.Window != nil },
		appendWindow,
	},
	{
		"dim_labels",
		parseDimLabels,
		func(a *Attrs) bool { return a.Conv != nil },
		appendDimLabels,
	},
	countAttr("feature_group_count", func(a *Attrs) *int64 { return &a.FeatureGroups }),
	countAttr("batch_group_count", func(a *Attrs) *int64 { return &a.BatchGroups }),
	intsAttr("dynamic_slice_sizes", func(a *Attrs) *[]int64 { return &a.SliceSizes }),
	{
		"replica_groups",
		parseReplicaGroups,
		func(a *Attrs) bool { return a.ReplicaGroups != nil },
		appendReplicaGroups,
	},
	{
		"source_target_pairs",
		parseSourceTargets,
		func(a *Attrs) bool { return a.SourceTargets != nil },
		appendSourceTargets,
	},
	{
		"slice",
		parseSlice,
		func(a *Attrs) bool { return a.Slice != nil },
		appendSlice,
	},
	{
		"padding",
		parsePadding,
		func(a *Attrs) bool { return len(a.Padding) > 0 },
		appendPadding,
	},
	wordAttr("direction", func(a *Attrs) *string { return &a.Direction }),
	wordAttr("type", func(a *Attrs) *string { return &a.CompareType }),
	wordAttr("kind", func(a *Attrs) *string { return &a.Kind }),
}

// isTyped reports whether a row of attrTable may have an attribute to print. Most
// instructions of a fusion have none, and a fingerprint asks for all of them.
func (a *Attrs) isTyped() bool {
	dot := a.LHSBatch != nil || a.RHSBatch != nil ||
		a.LHSContract != nil || a.RHSContract != nil
	window := a.Window != nil || a.Conv != nil ||
		a.FeatureGroups != 0 || a.BatchGroups != 0
	moved := a.Slice != nil || a.SliceSizes != nil ||
		a.Padding != nil
	word := a.Direction != "" || a.CompareType != "" ||
		a.Kind != ""
	return dot || window || moved || word ||
		a.ReplicaGroups != nil || a.SourceTargets != nil
}

// typedAttrOps lists the opcodes on which an attribute of a common name is typed;
// elsewhere (padding of a custom-call, type of anything) it stays text.
var typedAttrOps = map[string][]Opcode{
	"padding": {OpPad}, "slice": {OpSlice}, "direction": {OpCompare}, "type": {OpCompare}, "kind": {OpFusion},
	"window": {OpConvolution, OpReduceWindow, OpSelectAndScatter}, "dim_labels": {OpConvolution},
	"feature_group_count": {OpConvolution}, "batch_group_count": {OpConvolution}, "dynamic_slice_sizes": {OpDynamicSlice},
	"replica_groups":      {OpAllGather, OpAllGatherStart, OpAllReduce, OpAllReduceStart, OpAllToAll, OpCollectiveBroadcast, OpReduceScatter},
	"source_target_pairs": {OpCollectivePermute, OpCollectivePermuteStart},
	"select":              {OpSelectAndScatter}, "scatter": {OpSelectAndScatter},
	"iota_dimension": {OpIota}, "index": {OpGetTupleElement},
}

// parseInts reads {1,2}; an empty list is nil.
func parseInts(text string) ([]int64, error) {
	inner, ok := unbrace(text)
	if !ok {
		return nil, fmt.Errorf("expected {…}, found %q", text)
	}
	var v []int64
	for _, word := range splitList(inner) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an integer", word)
		}
		v = append(v, n)
	}
	return v, nil
}

// unbrace returns the text inside one pair of braces, and false when text is
// not in braces.
func unbrace(text string) (string, bool) {
	if len(text) < 2 || text[0] != '{' ||
		text[len(text)-1] != '}' {
		return "", false
	}
	return strings.TrimSpace(text[1 : len(text)-1]), true
}

// splitList splits at commas outside brackets, trimming blanks.
func splitList(text string) []string {
	var words []string
	depth, start := 0, 0
	for k := 0; k <= len(text); k++ {
		switch {
		case k == len(text) ||
			text[k] == ',' && depth == 0:
			if word := strings.TrimSpace(text[start:k]); word != "" {
				words = append(words, word)
			}
			start = k + 1
		case closing[text[k]] != 0:
			depth++
		case text[k] == ')' ||
			text[k] == ']' || text[k] == '}':
			depth--
		}
	}
	return words
}

// appendList prints a list as {1,2}.
func appendList(b []byte, v []int64) []byte {
	return append(appendInts(append(b, '{'), v), '}')
}

// parseSlice reads {[0:10], [1:9:2]}.
func parseSlice(a *Attrs, text string) error {
	inner, ok := unbrace(text)
	if !ok {
		return fmt.Errorf("expected {[start:limit:stride], …}, found %q", text)
	}
	for _, word := range splitList(inner) {
		r := SliceDim{Stride: 1}
		parts := strings.Split(
			strings.TrimSuffix(strings.TrimPrefix(word, "["), "]"), ":",
		)
		if len(parts) < 2 || len(parts) > 3 {
			return fmt.Errorf("%q is not [start:limit:stride]", word)
		}
		for k, field := range []*int64{
			&r.Start, &r.Limit, &r.Stride,
		}[:len(parts)] {
			v, err := strconv.ParseInt(
				strings.TrimSpace(parts[k]), 10, 64,
			)
			if err != nil {
				return fmt.Errorf("%q is not [start:limit:stride]", word)
			}
			*field = v
		}
		a.Slice = append(a.Slice, r)
	}
	return nil
}

// appendSlice prints {[start:limit:stride], …}; a stride of 1 is left out, as
// XLA does.
func appendSlice(b []byte, a *Attrs) []byte {
	b = append(b, '{')
	for k, r := range a.Slice {
		if k > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '[')
		b = strconv.AppendInt(b, r.Start, 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, r.Limit, 10)
		if r.Stride != 1 {
			b = append(b, ':')
			b = strconv.AppendInt(b, r.Stride, 10)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// parsePadding reads 0_0x1_1_2.
func parsePadding(a *Attrs, text string) error {
	for _, word := range strings.Split(text, "x") {
		parts := strings.Split(word, "_")
		if text == "" {
			break
		}
		if len(parts) < 2 || len(parts) > 3 {
			return fmt.Errorf("%q is not low_high or low_high_interior", word)
		}
		var p PadDim
		for k, field := range []*int64{
			&p.Low, &p.High, &p.Interior,
		}[:len(parts)] {
			v, err := strconv.ParseInt(parts[k], 10, 32)
			if err != nil {
				return fmt.Errorf("%q is not low_high or low_high_interior", word)
			}
			*field = v
		}
		a.Padding = append(a.Padding, p)
	}
	return nil
}

// appendPadding prints low_high[_interior] for each dimension, joined by x.
func appendPadding(b []byte, a *Attrs) []byte {
	for k, p := range a.Padding {
		if k > 0 {
			b = append(b, 'x')
		}
		b = strconv.AppendInt(b, p.Low, 10)
		b = append(b, '_')
		b = strconv.AppendInt(b, p.High, 10)
		if p.Interior != 0 {
			b = append(b, '_')
			b = strconv.AppendInt(b, p.Interior, 10)
		}
	}
	return b
}

// parseReplicaGroups reads the groups of a collective in any of their notations.
func parseReplicaGroups(a *Attrs, text string) (err error) {
	a.ReplicaGroups, err = replicas.Parse(text)
	return err
}

// parseLists reads {{0,1},{2,3}}.
func parseLists(text string) ([][]int64, error) {
	inner, ok := unbrace(text)
	if !ok {
		return nil, fmt.Errorf("expected {{…},…}, found %q", text)
	}
	lists := [][]int64{}
	for _, word := range splitList(inner) {
		list, err := parseInts(word)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// parseSourceTargets reads the {{0,1},{1,2}} of a collective-permute: pairs of
// the replica that sends and the one that receives.
func parseSourceTargets(a *Attrs, text string) (err error) {
	if a.SourceTargets, err = parseLists(text); err != nil {
		return err
	}
	for _, pair := range a.SourceTargets {
		if len(pair) != 2 {
			return fmt.Errorf("%q is not a list of {source,target}", text)
		}
	}
	return nil
}

// appendSourceTargets is the inverse of parseSourceTargets.
func appendSourceTargets(b []byte, a *Attrs) []byte {
	return appendLists(b, a.SourceTargets)
}

// appendReplicaGroups prints the groups as lists, whichever form they were read
// in.
func appendReplicaGroups(b []byte, a *Attrs) []byte {
	return appendLists(b, a.ReplicaGroups)
}

// appendLists prints {{0,1},{2}}.
func appendLists(b []byte, lists [][]int64) []byte {
	b = append(b, '{')
	for k, g := range lists {
		if k > 0 {
			b = append(b, ',')
		}
		b = appendInts(append(b, '{'), g)
		b = append(b, '}')
	}
	return append(b, '}')
}

// The attributes that say why nothing is known of an instruction: it depends on an open
// extent, or is not read.
const (
	openReason   = "open_extents"
	unreadReason = "unread"
)

// isReason reports whether an attribute is one of these.
func isReason(name string) bool { return name == openReason || name == unreadReason }

// Unknown is the reason why nothing is known of an instruction but, perhaps, its shape:
// the parameter whose extents are open and how to give them, or an operation that is not
// read. It is "" for any other instruction.
func (i *Instr) Unknown() string {
	why, err := strconv.Unquote(cmp.Or(i.Text(openReason), i.Text(unreadReason)))
	if err != nil {
		return ""
	}
	return why
}

// forget makes a custom-call of i, of which nothing but its shape is known, for this
// reason, so that the rest of the module can be used. What has no result is there for its
// side effect.
func (i *Instr) forget(why string) {
	i.Attrs.Other = append(
		slices.Clone(i.Attrs.Other),
		Attr{"custom_call_target", strconv.Quote(string(i.Op))},
		Attr{unreadReason, strconv.Quote(why)},
	)
	i.Attrs = Attrs{Other: append(i.Attrs.Other, effectOf(i.Shape, false)...)}
	i.Op, i.Literal = OpCustomCall, nil
}

// effectOf is the attribute of an operation that is not read and has a side effect: it
// moves data of the host's, or has no result.
func effectOf(result Shape, moves bool) []Attr {
	if !moves && (result.DType != Tuple || len(result.Tuple) > 0) {
		return nil
	}
	return []Attr{{sideEffect, "true"}}
}

// The frontend attribute in which a text for XLA keeps the reason why an operation is not
// read.
const (
	frontendAttributes = "frontend_attributes"
	unreadFrontend     = "tilewright_unread="
)

// frontendAttrs are the frontend attributes of a text {a="b",c="d"}, without the reason why
// an operation is not read, and that reason.
func frontendAttrs(text string) []Attr {
	before, after, found := strings.Cut(text, unreadFrontend)
	why, err := strconv.QuotedPrefix(after)
	if !found || err != nil {
		return []Attr{{frontendAttributes, text}}
	}
	after = strings.TrimLeft(after[len(why):], " ")
	rest := strings.TrimRight(before, ", ") + after
	if after, next := strings.CutPrefix(after, ","); next {
		rest = before + strings.TrimLeft(after, " ")
	}
	attrs := []Attr{{unreadReason, why}}
	if rest != "{}" {
		attrs = append(attrs, Attr{frontendAttributes, rest})
	}
	return attrs
}

// withReason is frontend attributes with the reason why an operation is not read.
func withReason(frontend, why string) string {
	inside := strings.TrimSuffix(strings.TrimPrefix(frontend, "{"), "}")
	if strings.TrimSpace(inside) != "" {
		inside += ","
	}
	return "{" + inside + unreadFrontend + why + "}"
}
