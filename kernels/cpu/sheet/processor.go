package sheet

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Processor is what a processor says of itself.
type Processor struct {
	// Vendor of CPUID, "AuthenticAMD", or the implementer of an Arm core, "0x41".
	Vendor string
	// Family, Model and Stepping of CPUID; of an Arm core Model is the part number.
	Family, Model, Stepping int
	// Brand is the name of the processor where nothing else is known: "Apple M1".
	Brand string
}

// Describes reports whether the sheet is that of a processor.
func (s *Sheet) Describes(p Processor) bool {
	begins := func(b string) bool { return p.Brand == b || strings.HasPrefix(p.Brand, b+" ") }
	if p.Vendor == "" {
		return slices.ContainsFunc(s.Brands, begins)
	}
	return s.Vendor == p.Vendor && s.Family == p.Family &&
		slices.Contains(s.Models, p.Model) &&
		(len(s.Steppings) == 0 || slices.Contains(s.Steppings, p.Stepping))
}

// Here is the processor of this machine, or the zero value where it does not say.
var Here = sync.OnceValue(here)

// displayed is the family, model and stepping that leaf 1 of CPUID gives in EAX: the
// extended family is added to family 15, the extended model to families 6 and 15 (Intel,
// Software Developer's Manual, volume 2A, CPUID; AMD64 Architecture Programmer's Manual,
// volume 3, appendix E).
func displayed(eax uint32) (family, model, stepping int) {
	base := int(eax >> 8 & 15)
	family = base
	model = int(eax >> 4 & 15)
	stepping = int(eax & 15)
	if base == 15 {
		family += int(eax >> 20 & 255)
	}
	if base == 15 || base == 6 {
		model += int(eax>>16&15) << 4
	}
	return family, model, stepping
}

// fromCPUInfo reads the implementer and the part of an Arm core as Linux lists them, of
// the largest core where there are several: the one with the highest part number.
func fromCPUInfo(text string) (p Processor) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "CPU implementer":
			p.Vendor = value
		case "CPU part":
			part, err := strconv.ParseInt(value, 0, 32)
			if err == nil {
				p.Model = max(p.Model, int(part))
			}
		}
	}
	return p
}

// readCPUInfo is fromCPUInfo of this machine; the zero value where Linux is not there.
func readCPUInfo() Processor {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return Processor{}
	}
	return fromCPUInfo(string(text))
}
