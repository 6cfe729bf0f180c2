//go:build !noasm

package sheet

import "encoding/binary"

// cpuid executes CPUID with EAX and ECX = 0.
//
//go:noescape
func cpuid(leaf uint32) (eax, ebx, ecx, edx uint32)

// here asks CPUID.
func here() Processor {
	var p Processor
	_, b, c, d := cpuid(0)
	text := binary.LittleEndian.AppendUint32(nil, b)
	text = binary.LittleEndian.AppendUint32(text, d)
	p.Vendor = string(binary.LittleEndian.AppendUint32(text, c))
	a, _, _, _ := cpuid(1)
	p.Family, p.Model, p.Stepping = displayed(a)
	return p
}
