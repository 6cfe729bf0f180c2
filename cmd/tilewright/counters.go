package main

import (
	"strings"

	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// A counterSource is a backend that counts what its kernels do.
type counterSource interface {
	count()
	counters() sim.Counters
}

// countersJSON are the counters of a simulated run.
type countersJSON struct {
	WarpInstructions int64 `json:"warp_instructions"`
	// Instructions of active lanes.
	LaneInstructions int64 `json:"lane_instructions"`
	// Instructions of warps, by class.
	Instructions map[string]int64 `json:"instructions"`
	GlobalLoad   trafficJSON      `json:"global_load"`
	GlobalStore  trafficJSON      `json:"global_store"`
	SharedLoad   trafficJSON      `json:"shared_load"`
	SharedStore  trafficJSON      `json:"shared_store"`
	// Matrix instructions of warps and of warpgroups, and the operations of
	// both.
	MMA         int64 `json:"mma"`
	WGMMA       int64 `json:"wgmma"`
	MatrixFLOPs int64 `json:"matrix_flops"`
	// Barriers of blocks.
	Barriers int64 `json:"barriers"`
	// Atomic operations of lanes.
	Atomics int64 `json:"atomics"`
	// Asynchronous bulk copies, and the bytes that they moved.
	BulkCopies int64 `json:"bulk_copies"`
	BulkBytes  int64 `json:"bulk_bytes"`
}

// trafficJSON are the accesses of warps to one memory, in sectors of 32 bytes
// of global memory or in wavefronts of shared memory.
type trafficJSON struct {
	Requests   int64 `json:"requests"`
	Sectors    int64 `json:"sectors,omitempty"`
	Wavefronts int64 `json:"wavefronts,omitempty"`
	// The fewest sectors or wavefronts that could have moved the bytes.
	Ideal int64 `json:"ideal"`
	Bytes int64 `json:"bytes"`
}

// newCountersJSON converts the counters of the simulator.
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
