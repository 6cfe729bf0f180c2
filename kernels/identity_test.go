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
