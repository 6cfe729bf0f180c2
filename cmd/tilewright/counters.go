package main

import (
	"strings"

	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// A counterSource backend says what the last run did, if it was to count.
type counterSource interface {
	count()
	counters() sim.Counters
}

// countersJSON is what a simulator counted.
type countersJSON struct {
	WarpInstructions int64            `json:"warp_instructions"`
	LaneInstructions int64            `json:"lane_instructions"` // of active lanes
	Instructions     map[string]int64 `json:"instructions"`      // of warps, by class
	GlobalLoad       trafficJSON      `json:"global_load"`
	GlobalStore      trafficJSON      `json:"global_store"`
	SharedLoad       trafficJSON      `json:"shared_load"`
	SharedStore      trafficJSON      `json:"shared_store"`
	MMA              int64            `json:"mma"`
	WGMMA            int64            `json:"wgmma"`
	MatrixFLOPs      int64            `json:"matrix_flops"`
	Barriers         int64            `json:"barriers"`
	Atomics          int64            `json:"atomics"` // of lanes
	BulkCopies       int64            `json:"bulk_copies"`
	BulkBytes        int64            `json:"bulk_bytes"`
}

// trafficJSON is the accesses of warps to one memory, in sectors of 32 bytes of the
// global one or wavefronts of the shared.
type trafficJSON struct {
	Requests   int64 `json:"requests"`
	Sectors    int64 `json:"sectors,omitempty"`
	Wavefronts int64 `json:"wavefronts,omitempty"`
	Ideal      int64 `json:"ideal"` // the fewest that could have moved the bytes
	Bytes      int64 `json:"bytes"`
}

func newCountersJSON(c sim.Counters) *countersJSON {
	global := func(t sim.Traffic) trafficJSON {
		return trafficJSON{
			Requests: t.Requests,
			Sectors:  t.Units,
			Ideal:    t.Ideal,
			Bytes:    t.Bytes,
		}
	}
	shared := func(t sim.Traffic) trafficJSON {
		return trafficJSON{
			Requests:   t.Requests,
			Wavefronts: t.Units,
			Ideal:      t.Ideal,
			Bytes:      t.Bytes,
		}
	}
	j := &countersJSON{
		WarpInstructions: c.WarpInstructions, LaneInstructions: c.LaneInstructions,
		Instructions: map[string]int64{},
		GlobalLoad:   global(c.GlobalLoad),
		GlobalStore:  global(c.GlobalStore),
		SharedLoad:   shared(c.SharedLoad),
		SharedStore:  shared(c.SharedStore),
		MMA:          c.MMA, WGMMA: c.WGMMA,
		MatrixFLOPs: c.MatrixFLOPs, Barriers: c.Barriers,
		Atomics:    c.Atomics,
		BulkCopies: c.BulkCopies, BulkBytes: c.BulkBytes,
	}
	for k, n := range c.Instructions {
		if n > 0 {
			j.Instructions[strings.ReplaceAll(sim.Class(k).String(), " ", "_")] = n
		}
	}
	return j
}
