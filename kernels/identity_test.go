package kernels

import "testing"

func TestIdentityRoundTrip(t *testing.T) {
	d := Device{Name: "cpu:X 2c", Backend: "cpu", Revision: "go9", Safe: map[string]string{"go": "1.26"}, FLOPS: 1}
	const want = `{"device":"cpu:X 2c","backend":"cpu","revision":"go9","safe":{"go":"1.26"}}`
	if got := d.Identity().String(); got != want {
		t.Errorf("got %s", got)
	}
	id, err := ParseIdentity([]byte(want))
	if err != nil || id.String() != want {
		t.Errorf("%s, %v", id, err)
	}
	for _, bad := range []string{"", "{}", `{"device":"x"}`, `{"device":"x","backend":"y","driver":"z"}`, want + want} {
		if _, err := ParseIdentity([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
func TestDeviceDistance(t *testing.T) {
	const sxm = "gpu:NVIDIA H100 80GB HBM3"
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{sxm, sxm, 0},
		{sxm, "gpu:NVIDIA H100 PCIe", 0.5},
		{sxm, "gpu:NVIDIA H100 NVL", 0.5},
		{sxm, "gpu:NVIDIA H200", 1},
		{sxm, "gpu:NVIDIA GH200 480GB", 1},
		{sxm, sxm + " MIG 1g.10gb", 1},
		{sxm, "gpu:NVIDIA A100-SXM4-80GB", 2},
		{sxm, "sim:H100", 0.5},
		{"gpu:NVIDIA A100-SXM4-80GB", "gpu:NVIDIA A100-PCIE-40GB", 0.5},
		{"gpu:NVIDIA A100-SXM4-80GB", "gpu:NVIDIA A30", 1},
		{"gpu:NVIDIA GeForce RTX 4090", "gpu:NVIDIA GeForce RTX 3080", 2},
		{"gpu:", "gpu:NVIDIA H100 PCIe", 2},
		{"cpu:x86-25-17-1 avx2", "cpu:x86-25-17-2 avx2", 0.5},
		{"cpu:x86-25-17-1 avx2", "cpu:x86-25-33-2 avx2", 2},
	} {
		if got := DeviceDistance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v, not %v", c.a, c.b, got, c.want)
		}
		if back := DeviceDistance(c.b, c.a); back != c.want {
			t.Errorf("%q and %q: %v, and %v the other way", c.b, c.a, back, c.want)
		}
	}
}
