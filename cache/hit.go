package cache

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
)

// A Hit is a copy of one record of a snapshot, without its samples. Its byte slices
// belong to it and are overwritten when it is used for another Get or Nearest, which
// therefore allocate nothing; a Hit is for one goroutine at a time.
type Hit struct {
	Fusion  Fingerprint
	Device  []byte
	Backend []byte
	Codegen []byte // revision of the code generator

	Plan    []byte // the winner, as text
	Default []byte // the plan it was compared with; empty if unknown
	Safe    []byte // SafeText of the safe context it was measured in
	By      []byte // the tool that made the record

	Seconds        float64    // median of the winner
	DefaultSeconds float64    // median of the default; 0 if unknown
	Speedup        [3]float64 // over the default: median, lower and upper end; 0 is unknown
	Regret         float64    // see Record.Regret; −1 is unknown
	Unix           int64      // when it was made, in seconds since 1970

	Checked, Untimed, Provisional bool

	ties    []byte // each behind its length
	extents []byte // of the structure, as varints
	copied  []byte // the encoded record
}

// When is the time at which the record was made.
func (h *Hit) When() time.Time { return time.Unix(h.Unix, 0).UTC() }

// Ties are the plans that are statistically equal to the winner.
func (h *Hit) Ties() []string {
	var all []string
	for b := h.ties; len(b) > 0; {
		text, rest, ok := cutText(b)
		if !ok {
			break
		}
		all = append(all, string(text))
		b = rest
	}
	return all
}

// SafeDiff lists how the safe context of the hit differs from another; see the
// function SafeDiff.
func (h *Hit) SafeDiff(now map[string]string) []string {
	if string(h.Safe) == SafeText(now) {
		return nil
	}
	var stored map[string]string
	err := json.Unmarshal(h.Safe, &stored)
	if err != nil {
		return []string{"the safe context it was measured in is not known"}
	}
	return SafeDiff(stored, now)
}

// SafeText is the canonical text of a safe context: a JSON object with sorted
// names. A compiler computes its own once and compares it with Hit.Safe.
func SafeText(safe map[string]string) string {
	text, err := json.Marshal(safe)
	if err != nil || len(safe) == 0 { // maps of strings always marshal
		return "{}"
	}
	return string(text)
}

// The bits of the byte of flags.
const (
	flagChecked = 1 << iota
	flagUntimed
	flagProvisional
)

// appendRecord appends the encoding of a record; see Snapshot.
func appendRecord(out []byte, r *Record, s Structure) []byte {
	at := len(out)
	out = append(out, 0, 0, 0, 0)
	out = append(out, s.Print[:]...)
	out = r.Key.append(out)
	out = appendText(out, string(s.appendExtents(nil)))
	for _, x := range [...]float64{r.Seconds, r.DefaultSeconds, r.Speedup[0], r.Speedup[1], r.Speedup[2], r.Regret} {
		out = little.AppendUint64(out, math.Float64bits(x))
	}
	out = little.AppendUint64(out, uint64(r.When.Unix()))
	out = append(out, r.flags())
	for _, text := range [...]string{r.Plan, r.Default, SafeText(r.Safe), r.By} {
		out = appendText(out, text)
	}
	for _, tie := range r.Ties {
		out = appendText(out, tie)
	}
	little.PutUint32(out[at:], checksum(out[at+4:]))
	return out
}

// flags are the record's properties that are true or false.
func (r *Record) flags() (b byte) {
	for flag, is := range map[byte]bool{
		flagChecked: r.Checked, flagUntimed: r.Untimed, flagProvisional: r.Provisional,
	} {
		if is {
			b |= flag
		}
	}
	return b
}

// Where the parts of an encoded record begin that have a fixed place, and the bytes
// of its numbers.
const (
	structureAt   = 4
	fusionAt      = structureAt + 32
	namesAt       = fusionAt + 32
	recordNumbers = 7*8 + 1
)

// read decodes an encoded record, whose bytes become the hit's. It reads nothing
// outside of b and is false where b is no record.
func (h *Hit) read(b []byte) bool {
	if len(b) < namesAt || checksum(b[4:]) != little.Uint32(b) {
		return false
	}
	copy(h.Fusion[:], b[fusionAt:])
	b = b[namesAt:]
	ok := true
	text := func(to *[]byte) {
		var more bool
		*to, b, more = cutText(b)
		ok = ok && more
	}
	text(&h.Device)
	text(&h.Backend)
	text(&h.Codegen)
	text(&h.extents)
	if !ok || len(b) < recordNumbers {
		return false
	}
	h.readNumbers(b)
	b = b[recordNumbers:]
	text(&h.Plan)
	text(&h.Default)
	text(&h.Safe)
	text(&h.By)
	h.ties = b
	return ok
}

// readNumbers decodes the fixed part of a record.
func (h *Hit) readNumbers(b []byte) {
	for k, to := range [...]*float64{
		&h.Seconds, &h.DefaultSeconds, &h.Speedup[0], &h.Speedup[1], &h.Speedup[2], &h.Regret,
	} {
		*to = math.Float64frombits(little.Uint64(b[8*k:]))
	}
	h.Unix = int64(little.Uint64(b[48:]))
	flags := b[56]
	h.Checked = flags&flagChecked != 0
	h.Untimed = flags&flagUntimed != 0
	h.Provisional = flags&flagProvisional != 0
}

// appendText appends a text behind its length in bytes.
func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// cutText reads a text that stands behind its length.
func cutText(b []byte) (text, rest []byte, ok bool) {
	n, width := binary.Uvarint(b)
	if width <= 0 || n > uint64(len(b)-width) {
		return nil, nil, false
	}
	end := width + int(n)
	return b[width:end:end], b[end:], true
}

// copyOf makes the hit hold a copy of an encoded record.
func (h *Hit) copyOf(b []byte) bool {
	h.copied = append(h.copied[:0], b...)
	return h.read(h.copied)
}
