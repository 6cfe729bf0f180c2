package kernels_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// One plan of a fusion is compiled for the CPU and run on buffers.
func ExampleBackend() {
	m, err := hlo.Parse("square.hlo", []byte(`
		x = f32[4] parameter(0)
		ROOT y = f32[4] multiply(x, x)`))
	if err != nil {
		log.Fatal(err)
	}
	program, err := symtile.Analyze(context.Background(), m.Entry)
	if err != nil {
		log.Fatal(err)
	}
	backend := cpu.New()
	ctx := context.Background()
	kernel, err := backend.Compile(ctx, program, kernels.Plan{Tiles: symtile.Tiling{2}})
	if err != nil {
		log.Fatal(err)
	}
	defer kernel.Close()

	x, err := kernels.NewBuffer(m.Entry.Params[0].Shape)
	if err != nil {
		log.Fatal(err)
	}
	copy(kernels.Elements[float32](x), []float32{1, 2, 3, 4})
	y, err := kernels.NewBuffer(m.Entry.Root.Shape)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := kernel.Run(ctx, []kernels.Buffer{x}, []kernels.Buffer{y}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(kernels.Elements[float32](y))
	// Output:
	// [1 4 9 16]
}

// The text form of a plan has the tile sizes and then the knobs, sorted by name.
func ExampleParsePlan() {
	p, err := kernels.ParsePlan("64,32,16 threads=2")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Tiles, p.Knob("threads", 1), p.Knob("group", 0))
	fmt.Println(p.With("group", 4))
	// Output:
	// [64 32 16] 2 0
	// 64,32,16 group=4 threads=2
}

// An identity is written down on the machine that has the device, and read where
// lookups happen.
func ExampleParseIdentity() {
	text := kernels.Device{Name: "cuda:H100", Backend: "cuda", Revision: "ptx7"}.Identity().String()
	fmt.Println(text)
	id, err := kernels.ParseIdentity([]byte(text))
	fmt.Println(id.Device, id.Revision, err)
	// Output:
	// {"device":"cuda:H100","backend":"cuda","revision":"ptx7"}
	// cuda:H100 ptx7 <nil>
}
