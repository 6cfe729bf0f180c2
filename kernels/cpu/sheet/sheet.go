// Package sheet has data sheets of processors: what a core of a family can do, with the
// source of each number, as JSON with units in the names of the fields (docs/formats.md).
// A number that nobody has published is left out, and the one of the typical core
// (sheets/typical.json) stands for it.
//
// The package also says which processor this is, by CPUID where there is one.
package sheet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Kind marks the sheet of a processor in JSON. The sheet of a GPU has none.
const Kind = "cpu"

// A Sheet describes a core of a family of processors, what it shares with others, and
// their memory. Of numbers 0 is not known. Caches are as one core can use them.
type Sheet struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	// Device is the name under which winners of this very machine are stored; "" where
	// the sheet is of a family.
	Device string `json:"device,omitempty"`

	// Vendor is that of CPUID, or "0x41": the implementer of an Arm core. Models are
	// those of the family, or part numbers of Arm cores; Steppings, where there are some,
	// those of the models that are meant. Brands begin the name of the processor where a
	// system gives no numbers (macOS).
	Vendor    string   `json:"vendor"`
	Family    int      `json:"family,omitempty"`
	Models    []int    `json:"models,omitempty"`
	Steppings []int    `json:"steppings,omitempty"`
	Brands    []string `json:"brands,omitempty"`
	// ISA lists instruction sets as Linux names their flags: "avx2", "amx_bf16".
	ISA []string `json:"isa,omitempty"`

	// Cores is the number of lanes that plans are priced for.
	Cores       int     `json:"cores,omitempty"`
	BaseHz      float64 `json:"base_hz,omitempty"`
	BoostHz     float64 `json:"boost_hz,omitempty"`
	WideHz      float64 `json:"avx512_hz,omitempty"`
	PageBytes   []int64 `json:"page_bytes,omitempty"`
	LineBytes   int64   `json:"line_bytes,omitempty"`
	L1Bytes     int64   `json:"l1d_bytes,omitempty"`
	L2Bytes     int64   `json:"l2_bytes,omitempty"`
	L3Bytes     int64   `json:"l3_bytes,omitempty"`
	L3Stacked   int64   `json:"l3_stacked_bytes,omitempty"` // of products with a cache on top
	L3CoreBytes int64   `json:"l3_bytes_per_core,omitempty"`
	L2Cores     int     `json:"l2_cores,omitempty"`
	L3Cores     int     `json:"l3_cores,omitempty"`
	L1TLB       int     `json:"l1_dtlb_entries,omitempty"`
	L2TLB       int     `json:"l2_dtlb_entries,omitempty"`
	// FetchBytes is how far ahead of what is read its memory is best asked for more.
	FetchBytes int64 `json:"fetch_bytes,omitempty"`
	// FetchPastRow is the same beyond the row at hand where it is passed over several times.
	FetchPastRow int64 `json:"fetch_past_row_bytes,omitempty"`
	// FetchSecond is how far beyond what is fetched to the first cache rows are best fetched to
	// the second one.
	FetchSecond int64 `json:"fetch_second_bytes,omitempty"`
	// FetchPass is which of three passes over a row best asks for the next ones, from 1.
	FetchPass int64 `json:"fetch_pass,omitempty"`
	// ReadPlaces is at how many places in turn rows of several arrays are best read.
	ReadPlaces int64 `json:"read_places,omitempty"`
	// SumPlaces is at how many places in turn rows that are only reduced are best read.
	SumPlaces int64 `json:"sum_places,omitempty"`
	// SumBits is the bits of vectors in which rows from memory that are only reduced are best
	// read, 256; none: of the widest.
	SumBits int64 `json:"sum_bits,omitempty"`
	// SpreadStores is 1 where stores of a transpose past the caches are best spread among the
	// reads of what comes next.
	SpreadStores int64 `json:"spread_stores,omitempty"`
	// BandFetch is how far ahead rows of a band of a transpose are best fetched where a line of
	// each of them is read in turn; none: they are fetched one after another.
	BandFetch int64 `json:"band_fetch_bytes,omitempty"`
	// CopyPlaces is at how many rows in turn long rows of a slice are best copied past the caches:
	// 8 or, where there is none, 1.
	CopyPlaces int64 `json:"copy_places,omitempty"`
	// PastBytes is how large an output is that is best written past the caches though the last
	// one would hold it: what reads it and what is written come from there as slowly as from
	// memory.
	PastBytes int64 `json:"past_bytes,omitempty"`
	// PanelsAtOnce is by how many panels of 32 columns of f32 kernels of 512 bits multiply: 2.
	PanelsAtOnce int64 `json:"panels_at_once,omitempty"`
	// PanelBytes is the bytes of one of these in the second cache.
	PanelBytes int64 `json:"panel_bytes,omitempty"`
	// FetchesOperands is 1 where the hardware fetches their operands better than kernels do.
	FetchesOperands int64 `json:"fetches_operands,omitempty"`
	// UnderflowCycles is how much longer an operation takes that has a result too small for a
	// normal number.
	UnderflowCycles float64 `json:"underflow_cycles,omitempty"`

	// Bytes that a core reads in a cycle from each cache at most.
	L1Rate float64 `json:"l1_bytes_per_cycle,omitempty"`
	L2Rate float64 `json:"l2_bytes_per_cycle,omitempty"`
	L3Rate float64 `json:"l3_bytes_per_cycle,omitempty"`

	MemoryChannels int     `json:"memory_channels,omitempty"`
	MemoryRate     float64 `json:"memory_bytes_per_second,omitempty"`
	CoreMemoryRate float64 `json:"memory_bytes_per_second_per_core,omitempty"`

	// Multiply-adds of a core in a cycle: of f32 by the bits of the vectors, and of others
	// by the instruction set.
	F32  map[string]float64 `json:"f32_macs_per_cycle,omitempty"`
	BF16 map[string]float64 `json:"bf16_macs_per_cycle,omitempty"`
	S8   map[string]float64 `json:"s8_macs_per_cycle,omitempty"`

	// Sources say where numbers are from, by the name of the field.
	Sources map[string]string `json:"sources,omitempty"`
}

// maxBytes bounds the text of a sheet.
const maxBytes = 1 << 20

// IsCPU reports whether a text is the sheet of a processor, right or not.
func IsCPU(text []byte) bool {
	var x struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(text, &x) == nil && x.Kind == Kind
}

// Read reads a sheet from JSON. Fields that are not known, numbers without a source or
// out of range, and a level of memory that is slower than the next are errors.
func Read(r io.Reader) (Sheet, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("it is longer than %d bytes", maxBytes)
	}
	if err != nil {
		return Sheet{}, fmt.Errorf("CPU sheet: %w", err)
	}
	return Parse(text)
}

// Parse is Read of a text.
func Parse(text []byte) (Sheet, error) {
	s, err := decode(text)
	if err != nil {
		return s, fmt.Errorf("CPU sheet: %w", err)
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("CPU sheet %q: %w", s.Name, err)
	}
	return s, nil
}

// decode reads one sheet and nothing after it.
func decode(text []byte) (s Sheet, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s, errors.New("there is more after its end")
	}
	return s, nil
}

// check returns what is missing, out of range or contradicts itself.
func (s *Sheet) check() error {
	switch {
	case s.Kind != Kind:
		return fmt.Errorf("its kind is %q, not %q", s.Kind, Kind)
	case s.Name == "":
		return errors.New("it has no name")
	case s.Vendor == "":
		return errors.New("it has no vendor")
	}
	if err := s.checkNumbers(); err != nil {
		return err
	}
	if s.L1Bytes == 0 {
		return errors.New("it has no l1d_bytes")
	}
	if s.Device != "" { // what a system lists may be anything
		return s.checkOrder()
	}
	if s.L2Bytes > 0 && s.L2Bytes < s.L1Bytes || s.L3Bytes > 0 && s.L3Bytes < s.L2Bytes {
		return errors.New("a cache is smaller than the one inside of it")
	}
	return s.checkOrder()
}

// largest is what no number of a sheet is above: 1 PB/s.
const largest = 1e15

// checkNumbers demands that each number is positive and has a source.
func (s *Sheet) checkNumbers() error {
	v := reflect.ValueOf(s).Elem()
	for k := range v.NumField() {
		field, _, _ := strings.Cut(v.Type().Field(k).Tag.Get("json"), ",")
		numbers := numbersOf(v.Field(k))
		for _, n := range numbers {
			zero := n == 0 && slices.Contains(mayBeZero, field)
			if math.IsNaN(n) || n > largest || n <= 0 && !zero {
				return fmt.Errorf("%s is %g", field, n)
			}
		}
		if len(numbers) > 0 && s.Sources[field] == "" {
			return fmt.Errorf("%s has no source", field)
		}
	}
	return nil
}

// mayBeZero are numbers that identify and do not measure.
var mayBeZero = []string{"models", "steppings"}

// numbersOf are the numbers of a field: one that is given, those of a list or of a map.
func numbersOf(v reflect.Value) (all []float64) {
	switch x := v.Interface().(type) {
	case int:
		if x != 0 {
			all = append(all, float64(x))
		}
	case int64:
		if x != 0 {
			all = append(all, float64(x))
		}
	case float64:
		if x != 0 {
			all = append(all, x)
		}
	case []int:
		for _, n := range x {
			all = append(all, float64(n))
		}
	case []int64:
		for _, n := range x {
			all = append(all, float64(n))
		}
	case map[string]float64:
		for _, n := range x {
			all = append(all, n)
		}
	}
	return all
}

// checkOrder demands that no level of memory is slower than the next one.
func (s *Sheet) checkOrder() error {
	inner, name := math.Inf(1), ""
	for _, l := range s.Levels() {
		if l.Rate > inner {
			return fmt.Errorf("%s has %.3g bytes/s and %s, inside of it, %.3g", l.Name, l.Rate, name, inner)
		}
		inner, name = l.Rate, l.Name
	}
	return nil
}

// A Level is a level of memory of a sheet.
type Level struct {
	// Name is "L1", "L2", "L3" or "memory".
	Name string
	// Bytes that one core can use, and the cores that share them; 0 is unbounded, and
	// not known.
	Bytes int64
	Cores int
	// Rate is the bytes/s of a core.
	Rate float64
	// Borrowed is set where the rate is that of the typical core or of another family.
	Borrowed bool
}

// borrowed begins the source of a number that is another family's: "prior of Zen 3".
const borrowed = "prior of "

// Borrowed reports whether a field has no number of its own: the typical core's stands
// for it, or that of another family.
func (s *Sheet) Borrowed(field string) bool {
	source := s.Sources[field]
	return source == "" || strings.HasPrefix(source, borrowed)
}

// Levels are the levels of memory, the innermost first. What the sheet does not have is
// that of the typical core.
func (s *Sheet) Levels() (all []Level) {
	t := typical()
	hz := s.Hz()
	for _, l := range []struct {
		name          string
		bytes         int64
		cores         int
		rate, typical float64
	}{
		{"L1", s.L1Bytes, 1, s.L1Rate, t.L1Rate},
		{"L2", s.L2Bytes, max(1, s.L2Cores), s.L2Rate, t.L2Rate},
		{"L3", s.L3Bytes, s.L3Cores, s.L3Rate, t.L3Rate},
	} {
		if l.bytes > 0 {
			all = append(all, Level{
				Name: l.name, Bytes: l.bytes, Cores: l.cores,
				Rate:     cmp.Or(l.rate, l.typical) * hz,
				Borrowed: s.Borrowed(strings.ToLower(l.name) + "_bytes_per_cycle"),
			})
		}
	}
	return append(all, Level{
		Name: "memory", Rate: cmp.Or(s.CoreMemoryRate, t.CoreMemoryRate),
		Borrowed: s.Borrowed("memory_bytes_per_second_per_core"),
	})
}

// Hz is the clock that rates are priced at: the base clock, or that of the typical core.
func (s *Sheet) Hz() float64 {
	if s.BaseHz == 0 {
		return typical().BaseHz
	}
	return s.BaseHz
}

// Macs is how many multiply-adds of f32 a core does in a cycle with vectors of some bits,
// or with the widest narrower ones that the sheet has. Where it has none, it is as many
// vectors as the typical core's.
func (s *Sheet) Macs(bits int) float64 {
	for b := bits; b >= 128; b /= 2 {
		if n := s.F32[fmt.Sprint(b)]; n > 0 {
			return n
		}
	}
	return typical().F32["256"] * float64(bits) / 256
}

// VectorBits are the widest vectors whose rate the sheet has; 0: none.
func (s *Sheet) VectorBits() (bits int) {
	for _, b := range []int{128, 256, 512} {
		if s.F32[fmt.Sprint(b)] > 0 {
			bits = b
		}
	}
	return bits
}

// Has reports whether the cores have an instruction set.
func (s *Sheet) Has(isa string) bool { return slices.Contains(s.ISA, isa) }

// JSON is the sheet as text with a line for each field.
func (s Sheet) JSON() ([]byte, error) { return json.MarshalIndent(s, "", "  ") }
