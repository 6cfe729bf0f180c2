package cache

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
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
	Dims    []byte // names of the dimensions of the plans, between commas; may be empty
	Safe    []byte // SafeText of the safe context it was measured in
	By      []byte // the tool that made the record

	Seconds        float64    // median of the winner
	DefaultSeconds float64    // median of the default; 0 if unknown
	Speedup        [3]float64 // over the default: median, lower and upper end; 0 is unknown
	Regret         float64    // see Record.Regret; −1 is unknown
	Unix           int64      // when it was made, in seconds since 1970

	Checked, Untimed, Provisional bool

	asked     asked    // texts of the last key
	origin    *origin  // of the record
	structure uint64   // hash of the structure and backend
	ties      []byte   // each behind its length
	copied    []byte   // the encoded record
	logs      []uint32 // of the extents that Nearest is asked for
}

// When is the time at which the record was made.
func (h *Hit) When() time.Time { return time.Unix(h.Unix, 0).UTC() }

// DimNames are the names of the dimensions of the plans; nil if they are not known.
func (h *Hit) DimNames() []string {
	if len(h.Dims) == 0 {
		return nil
	}
	return strings.Split(string(h.Dims), ",")
}

// Record is what the hit says, with a context of its own memory: without the name, the
// canonical text and the samples, which a snapshot does not have.
func (h *Hit) Record() Record {
	r := Record{
		Plan:           string(h.Plan),
		Default:        string(h.Default),
		Dims:           h.DimNames(),
		Seconds:        h.Seconds,
		DefaultSeconds: h.DefaultSeconds,
		Speedup:        h.Speedup,
		Regret:         h.Regret,
		Ties:           h.Ties(),
		Checked:        h.Checked,
		Untimed:        h.Untimed,
		Provisional:    h.Provisional,
		When:           h.When(),
		By:             string(h.By),
	}
	r.Fusion = h.Fusion
	r.Device = string(h.Device)
	r.Backend = string(h.Backend)
	r.Codegen = string(h.Codegen)
	_ = json.Unmarshal(h.Safe, &r.Safe) // SafeText made it
	return r
}

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

// The bits of the byte of flags.
const (
	flagChecked = 1 << iota
	flagUntimed
	flagProvisional
)

// Where the parts of an encoded record begin that have a fixed place. Behind them are
// the texts of the plan and of the default, the ties, each behind its length, zeros, and
// the digest, whose seed is that of the record's origin.
const (
	lengthAt    = 0 // in bytes, without zeros and digest, u32
	originAt    = 4 // number of the origin, u32
	structureAt = 8 // hash of structure and backend, u64
	fusionAt    = 16
	numbersAt   = 48 // see readNumbers
	flagsAt     = numbersAt + 7*8
	dimsAt      = flagsAt + 2 // length in bytes, u16
	planAt      = flagsAt + 4 // length in bytes, u32
	defaultAt   = planAt + 4  // the same
	textsAt     = defaultAt + 4
)

// maxRecordBytes bounds a record; a length above it is damage.
const maxRecordBytes = 1 << 28

// encodeRecord writes the encoding of a record without origin and digest in a room.
func encodeRecord(room []byte, r *Record, structure uint64) []byte {
	out := append(room[:0], make([]byte, textsAt)...)
	put64(out, structureAt, structure)
	copy(out[fusionAt:], r.Fusion[:])
	for k, x := range [...]float64{
		r.Seconds, r.DefaultSeconds,
		r.Speedup[0], r.Speedup[1], r.Speedup[2],
		r.Regret,
	} {
		put64(out, numbersAt+8*k, math.Float64bits(x))
	}
	put64(out, numbersAt+48, uint64(r.When.Unix()))
	out[flagsAt] = r.flags()
	dims := strings.Join(r.Dims, ",")
	little.PutUint16(out[dimsAt:], uint16(len(dims)))
	put32(out, planAt, uint32(len(r.Plan)))
	put32(out, defaultAt, uint32(len(r.Default)))
	out = append(out, r.Plan...)
	out = append(out, r.Default...)
	out = append(out, dims...)
	for _, tie := range r.Ties {
		out = appendText(out, tie)
	}
	put32(out, lengthAt, uint32(len(out)))
	return padded(out)
}

// flags are the record's properties that are true or false.
func (r *Record) flags() (b byte) {
	for _, x := range [...]struct {
		flag byte
		is   bool
	}{{flagChecked, r.Checked}, {flagUntimed, r.Untimed}, {flagProvisional, r.Provisional}} {
		if x.is {
			b |= x.flag
		}
	}
	return b
}

// usualLines is how much of a record is copied before its length is known, so that the
// processor loads all of it at once.
const usualLines = 3

// read copies the record of a slot, by its first line, to a hit, and compares the digest
// of the copy; it is false for a slot without a record.
func (s *Snapshot) read(line uint32, hit *Hit) (there bool, err error) {
	b, ok := s.from(line)
	if !ok {
		return false, errRecordDamaged
	}
	if cap(hit.copied) < usualLines*lineBytes {
		hit.copied = make([]byte, usualLines*lineBytes)
	}
	copied := hit.copied[:usualLines*lineBytes]
	if len(b) >= len(copied) {
		*(*[usualLines * lineBytes]byte)(copied) = *(*[usualLines * lineBytes]byte)(b)
	} else {
		copy(copied, b)
	}
	length := u32(copied, lengthAt)
	if length == 0 || length == farBlock {
		return s.readEmpty(copied[:lineBytes], line, hit)
	}
	return true, s.readCopy(b, copied, int(length), hit)
}

// readEmpty follows the line of a far record, if there is one.
func (s *Snapshot) readEmpty(slot []byte, line uint32, hit *Hit) (there bool, err error) {
	if !sealed(slot, uint64(line)) {
		return false, errRecordDamaged
	}
	if u32(slot, 0) == 0 {
		return false, nil
	}
	b, ok := s.from(u32(slot, 4))
	if !ok || len(b) < lineBytes {
		return false, errRecordDamaged
	}
	return true, s.readCopy(b, nil, int(u32(b, lengthAt)), hit)
}

// readCopy reads a record of some length at the beginning of b, of which copied is a copy
// as far as it goes.
func (s *Snapshot) readCopy(b, copied []byte, length int, hit *Hit) error {
	whole := blockBytes(length)
	if length < textsAt || length > maxRecordBytes || whole > len(b) {
		return errRecordDamaged
	}
	if whole > len(copied) {
		hit.copied = append(hit.copied[:0], b[:whole]...)
		copied = hit.copied
	}
	c := s.origin(u32(copied, originAt))
	if c == nil || !sealed(copied[:whole], c.digest) {
		return errRecordDamaged
	}
	if int(u32(copied, lengthAt)) != length || !hit.decode(copied[:length]) {
		return errRecordDamaged
	}
	if hit.origin == c {
		return nil
	}
	hit.origin = c
	hit.Device, hit.Backend, hit.Codegen = c.device, c.backend, c.codegen
	hit.Safe, hit.By = c.safe, c.by
	return nil
}

// from is the file from a line on; it is false outside of it.
func (s *Snapshot) from(line uint32) (b []byte, ok bool) {
	at := uint64(line) * lineBytes
	if at >= uint64(len(s.data)) {
		return nil, false
	}
	return s.data[at:], true
}

// decode reads a record, whose bytes become the hit's.
func (h *Hit) decode(b []byte) bool {
	h.structure = u64(b, structureAt)
	h.Fusion = Fingerprint(b[fusionAt:])
	h.readNumbers(b[numbersAt:])
	plan := uint64(u32(b, planAt)) + textsAt
	preset := plan + uint64(u32(b, defaultAt))
	end := preset + uint64(little.Uint16(b[dimsAt:]))
	if end > uint64(len(b)) {
		return false
	}
	h.Plan = b[textsAt:plan:plan]
	h.Default = b[plan:preset:preset]
	h.Dims = b[preset:end:end]
	h.ties = b[end:]
	return true
}

// readNumbers decodes the fixed part of a record.
func (h *Hit) readNumbers(b []byte) {
	for k, to := range [...]*float64{
		&h.Seconds, &h.DefaultSeconds,
		&h.Speedup[0], &h.Speedup[1], &h.Speedup[2],
		&h.Regret,
	} {
		*to = math.Float64frombits(u64(b, 8*k))
	}
	h.Unix = int64(u64(b, 48))
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
