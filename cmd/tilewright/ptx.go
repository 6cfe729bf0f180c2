package main

import (
	"fmt"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// ptxJSON is the result of show -ptx -json.
type ptxJSON struct {
	Fusion string `json:"fusion"`
	Target string `json:"target"`
	Plan   string `json:"plan"`
	PTX    string `json:"ptx"`
}

// printPTX prints the kernel of a plan, the default where neither a plan nor a
// tiling is given. Nothing runs.
func (c *call) printPTX(f *hlo.Computation, target, tiling, plan string) error {
	sheet, err := gpu.ParseSheet(target)
	if err != nil {
		return usagef("-target: %v", err)
	}
	p, err := symtile.Analyze(f)
	if err != nil {
		return err
	}
	chosen, err := chosenPlan(tiling, plan, func() (kernels.Plan, error) { return gpu.DefaultPlan(p, sheet) })
	if err != nil {
		return err
	}
	text, err := gpu.PTX(p, chosen, sheet)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(ptxJSON{f.Name, sheet.Target, chosen.String(), text})
	}
	fmt.Fprintf(c.out, "// plan %s\n%s", chosen, text)
	return nil
}

// chosenPlan reads -plan or -tiling, or takes the default.
func chosenPlan(tiling, plan string, standard func() (kernels.Plan, error)) (kernels.Plan, error) {
	switch {
	case plan != "" && tiling != "":
		return kernels.Plan{}, usagef("-tiling and -plan exclude each other")
	case plan != "":
		return kernels.ParsePlan(plan)
	case tiling != "":
		t, err := parseSizes(tiling)
		return kernels.Plan{Tiles: t}, err
	}
	return standard()
}
