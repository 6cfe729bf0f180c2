package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// kernelTuner is a cache file of Kernel Tuner (schema/cache/1.1.0 of that project).
// Times are milliseconds. Fields that are not listed say how long compilation, search
// and checks took, which a replay does not need.
type kernelTuner struct {
	// Name of the device, of the kernel, and the size of the problem: a number, a list
	// or a text.
	Device string          `json:"device_name"`
	Kernel string          `json:"kernel_name"`
	Size   json.RawMessage `json:"problem_size"`
	// Names of the parameters in their order, and the values that each may have.
	Names  []string                     `json:"tune_params_keys"`
	Values map[string][]json.RawMessage `json:"tune_params"`
	// Objective that was minimised; absent in old files, where it is the time.
	Objective string `json:"objective"`
	// Cache has an entry for each configuration: its parameters, and what was
	// measured.
	Cache map[string]map[string]json.RawMessage `json:"cache"`
}

// notTimed is what Kernel Tuner writes as the time of a configuration that failed, where
// it writes no text.
const notTimed = 1e20

// milliseconds are seconds of a millisecond, the unit of both formats.
const milliseconds = 1e-3

// closed is a cache file of Kernel Tuner with its end: while a run goes on the file ends
// after an entry, with or without a comma.
func closed(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if json.Valid(text) {
		return text
	}
	whole := append(bytes.TrimRight(text, ", \n\r\t"), "}}"...)
	if json.Valid(whole) {
		return whole
	}
	return text
}

// readKernelTuner reads a cache file of Kernel Tuner.
func readKernelTuner(text []byte) (*Table, error) {
	var k kernelTuner
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	if k.Objective != "" && k.Objective != "time" {
		return nil, fmt.Errorf("its objective is %s; only times are replayed", k.Objective)
	}
	h := Header{Name: strings.TrimSpace(k.Kernel + " " + string(k.Size) + " " + k.Device)}
	for _, name := range k.Names {
		values := k.Values[name]
		h.Parameters = append(h.Parameters, Parameter{
			Name: name, Type: typeOf(values), Values: values,
		})
	}
	var lines []Line
	for _, key := range slices.Sorted(maps.Keys(k.Cache)) {
		x, err := k.line(k.Cache[key])
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", key, err)
		}
		lines = append(lines, x)
	}
	return New(h, lines)
}

// line is an entry of the cache. It is the entry that names the values, not its key, whose
// commas may stand in a text.
func (k kernelTuner) line(entry map[string]json.RawMessage) (Line, error) {
	var x Line
	for _, name := range k.Names {
		v, there := entry[name]
		if !there {
			return x, fmt.Errorf("it has no %s", name)
		}
		x.Values = append(x.Values, v)
	}
	// A number is a time even where its file has single measurements, too; their
	// median replaces it, since the mean that Kernel Tuner keeps has the cold first
	// run in it.
	var times []float64
	json.Unmarshal(entry["times"], &times) // absent where it failed
	var seconds float64
	if json.Unmarshal(entry["time"], &seconds) != nil {
		var failure any
		json.Unmarshal(entry["time"], &failure)
		x.Failure = kernelTunerFailure(fmt.Sprint(failure))
		return x, nil
	}
	if seconds >= notTimed || math.IsNaN(seconds) {
		x.Failure = "run"
		return x, nil
	}
	x.Seconds = seconds * milliseconds
	for _, t := range times {
		x.Samples = append(x.Samples, t*milliseconds)
	}
	return x, nil
}

// kernelTunerFailure is the word for what failed. Configurations that no device could
// run, and that Kernel Tuner did not compile, are invalid.
func kernelTunerFailure(text string) string {
	switch text {
	case "CompilationFailedConfig":
		return "compile"
	case "InvalidConfig":
		return "invalid"
	}
	return "run"
}

// t4 are results in the T4 format (schema/T4/1.0.0/results-schema.json of Kernel Tuner),
// which several autotuners write. It does not say which values a parameter may have:
// they are those of the results.
type t4 struct {
	Results []struct {
		Configuration map[string]json.RawMessage `json:"configuration"`
		Times         struct {
			Runtimes []float64 `json:"runtimes"`
		} `json:"times"`
		Invalidity   string   `json:"invalidity"`
		Objectives   []string `json:"objectives"`
		Measurements []struct {
			Name  string  `json:"name"`
			Value float64 `json:"value"`
			Unit  string  `json:"unit"`
		} `json:"measurements"`
	} `json:"results"`
}

// t4Units are the seconds of the units of times; what has none is in milliseconds, as
// Kernel Tuner writes it.
var t4Units = map[string]float64{
	"": milliseconds, "ms": milliseconds, "milliseconds": milliseconds,
	"s": 1, "seconds": 1, "us": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}

// readT4 reads results in the T4 format. The parameters are in the order of their names,
// since those of a JSON object have none. All results must have the same ones.
func readT4(text []byte) (*Table, error) {
	var in t4
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	if len(in.Results) == 0 {
		return nil, fmt.Errorf("it has no results")
	}
	names := slices.Sorted(maps.Keys(in.Results[0].Configuration))
	var lines []Line
	for n, r := range in.Results {
		x := Line{}
		for _, name := range names {
			v, there := r.Configuration[name]
			if !there || len(r.Configuration) != len(names) {
				return nil, fmt.Errorf("result %d has other parameters than the first", n+1)
			}
			x.Values = append(x.Values, v)
		}
		if r.Invalidity != "correct" {
			x.Failure = r.Invalidity
			lines = append(lines, x)
			continue
		}
		for _, m := range r.Measurements {
			unit, known := t4Units[m.Unit]
			if m.Name == "time" && !known {
				return nil, fmt.Errorf("result %d: a time in %q", n+1, m.Unit)
			}
			if m.Name == "time" {
				x.Seconds = m.Value * unit
			}
		}
		for _, ms := range r.Times.Runtimes {
			x.Samples = append(x.Samples, ms*milliseconds)
		}
		lines = append(lines, x)
	}
	h := Header{Name: "T4 results"}
	for i, name := range names {
		h.Parameters = append(h.Parameters, Parameter{Name: name, Type: typeOf(column(lines, i))})
	}
	return New(h, lines)
}
