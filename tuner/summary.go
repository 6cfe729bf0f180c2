package tuner

import (
	"cmp"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A Part is the fusions of a workload that share a state.
type Part struct {
	Fusions int     // distinct ones
	Uses    float64 // executions in a run of the modules
	Share   float64 // of the model's time
}

// A Summary says what a run has made of a workload. Times are those of default
// plans, as often as they are executed: measured, or else predicted, or else, of what
// has no plan, the bytes of its arrays at the bandwidth of the memory that holds them. With the
// weights of a profile the shares are those.
type Summary struct {
	// Parts of the fusions by state. Those that were known count as tuned, and those whose
	// race is not over in Unfinished in place of StateChecked.
	Parts      map[State]Part
	Unfinished Part
	// Outside is what is in no fusion; its share is an estimate.
	Outside Part
	// Like counts the fusions that were tuned, or are known, by the winner of one that
	// differs in extents only, beside their default.
	Like int
	// Structures counts those of the fusions, and TunedStructures the ones of which every
	// fusion was tuned or known.
	Structures, TunedStructures int
	// Seconds is the model's time by default plans; 0 with weights.
	Seconds float64
	// Speedup is the model's time by default plans over that with the winners so far,
	// of the fusions that were timed, each by its record's speed-up; 0 where none was.
	Speedup float64
}

// Summary sums up the state of the workload; it is meant for the end of a run.
func (s *Schedule) Summary() Summary {
	device := s.Tuner.Backend.Device()
	out := Summary{Parts: map[State]Part{}}
	total, standard, now := 0.0, 0.0, 0.0
	for _, x := range s.Workload.Items {
		t := s.importance(x)
		if t == 0 && !s.Weighted {
			t = x.Uses * moveSeconds(device, x.arrayBytes())
		}
		total += t
		if x.Unfinished() {
			out.Unfinished.add(x, t)
		} else {
			part := out.Parts[x.State]
			part.add(x, t)
			out.Parts[x.State] = part
		}
		like := x.Result.Record.Like != ""
		if like && x.tuned() {
			out.Like++
		}
		if r := &x.Result.Record; r.Plan != "" && !r.Untimed {
			standard += t
			now += t / cmp.Or(r.Speedup[0], 1)
		}
	}
	for _, o := range s.Workload.Outside {
		out.Outside.Fusions += o.Instrs
		for _, m := range o.moves {
			if s.Weighted {
				out.Outside.Share += m.weight
			} else {
				out.Outside.Share += m.uses * moveSeconds(device, m.bytes)
			}
		}
	}
	total += out.Outside.Share
	if now > 0 {
		out.Speedup = standard / now
	}
	if !s.Weighted {
		out.Seconds = total
	}
	out.divideBy(total)
	out.countStructures(s.Workload.Items)
	return out
}

// countStructures counts the structures, and those without a fusion that is left.
func (m *Summary) countStructures(items []*Item) {
	left := map[cache.Fingerprint]int{}
	for _, x := range items {
		n := left[x.Structure]
		if !x.tuned() {
			n++
		}
		left[x.Structure] = n
	}
	m.Structures = len(left)
	for _, n := range left {
		if n == 0 {
			m.TunedStructures++
		}
	}
}

// add adds an item that takes a time.
func (p *Part) add(x *Item, t float64) {
	p.Fusions++
	p.Uses += x.Uses
	p.Share += t
}

// divideBy makes shares of the times.
func (m *Summary) divideBy(total float64) {
	if total == 0 {
		return
	}
	for state, p := range m.Parts {
		p.Share /= total
		m.Parts[state] = p
	}
	m.Outside.Share /= total
	m.Unfinished.Share /= total
}

// moveSeconds is the time that bytes take at the bandwidth of the innermost level of
// memory that holds them; 0 where that is not known.
func moveSeconds(d kernels.Device, bytes float64) float64 {
	for k, l := range d.Levels {
		holds := float64(l.Bytes)
		if !l.Shared {
			holds *= float64(max(1, d.Lanes))
		}
		if k == len(d.Levels)-1 || l.Bytes == 0 || bytes <= holds {
			if l.Bandwidth == 0 {
				return 0
			}
			return bytes / l.Bandwidth
		}
	}
	return 0
}
