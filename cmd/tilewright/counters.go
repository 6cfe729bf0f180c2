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
	// Instructions of warps.
	WarpInstructions int64 `json:"warp_instructions"`
	// Instructions of active lanes.
	LaneInstructions int64 `json:"lane_instructions"`
	// Instructions of warps, by class.
	Instructions map[string]int64 `json:"instructions"`
	// Accesses to global and to shared memory.
	GlobalLoad  trafficJSON `json:"global_load"`
	GlobalStore trafficJSON `json:"global_store"`
	SharedLoad  trafficJSON `json:"shared_load"`
	SharedStore trafficJSON `json:"shared_store"`
	// Matrix instructions of warps.
	MMA int64 `json:"mma"`
	// Matrix instructions of warpgroups.
	WGMMA int64 `json:"wgmma"`
	// Floating-point operations of both.
	MatrixFLOPs int64 `json:"matrix_flops"`
	// Barriers of blocks.
	Barriers int64 `json:"barriers"`
	// Atomic operations of lanes.
	Atomics int64 `json:"atomics"`
	// Asynchronous bulk copies.
	BulkCopies int64 `json:"bulk_copies"`
	// Bytes that they moved.
	BulkBytes int64 `json:"bulk_bytes"`
}

// trafficJSON are the accesses of warps to one memory, in sectors of 32 bytes
// of global memory or in wavefronts of shared memory.
type trafficJSON struct {
	// Instructions of warps that access the memory.
	Requests int64 `json:"requests"`
	// Sectors of global memory that they touch.
	Sectors int64 `json:"sectors,omitempty"`
	// Wavefronts of shared memory that they take.
	Wavefronts int64 `json:"wavefronts,omitempty"`
	// The fewest sectors or wavefronts that could have moved the bytes.
	Ideal int64 `json:"ideal"`
	// Bytes that active lanes access.
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
