package cache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// bytes encodes a key: the 32 bytes of the fingerprint, then each of device,
// backend and codegen behind its length in bytes, a varint. The encoding is
// injective, and the records of one fusion are neighbours.
func (k *Key) bytes() []byte {
	size := len(k.Fusion) + 8 +
		len(k.Device) + len(k.Backend) +
		len(k.Codegen)
	return k.append(make([]byte, 0, size))
}

// append appends the encoding.
func (k *Key) append(b []byte) []byte {
	b = append(b, k.Fusion[:]...)
	for _, s := range k.names() {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// Compare orders keys as a database does: by fingerprint, then by device, backend and
// revision, shorter texts first.
func (k *Key) Compare(other *Key) int {
	return bytes.Compare(k.bytes(), other.bytes())
}

// names are the strings of a key, in the order of the encoding.
func (k *Key) names() [3]string {
	return [...]string{k.Device, k.Backend, k.Codegen}
}

// parseKey is the inverse of bytes; another encoding of a key is an error.
func parseKey(b []byte) (k Key, err error) {
	whole := b
	if len(b) < len(k.Fusion) {
		return k, errors.New("a key is cut short")
	}
	b = b[copy(k.Fusion[:], b):]
	for _, s := range [...]*string{&k.Device, &k.Backend, &k.Codegen} {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)-width) {
			return Key{}, errors.New("a key is cut short")
		}
		end := width + int(n)
		*s = string(b[width:end])
		b = b[end:]
	}
	if !bytes.Equal(k.bytes(), whole) {
		return Key{}, errors.New("a key has bytes too many")
	}
	return k, nil
}

// SafeDiff lists, for people and sorted, the entries of two safe contexts that
// differ. A record of another safe context still answers; the differences are
// reported with it.
func SafeDiff(stored, now map[string]string) []string {
	var diff []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if stored[k] != now[k] {
			before := cmp.Or(stored[k], "none")
			after := cmp.Or(now[k], "none")
			diff = append(diff, fmt.Sprintf("%s: measured with %s, now %s", k, before, after))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(stored)) {
		if _, ok := now[k]; !ok {
			before := cmp.Or(stored[k], "none")
			diff = append(diff, fmt.Sprintf("%s: measured with %s, now none", k, before))
		}
	}
	slices.Sort(diff)
	return diff
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
