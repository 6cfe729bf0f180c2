package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// An Identity names a device, the backend that drives it and the revision of
// the backend's code generator. Together with the fingerprint of a fusion it is
// the key of a tuned winner, so an Identity is all that a lookup needs to know
// of a device: it can be written down on one machine, as JSON, and read on
// another that does not have the device and does not link the backend.
//
// Device, Backend and Revision are the exact context: a winner that was
// measured with another value of one of them does not answer for this one. Safe
// is the safe context: with other values a winner stays legal and right, and
// only its time is in doubt.
type Identity struct {
	Device   string            `json:"device"`         // Device.Name: "cpu:AMD EPYC 7763 2c"
	Backend  string            `json:"backend"`        // Device.Backend: "cpu"
	Revision string            `json:"revision"`       // Device.Revision: "go9"
	Safe     map[string]string `json:"safe,omitempty"` // Device.Safe: the driver's version and the like
}

// Identity is the part of a device's description that keys its winners.
func (d Device) Identity() Identity {
	return Identity{
		Device:   d.Name,
		Backend:  d.Backend,
		Revision: d.Revision,
		Safe:     d.Safe,
	}
}

// IdentityOf is the identity of a backend's device. Nothing is measured for it.
func IdentityOf(b Backend) Identity { return b.Identity().Identity() }

// String is the identity as one line of JSON, which ParseIdentity reads.
func (id Identity) String() string {
	text, err := json.Marshal(id)
	if err != nil {
		panic("kernels: strings always marshal: " + err.Error())
	}
	return string(text)
}

// ParseIdentity reads an identity from JSON: the fields device, backend and
// revision, of which the first two must not be empty, and the object safe,
// which may be left out. Another field is an error, so that a misspelt name
// does not turn into lookups that never hit.
func ParseIdentity(text []byte) (Identity, error) {
	var id Identity
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&id); err != nil {
		return Identity{}, fmt.Errorf("not an identity of a device: %w", err)
	}
	if dec.More() {
		return Identity{}, errors.New("not an identity of a device: there is text after its end")
	}
	if id.Device == "" || id.Backend == "" {
		return Identity{}, errors.New("an identity needs a device and a backend")
	}
	return id, nil
}

// Distances of devices, in the unit of cache.Question: one octave of all extents.
const (
	familyDistance       = 0.5 // of devices of one family
	architectureDistance = 1   // of GPUs of one architecture, or slices of one product
	foreignDistance      = 2   // of others of one backend
)

// DeviceDistance says how little a winner of one device says about another of the
// same backend: 0 for the same name; 0.5 for one of its family; 1 for a GPU of its
// architecture, and for another slice (MIG) of its product; and 2 otherwise. The
// family is what the name begins with, up to its first blank or the last dash of that:
// the processors of one vendor, family and model, whatever their stepping, caches and
// lanes. Of a GPU it is the product, whatever its board and memory.
func DeviceDistance(a, b string) float64 {
	x, y := productOf(a), productOf(b)
	switch {
	case a == b:
		return 0
	case x.name != "" && x == y:
		return familyDistance
	case x.name != "" && architectures[x.name] != "" && architectures[x.name] == architectures[y.name]:
		return architectureDistance
	case x.name == "" && y.name == "" && deviceFamily(a) == deviceFamily(b):
		return familyDistance
	}
	return foreignDistance
}

// deviceFamily is the beginning of a name that the devices of a family share.
func deviceFamily(name string) string {
	word, _, _ := strings.Cut(name, " ")
	if dash := strings.LastIndex(word, "-"); dash > 0 {
		return word[:dash]
	}
	return word
}

// A product is a GPU as its driver names it, and the slice of it that is used.
type product struct{ name, slice string }

// productOf is the product in a name such as "gpu:NVIDIA A100-SXM4-80GB MIG 1g.10gb";
// its name is empty for another device.
func productOf(device string) (p product) {
	kind, name, _ := strings.Cut(device, ":")
	if kind != "gpu" && kind != "sim" {
		return p
	}
	name, p.slice, _ = strings.Cut(strings.TrimPrefix(name, "NVIDIA "), " MIG ")
	p.name = name
	for _, end := range []string{" ", "-"} {
		p.name, _, _ = strings.Cut(p.name, end)
	}
	if p.name == "GeForce" || p.name == "RTX" {
		p.name = name // their numbers are in the words that follow
	}
	return p
}

// architectures of products, by the CUDA C++ Programming Guide, Compute Capabilities.
var architectures = map[string]string{
	"A100": "sm_80", "A800": "sm_80", "A30": "sm_80",
	"A10": "sm_86", "A40": "sm_86",
	"L4": "sm_89", "L40": "sm_89", "L40S": "sm_89",
	"H100": "sm_90a", "H200": "sm_90a", "H800": "sm_90a", "H20": "sm_90a", "GH200": "sm_90a",
	"B200": "sm_100", "GB200": "sm_100",
}
