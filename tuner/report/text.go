package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tilewright/tilewright/cache"
)

// Seconds formats a time, given in seconds, with three digits and a unit:
// "1.23 ms". 0 is "-".
func Seconds(s float64) string {
	switch {
	case s == 0:
		return "-"
	case s < 0:
		return "-" + Seconds(-s)
	case s < 1e-6:
		return fmt.Sprintf("%.3g ns", s*1e9)
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// PairedSpeed says what the speed-ups and the times of a record are.
const PairedSpeed = "a speed-up is the median of default ÷ winner in the same blocks of the race; a time is the median of all runs of its plan, so that the ratio of two times is another number"

// Standing says of a provisional record how far its race has come; "" of others.
func Standing(r *cache.Record) string {
	switch n := len(r.Trials); {
	case !r.Provisional:
		return ""
	case n == 0: // of a snapshot
		return "provisional: not raced, or the race is not over"
	case n == 1:
		return "provisional: checked and timed, not raced"
	default:
		return fmt.Sprintf("provisional: the race of %d plans is not over", n)
	}
}

// UpperEnd formats an end of an interval of ratios, which is 0 where it is unknown.
func UpperEnd(ratio float64) string {
	if ratio == 0 {
		return "?"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// percent formats a record's regret, which is negative where it is unknown.
func percent(regret float64) string {
	if regret < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", 100*regret)
}

// Counted is a number of things: "1 block", "2 blocks".
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// share formats a part of a whole.
func share(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// Printable spells what could make a terminal or a page show something else than what
// is written: control characters but for tabs and line breaks, those that turn the
// direction of text (Unicode's property Bidi_Control), separators of lines and paragraphs,
// and bytes that are not UTF-8. ESC reads \u001b, as in JSON.
func Printable(text string) string {
	first := notInert(text)
	if first < 0 {
		return text
	}
	var out strings.Builder
	out.WriteString(text[:first])
	text = text[first:]
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case inert(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out.String()
}

// notInert is where the first character begins that Printable spells; −1 where there is none.
func notInert(text string) int {
	for k := 0; k < len(text); {
		if c := text[k]; ' ' <= c && c < unicode.MaxASCII || c == '\n' {
			k++ // most are
			continue
		}
		r, size := utf8.DecodeRuneInString(text[k:])
		if r == utf8.RuneError && size == 1 || !inert(r) {
			return k
		}
		k += size
	}
	return -1
}

// inert reports whether a character is shown as itself and changes nothing around it.
func inert(r rune) bool {
	if ' ' <= r && r < unicode.MaxASCII { // most are, and tables need not be asked
		return true
	}
	return r == '\n' || r == '\t' ||
		!unicode.IsControl(r) && !unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
