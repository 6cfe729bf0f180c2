package cost_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A pricer of a made-up device: the arithmetic of 1024 elements takes the same time
// whatever the tile, and every tile costs 100 ns to start.
type pricer struct{}

func (pricer) Terms() kernels.PriceTerms {
	return kernels.PriceTerms{Names: []string{"arithmetic", "starts"}}
}

func (pricer) Price(plan kernels.Plan, price *kernels.Price) error {
	tiles := 1024 / plan.Tiles[0]
	price.Seconds[0] = 1024e-9
	price.Seconds[1] = float64(tiles) * 100e-9
	price.Lanes = 1
	return nil
}

// Rank orders plans by their predicted time, and says what the prediction is made
// of.
func ExampleModel_Rank() {
	plans := []kernels.Plan{
		{Tiles: symtile.Tiling{16}},
		{Tiles: symtile.Tiling{256}},
		{Tiles: symtile.Tiling{64}},
	}
	var prior cost.Model
	ranked, err := prior.Rank(context.Background(), pricer{}, plans)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range ranked {
		fmt.Printf("%-4v %.2f µs:", r.Plan, r.Seconds*1e6)
		for _, t := range r.Terms() {
			fmt.Printf(" %s %.2f", t.Name, t.Seconds*1e6)
		}
		fmt.Println()
	}
	// Output:
	// 256  1.42 µs: arithmetic 1.02 starts 0.40
	// 64   2.62 µs: arithmetic 1.02 starts 1.60
	// 16   7.42 µs: arithmetic 1.02 starts 6.40
}

// Fit learns from measurements that a start takes twice as long as the pricer says.
func ExampleFit() {
	var samples []cost.Sample
	for _, size := range []int64{8, 16, 32, 64, 128, 256, 512, 1024} {
		plan := kernels.Plan{Tiles: symtile.Tiling{size}}
		features, err := cost.FeaturesOf(pricer{}, plan)
		if err != nil {
			log.Fatal(err)
		}
		seconds := 1024e-9 + float64(1024/size)*200e-9
		samples = append(samples, cost.Sample{Group: "fusion", Features: features, Seconds: seconds})
	}
	fitted, err := cost.Fit(samples)
	if err != nil {
		log.Fatal(err)
	}
	var prior cost.Model
	ratio := func(m *cost.Model) float64 { // of a tile of 8 to one of 1024
		small, _ := m.Predict(samples[0].Features)
		large, _ := m.Predict(samples[7].Features)
		return small / large
	}
	fmt.Printf("fitted to %d samples; small tiles look slower than before: %v\n", fitted.Fitted(), ratio(fitted) > ratio(&prior))
	// Output:
	// fitted to 8 samples; small tiles look slower than before: true
}

// Judge compares the order of predictions with the order of measurements.
func ExampleJudge() {
	predicted := []float64{1, 2, 3, 4}
	measured := []float64{1.1, 1.0, 3.5, 3.9}
	j := cost.Judge(predicted, measured)
	fmt.Printf("Kendall %.2f, the first predicted takes %.2f times the best time\n", j.Kendall, j.Regret1)
	// Output:
	// Kendall 0.67, the first predicted takes 1.10 times the best time
}
