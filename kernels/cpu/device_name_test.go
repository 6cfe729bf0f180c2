package cpu

import (
	"runtime"
	"testing"

	"github.com/tilewright/tilewright/kernels"
)

// TestDeviceName: processors that a hypervisor gives one name have different keys,
// and one processor has the same key under two names.
func TestDeviceName(t *testing.T) {
	levels := []kernels.Level{{Bytes: 48 << 10}, {Bytes: 2 << 20}, {Bytes: 480 << 20}, {}}
	const sapphire = `processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Processor
stepping	: 8

processor	: 1
stepping	: 9
`
	const graviton = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd40\nCPU revision\t: 1\n"
	for text, want := range map[string]string{
		sapphire: "GenuineIntel-6-143-8 v512 48K+2M+480M 2c",
		"vendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\nmodel name : Intel(R) Xeon(R) Processor\nstepping : 7\n": "GenuineIntel-6-85-7 v512 48K+2M+480M 2c",
		graviton: runtime.GOARCH + "-0x41-0xd40-0x1-1 v512 48K+2M+480M 2c",
		"":       runtime.GOARCH + " v512 48K+2M+480M 2c",
	} {
		if got := deviceName(parseCPUInfo(text), 512, levels, 2); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	name := New().Identity()
	if name.Safe["processor"] == "" || name.Name == "cpu:" {
		t.Errorf("%+v", name)
	}
}
