package tuner

import (
	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Key is the key of a fusion's winner on a device: the fingerprint of the
// fusion's canonical form and the exact context of the device.
func Key(c *hlo.Computation, id kernels.Identity) cache.Key {
	return exactContext(c.Fingerprint(), id)
}

func exactContext(fusion cache.Fingerprint, id kernels.Identity) cache.Key {
	return cache.Key{
		Fusion:  fusion,
		Device:  id.Device,
		Backend: id.Backend,
		Codegen: id.Revision,
	}
}

// A Result is what is known about one fusion on one device.
type Result struct {
	Record  cache.Record
	Hit     bool     // the record was stored already: nothing was measured
	SafeGap []string // how the safe context of a hit differs from the device's
}

// Plan is the winner, parsed.
func (r Result) Plan() (kernels.Plan, error) {
	return kernels.ParsePlan(r.Record.Plan)
}

// Lookup finds the stored winner of a fusion on a device, which need not be
// there. A database that does not exist is a miss.
func Lookup(
	db *cache.DB, c *hlo.Computation, id kernels.Identity,
) (Result, bool, error) {
	r, found, err := db.Get(Key(c, id))
	if !found || err != nil {
		return Result{}, false, err
	}
	return Result{
		Record:  r,
		Hit:     true,
		SafeGap: cache.SafeDiff(r.Safe, id.Safe),
	}, true, nil
}

// A Snapshot is a published file of winners (cache.DB.Publish), mapped into memory. It
// is immutable, takes no lock, and any number of goroutines may use it. A compiler
// opens it once and asks it for every fusion.
//
// Lookup computes the fingerprint of the fusion and parses the plan. A compiler
// that asks for the same fusion again keeps its Key and calls Get, which
// allocates nothing. Answer has an answer for every fusion.
type Snapshot struct{ *cache.Snapshot }

// OpenSnapshot opens a snapshot file.
func OpenSnapshot(path string) (Snapshot, error) {
	s, err := cache.OpenSnapshot(path)
	return Snapshot{s}, err
}

// OpenSnapshotAt opens a snapshot file of a revision only; see cache.OpenSnapshotAt.
func OpenSnapshotAt(path, revision string) (Snapshot, error) {
	s, err := cache.OpenSnapshotAt(path, revision)
	return Snapshot{s}, err
}

// A Winner is a plan from a snapshot.
type Winner struct {
	Plan    kernels.Plan
	Seconds float64  // median, or the prediction where nothing was timed
	SafeGap []string // how the safe context it was measured in differs from the device's
}

// Lookup finds the winner of a fusion on a device. The winner stays valid after
// the snapshot is closed. The error is about a plan that cannot be parsed, or a
// damaged file.
func (s Snapshot) Lookup(
	c *hlo.Computation, id kernels.Identity,
) (Winner, bool, error) {
	key := Key(c, id)
	var hit cache.Hit
	found, err := s.Get(&key, &hit)
	if !found || err != nil {
		return Winner{}, false, err
	}
	plan, err := kernels.ParsePlan(string(hit.Plan))
	if err != nil {
		return Winner{}, false, err
	}
	return Winner{plan, hit.Seconds, hit.SafeDiff(id.Safe)}, true, nil
}
