package main

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// ptxJSON is the result of show -ptx -json.
type ptxJSON struct {
	// Name of the fusion.
	Fusion string `json:"fusion"`
	// Architecture that the code is for: "sm_90a".
	Target string `json:"target"`
	// Plan that was compiled.
	Plan string `json:"plan"`
	// The kernel.
	PTX string `json:"ptx"`
}

// ptxFlags are the flags of show -ptx.
type ptxFlags struct {
	target, tiling, plan *string
	tf32                 *bool
}

// print prints the kernel of a plan, which is the default plan if neither a
// plan nor a tiling is given. Nothing is run.
func (f ptxFlags) print(c *call, fusion *hlo.Computation) error {
	sheet, err := device.ParseSpec(*f.target)
	if err != nil {
		return usagef("-target: %v", err)
	}
	p, err := symtile.Analyze(fusion)
	if err != nil {
		return err
	}
	standard := gpu.DefaultPlan
	if *f.tf32 {
		standard = gpu.TF32Plan
	}
	chosen, err := chosenPlan(*f.tiling, *f.plan, func() (kernels.Plan, error) {
		return standard(p, sheet)
	})
	if err != nil {
		return err
	}
	text, err := gpu.PTX(p, chosen, sheet)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(ptxJSON{fusion.Name, sheet.Target, chosen.String(), text})
	}
	fmt.Fprintf(c.out, "// plan %s\n%s", chosen, text)
	return nil
}
