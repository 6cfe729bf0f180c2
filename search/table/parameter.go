package table

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/search"
)

// column are the different values of parameter i, in the order in which the lines have
// them.
func column(lines []Line, i int) []json.RawMessage {
	seen := map[string]bool{}
	var out []json.RawMessage
	for _, x := range lines {
		if text := plain(x.Values[i]); !seen[text] {
			seen[text] = true
			out = append(out, x.Values[i])
		}
	}
	return out
}

// plain is a value as text: a string without its quotes, a number in its shortest form.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	if f, isNumber := numberOf(v); isNumber {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strings.TrimSpace(string(v))
}

// numberOf is the number of a value: false is 0, true is 1. A text of digits is none, and
// neither is null.
func numberOf(v json.RawMessage) (float64, bool) {
	var b bool
	if json.Unmarshal(v, &b) == nil && string(v) != "null" {
		if b {
			return 1, true
		}
		return 0, true
	}
	var f float64
	if err := json.Unmarshal(v, &f); err != nil || string(v) == "null" {
		return 0, false
	}
	return f, true
}

// searched is the parameter as a search sees it. Numbers are sorted; texts keep their
// order, which only a header that asks for it gives a meaning.
func (p Parameter) searched(values []json.RawMessage) (search.Parameter, error) {
	out := search.Parameter{Name: p.Name}
	if p.Name == "" {
		return out, fmt.Errorf("a parameter has no name")
	}
	switch p.Order {
	case "", "ascending":
		out.Unordered = p.Type == "text" && p.Order == ""
	case "none":
		out.Unordered = true
	default:
		return out, fmt.Errorf("parameter %s: order %q; it is ascending or none", p.Name, p.Order)
	}
	switch p.Type {
	case "text":
		for _, v := range values {
			out.Values = append(out.Values, plain(v))
		}
		return out, p.distinct(out)
	case "integer", "real", "flag":
		for _, v := range values {
			f, isNumber := numberOf(v)
			if !isNumber {
				return out, fmt.Errorf("parameter %s: %s is no number", p.Name, v)
			}
			out.Numbers = append(out.Numbers, f)
		}
		slices.SortFunc(out.Numbers, cmp.Compare[float64])
		for _, f := range out.Numbers {
			out.Values = append(out.Values, strconv.FormatFloat(f, 'g', -1, 64))
		}
		return out, p.distinct(out)
	}
	return out, fmt.Errorf("parameter %s: type %q; it is integer, real, flag or text", p.Name, p.Type)
}

// distinct refuses a value that is there twice, in whichever spelling.
func (p Parameter) distinct(x search.Parameter) error {
	sorted := slices.Sorted(slices.Values(x.Values))
	if len(slices.Compact(sorted)) < len(x.Values) {
		return fmt.Errorf("parameter %s has a value twice", p.Name)
	}
	return nil
}

// typeOf is the type of a parameter whose table does not say it: a number if all of its
// values are.
func typeOf(values []json.RawMessage) string {
	for _, v := range values {
		if _, isNumber := numberOf(v); !isNumber {
			return "text"
		}
	}
	return "real"
}
