package sheet

import (
	"slices"
	"strings"
	"testing"
)

// Every built-in sheet is right: its numbers have sources, its levels are in order, it is
// found by its names, and what it prints is read as the same.
func TestKnown(t *testing.T) {
	for _, s := range Known() {
		for _, name := range append(s.Aliases, s.Name) {
			if x, err := Find(strings.ToUpper(name)); err != nil || x.Name != s.Name {
				t.Errorf("%s is %q, %v", name, x.Name, err)
			}
		}
		text, err := s.JSON()
		if err != nil || !IsCPU(text) {
			t.Fatalf("%s: %v", s.Name, err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if twice, _ := again.JSON(); string(twice) != string(text) {
			t.Errorf("%s changes when it is read:\n%s\n%s", s.Name, text, twice)
		}
		for _, l := range s.Levels() {
			if l.Rate <= 0 {
				t.Errorf("%s: %s has no rate", s.Name, l.Name)
			}
		}
	}
	entries, err := files.ReadDir("sheets")
	if err != nil || len(entries) != len(order)+1 { // and the typical core
		t.Errorf("%d files of sheets, %d in their order, %v", len(entries), len(order), err)
	}
	if _, err := Find("Pentium"); err == nil || !strings.Contains(err.Error(), "Zen 2") {
		t.Errorf("%v: it does not list what there is", err)
	}
}

// No two sheets are of one processor.
func TestOneSheetEach(t *testing.T) {
	for _, s := range Known() {
		for _, model := range s.Models {
			p := Processor{Vendor: s.Vendor, Family: s.Family, Model: model}
			if len(s.Steppings) > 0 {
				p.Stepping = s.Steppings[0]
			}
			if x, found := Of(p); !found || x.Name != s.Name {
				t.Errorf("%+v is %q and not %q", p, x.Name, s.Name)
			}
		}
		for _, brand := range s.Brands {
			if x, found := Of(Processor{Brand: brand + " Pro"}); !found || x.Name != s.Name {
				t.Errorf("%s is %q and not %q", brand, x.Name, s.Name)
			}
		}
	}
}

// A processor whose family has no sheet gets none, nor does one that says nothing.
func TestUnknownProcessor(t *testing.T) {
	for _, p := range []Processor{
		{},
		{Vendor: "GenuineIntel", Family: 6, Model: 0x55, Stepping: 11}, // Cooper Lake
		{Vendor: "AuthenticAMD", Family: 0x17, Model: 1},               // Zen
		{Vendor: "CentaurHauls", Family: 7, Model: 0x5b},
		{Brand: "Apple M12"},
	} {
		if s, found := Of(p); found {
			t.Errorf("%+v is taken for %s", p, s.Name)
		}
	}
}

// Families and models are those that processors of these families print.
func TestDisplayed(t *testing.T) {
	for eax, want := range map[uint32][3]int{
		0x00a10f11: {0x19, 0x11, 1}, // EPYC 9004
		0x00050654: {6, 0x55, 4},    // Skylake-SP
		0x000c06f2: {6, 0xcf, 2},    // Emerald Rapids
		0x000006f6: {6, 15, 6},      // Core 2
		0x00000543: {5, 4, 3},       // Pentium: the extended model is not read
	} {
		family, model, stepping := displayed(eax)
		if got := [3]int{family, model, stepping}; got != want {
			t.Errorf("%#x is %v and not %v", eax, got, want)
		}
	}
}

// CPUID and Linux agree on this processor, where both are there.
func TestHere(t *testing.T) {
	p := Here()
	arm := readCPUInfo()
	t.Logf("%+v, Linux %+v", p, arm)
	if p.Vendor == "" && p.Family != 0 {
		t.Errorf("%+v has a family and no vendor", p)
	}
}

// Cores of Arm are known by their parts, the largest where there are several.
func TestCPUInfo(t *testing.T) {
	p := fromCPUInfo("CPU implementer\t: 0x61\nCPU part\t: 0x022\n\nCPU implementer\t: 0x61\nCPU part\t: 0x023\n")
	if s, found := Of(p); !found || s.Name != "Apple M1" {
		t.Errorf("%+v is %q", p, s.Name)
	}
	if p := fromCPUInfo("CPU part : x\nmodel name : y\n"); p != (Processor{}) {
		t.Errorf("%+v is made of nothing", p)
	}
}

// What is no sheet, or contradicts itself, is refused with the reason.
func TestBadSheets(t *testing.T) {
	const good = `"kind":"cpu","name":"x","vendor":"v","l1d_bytes":32768,"sources":{"l1d_bytes":"me"`
	for text, want := range map[string]string{
		``:                                       "EOF",
		`{`:                                      "EOF",
		`[]`:                                     "cannot unmarshal",
		`{"name":"x"}`:                           "kind",
		`{"kind":"cpu"}`:                         "no name",
		`{` + good + `}} {}`:                     "more after its end",
		`{` + good + `},"hz":1}`:                 "unknown field",
		`{"kind":"cpu","name":"x"}`:              "no vendor",
		`{"kind":"cpu","name":"x","vendor":"v"}`: "no l1d_bytes",
		`{"kind":"cpu","name":"x","vendor":"v","l1d_bytes":1}`:                                                "l1d_bytes has no source",
		`{"l2_bytes":-1,` + good + `}}`:                                                                       "l2_bytes is -1",
		`{"base_hz":1e300,` + good + `,"base_hz":"me"}}`:                                                      "base_hz is 1e+300",
		`{"models":[0],` + good + `}}`:                                                                        "models has no source",
		`{"l2_bytes":1,` + good + `,"l2_bytes":"me"}}`:                                                        "smaller",
		`{"f32_macs_per_cycle":{"256":0},` + good + `}}`:                                                      "f32_macs_per_cycle is 0",
		`{"l2_bytes":65536,"l2_bytes_per_cycle":100,` + good + `,"l2_bytes":"me","l2_bytes_per_cycle":"me"}}`: "L2 has 2.5e+11 bytes/s and L1, inside of it, 1.6e+11",
		strings.Repeat(" ", maxBytes+1):                                                                       "longer",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	if _, err := Read(strings.NewReader(`{` + good + `}}`)); err != nil {
		t.Error(err)
	}
	if IsCPU([]byte(`{"name":"x","target":"sm_80"}`)) || IsCPU([]byte(`{"kind":`)) {
		t.Error("a sheet of a GPU is taken for one of a processor")
	}
}

// Arithmetic with wide vectors is what a family has, and that of a family whose rates are
// not published is the typical core's.
func TestMacs(t *testing.T) {
	for _, c := range []struct {
		name string
		bits int
		want float64
	}{
		{"Zen 4", 256, 16}, {"Zen 4", 512, 16}, {"Zen 5", 512, 32}, {"Zen 2", 512, 16},
		{"Sapphire Rapids", 512, 32}, {"Graviton 3", 128, 8}, {"Apple M1", 128, 16},
	} {
		s, err := Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Macs(c.bits); got != c.want {
			t.Errorf("%s does %g multiply-adds with %d bits, not %g", c.name, got, c.bits, c.want)
		}
	}
}

// Of finds the sheet of a processor by the texts that may describe it as it would among all of
// them, decoded.
func TestOfDecodesFew(t *testing.T) {
	for _, s := range Known() {
		models := append(slices.Clone(s.Models), 4095)
		for _, model := range models {
			p := Processor{Vendor: s.Vendor, Family: s.Family, Model: model}
			if len(s.Steppings) > 0 {
				p.Stepping = s.Steppings[0]
			}
			k := slices.IndexFunc(built(), func(x Sheet) bool { return x.Describes(p) })
			got, found := Of(p)
			if found != (k >= 0) || found && got.Name != built()[k].Name {
				t.Errorf("%+v: %q, %v", p, got.Name, found)
			}
		}
		for _, brand := range s.Brands {
			if got, found := Of(Processor{Brand: brand + " Max"}); !found || got.Name != s.Name {
				t.Errorf("%s: %q", brand, got.Name)
			}
		}
	}
}

// No sheet has a name twice in one object, of which JSON keeps the last.
func TestNamesAreOnce(t *testing.T) {
	entries, err := files.ReadDir("sheets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := files.ReadFile("sheets/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		var names []map[string]bool // of the objects that are open
		for line := range strings.Lines(string(text)) {
			if name, _, found := strings.Cut(strings.TrimSpace(line), ":"); found && strings.HasPrefix(name, `"`) {
				if in := names[len(names)-1]; in[name] {
					t.Errorf("%s has %s twice", e.Name(), name)
				} else {
					in[name] = true
				}
			}
			if strings.HasSuffix(strings.TrimSpace(line), "{") {
				names = append(names, map[string]bool{})
			}
			if strings.HasPrefix(strings.TrimSpace(line), "}") {
				names = names[:len(names)-1]
			}
		}
	}
}
