package sheet

import "golang.org/x/sys/unix"

// here is the processor by its brand, which is all that macOS says.
func here() Processor {
	brand, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return Processor{}
	}
	return Processor{Brand: brand}
}
