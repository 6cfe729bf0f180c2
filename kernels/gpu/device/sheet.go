package device

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
)

// A Sheet is a device as a file of JSON, with units in the names of its fields.
// docs/formats.md describes it. What a sheet leaves out is that of the architecture of
// its target.
type Sheet struct {
	// Name is the product, and Aliases are other names that ParseSpec finds it by.
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	// Target is the architecture: "sm_80". "sm_90" stands for "sm_90a".
	Target string `json:"target"`

	SMs               int   `json:"sms"`
	ClockHz           int64 `json:"sm_clock_hz"`
	L2Bytes           int64 `json:"l2_bytes"`
	MemoryBytes       int64 `json:"memory_bytes,omitempty"`
	MemoryBytesPerSec int64 `json:"memory_bytes_per_second"`
	Watts             int64 `json:"board_watts,omitempty"`

	BlockSharedBytes    int `json:"shared_bytes_per_block,omitempty"`
	SMSharedBytes       int `json:"shared_bytes_per_sm,omitempty"`
	ReservedSharedBytes int `json:"shared_bytes_reserved_per_block,omitempty"`
	RegistersPerSM      int `json:"registers_per_sm,omitempty"`
	RegistersPerThread  int `json:"registers_per_thread,omitempty"`
	ThreadsPerBlock     int `json:"threads_per_block,omitempty"`
	WarpsPerSM          int `json:"warps_per_sm,omitempty"`
	BlocksPerSM         int `json:"blocks_per_sm,omitempty"`
	BlocksPerCluster    int `json:"blocks_per_cluster,omitempty"`

	// Multiply-adds of an SM a clock: of the arithmetic units and, with f32 sums and
	// without sparsity, of the tensor cores. −1 is none.
	F32  float64 `json:"f32_macs_per_sm_per_clock,omitempty"`
	TF32 float64 `json:"tf32_macs_per_sm_per_clock,omitempty"`
	F16  float64 `json:"f16_macs_per_sm_per_clock,omitempty"`
	BF16 float64 `json:"bf16_macs_per_sm_per_clock,omitempty"`
	F8   float64 `json:"f8_macs_per_sm_per_clock,omitempty"`
	S8   float64 `json:"s8_macs_per_sm_per_clock,omitempty"`

	// Sources say where the numbers are from, by the name of the field; "*" stands for
	// any text.
	Sources map[string]string `json:"sources,omitempty"`
}

// maxSheetBytes bounds the text of a sheet.
const maxSheetBytes = 1 << 20

// ReadSheet reads a device from JSON. A field that is not known, a target that is not
// known and a number that no device has are errors.
func ReadSheet(r io.Reader) (Spec, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSheetBytes+1))
	switch {
	case err != nil:
		return Spec{}, fmt.Errorf("device sheet: %w", err)
	case len(text) > maxSheetBytes:
		return Spec{}, fmt.Errorf("device sheet: it is longer than %d bytes", maxSheetBytes)
	}
	x, err := parseSheet(text)
	if err != nil {
		return Spec{}, fmt.Errorf("device sheet: %w", err)
	}
	return x.Spec()
}

// parseSheet reads one sheet and nothing after it.
func parseSheet(text []byte) (x Sheet, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return x, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return x, errors.New("there is more after its end")
	}
	return x, nil
}

// Spec is the device of a sheet.
func (x Sheet) Spec() (Spec, error) {
	k := slices.IndexFunc(architectures, func(a architecture) bool {
		return strings.TrimSuffix(a.target, "a") == strings.TrimSuffix(x.Target, "a")
	})
	if k < 0 {
		return Spec{}, fmt.Errorf("device sheet %q: no target %q; there are %s", x.Name, x.Target, targets())
	}
	s := architectures[k].spec()
	s.Name = x.Name
	for _, n := range x.integers(&s) {
		if n.given < 0 || n.given > math.MaxInt32 {
			return Spec{}, fmt.Errorf("device sheet %q: %s is %d", x.Name, n.field, n.given)
		}
		if n.given > 0 {
			*n.to = n.given
		}
	}
	for _, n := range x.rates(&s.Rates) {
		if n.given != 0 {
			*n.to = max(0, n.given)
		}
	}
	if s.WaveWarps() > 1 {
		s.BlockRegisters = s.Registers // one block may have all
	}
	s.BlockRegisters = min(s.BlockRegisters, s.Registers)
	s.L2 = x.L2Bytes
	s.Memory = x.MemoryBytes
	s.Clock = float64(x.ClockHz)
	s.Bandwidth = float64(x.MemoryBytesPerSec)
	s.Watts = float64(x.Watts)
	return s, x.check()
}

// check returns what is missing or out of range.
func (x Sheet) check() error {
	for _, n := range []reading[int64]{
		{"sms", int64(x.SMs), 1 << 16},
		{"sm_clock_hz", x.ClockHz, 1e11},
		{"memory_bytes_per_second", x.MemoryBytesPerSec, 1e15},
		{"l2_bytes", x.L2Bytes, 1 << 40},
	} {
		if n.given < 1 || n.given > n.most {
			return fmt.Errorf("device sheet %q: %s is %d; it is from 1 to %d", x.Name, n.field, n.given, n.most)
		}
	}
	if x.Name == "" {
		return errors.New("device sheet: it has no name")
	}
	return nil
}

// A reading is a field of a sheet and the largest that it may be.
type reading[N any] struct {
	field       string
	given, most N
}

// A setting is a field of a sheet and where its value goes.
type setting[N any] struct {
	field string
	given N
	to    *N
}

// integers are the limits of a sheet.
func (x *Sheet) integers(s *Spec) []setting[int] {
	return []setting[int]{
		{"sms", x.SMs, &s.SMs},
		{"shared_bytes_per_block", x.BlockSharedBytes, &s.BlockShared},
		{"shared_bytes_per_sm", x.SMSharedBytes, &s.SMShared},
		{"shared_bytes_reserved_per_block", x.ReservedSharedBytes, &s.ReservedShared},
		{"registers_per_sm", x.RegistersPerSM, &s.Registers},
		{"registers_per_thread", x.RegistersPerThread, &s.ThreadRegisters},
		{"threads_per_block", x.ThreadsPerBlock, &s.BlockThreads},
		{"warps_per_sm", x.WarpsPerSM, &s.Warps},
		{"blocks_per_sm", x.BlocksPerSM, &s.Blocks},
		{"blocks_per_cluster", x.BlocksPerCluster, &s.Cluster},
	}
}

// rates are the rates of a sheet.
func (x *Sheet) rates(r *Rates) []setting[float64] {
	return []setting[float64]{
		{"f32", x.F32, &r.F32},
		{"tf32", x.TF32, &r.TF32},
		{"f16", x.F16, &r.F16},
		{"bf16", x.BF16, &r.BF16},
		{"f8", x.F8, &r.F8},
		{"s8", x.S8, &r.S8},
	}
}

// SheetOf is the sheet of a device, with every number.
func SheetOf(s Spec) Sheet {
	x := Sheet{
		Name: s.Name, Target: s.Target,
		ClockHz:             int64(s.Clock),
		L2Bytes:             s.L2,
		MemoryBytes:         s.Memory,
		MemoryBytesPerSec:   int64(s.Bandwidth),
		Watts:               int64(s.Watts),
		SMs:                 s.SMs,
		BlockSharedBytes:    s.BlockShared,
		SMSharedBytes:       s.SMShared,
		ReservedSharedBytes: s.ReservedShared,
		RegistersPerSM:      s.Registers,
		RegistersPerThread:  s.ThreadRegisters,
		ThreadsPerBlock:     s.BlockThreads,
		WarpsPerSM:          s.Warps,
		BlocksPerSM:         s.Blocks,
		BlocksPerCluster:    s.Cluster,
	}
	none := func(rate float64) float64 {
		if rate == 0 {
			return -1
		}
		return rate
	}
	x.F32, x.TF32, x.F16 = none(s.Rates.F32), none(s.Rates.TF32), none(s.Rates.F16)
	x.BF16, x.F8, x.S8 = none(s.Rates.BF16), none(s.Rates.F8), none(s.Rates.S8)
	if k := slices.IndexFunc(sheets(), func(y Sheet) bool { return y.Name == s.Name }); k >= 0 {
		x.Aliases, x.Sources = sheets()[k].Aliases, sheets()[k].Sources
	}
	return x
}

//go:embed sheets/*.json
var sheetFiles embed.FS

// sheetOrder has the files of the built-in sheets; the first of a target is the one
// that the target's name stands for.
var sheetOrder = strings.Fields(`v100 rtx2080ti t4 a100-40gb a100-80gb rtx3090 rtx3080 rtx3070 rtx3060
	a10 l4 l40s rtx4090 h100-sxm h100-pcie h200 h20 b200 rtx5090 mi250x mi300x`)

// sheets are the built-in sheets.
var sheets = sync.OnceValue(func() (all []Sheet) {
	for _, name := range sheetOrder {
		text, err := sheetFiles.ReadFile("sheets/" + name + ".json")
		if err != nil {
			panic(err)
		}
		x, err := parseSheet(text)
		if err != nil {
			panic(name + ": " + err.Error())
		}
		all = append(all, x)
	}
	return all
})

// Specs lists the built-in devices that code is generated for.
func Specs() []Spec {
	return slices.DeleteFunc(Priced(), func(s Spec) bool { return !s.Generated() })
}

// Priced lists the built-in devices, also those that code is not generated for.
func Priced() []Spec {
	all := make([]Spec, len(sheets()))
	for k, x := range sheets() {
		s, err := x.Spec()
		if err != nil {
			panic(err)
		}
		all[k] = s
	}
	return all
}

// ParseSpec finds a built-in device by product ("H200", "rtx 4090") or by target
// ("sm_90a"; "sm_90" and "90" are taken for it), the first of that target. Code is
// generated for its target.
func ParseSpec(name string) (Spec, error) {
	s, err := find(name, func(s Spec) bool { return s.Generated() })
	if err == nil {
		return s, nil
	}
	if s, priced := ParsePriced(name); priced == nil {
		err = fmt.Errorf("%s: code is not generated for %s; rank -problems prices plans for it", s.Name, s.Target)
	}
	return s, err
}

// ParsePriced finds a built-in device as ParseSpec does, also one that code is not
// generated for.
func ParsePriced(name string) (Spec, error) {
	return find(name, func(Spec) bool { return true })
}

// find finds a built-in device among those that are wanted.
func find(name string, wanted func(Spec) bool) (Spec, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	number := strings.TrimSuffix(strings.TrimPrefix(want, "sm_"), "a")
	var known []string
	for k, s := range Priced() {
		if !wanted(s) {
			continue
		}
		if want == strings.ToLower(s.Name) ||
			number == strings.TrimSuffix(strings.TrimPrefix(s.Target, "sm_"), "a") ||
			slices.ContainsFunc(sheets()[k].Aliases, func(a string) bool { return strings.EqualFold(a, want) }) {
			return s, nil
		}
		known = append(known, s.Name+" ("+s.Target+")")
	}
	return Spec{}, fmt.Errorf(
		"no GPU %q; there are %s", name, strings.Join(known, ", "),
	)
}

// Generated reports whether code is generated for the device's target.
func (s Spec) Generated() bool {
	return slices.ContainsFunc(architectures, func(a architecture) bool {
		return a.target == s.Target && a.generated()
	})
}

// targets lists the known targets.
func targets() string {
	var all []string
	for _, a := range architectures {
		all = append(all, a.target)
	}
	return strings.Join(all, ", ")
}
