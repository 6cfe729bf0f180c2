package rates

import "testing"

// The size that is kept is the first, from above, at which copies through the caches
// keep their share of the rate past them, on a Xeon whose hypervisor lists 480 MiB, on
// one without that, and where nothing is kept.
func TestLargestCached(t *testing.T) {
	const mega = 1 << 20
	for _, c := range []struct{ listed, knee, want int64 }{
		{480 * mega, 80 * mega, 64 * mega},
		{480 * mega, 100 * mega, 96 * mega},
		{32 * mega, 64 * mega, 32 * mega},
		{33 * mega, 30 * mega, 24 * mega},
		{16 * mega, 0, 2 * mega},
		{0, 64 * mega, 2 * mega},
	} {
		got := largestCached(largestSize(c.listed), func(size int64) float64 {
			if size <= c.knee {
				return 1
			}
			return 0.54
		})
		if got != c.want {
			t.Errorf("%d MiB are listed, %d there: %d measured, %d expected",
				c.listed/mega, c.knee/mega, got/mega, c.want/mega)
		}
	}
}

// What a machine measures of itself is between the least and what it lists.
func TestKeptBytes(t *testing.T) {
	const listed = 8 << 20
	got := keptBytes(listed, 2)
	if got != 0 && (got < smallestKept || got > listed) {
		t.Errorf("%d bytes are kept of %d", got, listed)
	}
	t.Logf("%d of %d bytes are kept", got, listed)
}
