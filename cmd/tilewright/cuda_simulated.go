//go:build cuda && cudasim && cgo && linux

package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/tilewright/tilewright/kernels/cuda/cudasim"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
)

// startCUDA puts the simulator behind the driver in Go. TILEWRIGHT_CUDASIM
// names the GPU, H100 if it is empty; TILEWRIGHT_CUDASIM_FAULTS is a table of
// faults.
func startCUDA() error {
	sheet, err := device.ParseSpec(cmp.Or(os.Getenv("TILEWRIGHT_CUDASIM"), "H100"))
	if err != nil {
		return fmt.Errorf("TILEWRIGHT_CUDASIM: %w", err)
	}
	faults, err := cudasim.ParseFaults(os.Getenv("TILEWRIGHT_CUDASIM_FAULTS"))
	if err != nil {
		return fmt.Errorf("TILEWRIGHT_CUDASIM_FAULTS: %w", err)
	}
	d, err := simulated.Open(sheet, sim.Options{Races: true, Uninitialised: true})
	if err != nil {
		return err
	}
	cudasim.Start(d, cudasim.Options{Faults: faults})
	return nil
}
