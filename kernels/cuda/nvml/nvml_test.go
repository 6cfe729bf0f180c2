//go:build cuda && cgo && linux

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead asks libraries that are compiled here, which need no GPU.
func TestRead(t *testing.T) {
	const gpu, slice, stranger = 0x00, 0x10, 0x20
	for _, x := range []struct {
		name, flags string
		first       byte // of the UUID
		want        Facts
		err         string
	}{
		{name: "a GPU", first: gpu, want: Facts{Watts: 350}},
		{name: "a slice has the cap of its GPU", first: slice, want: Facts{Watts: 275.5, Slice: "1g.10gb"}},
		{
			name: "a device of another driver", first: stranger,
			err: "nvmlDeviceGetHandleByUUID: Not Found (6)",
		},
		{
			name: "a driver that is not loaded", flags: "-DBROKEN",
			err: "nvmlInit_v2: Driver Not Loaded (9)",
		},
		{
			name: "a board without a cap", flags: "-DUNCAPPED",
			err: "nvmlDeviceGetEnforcedPowerLimit: Not Supported (3)",
		},
		{
			name: "a slice is known without its cap", flags: "-DUNCAPPED", first: slice,
			want: Facts{Slice: "1g.10gb"}, err: "nvmlDeviceGetEnforcedPowerLimit: Not Supported (3)",
		},
		{
			name: "a library from before slices", flags: "-DOLD", first: slice,
			want: Facts{Slice: "1g.10gb"}, err: "nvmlDeviceGetDeviceHandleFromMigDeviceHandle: the library does not have it (13)",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			library := compiled(t, x.flags)
			for range 2 { // started and stopped each time
				got, err := Read(library, uuid(x.first))
				if got != x.want || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
					t.Errorf("%+v, %v; want %+v, %s", got, err, x.want, x.err)
				}
			}
		})
	}
	_, err := Read("libnvidia-ml-that-is-not-there.so", uuid(gpu))
	if err == nil || !strings.Contains(err.Error(), "cannot open shared object file") {
		t.Errorf("without a library: %v", err)
	}
}

// uuid counts from its first byte.
func uuid(first byte) (u [16]byte) {
	for k := range u {
		u[k] = first + byte(k)
	}
	return u
}

// compiled is the path of a library made from testdata/nvml.c.
func compiled(t *testing.T, flags string) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip("no C compiler: ", err)
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	args := append(strings.Fields(flags), "-shared", "-fPIC", "-Wall", "-o", library, "testdata/nvml.c")
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}
